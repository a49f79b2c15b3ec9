"""Errors of the packaged training calibration, read from its held-out table."""

import csv
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources

import numpy as np

Row = Mapping[str, str]
#: Columns of the held-out table by what they left out.
COLUMNS = {
    "nothing (in sample)": "in_sample_s",
    "one stack and model (ten folds)": "without_stack_and_model_s",
    "one stack": "without_stack_s",
    "one generation": "without_generation_s",
}


@cache
def held_out() -> tuple[Row, ...]:
    """One row a measured step."""
    path = resources.files("optimizer.calibration").joinpath("data/training_held_out.csv")
    return tuple(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def errors(column: str, chosen: Callable[[Row], bool]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Absolute relative errors of the rows chosen."""
    rows = [row for row in held_out() if chosen(row)]
    if column == "one_row_error":
        return np.array([float(row[column]) for row in rows if row[column]])
    return np.array([abs(float(row[column]) / float(row["step_s"]) - 1.0) for row in rows])


def is_fit(row: Row) -> bool:
    """Rows that the source table marks for fitting."""
    return row["split"] == "fit"


def is_dense(row: Row) -> bool:
    """Rows of dense models."""
    return row["kind"] == "dense"


def is_moe(row: Row) -> bool:
    """Rows of mixtures."""
    return row["kind"] == "moe"


def every(_: Row) -> bool:
    """All rows."""
    return True
