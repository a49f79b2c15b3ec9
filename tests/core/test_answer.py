"""One solve to a plan: ties, runners-up, the same cost with and without domination, a stop that keeps the plan."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optimizer import answer as answer_module
from optimizer import ties
from optimizer.answer import Answer, answer, plan_of, runners_up, uses
from optimizer.api import load, solve
from optimizer.errors import InternalError
from optimizer.extract import TIE
from optimizer.offer import Without, program_data
from optimizer.plan import Plan
from optimizer.program import build_program
from optimizer.program_data import ProgramData
from optimizer.solver import Compiled, Options, Reason, Search
from optimizer.studies.best import offer_of
from tests.core.hand import EXACT, bought, data_of, instance, offered, price, rented, server_type
from tests.core.real import offer, small
from tests.core.steps import fabrics

FAR = 1e12


def by_hand(monkeypatch: pytest.MonkeyPatch, data: ProgramData, **changes: Any) -> Answer:
    """The answer for a program made by hand."""
    monkeypatch.setattr(answer_module, "program_data", lambda _offer, _without: data)
    return answer(None, EXACT, Without(), **changes)  # type: ignore[arg-type]


def servers(found: Answer) -> dict[str, int]:
    """Servers by pool."""
    assert found.fleet is not None
    return found.fleet.servers


def tied(names: Sequence[str], sizes: Sequence[int], **choices: Any) -> ProgramData:
    """Server types at one price and one rate, whatever their size."""
    types = [server_type(name, per_server=size) for name, size in zip(names, sizes, strict=True)]
    pools = [bought(f"{one.accelerator.id}_air", one) for one in types]
    deployments = [offered(f"d{one.accelerator.id}", one, width=one.accelerators) for one in types]
    terms = [price(("Servers", pool.id), 1.0) for pool in pools]
    return data_of(instance(choices=choices), pools, deployments, terms, demand=(2.0,), fabrics=fabrics())


def test_of_equal_plans_the_one_with_fewest_accelerators(monkeypatch: pytest.MonkeyPatch) -> None:
    assert servers(by_hand(monkeypatch, tied(("a", "b", "c"), (8, 4, 6)))) == {"b_air": 2}


def test_then_names_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    for names in (("a", "b"), ("b", "a")):
        assert servers(by_hand(monkeypatch, tied(names, (8, 8)))) == {"a_air": 2}


def test_fewest_types_go_before_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """One a and one b would come first by name; two c are one type."""
    data = tied(("a", "b", "c"), (8, 8, 8), supply={"a": 8, "b": 8})
    assert servers(by_hand(monkeypatch, data)) == {"c_air": 2}


def mix_at_hand(sizes: Sequence[int]) -> ProgramData:
    """One a and one b cost least, by less than a millionth; two c are as good by the ties' window."""
    names = ("a", "b", "c")
    data = tied(names, sizes, supply={"a": sizes[0], "b": sizes[1]})
    cheaper = {"a_air": 1.0 - 2e-8, "b_air": 1.0 - 1e-8, "c_air": 1.0}
    return replace(data, terms=tuple(price(("Servers", pool), usd) for pool, usd in cheaper.items()))


def test_a_mix_that_costs_least_gives_way_to_fewer_types(monkeypatch: pytest.MonkeyPatch) -> None:
    found = by_hand(monkeypatch, mix_at_hand((8, 8, 8)))
    assert found.cheapest is not None
    assert set(found.cheapest.servers) == {"a_air", "b_air"}
    assert servers(found) == {"c_air": 2}


def test_a_mix_that_costs_least_gives_way_to_fewer_accelerators_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert servers(by_hand(monkeypatch, mix_at_hand((8, 8, 4)))) == {"c_air": 2}
    assert servers(by_hand(monkeypatch, mix_at_hand((8, 4, 8)))) == {"a_air": 1, "b_air": 1}


def test_a_mix_is_put_in_the_whole_order_at_once_as_step_by_step() -> None:
    """The founding model under a cap that only a mix of bought and rented servers keeps."""
    asked = load(Path(__file__).parents[2] / "instances" / "dense-600b-open.json")
    capped = asked.model_copy(update={"site": asked.site.model_copy(update={"power_kw": 436.0})})
    data = program_data(offer_of(capped))
    assert data is not None
    model = build_program(data)
    compiled = Compiled(model)
    outcome = compiled.solve(EXACT, search=Search.SMALL)
    assert outcome.values is not None
    compiled.add_row(compiled.cost_vector(model.TotalCost.expr), outcome.objective * (1.0 + TIE))
    order = ties.Order(compiled, model, data)
    found = outcome.values
    for switched in (False, True):
        start = found
        if switched:
            costs = order.with_types(order.add_switches(compiled))
            start = np.concatenate((found, np.array(order.used(found), dtype=np.float64)))
        else:
            costs = order.without_types()
        compiled.set_objective(costs)
        compiled.start_from(start)
        step = compiled.solve(Options(gap=ties.ORDER_GAP))
        assert step.values is not None
        found = compiled.rounded(step.values)
    assert sum(order.used(found)) == 2
    taken = answer(offer_of(capped), EXACT, Without())
    assert servers(taken) == {q: round(found[place]) for q, place in order.column.items() if found[place]}


def test_ties_within_a_millionth_count_as_equal_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    for dearer, best in ((1e-7, "b_air"), (1e-5, "a_air")):
        big, small_one = server_type("a"), server_type("b", per_server=4)
        pools = [bought("a_air", big), bought("b_air", small_one)]
        deployments = [offered("da", big), offered("db", small_one, width=4)]
        terms = [price(("Servers", "a_air"), 1.0), price(("Servers", "b_air"), 1.0 + dearer)]
        data = data_of(instance(), pools, deployments, terms, demand=(2.0,), fabrics=fabrics())
        assert servers(by_hand(monkeypatch, data)) == {best: 2}


def test_breaking_ties_adds_nothing_that_nobody_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that cost nothing are not bought for fun."""
    of = server_type()
    data = data_of(instance(), [bought("air", of)], [offered("d", of)], [], demand=(2.0,), fabrics=fabrics())
    assert servers(by_hand(monkeypatch, data)) == {"air": 2}


def test_infeasible_and_without_data(monkeypatch: pytest.MonkeyPatch) -> None:
    of = server_type(rent={"on_demand": 1.0})
    given = instance(choices={"supply": {"a": 8}})
    data = data_of(given, [rented("rent", of)], [offered("d", of)], [], demand=(2.0,))
    found = by_hand(monkeypatch, data)
    assert (found.outcome.reason, found.fleet) == (Reason.INFEASIBLE, None)
    with pytest.raises(InternalError):
        plan_of(None, found, EXACT)  # type: ignore[arg-type]


INSTANCES: dict[str, dict[str, Any]] = {
    "plain": {},
    "bought": {"choices": {"sourcing": ["buy"]}, "targets": {"tpot_ms": 20.0}},
    "rented": {"choices": {"sourcing": ["on_demand", "reserved_3yr"]}},
    "levels": {"workload": {"load": {"mean_fraction": 0.4}}},
    "users": {"workload": {"demand": {"concurrent_users": 2000, "think_time_s": 5}}},
    "cooled": {
        "choices": {
            "sourcing": ["buy"],
            "cooling": ["air_containment_econ", "d2c_1p"],
            "accelerators": ["h100-80gb-sxm"],
        },
        "workload": {"demand": {"requests_per_s": 1000}},
    },
}


def plan(given: dict[str, Any]) -> Plan:
    """The plan of an instance."""
    found = solve(small(**given)).plan
    assert found is not None
    return found


@pytest.mark.parametrize("name", INSTANCES)
def test_cost_does_not_depend_on_what_is_left_out_before_solving(name: str) -> None:
    given = small(**INSTANCES[name])
    with_all = solve(given, dominate=False).plan
    fewer = solve(given).plan
    assert with_all is not None
    assert fewer is not None
    assert fewer.bill.usd_per_year == pytest.approx(with_all.bill.usd_per_year, rel=2e-6)
    assert fewer.accelerators == with_all.accelerators


@pytest.mark.parametrize("name", INSTANCES)
def test_each_runner_up_does_without_its_thing_costs_no_less_and_is_a_plan(name: str) -> None:
    given = small(**INSTANCES[name])
    best = plan(INSTANCES[name])
    one_offer = offer(given)
    named = dict(uses(best))
    assert {row.without for row in best.runners_up} == set(named)
    costs = [row.usd_per_hour for row in best.runners_up if row.usd_per_hour is not None]
    assert costs == sorted(costs)
    for row in best.runners_up:
        other = answer(one_offer, EXACT, named[row.without], break_ties=False)
        if row.usd_per_hour is None:
            assert other.fleet is None
            continue
        found = plan_of(one_offer, other, EXACT)
        assert found.bill.usd_per_hour == pytest.approx(row.usd_per_hour, rel=2e-6)
        assert row.usd_per_hour >= best.bill.usd_per_hour * (1 - 2e-6)
        assert row.extra_fraction == pytest.approx(row.usd_per_hour / best.bill.usd_per_hour - 1.0)
        kind, _, key = row.without.partition(" ")
        used: dict[str, set[str | None]] = {
            "accelerator": {group.accelerator for group in found.servers},
            "scheme": {f"{one.scheme}+{one.kv_scheme}+{one.recovery}" for one in found.deployments},
            "cooling": {group.cooling for group in found.servers},
            "sourcing": {group.sourcing for group in found.servers},
        }
        assert key not in used[kind]


def test_without_everything_there_is_no_program() -> None:
    one_offer = offer(small(choices={"accelerators": ["l40s"]}))
    assert program_data(one_offer, Without(accelerators=frozenset({"l40s"}))) is None
    assert answer(one_offer, EXACT, Without(accelerators=frozenset({"l40s"}))).outcome.reason is Reason.INFEASIBLE


def test_runners_up_stop_in_time() -> None:
    one_offer = offer(small())
    best = plan({})
    assert runners_up(one_offer, best, Options(), None, 0.0) == ()
    assert runners_up(one_offer, best, Options(), lambda: True, FAR) == ()


@pytest.mark.parametrize("options", [{"seed": 7}, {"threads": 2}], ids=str)
def test_plans_do_not_depend_on_seed_and_threads(options: dict[str, int]) -> None:
    given = small(**INSTANCES["bought"])
    plain, other = solve(given).plan, solve(given, **options).plan  # type: ignore[arg-type]
    assert plain is not None
    assert other is not None
    assert other.servers == plain.servers
    assert other.bill.usd_per_hour == pytest.approx(plain.bill.usd_per_hour, rel=2e-6)


def test_same_instance_same_bytes() -> None:
    assert plan(INSTANCES["levels"]).model_dump_json() == plan(INSTANCES["levels"]).model_dump_json()


def test_bill_is_the_objective_and_the_sum_of_its_lines() -> None:
    for given in INSTANCES.values():
        found = plan(given)
        assert found.outcome.holds == "proven"
        assert found.bill.usd_per_hour == pytest.approx(found.outcome.objective_usd_per_hour)
        assert sum(line.usd_per_year for line in found.bill.lines) == pytest.approx(found.bill.usd_per_year)
        assert sum(found.bill.usd_per_year_by_component.values()) == pytest.approx(found.bill.usd_per_year)
        assert found.outcome.bound_usd_per_hour <= found.bill.usd_per_hour
