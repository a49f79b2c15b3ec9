"""Whether choices made by prediction hold when measured: the question a planner really asks.

Within each group of points that differ in deployment and load alone, the point with most predicted tokens/s per
accelerator within a latency target is picked, and its measurement says whether it meets the target, and how much
less it gives than the best measured point that does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from optimizer.calibration.crossvalidation import Held
from optimizer.calibration.fit import Data, output_rate
from optimizer.performance.factors import FloatArray

TPOT_TARGETS_MS: Final = (10.0, 15.0, 20.0, 30.0, 50.0)
TTFT_TARGETS_MS: Final = (500.0, 2000.0)
LEAST_POINTS: Final = 6
LEAST_SIZES: Final = 2


@dataclass(frozen=True, slots=True)
class Decisions:
    """Shares (0..1): picks that meet their target of those made, tokens/s lost when they do, cases without a pick."""

    cases: int
    picks: int
    valid: float
    lost: float
    without_pick: float


def decision_groups(data: Data) -> list[NDArray[np.int64]]:
    """Rows of one accelerator, model, precision, engine, version and lengths, enough of them to choose among."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for row, p in enumerate(data.points):
        key = (p.accelerator, p.label, p.precision, p.engine, p.version, p.nominal_input, p.nominal_output)
        groups.setdefault(key, []).append(row)
    sizes = [point.accelerators for point in data.points]
    kept = [
        rows for rows in groups.values() if len(rows) >= LEAST_POINTS and len({sizes[r] for r in rows}) >= LEAST_SIZES
    ]
    return [np.array(rows) for rows in kept]


def decide(
    data: Data, held: Held, tpot_multiplier: FloatArray | float = 1.0, ttft_multiplier: FloatArray | float = 1.0
) -> Decisions:
    """Pick in every group under every target, with predicted times multiplied to the wanted confidence."""
    accelerators = np.array([point.accelerators for point in data.points], dtype=np.float64)
    predicted = output_rate(data, held.tpot_ms, held.ttft_ms) / accelerators
    real = data.output_tokens_per_s / accelerators
    tpot, ttft = held.tpot_ms * tpot_multiplier, held.ttft_ms * ttft_multiplier
    cases = picks = 0
    lost: list[float] = []
    for rows in decision_groups(data):
        for tpot_target, ttft_target in _targets():
            meets = rows[(data.tpot_ms[rows] <= tpot_target) & (data.ttft_ms[rows] <= ttft_target)]
            if not meets.size:
                continue
            cases += 1
            offered = rows[(tpot[rows] <= tpot_target) & (ttft[rows] <= ttft_target)]
            if not offered.size:
                continue
            picks += 1
            pick = offered[np.argmax(predicted[offered])]
            if pick in meets:
                lost.append(float(1.0 - real[pick] / real[meets].max()))
    return Decisions(cases, picks, len(lost) / picks, float(np.mean(lost)), 1.0 - picks / cases)


def _targets() -> Sequence[tuple[float, float]]:
    return [(tpot, ttft) for tpot in TPOT_TARGETS_MS for ttft in TTFT_TARGETS_MS]
