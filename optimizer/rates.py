"""Which deployment serves what at each load level, given replicas: the least cost of energy."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from optimizer.linear_rows import LinearRows
from optimizer.program_data import Pair, ProgramData
from optimizer.units import HOURS_PER_YEAR

#: Share of a demand that the solver's tolerances may leave unserved.
_ROUNDING = 1e-5
#: Share by which a cap may be missed before rates are sought that keep it: the solver's own tolerance.
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Counts:
    """Replicas that run always, and those that run by level, on servers that are paid by level."""

    always: Mapping[Pair, int]
    by_level: Mapping[Pair, tuple[int, ...]] = field(default_factory=dict)

    def at(self, pair: Pair, place: int) -> int:
        """Replicas at the level of a place."""
        return self.by_level[pair][place] if pair in self.by_level else self.always.get(pair, 0)

    def pairs(self) -> list[Pair]:
        """Every pair with replicas."""
        return [*self.always, *self.by_level]


def serving_rates(data: ProgramData, replicas: Counts, servers: Mapping[str, int]) -> dict[Pair, tuple[float, ...]]:
    """Requests/s of each pair at each billed level, at the least energy cost that keeps the caps on carbon and water.

    With replicas given, the best split of a class's demand fills the deployments with the cheapest energy per unit of
    demand first: the continuous knapsack. So no solver tolerance is left in the rates. Where that split breaks a cap, a
    linear program over the rates alone finds the cheapest one that keeps it.
    """
    rates = _cheapest(data, replicas)
    if _keeps_caps(data, rates, servers):
        return rates
    return _within_caps(data, replicas, servers) or rates


def _cost(data: ProgramData, pair: Pair, level: str) -> float:
    """USD a year of one unit of demand served by a pair at a level."""
    one, pool = data.deployments[pair[0]], data.pools[pair[1]]
    if not pool.in_hall:
        return 0.0
    per_kw = data.usd_per_busy_kw[pool.id][level]
    return data.busy_kwh_per_request_rate(one, pool) * per_kw / one.demand_weight


def _cheapest(data: ProgramData, replicas: Counts) -> dict[Pair, tuple[float, ...]]:
    rates: dict[Pair, list[float]] = {pair: [] for pair in replicas.pairs()}
    for place, (name, level) in enumerate(data.billed_levels.items()):
        for b, demand in enumerate(data.demand):
            mine = [pair for pair in replicas.pairs() if data.deployments[pair[0]].class_index == b]
            left = level.fraction * demand
            costs = [(_cost(data, pair, name), position) for position, pair in enumerate(mine)]
            served = {}
            for _, position in sorted(costs):
                d, q = mine[position]
                part = min(left, data.pair_capacity(d, q) * replicas.at((d, q), place))
                served[d, q] = part
                left -= part
            total = sum(served.values())
            # What a tolerance of the solver leaves over, a part in a million at most, is shared by all. More than that
            # only a proposal that is too small leaves: nobody serves it.
            is_rounding = 0.0 < left <= _ROUNDING * demand
            _note(data, rates, served, level.fraction * demand / total if total and is_rounding else 1.0)
    return {pair: tuple(values) for pair, values in rates.items()}


def _note(data: ProgramData, rates: dict[Pair, list[float]], served: Mapping[Pair, float], scale: float) -> None:
    for pair, part in served.items():
        rates[pair].append(part * scale / data.deployments[pair[0]].demand_weight)


def _keeps_caps(data: ProgramData, rates: Mapping[Pair, tuple[float, ...]], servers: Mapping[str, int]) -> bool:
    hours = [level.hours_per_year for level in data.billed_levels.values()]
    for _, most, per_kwh in data.environment_caps:
        used = math.fsum(data.idle_kw[q] * HOURS_PER_YEAR * servers.get(q, 0) * share for q, share in per_kwh.items())
        for (d, q), values in rates.items():
            if q in per_kwh:
                kw = data.busy_kwh_per_request_rate(data.deployments[d], data.pools[q])
                used += per_kwh[q] * kw * math.fsum(h * rate for h, rate in zip(hours, values, strict=True))
        if used > most * (1.0 + _TOLERANCE):
            return False
    return True


def _within_caps(
    data: ProgramData, replicas: Counts, servers: Mapping[str, int]
) -> dict[Pair, tuple[float, ...]] | None:
    """The cheapest split that keeps the caps; columns are shares of a class's demand. None where there is none."""
    names = [name for name, level in data.billed_levels.items() if level.fraction > 0.0]
    places = {name: place for place, name in enumerate(data.billed_levels)}
    columns = [(pair, name) for name in names for pair in replicas.pairs()]
    rows = LinearRows(len(columns))
    served = {
        (b, name): rows.row(data.billed_levels[name].fraction, data.billed_levels[name].fraction)
        for b in range(len(data.demand))
        for name in names
    }
    caps = []
    for _, most, per_kwh in data.environment_caps:
        idle = math.fsum(data.idle_kw[q] * HOURS_PER_YEAR * servers.get(q, 0) * share for q, share in per_kwh.items())
        scale = max(most, idle, 1e-9)
        caps.append((rows.row(-math.inf, (most - idle) / scale), scale, per_kwh))
    for column, ((d, q), name) in enumerate(columns):
        one = data.deployments[d]
        demand = data.demand[one.class_index]
        rows.cost[column] = _cost(data, (d, q), name) * demand
        rows.upper[column] = data.pair_capacity(d, q) * replicas.at((d, q), places[name]) / demand
        rows.entry(served[one.class_index, name], column, 1.0)
        for row, scale, per_kwh in caps:
            if q in per_kwh:
                kw = data.busy_kwh_per_request_rate(one, data.pools[q]) / one.demand_weight * demand
                rows.entry(row, column, per_kwh[q] * kw * data.billed_levels[name].hours_per_year / scale)
    found = rows.solve()
    if found is None:
        return None
    shares = dict(zip(columns, found.values, strict=True))
    rates: dict[Pair, list[float]] = {pair: [] for pair in replicas.pairs()}
    for name, level in data.billed_levels.items():
        for b, demand in enumerate(data.demand):
            mine = [pair for pair in replicas.pairs() if data.deployments[pair[0]].class_index == b]
            parts = {pair: max(0.0, shares.get((pair, name), 0.0)) * demand for pair in mine}
            total = math.fsum(parts.values())
            _note(data, rates, parts, level.fraction * demand / total if total else 1.0)
    return {pair: tuple(values) for pair, values in rates.items()}
