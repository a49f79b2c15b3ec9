"""Joined times, streaming and arithmetic by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.performance import roofline
from optimizer.performance.architecture import Architecture, parameter_counts
from optimizer.performance.deployments import Deployments, Traffic
from optimizer.performance.factors import FloatArray, load_factors
from optimizer.performance.prepare import times_of
from optimizer.performance.sharding import shard_cache, shard_weights
from optimizer.performance.work import work_of
from tests.performance import builders as b

#: Zero, or above what squares to nothing.
TIMES = st.one_of(st.just(0.0), st.floats(1e-12, 1e6))


def times(a: Architecture, d: Deployments) -> dict[str, FloatArray]:
    work = work_of(a, d, Traffic(999, 2), shard_weights(a, d), shard_cache(a, d))
    return times_of(work, load_factors()).columns


@given(TIMES, TIMES, st.sampled_from([1.0, 1.7, 2.0, 2.2, 8.0]))
def test_join_lies_between_the_larger_and_the_sum(first: float, second: float, exponent: float) -> None:
    joined = roofline.smooth_max(np.array([first]), np.array([second]), exponent)[0]
    assert joined >= max(first, second) * (1 - 1e-12)
    assert joined <= (first + second) * (1 + 1e-12)


def test_join_of_equal_times() -> None:
    assert roofline.smooth_max(np.array([3.0]), np.array([4.0]), 2.0)[0] == 5.0
    assert roofline.smooth_max(np.array([0.0]), np.array([0.0]), 3.0)[0] == 0.0


def test_streaming_rate() -> None:
    factors = load_factors()
    d = b.deploy(b.H100, weight_bytes=[2.0, 1.0, 0.5625])
    hopper = factors.bandwidth_efficiency[b.H100["generation_index"]]
    read = (parameter_counts(b.LLAMA_8B).total - 128256 * 4096 * 2) * d.weight_bytes / (hopper * 3350e9) * 1e3
    head = 128256 * 4096 * 2 / (hopper[0] * 3350e9) * 1e3
    assert times(b.LLAMA_8B, d)["weights_ms"] == pytest.approx(read + head, rel=1e-3)


def test_width_classes() -> None:
    assert list(roofline.weight_width_index(np.array([4.0, 2.0, 1.016, 1.0, 0.5625, 0.27]))) == [0, 0, 1, 1, 2, 2]


def test_grouped_query_decode_is_the_cache_read() -> None:
    factors = load_factors()
    d = b.deploy(b.H100)
    share = factors.kv_bandwidth_efficiency[b.H100["generation_index"]] * factors.engine_attention_rate[0]
    time = times(b.LLAMA_8B, d)["sequence_ms"]
    assert time[0] == pytest.approx(131072 * 1000 / (min(share, roofline.LARGEST_SHARE_OF_PEAK) * 3350e9) * 1e3)


def test_latent_decode_is_at_least_its_arithmetic() -> None:
    time = times(b.DEEPSEEK_V3, b.deploy(b.H100))["sequence_ms"]
    flop = 61 * 2 * 1000 * 128 * (2 * 512 + 64)
    assert time[0] >= flop / 989.4e12 * 1e3


def test_prefill_attention_is_causal_and_windowed() -> None:
    flop = roofline.prefill_attention_flop(b.LLAMA_8B, 1000.0, 0.0)
    assert flop == pytest.approx(2 * 32 * 1000**2 / 2 * 32 * 256)
    # What is cached is attended to, not computed again.
    with_hit = roofline.prefill_attention_flop(b.LLAMA_8B, 500.0, 500.0)
    assert with_hit == pytest.approx(0.75 * flop)
    windowed = roofline.prefill_attention_flop(b.GPT_OSS_120B, 10000.0, 0.0)
    assert windowed == pytest.approx(2 * (18 * 10000**2 / 2 + 18 * 10000 * 128) * 64 * 128)


def test_sparse_attention_looks_at_the_tokens_it_picks() -> None:
    sparse = replace(b.DEEPSEEK_V3, index_heads=64, index_dim=128)
    d = b.deploy(b.H100)
    short, long = (
        np.asarray(work_of(a, d, Traffic(99_999, 2), shard_weights(a, d), shard_cache(a, d)).cache_bytes)
        for a in (sparse, b.DEEPSEEK_V3)
    )
    assert short[0] == pytest.approx(61 * (2048 * 576 * 2 + 100_000 * 128))
    assert long[0] == pytest.approx(61 * 100_000 * 576 * 2)
    dense = roofline.prefill_attention_flop(b.DEEPSEEK_V3, 65536.0, 0.0)
    assert roofline.prefill_attention_flop(sparse, 65536.0, 0.0) < 0.3 * dense
