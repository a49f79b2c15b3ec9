"""``optimize calibrate`` for training steps: fit what a user's own rows can say, keep the packaged constants else."""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from optimizer.calibration.points import read_table
from optimizer.calibration.training.fit import Prior, StepData, fit, packaged_prior, step_data
from optimizer.calibration.training.held_out import log_step_of
from optimizer.calibration.training.packaged import calibration_document, rounded
from optimizer.calibration.training.rows import read_row
from optimizer.catalog import Catalog, load_catalog
from optimizer.performance.training.constants import TrainingCalibration, load_calibration

#: How far a user's rows move a constant, and an effect that is known, beside how far the packaged rows could.
_TRUST: Final = 0.25
_EFFECT_TRUST: Final = 0.6
#: A user's own software is known to him alone: its effect may be as large as what lines of software differ by.
_FOLDS: Final = 5


@dataclass(frozen=True, slots=True)
class TrainingErrors:
    """Absolute relative errors of the step over some rows, as fractions."""

    points: int
    median: float
    mean: float


@dataclass(frozen=True, slots=True)
class TrainingCalibrated:
    """A calibration to write (``document``), and errors on the user's rows before and after it.

    ``after`` is cross-validated, rows left out one at a time or in five parts, where there are at least two rows.
    """

    document: dict[str, Any]
    calibration: TrainingCalibration
    points: int
    left_out: int
    before: TrainingErrors
    after: TrainingErrors
    cross_validated: bool


def _errors(data: StepData, log_step: np.ndarray[Any, np.dtype[np.float64]]) -> TrainingErrors:
    error = np.abs(np.exp(log_step - data.log_step) - 1.0)
    return TrainingErrors(int(error.size), float(np.median(error)), float(error.mean()))


def _fitted(data: StepData, packaged: TrainingCalibration) -> TrainingCalibration:
    prior = Prior(packaged.factors, packaged_prior().widths * _TRUST)
    before = packaged
    # A stack that nobody knows starts at the mean loss of such stacks; its own rows then move it.
    unknown = {
        f"{row.kind}|{row.traits.name}": packaged.unknown_stack[row.kind]
        for row in data.rows
        if row.traits.name
        and f"{row.kind}|{row.traits.name}" not in packaged.effects["stack"]
        and f"{row.kind}|{row.traits.line}" not in packaged.effects["line"]
    }
    if unknown:
        before = replace(before, effects={**before.effects, "stack": {**unknown, **before.effects["stack"]}})
    found = fit(data, prior, before=before, known=packaged, effect_scale=_EFFECT_TRUST)
    return replace(found, unknown_stack=packaged.unknown_stack)


def calibrate_training(text: str, *, catalog: Catalog | None = None, name: str = "own rows") -> TrainingCalibrated:
    """Calibrate on a table of training steps (CSV text). ValueError where no row can be used."""
    catalog, packaged = catalog or load_catalog(), load_calibration()
    rows = [read_row(row, catalog, index) for index, row in enumerate(read_table(text)[1])]
    data = step_data(rows, packaged)
    found = rounded(_fitted(data, packaged))
    before = _errors(data, log_step_of(data, packaged))
    count = len(data.rows)
    if count > 1:
        fold = np.random.default_rng(0).permutation(count) % min(count, _FOLDS)
        seen = np.empty(count)
        for index in range(min(count, _FOLDS)):
            inside = np.flatnonzero(fold == index)
            fitted = _fitted(data.take(np.flatnonzero(fold != index)), packaged)
            seen[inside] = log_step_of(data.take(inside), fitted)
        after = _errors(data, seen)
    else:
        after = _errors(data, log_step_of(data, found))
    source = f"optimize calibrate on {name}: {count} training steps, drawn towards the packaged calibration"
    document = calibration_document(found, source=source, as_of="", rows=text)
    return TrainingCalibrated(document, found, count, len(rows) - count, before, after, count > 1)
