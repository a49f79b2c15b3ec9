"""Joined times, streaming and arithmetic by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.performance import roofline
from optimizer.performance.factors import load_factors
from optimizer.performance.sharding import shard_cache
from tests.performance import builders as b

#: Zero, or above what squares to nothing.
TIMES = st.one_of(st.just(0.0), st.floats(1e-12, 1e6))


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
    rate = roofline.stream_ms_per_byte(d, d.weight_bytes, factors)
    hopper = factors.bandwidth_efficiency[b.H100["generation_index"]]
    assert rate == pytest.approx(1e3 / (hopper * 3350e9))


def test_width_classes() -> None:
    assert list(roofline.weight_width_index(np.array([4.0, 2.0, 1.016, 1.0, 0.5625, 0.27]))) == [0, 0, 1, 1, 2, 2]


def test_grouped_query_decode_is_the_cache_read() -> None:
    factors = load_factors()
    d = b.deploy(b.H100)
    time = roofline.decode_attention_ms(b.LLAMA_8B, d, shard_cache(b.LLAMA_8B, d), 1000.0, factors)
    rate = factors.kv_bandwidth_efficiency[b.H100["generation_index"]] * 3350e9
    assert time[0] == pytest.approx(131072 * 1000 / rate * 1e3)


def test_latent_decode_is_at_least_its_arithmetic() -> None:
    factors = load_factors()
    d = b.deploy(b.H100)
    time = roofline.decode_attention_ms(b.DEEPSEEK_V3, d, shard_cache(b.DEEPSEEK_V3, d), 1000.0, factors)
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
