"""Load levels and demand, by the checker's own arithmetic (docs/method.md section 4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from optimizer.instance.workload import Load, RequestClass
from optimizer.units import HOURS_PER_YEAR, MS_PER_S

#: A profile of more distinct values below its peak (a week's) is merged into as many bands.
_BANDS: Final = 23


@dataclass(frozen=True, slots=True)
class LoadLevel:
    """Share of the peak, hours a year, and the energy price of requests in them (None: no tariff)."""

    fraction: float
    hours: float
    usd_per_kwh: float | None = None


def load_levels(load: Load, prices: Sequence[float] | None = None) -> tuple[LoadLevel, ...]:
    """The peak first, then falling; ``prices`` are those of the hours of a week."""
    flat = None if prices is None else sum(prices) / len(prices)
    if load.hourly_fractions is None:
        mean = 1.0 if load.mean_fraction is None else load.mean_fraction
        if mean == 1.0:
            return (LoadLevel(1.0, HOURS_PER_YEAR, flat),)
        return (LoadLevel(1.0, 0.0, flat), LoadLevel(mean, HOURS_PER_YEAR, flat))
    top = max(load.hourly_fractions)
    hours = [value / top for value in load.hourly_fractions]
    if prices is not None:
        hours = [hours[place % len(hours)] for place in range(len(prices))]
    each = HOURS_PER_YEAR / len(hours)
    below = sorted({share for share in hours if share < 1.0}, reverse=True)
    many = len(below) > _BANDS
    # Each hour with its cost per kWh of the peak; a level's price is what its kWh cost over how many they are.
    groups: dict[float, list[tuple[float, float]]] = {1.0: []}
    for share, price in sorted(zip(hours, prices or [0.0] * len(hours), strict=True), reverse=True):
        band = share
        if share < 1.0 and many:
            # Negative, so that no band is taken for a share.
            band = -1.0 - min(int((share - below[-1]) / ((below[0] - below[-1]) / _BANDS)), _BANDS - 1)
        groups.setdefault(band, []).append((share, price))
    return tuple(_level(group, each, priced=prices is not None) for group in groups.values())


def _level(group: Sequence[tuple[float, float]], each: float, *, priced: bool) -> LoadLevel:
    energy = sum(share for share, _ in group)
    paid = sum(share * price for share, price in group)
    usd = paid / energy if energy else sum(price for _, price in group) / len(group)
    return LoadLevel(energy / len(group), len(group) * each, usd if priced else None)


@dataclass(frozen=True, slots=True)
class ClassDemand:
    """Demand of a class at the peak: ``weight(latency)`` x requests/s must reach ``needed``."""

    needed: float
    think_time_s: float | None

    def weight(self, latency_ms: float) -> float:
        """What one request/s counts for; users stay for the answer and the pause that follows."""
        return 1.0 if self.think_time_s is None else self.think_time_s + latency_ms / MS_PER_S


def class_demand(one: RequestClass) -> ClassDemand:
    """Requests/s, or users where the demand is given in users."""
    demand = one.demand
    if demand.concurrent_users is not None:
        return ClassDemand(demand.concurrent_users, demand.think_time_s)
    if demand.requests_per_s is not None:
        return ClassDemand(demand.requests_per_s, None)
    assert demand.output_tokens_per_s is not None
    return ClassDemand(demand.output_tokens_per_s / one.request.output_tokens, None)
