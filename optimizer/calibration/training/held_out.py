"""Training steps that a fit has not seen: by stack and model, by stack, by line of software, by generation."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from optimizer.calibration.training.fit import Prior, StepData, fit, log_predicted
from optimizer.calibration.training.rows import TrainingRow
from optimizer.performance.factors import FloatArray
from optimizer.performance.training.bands import EVIDENCE, KINDS, LEVELS
from optimizer.performance.training.constants import TrainingCalibration
from optimizer.performance.training.effects import effect_of

#: Folds in which rows of one stack and model are left out together.
_FOLDS: Final = 10
_STEPS: Final = 5
#: Step of a production run over that of a recipe: Nemotron-4 340B, and the middle of 1.15-1.17 for Llama 3 405B.
_PRODUCTION_STEPS: Final = (1.10, 1.16)
_LARGEST_LOSS: Final = 0.2


def log_step_of(data: StepData, calibration: TrainingCalibration) -> FloatArray:
    """Logarithm of the predicted step of every row, effects included."""
    effects = [
        effect_of(calibration, row.traits, row.model, row.accelerator.id, row.precision)
        for row in data.rows
        if row.model is not None and row.accelerator is not None
    ]
    found: FloatArray = log_predicted(data.work, calibration.factors) + np.array(effects)
    return found


def hold_out(data: StepData, prior: Prior, whole: TrainingCalibration, groups: Sequence[str]) -> FloatArray:
    """Log of the predicted step of every row by a fit without any row of its group."""
    labels = np.array(groups)
    found = np.full(len(labels), np.nan)
    for group in sorted(set(groups)):
        inside = labels == group
        fitted = fit(data.take(np.flatnonzero(~inside)), prior, start=whole.factors, steps=_STEPS)
        found[inside] = log_step_of(data.take(np.flatnonzero(inside)), fitted)
    return found


def folds_by_stack_and_model(rows: Sequence[TrainingRow], seed: int = 0) -> list[str]:
    """A fold for each row: rows of one stack and one model share it, stack and model pairs are dealt at random."""
    pairs = [(row.stack, row.model.signature if row.model is not None else row.label) for row in rows]
    names = sorted(set(pairs))
    order = np.random.default_rng(seed).permutation(len(names))
    fold = {names[index]: str(place % _FOLDS) for place, index in enumerate(order)}
    return [fold[pair] for pair in pairs]


def groups_of(rows: Sequence[TrainingRow], by: str) -> list[str]:
    """Group of each row: ``stack``, ``line``, ``generation`` or ``stack_and_model`` (folds)."""
    if by == "stack_and_model":
        return folds_by_stack_and_model(rows)
    if by == "generation":
        return [row.accelerator.generation if row.accelerator is not None else "" for row in rows]
    return [row.stack if by == "stack" else row.traits.line or row.stack for row in rows]


def unknown_stack_loss(data: StepData, by_line: FloatArray) -> dict[str, float]:
    """By how much software that the fit has not seen is slower than predicted: mean over lines, each cut to a fifth.

    Beside the lines stand the two published ratios of a production run's step to the recipe's. Mixtures: 0, for their
    lines are too few.
    """
    lines = np.array(groups_of(data.rows, "line"))
    dense = np.array([row.is_dense for row in data.rows])
    miss = data.log_step - by_line
    medians = [float(np.median(miss[dense & (lines == line)])) for line in sorted(set(lines[dense]))]
    losses = np.clip([*medians, *np.log(_PRODUCTION_STEPS)], -_LARGEST_LOSS, _LARGEST_LOSS)
    return {"dense": round(float(losses.mean()), 3), "moe": 0.0}


def bands_document(data: StepData, held: dict[str, FloatArray], source: str, as_of: str) -> dict[str, Any]:
    """Bands: quantiles of log(measured / predicted), series counting as in the fit."""
    dense = np.array([row.is_dense for row in data.rows])
    errors: dict[str, dict[str, list[float]]] = {}
    for kind in KINDS:
        rows = dense if kind == "dense" else ~dense
        errors[kind] = {}
        for evidence in EVIDENCE:
            miss = (data.log_step - held[evidence])[rows]
            errors[kind][evidence] = [round(one, 4) for one in _quantiles(miss, data.weights[rows])]
    return {"version": 1, "source": source, "as_of": as_of, "levels": list(LEVELS), "log_error": errors}


def _quantiles(values: FloatArray, weights: FloatArray) -> list[float]:
    order = np.argsort(values)
    ordered, share = values[order], np.cumsum(weights[order]) - 0.5 * weights[order]
    return [float(one) for one in np.interp(LEVELS, share / weights.sum(), ordered)]
