"""Simple plans: one pool a class, one deployment and a few replicas of another; a bound from above and a start."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from optimizer.costs.cooling import plant_quantities
from optimizer.costs.network import network_quantities
from optimizer.costs.term import QuantityKey
from optimizer.program_data import Pair, ProgramData, replicas_needed
from optimizer.site_quantities import site_quantities
from optimizer.spares import spares_needed
from optimizer.units import HOURS_PER_YEAR

#: Simple plans tried for the bound from above.
_TRIED = 12


#: Replicas of the first deployment that are left to another one in them.
_LEFT_OVER = 3


@dataclass(frozen=True, slots=True)
class SimplePlan:
    """A plan: replicas by pair, servers and spares by pool, quantities of the cost terms, cost.

    ``running`` and ``used`` are replicas and servers by level, of pools whose servers are paid by level.
    """

    replicas: dict[Pair, int]
    servers: dict[str, int]
    spare: dict[str, int]
    quantities: dict[QuantityKey, float]
    usd_per_hour: float
    running: dict[tuple[str, str, str], int] = field(default_factory=dict)
    used: dict[tuple[str, str], int] = field(default_factory=dict)

    def start(self) -> dict[tuple[str, ...], float]:
        """Values of the program's counts that are not 0, to start from."""
        elastic = {q for q, _ in self.used}
        values: dict[tuple[str, ...], float] = {
            ("Replicas", *pair): float(count) for pair, count in self.replicas.items() if pair[1] not in elastic
        }
        for name, counts in (("Servers", self.servers), ("Spare", self.spare)):
            values |= {(name, q): float(count) for q, count in counts.items()}
        values |= {("Running", *key): float(count) for key, count in self.running.items()}
        return values | {("Used", *key): float(count) for key, count in self.used.items()}


def best_simple_plan(data: ProgramData, extra: list[float]) -> SimplePlan | None:
    """The cheapest plan found among simple ones that keep every cap; None when none does.

    A simple plan serves each class in one pool, with one deployment and, for what is left of the demand, a few
    replicas of another one. Classes are ranked apart and combined rank by rank.
    """
    ranked: dict[int, list[Pair]] = {}
    for b in range(len(data.demand)):
        members = [
            (more * replicas_needed(data.demand[b], data.pair_capacity(d, q)), (d, q))
            for more, (d, q) in zip(extra, data.pairs, strict=True)
            if data.deployments[d].class_index == b
        ]
        ranked[b] = [pair for _, pair in sorted(members)]
        if not ranked[b]:
            return None
    best: SimplePlan | None = None
    for number in range(min(_TRIED, max(len(members) for members in ranked.values()))):
        chosen = {b: members[min(number, len(members) - 1)] for b, members in ranked.items()}
        for replicas in _fillings(data, chosen):
            plan = simple_plan(data, replicas)
            if plan is not None and (best is None or plan.usd_per_hour < best.usd_per_hour):
                best = plan
    for replicas in _split_by_level(data, ranked):
        plan = simple_plan(data, replicas)
        if plan is not None and (best is None or plan.usd_per_hour < best.usd_per_hour):
            best = plan
    return best


def _split_by_level(data: ProgramData, ranked: Mapping[int, list[Pair]]) -> Iterator[dict[Pair, int]]:
    """Plans of one class with rented servers that are paid always, in whole servers, and what is left paid by level."""
    if len(ranked) > 1 or not data.elastic:
        return
    rented = [pair for pair in ranked[0] if not data.pools[pair[1]].in_hall]
    always = [pair for pair in rented if pair[1] not in data.elastic][:_TRIED]
    by_level = [pair for pair in ranked[0] if pair[1] in data.elastic][:_TRIED]
    for d, q in always:
        each = max(1, round(1.0 / data.deployments[d].servers_per_replica))
        for count in range(each, replicas_needed(data.demand[0], data.pair_capacity(d, q)), each):
            rest = data.demand[0] - count * data.pair_capacity(d, q)
            for other, home in by_level:
                yield {(d, q): count, (other, home): replicas_needed(rest, data.pair_capacity(other, home))}


def _fillings(data: ProgramData, chosen: dict[int, Pair]) -> Iterator[dict[Pair, int]]:
    """Replicas that serve each class: its own pair alone, then with some of them left to another deployment there."""
    alone = {pair: replicas_needed(data.demand[b], data.pair_capacity(*pair)) for b, pair in chosen.items()}
    yield alone
    if len(chosen) > 1:
        return
    ((b, (d, q)),) = chosen.items()
    for other, home in data.pairs:
        if home != q or other == d or data.deployments[other].class_index != b:
            continue
        for fewer in range(1, min(_LEFT_OVER, alone[d, q]) + 1):
            left = alone[d, q] - fewer
            rest = data.demand[b] - left * data.pair_capacity(d, q)
            yield {(d, q): left, (other, q): replicas_needed(rest, data.pair_capacity(other, q))}


def simple_plan(data: ProgramData, replicas: Mapping[Pair, int]) -> SimplePlan | None:
    """The plan of these replicas; None where it breaks a cap or outgrows the bounds.

    Every class is served at every level.
    """
    if len(replicas) > len(data.demand) and any(q in data.patterns_by_pool for _, q in replicas):
        return None
    in_service = _servers_in_service(data, replicas)
    spare = _spares(data, in_service)
    servers = {q: count + spare.get(q, 0) for q, count in in_service.items()}
    if any(count > data.max_servers[q] for q, count in servers.items()):
        return None
    running = _running(data, replicas)
    used = _used(data, replicas, running)
    quantities = _quantities(data, replicas, servers, _busy_kw(data, replicas))
    if quantities is None:
        return None
    for (q, name), count in used.items():
        hours = data.billed_levels[name].hours_per_year * count
        quantities["ServerHours", q] = quantities.get(("ServerHours", q), 0.0) + hours
    if not _within_caps(data, servers, quantities):
        return None
    usd = _total(data.yearly_by_quantity, quantities) / HOURS_PER_YEAR
    return SimplePlan(dict(replicas), servers, spare, quantities, usd, running, used)


def by_level(
    data: ProgramData, replicas: Mapping[Pair, int]
) -> tuple[dict[Pair, tuple[int, ...]], dict[str, tuple[int, ...]]]:
    """(replicas, servers) at each level that lasts, of pools whose servers are paid by level: as few as serve it."""
    running = _running(data, replicas)
    used = _used(data, replicas, running)
    pairs = {pair for pair in replicas if pair[1] in data.elastic}
    return (
        {pair: tuple(running[(*pair, name)] for name in data.billed_levels) for pair in pairs},
        {q: tuple(used.get((q, name), 0) for name in data.billed_levels) for q in {q for _, q in pairs}},
    )


def _used(
    data: ProgramData, replicas: Mapping[Pair, int], running: Mapping[tuple[str, str, str], int]
) -> dict[tuple[str, str], int]:
    """Servers of each pool paid by level at each level."""
    used: dict[tuple[str, str], int] = {}
    for name in data.billed_levels:
        at = {pair: running[(*pair, name)] for pair in replicas if pair[1] in data.elastic}
        used |= {(q, name): count for q, count in _servers_in_service(data, at).items()}
    return used


def _running(data: ProgramData, replicas: Mapping[Pair, int]) -> dict[tuple[str, str, str], int]:
    """Replicas by level in pools paid by level: as many as a level needs, of the first deployments of a class first."""
    running: dict[tuple[str, str, str], int] = {}
    for name, level in data.billed_levels.items():
        left = [level.fraction * demand for demand in data.demand]
        for pair, count in replicas.items():
            b = data.deployments[pair[0]].class_index
            needed = min(count, replicas_needed(left[b], data.pair_capacity(*pair)))
            left[b] = max(0.0, left[b] - needed * data.pair_capacity(*pair))
            if pair[1] in data.elastic:
                running[(*pair, name)] = needed
    return running


def _total(prices: Mapping[QuantityKey, float], quantities: Mapping[QuantityKey, float]) -> float:
    return sum(prices.get(key, 0.0) * amount for key, amount in quantities.items())


def _servers_in_service(data: ProgramData, replicas: Mapping[Pair, int]) -> dict[str, int]:
    """Whole servers by pool; where widths do not nest each deployment fills servers of its own."""
    taken: dict[str, float] = {}
    for (d, q), count in replicas.items():
        servers = count * data.deployments[d].servers_per_replica
        taken[q] = taken.get(q, 0.0) + (math.ceil(servers - 1e-9) if q in data.patterns_by_pool else servers)
    return {q: math.ceil(servers - 1e-9) for q, servers in taken.items()}


def _spares(data: ProgramData, in_service: Mapping[str, int]) -> dict[str, int]:
    """Spares of each type in the hall, all in the first pool of the type in use."""
    targets = data.setting.instance.targets
    own: dict[str, list[str]] = {}
    for q in in_service:
        if data.pools[q].in_hall:
            own.setdefault(data.pools[q].server_type.id, []).append(q)
    result = {}
    for members in own.values():
        total = sum(in_service[q] for q in members)
        result[members[0]] = spares_needed(targets, data.pools[members[0]].server_type.accelerators, total)
    return result


def _busy_kw(data: ProgramData, replicas: Mapping[Pair, int]) -> dict[str, float]:
    """Power above idle at the peak by pool of the hall, before PUE; at every level in proportion to its load.

    Requests go to deployments by their capacity, the same share at every level.
    """
    capacity = [0.0] * len(data.demand)
    for (d, q), count in replicas.items():
        capacity[data.deployments[d].class_index] += data.pair_capacity(d, q) * count
    result: dict[str, float] = {}
    for (d, q), count in replicas.items():
        one, pool = data.deployments[d], data.pools[q]
        if pool.in_hall:
            share = data.pair_capacity(d, q) * count / capacity[one.class_index]
            rate = data.demand[one.class_index] / one.demand_weight * share
            result[q] = result.get(q, 0.0) + rate * data.busy_kwh_per_request_rate(one, pool)
    return result


def _within_caps(data: ProgramData, servers: Mapping[str, int], quantities: Mapping[QuantityKey, float]) -> bool:
    """Whether a fleet keeps every cap of the instance."""
    instance = data.setting.instance
    economics, site, choices = instance.economics, instance.site, instance.choices
    bought = {q: count for q, count in servers.items() if data.pools[q].in_hall}
    power = sum(data.pools[q].server_kw * data.pools[q].pue_design * count for q, count in bought.items())
    racks = sum(-(-count // data.pools[q].per_rack) for q, count in bought.items())
    capital = _total(data.capital_by_quantity, quantities)
    yearly = _total(data.yearly_by_quantity, quantities)
    used: dict[str, int] = {}
    for q, count in servers.items():
        row = data.pools[q].server_type
        used[row.accelerator.id] = used.get(row.accelerator.id, 0) + count * row.accelerators
    rented: dict[tuple[str, str], int] = {}
    for q, count in servers.items():
        pool = data.pools[q]
        key = (pool.provider.casefold(), pool.server_type.accelerator.id)
        rented[key] = rented.get(key, 0) + count * pool.server_type.accelerators
    return (
        all(rented.get(key, 0) <= most for key, most in data.setting.provider_limits.items())
        and (economics.budget_capex_usd is None or capital <= economics.budget_capex_usd)
        and (economics.budget_usd_per_year is None or yearly <= economics.budget_usd_per_year)
        and (site.power_kw is None or power <= site.power_kw)
        and (site.racks is None or racks <= site.racks)
        and (site.floor_m2 is None or racks * site.rack_floor_m2 <= site.floor_m2)
        and all(
            sum(
                share * (data.idle_kw[q] * HOURS_PER_YEAR * servers[q] + quantities["BusyKwh", q])
                for q, share in per_kwh.items()
                if q in servers
            )
            <= most
            for _, most, per_kwh in data.environment_caps
        )
        and all(count <= choices.supply.get(key, count) for key, count in used.items())
        and all(
            sum(any(q in bought for q in data.server_types[n]) for n in several) <= 1
            for several in data.power_states.values()
        )
        and (choices.max_accelerator_types is None or len(used) <= choices.max_accelerator_types)
    )


def _quantities(
    data: ProgramData, pairs: Iterable[Pair], counts: dict[str, int], busy: dict[str, float]
) -> dict[QuantityKey, float] | None:
    """Quantities of the cost terms for given servers; None where a count falls outside every price step."""
    quantities: dict[QuantityKey, float] = {("SpaceKw",): 0.0}
    bought: dict[str, int] = {}
    accelerators: dict[float, int] = {}
    for q, count in counts.items():
        pool = data.pools[q]
        quantities["Servers", q] = float(count)
        if pool.in_hall:
            quantities["Racks", q] = float(-(-count // pool.per_rack))
            above = busy.get(q, 0.0)
            for name, level in data.billed_levels.items():
                kwh = above * level.fraction * level.hours_per_year
                quantities["LevelKwh", q, name] = kwh
                quantities["BusyKwh", q] = quantities.get(("BusyKwh", q), 0.0) + kwh
            quantities["PeakKw", q] = above
        if pool.is_bought:
            bought[pool.server_type.id] = bought.get(pool.server_type.id, 0) + count
            speed = pool.server_type.accelerator.scale_out_gb_s
            accelerators[speed] = accelerators.get(speed, 0) + count * pool.server_type.accelerators
    for plant, members in data.heat_shares.items():
        heat = sum(kw * counts[q] for q, kw in members.items() if q in counts)
        if heat:
            quantities |= plant_quantities(data.setting, data.plants[plant], heat)
    for d, _ in pairs:
        quantities["SchemePrepared", data.deployments[d].scheme] = 1.0
    for type_id, count in bought.items():
        tier = next(
            (key for key, (low, high) in data.server_tiers.items() if key[0] == type_id and low <= count <= high), None
        )
        if tier is None:
            return None
        quantities[("TierServers", *tier)] = float(count)
        quantities[("TierUsed", *tier)] = 1.0
    for speed, count in accelerators.items():
        if all(s != speed or count > high for _, high, s in data.fabric_tiers.values()):
            return None
        quantities |= network_quantities(data.setting, speed, count)
    return quantities | site_quantities(data, counts, _total(data.capital_by_quantity, quantities))
