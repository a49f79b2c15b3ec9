"""Training predictions beside measurements: ``optimize validate --kind training`` as a function."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from optimizer.calibration.points import read_table
from optimizer.calibration.training.layout import chosen_layout, plain_layout, row_work
from optimizer.calibration.training.rows import TrainingRow, read_row
from optimizer.catalog import Catalog, load_catalog
from optimizer.performance.training.bands import HIGH, LOW, TrainingBands, load_bands
from optimizer.performance.training.constants import TrainingCalibration, calibration_with
from optimizer.performance.training.effects import effect_of, evidence_of
from optimizer.performance.training.flops import flop_per_token
from optimizer.performance.training.hardware import precision_of
from optimizer.performance.training.kernel import step_parts
from optimizer.performance.training.layouts import Layouts
from optimizer.performance.training.memory import can_fit, memory_use

#: Columns that are added, in their order.
ADDED: Final = (
    "predicted_step_s",
    "predicted_tflops_per_gpu",
    "step_low_s",
    "step_high_s",
    "predicted_memory_gib",
    "evidence",
    "status",
    "reason",
)
_TERA: Final = 1e12


@dataclass(frozen=True, slots=True)
class Answer:
    """The prediction of one row; NaN where there is none. ``reason`` also tells what was assumed."""

    step_s: float
    low_s: float
    high_s: float
    tflops: float
    memory_gib: float
    evidence: str
    status: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class TrainingValidation:
    """Rows with predictions added, and errors of what was measured."""

    columns: list[str]
    rows: list[dict[str, str]]
    read: list[TrainingRow]
    answers: list[Answer]

    def error_table(self) -> list[dict[str, Any]]:
        """Mean, median and worst absolute error of the step (fractions), and the mean of log(predicted / measured).

        Over all, dense models, mixtures, and by accelerator and stack.
        """
        kinds = np.array([row.kind for row in self.read])
        groups = {
            "accelerator": np.array([row.accelerator_name for row in self.read]),
            "stack": np.array([row.stack or "not stated" for row in self.read]),
        }
        table = [self._errors("all", "all", np.ones(len(self.read), dtype=np.bool_))]
        table += [self._errors("kind", name, kinds == name) for name in ("dense", "moe") if (kinds == name).any()]
        for kind, values in groups.items():
            table += [self._errors(kind, str(value), values == value) for value in sorted(set(values))]
        return table

    def _errors(self, kind: str, value: str, chosen: np.ndarray[Any, np.dtype[np.bool_]]) -> dict[str, Any]:
        measured = np.array([row.step_s for row in self.read])[chosen]
        predicted = np.array([answer.step_s for answer in self.answers])[chosen]
        ok = np.array([answer.status == "ok" for answer in self.answers])[chosen]
        seen = ok & np.isfinite(measured)
        ratio = predicted[seen] / measured[seen]
        error = np.abs(ratio - 1.0)
        inside = [
            answer.low_s <= row.step_s <= answer.high_s
            for answer, row, counts in zip(self.answers, self.read, chosen, strict=True)
            if counts and answer.status == "ok" and np.isfinite(row.step_s)
        ]
        known = bool(error.size)
        return {
            "kind": kind,
            "value": value,
            "rows": int(chosen.sum()),
            "ok": int(ok.sum()),
            "measured": int(error.size),
            "step_mean_error": float(error.mean()) if known else None,
            "step_median_error": float(np.median(error)) if known else None,
            "step_worst_error": float(error.max()) if known else None,
            "step_bias": float(np.log(ratio).mean()) if known else None,
            "in_band_fraction": float(np.mean(inside)) if known else None,
        }


def validate_training(
    text: str,
    *,
    catalog: Catalog | None = None,
    calibration: Mapping[str, Any] | TrainingCalibration | None = None,
    bands: TrainingBands | None = None,
) -> TrainingValidation:
    """Predict every row of a table of training steps (CSV text) and compare with what was measured.

    ValueError where the table has no row.
    """
    catalog, bands = catalog or load_catalog(), bands or load_bands()
    known = calibration if isinstance(calibration, TrainingCalibration) else calibration_with(calibration)
    columns, cells = read_table(text)
    if not cells:
        raise ValueError("the table is empty")
    read = [read_row(row, catalog, index) for index, row in enumerate(cells)]
    answers = [_answer(row, known, bands) for row in read]
    rows = [{**row, **_added(answer)} for row, answer in zip(cells, answers, strict=True)]
    return TrainingValidation([*(one for one in columns if one not in ADDED), *ADDED], rows, read, answers)


def _nothing(status: str, reason: str) -> Answer:
    nan = float("nan")
    return Answer(nan, nan, nan, nan, nan, "", status, reason)


def _answer(row: TrainingRow, known: TrainingCalibration, bands: TrainingBands) -> Answer:
    if row.problem:
        return _nothing("unsupported", row.problem)
    layout, assumed, reason = plain_layout(row)
    if layout is None and not reason:
        layout, assumed, reason = chosen_layout(row, known)
    if layout is None:
        return _nothing("does_not_fit" if "fits" in reason else "unsupported", reason)
    return _predicted(row, layout, (*row.assumed, *assumed), known, bands)


def _predicted(
    row: TrainingRow, layout: Layouts, assumed: tuple[str, ...], known: TrainingCalibration, bands: TrainingBands
) -> Answer:
    model, accelerator = row.model, row.accelerator
    assert model is not None
    assert accelerator is not None
    work = row_work(row, layout)
    micro, early = work.micro_batches, row.traits.family == "early"
    use = memory_use(
        model,
        layout,
        sequence_length=row.sequence,
        micro_batches=micro,
        keeps_scores=early and row.recompute != 2,
        fused_loss=row.traits.fused_loss,
    ).total_gib[0]
    weight = 2.0 if precision_of(row.precision) == "bf16" else 1.0
    runs = can_fit(
        model,
        layout,
        accelerator.memory_gib,
        sequence_length=row.sequence,
        micro_batches=micro,
        weight_bytes=weight,
    )[0]
    effect = effect_of(known, row.traits, model, accelerator.id, row.precision)
    step = float(step_parts(work, known.factors).step_s[0] * np.exp(effect))
    flop = flop_per_token(model, row.sequence, row.convention) * row.sequences * row.sequence
    evidence = evidence_of(known, row.traits, model, accelerator.id, row.precision)
    told = list(assumed)
    if not runs:
        told.insert(0, f"needs more than {accelerator.memory_gib:g} GiB by any means")
    elif use > accelerator.memory_gib:
        told.append(
            f"{use:.0f} GiB by the formula, above {accelerator.memory_gib:g}: offloading or recomputation assumed"
        )
    return Answer(
        step,
        step * bands.multiplier(row.kind, evidence, LOW),
        step * bands.multiplier(row.kind, evidence, HIGH),
        flop / step / row.accelerators / _TERA,
        float(use),
        evidence,
        "ok" if runs else "does_not_fit",
        "; ".join(told),
    )


def _added(answer: Answer) -> dict[str, str]:
    row = dict.fromkeys(ADDED, "")
    row["status"], row["reason"], row["evidence"] = answer.status, answer.reason, answer.evidence
    for name, value in (
        ("predicted_step_s", answer.step_s),
        ("predicted_tflops_per_gpu", answer.tflops),
        ("step_low_s", answer.low_s),
        ("step_high_s", answer.high_s),
        ("predicted_memory_gib", answer.memory_gib),
    ):
        if np.isfinite(value):
            row[name] = f"{value:.6g}"
    return row
