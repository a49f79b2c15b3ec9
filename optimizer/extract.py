"""From a solution of the program to a plan: whole counts, exact rates, packing, bill, headroom."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from optimizer import __version__
from optimizer.costs import BILL_COMPONENTS
from optimizer.costs.bill import assumed_fraction, bill_lines, by_component, oldest_price
from optimizer.costs.term import QuantityKey, capital_recovery_factor
from optimizer.headroom import headroom_rows
from optimizer.instance.defaults import defaults_used
from optimizer.instance.model import Instance
from optimizer.offer import Offer
from optimizer.plan import (
    Bill,
    CatalogRow,
    CoolingPlant,
    DefaultedField,
    Deployment,
    Level,
    NetworkTier,
    PackedServers,
    Plan,
    Prediction,
    Provenance,
    SearchCount,
    ServerGroup,
    StopReason,
)
from optimizer.program_data import Pair, ProgramData, replicas_needed
from optimizer.provenance import catalog_sha256, factors_sha256, instance_sha256
from optimizer.screen import Screened
from optimizer.setting import Pool
from optimizer.solver import Options, Outcome, Reason
from optimizer.units import HOURS_PER_YEAR, SECONDS_PER_HOUR, TOKENS_PER_MILLION

#: Plans within this share of the least cost count as equal.
TIE = 1e-6


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
    replicas = without_idle(data, {pair: count for pair, count in replicas.items() if count})
    return Fleet(
        replicas,
        {q: count for q, count in servers.items() if count},
        {q: count for q, count in spare.items() if count},
        serving_rates(data, replicas),
        {
            q: {number: round(names[f"PatternServers[{q},{number}]"]) for number in range(len(fillings))}
            for q, fillings in data.patterns_by_pool.items()
            if servers.get(q)
        },
    )


def without_idle(data: ProgramData, replicas: Mapping[Pair, int]) -> dict[Pair, int]:
    """The same fleet without replicas that neither the peak nor any level needs.

    A replica on a server that is there anyway costs nothing, so the solver may leave some that no request reaches;
    nobody should deploy them.
    """
    left = dict(replicas)
    rates = serving_rates(data, left)
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


def serving_rates(data: ProgramData, replicas: Mapping[Pair, int]) -> dict[Pair, tuple[float, ...]]:
    """Requests/s of each pair at each level that lasts, at the least energy cost.

    With replicas given, the best split of a class's demand fills the deployments with the cheapest energy per unit of
    demand first: the continuous knapsack. So no solver tolerance is left in the rates.
    """
    yearly = data.yearly_by_quantity
    rates: dict[Pair, list[float]] = {pair: [] for pair in replicas}
    for level in data.billed_levels.values():
        for b, demand in enumerate(data.demand):
            mine = [pair for pair in replicas if data.deployments[pair[0]].class_index == b]
            left = level.fraction * demand
            costs = []
            for position, (d, q) in enumerate(mine):
                one, pool = data.deployments[d], data.pools[q]
                usd = 0.0
                if pool.is_bought:
                    usd = (
                        data.busy_kwh_per_request_rate(one, pool) * yearly.get(("BusyKwh", q), 0.0) / one.demand_weight
                    )
                costs.append((usd, position))
            served = {}
            for _, position in sorted(costs):
                d, q = mine[position]
                part = min(left, data.capacity[d] * replicas[d, q])
                served[d, q] = part
                left -= part
            total = sum(served.values())
            # What a tolerance of the solver leaves over, a part in a million at most, is shared by all.
            scale = level.fraction * demand / total if total and left > 0.0 else 1.0
            for pair in mine:
                rates[pair].append(served[pair] * scale / data.deployments[pair[0]].demand_weight)
    return {pair: tuple(values) for pair, values in rates.items()}


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
            quantities["BusyKwh", q] = busy_kwh(data, fleet, q)
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


def busy_kwh(data: ProgramData, fleet: Fleet, q: str) -> float:
    """Energy above idle that requests cause on a bought pool, kWh a year before PUE."""
    hours = [level.hours_per_year for level in data.billed_levels.values()]
    return sum(
        data.busy_kwh_per_request_rate(data.deployments[d], data.pools[q])
        * sum(h * r for h, r in zip(hours, rates, strict=True))
        for (d, p), rates in fleet.rates.items()
        if p == q
    )


def pack(data: ProgramData, fleet: Fleet) -> tuple[PackedServers, ...]:
    """Which replicas stand on which servers, like servers together."""
    packed = []
    for q in fleet.servers:
        accelerators = data.pools[q].server_type.accelerators
        members = sorted(
            ((data.deployments[d].width, d, count) for (d, p), count in fleet.replicas.items() if p == q),
            key=lambda item: (-item[0], item[1]),
        )
        for width, d, count in members:
            if width > accelerators:
                spans = round(data.deployments[d].servers_per_replica)
                packed.append(PackedServers(pool=q, servers=spans * count, replicas={d: count}))
        narrow = [(width, d) for width, d, count in members if width <= accelerators for _ in range(count)]
        like: dict[tuple[tuple[str, int], ...], int] = {}
        for held in _filled(narrow, accelerators, _shapes(data, fleet, q)):
            key = tuple(sorted(held.items()))
            like[key] = like.get(key, 0) + 1
        for key, times in like.items():
            packed.append(PackedServers(pool=q, servers=times, replicas={d: count * times for d, count in key}))
    return tuple(packed)


def _shapes(data: ProgramData, fleet: Fleet, q: str) -> list[dict[int, int]] | None:
    """What each server of a pool holds by width, from the program's fillings; None where widths nest."""
    if q not in fleet.fillings:
        return None
    fillings = data.patterns_by_pool[q]
    return [dict(fillings[number]) for number, count in fleet.fillings[q].items() for _ in range(count)]


def _filled(
    narrow: list[tuple[int, str]], accelerators: int, shapes: list[dict[int, int]] | None
) -> list[dict[str, int]]:
    """Replicas by server, largest first: into the shapes given, or the first with room (exact where widths nest)."""
    servers: list[dict[str, int]] = []
    room: list[int] = []
    if shapes is not None:
        servers = [{} for _ in shapes]
        for width, d in narrow:
            place = next(index for index, shape in enumerate(shapes) if shape.get(width, 0) > 0)
            shapes[place][width] -= 1
            servers[place][d] = servers[place].get(d, 0) + 1
        return [held for held in servers if held]
    for width, d in narrow:
        place = next((index for index, left in enumerate(room) if left >= width), len(room))
        if place == len(room):
            servers.append({})
            room.append(accelerators)
        servers[place][d] = servers[place].get(d, 0) + 1
        room[place] -= width
    return servers


def make_plan(offer: Offer, data: ProgramData, fleet: Fleet, outcome: Outcome, options: Options, solver: str) -> Plan:
    """The plan of a fleet. Runners-up are added by the caller."""
    setting, screened = data.setting, offer.screened
    instance = setting.instance
    quantities = fleet_quantities(data, fleet)
    spare_share: dict[str, float] = {}
    for type_id, members in data.server_types.items():
        total = sum(fleet.servers.get(q, 0) for q in members if data.pools[q].is_bought)
        spare = sum(fleet.spare.get(q, 0) for q in members)
        if total:
            spare_share[type_id] = spare / total
    spare_share.update({q: fleet.spare.get(q, 0) / count for q, count in fleet.servers.items()})
    lines = bill_lines(data.terms, quantities, spare_share)
    yearly = math.fsum(line.usd_per_year for line in lines)
    tokens = tokens_per_year(data, fleet)
    bill = Bill(
        lines=lines,
        usd_per_year_by_component=by_component(lines, BILL_COMPONENTS),
        usd_per_year=yearly,
        usd_per_hour=yearly / HOURS_PER_YEAR,
        usd_over_horizon=yearly
        / capital_recovery_factor(instance.economics.discount_rate, instance.economics.horizon_years),
        usd_per_million_output_tokens=yearly / tokens * TOKENS_PER_MILLION,
        capital_usd=math.fsum(line.capital_usd for line in lines),
        assumed_fraction=assumed_fraction(lines),
        oldest_price=oldest_price(lines),
    )
    deployments = tuple(deployment_row(offer, data, fleet, pair) for pair in fleet.replicas)
    groups = tuple(server_row(data, fleet, q) for q in fleet.servers)
    bound = min(outcome.bound, yearly / HOURS_PER_YEAR)
    gap = max(0.0, 1.0 - bound / (yearly / HOURS_PER_YEAR)) if yearly else 0.0
    # Ties are broken among plans up to TIE dearer than the least cost.
    proven = outcome.reason is Reason.OPTIMAL and gap <= options.gap + TIE
    bought = {q: count for q, count in fleet.servers.items() if data.pools[q].is_bought}
    return Plan(
        name=instance.name,
        outcome=StopReason(
            reason=outcome.reason.value,
            holds="proven" if proven else "feasible",
            objective_usd_per_hour=yearly / HOURS_PER_YEAR,
            bound_usd_per_hour=bound,
            gap=gap,
            requested_gap=options.gap,
            solver=solver,
        ),
        deployments=deployments,
        servers=groups,
        packing=pack(data, fleet),
        plants=plant_rows(data, quantities),
        network=tuple(
            NetworkTier(fabric=key[1], accelerators=round(count))
            for key, count in quantities.items()
            if key[0] == "FabricAccelerators"
        ),
        levels=tuple(Level(fraction=one.fraction, hours_per_year=one.hours_per_year) for one in setting.levels),
        accelerators=sum(data.pools[q].server_type.accelerators * count for q, count in fleet.servers.items()),
        power_kw=math.fsum(data.pools[q].server_kw * data.pools[q].pue_design * count for q, count in bought.items()),
        energy_kwh_per_year=math.fsum(
            (data.idle_kw[q] * HOURS_PER_YEAR * count + quantities["BusyKwh", q]) * data.pools[q].pue_mean
            for q, count in bought.items()
        ),
        bill=bill,
        headroom=headroom_rows(offer, data, fleet.replicas, fleet.servers, fleet.spare, bill),
        runners_up=(),
        search=search_count(screened, int(offer.kept.size)),
        messages=messages(data, fleet),
        defaults=defaulted(instance),
        instance=instance,
        catalog_rows=catalog_rows(data, screened, fleet, quantities),
        provenance=provenance(instance, options, solver),
    )


def tokens_per_year(data: ProgramData, fleet: Fleet) -> float:
    """Output tokens served in a year."""
    hours = [level.hours_per_year for level in data.billed_levels.values()]
    return sum(
        sum(h * r for h, r in zip(hours, rates, strict=True))
        * SECONDS_PER_HOUR
        * data.setting.classes[data.deployments[d].class_index].request.output_tokens
        for (d, _), rates in fleet.rates.items()
    )


def deployment_row(offer: Offer, data: ProgramData, fleet: Fleet, pair: Pair) -> Deployment:
    """One deployment of the plan with its prediction."""
    d, q = pair
    one, pool = data.deployments[d], data.pools[q]
    screened, candidates = offer.screened, offer.screened.candidates
    position = one.row
    row = int(screened.rows[position])
    seen = screened.prediction
    scheme = candidates.schemes[int(candidates.scheme_index[row])]

    def at(name: str) -> float:
        return float(getattr(seen, name)[position])

    accuracy = scheme.accuracy
    return Deployment(
        id=d,
        request_class=data.setting.classes[one.class_index].name,
        accelerator=pool.server_type.accelerator.id,
        server_type=one.server_type,
        pool=q,
        tensor_parallel=int(candidates.tensor_parallel[row]),
        pipeline_parallel=int(candidates.pipeline_parallel[row]),
        expert_parallel=int(candidates.expert_parallel[row]),
        attention_data_parallel=int(candidates.attention_data_parallel[row]),
        accelerators_per_replica=one.width,
        scheme=scheme.scheme.id,
        kv_scheme=scheme.kv_scheme.id,
        recovery=scheme.recovery,
        concurrency=int(screened.concurrency[row]),
        replicas=fleet.replicas[pair],
        rates_requests_per_s=fleet.rates[pair],
        prediction=Prediction(
            ttft_ms=at("ttft_ms"),
            tpot_ms=at("tpot_ms"),
            latency_ms=at("latency_ms"),
            requests_per_s=at("requests_per_s"),
            output_tokens_per_s=at("output_tokens_per_s"),
            vram_gib=at("total_gib"),
            vram_items_gib={
                name: at(f"{name}_gib")
                for name in ("weights", "kv", "activation", "graphs", "communication", "runtime", "reserve")
            },
            nvlink_gb_s=at("nvlink_gb_s"),
            nvlink_link_gb_s=at("nvlink_limit_gb_s"),
            accuracy=accuracy.quantile if accuracy.quantile is not None else 0.0,
            accuracy_mean=accuracy.mean,
            accuracy_probability=accuracy.probability,
            busy_kw_per_server=one.busy_air_kw,
            step_ms={
                name: at(f"{name}_ms") for name in ("weights", "kv", "compute", "communication", "overhead", "prefill")
            },
        ),
    )


def server_row(data: ProgramData, fleet: Fleet, q: str) -> ServerGroup:
    """The servers of one pool."""
    pool: Pool = data.pools[q]
    count, spare = fleet.servers[q], fleet.spare.get(q, 0)
    return ServerGroup(
        pool=q,
        server_type=pool.server_type.id,
        accelerator=pool.server_type.accelerator.id,
        accelerators_per_server=pool.server_type.accelerators,
        sourcing=pool.sourcing,
        cooling=pool.cooling.id if pool.cooling is not None else None,
        servers=count,
        in_service=count - spare,
        spare=spare,
        racks=-(-count // pool.per_rack) if pool.is_bought else 0,
        servers_per_rack=pool.per_rack,
        server_kw=pool.server_kw,
        idle_kw=data.idle_kw.get(q, 0.0),
    )


def plant_rows(data: ProgramData, quantities: Mapping[QuantityKey, float]) -> tuple[CoolingPlant, ...]:
    """Plants that are built."""
    from optimizer.costs.cooling import plant_options
    from optimizer.setting import plant_pue

    climate = data.setting.catalog.climates[data.setting.instance.site.climate]
    rows = []
    for option in plant_options(data.setting):
        heat = quantities.get(("PlantKw", option.id), 0.0)
        if heat:
            mean, design = plant_pue(option, climate)
            rows.append(CoolingPlant(option=option.id, heat_kw=heat, pue_mean=mean, pue_design=design))
    return tuple(rows)


def search_count(screened: Screened, kept: int) -> SearchCount:
    """How much was searched."""
    return SearchCount(
        candidates=screened.candidates.size,
        admissible=int(screened.rows.size),
        kept=kept,
        killed_by_limit=screened.killed_by_limit(),
        not_startable=dict(sorted(screened.candidates.not_startable.items())),
    )


def messages(data: ProgramData, fleet: Fleet) -> tuple[str, ...]:
    """What a buyer should know before believing the plan."""
    told = []
    used = {data.pools[q].server_type.accelerator.id: data.pools[q].server_type.accelerator for q in fleet.servers}
    for key, row in sorted(used.items()):
        if row.confidence == "low":
            told.append(f"{key}: its figures are of low confidence")
    bought = {data.pools[q].server_type.id for q in fleet.servers if data.pools[q].is_bought}
    told += [
        f"{refusal.server_type} is not offered with {refusal.cooling}: {refusal.reason}"
        for refusal in data.setting.refusals
        if refusal.server_type in bought
    ]
    if (
        data.setting.instance.targets.accuracy_floor_fraction is None
        and data.setting.instance.targets.accuracy_floor_score is None
    ):
        told.append("no accuracy floor is stated: 0.99 of the unquantized model is held")
    return tuple(told)


#: Generations whose serving constants rest on measured points (docs/method.md); the others are scaled or assumed.
MEASURED_GENERATIONS = frozenset({"ampere", "ada", "hopper", "blackwell", "cdna3"})


def defaulted(instance: Instance) -> tuple[DefaultedField, ...]:
    """Fields left to their defaults."""
    return tuple(
        DefaultedField(field=one.field, value=str(one.value), unit=one.unit, source=one.source)
        for one in defaults_used(instance)
    )


def catalog_rows(
    data: ProgramData, screened: Screened, fleet: Fleet, quantities: Mapping[QuantityKey, float]
) -> tuple[CatalogRow, ...]:
    """Every catalogue row that the plan rests on."""
    setting = data.setting
    catalog = setting.catalog
    keys: set[tuple[str, str]] = {("climates", setting.instance.site.climate)}
    for q in fleet.servers:
        pool = data.pools[q]
        row = pool.server_type.accelerator
        keys |= {("accelerators", row.id), ("power_curves", row.generation)}
        if pool.cooling is not None:
            keys |= {("cooling", pool.cooling.id), ("purchase_prices", row.id)}
    keys |= {("cooling", key[1]) for key in quantities if key[0] == "PlantKw"}
    keys |= {("fabrics", key[1]) for key in quantities if key[0] == "FabricAccelerators"}
    for d, _ in fleet.replicas:
        scheme = screened.candidates.schemes[
            int(screened.candidates.scheme_index[screened.rows[data.deployments[d].row]])
        ]
        keys |= {("schemes", scheme.scheme.id), ("kv_schemes", scheme.kv_scheme.id)}
    if screened.candidates.model.catalog_id is not None:
        keys.add(("models", screened.candidates.model.catalog_id))
    keys |= _price_rows(data, quantities)
    rows = []
    for table, key in sorted(keys):
        found = getattr(catalog, table).get(key)
        if found is not None:
            rows.append(CatalogRow(table=table, id=key, row=found.model_dump(mode="json")))
    return tuple(rows)


def _price_rows(data: ProgramData, quantities: Mapping[QuantityKey, float]) -> set[tuple[str, str]]:
    """Rows that only prices rest on: electricity, facility figures, rental offers, recovery steps."""
    setting = data.setting
    site = setting.instance.site
    keys: set[tuple[str, str]] = set()
    billed = {term.source for term in data.terms if quantities.get(term.quantity, 0.0)}
    keys |= {("facility", key) for key in FACILITY_FIGURES if setting.catalog.facility[key].source in billed}
    if site.electricity_usd_per_kwh is None and data.bought:
        region = site.electricity_region or setting.catalog.climates[site.climate].electricity_region
        keys.add(("electricity", region))
    for key, offer in setting.catalog.rental_offers.items():
        if f"{offer.provider} {offer.instance}: {offer.source}" in billed:
            keys.add(("rental_offers", key))
    if any(key[0] == "SchemePrepared" and term.quantity == key for key in quantities for term in data.terms):
        keys |= {("recovery_steps", key) for key in setting.catalog.recovery_steps}
    return keys


#: Facility figures that the bill and the power of servers rest on.
FACILITY_FIGURES = ("colo_wholesale_1mw_plus", "rack_hardware", "server_fan_share_air")


def provenance(instance: Instance, options: Options, solver: str) -> Provenance:
    """What made the answer."""
    return Provenance(
        tool=f"gpu-cluster-optimizer {__version__}",
        instance_sha256=instance_sha256(instance),
        catalog_sha256=catalog_sha256(),
        factors_sha256=factors_sha256(),
        solver=solver,
        options={"gap": options.gap, "threads": options.threads, "seed": options.seed},
    )
