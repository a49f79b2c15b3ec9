"""Load levels, and what a kWh costs at each of them (docs/method.md section 4)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from optimizer.instance.model import Instance
from optimizer.instance.tariff import Tariff, TariffPeriod
from optimizer.units import HOURS_PER_YEAR

#: More distinct load levels than this are merged (docs/method.md section 4). A day always stays as it is: servers paid
#: by the hour come whole, so the mean of unlike hours would cost less than the hours do (8 % in small fleets at 6).
MAX_LEVELS_BELOW_PEAK: Final = 23
#: Days of each month in a mean year.
_MONTH_DAYS: Final = (31.0, 28.25, 31.0, 30.0, 31.0, 30.0, 31.0, 31.0, 30.0, 31.0, 30.0, 31.0)
_DAYS_A_WEEK, _HOURS_A_DAY = 7, 24


@dataclass(frozen=True, slots=True)
class LoadLevel:
    """A share of the peak and the hours a year it lasts.

    ``usd_per_kwh`` is the mean energy price of its hours, weighted with the load in them; None: the price of the year.
    """

    fraction: float
    hours_per_year: float
    usd_per_kwh: float | None = None


def hourly_prices(tariff: Tariff) -> tuple[float, ...]:
    """Mean energy price (USD/kWh) of each hour of a week from Monday, over the months of a mean year."""
    if tariff.hourly_usd_per_kwh is not None:
        hours = tariff.hourly_usd_per_kwh
        return hours if len(hours) == _DAYS_A_WEEK * _HOURS_A_DAY else hours * _DAYS_A_WEEK
    year = math.fsum(_MONTH_DAYS)
    return tuple(
        math.fsum(
            days / year * _price_at(tariff, month, weekday, hour) for month, days in enumerate(_MONTH_DAYS, start=1)
        )
        for weekday in range(1, _DAYS_A_WEEK + 1)
        for hour in range(_HOURS_A_DAY)
    )


def _price_at(tariff: Tariff, month: int, weekday: int, hour: int) -> float:
    """Energy price of an hour: that of the last period which holds it."""
    for period in reversed(tariff.periods):
        if _holds(period, month, weekday, hour):
            return period.usd_per_kwh
    assert tariff.energy_usd_per_kwh is not None
    return tariff.energy_usd_per_kwh


def _holds(period: TariffPeriod, month: int, weekday: int, hour: int) -> bool:
    return all(
        not allowed or value in allowed
        for allowed, value in ((period.months, month), (period.weekdays, weekday), (period.hours, hour))
    )


def mean_price(tariff: Tariff) -> float:
    """Mean energy price over all hours of the year: what power that never changes pays (USD/kWh)."""
    prices = hourly_prices(tariff)
    return math.fsum(prices) / len(prices)


def load_levels(instance: Instance) -> tuple[LoadLevel, ...]:
    """Load levels, highest first; the first is the peak.

    With a tariff each level carries the mean price of its hours: hour 0 of a profile of a day is hour 0 of every day, a
    profile of a week begins on Monday, as the tariff does. Energy above idle is proportional to the load, so a level's
    price is weighted with the load of its hours, and the sum over levels is the sum over hours.
    """
    load, tariff = instance.workload.load, instance.site.tariff
    prices = None if tariff is None else hourly_prices(tariff)
    if load.hourly_fractions is not None:
        return tuple(_profile_levels(load.hourly_fractions, prices))
    mean = 1.0 if load.mean_fraction is None else load.mean_fraction
    price = None if prices is None else math.fsum(prices) / len(prices)
    if mean == 1.0:
        return (LoadLevel(1.0, HOURS_PER_YEAR, price),)
    return (LoadLevel(1.0, 0.0, price), LoadLevel(mean, HOURS_PER_YEAR, price))


def _profile_levels(hourly: Sequence[float], prices: Sequence[float] | None) -> Iterator[LoadLevel]:
    """One level a value, or a band of values; a day's profile meets every day of the tariff's week."""
    peak = max(hourly)
    values = [value / peak for value in hourly]
    if prices is not None and len(values) < len(prices):
        values *= len(prices) // len(values)
    hours_each = HOURS_PER_YEAR / len(values)
    below = [value for value in values if value < 1.0]
    places: dict[float, list[int]] = {}
    many = len(set(below)) > MAX_LEVELS_BELOW_PEAK
    low = min(below, default=0.0)
    width = (max(below, default=0.0) - low) / MAX_LEVELS_BELOW_PEAK
    for place, value in enumerate(values):
        # Bands of equal width; the peak is no part of a band.
        band = value if value == 1.0 or not many else float(min(int((value - low) / width), MAX_LEVELS_BELOW_PEAK - 1))
        places.setdefault(-1.0 if value == 1.0 else band, []).append(place)
    levels = []
    for members in places.values():
        loads = [values[place] for place in members]
        # Of equal values the mean is that value; summing would round.
        fraction = loads[0] if min(loads) == max(loads) else sum(loads) / len(loads)
        levels.append(LoadLevel(fraction, len(members) * hours_each, _price(loads, members, prices)))
    yield from sorted(levels, key=lambda one: -one.fraction)


def _price(loads: Sequence[float], members: Sequence[int], prices: Sequence[float] | None) -> float | None:
    if prices is None:
        return None
    own = [prices[place] for place in members]
    total = math.fsum(loads)
    if total == 0.0:
        return math.fsum(own) / len(own)
    return math.fsum(load * price for load, price in zip(loads, own, strict=True)) / total
