"""Rows of an architecture table."""

from optimizer.performance.architecture import parameter_counts
from optimizer.performance.table_row import architecture_from_row, read_spec
from tests.performance import builders as b

LLAMA_ROW = {
    "layers": "32", "hidden": "4096", "heads": "32", "kv_heads": "8", "head_dim": "128", "v_head_dim": "128",
    "ffn": "14336", "mlp_mats": "3", "vocab": "128256", "tied": "0", "norm": "rms", "norms_per_layer": "2",
    "dense_layers": "32", "moe_layers": "0", "attn_layers": "32", "native_dtype": "bf16", "max_context": "131072",
    "source": "ignored",
}  # fmt: skip


def test_plain_row() -> None:
    model = architecture_from_row(LLAMA_ROW)
    assert parameter_counts(model) == parameter_counts(b.LLAMA_8B)
    assert model.max_context_tokens == 131072


def test_numbers_and_texts_are_alike() -> None:
    numbers = {name: int(value) if value.isdigit() else value for name, value in LLAMA_ROW.items()}
    assert architecture_from_row(numbers) == architecture_from_row(LLAMA_ROW)


def test_linear_row() -> None:
    row = {
        **LLAMA_ROW, "layers": 48, "hidden": 2048, "heads": 16, "kv_heads": 2, "head_dim": 256, "v_head_dim": 256,
        "vocab": 151936, "qk_norm": 1, "experts": 512, "active_experts": 10, "shared_experts": 1, "shared_ffn": 512,
        "dense_layers": 0, "moe_layers": 48, "moe_ffn": 512, "attn_layers": 12, "linear_layers": 36,
        "layer_pattern": "3 linear + 1 full attention (gated q)",
        "linear_spec": "gdn:k_heads=16;v_heads=32;k_dim=128;v_dim=128;conv=4",
    }  # fmt: skip
    model = architecture_from_row(row)
    assert model.gated_attention
    assert model.linear_value_heads == 32
    # Qwen3-Next is published as 80B-A3B.
    assert abs(parameter_counts(model).total / 80e9 - 1) < 0.03


def test_spec_texts() -> None:
    assert read_spec("gdn:k_heads=16;v_heads=32") == {"k_heads": 16, "v_heads": 32}
    assert read_spec("global_head_dim=512;global_kv=4") == {"global_head_dim": 512, "global_kv": 4}
    assert read_spec("") == {}
