"""Predictions at a confidence: slower, never faster; bands around the prediction as it is."""

import numpy as np
import pytest

from optimizer.performance.bands import METRICS
from optimizer.performance.confidence import (
    ConfidentPrepared,
    at_confidence,
    band_multipliers,
    shown_bands,
)
from optimizer.performance.deployments import Traffic
from optimizer.performance.factors import GENERATIONS, load_factors
from optimizer.performance.serving import Prepared, prepare
from tests.performance.builders import H100, LLAMA_8B, deploy


def prepared() -> Prepared:
    traffic = Traffic(input_tokens=1024.0, output_tokens=256.0)
    return prepare(LLAMA_8B, deploy(H100, tensor_parallel=1), traffic, load_factors())


HOPPER = np.array([GENERATIONS.index("hopper")])
GAUDI = np.array([GENERATIONS.index("gaudi3")])


def test_half_is_the_prediction_itself() -> None:
    plain = prepared()
    assert at_confidence(plain, model=None, engine="vllm", generation_index=HOPPER, confidence=0.5) is plain


def test_more_confidence_is_slower_and_carries_less() -> None:
    plain = prepared()
    before = plain.at(16.0)
    for level in (0.6, 0.8, 0.9, 0.95):
        sure = at_confidence(plain, model=None, engine="vllm", generation_index=HOPPER, confidence=level)
        after = sure.at(16.0)
        assert after.tpot_ms[0] >= before.tpot_ms[0]
        assert after.ttft_ms[0] >= before.ttft_ms[0]
        assert after.latency_ms[0] == pytest.approx(after.ttft_ms[0] + 255.0 * after.tpot_ms[0])
        assert after.requests_per_s[0] <= before.requests_per_s[0]
        assert after.total_gib[0] == before.total_gib[0]
        before = after


def test_parts_of_the_step_still_add_up() -> None:
    sure = at_confidence(prepared(), model=None, engine="generic", generation_index=HOPPER, confidence=0.9)
    seen = sure.at(32.0)
    parts = seen.weights_ms + seen.kv_ms + seen.compute_ms + seen.communication_ms + seen.overhead_ms + seen.prefill_ms
    assert parts[0] == pytest.approx(seen.tpot_ms[0])


def test_less_evidence_is_never_surer() -> None:
    plain = prepared()
    known = at_confidence(plain, model="Llama-3.1-8B", engine="generic", generation_index=HOPPER, confidence=0.9)
    unknown = at_confidence(plain, model="Llama-3.1-8B", engine="generic", generation_index=GAUDI, confidence=0.9)
    assert isinstance(known, ConfidentPrepared)
    assert isinstance(unknown, ConfidentPrepared)
    assert unknown.tpot[0] >= known.tpot[0]
    assert unknown.rate[0] <= known.rate[0]


@pytest.mark.parametrize("confidence", [0.5, 0.7, 0.9])
def test_bands_stand_around_the_prediction_whatever_the_confidence(confidence: float) -> None:
    band = band_multipliers(None, "vllm", int(HOPPER[0]))
    base = dict.fromkeys(METRICS, 100.0)
    shown = shown_bands(band, {name: value * band.at(name, confidence) for name, value in base.items()}, confidence)
    for name in METRICS:
        low, high = band.multipliers[name]
        assert list(shown[name]) == pytest.approx([100.0 * low, 100.0 * high])
        assert low < 1.0 < high
