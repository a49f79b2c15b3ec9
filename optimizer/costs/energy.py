"""Energy of servers in the hall at the meter: idle power at every hour, requests, the peak, fixed charges."""

from collections.abc import Iterator

from optimizer.costs.over_time import running
from optimizer.costs.term import QuantityKey, Term
from optimizer.power_states import idle_air_kw
from optimizer.setting import Pool, Price, Setting
from optimizer.units import HOURS_PER_YEAR, MONTHS_PER_YEAR

COMPONENT = "energy"


def pool_idle_kw(setting: Setting, pool: Pool) -> float:
    """Power (kW) of one server of the pool with an engine loaded and no request, its network included."""
    row = pool.server_type.accelerator
    part = pool.server_type.accelerators / row.accelerators_per_server
    return pool.loaded_kw(idle_air_kw(row, setting.catalog.power_curves[row.generation]) * part)


def terms(setting: Setting) -> list[Term]:
    """Idle energy by server, energy above idle by kWh that requests cause, and what the tariff charges beside energy.

    Idle power is the same at every hour, so it pays the mean price of the year; requests pay the price of their level.
    """
    return [
        term for pool in setting.pools if pool.in_hall for term in (*_energy(setting, pool), *_demand(setting, pool))
    ] + list(_fixed(setting))


def _term(
    setting: Setting, item: str, key: QuantityKey, unit: str, price: Price, factors: tuple[tuple[str, float], ...]
) -> Iterator[Term]:
    """A term that rises with the energy price; none where the price is 0."""
    economics = setting.instance.economics
    if price.usd == 0.0:
        return
    grown = (*factors, *running(economics, economics.energy_escalation_fraction))
    yield Term(COMPONENT, item, key, unit, price.usd, grown, 0.0, price.source, price.as_of, price.trust)


def _energy(setting: Setting, pool: Pool) -> Iterator[Term]:
    price = setting.electricity
    idle = (("idle_kw", pool_idle_kw(setting, pool)), ("hours_per_year", HOURS_PER_YEAR), ("pue", pool.pue_mean))
    busy = (("pue", pool.pue_mean),)
    yield from _term(setting, f"{pool.id}: idle", ("Servers", pool.id), "servers", price, idle)
    if not setting.has_hourly_prices:
        yield from _term(setting, f"{pool.id}: requests", ("BusyKwh", pool.id), "kWh/year", price, busy)
        return
    for number, level in enumerate(setting.levels):
        assert level.usd_per_kwh is not None
        if level.hours_per_year > 0.0:
            at = Price(level.usd_per_kwh, price.source, price.as_of, price.trust)
            item = f"{pool.id}: requests at {level.fraction:.1%} of the peak"
            yield from _term(setting, item, ("LevelKwh", pool.id, str(number)), "kWh/year", at, busy)


def _demand(setting: Setting, pool: Pool) -> Iterator[Term]:
    """Charge on power at the peak in the hottest hour: what every server idles at, and what requests add there."""
    price = _stated(setting.demand_usd_per_kw_month)
    months, pue = ("months", MONTHS_PER_YEAR), ("pue", pool.pue_design)
    idle = (("idle_kw", pool_idle_kw(setting, pool)), months, pue)
    yield from _term(setting, f"{pool.id}: demand, idle", ("Servers", pool.id), "servers", price, idle)
    item = f"{pool.id}: demand, requests"
    yield from _term(setting, item, ("PeakKw", pool.id), "kW at the peak", price, (months, pue))


def _fixed(setting: Setting) -> Iterator[Term]:
    tariff = setting.instance.site.tariff
    if tariff is not None:
        months = (("months", MONTHS_PER_YEAR),)
        price = _stated(tariff.fixed_usd_per_month)
        yield from _term(setting, "connection", ("SiteUsed", "site"), "connection", price, months)


def _stated(usd: float) -> Price:
    return Price(usd, "stated by the user", "", "user")
