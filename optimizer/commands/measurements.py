"""What the verbs of predictions share: tables read from files, calibrations loaded, errors in words."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optimizer.errors import InputError, Problem

if TYPE_CHECKING:
    from optimizer.performance.factors import Factors
    from optimizer.performance.training.constants import TrainingCalibration


def read_text(path: Path) -> str:
    """The text of a table; InputError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise bad(path, str(error), "must be a CSV table in UTF-8") from None


def bad(path: Path | str, found: str, allowed: str) -> InputError:
    """An input error about a table, a calibration or an option."""
    return InputError((Problem("E-TABLE-001", str(path), found=found, allowed=allowed),))


def factors_of(path: Path | None) -> "Factors":
    """The packaged constants, or those of a calibration file laid over them."""
    from optimizer.performance.factors import factors_with

    if path is None:
        return factors_with(None)
    try:
        calibration: dict[str, Any] = json.loads(read_text(path))
        return factors_with(calibration)
    except (KeyError, TypeError, ValueError) as error:
        raise bad(path, str(error), "must be written by optimize calibrate") from None


def is_training(text: str, kind: str | None) -> bool:
    """Whether a table holds training steps: as said, else by its columns."""
    if kind is not None:
        return kind == "training"
    from optimizer.calibration.training.rows import is_training_table

    return is_training_table([name.strip().strip('"') for name in text.partition("\n")[0].split(",")])


def training_calibration_of(path: Path | None) -> "TrainingCalibration":
    """The packaged training calibration, or that of a file laid over it."""
    from optimizer.performance.training.constants import calibration_with

    if path is None:
        return calibration_with(None)
    try:
        return calibration_with(json.loads(read_text(path)))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise bad(path, str(error), "must be written by optimize calibrate from training steps") from None


def percent(share: float | None) -> str:
    """A fraction as a percentage in one decimal; a dash where there is none."""
    return "-" if share is None or share != share else f"{100 * share:.1f}"
