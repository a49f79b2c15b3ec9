"""What a power cap costs in speed: accelerators told to draw no more than a share of their board power.

A cap above what the work draws changes nothing. Below it clocks fall: what arithmetic bounds (prompts) slows down
nearly with the clock, what memory bounds (decoding) hardly, until the cap is so deep that it, too, waits for the clock.
The curves pass through measured points of a few cards (``data/power_caps.json``); for other accelerators they are
assumptions.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Final

#: The deepest cap that the points reach whatever the work: below, nothing is measured.
LEAST_CAP: Final = 0.6


@dataclass(frozen=True, slots=True)
class CapCurves:
    """Speed over speed without a cap, as (cap over draw without a cap, speed) points of straight lines, rising."""

    memory: tuple[tuple[float, float], ...]
    arithmetic: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class CappedSpeed:
    """Speed of an accelerator under a cap over its speed without one: of its memory, and of its matrix units."""

    memory: float
    arithmetic: float


@cache
def cap_curves() -> CapCurves:
    """The packaged curves."""
    text = resources.files("optimizer.performance").joinpath("data/power_caps.json").read_text(encoding="utf-8")
    curves = json.loads(text)["curves"]

    def points(name: str) -> tuple[tuple[float, float], ...]:
        return tuple((float(one["cap_over_draw"]), float(one["speed"])) for one in curves[name]["points"])

    return CapCurves(points("memory"), points("arithmetic"))


def speed_under_cap(points: tuple[tuple[float, float], ...], cap: float, draw: float) -> float:
    """Speed over speed without a cap, of work that draws ``draw`` without one; both in the same unit.

    1 from ``draw`` on. ValueError below the deepest measured cap.
    """
    ratio = cap / draw
    if ratio >= 1.0:
        return 1.0
    if ratio < points[0][0]:
        raise ValueError(f"no point is measured at a cap of {ratio:.3f} of the draw; the deepest is {points[0][0]:g}")
    for (left, low), (right, high) in pairwise(points):
        if ratio <= right:
            return low + (high - low) * (ratio - left) / (right - left)
    return 1.0


def draw_under_cap(cap: float, draw: float) -> float:
    """What work draws that draws ``draw`` without a cap."""
    return min(cap, draw)


def capped_speed(cap_fraction: float, *, memory_draw_fraction: float, prefill_draw_fraction: float) -> CappedSpeed:
    """Speed of an accelerator capped at a fraction of its TDP, from what each kind of work draws of it without a cap.

    ``memory_draw_fraction``: of saturated serving on average (the power curve's ``f1``); ``prefill_draw_fraction``: of
    prompts.
    """
    curves = cap_curves()
    return CappedSpeed(
        memory=speed_under_cap(curves.memory, cap_fraction, memory_draw_fraction),
        arithmetic=speed_under_cap(curves.arithmetic, cap_fraction, prefill_draw_fraction),
    )
