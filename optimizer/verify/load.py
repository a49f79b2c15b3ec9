"""Load levels and demand, by the checker's own arithmetic (docs/method.md section 4)."""

from dataclasses import dataclass
from typing import Final

from optimizer.instance.workload import Load, RequestClass
from optimizer.units import HOURS_PER_YEAR, MS_PER_S

#: A profile of more distinct values below its peak is merged into as many bands.
_BANDS: Final = 6


@dataclass(frozen=True, slots=True)
class LoadLevel:
    """Share of the peak, and hours a year."""

    fraction: float
    hours: float


def load_levels(load: Load) -> tuple[LoadLevel, ...]:
    """The peak first, then falling."""
    if load.hourly_fractions is None:
        mean = 1.0 if load.mean_fraction is None else load.mean_fraction
        if mean == 1.0:
            return (LoadLevel(1.0, HOURS_PER_YEAR),)
        return (LoadLevel(1.0, 0.0), LoadLevel(mean, HOURS_PER_YEAR))
    top = max(load.hourly_fractions)
    shares = sorted((value / top for value in load.hourly_fractions), reverse=True)
    each = HOURS_PER_YEAR / len(shares)
    below = [share for share in shares if share < 1.0]
    groups: dict[float, list[float]] = {}
    many = len(set(below)) > _BANDS
    for share in below:
        width = (max(below) - min(below)) / _BANDS
        band = min(int((share - min(below)) / width), _BANDS - 1) if many else share
        groups.setdefault(band, []).append(share)
    peak = LoadLevel(1.0, (len(shares) - len(below)) * each)
    return (peak, *(LoadLevel(sum(group) / len(group), len(group) * each) for group in groups.values()))


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
