"""How far a bound or an assumption is moved where nothing published says it: one documented range a field.

Prices take the catalogue's low and high (``optimizer.studies.movers``). The ranges here are for what the planner or we
decide: targets, limits of the site, demand, lives, rates. Each names what it rests on; ``assumed`` is said where it
rests on judgement alone. docs/studies.md shows the table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from optimizer.instance.positions import Path
from optimizer.studies.movers import Kind

#: Smallest and largest share that a field takes in a study: 0 and 1 themselves are often no sound input.
_SMALLEST, _LARGEST = 0.01, 0.999


@dataclass(frozen=True, slots=True)
class PlausibleRange:
    """Range of the fields that match ``pattern`` (``*`` stands for any step).

    ``ends`` gives (low, high) from the value now; ``basis`` says what the range rests on.
    """

    pattern: Path
    kind: Kind
    ends: Callable[[float], tuple[float, float]]
    basis: str


def _around(share: float) -> Callable[[float], tuple[float, float]]:
    return lambda now: (now * (1.0 - share), now * (1.0 + share))


def _between(low: float, high: float) -> Callable[[float], tuple[float, float]]:
    """Fixed ends, widened to the value now, which may lie outside."""
    return lambda now: (min(low, now), max(high, now))


def _share_around(share: float) -> Callable[[float], tuple[float, float]]:
    """A relative range that stays a share."""
    return lambda now: (max(_SMALLEST, now * (1.0 - share)), min(1.0, now * (1.0 + share)))


def _loss_around(share: float) -> Callable[[float], tuple[float, float]]:
    """A floor of accuracy, moved by a share of the loss that it allows."""
    return lambda now: (
        max(_SMALLEST, 1.0 - (1.0 - now) * (1.0 + share)),
        min(_LARGEST, 1.0 - (1.0 - now) * (1.0 - share)),
    )


def _whole_around(share: float, least: float) -> Callable[[float], tuple[float, float]]:
    """A count, moved by a share and by one at least."""
    return lambda now: (max(least, now - max(1.0, round(share * now))), now + max(1.0, round(share * now)))


def _by(step: float, low: float, high: float) -> Callable[[float], tuple[float, float]]:
    return lambda now: (max(low, now - step), min(high, now + step))


_LIMIT = "+-10 %: what a planner negotiates about a limit (assumed)"
_DEMAND = "+-20 %: error of a demand forecast (assumed)"
_LENGTHS = "+-25 %: mean lengths drift with use (assumed)"
_LIVES = "4 to 6 years in operators' accounts"

#: Ranges in the order in which they are looked up; the first that matches holds.
RANGES: Final[tuple[PlausibleRange, ...]] = (
    PlausibleRange(
        ("targets", "accuracy_floor_fraction"), "bound", _loss_around(0.5), "half to one and a half of the loss allowed"
    ),
    PlausibleRange(("targets", "accuracy_floor_score"), "bound", _around(0.005), "+-0.5 %: noise of a suite (assumed)"),
    PlausibleRange(
        ("targets", "confidence"), "assumption", _between(0.5, 0.9), "0.5 to 0.9 over the error of predictions"
    ),
    PlausibleRange(
        ("targets", "accuracy_confidence"), "assumption", _between(0.5, 0.9), "0.5 to 0.9 over published models"
    ),
    PlausibleRange(
        ("targets", "vram_fraction"), "assumption", _between(0.85, 0.95), "0.85 to 0.95: settings of engines (assumed)"
    ),
    PlausibleRange(("targets", "nvlink_fraction"), "bound", _between(0.8, 1.0), "0.8 to 1 of the link (assumed)"),
    PlausibleRange(
        ("targets", "peak_utilization_fraction"),
        "assumption",
        _between(0.8, 0.95),
        "0.8 to 0.95: room for queueing (assumed)",
    ),
    PlausibleRange(
        ("targets", "spare_fraction"), "assumption", _between(0.02, 0.1), "0.02 to 0.1 spares a server (assumed)"
    ),
    PlausibleRange(("targets", "spare_servers"), "bound", _whole_around(0.0, 0.0), "one more or less"),
    PlausibleRange(("targets", "*"), "bound", _around(0.1), _LIMIT),
    PlausibleRange(("workload", "classes", "*", "targets", "*"), "bound", _around(0.1), _LIMIT),
    PlausibleRange(("workload", "demand", "think_time_s"), "assumption", _around(0.25), _LENGTHS),
    PlausibleRange(("workload", "demand", "*"), "bound", _around(0.2), _DEMAND),
    PlausibleRange(("workload", "classes", "*", "demand", "think_time_s"), "assumption", _around(0.25), _LENGTHS),
    PlausibleRange(("workload", "classes", "*", "demand", "*"), "bound", _around(0.2), _DEMAND),
    PlausibleRange(
        ("workload", "request", "prefix_hit_fraction"), "assumption", _by(0.2, 0.0, 0.99), "+-0.2 (assumed)"
    ),
    PlausibleRange(
        ("workload", "classes", "*", "request", "prefix_hit_fraction"),
        "assumption",
        _by(0.2, 0.0, 0.99),
        "+-0.2 (assumed)",
    ),
    PlausibleRange(("workload", "request", "*"), "assumption", _around(0.25), _LENGTHS),
    PlausibleRange(("workload", "classes", "*", "request", "*"), "assumption", _around(0.25), _LENGTHS),
    PlausibleRange(
        ("workload", "load", "mean_fraction"), "assumption", _share_around(0.2), "+-20 %: shape of the load (assumed)"
    ),
    PlausibleRange(("site", "power_kw"), "bound", _around(0.1), _LIMIT),
    PlausibleRange(("site", "rack_kw"), "bound", _around(0.1), _LIMIT),
    PlausibleRange(("site", "carbon_tonnes_per_year"), "bound", _around(0.1), _LIMIT),
    PlausibleRange(("site", "water_m3_per_year"), "bound", _around(0.1), _LIMIT),
    PlausibleRange(("site", "floor_m2"), "bound", _around(0.1), _LIMIT),
    PlausibleRange(
        ("economics", "energy_escalation_fraction"), "assumption", _between(0.0, 0.025), "0 to 2.5 % a year (REopt)"
    ),
    PlausibleRange(
        ("economics", "hall", "colocation_escalation_fraction"),
        "assumption",
        _between(0.0, 0.04),
        "0 to 4 %: fixed rents, and escalators of published leases",
    ),
    PlausibleRange(
        ("economics", "staff", "escalation_fraction"), "assumption", _between(0.0, 0.04), "0 to 4 % a year (assumed)"
    ),
    PlausibleRange(
        ("economics", "server_residual_fraction"),
        "assumption",
        _between(0.0, 0.15),
        "0 to 0.15 after five years: the only series of H100",
    ),
    PlausibleRange(
        ("economics", "server_price_change_fraction"),
        "assumption",
        _between(-0.28, 0.0),
        "-28 to 0 %: the fall of prices for the same work (Epoch AI), or none",
    ),
    PlausibleRange(("site", "racks"), "bound", _whole_around(0.1, 0.0), "+-10 %, one rack at least (assumed)"),
    PlausibleRange(("choices", "supply", "*"), "bound", _whole_around(0.25, 0.0), "+-25 %: what can be had (assumed)"),
    PlausibleRange(("choices", "max_accelerator_types"), "bound", _whole_around(0.0, 1.0), "one more or less"),
    PlausibleRange(("economics", "budget_capex_usd"), "bound", _around(0.1), _LIMIT),
    PlausibleRange(("economics", "budget_usd_per_year"), "bound", _around(0.1), _LIMIT),
    PlausibleRange(
        ("economics", "discount_rate"),
        "assumption",
        _between(0.05, 0.12),
        "5 to 12 %: cost of capital, public body to technology firm (assumed)",
    ),
    PlausibleRange(
        ("economics", "horizon_years"), "assumption", _between(3.0, 7.0), "3 to 7 years of use of hardware (assumed)"
    ),
    PlausibleRange(("economics", "server_life_years"), "assumption", _between(4.0, 6.0), _LIVES),
    PlausibleRange(("economics", "network_life_years"), "assumption", _between(4.0, 6.0), f"{_LIVES} (assumed)"),
    PlausibleRange(
        ("economics", "cooling_life_years"), "assumption", _between(10.0, 20.0), "10 to 20 years, as the building"
    ),
)


def plausible_range(steps: Path) -> PlausibleRange | None:
    """The range of a field by the steps of its path, or None where the field is no bound and no assumption."""
    for one in RANGES:
        if len(one.pattern) == len(steps) and all(
            asked in ("*", step) for asked, step in zip(one.pattern, steps, strict=True)
        ):
            return one
    return None
