"""A bound from below on the cost of every plan: a small linear program over replicas, rates and servers."""

import math

from optimizer.costs.services import MANAGEMENT
from optimizer.costs.staff import POSTS
from optimizer.linear_rows import LinearRows
from optimizer.program_data import ALWAYS, SITE_USED, Pair, ProgramData
from optimizer.setting import Pool
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
        if q in data.elastic:
            # At the very least one hour of the shortest level; the bound prices levels by themselves.
            usd = min(level.hours_per_year for level in data.billed_levels.values()) * yearly.get(
                ("ServerHours", q), 0.0
            )
        if pool.in_hall:
            usd += min(data.space_usd_per_kw) * pool.server_kw + _least_share_of_site(data, pool)
        if pool.is_bought:
            server_type = pool.server_type
            usd += sum(members[q] * _least_plant_usd(data, k) for k, members in shares.items() if q in members)
            usd += tiers.get(server_type.id, 0.0)
            usd += server_type.accelerators * fabrics.get(server_type.accelerator.scale_out_gb_s, 0.0)
            usd += yearly.get(("Racks", q), 0.0) / pool.per_rack
        result[q] = usd / HOURS_PER_YEAR
    if not spares:
        return result
    # Spares may stand in any pool of the hall of their type.
    for type_id, members in data.server_types.items():
        own = [q for q in members if data.pools[q].in_hall]
        if own:
            spare = data.least_spare_share(type_id) * min(result[q] for q in own)
            result.update({q: result[q] + spare for q in own})
    return result


def _least_plant_usd(data: ProgramData, plant: str) -> float:
    """USD a year that 1 kW of heat costs at the least, averaged over all that a plant takes."""
    yearly = data.yearly_by_quantity
    steps = [yearly.get(("PlantTierKw", *key), 0.0) for key in data.plant_tiers if key[0] == plant]
    return min(steps, default=yearly.get(("PlantKw", plant), 0.0))


def _least_share_of_site(data: ProgramData, pool: Pool) -> float:
    """USD a year of staff and management servers that one more server takes at least: steps shared out."""
    yearly, usd = data.yearly_by_quantity, 0.0
    if data.staff is not None:
        posts = data.staff.per_accelerator * pool.server_type.accelerators
        if data.setting.instance.site.facility == "own_build":
            posts += data.staff.per_hall_kw * pool.server_kw
        usd += yearly[POSTS] * posts
    if data.servers_per_management_server is not None:
        usd += yearly[MANAGEMENT] / data.servers_per_management_server
    return usd


def lower_bound(data: ProgramData, most: tuple[float, ...] | None = None) -> tuple[float, list[float]]:
    """(USD/hour below which no plan lies, what one whole replica of each pair adds to it at least).

    Columns: replicas of each pair (one a level where servers are paid by level); rates of each pair and level as shares
    of the class's demand; what is built or prepared once (plants, schemes), 0..1; servers in service of each pool (one
    a level where they are paid by level). Rows: capacity carries the peak; demand is served at each level; a rate needs
    replicas; the share of a class's demand that uses something built once is at most how much of it is built; replicas
    fit their servers; a pool that serves a share of a class has at least that share of one server (a pool in use has a
    whole one). Both shares hold at the peak too, of the most capacity that an optimal plan has: ``most``
    by class, that of the data when None.
    """
    yearly = data.yearly_by_quantity
    least = least_server_usd_per_hour(data)
    levels = {name: level for name, level in data.billed_levels.items() if level.fraction > 0.0}
    classes = range(len(data.demand))
    once = _built_once(data)
    builder = LinearRows()
    counted = {(i, name): builder.column(0.0) for i, (_, q) in enumerate(data.pairs) for name in data.levels_of(q)}
    built = [builder.column(usd / HOURS_PER_YEAR, 1.0) for usd, _ in once]
    place: dict[tuple[str, str], int] = {}
    for q in data.pools:
        for name in data.levels_of(q):
            usd = least[q]
            if q in data.elastic:
                hours = data.billed_levels[name].hours_per_year
                usd = yearly.get(("ServerHours", q), 0.0) * hours / HOURS_PER_YEAR
            place[q, name] = builder.column(usd)
    demand = [builder.row(1.0, math.inf) for _ in classes]
    served = {name: [builder.row(one.fraction, one.fraction) for _ in classes] for name, one in levels.items()}
    packed = {key: builder.row(-math.inf, 0.0) for key in place}
    whole = {(q, name, b): builder.row(-math.inf, 0.0) for q in data.pools for name in levels for b in classes}
    peak = {(q, b): builder.row(-math.inf, 0.0) for q in data.pools for b in classes}
    peak_once = [[builder.row(-math.inf, 0.0) for _ in classes] for _ in once]
    shared = [{name: [builder.row(-math.inf, 0.0) for _ in classes] for name in levels} for _ in once]
    most = data.most_capacity if most is None else most

    def at(q: str, name: str) -> str:
        """Name of the columns that hold what runs at a level."""
        return name if q in data.elastic else ALWAYS

    for (q, _), row in peak.items():
        builder.entry(row, place[q, at(q, data.peak_level)], -1.0)
    for key, column in place.items():
        builder.entry(packed[key], column, -1.0)
    for (q, name, _), row in whole.items():
        builder.entry(row, place[q, at(q, name)], -levels[name].fraction)
    for position, column in enumerate(built):
        for b in classes:
            builder.entry(peak_once[position][b], column, -1.0)
            for name, level in levels.items():
                builder.entry(shared[position][name][b], column, -level.fraction)
    for i, (d, q) in enumerate(data.pairs):
        one, pool = data.deployments[d], data.pools[q]
        b = one.class_index
        users = [position for position, (_, needing) in enumerate(once) if (d, q) in needing]
        capacity = data.pair_capacity(d, q)
        for name in data.levels_of(q):
            builder.entry(packed[q, name], counted[i, name], one.servers_per_replica)
        running = counted[i, at(q, data.peak_level)]
        builder.entry(peak[q, b], running, capacity / most[b])
        for position in users:
            builder.entry(peak_once[position][b], running, capacity / most[b])
        builder.entry(demand[b], running, capacity / data.demand[b])
        busy_kw = data.busy_kwh_per_request_rate(one, pool) if pool.in_hall else 0.0
        rate = data.demand[b] / one.demand_weight
        for name in levels:
            usd = busy_kw * rate * data.usd_per_busy_kw[q][name] if pool.in_hall else 0.0
            column = builder.column(usd / HOURS_PER_YEAR)
            builder.entry(served[name][b], column, 1.0)
            builder.entry(whole[q, name, b], column, 1.0)
            limit = builder.row(-math.inf, 0.0)
            builder.entry(limit, column, rate / data.served_per_s(d, q))
            builder.entry(limit, counted[i, at(q, name)], -1.0)
            for position in users:
                builder.entry(shared[position][name][b], column, 1.0)
    solved = builder.solve()
    if solved is None:
        return -math.inf, [0.0] * len(data.pairs)
    objective, duals = solved.objective, solved.reduced_costs
    # A whole replica also needs what its servers are at least: a whole server, or all that it spans. Where servers are
    # paid by level it runs at one of them at least.
    extra = [
        min(
            max(0.0, duals[counted[i, name]])
            + max(0.0, duals[place[q, name]]) * max(1.0, data.deployments[d].servers_per_replica)
            for name in data.levels_of(q)
        )
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
            result.append((usd, {pair for pair in data.pairs if data.pools[pair[1]].in_hall}))
    return result
