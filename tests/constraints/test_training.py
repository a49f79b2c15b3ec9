"""Limits of a training layout, each at its border."""

from dataclasses import asdict, replace
from math import inf

import numpy as np
import pytest

from constraints import training
from optimizer.training.evaluate import Bounds, Seen

REACHED = {
    "memory_gib": 70.0,
    "scale_up_gb_s": 45.0,
    "scale_up_fraction": 0.1,
    "scale_out_fraction": 0.2,
    "mfu_fraction": 0.4,
    "days": 90.0,
    "accelerators": 1024.0,
}
LOOSE = Bounds(80.0, inf, 1.0, inf, inf, 0.0, inf, inf)
#: Limit -> (bound, what is held against it).
BORDERS = {
    "training_vram_gib": ("memory_gib", 70.0),
    "training_vram_cap_gib": ("memory_cap_gib", 70.0),
    "training_nvlink": ("scale_up_fraction", 0.1),
    "training_nvlink_cap_gb_s": ("scale_up_cap_gb_s", 45.0),
    "scale_out_fraction": ("scale_out_fraction", 0.2),
    "mfu_fraction": ("mfu_fraction", 0.4),
    "deadline_days": ("days", 90.0),
    "accelerator_count": ("accelerators", 1024.0),
}


def kept(bounds: Bounds) -> dict[str, bool]:
    seen = Seen(**{name: np.array([value]) for name, value in REACHED.items()})
    return {name: bool(column[0]) for name, column in training.admits(seen, bounds).items()}


def test_every_limit_of_a_layout_is_evaluated() -> None:
    assert set(kept(LOOSE)) == set(BORDERS) == set(training.LIMITS) - {"budget_usd"}
    assert all(kept(LOOSE).values())
    assert len(asdict(LOOSE)) == len(BORDERS)


@pytest.mark.parametrize("limit", BORDERS)
def test_a_limit_holds_at_its_border_and_fails_beyond(limit: str) -> None:
    bound, value = BORDERS[limit]
    looser = -inf if limit == "mfu_fraction" else inf
    for right, holds in ((value, True), (np.nextafter(value, looser), True), (np.nextafter(value, -looser), False)):
        assert kept(replace(LOOSE, **{bound: float(right)})) == {name: holds or name != limit for name in BORDERS}
