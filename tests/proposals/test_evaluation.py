"""An evaluation agrees with the program where a proposal is a plan, and tells each limit that a proposal breaks."""

import json
from typing import Any

import pytest

from optimizer.api import evaluate, solve
from optimizer.errors import InputError
from optimizer.instance.model import Instance
from optimizer.limits import limit
from optimizer.plan import Plan
from optimizer.proposals.reading import read_proposal_text
from optimizer.proposals.result import Evaluation
from optimizer.proposals.shape import Proposal
from optimizer.report.evaluation import render
from tests.core.real import small
from tests.oracle.random_instances import draw

PROPOSAL: dict[str, Any] = {"accelerator": "h100-80gb-sxm", "servers": 3, "tensor_parallel": 2, "scheme": "w8a8-fp8"}
TOLERANCE = 1e-9


def proposal(**change: Any) -> Proposal:
    """Three servers of H100, with changes; None leaves a key out."""
    value = {key: inner for key, inner in {**PROPOSAL, **change}.items() if inner is not None}
    found = read_proposal_text(json.dumps(value), "p.json", small())
    assert isinstance(found, Proposal)
    return found


def evaluation(given: Instance, **change: Any) -> Evaluation:
    """The proposal against an instance, without its optimum."""
    return evaluate(given, proposal(**change), optimum=False)


def same_as_planned(plan: Plan) -> str | None:
    """Where a plan, taken as a proposal, is priced or judged otherwise than it was planned."""
    found = evaluate(plan.instance, plan, optimum=False)
    if found.broken or found.outside:
        return f"breaks {[row.summary for row in found.broken]}, outside {found.outside}"
    ours, theirs = found.plan.bill, plan.bill
    if abs(ours.usd_per_year - theirs.usd_per_year) > TOLERANCE * theirs.usd_per_year:
        return f"{ours.usd_per_year} USD/year for {theirs.usd_per_year}"
    if ours.capital_usd != pytest.approx(theirs.capital_usd, rel=TOLERANCE):
        return f"{ours.capital_usd} USD of capital for {theirs.capital_usd}"
    needed = {(row.limit, row.where): (row.needed, row.reached) for row in plan.headroom}
    reached = {(row.limit, row.where): (row.needed, row.reached) for row in found.limits}
    # Replicas that do both phases send no caches, so where only they are proposed that limit is not asked.
    differ = {key for key in needed.keys() ^ reached.keys() if key[0] != "kv_link_gb_s"}
    if differ:
        return f"limits {differ}"
    return None


def _every_plan(seeds: range) -> None:
    told = []
    for seed in seeds:
        plan = solve(draw(seed).instance).plan
        if plan is not None and (line := same_as_planned(plan)) is not None:
            told.append(f"seed {seed}: {line}")
    assert not told, "\n".join(told)


def test_plans_evaluate_to_themselves() -> None:
    _every_plan(range(3))


@pytest.mark.slow
def test_many_plans_evaluate_to_themselves() -> None:
    _every_plan(range(3, 30))


#: A limit that the proposal keeps, tightened so that it does not: sections of the instance, and the limit.
BROKEN: dict[str, dict[str, Any]] = {
    "tpot_ms": {"targets": {"tpot_ms": 1.0}},
    "ttft_ms": {"targets": {"ttft_ms": 1.0}},
    "latency_ms": {"targets": {"latency_ms": 10.0}},
    "vram_gib": {"targets": {"vram_fraction": 0.05}},
    "vram_gib_per_accelerator": {"targets": {"vram_gib_per_accelerator": 1.0}},
    "weights_gib_per_accelerator": {"targets": {"weights_gib_per_accelerator": 0.5}},
    "accuracy": {"targets": {"accuracy_floor_fraction": 0.9999}},
    "nvlink_cap_gb_s": {"targets": {"nvlink_gb_s": 0.001}},
    "throughput_requests_per_s": {"workload": {"demand": {"requests_per_s": 1e5}}},
    "power_kw": {"site": {"power_kw": 1.0}},
    "racks": {"site": {"racks": 0}},
    "rack_kw": {"site": {"rack_kw": 1.0}},
    "budget_capex_usd": {"economics": {"budget_capex_usd": 1000.0}},
    "budget_usd_per_year": {"economics": {"budget_usd_per_year": 100.0}},
    "supply": {"choices": {"supply": {"h100-80gb-sxm": 8}}},
    "spare_servers": {"targets": {"spare_servers": 2}},
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_limit_is_told_with_its_figures_and_priced(name: str) -> None:
    found = evaluation(small(**BROKEN[name]), spare_servers=1)
    broken = {row.limit: row for row in found.broken}
    assert name in broken
    row = broken[name]
    assert (row.reached > row.needed) == (limit(name).direction == "<=")
    assert row.field in row.summary
    assert not found.keeps_every_limit
    assert found.plan.bill.usd_per_year > 0.0
    assert "broken" in render(found)
    # Limits that the servers' cost does not hang on leave the bill what it is without them.
    if name in ("power_kw", "racks", "budget_capex_usd", "budget_usd_per_year", "supply", "accuracy"):
        assert found.plan.bill.usd_per_year == pytest.approx(
            evaluation(small(), spare_servers=1).plan.bill.usd_per_year
        )


def test_a_proposal_that_keeps_every_limit() -> None:
    found = evaluate(small(), proposal())
    assert found.keeps_every_limit
    assert found.optimum is not None
    assert found.optimum.extra_usd_per_year >= 0.0
    parts = sum(found.optimum.extra_usd_per_year_by_component.values())
    assert parts == pytest.approx(found.optimum.extra_usd_per_year)
    assert all(len(line) <= 80 for line in render(found).splitlines())


def test_too_little_is_served_no_more_than_it_can() -> None:
    asked = small(workload={"demand": {"requests_per_s": 1e5}})
    found = evaluation(asked)
    assert [row.limit for row in found.broken] == ["throughput_requests_per_s"]
    served = sum(sum(one.rates_requests_per_s) for one in found.plan.deployments)
    assert served == pytest.approx(found.broken[0].reached)


def test_choices_it_does_not_hold_to_are_told() -> None:
    found = evaluation(small(choices={"accelerators": ["l40s"], "sourcing": ["on_demand"]}), cooling="dynamic")
    fields = {one.field: one.value for one in found.outside}
    assert fields["choices.accelerators"] == "h100-80gb-sxm"
    assert fields["choices.sourcing"] == "buy"
    assert fields["choices.cooling"] == "dynamic"
    assert not found.is_allowed


def test_what_is_left_open_follows_the_rules() -> None:
    found = evaluation(small(targets={"spare_fraction": 0.2}), servers=6).plan
    (group,) = found.servers
    assert (group.in_service, group.spare) == (5, 1)
    assert found.deployments[0].replicas == 5 * 4
    stated = evaluation(small(), servers=6, replicas=10).plan
    assert stated.servers[0].spare == 6 - 3
    assert evaluation(small(), concurrency=7).plan.deployments[0].concurrency == 7
    rented = evaluation(small(), sourcing="on_demand").plan
    assert rented.servers[0].spare == 0
    assert rented.bill.capital_usd < found.bill.capital_usd


def test_two_groups_and_a_class_each() -> None:
    classes = [
        {"name": name, "request": {"input_tokens": 500, "output_tokens": 100}, "demand": {"requests_per_s": 50}}
        for name in ("chat", "batch")
    ]
    content = json.loads(small().model_dump_json(by_alias=True, exclude_unset=True))
    content["workload"] = {"model": content["workload"]["model"], "classes": classes}
    given = Instance.model_validate_json(json.dumps(content))
    group = {"accelerator": "h100-80gb-sxm", "servers": 2, "tensor_parallel": 1}
    both = read_proposal_text(
        json.dumps({"groups": [{**group, "request_class": name} for name in ("chat", "batch")]}), "p.json", given
    )
    found = evaluate(given, both, optimum=False).plan
    assert {one.request_class for one in found.deployments} == {"chat", "batch"}
    assert found.servers[0].servers == 4
    one = read_proposal_text(json.dumps({**group, "request_class": "chat"}), "p.json", given)
    with pytest.raises(InputError, match="E-PROPOSAL-505"):
        evaluate(given, one, optimum=False)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"servers": None, "count": 30}, "E-PROPOSAL-501"),
        ({"replicas": 99}, "E-PROPOSAL-502"),
        ({"servers": 1, "tensor_parallel": 8, "pipeline_parallel": 2}, "E-PROPOSAL-502"),
        ({"cooling": "d2c_1p", "accelerator": "l40s", "tensor_parallel": 1}, "E-PROPOSAL-503"),
        ({"accelerators_per_server": 3}, "E-PROPOSAL-503"),
        ({"tensor_parallel": 3}, "E-PROPOSAL-504"),
        ({"tensor_parallel": 16}, "E-PROPOSAL-504"),
        ({"scheme": "w16a16", "recovery": "qad"}, "E-PROPOSAL-503"),
        ({"accelerator": "a100-80gb-sxm", "scheme": "w4a4-nvfp4"}, "E-PROPOSAL-504"),
        ({"request_class": "other"}, "E-PROPOSAL-505"),
    ],
)
def test_proposals_that_cannot_be(change: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError) as caught:
        evaluation(small(), **change)
    assert [one.code for one in caught.value.problems] == [code]


def test_the_optimum_of_an_infeasible_instance_is_none() -> None:
    found = evaluate(small(site={"power_kw": 1.0}, choices={"sourcing": ["buy"]}), proposal())
    assert found.optimum is None
    assert found.optimum_state == "infeasible"
