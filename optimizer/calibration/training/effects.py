"""Effects of software, models and configurations on the step: what the physics does not know but tables show.

An effect is a logarithm of time, drawn towards 0 as strongly as its level's spread says; what nobody measured has
none. Mixtures scatter more than dense models, so their spreads are wider.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from optimizer.calibration.training.rows import TrainingRow
from optimizer.performance.factors import FloatArray
from optimizer.performance.training.constants import LEVELS, TrainingCalibration
from optimizer.performance.training.effects import effect_keys

#: Spread (standard deviation of a logarithm) of each level, dense and mixture.
SPREADS: Final[Mapping[str, tuple[float, float]]] = {
    "line": (0.10, 0.10),
    "stack": (0.05, 0.03),
    "model": (0.02, 0.12),
    "configuration": (0.03, 0.10),
    "run": (0.03, 0.10),
}
#: Spread of rows of one configuration around their effect.
NOISE: Final = (0.045, 0.10)


@dataclass(frozen=True, slots=True, eq=False)
class EffectSet:
    """Which row has which effect: ``design`` is rows x effects of 0 and 1, ``keys`` are (level, key) pairs."""

    keys: tuple[tuple[str, str], ...]
    design: FloatArray
    spreads: FloatArray
    centres: FloatArray


def effects_of(rows: Sequence[TrainingRow], before: TrainingCalibration | None = None) -> EffectSet:
    """Every effect that rows touch. ``before``: what is known of them already, as the centre they are drawn to."""
    found: dict[tuple[str, str], list[int]] = {}
    for index, row in enumerate(rows):
        assert row.model is not None
        assert row.accelerator is not None
        keys = effect_keys(row.traits, row.model, row.accelerator.id, row.precision)
        for level in LEVELS:
            if keys[level]:
                found.setdefault((level, keys[level]), []).append(index)
    ordered = tuple(sorted(found))
    design = np.zeros((len(rows), len(ordered)))
    for column, key in enumerate(ordered):
        design[found[key], column] = 1.0
    spreads = np.array([SPREADS[level][int(key.startswith("moe|"))] for level, key in ordered])
    # A stack of no known line differs from the mean by as much as lines and stacks together.
    alone = {_stack_key(row) for row in rows if not row.traits.line}
    lines = np.array([SPREADS["line"][int(key.startswith("moe|"))] for _, key in ordered])
    single = np.array([level == "stack" and key in alone for level, key in ordered], dtype=np.bool_)
    spreads = np.where(single, np.hypot(spreads, lines), spreads)
    centres = np.array([before.effect(level, key) if before is not None else 0.0 for level, key in ordered])
    return EffectSet(ordered, design, spreads, centres)


def _stack_key(row: TrainingRow) -> str:
    return f"{row.kind}|{row.traits.name}"


def noise_of(rows: Sequence[TrainingRow]) -> FloatArray:
    """Spread of each row around its prediction."""
    return np.array([NOISE[int(not row.is_dense)] for row in rows])
