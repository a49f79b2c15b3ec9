"""Regularised robust least squares on the logarithm of measured over predicted steps.

Constants move on a logarithmic scale, drawn towards their value before calibration by the width that their table
states; effects are drawn towards what is known of them. Residuals beyond ``ROBUST`` spreads count linearly
(Huber), so that rows run under settings nobody wrote down do not steer the rest: mixtures have more of them. Series of
one layout at several sizes count as the square root of their length: they say the same thing again.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from optimizer.calibration.training.effects import EffectSet, effects_of, noise_of
from optimizer.calibration.training.layout import chosen_layout, plain_layout, row_work
from optimizer.calibration.training.rows import TrainingRow
from optimizer.performance.factors import FloatArray
from optimizer.performance.training.constants import (
    LEVELS,
    NAMES,
    TrainingCalibration,
    TrainingFactors,
    prior_factors,
    resource,
)
from optimizer.performance.training.kernel import step_parts
from optimizer.performance.training.layouts import Layouts
from optimizer.performance.training.work import StepWork, joined

#: Of dense models and of mixtures.
ROBUST: Final = (1.0, 0.5)
_DIFFERENCE: Final = 1e-4
_LARGEST_STEP: Final = 0.7
_ENOUGH: Final = 1e-4


@dataclass(frozen=True, slots=True, eq=False)
class StepData:
    """Rows that can be predicted and were measured, with their work and log of the measured step."""

    rows: tuple[TrainingRow, ...]
    layouts: tuple[Layouts, ...]
    work: StepWork
    log_step: FloatArray
    weights: FloatArray
    noise: FloatArray

    def take(self, chosen: NDArray[np.int64]) -> "StepData":
        """Some rows; their weights stay."""
        return StepData(
            tuple(self.rows[index] for index in chosen),
            tuple(self.layouts[index] for index in chosen),
            self.work.take(chosen),
            self.log_step[chosen],
            self.weights[chosen],
            self.noise[chosen],
        )


def step_data(rows: Sequence[TrainingRow], calibration: TrainingCalibration | None = None) -> StepData:
    """Data of the rows that were measured and can be predicted. ValueError where there is none.

    Rows whose layout was not stated take the fastest one by ``calibration``; without one they are left out.
    """
    kept, layouts = [], []
    for row in rows:
        if row.problem or not np.isfinite(row.step_s):
            continue
        layout, _, reason = plain_layout(row)
        if layout is None and not reason and calibration is not None:
            layout, _, reason = chosen_layout(row, calibration)
        if layout is not None:
            kept.append(row)
            layouts.append(layout)
    if not kept:
        raise ValueError("no row has a measured step that can be predicted")
    work = joined([row_work(row, layout) for row, layout in zip(kept, layouts, strict=True)])
    series = [
        (row.stack, row.label, row.accelerator_name, row.precision, row.tensor, row.pipeline, row.expert)
        for row in kept
    ]
    lengths = Counter(series)
    weights = np.array([lengths[one] ** -0.5 for one in series])
    log_step = np.log(np.array([row.step_s for row in kept]))
    return StepData(tuple(kept), tuple(layouts), work, log_step, weights, noise_of(kept))


@dataclass(frozen=True, slots=True)
class Prior:
    """Constants before a fit and how far each may move (standard deviation of its logarithm)."""

    factors: TrainingFactors
    widths: FloatArray


def packaged_prior() -> Prior:
    """The table's constants and widths."""
    table = resource("training_factors.json")["factors"]
    return Prior(prior_factors(), np.array([float(table[name]["width"]) for name in NAMES]))


def _factors(logs: FloatArray) -> TrainingFactors:
    return TrainingFactors(**dict(zip(NAMES, np.exp(logs).tolist(), strict=True)))


def log_predicted(work: StepWork, factors: TrainingFactors) -> FloatArray:
    """Logarithm of the step by the physics alone."""
    return np.log(step_parts(work, factors).step_s)


def fit(
    data: StepData,
    prior: Prior,
    *,
    before: TrainingCalibration | None = None,
    known: TrainingCalibration | None = None,
    start: TrainingFactors | None = None,
    effect_scale: float = 1.0,
    run_scale: float = 1.0,
    noise_scale: float = 1.0,
    robust: tuple[float, float] = ROBUST,
    steps: int = 25,
) -> TrainingCalibration:
    """Constants and effects that fit the rows best, drawn towards ``prior`` and towards what ``before`` knows.

    ``effect_scale`` multiplies the spread of effects that ``known`` has already, ``run_scale`` that of runs (one
    model on one accelerator under one stack) it has not, ``noise_scale`` that of rows; ``robust`` is the residual, in
    spreads of rows, beyond which it counts linearly, of dense models and mixtures.
    """
    effects = effects_of(data.rows, before)
    spreads = effects.spreads.copy()
    if known is not None:
        measured = np.array([key in known.effects[level] for level, key in effects.keys])
        runs = np.array([level == "run" for level, _ in effects.keys])
        spreads = np.where(measured, effect_scale * spreads, np.where(runs, run_scale * spreads, spreads))
    centre = np.concatenate([np.log([getattr(prior.factors, name) for name in NAMES]), effects.centres])
    place = centre.copy()
    if start is not None:
        place[: len(NAMES)] = np.log([getattr(start, name) for name in NAMES])
    noise = noise_scale * data.noise
    limit = np.where([row.is_dense for row in data.rows], *robust)
    pull = np.concatenate([prior.widths, spreads]) ** -2.0
    count = len(NAMES)

    def residuals_at(where: FloatArray) -> FloatArray:
        found = log_predicted(data.work, _factors(where[:count])) + effects.design @ where[count:]
        return np.asarray((found - data.log_step) / noise, dtype=np.float64)

    def cost_of(residuals: FloatArray, where: FloatArray) -> float:
        size = np.abs(residuals)
        losses = 0.5 * size * size
        losses = np.where(size < limit, losses, losses - 0.5 * (size - limit) ** 2)
        return float((data.weights * losses).sum() + 0.5 * (pull * (where - centre) ** 2).sum())

    residuals = residuals_at(place)
    cost, damping = cost_of(residuals, place), 1e-3
    slopes = np.empty((len(data.rows), place.size))
    slopes[:, count:] = effects.design / noise[:, None]
    for _ in range(steps):
        for index in range(count):
            beside = place.copy()
            beside[index] += _DIFFERENCE
            slopes[:, index] = (residuals_at(beside) - residuals) / _DIFFERENCE
        weight = data.weights * np.minimum(1.0, limit / np.maximum(np.abs(residuals), 1e-12))
        weighted = slopes * weight[:, None]
        normal = weighted.T @ slopes + np.diag(pull)
        gradient = weighted.T @ residuals + pull * (place - centre)
        for _ in range(8):
            step = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -gradient)
            beside = place + np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
            new_residuals = residuals_at(beside)
            new_cost = cost_of(new_residuals, beside)
            if new_cost < cost:
                break
            damping *= 4.0
        else:
            break
        gain = cost - new_cost
        place, residuals, cost = beside, new_residuals, new_cost
        damping = max(damping / 5.0, 1e-7)
        if gain < _ENOUGH * cost:
            break
    return _calibration(place, effects, before)


def _calibration(place: FloatArray, effects: EffectSet, before: TrainingCalibration | None) -> TrainingCalibration:
    found: dict[str, dict[str, float]] = {
        level: dict(before.effects[level]) if before is not None else {} for level in LEVELS
    }
    for (level, key), value in zip(effects.keys, place[len(NAMES) :], strict=True):
        found[level][key] = float(value)
    unknown = before.unknown_stack if before is not None else MappingProxyType({"dense": 0.0, "moe": 0.0})
    frozen = MappingProxyType({level: MappingProxyType(values) for level, values in found.items()})
    return TrainingCalibration(_factors(place[: len(NAMES)]), frozen, unknown)
