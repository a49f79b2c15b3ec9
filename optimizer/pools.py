"""Which pools are worth offering: of two ways to get and cool the same servers, one may be no worse throughout."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from optimizer.costs.cooling import may_order_more
from optimizer.costs.term import QuantityKey
from optimizer.program_data import Offered, Pair, ProgramData
from optimizer.setting import Pool, Setting


@dataclass(frozen=True, slots=True)
class _Figures:
    """Figures of one server, none better when larger; what is not limited is 0.

    ``idle_usd`` is the cost of an idle server in each hall that may be used; ``busy_usd`` what each deployment, busy at
    each load level all the time, adds to it; ``limited`` all that a cap counts: power at the meter, carbon and water at
    idle and with each deployment busy at every hour. ``freed_usd`` and ``freed_capital_usd`` are what one server less
    saves at the least: a plant whose price falls with its size may cost no less when some of its heat goes.
    """

    idle_usd: tuple[float, ...]
    freed_usd: tuple[float, ...]
    busy_usd: tuple[tuple[float, ...], ...]
    limited: tuple[float, ...]
    capital_usd: float
    freed_capital_usd: float


def undominated_offers(setting: Setting, pools: Mapping[str, Pool]) -> dict[str, Pool]:
    """Pools without rented ones that another offer of the same server type replaces at no more cost.

    Offer ``b`` replaces ``a`` when it costs no more an accelerator-hour, serves as much of the paid time, has no limit
    of its provider's supply, and is paid by load level or ``a`` is not. Proof: move every server of ``a`` to ``b``,
    level by level; nothing but price and the provider's limit tells the two apart. Of equals the first stays.
    """
    rented: dict[str, list[Pool]] = {}
    for pool in pools.values():
        if not pool.in_hall:
            rented.setdefault(pool.server_type.id, []).append(pool)
    removed: set[str] = set()
    for members in rented.values():
        for place, a in enumerate(members):
            for other, b in enumerate(members):
                if other == place or b.id in removed or not _replaces(setting, b, a):
                    continue
                if other < place or not _replaces(setting, a, b):
                    removed.add(a.id)
                    break
    return {key: pool for key, pool in pools.items() if key not in removed}


def _replaces(setting: Setting, b: Pool, a: Pool) -> bool:
    limited = (b.provider.casefold(), b.server_type.accelerator.id) in setting.provider_limits
    return (
        b.rent_price.usd <= a.rent_price.usd
        and b.availability >= a.availability
        and not limited
        and (setting.is_elastic(b) or not setting.is_elastic(a))
    )


def undominated_pools(data: ProgramData) -> tuple[str, ...]:
    """Pools that some optimal plan may need, in the order of ``data.pools``.

    Pool ``a`` of a server type is dominated by pool ``b`` of the same type when all of these hold:

    * both are rented and ``b`` replaces it as an offer (``undominated_offers``); or both are bought and
    * one server of ``b`` costs no more a year than one of ``a``, with any deployment busy at any load levels for any
      share of them (cost is linear in these shares), even if moving servers there needs more racks; and no more capital
      when capital is limited;
    * a server of ``b`` draws no more at the meter when power is limited, causes no more carbon and water when they are,
      idle and busy, and a rack holds as many when racks are limited;
    * building the plants that ``b`` needs and ``a`` does not costs nothing that is fixed; or ``b`` dominates ``a``'s
      cooling option so for every server type, and that fixed cost is no more than what is saved when the plant of
      ``a`` is not built.

    Proof: move every server of ``a`` to ``b`` with its replicas and requests. Packing, demand, spares, supply, tiers
    and fabrics count servers of a type whatever pool they are in; racks, power, capital and cost do not rise. Of
    equal pools the first stays.
    """
    better = dominating_pools(data)
    removed: set[str] = set()
    order = {q: position for position, q in enumerate(data.pools)}
    for a in data.pools:
        if any(b not in removed and not (a in better[b] and order[a] < order[b]) for b in better[a]):
            removed.add(a)
    return tuple(q for q in data.pools if q not in removed)


def dominating_pools(data: ProgramData) -> dict[str, set[str]]:
    """For each pool those that dominate it (``undominated_pools`` says when), itself left out."""
    groups = data.server_types
    by_type: dict[str, list[Offered]] = {}
    for one in data.deployments.values():
        by_type.setdefault(one.server_type, []).append(one)
    better: dict[str, set[str]] = {}
    for type_id, members in groups.items():
        bought = [q for q in members if data.pools[q].is_bought]
        rented = [q for q in members if not data.pools[q].in_hall]
        figures = {q: _figures(data, data.pools[q], by_type.get(type_id, [])) for q in bought}
        for q in members:
            better[q] = set()
        for a in bought:
            better[a] = {b for b in bought if b != a and _no_worse(data, a, b, figures)}
        for a in rented:
            better[a] = {b for b in rented if b != a and _replaces(data.setting, data.pools[b], data.pools[a])}
    return {
        a: {b for b in members if not data.pools[a].is_bought or _plants_allow(data, a, b, better, groups)}
        for a, members in better.items()
    }


def _no_worse(data: ProgramData, a: str, b: str, figures: Mapping[str, _Figures]) -> bool:
    """Whether servers of ``a`` may be moved to ``b`` without a figure rising, racks included."""
    pool_a, pool_b = data.pools[a], data.pools[b]
    capped = data.setting.instance.site.racks is not None or data.setting.instance.site.floor_m2 is not None
    if pool_b.per_rack < pool_a.per_rack and capped:
        return False
    counts = np.arange(1, data.max_servers[a] + 1)

    def racks_usd(prices: Mapping[QuantityKey, float]) -> float:
        """Most that racks cost more for one moved server, over every count that may be moved."""
        there, here = (-(-counts // pool.per_rack) * prices.get(("Racks", pool.id), 0.0) for pool in (pool_b, pool_a))
        return float(np.max((there - here) / counts, initial=0.0))

    rack_usd = racks_usd(data.yearly_by_quantity)
    one, other = figures[a], figures[b]
    limited = data.setting.instance.economics.budget_capex_usd is not None
    # At worst each level is busy with what costs most more there, or not at all.
    more = [
        [y - x for x, y in zip(here, there, strict=True)]
        for here, there in zip(one.busy_usd, other.busy_usd, strict=True)
    ]
    worst = sum(max(0.0, *of_level) for of_level in zip(*more, strict=True))
    return (
        all(y + rack_usd + worst <= x for x, y in zip(one.freed_usd, other.idle_usd, strict=True))
        and all(y <= x for x, y in zip(one.limited, other.limited, strict=True))
        and (not limited or other.capital_usd + racks_usd(data.capital_by_quantity) <= one.freed_capital_usd)
    )


def _figures(data: ProgramData, pool: Pool, deployments: Iterable[Offered]) -> _Figures:
    """What one server of a pool costs and takes."""
    instance = data.setting.instance
    heat = {plant: members[pool.id] for plant, members in data.heat_shares.items() if pool.id in members}

    def per_server(prices: Mapping[QuantityKey, float]) -> tuple[float, float]:
        """(at the most for one more, at the least for one less)."""
        own = prices.get(("Servers", pool.id), 0.0)
        plants = [(kw, *_plant_usd_per_kw(data, prices, plant)) for plant, kw in heat.items()]
        return own + sum(kw * most for kw, _, most in plants), own + sum(kw * least for kw, least, _ in plants)

    above = [pool.loaded_kw(one.busy_air_kw) - data.idle_kw[pool.id] for one in deployments]
    limited = [pool.server_kw * pool.pue_design] if instance.site.power_kw is not None else []
    # Posts of an own hall come in whole steps by the kW; a capital budget may decide between halls.
    if instance.site.facility != "colocation":
        limited.append(pool.server_kw)
    for _, _, per_kwh in data.environment_caps:
        limited += [per_kwh[pool.id] * (data.idle_kw[pool.id] + kw) for kw in (0.0, *above)]
    # Where either hall may be used the kW themselves are compared.
    space = data.capital_by_quantity.get(("SpaceKw",), 0.0) * pool.server_kw
    yearly, capital = (per_server(prices) for prices in (data.yearly_by_quantity, data.capital_by_quantity))
    capped = instance.economics.budget_capex_usd is not None
    return _Figures(
        idle_usd=tuple(yearly[0] + usd * pool.server_kw for usd in data.space_usd_per_kw),
        freed_usd=tuple(yearly[1] + usd * pool.server_kw for usd in data.space_usd_per_kw),
        busy_usd=tuple(tuple(kw * usd for usd in data.usd_per_busy_kw[pool.id].values()) for kw in above),
        limited=tuple(limited),
        capital_usd=capital[0] + space if capped else 0.0,
        freed_capital_usd=capital[1] + space if capped else 0.0,
    )


def _plant_usd_per_kw(data: ProgramData, prices: Mapping[QuantityKey, float], plant: str) -> tuple[float, float]:
    """(least, most) by which 1 kW of heat moves the cost of a plant, whatever else it takes.

    Under a discount of all units a whole range of sizes costs as much as the start of the next step, so a kW may be
    free; elsewhere its price lies between those of the last step and of the first.
    """
    steps = [prices.get(("PlantTierKw", *key), 0.0) for key in data.plant_tiers if key[0] == plant]
    if not steps:
        return (prices.get(("PlantKw", plant), 0.0),) * 2
    free = may_order_more(data.setting, data.plants[plant])
    return 0.0 if free else min(steps), max(steps)


def _fixed_usd(data: ProgramData, plants: Iterable[str]) -> tuple[float, float]:
    """(USD per year, USD at the start where capital is limited) of building plants, whatever their size."""
    keys = [("PlantBuilt", plant) for plant in plants]
    limited = data.setting.instance.economics.budget_capex_usd is not None
    yearly = sum(data.yearly_by_quantity.get(key, 0.0) for key in keys)
    return yearly, sum(data.capital_by_quantity.get(key, 0.0) for key in keys) if limited else 0.0


def _plants_allow(
    data: ProgramData, a: str, b: str, better: Mapping[str, set[str]], groups: Mapping[str, tuple[str, ...]]
) -> bool:
    """Whether the fixed cost of ``b``'s plants is covered."""
    shares = data.heat_shares
    needed = [plant for plant, members in shares.items() if b in members and a not in members]
    cost = _fixed_usd(data, needed)
    if cost == (0.0, 0.0):
        return True
    mine, theirs = data.pools[a].cooling, data.pools[b].cooling
    assert mine is not None
    assert theirs is not None
    everywhere = all(
        any(data.pools[other].cooling is theirs and other in better[q] for other in members)
        for members in groups.values()
        for q in members
        if data.pools[q].cooling is mine
    )
    # The air plant may stay for what liquid options leave in the air; then nothing is saved.
    stays = mine.id == data.setting.residual.id and any(
        pool.cooling is not None and pool.cooling.medium == "liquid" for pool in data.pools.values()
    )
    saved = (0.0, 0.0) if stays else _fixed_usd(data, [mine.id])
    return everywhere and cost[0] <= saved[0] and cost[1] <= saved[1]


def undominated_schemes(data: ProgramData) -> list[Pair]:
    """Pairs of schemes that some optimal plan may need, in the order of ``data.pairs``.

    Scheme ``s`` is dominated by scheme ``t`` when preparing ``t`` costs no more and each deployment of ``s`` has one
    of ``t`` of the same class and server type that takes no more accelerators and no more of a server, carries at
    least as much and adds no more energy per unit of demand. Proof: replace every replica of ``s`` by that one of
    ``t``, on the same accelerators with the same demand; ``s`` need not be prepared any more, which pays for ``t``.
    Two recovery steps of one format differ in cost alone, so only the cheaper is left. Of equal schemes the first in
    name stays.
    """
    better = dominating_schemes(data)
    removed: set[str] = set()
    for s in sorted(better):
        if any(t not in removed and not (s < t and s in better[t]) for t in better[s]):
            removed.add(s)
    return [pair for pair in data.pairs if data.deployments[pair[0]].scheme not in removed]


def dominating_schemes(data: ProgramData) -> dict[str, set[str]]:
    """For each scheme those that dominate it (``undominated_schemes`` says when), itself left out."""
    prepared = {key[1]: usd for key, usd in data.yearly_by_quantity.items() if key[0] == "SchemePrepared"}
    schemes = sorted({one.scheme for one in data.deployments.values()})
    members = {s: [one for one in data.deployments.values() if one.scheme == s] for s in schemes}
    figures = {key: _needs(data, one) for key, one in data.deployments.items()}

    def beats(t: str, s: str) -> bool:
        if prepared.get(t, 0.0) > prepared.get(s, 0.0):
            return False
        return all(any(_covers(figures[b.id], figures[a.id]) for b in members[t]) for a in members[s])

    return {s: {t for t in schemes if t != s and beats(t, s)} for s in schemes}


def _needs(data: ProgramData, one: Offered) -> tuple[int, str, int, float, float, float]:
    """Class and server type of a deployment, then width, share of a server, capacity and energy per unit of demand."""
    capacity = data.capacity[one.id]
    hall = [data.pools[q] for q in data.server_types[one.server_type] if data.pools[q].in_hall]
    # Rented servers' energy is in their price.
    energy = data.busy_kwh_per_request_rate(one, hall[0]) / one.demand_weight if hall else 0.0
    return one.class_index, one.server_type, one.width, one.servers_per_replica, capacity, energy


def _covers(one: tuple[int, str, int, float, float, float], other: tuple[int, str, int, float, float, float]) -> bool:
    """Whether a replica of ``one`` may stand wherever one of ``other`` stood."""
    return (
        one[:2] == other[:2] and one[2] <= other[2] and one[3] <= other[3] and one[4] >= other[4] and one[5] <= other[5]
    )
