"""From a catalogue row of a model to what the performance model computes with, read by the checker itself."""

from dataclasses import dataclass
from functools import cache
from typing import Final

from optimizer.catalog import Catalog
from optimizer.catalog.rows import ModelArchitecture
from optimizer.instance.workload import HuggingFaceConfig
from optimizer.performance.architecture import Architecture, gated_delta_net, mamba2

#: Format of weights that were never quantized.
BASELINE_SCHEME: Final = "w16a16"
#: No fine-tuning after quantization.
NO_STEP: Final = "none"


@dataclass(frozen=True, slots=True)
class Served:
    """The model that is served: its shape, and the format in which its weights are released."""

    architecture: Architecture
    native_scheme: str = BASELINE_SCHEME
    native_experts_only: bool = False
    native_block_width: int = 1
    catalog_id: str | None = None


def served(choice: str | ModelArchitecture | HuggingFaceConfig, catalog: Catalog) -> Served:
    """The model of a resolved instance."""
    if isinstance(choice, HuggingFaceConfig):
        from optimizer.performance.huggingface import from_hf_config

        return Served(from_hf_config(choice.config))
    named = catalog.resolve_model(choice) if isinstance(choice, str) else None
    row = catalog.models[named] if named is not None else choice
    assert isinstance(row, ModelArchitecture)
    only = row.native_scope == "experts"
    return Served(architecture_of(row), row.native_scheme, only, row.native_block_width, named)


@cache
def architecture_of(row: ModelArchitecture) -> Architecture:
    """The numbers of one model."""
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
        linear = mamba2(
            row.hidden,
            row.linear_value_heads,
            row.linear_value_dim,
            row.linear_key_dim,
            row.linear_key_heads,
            row.linear_convolution,
        )
    compressed = row.attention == "dsv4"
    ratios = [float(word) for word in row.compression_ratios.split()]
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
        full_layers=row.attention_layers or (row.layers if compressed else 0),
        sliding_layers=0 if compressed else row.sliding_layers,
        sliding_window=row.sliding_window,
        global_head_dim=row.global_head_dim,
        global_kv_heads=row.global_kv_heads,
        global_shared_kv=row.shared_kv_projection,
        shared_kv=compressed,
        output_groups=row.output_groups,
        output_lora_rank=row.output_lora,
        kv_compression=sum(1.0 / ratio for ratio in ratios) / len(ratios) if ratios else 1.0,
        linear_layers=row.linear_layers,
        linear_key_heads=linear.key_heads if linear else 0,
        linear_value_heads=linear.value_heads if linear else 0,
        linear_parameters_per_layer=linear.parameters if linear else 0,
        linear_state_bytes_per_layer=linear.state_bytes if linear else 0.0,
        position_embeddings=row.position_embeddings,
        max_context_tokens=row.max_context_tokens,
        native_dtype=row.native_dtype,
    )
