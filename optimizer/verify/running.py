"""The checker's own lines of energy, carbon and water (docs/method.md sections 6 and 8)."""

from collections.abc import Iterator
from dataclasses import replace

from optimizer.units import HOURS_PER_YEAR, MONTHS_PER_YEAR
from optimizer.verify.facts import Facts, GroupFacts, Quote, electricity_quote
from optimizer.verify.finding import EXACT_RELATIVE, close
from optimizer.verify.fleet import Fleet
from optimizer.verify.lines import Line, escalated


def _hall(fleet: Fleet) -> Iterator[tuple[GroupFacts, float]]:
    """Groups in the planner's hall, each with its servers."""
    return ((one, float(one.group.servers)) for one in fleet.groups.values() if one.in_hall)


def energy_lines(facts: Facts, fleet: Fleet) -> Iterator[Line]:
    """Energy of servers at idle and of requests, the peak, the connection."""
    economics = facts.instance.economics
    rise = escalated(economics.discount_rate, economics.horizon_years, economics.energy_escalation_fraction)
    for line in _energy(facts, fleet):
        yield replace(line, factors=(*line.factors, *rise))


def _energy(facts: Facts, fleet: Fleet) -> Iterator[Line]:
    price, tariff = electricity_quote(facts), facts.instance.site.tariff
    if price is None:
        return
    by_level = any(
        one.usd_per_kwh is not None and not close(one.usd_per_kwh, price.usd, EXACT_RELATIVE) for one in facts.levels
    )
    for one, servers in _hall(fleet):
        pool, energy, pue = one.group.pool, fleet.energy_kwh[one.group.pool], one.pue
        yield Line("energy", pool, servers, "servers", price, (one.idle_kw, HOURS_PER_YEAR, pue.mean))
        if by_level:
            for level, kwh in zip(facts.busy_levels, energy.level_kwh, strict=True):
                assert level.usd_per_kwh is not None
                yield Line("energy", pool, kwh, "kWh/year", Quote.user(level.usd_per_kwh), (pue.mean,))
        else:
            yield Line("energy", pool, energy.requests_kwh, "kWh/year", price, (pue.mean,))
        if tariff is not None:
            peak, months = Quote.user(tariff.demand_usd_per_kw_month), MONTHS_PER_YEAR
            yield Line("energy", pool, servers, "servers", peak, (one.idle_kw, months, pue.design))
            yield Line("energy", pool, energy.peak_kw, "kW at the peak", peak, (months, pue.design))
    if tariff is not None and any(_hall(fleet)):
        fixed = Quote.user(tariff.fixed_usd_per_month)
        yield Line("energy", "connection", 1.0, "connection", fixed, (MONTHS_PER_YEAR,))


def carbon_lines(facts: Facts, fleet: Fleet) -> Iterator[Line]:
    """Carbon dioxide of the energy at the meter at the planner's price."""
    price = Quote.user(facts.instance.economics.carbon_usd_per_tonne)
    for one, servers in _hall(fleet):
        per_kwh = (one.pue.mean, facts.tonnes_per_kwh)
        yield Line("carbon", one.group.pool, servers, "servers", price, (one.idle_kw, HOURS_PER_YEAR, *per_kwh))
        requests = fleet.energy_kwh[one.group.pool].requests_kwh
        yield Line("carbon", one.group.pool, requests, "kWh/year", price, per_kwh)


def water_lines(facts: Facts, fleet: Fleet) -> Iterator[Line]:
    """Water of cooling at the planner's price."""
    price = Quote.user(facts.instance.economics.water_usd_per_m3)
    for one, servers in _hall(fleet):
        assert one.option is not None
        per_kwh = one.option.water_typical_l_per_kwh / 1000.0
        yield Line("water", one.group.pool, servers, "servers", price, (one.idle_kw, HOURS_PER_YEAR, per_kwh))
        requests = fleet.energy_kwh[one.group.pool].requests_kwh
        yield Line("water", one.group.pool, requests, "kWh/year", price, (per_kwh,))
