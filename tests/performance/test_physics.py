"""What no constants may break: nothing beats memory, matrix units or links, and more work never takes less time."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.performance.architecture import Architecture, parameter_counts
from optimizer.performance.deployments import Traffic
from optimizer.performance.factors import ENGINES, load_factors
from optimizer.performance.roofline import prefill_attention_flop
from optimizer.performance.serving import ServingPrediction, predict_serving
from tests.performance import builders as b

FACTORS = load_factors()
MODELS = {
    "dense": b.LLAMA_70B,
    "experts": b.QWEN_235B,
    "latent": b.DEEPSEEK_V3,
    "windows": b.GPT_OSS_120B,
    "sparse": replace(b.DEEPSEEK_V3, index_heads=64, index_dim=128),
}
CARDS = {"hopper": b.H100, "ampere": b.A100, "ada": b.L40S, "cdna3": b.MI300X}
FORMATS = {
    "fp16": {},
    "fp8": {"precision_index": 1, "weight_bytes": 1.0, "kv_bytes": 1.0},
    "int4": {"weight_bytes": 0.53, "attention_weight_bytes": 2.0},
}


def predict(
    model: Architecture, card: dict[str, Any], form: dict[str, Any], traffic: Traffic, load: Any, tp: int
) -> ServingPrediction:
    peak = card["fp16_tflops"] * (2.0 if "precision_index" in form else 1.0)
    d = b.deploy({**card, "compute_tflops": peak}, tensor_parallel=np.full(np.size(load), tp), **form)
    return predict_serving(model, d, traffic, load, FACTORS)


CASES = st.tuples(
    st.sampled_from(sorted(MODELS)),
    st.sampled_from(sorted(CARDS)),
    st.sampled_from(sorted(FORMATS)),
    st.sampled_from(ENGINES),
    st.sampled_from([1, 2, 4, 8]),
    st.integers(1, 32_000),
    st.integers(2, 8_000),
)


@settings(max_examples=60, deadline=None)
@given(CASES, st.floats(1, 2000))
def test_nothing_beats_the_peaks(case: tuple[str, str, str, str, int, int, int], load: float) -> None:
    model, card, form, engine, tp, given_in, given_out = case
    a, hardware, bytes_of = MODELS[model], CARDS[card], FORMATS[form]
    seen = predict(a, hardware, bytes_of, Traffic(given_in, given_out, engine=engine), load, tp)
    counts = parameter_counts(a)
    width = float(bytes_of.get("weight_bytes", 2.0))
    dense = counts.active - counts.embedding - a.moe_layers * a.active_experts * 3 * a.hidden_size * a.moe_ffn_size
    # At least the dense weights, cut evenly, cross the memory bus in every step, at the narrowest width of all.
    floor = min(width, 1.0) * dense / tp / (hardware["memory_bandwidth_gb_s"] * 1e9) * 1e3
    assert seen.tpot_ms[0] >= floor * 0.99
    peak = hardware["fp16_tflops"] * (2.0 if form == "fp8" else 1.0) * 1e12
    arithmetic = 2.0 * max(counts.active - 2 * a.vocabulary * a.hidden_size, 0) / tp / peak * 1e3
    assert seen.tpot_ms[0] >= load * arithmetic * 0.99
    quadratic = prefill_attention_flop(a, float(given_in), 0.0) / (hardware["fp16_tflops"] * 1e12)
    assert seen.ttft_ms[0] >= (given_in * arithmetic + quadratic / tp * 1e3) * 0.99
    assert seen.nvlink_gb_s[0] <= seen.nvlink_limit_gb_s[0] * 1.001


@settings(max_examples=60, deadline=None)
@given(CASES)
def test_more_requests_never_take_less_time(case: tuple[str, str, str, str, int, int, int]) -> None:
    model, card, form, engine, tp, given_in, given_out = case
    loads = np.unique(np.round(np.geomspace(1, 4096, 60)))
    seen = predict(MODELS[model], CARDS[card], FORMATS[form], Traffic(given_in, given_out, engine=engine), loads, tp)
    for values in (seen.tpot_ms, seen.ttft_ms, seen.total_gib):
        assert np.all(np.diff(values) >= -1e-9 * values[1:])


@settings(max_examples=60, deadline=None)
@given(CASES, st.floats(1, 500), st.floats(1.0, 3.0))
def test_longer_prompts_never_take_less_time(
    case: tuple[str, str, str, str, int, int, int], load: float, longer: float
) -> None:
    model, card, form, engine, tp, given_in, given_out = case
    short, long = (
        predict(MODELS[model], CARDS[card], FORMATS[form], Traffic(length, given_out, engine=engine), load, tp)
        for length in (given_in, given_in * longer)
    )
    assert long.tpot_ms[0] >= short.tpot_ms[0] * (1 - 1e-9)
    assert long.ttft_ms[0] >= short.ttft_ms[0] * (1 - 1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_old_engines_are_not_faster(engine: str) -> None:
    new, old = (
        predict(b.LLAMA_70B, b.H100, {}, Traffic(1024, 1024, engine=engine, engine_version=version), 16.0, 8)
        for version in ("", "0.0.1")
    )
    assert old.tpot_ms[0] >= new.tpot_ms[0]
    assert old.ttft_ms[0] >= new.ttft_ms[0]


def test_equal_lengths_wait_longer() -> None:
    mixed, equal = (
        predict(b.LLAMA_70B, b.H100, {}, Traffic(1024, 1024, equal_lengths=same), 16.0, 8) for same in (False, True)
    )
    assert equal.ttft_ms[0] > mixed.ttft_ms[0]
    assert equal.tpot_ms[0] == mixed.tpot_ms[0]
