"""``optimize calibrate`` for training steps: fit what a user's own rows can say, keep the packaged constants else."""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from optimizer.calibration.points import read_table
from optimizer.calibration.training.document import calibration_document, rounded
from optimizer.calibration.training.fit import ROBUST, Prior, StepData, fit, packaged_prior, step_data
from optimizer.calibration.training.held_out import groups_of, log_step_of
from optimizer.calibration.training.rows import read_row
from optimizer.catalog import Catalog, load_catalog
from optimizer.performance.training.constants import TrainingCalibration, load_calibration

#: How far a user's rows move a constant, and an effect that is known, beside how far the packaged rows could.
_TRUST: Final = 0.25
_EFFECT_TRUST: Final = 0.6
#: Rows of one stack, model, accelerator and format miss alike (0.9 and more of a miss returns in packaged rows left
#: out by stack, next to nothing of it elsewhere), so a user's rows move their own run twice as freely and count as
#: closer to it than the packaged rows of other tables.
_RUN_SCALE: Final = 4.0
_NOISE_SCALE: Final = 0.65
#: Up to so many rows none is an outlier: nothing says which.
_FEW: Final = 4
_NO_LIMIT: Final = (1e6, 1e6)
_FOLDS: Final = 5
#: Rows of a stack that are tried as the one that is known, drawn at random.
_TRIES: Final = 4


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


def refit(data: StepData, packaged: TrainingCalibration) -> TrainingCalibration:
    """``packaged`` moved by the rows of a user: little where much is known, his own stack freely."""
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
    found = fit(
        data,
        prior,
        before=before,
        known=packaged,
        effect_scale=_EFFECT_TRUST,
        run_scale=_RUN_SCALE,
        noise_scale=_NOISE_SCALE,
        robust=_NO_LIMIT if len(data.rows) <= _FEW else ROBUST,
    )
    return replace(found, unknown_stack=packaged.unknown_stack)


def one_row_errors(data: StepData, prior: Prior, whole: TrainingCalibration) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Mean absolute error of each row when one other row of its stack and kind is known and the stack is not.

    The fit sees no row of the stack; then ``refit`` sees one, of up to four drawn at random. NaN where there is no
    other row.
    """
    random = np.random.default_rng(1)
    stacks = np.array(groups_of(data.rows, "stack"))
    dense = np.array([row.is_dense for row in data.rows])
    found = np.full(len(data.rows), np.nan)
    for stack in sorted(set(stacks.tolist())):
        blind = fit(data.take(np.flatnonzero(stacks != stack)), prior, start=whole.factors, steps=5)
        blind = replace(blind, unknown_stack=whole.unknown_stack)
        for kind in (True, False):
            inside = np.flatnonzero((stacks == stack) & (dense == kind))
            if inside.size < 2:
                continue
            own = data.take(inside)
            errors = np.full((min(inside.size, _TRIES), inside.size), np.nan)
            for index, known in enumerate(random.choice(inside.size, len(errors), replace=False)):
                after = refit(own.take(np.array([known])), blind)
                errors[index] = np.abs(np.exp(log_step_of(own, after) - own.log_step) - 1.0)
                errors[index, known] = np.nan
            seen = np.isfinite(errors)
            counts = np.maximum(seen.sum(axis=0), 1)
            found[inside] = np.where(seen.any(axis=0), np.where(seen, errors, 0.0).sum(axis=0) / counts, np.nan)
    return found


def calibrate_training(text: str, *, catalog: Catalog | None = None, name: str = "own rows") -> TrainingCalibrated:
    """Calibrate on a table of training steps (CSV text). ValueError where no row can be used."""
    catalog, packaged = catalog or load_catalog(), load_calibration()
    rows = [read_row(row, catalog, index) for index, row in enumerate(read_table(text)[1])]
    data = step_data(rows, packaged)
    found = rounded(refit(data, packaged))
    before = _errors(data, log_step_of(data, packaged))
    count = len(data.rows)
    if count > 1:
        fold = np.random.default_rng(0).permutation(count) % min(count, _FOLDS)
        seen = np.empty(count)
        for index in range(min(count, _FOLDS)):
            inside = np.flatnonzero(fold == index)
            fitted = refit(data.take(np.flatnonzero(fold != index)), packaged)
            seen[inside] = log_step_of(data.take(inside), fitted)
        after = _errors(data, seen)
    else:
        after = _errors(data, log_step_of(data, found))
    source = f"optimize calibrate on {name}: {count} training steps, drawn towards the packaged calibration"
    document = calibration_document(found, source=source, as_of="", rows=text)
    return TrainingCalibrated(document, found, count, len(rows) - count, before, after, count > 1)
