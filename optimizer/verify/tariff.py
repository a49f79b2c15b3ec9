"""What electricity costs, by the checker's own arithmetic (docs/method.md sections 4 and 8)."""

import datetime as dt
from collections.abc import Iterator

from optimizer.instance.tariff import Tariff

#: Four years from 2024, a leap year among them: the days of a mean year.
_FIRST, _DAYS = dt.date(2024, 1, 1), 1461


def weekly_prices(tariff: Tariff) -> tuple[float, ...]:
    """Mean energy price of each hour of a week from Monday."""
    if tariff.hourly_usd_per_kwh is not None:
        given = tariff.hourly_usd_per_kwh
        return tuple(given[hour % len(given)] for hour in range(7 * 24))
    months: dict[int, int] = {}
    for day in range(_DAYS):
        month = (_FIRST + dt.timedelta(days=day)).month
        months[month] = months.get(month, 0) + 1
    prices = []
    for place in range(7 * 24):
        weekday, hour = 1 + place // 24, place % 24
        paid = sum(days * _at(tariff, month, weekday, hour) for month, days in months.items())
        prices.append(paid / _DAYS)
    return tuple(prices)


def _at(tariff: Tariff, month: int, weekday: int, hour: int) -> float:
    price = tariff.energy_usd_per_kwh
    assert price is not None
    for usd, fits in _periods(tariff, month, weekday, hour):
        price = usd if fits else price
    return price


def _periods(tariff: Tariff, month: int, weekday: int, hour: int) -> Iterator[tuple[float, bool]]:
    for one in tariff.periods:
        fits = (not one.months or month in one.months) and (not one.weekdays or weekday in one.weekdays)
        yield one.usd_per_kwh, fits and (not one.hours or hour in one.hours)
