"""Prefill and decode apart: no disturbance, a transfer, two sizes."""

from typing import Any

import numpy as np
import pytest

from optimizer.performance.deployments import Traffic
from optimizer.performance.factors import load_factors
from optimizer.performance.serving import prepare
from optimizer.performance.two_pools import TwoPools, cache_bytes_of_prompt, two_pools
from tests.performance import builders as b

FACTORS = load_factors()
TRAFFIC = Traffic(4096, 512, engine="vllm")


def pools(load: float, **more: Any) -> TwoPools:
    d = b.deploy(b.H100, tensor_parallel=[4, 8])
    prepared = prepare(b.LLAMA_70B, d, TRAFFIC, FACTORS)
    chosen = {"prefill": prepared, "decode": prepared, "decode_deployments": d, "concurrency": load, **more}
    return two_pools(b.LLAMA_70B, TRAFFIC, FACTORS, **chosen)


def test_cache_by_hand() -> None:
    assert cache_bytes_of_prompt(b.LLAMA_70B, 2.0, 1000.0) == 80 * 2 * 8 * 128 * 2 * 1000
    assert cache_bytes_of_prompt(b.DEEPSEEK_V3, 2.0, 1000.0) == 61 * 576 * 2 * 1000
    # A window is sent, not the whole context.
    windowed = cache_bytes_of_prompt(b.GPT_OSS_120B, 2.0, 10_000.0)
    assert windowed == 18 * 2 * 8 * 64 * 2 * (10_000 + 128)


def test_decoding_is_not_disturbed() -> None:
    d = b.deploy(b.H100, tensor_parallel=[4, 8])
    one_pool = prepare(b.LLAMA_70B, d, TRAFFIC, FACTORS).at(64.0)
    apart = pools(64.0)
    assert np.all(apart.tpot_ms < one_pool.tpot_ms)
    assert apart.tpot_ms == pytest.approx(one_pool.tpot_ms - one_pool.prefill_ms)


def test_the_transfer_uses_the_link_and_no_more() -> None:
    apart = pools(16.0)
    size = 80 * 2 * 8 * 128 * 2 * 4096
    assert apart.transfer_gb_per_request == pytest.approx(size / 1e9)
    assert np.all(apart.transfer_ms >= size / (50e9 * np.array([4, 8])) * 1e3)
    assert np.all(pools(16.0, link_gb_s=5.0).ttft_ms > apart.ttft_ms)


def test_pools_are_sized_to_each_other() -> None:
    calm, full = pools(64.0, prefill_busy_fraction=0.3), pools(64.0, prefill_busy_fraction=0.9)
    assert np.all(full.ttft_ms > calm.ttft_ms)
    assert np.all(full.prefill_replicas_per_decode_replica < calm.prefill_replicas_per_decode_replica)
    with pytest.raises(ValueError, match="never ends"):
        pools(64.0, prefill_busy_fraction=1.0)


def test_more_load_is_never_faster() -> None:
    loads = [1.0, 4.0, 16.0, 64.0, 256.0]
    assert np.all(np.diff([pools(load).tpot_ms for load in loads], axis=0) >= 0)
    assert np.all(np.diff([pools(load).ttft_ms for load in loads], axis=0) >= 0)
