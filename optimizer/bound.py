"""A bound from below on the cost of every plan: a small linear program over replicas, rates and servers."""

import math

from optimizer.linear_rows import LinearRows
from optimizer.program_data import SITE_USED, Pair, ProgramData
from optimizer.units import HOURS_PER_YEAR


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


def lower_bound(data: ProgramData, most: tuple[float, ...] | None = None) -> tuple[float, list[float]]:
    """(USD/hour below which no plan lies, what one whole replica of each pair adds to it at least).

    Columns: replicas of each pair; rates of each pair and level as shares of the class's demand; what is built or
    prepared once (plants, schemes), 0..1; servers in service of each pool. Rows: capacity carries the peak; demand is
    served at each level; a rate needs replicas; the share of a class's demand that uses something built once is at most
    how much of it is built; replicas fit their servers; a pool that serves a share of a class has at least that share
    of one server (a pool in use has a whole one). Both shares hold at the peak too, of the most capacity that an
    optimal plan has: ``most`` by class, that of the data when None.
    """
    servers = least_server_usd_per_hour(data)
    names = [name for name, level in data.billed_levels.items() if level.fraction > 0.0]
    levels = [data.billed_levels[name] for name in names]
    n, classes = len(data.pairs), len(data.demand)
    once = _built_once(data)
    first_once = n * (1 + len(levels))
    place = {q: first_once + len(once) + number for number, q in enumerate(data.pools)}
    builder = LinearRows(first_once + len(once) + len(place))
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
    most = data.most_capacity if most is None else most
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
        busy_kw = data.busy_kwh_per_request_rate(one, pool) if pool.is_bought else 0.0
        rate = data.demand[b] / one.demand_weight
        for number, name in enumerate(names):
            column = n * (1 + number) + i
            if pool.is_bought:
                builder.cost[column] = busy_kw * rate * data.usd_per_busy_kw[q][name] / HOURS_PER_YEAR
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
    objective, duals = solved.objective, solved.reduced_costs
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
        elif key == SITE_USED:
            result.append((usd, {pair for pair in data.pairs if data.pools[pair[1]].is_bought}))
    return result
