"""Owned servers: upkeep of what stands, and new servers in the years after their life. No capital while they live.

Energy and space of owned servers are those of any server in the hall (``energy``, ``space``). The network and the
cooling plant that they use stand as well: they are kept up, not bought.
"""

from optimizer.costs.cooling import heat_paths, plant_prices, plant_provenance
from optimizer.costs.finance import capital_recovery_factor
from optimizer.costs.network import fabric_usd
from optimizer.costs.term import Term
from optimizer.pool import Owned, Pool
from optimizer.setting import Setting


def replaced_fraction(rate: float, horizon_years: float, remaining_years: float) -> float:
    """Share of an annuity over the whole horizon that is paid when it starts after ``remaining_years`` only.

    ``1 - CRF(r, H) / CRF(r, R)``, 0 where the servers last the horizon: present worth of the years from R to H over
    that of all H.
    """
    if remaining_years >= horizon_years:
        return 0.0
    horizon = capital_recovery_factor(rate, horizon_years)
    return 1.0 - horizon / capital_recovery_factor(rate, remaining_years)


def terms(setting: Setting) -> list[Term]:
    """Upkeep of servers, network and cooling plant that stand, and replacement."""
    result: list[Term] = []
    for pool in setting.pools:
        if pool.owned is not None:
            result += _replacement(setting, pool, pool.owned)
            result += _upkeep(setting, pool, pool.owned)
            result += _plants(setting, pool)
    return result


def _replacement(setting: Setting, pool: Pool, owned: Owned) -> list[Term]:
    economics = setting.instance.economics
    share = replaced_fraction(economics.discount_rate, economics.horizon_years, owned.remaining_life_years)
    price = owned.new_server
    if share == 0.0 or price is None:
        return []
    annuity = capital_recovery_factor(economics.discount_rate, economics.server_life_years)
    factors = (("annuity_later", annuity), ("share_of_horizon", share))
    item = f"{pool.id}: new servers after {owned.remaining_life_years:g} years"
    provenance = (price.source, price.as_of, price.trust)
    return [Term("servers", item, ("Servers", pool.id), "servers", price.usd, factors, 0.0, *provenance)]


def _upkeep(setting: Setting, pool: Pool, owned: Owned) -> list[Term]:
    economics = setting.instance.economics
    key = ("Servers", pool.id)
    result = []
    if owned.upkeep_usd_per_year is not None:
        item, usd = f"{pool.id}: upkeep", owned.upkeep_usd_per_year
        result.append(Term("maintenance", item, key, "servers", usd, (), 0.0, "stated by the user", "", "user"))
    elif owned.new_server is not None and economics.server_maintenance_fraction:
        price = owned.new_server
        factors = (("maintenance_fraction", economics.server_maintenance_fraction),)
        item = f"{pool.id}: upkeep"
        source, as_of = price.source, price.as_of
        result.append(Term("maintenance", item, key, "servers", price.usd, factors, 0.0, source, as_of, "assumed"))
    if economics.network_maintenance_fraction:
        fabric = next(one for one in setting.fabrics[pool.server_type.accelerator.scale_out_gb_s] if one.tiers == 2)
        share = ("maintenance_fraction", economics.network_maintenance_fraction)
        kept = (("accelerators", float(pool.server_type.accelerators)), share)
        item, usd = f"{pool.id}: network that stands", fabric_usd(setting, fabric)
        source, as_of = fabric.source, fabric.as_of
        result.append(Term("maintenance", item, key, "servers", usd, kept, 0.0, source, as_of, "assumed"))
    return result


def _plants(setting: Setting, pool: Pool) -> list[Term]:
    """Maintenance of the plants that take the heat, by their share of it; the fixed part is nobody's share."""
    result = []
    for option, share in heat_paths(setting, pool):
        _, marginal, upkeep = plant_prices(setting, option)
        if marginal and upkeep:
            factors = (("heat_kw", pool.server_kw * share), ("maintenance_fraction", upkeep))
            item = f"{option.id} plant that stands for {pool.id}"
            key = ("Servers", pool.id)
            provenance = plant_provenance(setting, option)
            result.append(Term("cooling", item, key, "servers", marginal, factors, 0.0, *provenance))
    return result
