"""Leaving out what no optimal plan can contain: a bound from below against a plan that exists.

A small linear program over replicas and rates alone bounds every plan from below: it prices each replica at the least
its servers can cost (cheapest step of every price, spares and racks shared out), charges what is built once by the
share of demand it serves, and forgets every cap. When one whole replica of a (deployment, pool) pair lifts that bound
above the cost of a simple plan at hand, no optimal plan contains it.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import highspy
import numpy as np

from optimizer.costs.term import QuantityKey
from optimizer.program_data import Pair, ProgramData, replicas_needed
from optimizer.units import HOURS_PER_YEAR

#: Simple plans tried for the bound from above.
_TRIED = 12
#: Replicas of the first deployment that are left to another one in them.
_LEFT_OVER = 3
#: Relative margin that keeps rounding errors from cutting off an optimal plan.
_MARGIN = 1e-7


@dataclass(frozen=True, slots=True)
class SimplePlan:
    """A plan: replicas by pair, servers and spares by pool, quantities of the cost terms, cost."""

    replicas: dict[Pair, int]
    servers: dict[str, int]
    spare: dict[str, int]
    quantities: dict[QuantityKey, float]
    usd_per_hour: float


def prune(data: ProgramData) -> ProgramData:
    """The same program with fewer pairs and smaller bounds, and the same optimum."""
    bound, extra = lower_bound(data)
    plan = best_simple_plan(data, extra)
    if plan is None or not math.isfinite(bound):
        return data
    limit = plan.usd_per_hour * (1.0 + _MARGIN) + 1e-9
    data = _affordable(data, limit)
    bound, extra = lower_bound(data)
    kept = [pair for pair, more in zip(data.pairs, extra, strict=True) if bound + more <= limit]
    start: dict[tuple[str, ...], float] = {("Replicas", *pair): float(count) for pair, count in plan.replicas.items()}
    start |= {("Servers", q): float(count) for q, count in plan.servers.items()}
    start |= {("Spare", q): float(count) for q, count in plan.spare.items()}
    # The simple plan's own pairs are kept: each costs no more than the plan.
    return replace(data.only_pairs(kept), start=start)


def _affordable(data: ProgramData, limit: float) -> ProgramData:
    """The same program with no more servers of a pool, or of a type, than ``limit`` USD/hour pays for.

    No optimal plan costs more than ``limit``. Small fleets gain most: a spare for few servers is a large share of them.
    """
    alone = least_server_usd_per_hour(data, spares=False)
    most = {q: _paid(limit, alone[q], data.max_servers[q]) for q in data.pools}
    in_service = {
        type_id: min(count, max((_paid(limit, alone[q], count) for q in data.server_types[type_id]), default=0))
        for type_id, count in data.max_in_service.items()
        if type_id in data.server_types
    }
    smaller = replace(data, max_servers=most, max_in_service={**data.max_in_service, **in_service})
    return smaller.with_terms(data.terms)


def _paid(limit: float, usd_per_hour: float, most: int) -> int:
    """Servers that a budget pays for, at most ``most``."""
    return most if usd_per_hour <= 0.0 else min(most, math.floor(limit / usd_per_hour + 1e-6))


def least_server_usd_per_hour(data: ProgramData, *, spares: bool = True) -> dict[str, float]:
    """Least cost (USD/hour) of one server of each pool, racks (and spares) shared out, nothing fixed."""
    yearly = data.yearly_by_quantity
    tiers: dict[str, float] = {}
    for key, usd in yearly.items():
        if key[0] == "TierServers":
            tiers[key[1]] = min(tiers.get(key[1], math.inf), usd)
    fabrics: dict[float, float] = {}
    for fabric, (_, _, speed) in data.fabric_tiers.items():
        fabrics[speed] = min(fabrics.get(speed, math.inf), yearly.get(("FabricAccelerators", fabric), 0.0))
    shares = data.heat_shares
    result = {}
    for q, pool in data.pools.items():
        usd = yearly.get(("Servers", q), 0.0)
        if pool.is_bought:
            server_type = pool.server_type
            usd += yearly.get(("SpaceKw",), 0.0) * pool.server_kw
            usd += sum(members[q] * yearly.get(("PlantKw", k), 0.0) for k, members in shares.items() if q in members)
            usd += tiers.get(server_type.id, 0.0)
            usd += server_type.accelerators * fabrics.get(server_type.accelerator.scale_out_gb_s, 0.0)
            usd += yearly.get(("Racks", q), 0.0) / pool.per_rack
        result[q] = usd / HOURS_PER_YEAR
    if not spares:
        return result
    # Spares may stand in any bought pool of their type.
    for type_id, members in data.server_types.items():
        own = [q for q in members if data.pools[q].is_bought]
        if own:
            spare = data.least_spare_share(type_id) * min(result[q] for q in own)
            result.update({q: result[q] + spare for q in own})
    return result


def lower_bound(data: ProgramData) -> tuple[float, list[float]]:
    """(USD/hour below which no plan lies, what one whole replica of each pair adds to it at least).

    Columns: replicas of each pair; rates of each pair and level as shares of the class's demand; what is built or
    prepared once (plants, schemes), 0..1; servers in service of each pool. Rows: capacity carries the peak; demand is
    served at each level; a rate needs replicas; the share of a class's demand that uses something built once is at most
    how much of it is built; replicas fit their servers; a pool that serves a share of a class has at least that share
    of one server (a pool in use has a whole one). Both shares hold at the peak too, of the most capacity that an
    optimal plan has.
    """
    servers = least_server_usd_per_hour(data)
    yearly = data.yearly_by_quantity
    levels = [level for level in data.billed_levels.values() if level.fraction > 0.0]
    n, classes = len(data.pairs), len(data.demand)
    once = _built_once(data)
    first_once = n * (1 + len(levels))
    place = {q: first_once + len(once) + number for number, q in enumerate(data.pools)}
    builder = _Rows(first_once + len(once) + len(place))
    demand = [builder.row(1.0, math.inf) for _ in range(classes)]
    served = [[builder.row(level.fraction, level.fraction) for _ in range(classes)] for level in levels]
    for position, (usd, _) in enumerate(once):
        builder.cost[first_once + position] = usd / HOURS_PER_YEAR
        builder.upper[first_once + position] = 1.0
    packed = {q: builder.row(-math.inf, 0.0) for q in place}
    whole = {
        (q, number, b): builder.row(-math.inf, 0.0)
        for q in place
        for number in range(len(levels))
        for b in range(classes)
    }
    peak = {(q, b): builder.row(-math.inf, 0.0) for q in place for b in range(classes)}
    peak_once = [[builder.row(-math.inf, 0.0) for _ in range(classes)] for _ in once]
    most = data.most_capacity
    for (q, _), row in peak.items():
        builder.entry(row, place[q], -1.0)
    for position, rows in enumerate(peak_once):
        for row in rows:
            builder.entry(row, first_once + position, -1.0)
    for q, column in place.items():
        builder.cost[column] = servers[q]
        builder.entry(packed[q], column, -1.0)
    for (q, number, _), row in whole.items():
        builder.entry(row, place[q], -levels[number].fraction)
    shared = [[[builder.row(-math.inf, 0.0) for _ in range(classes)] for _ in levels] for _ in once]
    for position in range(len(once)):
        for number, level in enumerate(levels):
            for b in range(classes):
                builder.entry(shared[position][number][b], first_once + position, -level.fraction)
    for i, (d, q) in enumerate(data.pairs):
        one, pool = data.deployments[d], data.pools[q]
        b = one.class_index
        builder.entry(packed[q], i, one.servers_per_replica)
        builder.entry(peak[q, b], i, data.capacity[d] / most[b])
        for position, (_, users) in enumerate(once):
            if (d, q) in users:
                builder.entry(peak_once[position][b], i, data.capacity[d] / most[b])
        builder.entry(demand[b], i, data.capacity[d] / data.demand[b])
        per_rate = (
            data.busy_kwh_per_request_rate(one, pool) * yearly.get(("BusyKwh", q), 0.0) if pool.is_bought else 0.0
        )
        rate = data.demand[b] / one.demand_weight
        for number, level in enumerate(levels):
            column = n * (1 + number) + i
            builder.cost[column] = per_rate * rate * level.hours_per_year / HOURS_PER_YEAR
            builder.entry(served[number][b], column, 1.0)
            builder.entry(whole[q, number, b], column, 1.0)
            limit = builder.row(-math.inf, 0.0)
            builder.entry(limit, column, rate / (one.requests_per_s * data.utilization))
            builder.entry(limit, i, -1.0)
            for position, (_, users) in enumerate(once):
                if (d, q) in users:
                    builder.entry(shared[position][number][b], column, 1.0)
    solved = builder.solve()
    if solved is None:
        return -math.inf, [0.0] * n
    objective, duals = solved
    # One whole replica also needs what its servers are at least: a whole server, or all that it spans.
    extra = [
        max(0.0, duals[i]) + max(0.0, duals[place[q]]) * max(1.0, data.deployments[d].servers_per_replica)
        for i, (d, q) in enumerate(data.pairs)
    ]
    return objective, extra


def _built_once(data: ProgramData) -> list[tuple[float, set[Pair]]]:
    """(USD/year, pairs that need it) of everything that is paid once however much of it is used."""
    result = []
    for key, usd in data.yearly_by_quantity.items():
        if key[0] == "PlantBuilt":
            pools = data.heat_shares[key[1]]
            result.append((usd, {pair for pair in data.pairs if pair[1] in pools}))
        elif key[0] == "SchemePrepared":
            result.append((usd, {pair for pair in data.pairs if data.deployments[pair[0]].scheme == key[1]}))
    return result


class _Rows:
    """Rows of a linear program as they come, solved by HiGHS."""

    def __init__(self, columns: int) -> None:
        self.cost = np.zeros(columns)
        self.upper = np.full(columns, math.inf)
        self._bounds: list[tuple[float, float]] = []
        self._entries: list[tuple[int, int, float]] = []

    def row(self, lower: float, upper: float) -> int:
        """A new row; its number."""
        self._bounds.append((lower, upper))
        return len(self._bounds) - 1

    def entry(self, row: int, column: int, value: float) -> None:
        """A coefficient."""
        self._entries.append((row, column, value))

    def solve(self) -> tuple[float, list[float]] | None:
        """(objective, reduced costs), or None when the solver does not reach an optimum."""
        entries = sorted(self._entries)
        counts = np.bincount([row for row, _, _ in entries], minlength=len(self._bounds))
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = self.cost.size, len(self._bounds)
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = self.cost, np.zeros(self.cost.size), self.upper
        lp.row_lower_ = np.array([low for low, _ in self._bounds])
        lp.row_upper_ = np.array([high for _, high in self._bounds])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        lp.a_matrix_.index_ = np.array([column for _, column, _ in entries], dtype=np.int32)
        lp.a_matrix_.value_ = np.array([value for _, _, value in entries])
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)
        highspy.Highs.resetGlobalScheduler(True)
        highs.passModel(lp)
        highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        return highs.getInfo().objective_function_value, list(highs.getSolution().col_dual)


def best_simple_plan(data: ProgramData, extra: list[float]) -> SimplePlan | None:
    """The cheapest plan found among simple ones that keep every cap; None when none does.

    A simple plan serves each class in one pool, with one deployment and, for what is left of the demand, a few
    replicas of another one. Classes are ranked apart and combined rank by rank.
    """
    ranked: dict[int, list[Pair]] = {}
    for b in range(len(data.demand)):
        members = [
            (more * replicas_needed(data.demand[b], data.capacity[d]), (d, q))
            for more, (d, q) in zip(extra, data.pairs, strict=True)
            if data.deployments[d].class_index == b
        ]
        ranked[b] = [pair for _, pair in sorted(members)[:_TRIED]]
        if not ranked[b]:
            return None
    best: SimplePlan | None = None
    for number in range(max(len(members) for members in ranked.values())):
        chosen = {b: members[min(number, len(members) - 1)] for b, members in ranked.items()}
        for replicas in _fillings(data, chosen):
            plan = simple_plan(data, replicas)
            if plan is not None and (best is None or plan.usd_per_hour < best.usd_per_hour):
                best = plan
    return best


def _fillings(data: ProgramData, chosen: dict[int, Pair]) -> Iterator[dict[Pair, int]]:
    """Replicas that serve each class: its own pair alone, then with some of them left to another deployment there."""
    alone = {pair: replicas_needed(data.demand[b], data.capacity[pair[0]]) for b, pair in chosen.items()}
    yield alone
    if len(chosen) > 1:
        return
    ((b, (d, q)),) = chosen.items()
    for other, home in data.pairs:
        if home != q or other == d or data.deployments[other].class_index != b:
            continue
        for fewer in range(1, min(_LEFT_OVER, alone[d, q]) + 1):
            left = alone[d, q] - fewer
            rest = data.demand[b] - left * data.capacity[d]
            yield {(d, q): left, (other, q): replicas_needed(rest, data.capacity[other])}


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
    quantities = _quantities(data, replicas, servers, _busy_kwh(data, replicas))
    if quantities is None or not _within_caps(data, servers, quantities):
        return None
    return SimplePlan(
        dict(replicas), servers, spare, quantities, _total(data.yearly_by_quantity, quantities) / HOURS_PER_YEAR
    )


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
    """Spares of each bought type, all in the first pool of the type in use."""
    targets = data.setting.instance.targets
    own: dict[str, list[str]] = {}
    for q in in_service:
        if data.pools[q].is_bought:
            own.setdefault(data.pools[q].server_type.id, []).append(q)
    result = {}
    for members in own.values():
        total = sum(in_service[q] for q in members)
        result[members[0]] = max(math.ceil(targets.spare_fraction * total - 1e-9), targets.spare_servers)
    return result


def _busy_kwh(data: ProgramData, replicas: Mapping[Pair, int]) -> dict[str, float]:
    """Energy above idle by bought pool; requests go to deployments by their capacity, the same share at every level."""
    hours = sum(level.fraction * level.hours_per_year for level in data.billed_levels.values())
    capacity = [0.0] * len(data.demand)
    for (d, _), count in replicas.items():
        capacity[data.deployments[d].class_index] += data.capacity[d] * count
    result: dict[str, float] = {}
    for (d, q), count in replicas.items():
        one, pool = data.deployments[d], data.pools[q]
        if pool.is_bought:
            share = data.capacity[d] * count / capacity[one.class_index]
            rate = data.demand[one.class_index] / one.demand_weight * share
            result[q] = result.get(q, 0.0) + hours * rate * data.busy_kwh_per_request_rate(one, pool)
    return result


def _within_caps(data: ProgramData, servers: Mapping[str, int], quantities: Mapping[QuantityKey, float]) -> bool:
    """Whether a fleet keeps every cap of the instance."""
    instance = data.setting.instance
    economics, site, choices = instance.economics, instance.site, instance.choices
    bought = {q: count for q, count in servers.items() if data.pools[q].is_bought}
    power = sum(data.pools[q].server_kw * data.pools[q].pue_design * count for q, count in bought.items())
    racks = sum(-(-count // data.pools[q].per_rack) for q, count in bought.items())
    capital = _total(data.capital_by_quantity, quantities)
    yearly = _total(data.yearly_by_quantity, quantities)
    used: dict[str, int] = {}
    for q, count in servers.items():
        row = data.pools[q].server_type
        used[row.accelerator.id] = used.get(row.accelerator.id, 0) + count * row.accelerators
    return (
        (economics.budget_capex_usd is None or capital <= economics.budget_capex_usd)
        and (economics.budget_usd_per_year is None or yearly <= economics.budget_usd_per_year)
        and (site.power_kw is None or power <= site.power_kw)
        and (site.racks is None or racks <= site.racks)
        and all(count <= choices.supply.get(key, count) for key, count in used.items())
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
        if pool.is_bought:
            quantities["SpaceKw",] += pool.server_kw * count
            quantities["Racks", q] = float(-(-count // pool.per_rack))
            quantities["BusyKwh", q] = busy.get(q, 0.0)
            bought[pool.server_type.id] = bought.get(pool.server_type.id, 0) + count
            speed = pool.server_type.accelerator.scale_out_gb_s
            accelerators[speed] = accelerators.get(speed, 0) + count * pool.server_type.accelerators
    for plant, members in data.heat_shares.items():
        heat = sum(kw * counts[q] for q, kw in members.items() if q in counts)
        if heat:
            quantities["PlantKw", plant] = heat
            quantities["PlantBuilt", plant] = 1.0
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
        fabric = next(
            (f for f, (low, high, s) in data.fabric_tiers.items() if s == speed and low <= count <= high), None
        )
        if fabric is None:
            return None
        quantities["FabricAccelerators", fabric] = float(count)
    return quantities
