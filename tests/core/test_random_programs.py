"""Random programs made by hand: what is left out before solving never changes the least cost.

Pools, deployments, prices, steps, caps and spares are drawn so that every reason to leave something out occurs.
"""

import math
from dataclasses import replace
from random import Random

import pytest

from optimizer.bound import lower_bound
from optimizer.catalog.rows import CoolingOption
from optimizer.costs.term import Term
from optimizer.pools import undominated_pools, undominated_schemes
from optimizer.program import build_program
from optimizer.program_data import ProgramData
from optimizer.prune import prune
from optimizer.setting import Pool, ServerType
from optimizer.simple_plan import best_simple_plan
from optimizer.solver import Compiled, Reason
from tests.core.hand import EXACT, Json, bought, data_of, instance, offered, option, price, rented, server_type, solve
from tests.core.steps import fabrics

SEEDS = (*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 120)))
TOLERANCE = 1e-6
#: Rows that whole plans keep anyway; they only tighten fractional ones.
IMPLIED = ("Plant_Routed", "Scheme_Routed", "Whole_Servers")


def draw(seed: int) -> ProgramData:
    """One or two server types, up to three ways to cool and two to rent, one or two classes."""
    random = Random(seed)
    plants = [
        option("air", fixed=0.0),
        option("cold", capture=0.75),
        option("tank", capture=1.0),
    ]
    types, pools, terms = _pools(random, plants)
    classes = random.choice((1, 1, 2))
    demand = tuple(random.choice((3.0, 7.0, 11.5)) for _ in range(classes))
    deployments = []
    for b in range(classes):
        for of in types:
            for width in random.sample((2, 3, 4, 8, 16), random.choice((1, 2, 3))):
                rate = 0.125 * width * random.uniform(0.7, 1.1)
                key = f"{of.id}w{width}c{b}"
                scheme = random.choice(("plain", "tuned"))
                deployments.append(
                    offered(key, of, width=width, rate=rate, class_index=b, scheme=scheme, busy_kw=random.uniform(6, 9))
                )
    terms.append(price(("SchemePrepared", "tuned"), random.uniform(0.0, 2.0), component="recovery", capital=50.0))
    targets = {
        "spare_fraction": random.choice((0.0, 0.05, 0.2)),
        "spare_servers": random.choice((0, 0, 1)),
        "peak_utilization_fraction": random.choice((1.0, 0.9)),
    }
    load: Json = random.choice(({}, {"mean_fraction": 0.5}, {"hourly_fractions": [1.0] * 8 + [0.4] * 16}))
    workload: Json = {"load": load} if load else {}
    if classes > 1:
        workload["classes"] = [
            {"name": f"c{b}", "request": {"input_tokens": 9, "output_tokens": 9}, "demand": {"requests_per_s": one}}
            for b, one in enumerate(demand)
        ]
    given = instance(workload=workload, targets=targets, **_caps(random))
    steps = fabrics()
    dear = random.choice((0.0, 0.02))
    terms += [
        price(("FabricAccelerators", one.id), dear * one.tiers, component="network", capital=20.0 * one.tiers)
        for one in steps[50.0]
    ]
    return data_of(given, pools, deployments, terms, demand=demand, most_servers=24, fabrics=steps, residual=plants[0])


def _pools(random: Random, plants: list[CoolingOption]) -> tuple[list[ServerType], list[Pool], list[Term]]:
    terms: list[Term] = []
    pools: list[Pool] = []
    types = []
    rack = random.choice((0.0, 0.1))
    for name in random.choice((("a",), ("a", "b"))):
        kind = random.choice(("all_units", "incremental"))
        of = server_type(
            name,
            discounts=random.choice(((), ((4, 0.1), (9, 0.3)))),
            kind="all_units" if kind == "all_units" else "incremental",
            rent={"on_demand": 2.0, "reserved_1yr": random.choice((1.8, 2.0))},
        )
        types.append(of)
        base = random.uniform(0.8, 1.2)
        for number in range(len(of.discounts) + 1):
            terms.append(price(("TierServers", of.id, str(number)), base * (1 - 0.1 * number), component="servers"))
            if number and kind == "incremental":
                terms.append(price(("TierUsed", of.id, str(number)), base * 0.3 * number, component="servers"))
        for cooling in random.sample(plants, random.choice((1, 2, 3))):
            q = f"{of.id}_{cooling.id}"
            kw = random.choice((8.0, 10.0))
            pools.append(bought(q, of, cooling=cooling, per_rack=random.choice((1, 2, 4)), server_kw=kw, pue=1.25))
            terms += [
                price(
                    ("Servers", q), random.choice((0.0, 0.05, 0.2)), component="servers", capital=random.uniform(0, 100)
                ),
                price(("BusyKwh", q), random.choice((0.0, 1e-5, 2e-5)), component="energy"),
                price(("Racks", q), rack, component="space", capital=10.0),
            ]
        if random.random() < 0.4:
            for term in of.rent:
                pools.append(rented(f"{of.id}_{term}", of, term))
                terms.append(price(("Servers", f"{of.id}_{term}"), of.rent[term].usd))
    for one in plants:
        terms += [
            price(("PlantBuilt", one.id), random.choice((0.0, 0.4)), component="cooling", capital=40.0),
            price(("PlantKw", one.id), random.choice((0.0, 0.01)), component="cooling", capital=1.0),
        ]
    return types, pools, terms


def _caps(random: Random) -> Json:
    sections: Json = {"site": {}, "economics": {}, "choices": {}}
    if random.random() < 0.25:
        sections["site"]["power_kw"] = random.uniform(60, 250)
    if random.random() < 0.25:
        sections["site"]["racks"] = random.randint(2, 10)
    if random.random() < 0.2:
        sections["economics"]["budget_capex_usd"] = random.uniform(200, 3000)
    if random.random() < 0.2:
        sections["choices"]["supply"] = {"a": random.randint(4, 20) * 8}
    if random.random() < 0.2:
        sections["choices"]["max_accelerator_types"] = 1
    return sections


def least(data: ProgramData) -> float:
    """Least cost, infinite where there is no plan."""
    found = solve(data)
    return math.inf if found is None else found.usd_per_hour


@pytest.mark.parametrize("seed", SEEDS)
def test_leaving_out_pools_and_pairs_keeps_the_least_cost(seed: int) -> None:
    data = draw(seed)
    best = least(data)
    bound, extra = lower_bound(data)
    assert bound <= best * (1 + TOLERANCE)
    simple = best_simple_plan(data, extra)
    if simple is not None:
        assert simple.usd_per_hour >= best * (1 - TOLERANCE)
    schemes = data.only_pairs(undominated_schemes(data))
    assert least(schemes) == pytest.approx(best, rel=TOLERANCE)
    fewer = data.only_pools(undominated_pools(data))
    assert least(fewer) == pytest.approx(best, rel=TOLERANCE)
    assert least(prune(data)) == pytest.approx(best, rel=TOLERANCE)
    assert least(prune(fewer)) == pytest.approx(best, rel=TOLERANCE)


def without_implied(data: ProgramData) -> float:
    """Least cost of the program without the rows that only tighten."""
    model = build_program(data)
    for name in IMPLIED:
        row = model.find_component(name)
        if row is not None:
            row.deactivate()
    outcome = Compiled(model).solve(EXACT)
    return math.inf if outcome.reason is Reason.INFEASIBLE else outcome.objective


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_that_only_tighten_keep_the_least_cost(seed: int) -> None:
    data = draw(seed)
    assert without_implied(data) == pytest.approx(least(data), rel=TOLERANCE)


def test_a_pool_in_use_has_a_whole_server() -> None:
    """A server could carry three classes' worth: the relaxation still pays for a whole one."""
    of = server_type()
    terms = [price(("Servers", "air"), 1.0)]
    data = data_of(instance(), [bought("air", of)], [offered("d", of, width=1, rate=1.0)], terms, demand=(1.0,))
    model = build_program(data)
    assert model.find_component("Whole_Servers") is not None
    assert least(data) == pytest.approx(1.0)


def spares_elsewhere(servers: float) -> ProgramData:
    """Requests are cheaper by liquid, spares in air: one server in four is a spare."""
    of = server_type()
    pools = [bought("air", of), bought("liquid", of, cooling=option("tank", capture=1.0))]
    terms = [price(("Servers", "air"), 1.0), price(("Servers", "liquid"), 1.5), price(("BusyKwh", "air"), 1e-4)]
    given = instance(targets={"spare_fraction": 0.25})
    return data_of(given, pools, [offered("d", of)], terms, demand=(servers,), fabrics=fabrics())


@pytest.mark.parametrize(("servers", "usd_per_hour"), [(4.0, 4 * 1.5 + 1.0), (20.0, 20 * 1.5 + 5.0)])
def test_spares_may_stand_in_another_pool_than_the_replicas(servers: float, usd_per_hour: float) -> None:
    data = spares_elsewhere(servers)
    assert least(data) == pytest.approx(usd_per_hour)
    assert lower_bound(data)[0] <= usd_per_hour * (1 + TOLERANCE)
    fewer = prune(data)
    assert least(fewer) == pytest.approx(usd_per_hour)


def test_pools_that_only_spares_could_use_are_left_out_where_no_spares_are_asked_for() -> None:
    data = spares_elsewhere(4.0)
    kept = data.only_pairs([("d", "liquid")])
    assert set(kept.pools) == {"air", "liquid"}
    targets = data.setting.instance.targets.model_copy(update={"spare_fraction": 0.0})
    changed = data.setting.instance.model_copy(update={"targets": targets})
    none = replace(data, setting=replace(data.setting, instance=changed)).only_pairs([("d", "liquid")])
    assert set(none.pools) == {"liquid"}


@pytest.mark.parametrize(("tank", "left"), [(0.0, {"tank"}), (0.4, {"cold", "tank"})])
def test_what_a_plant_costs_once_keeps_a_pool_that_needs_it_from_dominating(tank: float, left: set[str]) -> None:
    """Servers in the tank are cheaper, but their plant costs something whatever its size; the other one's is there."""
    of = server_type()
    pools = [
        bought("cold", of, cooling=option("cold", capture=0.75)),
        bought("tank", of, cooling=option("tank", capture=1.0)),
    ]
    terms = [price(("Servers", "cold"), 0.1), price(("PlantBuilt", "tank"), tank, component="cooling")]
    data = data_of(instance(), pools, [offered("d", of)], terms, demand=(2.0,), fabrics=fabrics())
    assert set(undominated_pools(data)) == left
    assert least(data) == pytest.approx(min(0.2, tank))


def test_a_dearer_upkeep_of_an_equal_plant_is_seen() -> None:
    """Both plants cost as much to build; the second costs more each year than the servers save."""
    of = server_type()
    pools = [bought(key, of, cooling=option(key, capture=1.0, fixed=1000.0)) for key in ("one", "two")]
    terms = [price(("Servers", "one"), 0.1)]
    terms += [
        price(("PlantBuilt", key), usd, component="cooling", capital=1000.0)
        for key, usd in (("one", 1.0), ("two", 2.0))
    ]
    data = data_of(instance(), pools, [offered("d", of)], terms, demand=(2.0,), fabrics=fabrics())
    assert undominated_pools(data) == ("one", "two")
    assert least(data) == pytest.approx(1.2)
