"""Rows of one candidate for the limits that candidates keep or break alone."""

from types import ModuleType
from typing import Any, Final

import numpy as np

from optimizer.screen import Bounds, Seen, keeps

#: What the candidate reaches.
REACHED: Final = {
    "vram_gib": 70.0,
    "weights_gib": 40.0,
    "tpot_ms": 20.0,
    "ttft_ms": 500.0,
    "latency_ms": 3000.0,
    "accuracy": 0.99,
    "nvlink_gb_s": 45.0,
    "nvlink_link_gb_s": 450.0,
    "kv_link_gb_s": 12.5,
    "kv_link_limit_gb_s": 50.0,
}
#: Bounds that it keeps.
LOOSE: Final = {
    "vram_gib": 80.0,
    "vram_gib_per_accelerator": np.inf,
    "weights_gib_per_accelerator": np.inf,
    "tpot_ms": np.inf,
    "ttft_ms": np.inf,
    "latency_ms": np.inf,
    "accuracy": 0.5,
    "nvlink_fraction": 1.0,
    "nvlink_cap_gb_s": np.inf,
    "kv_link_fraction": 1.0,
}
BY_ROW: Final = ("vram_gib", "tpot_ms", "ttft_ms", "latency_ms")


def seen(**reached: float) -> Seen:
    """One candidate."""
    return Seen(**{name: np.array([value]) for name, value in {**REACHED, **reached}.items()})


def bounds(**right: float) -> Bounds:
    """Right-hand sides, loose where not given."""
    values = {**LOOSE, **right}
    columns: dict[str, Any] = {name: np.array([value]) if name in BY_ROW else value for name, value in values.items()}
    return Bounds(**columns)


def kept(family: ModuleType, given: Bounds, one: Seen | None = None) -> dict[str, bool]:
    """For each limit of the family, whether the candidate keeps it."""
    one = seen() if one is None else one
    result = {name: bool(values[0]) for name, values in family.admits(one, given).items()}
    # The screen asks every family: it must say the same.
    assert {name: bool(keeps(one, given)[name][0]) for name in result} == result
    return result


def check_border(family: ModuleType, limit: str, bound: str, value: float, *, larger_is_looser: bool = True) -> None:
    """The limit holds at the bound ``value`` itself and fails just on the other side; no other limit moves."""
    step = np.inf if larger_is_looser else -np.inf
    at, inside, outside = value, float(np.nextafter(value, step)), float(np.nextafter(value, -step))
    for right, holds in ((at, True), (inside, True), (outside, False)):
        found = kept(family, bounds(**{bound: right}))
        assert found == {name: holds if name == limit else True for name in family.LIMITS}
