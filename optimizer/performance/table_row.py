"""From a row of an architecture table to an ``Architecture``.

The table's columns are counts and widths; what they cannot say in a number (which layers are linear, how
heads differ between layers) stands in two short texts, ``layer_pattern`` and ``linear_spec``.
"""

from collections.abc import Mapping

from optimizer.performance.architecture import Architecture, gated_delta_net, mamba2

#: Mean of one kept token in 4 and one in 128, the compression ratios that alternate by layer.
_ALTERNATING_4_AND_128 = (1 / 4 + 1 / 128) / 2


def _count(row: Mapping[str, object], name: str) -> int:
    value = row.get(name)
    if value is None or value == "":
        return 0
    return int(float(str(value)))


def read_spec(text: str) -> dict[str, int]:
    """``"gdn:k_heads=16;v_heads=32"`` to ``{"k_heads": 16, "v_heads": 32}``; text without ``=`` is left out."""
    pairs = (part.split("=", 1) for part in text.split(":", 1)[-1].split(";") if "=" in part)
    return {name.strip(): int(value) for name, value in pairs if value.strip().isdigit()}


def architecture_from_row(row: Mapping[str, object]) -> Architecture:
    """An ``Architecture`` from the columns of an architecture table (``layers``, ``hidden``, ``heads``, ...).

    Numbers may be numbers or texts, empty means none. Unknown columns are ignored.
    """
    hidden, full = _count(row, "hidden"), _count(row, "attn_layers")
    pattern, spec_text = str(row.get("layer_pattern") or ""), str(row.get("linear_spec") or "")
    spec = read_spec(spec_text)
    linear = None
    if spec_text.startswith("gdn"):
        linear = gated_delta_net(hidden, spec["k_heads"], spec["v_heads"], spec["k_dim"], spec["v_dim"], spec["conv"])
    elif spec_text.startswith("mamba2"):
        linear = mamba2(hidden, spec["heads"], spec["head_dim"], spec["state"], spec["groups"], spec["conv"])
    compressed = row.get("attn_type") == "dsv4"
    groups = read_spec(pattern) if compressed else {}
    sliding = _count(row, "sliding_layers")
    return Architecture(
        layers=_count(row, "layers"),
        hidden_size=hidden,
        attention_heads=_count(row, "heads"),
        kv_heads=_count(row, "kv_heads"),
        head_dim=_count(row, "head_dim"),
        v_head_dim=_count(row, "v_head_dim"),
        ffn_size=_count(row, "ffn"),
        vocabulary=_count(row, "vocab"),
        mlp_matrices=_count(row, "mlp_mats") or 3,
        tied_embeddings=bool(_count(row, "tied")),
        qkv_bias=bool(_count(row, "qkv_bias")),
        output_bias=bool(_count(row, "o_bias")),
        mlp_bias=bool(_count(row, "mlp_bias")),
        qk_norm=_count(row, "qk_norm"),
        norms_per_layer=_count(row, "norms_per_layer"),
        norm_vectors=2 if row.get("norm") == "ln" else 1,
        gated_attention="gated q" in pattern,
        attention_sinks="sinks" in pattern,
        experts=_count(row, "experts"),
        active_experts=_count(row, "active_experts"),
        shared_experts=_count(row, "shared_experts"),
        shared_ffn_size=_count(row, "shared_ffn"),
        dense_layers=_count(row, "dense_layers"),
        moe_layers=_count(row, "moe_layers"),
        moe_ffn_size=_count(row, "moe_ffn"),
        moe_latent_size=_count(row, "moe_latent"),
        q_lora_rank=_count(row, "q_lora"),
        kv_lora_rank=_count(row, "kv_lora"),
        rope_dim=_count(row, "rope_dim"),
        nope_dim=_count(row, "nope_dim"),
        index_heads=_count(row, "index_heads"),
        index_dim=_count(row, "index_dim"),
        # The compressed kind keeps a compressed cache of the whole context and a window, both in every layer.
        full_layers=full or (_count(row, "layers") if compressed else 0),
        sliding_layers=0 if compressed else sliding,
        sliding_window=_count(row, "sliding_window"),
        global_head_dim=spec.get("global_head_dim", 0),
        global_kv_heads=spec.get("global_kv", 0),
        global_shared_kv="K projection shared with V" in pattern,
        shared_kv=compressed,
        output_groups=groups.get("o_groups", 0),
        output_lora_rank=groups.get("o_lora", 0),
        kv_compression=_ALTERNATING_4_AND_128 if compressed else 1.0,
        linear_layers=_count(row, "linear_layers"),
        linear_key_heads=linear.key_heads if linear else 0,
        linear_value_heads=linear.value_heads if linear else 0,
        linear_parameters_per_layer=linear.parameters if linear else 0,
        linear_state_bytes_per_layer=linear.state_bytes if linear else 0.0,
        position_embeddings=_count(row, "pos_embed"),
        max_context_tokens=_count(row, "max_context"),
        native_dtype=str(row.get("native_dtype") or "bf16"),
    )
