"""A training calibration as it is written."""

import hashlib
import json
from types import MappingProxyType
from typing import Any, Final

from optimizer.performance.training.constants import LEVELS, NAMES, TrainingCalibration, TrainingFactors

#: Digits of a written constant, and decimals of an effect.
DIGITS: Final = 4
DECIMALS: Final = 4


def rounded(calibration: TrainingCalibration) -> TrainingCalibration:
    """To the digits that are packaged: what is checked is what is shipped."""
    values = {name: float(f"{getattr(calibration.factors, name):.{DIGITS}g}") for name in NAMES}
    effects = {
        level: MappingProxyType({key: round(value, DECIMALS) for key, value in sorted(found.items())})
        for level, found in calibration.effects.items()
    }
    return TrainingCalibration(TrainingFactors(**values), MappingProxyType(effects), calibration.unknown_stack)


def calibration_document(calibration: TrainingCalibration, *, source: str, as_of: str, rows: str) -> dict[str, Any]:
    """A calibration as it is written; its hash covers constants, effects and rows."""
    factors = {name: getattr(calibration.factors, name) for name in NAMES}
    effects = {level: dict(sorted(calibration.effects[level].items())) for level in LEVELS}
    body = json.dumps([factors, effects, dict(calibration.unknown_stack)], sort_keys=True)
    return {
        "version": 1,
        "kind": "training",
        "source": source,
        "as_of": as_of,
        "rows_sha256": hashlib.sha256(rows.encode()).hexdigest(),
        "sha256": hashlib.sha256((body + rows).encode()).hexdigest(),
        "unknown_stack": dict(calibration.unknown_stack),
        "factors": factors,
        "effects": effects,
    }
