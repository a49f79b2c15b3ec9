"""config.json of each family, as published, to the published parameter totals."""

from typing import Any

import pytest

from optimizer.performance.architecture import parameter_counts
from optimizer.performance.huggingface import UnsupportedConfigError, from_hf_config

LLAMA_8B: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
    "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False,
    "max_position_embeddings": 131072, "attention_bias": False, "mlp_bias": False, "torch_dtype": "bfloat16",
}  # fmt: skip
QWEN_32B = {
    **LLAMA_8B, "model_type": "qwen3", "hidden_size": 5120, "intermediate_size": 25600, "num_attention_heads": 64,
    "num_hidden_layers": 64, "head_dim": 128, "vocab_size": 151936, "sliding_window": None,
}  # fmt: skip
QWEN25_05B = {
    "model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_attention_heads": 14,
    "num_hidden_layers": 24, "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True,
    "sliding_window": 32768, "use_sliding_window": False, "max_position_embeddings": 32768,
}  # fmt: skip
QWEN_30B = {
    **QWEN_32B, "model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "num_attention_heads": 32,
    "num_hidden_layers": 48, "num_key_value_heads": 4, "num_experts": 128, "num_experts_per_tok": 8,
    "moe_intermediate_size": 768, "decoder_sparse_step": 1, "mlp_only_layers": [],
}  # fmt: skip
MIXTRAL = {
    **LLAMA_8B, "model_type": "mixtral", "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2,
}  # fmt: skip
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "num_attention_heads": 128,
    "num_hidden_layers": 61, "num_key_value_heads": 128, "vocab_size": 129280, "tie_word_embeddings": False,
    "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": 1, "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3, "moe_layer_freq": 1, "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}  # fmt: skip
DEEPSEEK_V2_LITE = {
    **DEEPSEEK_V3, "model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944,
    "num_attention_heads": 16, "num_hidden_layers": 27, "vocab_size": 102400, "q_lora_rank": None,
    "n_routed_experts": 64, "num_experts_per_tok": 6, "n_shared_experts": 2, "moe_intermediate_size": 1408,
    "first_k_dense_replace": 1,
}  # fmt: skip
GEMMA_2_9B = {
    "model_type": "gemma2", "hidden_size": 3584, "intermediate_size": 14336, "num_attention_heads": 16,
    "num_hidden_layers": 42, "num_key_value_heads": 8, "head_dim": 256, "vocab_size": 256000, "sliding_window": 4096,
}  # fmt: skip
GEMMA_3_27B = {
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text", "hidden_size": 5376, "intermediate_size": 21504, "num_attention_heads": 32,
        "num_hidden_layers": 62, "num_key_value_heads": 16, "head_dim": 128, "vocab_size": 262208,
        "sliding_window": 1024,
    },
}  # fmt: skip
GPT_OSS_120B = {
    "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_attention_heads": 64,
    "num_hidden_layers": 36, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088,
    "tie_word_embeddings": False, "num_local_experts": 128, "num_experts_per_tok": 4, "sliding_window": 128,
    "attention_bias": True, "layer_types": ["sliding_attention", "full_attention"] * 18,
}  # fmt: skip
FALCON_40B = {
    "model_type": "falcon", "hidden_size": 8192, "num_attention_heads": 128, "num_hidden_layers": 60,
    "num_kv_heads": 8, "vocab_size": 65024, "new_decoder_architecture": True, "tie_word_embeddings": True,
}  # fmt: skip
FALCON_7B = {
    "model_type": "falcon", "hidden_size": 4544, "num_attention_heads": 71, "num_hidden_layers": 32,
    "vocab_size": 65024, "multi_query": True, "new_decoder_architecture": False, "tie_word_embeddings": True,
}  # fmt: skip
PHI_3_MINI = {
    **LLAMA_8B, "model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192, "num_attention_heads": 32,
    "num_hidden_layers": 32, "num_key_value_heads": 32, "vocab_size": 32064, "sliding_window": 2047,
}  # fmt: skip
MISTRAL_7B = {**LLAMA_8B, "model_type": "mistral", "vocab_size": 32000, "sliding_window": 4096}
SCOUT = {
    "model_type": "llama4",
    "text_config": {
        "model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
        "num_attention_heads": 40, "num_hidden_layers": 48, "num_key_value_heads": 8, "head_dim": 128,
        "vocab_size": 202048, "num_local_experts": 16, "num_experts_per_tok": 1, "interleave_moe_layer_step": 1,
        "attention_chunk_size": 8192, "tie_word_embeddings": False,
    },
}  # fmt: skip
QWEN3_NEXT = {
    **QWEN_30B, "model_type": "qwen3_next", "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 2,
    "head_dim": 256, "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512, "full_attention_interval": 4, "linear_num_key_heads": 16,
    "linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}  # fmt: skip
QWEN35_397B = {
    "model_type": "qwen3_5_moe",
    "text_config": {
        "model_type": "qwen3_5_moe_text", "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 2,
        "num_hidden_layers": 60, "head_dim": 256, "vocab_size": 248320, "num_experts": 512, "num_experts_per_tok": 10,
        "moe_intermediate_size": 1024, "shared_expert_intermediate_size": 1024, "linear_num_key_heads": 16,
        "linear_num_value_heads": 64, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
        "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 15, "tie_word_embeddings": False,
    },
}  # fmt: skip
QWEN35_27B = {
    "model_type": "qwen3_5",
    "text_config": {
        "hidden_size": 5120, "intermediate_size": 17408, "num_attention_heads": 24, "num_key_value_heads": 4,
        "num_hidden_layers": 64, "head_dim": 256, "vocab_size": 248320, "linear_num_key_heads": 16,
        "linear_num_value_heads": 48, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
        "full_attention_interval": 4, "tie_word_embeddings": False,
    },
}  # fmt: skip
GLM_5 = {
    **DEEPSEEK_V3, "model_type": "glm_moe_dsa", "hidden_size": 6144, "intermediate_size": 12288,
    "num_attention_heads": 64, "num_hidden_layers": 78, "vocab_size": 154880, "q_lora_rank": 2048,
    "qk_nope_head_dim": 192, "v_head_dim": 256, "index_n_heads": 32, "index_head_dim": 128,
}  # fmt: skip
KIMI_K25 = {
    "model_type": "kimi_k25",
    "text_config": {
        **DEEPSEEK_V3, "num_attention_heads": 64, "vocab_size": 163840, "n_routed_experts": 384,
        "first_k_dense_replace": 1,
    },
}  # fmt: skip
GEMMA_4_31B: dict[str, Any] = {
    "model_type": "gemma4",
    "text_config": {
        "model_type": "gemma4_text", "hidden_size": 5376, "intermediate_size": 21504, "num_attention_heads": 32,
        "num_hidden_layers": 60, "num_key_value_heads": 16, "head_dim": 256, "vocab_size": 262144,
        "sliding_window": 1024, "global_head_dim": 512, "num_global_key_value_heads": 4, "attention_k_eq_v": True,
        "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 10, "tie_word_embeddings": True,
    },
}  # fmt: skip
GEMMA_4_26B = {
    "model_type": "gemma4",
    "text_config": {
        **GEMMA_4_31B["text_config"], "hidden_size": 2816, "intermediate_size": 2112, "num_attention_heads": 16,
        "num_hidden_layers": 30, "num_key_value_heads": 8, "num_global_key_value_heads": 2, "num_experts": 128,
        "top_k_experts": 8, "moe_intermediate_size": 704, "enable_moe_block": True,
        "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 5,
    },
}  # fmt: skip
NEMOTRON_NANO = {
    "model_type": "nemotron_h", "hidden_size": 2688, "intermediate_size": 1856, "num_attention_heads": 32,
    "num_key_value_heads": 2, "head_dim": 128, "num_hidden_layers": 52, "vocab_size": 131072,
    "hybrid_override_pattern": "ME" * 17 + "M*E" * 6, "n_routed_experts": 128, "num_experts_per_tok": 6,
    "moe_intermediate_size": 1856, "n_shared_experts": 1, "moe_shared_expert_intermediate_size": 3712,
    "mamba_num_heads": 64, "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4,
}  # fmt: skip
NEMOTRON_H_56B = {
    "model_type": "nemotron_h", "hidden_size": 8192, "intermediate_size": 32768, "num_attention_heads": 64,
    "num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": 118, "vocab_size": 131072,
    "hybrid_override_pattern": "M-" * 54 + "*" * 10, "mamba_num_heads": 256, "mamba_head_dim": 64,
    "ssm_state_size": 256, "n_groups": 8,
}  # fmt: skip
MISTRAL_SMALL = {
    "model_type": "mistral3", "vision_config": {"model_type": "pixtral"},
    "text_config": {
        **LLAMA_8B, "model_type": "mistral", "hidden_size": 5120, "intermediate_size": 32768,
        "num_hidden_layers": 40, "head_dim": 128, "vocab_size": 131072, "sliding_window": None,
    },
}  # fmt: skip
QWEN25_VL_7B = {
    **QWEN25_05B, "model_type": "qwen2_5_vl", "hidden_size": 3584, "intermediate_size": 18944,
    "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4, "vocab_size": 152064,
    "tie_word_embeddings": False,
}  # fmt: skip
COMMAND_A = {
    "model_type": "cohere2", "hidden_size": 12288, "intermediate_size": 36864, "num_attention_heads": 96,
    "num_hidden_layers": 64, "num_key_value_heads": 8, "vocab_size": 256000, "sliding_window": 4096,
    "sliding_window_pattern": 4,
}  # fmt: skip
PHI_2 = {
    "model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240, "num_attention_heads": 32,
    "num_hidden_layers": 32, "vocab_size": 51200, "max_position_embeddings": 2048, "tie_word_embeddings": False,
}  # fmt: skip
BLOOM = {"model_type": "bloom", "hidden_size": 14336, "n_head": 112, "n_layer": 70, "vocab_size": 250880}
OLMO_2_7B = {
    **LLAMA_8B, "model_type": "olmo2", "intermediate_size": 11008, "num_key_value_heads": 32, "vocab_size": 100352,
}  # fmt: skip
GPT_NEOX_20B = {
    "model_type": "gpt_neox", "hidden_size": 6144, "intermediate_size": 24576, "num_attention_heads": 64,
    "num_hidden_layers": 44, "vocab_size": 50432, "tie_word_embeddings": False,
}  # fmt: skip
STARCODER_2_7B = {
    "model_type": "starcoder2", "hidden_size": 4608, "intermediate_size": 18432, "num_attention_heads": 36,
    "num_hidden_layers": 32, "num_key_value_heads": 4, "vocab_size": 49152, "use_bias": True,
}  # fmt: skip
STABLELM_2 = {
    "model_type": "stablelm", "hidden_size": 2048, "intermediate_size": 5632, "num_attention_heads": 32,
    "num_hidden_layers": 24, "num_key_value_heads": 32, "vocab_size": 100352, "use_qkv_bias": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "published_b", "tolerance"),
    [
        (LLAMA_8B, 8.030261248, 1e-3),
        (QWEN_32B, 32.762123264, 1e-3),
        (QWEN25_05B, 0.494032768, 1e-3),
        (QWEN_30B, 30.532122624, 1e-3),
        (MIXTRAL, 46.702792704, 1e-3),
        (MISTRAL_7B, 7.241732096, 1e-3),
        (DEEPSEEK_V3, 671.0264192, 1e-3),
        (DEEPSEEK_V2_LITE, 15.706484224, 1e-3),
        (GEMMA_2_9B, 9.241705984, 1e-3),
        (GEMMA_3_27B, 27.009346304, 1e-3),
        (GPT_OSS_120B, 116.829156672, 1e-3),
        (FALCON_40B, 41.303293952, 1e-3),
        (FALCON_7B, 6.921720704, 1e-3),
        (PHI_3_MINI, 3.821079552, 1e-3),
        (SCOUT, 109.0, 0.03),
        (QWEN3_NEXT, 80.0, 0.03),
        (QWEN35_397B, 397.0, 0.03),
        (QWEN35_27B, 27.0, 0.03),
        (GLM_5, 744.0, 0.03),
        (KIMI_K25, 1026.0, 0.03),
        (GEMMA_4_31B, 31.0, 0.03),
        (GEMMA_4_26B, 26.0, 0.03),
        (NEMOTRON_NANO, 31.6, 0.03),
        (NEMOTRON_H_56B, 56.0, 0.03),
        (MISTRAL_SMALL, 23.572403, 1e-3),
        (QWEN25_VL_7B, 7.615616512, 1e-3),
        (COMMAND_A, 111.05758, 1e-3),
        (PHI_2, 2.77968384, 1e-3),
        (BLOOM, 176.247271424, 1e-3),
        (OLMO_2_7B, 7.298617344, 1e-3),
        (GPT_NEOX_20B, 20.554567680, 1e-3),
        (STARCODER_2_7B, 7.17, 0.03),
        (STABLELM_2, 1.6445, 0.03),
    ],
)
def test_published_totals(config: dict[str, Any], published_b: float, tolerance: float) -> None:
    assert parameter_counts(from_hf_config(config)).total / 1e9 == pytest.approx(published_b, rel=tolerance)


def test_windows_are_read_only_where_they_are_used() -> None:
    assert from_hf_config(QWEN25_05B).sliding_layers == 0
    assert from_hf_config(PHI_3_MINI).sliding_layers == 0
    assert from_hf_config(MISTRAL_7B).sliding_layers == 32
    assert from_hf_config(GEMMA_3_27B).full_layers == 10
    assert from_hf_config(GPT_OSS_120B).sliding_layers == 18


def test_head_dim_is_read_and_not_derived() -> None:
    assert from_hf_config(QWEN_32B).head_dim == 128


def test_dtype_is_the_checkpoints() -> None:
    assert from_hf_config(DEEPSEEK_V3).native_dtype == "fp8"
    assert from_hf_config(LLAMA_8B).native_dtype == "bf16"


def test_missing_keys_are_all_named() -> None:
    with pytest.raises(UnsupportedConfigError, match=r"num_hidden_layers, hidden_size.*intermediate_size"):
        from_hf_config({"model_type": "llama", "vocab_size": 10, "num_attention_heads": 2})


def test_unknown_type_is_named() -> None:
    with pytest.raises(UnsupportedConfigError, match="'t5' is not known"):
        from_hf_config({"model_type": "t5"})
    with pytest.raises(UnsupportedConfigError, match="missing"):
        from_hf_config({})


@pytest.mark.parametrize("value", [-1, "many", True])
def test_wrong_values_are_refused(value: object) -> None:
    with pytest.raises(UnsupportedConfigError, match="hidden_size"):
        from_hf_config({**LLAMA_8B, "hidden_size": value})


def test_nearest_type_is_offered() -> None:
    with pytest.raises(UnsupportedConfigError, match="nearest: deepseek_v3"):
        from_hf_config({"model_type": "deepseek_v33"})


def test_hybrids_name_the_keys_they_lack() -> None:
    text = {**QWEN3_NEXT}
    del text["linear_num_key_heads"], text["linear_key_head_dim"]
    with pytest.raises(UnsupportedConfigError, match="lacks: linear_num_key_heads, linear_key_head_dim"):
        from_hf_config(text)
    blank = {**NEMOTRON_NANO, "hybrid_override_pattern": ""}
    with pytest.raises(UnsupportedConfigError, match="hybrid_override_pattern"):
        from_hf_config(blank)
    latent = {**DEEPSEEK_V3, "qk_rope_head_dim": None}
    with pytest.raises(UnsupportedConfigError, match="qk_rope_head_dim"):
        from_hf_config(latent)


def test_shells_and_renamed_types_are_the_shapes_they_hold() -> None:
    inner = {key: value for key, value in QWEN_32B.items() if key != "model_type"}
    shell = {"model_type": "internvl_chat", "llm_config": {**inner, "model_type": "qwen3"}}
    assert from_hf_config(shell) == from_hf_config(QWEN_32B)
    assert from_hf_config({"model_type": "qwen3_vl", "text_config": inner}) == from_hf_config(QWEN_32B)
    assert from_hf_config({**LLAMA_8B, "model_type": "granite"}) == from_hf_config(LLAMA_8B)


def test_layers_of_hybrids() -> None:
    nano = from_hf_config(NEMOTRON_NANO)
    assert (nano.full_layers, nano.linear_layers, nano.moe_layers, nano.dense_layers) == (6, 23, 23, 0)
    gemma = from_hf_config(GEMMA_4_31B)
    assert (gemma.full_layers, gemma.sliding_layers) == (10, 50)
    assert (gemma.global_head_dim, gemma.global_kv_heads) == (512, 4)
    assert from_hf_config(COMMAND_A).sliding_layers == 48
