"""Fleet checks: packing, spares, racks, plants, network, power and energy (docs/method.md sections 5 and 6)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from optimizer.plan import Deployment, Plan, PrefillRole
from optimizer.units import HOURS_PER_YEAR
from optimizer.verify.climate import captured_fraction, pue, weather
from optimizer.verify.facts import ORDINARY_AIR, Facts, GroupFacts
from optimizer.verify.finding import Ledger
from optimizer.verify.orders import network_order
from optimizer.verify.spares import needed_spares


@dataclass(frozen=True, slots=True)
class Fleet:
    """The plan's groups by pool, and quantities that the checker computed from them."""

    groups: Mapping[str, GroupFacts]
    heat_kw: Mapping[str, float]
    spares_needed: Mapping[str, int]
    network: Mapping[str, int]
    it_kw: float
    meter_kw: float
    energy_kwh: Mapping[str, "PoolEnergy"]
    accelerators: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PoolEnergy:
    """Energy of a pool's servers in a year, kWh without PUE: what idles, and what requests add.

    ``level_kwh`` is the latter at each busy level, ``peak_kw`` what requests draw at the peak.
    """

    idle_kwh: float
    requests_kwh: float
    level_kwh: tuple[float, ...]
    peak_kw: float


def servers_per_replica(one: Deployment, size: int) -> float:
    """What one replica blocks of servers of ``size`` accelerators: a share of one, or several whole ones.

    The group that exchanges in every layer (TP x attention DP) stays in one server; pipeline stages may lie in others.
    """
    width = one.accelerators_per_replica
    if width <= size:
        return 1.0 / (size // width)
    if one.prefill is None:
        return float(_whole_servers(one, size))
    # Replicas narrower than a server stand side by side, those of both roles together.
    side_by_side = servers = 0
    for count, role in ((one.prefill.replicas, one.prefill), (one.decode_replicas, one)):
        wide = role.tensor_parallel * role.pipeline_parallel * role.attention_data_parallel
        if wide > size:
            servers += count * _whole_servers(role, size)
        else:
            side_by_side += count * wide
    return float(servers + -(-side_by_side // size))


def _whole_servers(one: Deployment | PrefillRole, size: int) -> int:
    group = one.tensor_parallel * one.attention_data_parallel
    return -(-one.pipeline_parallel // (size // group))


def measure(facts: Facts, plan: Plan, groups: Mapping[str, GroupFacts]) -> Fleet:
    """Compute every quantity of the fleet from counts and rates."""
    bought = [one for one in groups.values() if one.is_bought]
    hall = [one for one in groups.values() if one.in_hall]
    heat: defaultdict[str, float] = defaultdict(float)
    for one in bought:
        assert one.option is not None
        total = one.group.servers * one.server_kw
        share = captured_fraction(one.option)
        heat[one.option.id] += share * total
        if share < 1.0:
            heat[ORDINARY_AIR] += (1.0 - share) * total
    accelerators = Counter[str]()
    for one in groups.values():
        accelerators[one.group.accelerator] += one.group.servers * one.group.accelerators_per_server
    return Fleet(
        groups=groups,
        heat_kw={key: value for key, value in heat.items() if value > 0},
        spares_needed=_spares_needed(facts, hall),
        network=_network(facts, bought),
        it_kw=sum(one.group.servers * one.server_kw for one in hall),
        meter_kw=sum(one.group.servers * one.server_kw * one.pue.design for one in hall),
        energy_kwh={one.group.pool: _energy(facts, plan, one) for one in hall},
        accelerators=accelerators,
    )


def _spares_needed(facts: Facts, hall: list[GroupFacts]) -> dict[str, int]:
    targets = facts.instance.targets
    in_service, sizes = Counter[str](), dict[str, int]()
    for one in hall:
        in_service[one.group.server_type] += one.group.in_service
        sizes[one.group.server_type] = one.group.accelerators_per_server
    return {name: needed_spares(targets, sizes[name], count) for name, count in in_service.items()}


def linked(bought: Iterable[GroupFacts]) -> dict[float, int]:
    """Bought accelerators by the speed of their link: those of one speed share a network."""
    by_speed = Counter[float]()
    for one in bought:
        by_speed[one.row.scale_out_gb_s] += one.group.servers * one.group.accelerators_per_server
    return dict(by_speed)


def _network(facts: Facts, bought: list[GroupFacts]) -> dict[str, int]:
    """Accelerators by the fabric that is ordered for them; the empty name where no fabric is large enough."""
    tiers = Counter[str]()
    for speed, count in linked(bought).items():
        largest = max(one.max_accelerators for one in facts.catalog.fabric_for(speed))
        tiers[network_order(facts, speed, count)[0].id if count <= largest else ""] += count
    return dict(tiers)


def _energy(facts: Facts, plan: Plan, one: GroupFacts) -> PoolEnergy:
    above = [0.0] * len(facts.busy_levels)
    for deployment in plan.deployments:
        if deployment.pool != one.group.pool:
            continue
        above_idle = one.loaded_kw(deployment.prediction.busy_kw_per_server) - one.idle_kw
        servers = servers_per_replica(deployment, one.group.accelerators_per_server)
        for place, rate in enumerate(deployment.rates_requests_per_s):
            above[place] += above_idle * servers * rate / deployment.prediction.requests_per_s
    kwh = tuple(level.hours * kw for level, kw in zip(facts.busy_levels, above, strict=True))
    at_peak = above[0] if facts.demand_usd_per_kw_month else 0.0
    return PoolEnergy(one.group.servers * one.idle_kw * HOURS_PER_YEAR, sum(kwh), kwh, at_peak)


def check_fleet(ledger: Ledger, facts: Facts, plan: Plan, fleet: Fleet) -> None:
    """Hold the plan's counts and powers against the checker's own."""
    _check_packing(ledger, plan, fleet)
    _check_spares(ledger, plan, fleet)
    for place, group in enumerate(plan.servers):
        one, path = fleet.groups[group.pool], f"servers[{place}]"
        ledger.same(
            "V-RACK", f"{path}.servers_per_rack", group.servers_per_rack, one.per_rack, "by power and by height"
        )
        ledger.number(
            "V-POWER", f"{path}.server_kw", group.server_kw, one.server_kw, "power of one server and its network"
        )
        ledger.number("V-POWER", f"{path}.idle_kw", group.idle_kw, one.idle_kw, "power of one server without requests")
        if one.in_hall and ledger.check(
            one.per_rack >= 1,
            "V-RACK",
            f"{path}.cooling",
            group.cooling,
            "a rack that takes it",
            "too dense for this cooling",
        ):
            racks = -(-group.servers // one.per_rack)
            ledger.same("V-RACK", f"{path}.racks", group.racks, racks, f"{one.per_rack} servers to a rack")
    _check_plants(ledger, facts, plan, fleet)
    given = {one.fabric: float(one.accelerators) for one in plan.network}
    wanted = {key: float(value) for key, value in fleet.network.items()}
    ledger.numbers("V-TIER", "network", given, wanted, "the network tier that the bought accelerators reach")
    total = sum(fleet.accelerators.values())
    ledger.same("V-COUNT", "accelerators", plan.accelerators, total, "accelerators of all servers")
    ledger.number("V-POWER", "power_kw", plan.power_kw, fleet.meter_kw, "power at the meter in the hottest hours")
    energy = sum(
        (fleet.energy_kwh[pool].idle_kwh + fleet.energy_kwh[pool].requests_kwh) * fleet.groups[pool].pue.mean
        for pool in fleet.energy_kwh
    )
    ledger.number(
        "V-POWER", "energy_kwh_per_year", plan.energy_kwh_per_year, energy, "idle energy and requests, times PUE"
    )
    if plan.plant_load_fractions is not None:
        own_loads = _plant_loads(fleet)
        ledger.numbers("V-POWER", "plant_load_fractions", plan.plant_load_fractions, own_loads, "how full plants run")
    for path, found, own in (
        ("carbon_tonnes_per_year", plan.carbon_tonnes_per_year, carbon_tonnes(facts, fleet)),
        ("water_m3_per_year", plan.water_m3_per_year, water_m3(fleet)),
    ):
        # An earlier version wrote neither.
        if found is not None:
            ledger.number("V-POWER", path, found, own, "what the energy of bought servers brings with it")


def _plant_loads(fleet: Fleet) -> dict[str, float]:
    """Mean over most IT power of the servers under each cooling option."""
    drawn, most = defaultdict[str, float](float), defaultdict[str, float](float)
    for pool, energy in fleet.energy_kwh.items():
        one = fleet.groups[pool]
        assert one.option is not None
        drawn[one.option.id] += (energy.idle_kwh + energy.requests_kwh) / HOURS_PER_YEAR
        most[one.option.id] += one.group.servers * one.server_kw
    return {key: drawn[key] / kw for key, kw in most.items()}


def carbon_tonnes(facts: Facts, fleet: Fleet) -> float:
    """Carbon dioxide of the energy of bought servers in a year."""
    return sum(
        (energy.idle_kwh + energy.requests_kwh) * fleet.groups[pool].pue.mean * facts.tonnes_per_kwh
        for pool, energy in fleet.energy_kwh.items()
    )


def water_m3(fleet: Fleet) -> float:
    """Water that cooling of bought servers takes in a year."""
    total = 0.0
    for pool, energy in fleet.energy_kwh.items():
        option = fleet.groups[pool].option
        assert option is not None
        total += (energy.idle_kwh + energy.requests_kwh) * option.water_typical_l_per_kwh / 1000.0
    return total


def _check_spares(ledger: Ledger, plan: Plan, fleet: Fleet) -> None:
    spares = Counter[str]()
    for group in plan.servers:
        if group.sourcing in ("buy", "owned"):
            spares[group.server_type] += group.spare
    for name, needed in fleet.spares_needed.items():
        found = spares[name]
        ledger.check(
            found >= needed, "V-SPARE", f"servers[{name}].spare", found, f">= {needed}", "too few spare servers"
        )


def _check_plants(ledger: Ledger, facts: Facts, plan: Plan, fleet: Fleet) -> None:
    heat = {one.option: one.heat_kw for one in plan.plants}
    ledger.numbers("V-COOLING", "plants", heat, dict(fleet.heat_kw), "each plant is sized for the heat that goes to it")
    for place, plant in enumerate(plan.plants):
        if plant.option in facts.catalog.cooling:
            own = pue(facts.catalog.cooling[plant.option], weather(facts.instance.site, facts.climate))
            path = f"plants[{place}]"
            ledger.number("V-COOLING", f"{path}.pue_mean", plant.pue_mean, own.mean, "mean PUE over the site's weather")
            ledger.number("V-COOLING", f"{path}.pue_design", plant.pue_design, own.design, "PUE in the hottest hours")


def _check_packing(ledger: Ledger, plan: Plan, fleet: Fleet) -> None:
    """Every replica stands on servers of its pool, and the servers that stand there are in service.

    Where servers are paid by level, so at each of them.
    """
    placed, servers = Counter[tuple[str, str, int | None]](), Counter[tuple[str, int | None]]()
    for place, row in enumerate(plan.packing):
        path = f"packing[{place}]"
        mine = {one.id: one for one in plan.deployments if one.pool == row.pool}
        known = row.pool in fleet.groups and row.replicas.keys() <= mine.keys()
        found = f"{sorted(row.replicas)} on {row.pool}"
        if not ledger.check(known, "V-PACK", path, found, sorted(mine), "a pool or deployment that is not there"):
            continue
        servers[row.pool, row.level] += row.servers
        placed.update({(row.pool, name, row.level): count for name, count in row.replicas.items()})
        fine = row.servers >= 1 and min(row.replicas.values(), default=0) >= 1
        if ledger.check(
            fine, "V-PACK", path, row.servers, ">= 1 servers with replicas", "a set of servers without use"
        ):
            size = fleet.groups[row.pool].group.accelerators_per_server
            _check_set(ledger, path, row.servers, row.replicas, mine, size)
    for place, one in enumerate(plan.deployments):
        for level, count in _by_level(one.replicas_by_level, one.replicas):
            path = f"deployments[{place}].replicas"
            stand = placed.pop((one.pool, one.id, level), 0)
            ledger.same("V-PACK", path, count, stand, "every replica is placed")
    ledger.same("V-PACK", "packing", sorted(map(str, placed)), [], "a level at which this pool has no packing")
    for place, group in enumerate(plan.servers):
        for level, count in _by_level(group.servers_by_level, group.in_service):
            path, used = f"servers[{place}].in_service", servers[group.pool, level]
            ledger.check(used <= count, "V-PACK", path, count, f">= {used}", "replicas stand on servers in service")


def _by_level(counts: tuple[int, ...], always: int) -> Iterable[tuple[int | None, int]]:
    """(level, count) where things are counted by level, else one count that holds always."""
    return list(enumerate(counts)) if counts else [(None, always)]


def _check_set(
    ledger: Ledger, path: str, servers: int, replicas: dict[str, int], deployments: dict[str, Deployment], size: int
) -> None:
    """Servers that hold the same replicas: whole replicas side by side in each, or whole servers for each replica."""
    wide = [name for name in replicas if deployments[name].accelerators_per_replica > size]
    if wide:
        needed = round(sum(replicas[name] * servers_per_replica(deployments[name], size) for name in wide))
        alone = len(wide) == len(replicas)
        ledger.check(alone, "V-PACK", path, sorted(replicas), wide, "a replica of whole servers shares them with none")
        ledger.same("V-PACK", f"{path}.servers", servers, needed, "whole servers for each replica")
        return
    even = all(count % servers == 0 for count in replicas.values())
    ledger.check(even, "V-PACK", path, replicas, f"multiples of {servers}", "these servers hold the same replicas")
    used = sum(-(-count // servers) * deployments[name].accelerators_per_replica for name, count in replicas.items())
    ledger.check(
        used <= size, "V-PACK", path, used, f"<= {size} accelerators", "the replicas of a server do not fit it"
    )
