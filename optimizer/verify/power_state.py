"""Power caps by the checker's own arithmetic: how fast capped accelerators are and what their servers draw."""

import json
from bisect import bisect_left
from functools import cache
from importlib import resources
from typing import Final

from optimizer.catalog.rows import Accelerator, ServerPowerCurve

NO_CAP: Final = 1.0


@cache
def _points(name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(cap over draw without a cap, speed) of a packaged curve, rising."""
    packaged = resources.files("optimizer.performance") / "data" / "power_caps.json"
    rows = json.loads(packaged.read_text(encoding="utf-8"))["curves"][name]["points"]
    return tuple(row["cap_over_draw"] for row in rows), tuple(row["speed"] for row in rows)


def _speed(name: str, share: float) -> float:
    """Speed over that without a cap, where the cap is ``share`` of what the work would draw."""
    if share >= 1.0:
        return 1.0
    at, speeds = _points(name)
    place = max(1, bisect_left(at, share))
    weight = (at[place] - share) / (at[place] - at[place - 1])
    return weight * speeds[place - 1] + (1.0 - weight) * speeds[place]


def most_kw(row: Accelerator, curve: ServerPowerCurve, cap: float) -> float:
    """Most power of a whole server in air: what its capped accelerators and their losses do not draw is taken off."""
    if cap == NO_CAP:
        return row.server_power_kw
    loss = curve.kappa_fraction if row.liquid_cooling != "required" else curve.kappa_liquid_fraction
    rack = row.accelerators_per_server > row.accelerators_per_host
    idle = row.server_power_kw * (curve.idle_rack_scale_fraction if rack else curve.idle_fraction)
    drawn = row.accelerators_per_server * row.tdp_w / 1000.0 * (1.0 + loss)
    return max(idle, row.server_power_kw - (1.0 - cap) * drawn)


def slowed(row: Accelerator, curve: ServerPowerCurve, cap: float, *, large_dense: bool) -> Accelerator:
    """The accelerator as its cap makes it: memory and matrix units at their speed under it."""
    if cap == NO_CAP:
        return row
    serving = curve.f1_dense_fraction if large_dense else curve.f1_fraction
    memory, units = _speed("memory", cap / serving), _speed("arithmetic", cap / curve.prefill_fraction)
    rates = {
        name: getattr(row, name) * units
        for name in ("fp16_tflops", "fp8_tflops", "int8_tops", "fp4_tflops", "int4_tops")
        if getattr(row, name) is not None
    }
    return row.model_copy(update={"memory_bandwidth_gb_s": row.memory_bandwidth_gb_s * memory, **rates})
