"""Regularised robust least squares on the logarithm of measured over predicted times.

Gauss-Newton steps with damping; residuals beyond ``ROBUST`` count linearly (Huber), so that rows measured under
settings nobody wrote down do not steer the rest; every constant is drawn towards its prior.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from optimizer.calibration.parameters import Parameter, from_scale, to_scale, value_of, with_values
from optimizer.calibration.points import Point, measured
from optimizer.performance.factors import Factors, FloatArray
from optimizer.performance.prepare import times_of
from optimizer.performance.serving import step_times
from optimizer.performance.work import Work

#: Residual, in logarithms, from which on a point counts linearly.
ROBUST: Final = 0.15
#: Weight of a TTFT residual; it scatters three times as much as TPOT.
TTFT_WEIGHT: Final = 0.35
#: Variance of a well measured residual against which a prior's width is weighed.
_NOISE: Final = 0.3 * ROBUST * ROBUST
_DIFFERENCE: Final = 1e-3
_LARGEST_STEP: Final = 0.7
_STEPS: Final = 25
_ENOUGH: Final = 1e-4


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Points with their work, ready to be predicted under any constants."""

    points: list[Point]
    work: Work
    load: FloatArray
    tpot_ms: FloatArray
    ttft_ms: FloatArray
    output_tokens_per_s: FloatArray

    @classmethod
    def of(cls, points: list[Point], work: Work) -> "Data":
        """Data of points and their work, row for row."""
        return cls(points, work, np.array([p.concurrency for p in points]), *measured(points))

    @property
    def nominal_output(self) -> FloatArray:
        """Output tokens as the benchmark names them."""
        return np.array([p.nominal_output for p in self.points])


def predict(data: Data, factors: Factors) -> tuple[FloatArray, FloatArray]:
    """TPOT and TTFT in ms of every point."""
    times = times_of(data.work, factors)
    seen, _ = step_times(times.columns, times.scalars, data.load)
    return seen["tpot_ms"], seen["ttft_ms"]


def output_rate(data: Data, tpot_ms: FloatArray, ttft_ms: FloatArray) -> FloatArray:
    """Output tokens/s of the whole deployment: concurrency x O / (TTFT + (O - 1) TPOT)."""
    output = data.nominal_output
    rate: FloatArray = data.load * output / (ttft_ms + (output - 1.0) * tpot_ms) * 1e3
    return rate


def _residuals(data: Data, factors: Factors, rows: NDArray[np.int64]) -> FloatArray:
    tpot, ttft = predict(data, factors)
    with np.errstate(invalid="ignore"):
        parts = (np.log(tpot / data.tpot_ms)[rows], TTFT_WEIGHT * np.log(ttft / data.ttft_ms)[rows])
    found: FloatArray = np.nan_to_num(np.concatenate(parts))
    return found


def _cost(residuals: FloatArray) -> float:
    size = np.abs(residuals)
    return float(np.where(size <= ROBUST, 0.5 * size * size, ROBUST * (size - 0.5 * ROBUST)).sum())


def fit(
    data: Data,
    prior: Factors,
    parameters: tuple[Parameter, ...],
    rows: NDArray[np.int64] | None = None,
    *,
    start: Factors | None = None,
    steps: int = _STEPS,
) -> Factors:
    """Factors that fit TPOT and TTFT of ``rows`` (all by default) best, drawn towards ``prior``."""
    chosen = np.arange(len(data.points)) if rows is None else rows
    return minimise(lambda factors: _residuals(data, factors, chosen), prior, parameters, start=start, steps=steps)


def minimise(
    residuals_of: Callable[[Factors], FloatArray],
    prior: Factors,
    parameters: tuple[Parameter, ...],
    *,
    start: Factors | None = None,
    steps: int = _STEPS,
) -> Factors:
    """Factors of least robust cost of residuals, drawn towards ``prior`` by the parameters' widths."""
    centre = to_scale(np.array([value_of(prior, p) for p in parameters]), parameters)
    place = centre if start is None else to_scale(np.array([value_of(start, p) for p in parameters]), parameters)
    pull = _NOISE / np.array([p.width for p in parameters]) ** 2

    def at(where: FloatArray) -> tuple[FloatArray, float]:
        found = residuals_of(with_values(prior, parameters, from_scale(where, parameters)))
        return found, _cost(found) + 0.5 * float(pull @ (where - centre) ** 2)

    residuals, cost = at(place)
    damping = 1e-2
    for _ in range(steps):
        slopes = np.empty((residuals.size, place.size))
        for index in range(place.size):
            beside = place.copy()
            beside[index] += _DIFFERENCE
            slopes[:, index] = (at(beside)[0] - residuals) / _DIFFERENCE
        weight = np.minimum(1.0, ROBUST / np.maximum(np.abs(residuals), 1e-12))
        weighted = slopes * weight[:, None]
        normal = weighted.T @ slopes + np.diag(pull)
        gradient = weighted.T @ residuals + pull * (place - centre)
        for _ in range(8):
            step = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -gradient)
            beside = place + np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
            new_residuals, new_cost = at(beside)
            if new_cost < cost:
                break
            damping *= 4.0
        else:
            break
        gain = cost - new_cost
        place, residuals, cost = beside, new_residuals, new_cost
        damping = max(damping / 5.0, 1e-6)
        if gain < _ENOUGH * cost:
            break
    return with_values(prior, parameters, from_scale(place, parameters))
