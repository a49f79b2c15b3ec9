"""Tariffs: hours of the week, seasons, the load that meets them, the peak, the connection; carbon and water."""

import json
import math
from datetime import date, timedelta
from typing import Any

import pytest

from optimizer.costs import energy, environment
from optimizer.costs.finance import growing, levelising_factor, present_value
from optimizer.costs.term import Term
from optimizer.instance.tariff import Tariff
from optimizer.levels import hourly_prices, load_levels, mean_price
from optimizer.units import HOURS_PER_YEAR
from tests.core.hand import (
    LIQUID,
    bought,
    cost,
    data_of,
    instance,
    offered,
    price,
    rented,
    server_type,
    setting_of,
)
from tests.core.real import small


def tariff(**given: Any) -> Tariff:
    return Tariff.model_validate_json(json.dumps(given))


SUMMER_PEAK: dict[str, Any] = {
    "energy_usd_per_kwh": 0.05,
    "periods": [{"usd_per_kwh": 0.25, "months": [6, 7, 8], "weekdays": [1, 2, 3, 4, 5], "hours": [16, 17, 18, 19]}],
}


def by_calendar(given: Tariff, weekday: int, hour: int) -> float:
    """Mean price of an hour of the week over the days of 400 years: the Gregorian calendar repeats after them."""
    months = [0] * 12
    day = date(2000, 1, 1)
    while day.year < 2400:
        months[day.month - 1] += 1
        day += timedelta(days=1)
    paid = 0.0
    for month, days in enumerate(months, start=1):
        usd = given.energy_usd_per_kwh
        for one in given.periods:
            if month in one.months and weekday in one.weekdays and hour in one.hours:
                usd = one.usd_per_kwh
        assert usd is not None
        paid += days * usd
    return paid / sum(months)


def test_a_season_counts_by_its_days() -> None:
    given = tariff(**SUMMER_PEAK)
    prices = hourly_prices(given)
    for weekday, hour in ((1, 17), (1, 15), (6, 17)):
        # The calendar's mean year is 365.2425 days, ours 365.25.
        assert prices[24 * (weekday - 1) + hour] == pytest.approx(by_calendar(given, weekday, hour), rel=1e-4)
    assert mean_price(given) == pytest.approx(0.05 + 0.2 * 92 / 365.25 * 20 / 168)


def test_the_last_period_that_holds_counts() -> None:
    periods = [{"usd_per_kwh": 0.3}, {"usd_per_kwh": 0.1, "hours": [0]}]
    prices = hourly_prices(tariff(energy_usd_per_kwh=9.0, periods=periods))
    assert prices[:2] == pytest.approx((0.1, 0.3))
    assert prices[24] == pytest.approx(0.1)


def levels_of(load: dict[str, Any], **given: Any) -> Any:
    return load_levels(instance(workload={"load": load}, site={"tariff": given}))


def test_what_levels_pay_is_what_the_hours_pay() -> None:
    """However hours are merged into levels: energy in proportion to the load costs the sum over its hours."""
    hours = [round(0.2 + 0.8 * math.sin(hour / 168 * math.pi) ** 2, 3) for hour in range(168)]
    prices = [0.03 + 0.01 * (hour % 7) + (0.3 if 16 <= hour % 24 < 20 else 0.0) for hour in range(168)]
    levels = levels_of({"hourly_fractions": hours}, hourly_usd_per_kwh=prices)
    assert len(levels) == 24, "merged into bands"
    paid = sum(one.fraction * one.hours_per_year * one.usd_per_kwh for one in levels)
    top = max(hours)
    by_hour = sum(hour / top * usd for hour, usd in zip(hours, prices, strict=True)) / 168 * HOURS_PER_YEAR
    assert paid == pytest.approx(by_hour, rel=1e-12)


def test_a_peaky_load_in_dear_hours_pays_for_it() -> None:
    dear = [0.3 if 16 <= hour < 20 else 0.05 for hour in range(24)]

    def yearly(shift: int) -> float:
        load = [1.0 if 16 <= (hour + shift) % 24 < 20 else 0.2 for hour in range(24)]
        levels = levels_of({"hourly_fractions": load}, hourly_usd_per_kwh=dear)
        return float(sum(one.fraction * one.hours_per_year * one.usd_per_kwh for one in levels))

    night = (4 * 1.0 * 0.05 + 4 * 0.2 * 0.3 + 16 * 0.2 * 0.05) / 24 * HOURS_PER_YEAR
    day = (4 * 1.0 * 0.3 + 20 * 0.2 * 0.05) / 24 * HOURS_PER_YEAR
    assert yearly(0) == pytest.approx(day)
    assert yearly(12) == pytest.approx(night)


def test_a_day_meets_every_day_of_a_weekly_tariff() -> None:
    week = [0.1] * 120 + [0.03] * 48
    levels = levels_of({"hourly_fractions": [1.0] * 12 + [0.5] * 12}, hourly_usd_per_kwh=week)
    assert [one.usd_per_kwh for one in levels] == pytest.approx([(5 * 0.1 + 2 * 0.03) / 7] * 2)


def lines(site: dict[str, Any], economics: dict[str, Any] | None = None, **load: Any) -> dict[tuple[str, ...], Term]:
    """Terms of energy by quantity and unit, for a pool of servers that idle at a known power."""
    given = instance(site=site, economics=economics or {}, workload={"load": load} if load else {})
    found = energy.terms(
        setting_of(given, [bought("pool", server_type(), pue=1.25)]),
    )
    return {(*term.quantity, term.item): term for term in found}


def test_terms_of_a_flat_tariff_are_those_of_its_price() -> None:
    flat = lines({"tariff": {"energy_usd_per_kwh": 0.1}})
    assert sorted(key[0] for key in flat) == ["BusyKwh", "Servers"]


def test_demand_and_connection_are_billed_by_the_month() -> None:
    found = lines({"tariff": {"energy_usd_per_kwh": 0.0, "demand_usd_per_kw_month": 17.25, "fixed_usd_per_month": 500}})
    (peak,) = (term for key, term in found.items() if key[0] == "PeakKw")
    assert peak.usd_per_year == pytest.approx(12 * 17.25 * 1.25)
    (connection,) = (term for key, term in found.items() if key[0] == "SiteUsed")
    assert connection.usd_per_year == pytest.approx(6000.0)
    (idle,) = (term for key, term in found.items() if key[0] == "Servers" and "demand" in term.item)
    assert idle.usd_per_year == pytest.approx(dict(idle.factors)["idle_kw"] * 12 * 17.25 * 1.25)


@pytest.mark.parametrize("years", [0.5, 1.0, 3.0, 4.5, 10.0])
@pytest.mark.parametrize("rate", [0.0, 0.08])
@pytest.mark.parametrize("growth", [-0.1, 0.0, 0.0166, 0.2])
def test_a_levelised_cost_is_worth_what_the_rising_one_is(years: float, rate: float, growth: float) -> None:
    factor = levelising_factor(rate, years, growth)
    if growth == 0.0:
        assert factor == pytest.approx(1.0)
    if years == int(years):
        rising = present_value([0.0, *growing(1.0, growth, int(years))], rate)
        assert factor * present_value([0.0, *([1.0] * int(years))], rate) == pytest.approx(rising)


def test_escalation_raises_every_line_of_energy() -> None:
    site = {"tariff": {"energy_usd_per_kwh": 0.1, "demand_usd_per_kw_month": 5.0, "fixed_usd_per_month": 10.0}}
    plain = lines(site)
    dearer = lines(site, {"energy_escalation_fraction": 0.03})
    factor = levelising_factor(0.08, 5.0, 0.03)
    assert factor > 1.0
    for key, term in plain.items():
        assert dearer[key].usd_per_year == pytest.approx(factor * term.usd_per_year)


# -- in the program -------------------------------------------------------------------------------------------------


def test_the_metered_peak_is_charged_once_whatever_the_mean_load() -> None:
    """Ten replicas, one a server of 4 kW idle and 10 kW busy, at PUE 1.25; a charge of 1 USD an hour for a kW."""
    of = server_type()
    pools = [bought("air", of)]
    terms = [price(("PeakKw", "air"), 1.25)]
    for load in ({}, {"mean_fraction": 0.3}, {"hourly_fractions": [1.0] + [0.1] * 23}):
        given = instance(
            workload={"load": load} if load else {},
            site={"tariff": {"energy_usd_per_kwh": 0.0, "demand_usd_per_kw_month": 1.0}},
        )
        assert cost(data_of(given, pools, [offered("d", of)], terms)) == pytest.approx(10 * 6.0 * 1.25)


def test_a_connection_charge_tips_a_small_site_to_rent() -> None:
    of = server_type(rent={"on_demand": 3.0})
    pools = [bought("air", of), rented("rent", of)]
    for demand, best in ((4.0, 4 * 1.0 + 5.0), (2.0, 2 * 3.0)):
        terms = [price(("Servers", "air"), 1.0), price(("Servers", "rent"), 3.0), price(("SiteUsed", "site"), 5.0)]
        data = data_of(instance(), pools, [offered("d", of)], terms, demand=(demand,))
        assert cost(data) == pytest.approx(best)


def test_a_cap_on_carbon_takes_the_dearer_cooling() -> None:
    """The air pool at PUE 1.25 emits more than the liquid one at 1.1; the cap holds what ten servers of one emit."""
    of = server_type()
    pools = [bought("air", of), bought("liquid", of, cooling=LIQUID, pue=1.1)]
    terms = [price(("Servers", "air"), 1.0), price(("Servers", "liquid"), 2.0)]
    grams = 100.0
    busy = 10.0 * HOURS_PER_YEAR * grams / 1e6

    def best(tonnes: float) -> float:
        site = {"carbon_g_per_kwh": grams, "carbon_tonnes_per_year": tonnes}
        return cost(data_of(instance(site=site), pools, [offered("d", of)], terms))

    assert best(10 * busy * 1.25 * (1 + 1e-6)) == pytest.approx(10.0)
    # Five of each emit the mean of both.
    assert best(10 * busy * 1.175 * (1 + 1e-6)) == pytest.approx(15.0)
    assert best(10 * busy * 1.1 * (1 + 1e-6)) == pytest.approx(20.0)


def test_a_cap_on_water_moves_requests_not_only_servers() -> None:
    """Half the load: one pool takes water, the other none; the same servers serve with less of it at more cost."""
    of = server_type()
    dry = LIQUID.model_copy(update={"water_typical_l_per_kwh": 0.0})
    wet = LIQUID.model_copy(update={"id": "wet", "water_typical_l_per_kwh": 1.0})
    pools = [bought("wet", of, cooling=wet), bought("dry", of, cooling=dry)]
    terms = [price(("BusyKwh", "wet"), 1.0 / HOURS_PER_YEAR), price(("BusyKwh", "dry"), 2.0 / HOURS_PER_YEAR)]
    cap = 3 * 4.0 * HOURS_PER_YEAR / 1000.0

    def best(cubic_metres: float) -> float:
        given = instance(workload={"load": {"mean_fraction": 0.5}}, site={"water_m3_per_year": cubic_metres})
        return cost(data_of(given, pools, [offered("d", of)], terms, most_servers=5))

    # Five servers of each; 5 requests/s of 6 kWh each, all in the wet pool while the water lasts.
    idle = 5 * 4.0 * HOURS_PER_YEAR / 1000.0
    assert best(1e9) == pytest.approx(5 * 6.0)
    assert best(idle + cap) == pytest.approx(2 * 6.0 * 1 + 3 * 6.0 * 2, rel=1e-6)
    assert best(idle) == pytest.approx(5 * 6.0 * 2, rel=1e-6)


def test_prices_of_carbon_and_water() -> None:
    given = instance(site={"carbon_g_per_kwh": 400.0}, economics={"carbon_usd_per_tonne": 50, "water_usd_per_m3": 3})
    setting = setting_of(given, [bought("pool", server_type(), pue=1.25)])
    (_, carbon), (_, water) = environment.carbon_terms(setting), environment.water_terms(setting)
    assert carbon.usd_per_year == pytest.approx(50 * 400e-6 * 1.25)
    assert water.usd_per_year == pytest.approx(3 * 0.15e-3)


def test_a_plan_states_its_carbon_and_water() -> None:
    from optimizer.api import solve as planned

    plan = planned(small(choices={"sourcing": ["buy"]}, site={"carbon_g_per_kwh": 250.0})).plan
    assert plan is not None
    assert plan.carbon_tonnes_per_year == pytest.approx(plan.energy_kwh_per_year * 250e-6)
    assert plan.water_m3_per_year is not None
    assert plan.water_m3_per_year > 0.0
