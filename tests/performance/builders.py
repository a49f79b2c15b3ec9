"""Architectures and accelerators spelled out, for the tests of this package."""

from typing import Any

from optimizer.performance.architecture import Architecture
from optimizer.performance.deployments import Deployments
from optimizer.performance.factors import GENERATIONS, PRECISIONS


def dense(layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, vocabulary: int, **more: Any) -> Architecture:
    """A dense model of the Llama kind; ``head_dim`` defaults to hidden / heads."""
    head_dim = more.pop("head_dim", hidden // heads)
    values: dict[str, Any] = {
        "layers": layers,
        "hidden_size": hidden,
        "attention_heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "v_head_dim": head_dim,
        "ffn_size": ffn,
        "vocabulary": vocabulary,
        "dense_layers": layers,
        "full_layers": layers,
        **more,
    }
    return Architecture(**values)


LLAMA_8B = dense(32, 4096, 32, 8, 14336, 128256)
LLAMA_70B = dense(80, 8192, 64, 8, 28672, 128256)
LLAMA_405B = dense(126, 16384, 128, 8, 53248, 128256)
LLAMA_2_70B = dense(80, 8192, 64, 8, 28672, 32000)
QWEN_05B = dense(24, 896, 14, 2, 4864, 151936, tied_embeddings=True, qkv_bias=True)
QWEN_32B = dense(64, 5120, 64, 8, 25600, 151936, head_dim=128, qk_norm=1)
QWEN_14B = dense(40, 5120, 40, 8, 17408, 151936, qk_norm=1)
GEMMA_2_9B = dense(
    42, 3584, 16, 8, 14336, 256000,
    head_dim=256, tied_embeddings=True, norms_per_layer=4, full_layers=21, sliding_layers=21, sliding_window=4096,
)  # fmt: skip
FALCON_40B = dense(60, 8192, 128, 8, 32768, 65024, mlp_matrices=2, tied_embeddings=True, norm_vectors=2)
GPT_3 = dense(
    96, 12288, 96, 96, 49152, 50257,
    mlp_matrices=2, tied_embeddings=True, qkv_bias=True, output_bias=True, mlp_bias=True, norm_vectors=2,
    position_embeddings=2048,
)  # fmt: skip
PHI_4 = dense(40, 5120, 40, 10, 17920, 100352)
MIXTRAL = dense(
    32, 4096, 32, 8, 14336, 32000,
    dense_layers=0, moe_layers=32, experts=8, active_experts=2, moe_ffn_size=14336,
)  # fmt: skip
QWEN_235B = dense(
    94, 4096, 64, 4, 12288, 151936,
    head_dim=128, qk_norm=1, dense_layers=0, moe_layers=94, experts=128, active_experts=8, moe_ffn_size=1536,
)  # fmt: skip
GPT_OSS_120B = dense(
    36, 2880, 64, 8, 2880, 201088,
    head_dim=64, qkv_bias=True, output_bias=True, mlp_bias=True, attention_sinks=True, dense_layers=0, moe_layers=36,
    experts=128, active_experts=4, moe_ffn_size=2880, full_layers=18, sliding_layers=18, sliding_window=128,
)  # fmt: skip
DEEPSEEK_V3 = dense(
    61, 7168, 128, 1, 18432, 129280,
    head_dim=192, dense_layers=3, moe_layers=58, experts=256, active_experts=8, shared_experts=1,
    shared_ffn_size=2048, moe_ffn_size=2048, q_lora_rank=1536, kv_lora_rank=512, rope_dim=64, nope_dim=128,
    v_head_dim=128,
)  # fmt: skip

H100: dict[str, Any] = {
    "generation_index": GENERATIONS.index("hopper"),
    "precision_index": PRECISIONS.index("fp16"),
    "memory_gib": 79.65,
    "memory_bandwidth_gb_s": 3350.0,
    "compute_tflops": 989.4,
    "fp16_tflops": 989.4,
    "scale_up_gb_s": 450.0,
    "scale_up_pair_gb_s": 450.0,
    "scale_up_domain": 8,
    "scale_out_gb_s": 50.0,
    "pcie_gb_s": 64.0,
    "tdp_w": 700.0,
    "accelerators_per_host": 8,
}
A100: dict[str, Any] = {
    **H100,
    "generation_index": GENERATIONS.index("ampere"),
    "memory_bandwidth_gb_s": 2039.0,
    "compute_tflops": 312.0,
    "fp16_tflops": 312.0,
    "scale_up_gb_s": 300.0,
    "scale_up_pair_gb_s": 300.0,
    "scale_out_gb_s": 25.0,
    "pcie_gb_s": 32.0,
    "tdp_w": 400.0,
}
L40S: dict[str, Any] = {
    **A100,
    "generation_index": GENERATIONS.index("ada"),
    "memory_gib": 44.99,
    "memory_bandwidth_gb_s": 864.0,
    "compute_tflops": 362.05,
    "fp16_tflops": 362.05,
    "scale_up_gb_s": 0.0,
    "scale_up_pair_gb_s": 0.0,
    "scale_up_domain": 1,
}
MI300X: dict[str, Any] = {
    **H100,
    "generation_index": GENERATIONS.index("cdna3"),
    "memory_gib": 191.98,
    "memory_bandwidth_gb_s": 5300.0,
    "compute_tflops": 1307.4,
    "fp16_tflops": 1307.4,
    "scale_up_gb_s": 448.0,
    "scale_up_pair_gb_s": 64.0,
}


def deploy(accelerator: dict[str, Any], **layout: Any) -> Deployments:
    """Deployments of one accelerator type; degrees and bytes as columns or scalars."""
    return Deployments.of(**{**accelerator, "tensor_parallel": 1, **layout})
