"""The fleet of a solution: whole counts, exact rates, quantities of the cost terms."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from optimizer.costs.cooling import plant_quantities
from optimizer.costs.network import network_quantities
from optimizer.costs.term import QuantityKey
from optimizer.program_data import PEAK, Pair, ProgramData, replicas_needed
from optimizer.rates import Counts, serving_rates
from optimizer.site_quantities import site_quantities


@dataclass(frozen=True, slots=True)
class Fleet:
    """The counts of a solution, whole numbers.

    ``replicas`` by (deployment, pool), ``servers`` (spares included) and ``spare`` by pool, ``rates`` in requests/s
    by pair for each level that lasts, in order; only what is not 0. ``fillings`` counts the servers of each maximal
    filling, where widths do not nest, by pool and level (``ALWAYS`` where servers run at every level). ``running`` and
    ``used`` are replicas and servers at each level that lasts, of pools whose servers are paid by level; their
    ``replicas`` and ``servers`` are the most of any level.
    """

    replicas: dict[Pair, int]
    servers: dict[str, int]
    spare: dict[str, int]
    rates: dict[Pair, tuple[float, ...]]
    fillings: dict[tuple[str, str], dict[int, int]]
    running: dict[Pair, tuple[int, ...]] = field(default_factory=dict)
    used: dict[str, tuple[int, ...]] = field(default_factory=dict)


def fleet_of(data: ProgramData, names: Mapping[tuple[Any, ...], float]) -> Fleet:
    """Whole counts from the values of the program's variables by family and index."""
    levels = tuple(data.billed_levels)
    always = {(d, q): round(names["Replicas", d, q]) for d, q in data.pairs if q not in data.elastic}
    by_level = {
        (d, q): tuple(round(names["Running", d, q, level]) for level in levels)
        for d, q in data.pairs
        if q in data.elastic
    }
    counts = Counts(
        {pair: count for pair, count in always.items() if count},
        {pair: row for pair, row in by_level.items() if any(row)},
    )
    used = {q: tuple(round(names["Used", q, level]) for level in levels) for q in data.pools if q in data.elastic}
    used = {q: row for q, row in used.items() if any(row)}
    servers = {q: max(used.get(q, (0,))) if q in data.elastic else round(names["Servers", q]) for q in data.pools}
    servers = {q: count for q, count in servers.items() if count}
    spare = {q: round(names.get(("Spare", q), 0.0)) for q in data.hall}
    counts = without_idle(data, counts, servers)
    most = {pair: max(counts.at(pair, place) for place in range(len(levels))) for pair in counts.pairs()}
    return Fleet(
        {pair: most[pair] for pair in data.pairs if most.get(pair)},
        servers,
        {q: count for q, count in spare.items() if count},
        serving_rates(data, counts, servers),
        {
            (q, level): {number: round(names["PatternServers", q, level, number]) for number in range(len(fillings))}
            for q, fillings in data.patterns_by_pool.items()
            if servers.get(q)
            for level in data.levels_of(q)
        },
        dict(counts.by_level),
        used,
    )


def without_idle(data: ProgramData, counts: Counts, servers: Mapping[str, int]) -> Counts:
    """The same fleet without replicas that neither the peak nor any level needs.

    A replica on a server that is there anyway costs nothing, so the solver may leave some that no request reaches;
    nobody should deploy them.
    """
    rates = serving_rates(data, counts, servers)
    peak = list(data.billed_levels).index(data.peak_level)
    always = dict(counts.always)
    for pair in sorted(always, key=lambda one: (max(rates[one], default=0.0), one)):
        d = pair[0]
        mine = data.deployments[d].class_index
        rest = sum(
            data.pair_capacity(*other) * (always[other] if other in always else counts.at(other, peak))
            for other in counts.pairs()
            if other != pair and data.deployments[other[0]].class_index == mine
        )
        busiest = max(rates[pair], default=0.0) * data.deployments[d].demand_weight
        needed = max(busiest, data.demand[mine] - rest)
        always[pair] = min(always[pair], _needed(needed, data.pair_capacity(*pair)))
    by_level = {
        pair: tuple(
            min(count, _needed(rate * data.deployments[pair[0]].demand_weight, data.pair_capacity(*pair)))
            for count, rate in zip(row, rates[pair], strict=True)
        )
        for pair, row in counts.by_level.items()
    }
    return Counts(
        {pair: count for pair, count in always.items() if count},
        {pair: row for pair, row in by_level.items() if any(row)},
    )


def _needed(demand: float, capacity: float) -> int:
    # A part in a billion is the rounding of the rates, not a replica.
    return max(0, replicas_needed(demand * (1.0 - 1e-9), capacity))


def fleet_quantities(data: ProgramData, fleet: Fleet) -> dict[QuantityKey, float]:
    """Quantities of the cost terms."""
    quantities: dict[QuantityKey, float] = {("SpaceKw",): 0.0}
    bought: dict[str, int] = {}
    for q, count in fleet.servers.items():
        pool = data.pools[q]
        quantities["Servers", q] = float(count)
        if q in fleet.used:
            quantities["ServerHours", q] = server_hours(data, fleet.used[q])
        if pool.in_hall:
            quantities["Racks", q] = float(-(-count // pool.per_rack))
            busy = busy_kw(data, fleet, q)
            hours = {name: level.hours_per_year for name, level in data.billed_levels.items()}
            quantities["BusyKwh", q] = sum(kw * hours[name] for name, kw in busy.items())
            for name, kw in busy.items():
                quantities["LevelKwh", q, name] = kw * hours[name]
            quantities["PeakKw", q] = busy.get(PEAK, 0.0)
        if pool.is_bought:
            bought[pool.server_type.id] = bought.get(pool.server_type.id, 0) + count
    for plant, members in data.heat_shares.items():
        heat = sum(kw * fleet.servers.get(q, 0) for q, kw in members.items())
        if heat:
            quantities |= plant_quantities(data.setting, data.plants[plant], heat)
    for d, _ in fleet.replicas:
        quantities["SchemePrepared", data.deployments[d].scheme] = 1.0
    for type_id, count in bought.items():
        reached = [key for key, (first, _) in data.server_tiers.items() if key[0] == type_id and first <= count]
        tier = max(reached, key=lambda key: int(key[1]))
        quantities[("TierServers", *tier)] = float(count)
        quantities[("TierUsed", *tier)] = 1.0
    for speed, count in linked_accelerators(data, fleet).items():
        quantities |= network_quantities(data.setting, speed, count)
    capital = sum(data.capital_by_quantity.get(key, 0.0) * amount for key, amount in quantities.items())
    return quantities | site_quantities(data, fleet.servers, capital)


def linked_accelerators(data: ProgramData, fleet: Fleet) -> dict[float, int]:
    """Bought accelerators by the speed of their network link (GB/s): those of one speed share a fabric."""
    found: dict[float, int] = {}
    for q, count in fleet.servers.items():
        of = data.pools[q].server_type
        if data.pools[q].is_bought:
            found[of.accelerator.scale_out_gb_s] = found.get(of.accelerator.scale_out_gb_s, 0) + count * of.accelerators
    return found


def at_peak(data: ProgramData, fleet: Fleet) -> dict[Pair, int]:
    """Replicas that run at the peak; 0 for those that only run at other levels."""
    place = list(data.billed_levels).index(data.peak_level)
    return {pair: fleet.running[pair][place] if pair in fleet.running else n for pair, n in fleet.replicas.items()}


def server_hours(data: ProgramData, used: Iterable[int]) -> float:
    """Hours a year of servers that are paid by level."""
    return sum(level.hours_per_year * count for level, count in zip(data.billed_levels.values(), used, strict=True))


def busy_kw(data: ProgramData, fleet: Fleet, q: str) -> dict[str, float]:
    """Power above idle that requests cause on a pool of the hall at each billed level, kW before PUE."""
    return {
        name: sum(
            data.busy_kwh_per_request_rate(data.deployments[d], data.pools[q]) * rates[number]
            for (d, p), rates in fleet.rates.items()
            if p == q
        )
        for number, name in enumerate(data.billed_levels)
    }
