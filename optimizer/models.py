"""The model of an instance as numbers: its architecture, its native format, its size."""

from dataclasses import dataclass

from optimizer.catalog import Catalog
from optimizer.catalog.rows import ModelArchitecture
from optimizer.instance.model import Instance
from optimizer.instance.workload import HuggingFaceConfig
from optimizer.performance.architecture import Architecture, gated_delta_net, mamba2, parameter_counts

#: Scheme of a model whose weights are released in 16 bits.
UNQUANTIZED = "w16a16"


@dataclass(frozen=True, slots=True)
class ServedModel:
    """The model to serve.

    ``native_scheme`` is the format of its released weights: its accuracy is the baseline, it loses nothing.
    ``native_experts_only`` says that attention stays in 16 bits there. Parameters are counts.
    """

    name: str
    architecture: Architecture
    native_scheme: str
    native_experts_only: bool
    native_block_width: int
    total_parameters: float
    active_parameters: float
    catalog_id: str | None

    @property
    def is_dense(self) -> bool:
        """No routed experts."""
        return self.architecture.experts == 0


def served_model(instance: Instance, catalog: Catalog) -> ServedModel:
    """The model of the instance; a path must have been resolved into a configuration before (``optimizer.api``)."""
    choice = instance.workload.model
    if choice is None:
        raise TypeError("a model is served that the instance does not name")
    if isinstance(choice, HuggingFaceConfig):
        from optimizer.performance.huggingface import from_hf_config

        architecture = from_hf_config(choice.config)
        return _model(choice.name, architecture, UNQUANTIZED, False, 1, None)
    if isinstance(choice, ModelArchitecture):
        return _from_row(choice, None)
    key = catalog.resolve_model(choice)
    return _from_row(catalog.models[key], key)


def _from_row(row: ModelArchitecture, catalog_id: str | None) -> ServedModel:
    architecture = architecture_from_catalog(row)
    experts_only = row.native_scope == "experts"
    return _model(row.id, architecture, row.native_scheme, experts_only, row.native_block_width, catalog_id)


def _model(
    name: str, architecture: Architecture, native: str, experts_only: bool, block: int, catalog_id: str | None
) -> ServedModel:
    counts = parameter_counts(architecture)
    return ServedModel(
        name, architecture, native, experts_only, block, float(counts.total), float(counts.active), catalog_id
    )


def architecture_from_catalog(row: ModelArchitecture) -> Architecture:
    """The performance model's architecture of a catalogue row."""
    compressed = row.attention == "dsv4"
    linear = None
    if row.linear_kind == "gdn":
        linear = gated_delta_net(
            row.hidden,
            row.linear_key_heads,
            row.linear_value_heads,
            row.linear_key_dim,
            row.linear_value_dim,
            row.linear_convolution,
        )
    elif row.linear_kind == "mamba2":
        # Mamba 2 keeps groups where key heads stand, and its state where key widths stand.
        linear = mamba2(
            row.hidden,
            row.linear_value_heads,
            row.linear_value_dim,
            row.linear_key_dim,
            row.linear_key_heads,
            row.linear_convolution,
        )
    ratios = [1.0 / float(ratio) for ratio in row.compression_ratios.split()]
    return Architecture(
        layers=row.layers,
        hidden_size=row.hidden,
        attention_heads=row.heads,
        kv_heads=row.kv_heads,
        head_dim=row.head_dim,
        v_head_dim=row.v_head_dim,
        ffn_size=row.ffn,
        vocabulary=row.vocabulary,
        mlp_matrices=row.mlp_matrices,
        tied_embeddings=row.tied_embeddings,
        qkv_bias=row.qkv_bias,
        output_bias=row.output_bias,
        mlp_bias=row.mlp_bias,
        qk_norm=row.qk_norm,
        norms_per_layer=row.norms_per_layer,
        norm_vectors=2 if row.norm == "ln" else 1,
        gated_attention=row.gated_query,
        attention_sinks=row.attention_sinks,
        experts=row.experts,
        active_experts=row.active_experts,
        shared_experts=row.shared_experts,
        shared_ffn_size=row.shared_ffn,
        dense_layers=row.dense_layers,
        moe_layers=row.moe_layers,
        moe_ffn_size=row.moe_ffn,
        moe_latent_size=row.moe_latent,
        q_lora_rank=row.q_lora,
        kv_lora_rank=row.kv_lora,
        rope_dim=row.rope_dim,
        nope_dim=row.nope_dim,
        index_heads=row.index_heads,
        index_dim=row.index_dim,
        # The compressed kind keeps a compressed cache of the whole context and a window, both in every layer.
        full_layers=row.attention_layers or (row.layers if compressed else 0),
        sliding_layers=0 if compressed else row.sliding_layers,
        sliding_window=row.sliding_window,
        global_head_dim=row.global_head_dim,
        global_kv_heads=row.global_kv_heads,
        global_shared_kv=row.shared_kv_projection,
        shared_kv=compressed,
        output_groups=row.output_groups,
        output_lora_rank=row.output_lora,
        kv_compression=sum(ratios) / len(ratios) if ratios else 1.0,
        linear_layers=row.linear_layers,
        linear_key_heads=linear.key_heads if linear else 0,
        linear_value_heads=linear.value_heads if linear else 0,
        linear_parameters_per_layer=linear.parameters if linear else 0,
        linear_state_bytes_per_layer=linear.state_bytes if linear else 0.0,
        position_embeddings=row.position_embeddings,
        max_context_tokens=row.max_context_tokens,
        native_dtype=row.native_dtype,
    )
