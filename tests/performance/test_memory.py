"""Memory against engine logs and hand arithmetic."""

from typing import Any

import numpy as np
import pytest

from optimizer.performance.architecture import Architecture
from optimizer.performance.deployments import Traffic
from optimizer.performance.factors import load_factors
from optimizer.performance.memory import MemoryItems, kv_tokens_available, max_concurrency, memory_items
from tests.performance import builders as b

GIB = 2.0**30
CHAT = Traffic(4000, 192)


def items(model: Architecture, traffic: Traffic = CHAT, usable: float = 0.95, **layout: Any) -> MemoryItems:
    deployments = b.deploy(layout.pop("accelerator", b.H100), **layout)
    return memory_items(model, deployments, traffic, load_factors(), usable_memory_fraction=usable)


@pytest.mark.parametrize(
    ("model", "layout", "logged_gib"),
    [
        (b.QWEN_14B, {}, 27.52),
        (b.LLAMA_8B, {"tensor_parallel": 2}, 7.51),
        (b.LLAMA_8B, {"tensor_parallel": 4}, 3.77),
        (b.LLAMA_8B, {"pipeline_parallel": 2}, 7.51),
        (b.LLAMA_8B, {"pipeline_parallel": 4}, 4.26),
        (b.LLAMA_70B, {"tensor_parallel": 2, "weight_bytes": 1.0}, 33.88),
        (b.QWEN_32B, {"tensor_parallel": 2}, 30.59),
        (b.DEEPSEEK_V3, {"tensor_parallel": 8, "weight_bytes": 1.0}, 78.1),
        # Unquantized attention, router and embeddings; kernels pad the experts' hidden width of 2,880 to 3,072.
        (b.GPT_OSS_120B, {"weight_bytes": 4.25 / 8, "attention_weight_bytes": 2.0}, 64.38),
    ],
)
def test_weights_as_engines_log_them(model: Architecture, layout: dict[str, Any], logged_gib: float) -> None:
    # DeepSeek: copied latent projections and 16-bit embeddings add 1.5 % to a plain eighth.
    assert items(model, **layout).weights_gib[0] == pytest.approx(logged_gib, rel=0.017)


@pytest.mark.parametrize(("model", "pool_gib"), [(b.LLAMA_8B, 58.11), (b.QWEN_14B, 45.23)])
def test_cache_pool_as_the_engine_logs_it(model: Architecture, pool_gib: float) -> None:
    assert items(model).pool_gib[0] == pytest.approx(pool_gib, abs=1.0)


def test_activation_follows_vocabulary_and_routed_tokens() -> None:
    assert items(b.LLAMA_8B).activation_gib[0] == pytest.approx(1.89, abs=0.02)
    assert items(b.LLAMA_8B, tensor_parallel=4).activation_gib[0] == pytest.approx(1.89, abs=0.02)
    assert items(b.QWEN_14B).activation_gib[0] == pytest.approx(2.23, abs=0.02)
    experts = b.dense(
        48, 2048, 32, 4, 6144, 151936,
        head_dim=128, dense_layers=0, moe_layers=48, experts=128, active_experts=8, moe_ffn_size=768,
    )  # fmt: skip
    assert items(experts).activation_gib[0] == pytest.approx(2.68, abs=0.07)


def test_runtime_and_collectives() -> None:
    one, two, four = (items(b.LLAMA_8B, tensor_parallel=tp) for tp in (1, 2, 4))
    assert one.runtime_gib[0] + one.communication_gib[0] == pytest.approx(0.25)
    assert two.runtime_gib[0] + two.communication_gib[0] == pytest.approx(2.07, abs=0.02)
    assert four.runtime_gib[0] + four.communication_gib[0] == pytest.approx(2.13, abs=0.03)


def test_items_sum_to_what_is_fixed() -> None:
    m = items(b.DEEPSEEK_V3, tensor_parallel=8, weight_bytes=1.0)
    parts = m.weights_gib + m.activation_gib + m.graphs_gib + m.communication_gib + m.runtime_gib + m.reserve_gib
    assert parts == pytest.approx(m.fixed_gib)


def test_latent_cache_is_copied_to_every_rank() -> None:
    one, eight = (items(b.DEEPSEEK_V3, tensor_parallel=tp, weight_bytes=1.0).sequence_gib[0] for tp in (1, 8))
    assert one == eight == pytest.approx(61 * 576 * 2 * 4192 / GIB)


def test_kv_heads_are_divided_then_copied() -> None:
    tp = np.array([1, 4, 8])
    cache = items(b.QWEN_235B, tensor_parallel=tp).sequence_gib
    # Four KV heads: the fifth to eighth rank hold copies.
    assert cache[0] == pytest.approx(4 * cache[1])
    assert cache[1] == pytest.approx(cache[2])


def test_window_caps_the_cache() -> None:
    short, long = (items(b.GPT_OSS_120B, Traffic(tokens, 16)).sequence_gib[0] for tokens in (112, 9984))
    assert short == pytest.approx(36 * 8 * 128 * 2 * 128 / GIB)
    assert long == pytest.approx((18 * 10000 + 18 * 128) * 8 * 128 * 2 / GIB)


def test_state_does_not_grow_with_length() -> None:
    model = b.dense(
        4, 1024, 8, 8, 4096, 1000,
        full_layers=0, linear_layers=4, linear_value_heads=8, linear_key_heads=8, linear_state_bytes_per_layer=1e6,
    )  # fmt: skip
    assert items(model, Traffic(100, 12)).sequence_gib[0] == items(model, Traffic(5000, 8)).sequence_gib[0] == 4e6 / GIB


def test_longest_request_must_fit() -> None:
    deployments = b.deploy(b.H100, memory_gib=20.0)
    factors = load_factors()
    fits = memory_items(b.LLAMA_8B, deployments, Traffic(1000, 100), factors)
    assert max_concurrency(fits, deployments)[0] > 0
    long = memory_items(b.LLAMA_8B, deployments, Traffic(1000, 100, max_context_tokens=131072), factors)
    assert max_concurrency(long, deployments)[0] == 0


def test_what_does_not_fit_is_negative_and_holds_nothing() -> None:
    m = items(b.LLAMA_405B, tensor_parallel=8)
    deployments = b.deploy(b.H100, tensor_parallel=8)
    assert m.pool_gib[0] < 0
    assert max_concurrency(m, deployments)[0] == 0
    assert kv_tokens_available(m, deployments, CHAT)[0] == 0


def test_attention_data_parallel_ranks_each_hold_their_own_sequences() -> None:
    layout = {"attention_data_parallel": 8, "expert_parallel": 8, "weight_bytes": 1.0, "memory_gib": 140.0}
    deployments = b.deploy(b.H100, **layout)
    m = memory_items(b.DEEPSEEK_V3, deployments, CHAT, load_factors())
    assert max_concurrency(m, deployments)[0] == 8 * np.floor(m.pool_gib[0] / m.sequence_gib[0])


def test_closed_form_is_the_border() -> None:
    deployments = b.deploy(b.H100)
    m = memory_items(b.LLAMA_8B, deployments, CHAT, load_factors())
    most = max_concurrency(m, deployments)[0]
    assert m.fixed_gib[0] + most * m.sequence_gib[0] <= 79.65 * 0.9
    assert m.fixed_gib[0] + (most + 1) * m.sequence_gib[0] > 79.65 * 0.9
