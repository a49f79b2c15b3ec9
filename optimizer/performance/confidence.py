"""Predictions at a confidence: what holds with a given probability over the model's own error.

The error is that of configurations which the fit had not seen (``bands``), by engine and by what stands behind a
prediction. At 0.5 a prediction is taken as it is.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimizer.performance.bands import EVIDENCE, METRICS, load_bands
from optimizer.performance.factors import FloatArray
from optimizer.performance.roles import UnitPrepared
from optimizer.performance.serving import Prepared, ServingPrediction

#: Confidence at which predictions are taken as they are.
AS_PREDICTED = 0.5
#: Outer levels of the band that a plan shows.
BAND_LOW, BAND_HIGH = 0.1, 0.9
_STEP_PARTS = ("weights_ms", "kv_ms", "compute_ms", "communication_ms", "overhead_ms", "prefill_ms")


@dataclass(frozen=True, slots=True, eq=False)
class ConfidentPrepared:
    """Prepared deployments whose times and rates are multiplied, row by row: used in place of ``Prepared``."""

    prepared: Prepared | UnitPrepared
    tpot: FloatArray
    ttft: FloatArray
    rate: FloatArray

    @property
    def size(self) -> int:
        """Rows."""
        return self.prepared.size

    @property
    def largest_concurrency(self) -> FloatArray:
        """Requests that each row holds at once."""
        return self.prepared.largest_concurrency

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> "ConfidentPrepared":
        """The given rows, by index (may repeat) or mask."""
        return ConfidentPrepared(self.prepared.take(rows), self.tpot[rows], self.ttft[rows], self.rate[rows])

    def at(self, concurrency: ArrayLike) -> ServingPrediction:
        """Predict at requests in flight per replica, at the confidence.

        TPOT (with its parts), TTFT and the latency made of them are long; requests and tokens per second are few.
        """
        seen = self.prepared.at(concurrency)
        wide = seen.tpot_ms.ndim == 2
        tpot, ttft, rate = (f[:, None] if wide else f for f in (self.tpot, self.ttft, self.rate))
        rest_ms = seen.latency_ms - seen.ttft_ms
        parts = {name: getattr(seen, name) * tpot for name in _STEP_PARTS}
        return replace(
            seen,
            tpot_ms=seen.tpot_ms * tpot,
            ttft_ms=seen.ttft_ms * ttft,
            latency_ms=seen.ttft_ms * ttft + rest_ms * tpot,
            requests_per_s=seen.requests_per_s * rate,
            output_tokens_per_s=seen.output_tokens_per_s * rate,
            **parts,
        )


def at_confidence(
    prepared: Prepared | UnitPrepared,
    *,
    model: str | None,
    engine: str,
    generation_index: NDArray[np.int64],
    confidence: float,
    unmeasured: NDArray[np.bool_] | None = None,
) -> Prepared | UnitPrepared | ConfidentPrepared:
    """The deployments at a confidence of 0.5 (as predicted) up to below 1.

    ``model`` is the catalogue's name (None: not in the catalogue); ``generation_index`` has one code a row. No measured
    point stands behind units of two roles, whatever the model, and behind rows that are ``unmeasured``.
    """
    if confidence <= AS_PREDICTED:
        return prepared
    bands = load_bands()
    evidence = bands.evidence_of(model, generation_index)
    none = EVIDENCE.index("none")
    if isinstance(prepared, UnitPrepared):
        evidence = np.full_like(evidence, none)
    elif unmeasured is not None:
        evidence = np.where(unmeasured, none, evidence)
    # A band is centred where held-out errors are; what a prediction is at 0.5 stays the prediction itself.
    return ConfidentPrepared(
        prepared,
        np.maximum(1.0, bands.multiplier("tpot_ms", engine, evidence, confidence)),
        np.maximum(1.0, bands.multiplier("ttft_ms", engine, evidence, confidence)),
        np.minimum(1.0, bands.multiplier("output_tokens_per_s", engine, evidence, 1.0 - confidence)),
    )


@dataclass(frozen=True, slots=True)
class BandMultipliers:
    """What stands behind predictions of one accelerator generation, and (low, high) multipliers by metric."""

    evidence: str
    engine: str
    multipliers: dict[str, tuple[float, float]]

    def at(self, metric: str, confidence: float) -> float:
        """What a prediction at a confidence was multiplied with."""
        if confidence <= AS_PREDICTED:
            return 1.0
        bands, code = load_bands(), EVIDENCE.index(self.evidence)
        if metric == "output_tokens_per_s":
            return min(1.0, float(bands.multiplier(metric, self.engine, code, 1.0 - confidence)))
        return max(1.0, float(bands.multiplier(metric, self.engine, code, confidence)))


def band_multipliers(
    model: str | None, engine: str, generation_index: int, *, two_roles: bool = False, is_capped: bool = False
) -> BandMultipliers:
    """The 80 % band (10 % and 90 % quantiles of held-out error) around predictions as they are.

    No measured point stands behind units of two roles and behind accelerators under a power cap.
    """
    bands = load_bands()
    code = int(bands.evidence_of(model, np.array([generation_index]))[0])
    if two_roles or is_capped:
        code = EVIDENCE.index("none")
    multipliers = {
        metric: (
            float(bands.multiplier(metric, engine, code, BAND_LOW)),
            float(bands.multiplier(metric, engine, code, BAND_HIGH)),
        )
        for metric in METRICS
    }
    return BandMultipliers(EVIDENCE[code], engine, multipliers)


def shown_bands(band: BandMultipliers, values: dict[str, float], confidence: float) -> dict[str, tuple[float, float]]:
    """(low, high) of each metric from values that were predicted at a confidence."""
    result = {}
    for metric, value in values.items():
        low, high = band.multipliers[metric]
        as_predicted = value / band.at(metric, confidence)
        result[metric] = (as_predicted * low, as_predicted * high)
    return result
