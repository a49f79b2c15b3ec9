"""Carbon dioxide and water of servers in the hall: what a tonne and a cubic metre cost, where they have a price."""

from optimizer.catalog.rows import Trust
from optimizer.costs.energy import pool_idle_kw
from optimizer.costs.term import Term
from optimizer.setting import Pool, Setting
from optimizer.units import HOURS_PER_YEAR, L_PER_M3

CARBON, WATER = "carbon", "water"


def carbon_terms(setting: Setting) -> list[Term]:
    """Carbon price times the grid's carbon of energy at the meter."""
    usd = setting.instance.economics.carbon_usd_per_tonne
    if usd == 0.0:
        return []
    per_kwh = setting.tonnes_per_kwh()
    return [
        term
        for pool in setting.pools
        if pool.in_hall
        for term in _lines(setting, pool, CARBON, usd, (("pue", pool.pue_mean), ("tonnes_per_kwh", per_kwh)))
    ]


def water_terms(setting: Setting) -> list[Term]:
    """Water price times what the cooling option takes for a kWh of IT energy."""
    usd = setting.instance.economics.water_usd_per_m3
    if usd == 0.0:
        return []
    return [
        term
        for pool in setting.pools
        if pool.in_hall and water_m3_per_kwh(pool) > 0.0
        for term in _lines(setting, pool, WATER, usd, (("m3_per_kwh", water_m3_per_kwh(pool)),))
    ]


def water_m3_per_kwh(pool: Pool) -> float:
    """Water (m3) that cooling takes for one kWh of IT energy of a pool; rented servers' water is nobody's here."""
    return 0.0 if pool.cooling is None else pool.cooling.water_typical_l_per_kwh / L_PER_M3


def _lines(
    setting: Setting, pool: Pool, component: str, usd: float, per_kwh: tuple[tuple[str, float], ...]
) -> list[Term]:
    """What a server takes at idle, and what each kWh of requests adds."""
    idle = (("idle_kw", pool_idle_kw(setting, pool)), ("hours_per_year", HOURS_PER_YEAR), *per_kwh)
    user: tuple[str, str, Trust] = ("stated by the user", "", "user")
    return [
        Term(component, f"{pool.id}: idle", ("Servers", pool.id), "servers", usd, idle, 0.0, *user),
        Term(component, f"{pool.id}: requests", ("BusyKwh", pool.id), "kWh/year", usd, per_kwh, 0.0, *user),
    ]
