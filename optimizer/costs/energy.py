"""Energy of bought servers at the meter: idle power at every hour, and what requests add, times PUE."""

from optimizer.costs.term import Term
from optimizer.setting import Pool, Setting
from optimizer.units import HOURS_PER_YEAR

COMPONENT = "energy"


def pool_idle_kw(setting: Setting, pool: Pool) -> float:
    """Power (kW) of one server of the pool with an engine loaded and no request, its network included."""
    row = pool.server_type.accelerator
    curve = setting.catalog.power_curves[row.generation]
    rack_scale = row.accelerators_per_server > row.accelerators_per_host
    share = curve.idle_rack_scale_fraction if rack_scale else curve.idle_fraction
    part = pool.server_type.accelerators / row.accelerators_per_server
    return pool.loaded_kw(share * row.server_power_kw * part)


def terms(setting: Setting) -> list[Term]:
    """Idle energy by server, and energy above idle by kWh that requests cause, at the site's price."""
    price = setting.electricity
    provenance = (price.source, price.as_of, price.trust)
    result = []
    for pool in setting.pools:
        if not pool.is_bought or price.usd == 0.0:
            continue
        idle = (("idle_kw", pool_idle_kw(setting, pool)), ("hours_per_year", HOURS_PER_YEAR), ("pue", pool.pue_mean))
        result.append(
            Term(COMPONENT, f"{pool.id}: idle", ("Servers", pool.id), "servers", price.usd, idle, 0.0, *provenance)
        )
        busy = (("pue", pool.pue_mean),)
        result.append(
            Term(COMPONENT, f"{pool.id}: requests", ("BusyKwh", pool.id), "kWh/year", price.usd, busy, 0.0, *provenance)
        )
    return result
