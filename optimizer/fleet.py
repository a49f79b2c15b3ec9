"""The fleet of a solution: whole counts, exact rates, quantities of the cost terms."""

from collections.abc import Mapping
from dataclasses import dataclass

from optimizer.costs.term import QuantityKey
from optimizer.program_data import PEAK, SITE_USED, Pair, ProgramData, replicas_needed
from optimizer.rates import serving_rates


@dataclass(frozen=True, slots=True)
class Fleet:
    """The counts of a solution, whole numbers.

    ``replicas`` by (deployment, pool), ``servers`` (spares included) and ``spare`` by pool, ``rates`` in requests/s
    by pair for each level that lasts, in order; only what is not 0. ``fillings`` counts the servers of each maximal
    filling, where widths do not nest.
    """

    replicas: dict[Pair, int]
    servers: dict[str, int]
    spare: dict[str, int]
    rates: dict[Pair, tuple[float, ...]]
    fillings: dict[str, dict[int, int]]


def fleet_of(data: ProgramData, names: Mapping[str, float]) -> Fleet:
    """Whole counts from the values of the program's variables by name."""
    replicas = {pair: round(names[f"Replicas[{pair[0]},{pair[1]}]"]) for pair in data.pairs}
    servers = {q: round(names[f"Servers[{q}]"]) for q in data.pools}
    spare = {q: round(names.get(f"Spare[{q}]", 0.0)) for q in data.bought}
    servers = {q: count for q, count in servers.items() if count}
    replicas = without_idle(data, {pair: count for pair, count in replicas.items() if count}, servers)
    return Fleet(
        replicas,
        servers,
        {q: count for q, count in spare.items() if count},
        serving_rates(data, replicas, servers),
        {
            q: {number: round(names[f"PatternServers[{q},{number}]"]) for number in range(len(fillings))}
            for q, fillings in data.patterns_by_pool.items()
            if servers.get(q)
        },
    )


def without_idle(data: ProgramData, replicas: Mapping[Pair, int], servers: Mapping[str, int]) -> dict[Pair, int]:
    """The same fleet without replicas that neither the peak nor any level needs.

    A replica on a server that is there anyway costs nothing, so the solver may leave some that no request reaches;
    nobody should deploy them.
    """
    left = dict(replicas)
    rates = serving_rates(data, left, servers)
    for pair in sorted(left, key=lambda one: (max(rates[one], default=0.0), one)):
        d = pair[0]
        rest = sum(
            data.capacity[other] * count
            for (other, q), count in left.items()
            if (other, q) != pair and data.deployments[other].class_index == data.deployments[d].class_index
        )
        busiest = max(rates[pair], default=0.0) * data.deployments[d].demand_weight
        needed = max(busiest, data.demand[data.deployments[d].class_index] - rest)
        # A part in a billion is the rounding of the rates, not a replica.
        left[pair] = min(left[pair], max(0, replicas_needed(needed * (1.0 - 1e-9), data.capacity[d])))
    return {pair: count for pair, count in left.items() if count}


def fleet_quantities(data: ProgramData, fleet: Fleet) -> dict[QuantityKey, float]:
    """Quantities of the cost terms."""
    quantities: dict[QuantityKey, float] = {("SpaceKw",): 0.0}
    bought: dict[str, int] = {}
    accelerators: dict[float, int] = {}
    for q, count in fleet.servers.items():
        pool = data.pools[q]
        quantities["Servers", q] = float(count)
        if pool.is_bought:
            quantities["SpaceKw",] += pool.server_kw * count
            quantities["Racks", q] = float(-(-count // pool.per_rack))
            busy = busy_kw(data, fleet, q)
            hours = {name: level.hours_per_year for name, level in data.billed_levels.items()}
            quantities["BusyKwh", q] = sum(kw * hours[name] for name, kw in busy.items())
            for name, kw in busy.items():
                quantities["LevelKwh", q, name] = kw * hours[name]
            quantities["PeakKw", q] = busy.get(PEAK, 0.0)
            quantities[SITE_USED] = 1.0
            bought[pool.server_type.id] = bought.get(pool.server_type.id, 0) + count
            speed = pool.server_type.accelerator.scale_out_gb_s
            accelerators[speed] = accelerators.get(speed, 0) + count * pool.server_type.accelerators
    for plant, members in data.heat_shares.items():
        heat = sum(kw * fleet.servers.get(q, 0) for q, kw in members.items())
        if heat:
            quantities["PlantKw", plant] = heat
            quantities["PlantBuilt", plant] = 1.0
    for d, _ in fleet.replicas:
        quantities["SchemePrepared", data.deployments[d].scheme] = 1.0
    for type_id, count in bought.items():
        reached = [key for key, (first, _) in data.server_tiers.items() if key[0] == type_id and first <= count]
        tier = max(reached, key=lambda key: int(key[1]))
        quantities[("TierServers", *tier)] = float(count)
        quantities[("TierUsed", *tier)] = 1.0
    for speed, count in accelerators.items():
        fabric = next(f for f, (_, last, s) in data.fabric_tiers.items() if s == speed and count <= last)
        quantities["FabricAccelerators", fabric] = float(count)
    return quantities


def busy_kw(data: ProgramData, fleet: Fleet, q: str) -> dict[str, float]:
    """Power above idle that requests cause on a bought pool at each billed level, kW before PUE."""
    return {
        name: sum(
            data.busy_kwh_per_request_rate(data.deployments[d], data.pools[q]) * rates[number]
            for (d, p), rates in fleet.rates.items()
            if p == q
        )
        for number, name in enumerate(data.billed_levels)
    }
