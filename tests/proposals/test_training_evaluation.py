"""Proposals for training: plans give themselves, open choices the enumeration's best, broken limits are told."""

import json
import random
from typing import Any

import pytest

from optimizer.api import evaluate, load, solve
from optimizer.errors import InputError
from optimizer.instance.model import Instance
from optimizer.limits import limit
from optimizer.plan import Plan
from optimizer.proposals.reading import read_proposal_text
from optimizer.proposals.result import Evaluation
from optimizer.report.evaluation import render
from optimizer.solver import Options
from optimizer.training.answer import best_plan
from tests.core.real import small
from tests.instances.library import FOLDER, names, path_of, solved
from tests.oracle.random_training import draw_training, instance_of
from tests.oracle.training import cheapest
from tests.training.small import one_job, read, two_jobs, two_sites

CENT = 0.005
PROPOSAL: dict[str, Any] = {"accelerator": "h100-80gb-sxm", "count": 128, "cooling": "rdhx_passive"}


def evaluated(instance: Instance, value: dict[str, Any] | Plan, *, optimum: bool = False) -> Evaluation:
    given = value if isinstance(value, Plan) else read_proposal_text(json.dumps(value), "p.json", instance)
    return evaluate(instance, given, optimum=optimum)


def usd(found: Evaluation) -> float:
    assert found.plan.training is not None
    return found.plan.training.usd


def limits(plan: Plan) -> dict[tuple[str, str], tuple[float, float]]:
    return {(row.limit, row.where): (row.needed, row.reached) for row in plan.headroom}


def same_as_planned(instance: Instance, plan: Plan) -> str | None:
    """Where a plan, taken as a proposal, is priced or judged otherwise than it was planned."""
    assert plan.training is not None
    found = evaluated(instance, plan)
    if found.broken or found.outside:
        return f"breaks {[row.summary for row in found.broken]}, outside {found.outside}"
    if abs(usd(found) - plan.training.usd) > CENT:
        return f"{usd(found)} USD for {plan.training.usd}"
    if abs(found.plan.bill.capital_usd - plan.bill.capital_usd) > CENT:
        return f"{found.plan.bill.capital_usd} USD of capital for {plan.bill.capital_usd}"
    if limits(found.plan) != limits(plan):
        return f"limits {limits(found.plan)} for {limits(plan)}"
    ours, theirs = found.plan.training, plan.training
    assert ours is not None
    if [job.days for job in ours.jobs] != [job.days for job in theirs.jobs] or ours.sites != theirs.sites:
        return "other days or sites"
    return None


def _every_plan(seeds: range, least: int) -> None:
    told, seen = [], 0
    for seed in seeds:
        instance = instance_of(draw_training(seed))
        plan = best_plan(instance, Options())
        if plan is not None:
            seen += 1
            if (line := same_as_planned(instance, plan)) is not None:
                told.append(f"seed {seed}: {line}")
    assert not told, "\n".join(told)
    assert seen >= least


def test_plans_evaluate_to_themselves_to_the_cent() -> None:
    _every_plan(range(12), 5)


@pytest.mark.slow
def test_plans_of_two_hundred_random_instances_evaluate_to_themselves_to_the_cent() -> None:
    _every_plan(range(12, 210), 60)


@pytest.mark.parametrize("value", [two_jobs(), two_jobs(economics__charge="horizon"), two_sites()])
def test_plans_of_several_jobs_and_sites_evaluate_to_themselves(value: dict[str, Any]) -> None:
    instance = read(value)
    plan = best_plan(instance, Options())
    assert plan is not None
    assert same_as_planned(instance, plan) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", [one for one in names() if one.startswith("train-")])
def test_plans_of_shipped_runs_evaluate_to_themselves(name: str) -> None:
    instance = load(path_of(name))
    plan = solved(name).plan
    assert (plan is None) == (name == "train-8192-h100-bf16")
    assert plan is None or same_as_planned(instance, plan) is None


def _narrowed(seed: int) -> tuple[Instance, dict[str, Any], Instance]:
    """(instance, a proposal that leaves the layout open, the instance that may do nothing else) of a seed."""
    rng = random.Random(seed)
    value = draw_training(seed)
    card = rng.choice(value["choices"]["accelerators"])
    size = 72 if card == "gb200-nvl72" else 8
    # Counts of whole servers that the instance allows; any other one where there is none.
    whole = [count for count in value["workload"]["accelerator_counts"] if count % size == 0]
    count = rng.choice(whole or [size * 8])
    proposal: dict[str, Any] = {
        "accelerator": card,
        "count": count,
        "sourcing": rng.choice(["buy", "buy", "on_demand"]),
    }
    if proposal["sourcing"] == "buy":
        proposal["cooling"] = "d2c_1p" if card == "gb200-nvl72" else rng.choice(value["choices"]["cooling"])
    alone = json.loads(json.dumps(value))
    if "sites" in value:
        site = rng.choice(alone.pop("sites"))
        alone.pop("wan_links")
        alone["site"] = {key: inner for key, inner in site.items() if key != "name"}
        if proposal["sourcing"] == "buy":
            proposal["site"] = site["name"]
    alone["choices"] |= {"accelerators": [card], "sourcing": [proposal["sourcing"]]}
    if proposal["sourcing"] == "buy":
        alone["choices"]["cooling"] = [proposal["cooling"]]
    alone["workload"]["accelerator_counts"] = [count]
    alone["choices"]["supply"] = {k: v for k, v in value["choices"].get("supply", {}).items() if k == card}
    return instance_of(value), proposal, instance_of(alone)


def _against_enumeration(seeds: range) -> tuple[int, int]:
    told, kept, broken = [], 0, 0
    for seed in seeds:
        instance, proposal, alone = _narrowed(seed)
        expected = cheapest(alone)
        try:
            found = evaluated(instance, proposal)
        except InputError as error:
            # Nothing of it is sold, or no layout of it runs: the enumeration has none either.
            if expected is not None or error.problems[0].code not in ("E-PROPOSAL-401", "E-PROPOSAL-503"):
                told.append(f"seed {seed}: {error}")
            continue
        kept, broken = kept + found.keeps_every_limit, broken + (not found.keeps_every_limit)
        if (expected is not None) != found.keeps_every_limit:
            told.append(f"seed {seed}: enumeration {expected}, breaks {[row.summary for row in found.broken]}")
        elif expected is not None and abs(usd(found) - expected) > 1e-9 * expected:
            told.append(f"seed {seed}: enumeration {expected}, evaluation {usd(found)}")
    assert not told, "\n".join(told)
    return kept, broken


def test_an_open_layout_is_the_best_that_enumeration_finds() -> None:
    kept, broken = _against_enumeration(range(12))
    assert kept >= 1
    assert broken >= 1


@pytest.mark.slow
def test_open_layouts_of_two_hundred_random_proposals_are_the_best_that_enumeration_finds() -> None:
    kept, broken = _against_enumeration(range(12, 212))
    assert min(kept, broken) >= 20


#: A limit that the proposal keeps, tightened so that it does not.
BROKEN: dict[str, dict[str, Any]] = {
    "deadline_days": {"targets__deadline_days": 10},
    "mfu_fraction": {"targets__mfu_floor_fraction": 0.9},
    "scale_out_fraction": {"targets__scale_out_fraction": 1e-4},
    "training_vram_cap_gib": {"targets__vram_gib_per_accelerator": 2},
    "training_vram_gib": {"targets__vram_fraction": 0.05},
    "training_nvlink_cap_gb_s": {"targets__nvlink_gb_s": 0.001},
    "accelerator_count": {"workload__most_accelerators": 64},
    "power_kw": {"site__power_kw": 20},
    "racks": {"site__racks": 1},
    "rack_kw": {"site__rack_kw": 1},
    "supply": {"choices__supply": {"h100-80gb-sxm": 64}},
    "budget_usd": {"economics__budget_usd": 1000},
    "budget_capex_usd": {"economics__budget_capex_usd": 1000},
    "spare_servers": {"targets__spare_servers": 2},
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_limit_is_told_with_its_figures_and_priced(name: str) -> None:
    given = {**PROPOSAL, "spare_servers": 1, "tensor_parallel": 2, "zero_stage": 1}
    # A shape with an even number of heads, so that tensor parallelism sends something over the link.
    size = {"workload__parameters_b": 10}
    before = evaluated(read(one_job(**size)), given)
    found = evaluated(read(one_job(**size, **BROKEN[name])), given)
    assert name not in {row.limit for row in before.broken}
    row = {row.limit: row for row in found.broken}[name]
    assert (row.reached > row.needed) == (limit(name).direction == "<=")
    assert row.field in row.summary
    assert not found.keeps_every_limit
    if name not in ("rack_kw", "spare_servers"):
        assert usd(found) == pytest.approx(usd(before))
    text = render(found)
    assert "broken" in text
    assert max(map(len, text.splitlines())) <= 80


def test_distance_is_told_in_dollars_and_days_of_the_run() -> None:
    instance = read(one_job())
    found = evaluated(instance, {**PROPOSAL, "cooling": "d2c_1p", "count": 64, "precision": "bf16"}, optimum=True)
    best = solve(instance).plan
    assert best is not None
    assert best.training is not None
    assert found.optimum is not None
    assert found.optimum.usd == pytest.approx(best.training.usd)
    assert found.optimum.extra_usd == pytest.approx(usd(found) - best.training.usd)
    assert "in all" in render(found)
    assert "per year" not in render(found)


def test_what_the_choices_leave_out_is_told_and_priced() -> None:
    found = evaluated(
        read(one_job()),
        {
            "accelerator": "H200 141GB SXM",
            "servers": 20,
            "precision": "fp8",
            "cooling": "imm_1p",
            "pipeline_parallel": 2,
            "spare_servers": 0,
        },
    )
    fields = {one.field: one.value for one in found.outside}
    assert fields == {
        "choices.accelerators": "h200-141gb-sxm",
        "choices.cooling": "imm_1p",
        "workload.precisions": "fp8",
        "workload.accelerator_counts": "160",
        "workload.layouts.pipeline_parallel": "2",
    }
    assert usd(found) > 0.0


def test_claims_stand_beside_what_comes_out() -> None:
    found = evaluated(read(one_job()), {**PROPOSAL, "claimed_days": 1000, "claimed_usd": 1e6})
    assert "outside the band" in found.messages[0]
    assert "USD 1,000,000" in found.messages[1]
    days = found.plan.training.jobs[0].days if found.plan.training else 0.0
    again = evaluated(read(one_job()), {**PROPOSAL, "claimed_days": days})
    assert "inside the band" in again.messages[0]


def test_several_jobs_and_sites_are_proposed_in_lists() -> None:
    instance = read(two_jobs())
    jobs = [
        {"job": "second", "accelerator": "h100-80gb-sxm", "servers": 8, "cooling": "d2c_1p", "start_day": 10},
        {"job": "first", "accelerator": "h100-80gb-sxm", "servers": 8, "cooling": "d2c_1p"},
    ]
    found = evaluated(instance, {"jobs": jobs})
    assert found.plan.training is not None
    assert [(job.name, job.start_day) for job in found.plan.training.jobs] == [("first", 0.0), ("second", 10.0)]
    assert sum(job.usd for job in found.plan.training.jobs) == pytest.approx(usd(found))
    parts = [{"site": "east", "servers": 9}, {"site": "west", "servers": 7, "spare_servers": 0}]
    both = evaluated(read(two_sites()), {"accelerator": "h100-80gb-sxm", "parts": parts})
    assert both.plan.training is not None
    (job,) = both.plan.training.jobs
    assert job.method == "synchronous"
    assert [(part.site, part.in_service) for part in job.parts] == [("east", 9), ("west", 7)]


FAULTS: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({}, {"count": None}, "E-PROPOSAL-500", ""),
    ({}, {"servers": 2}, "E-PROPOSAL-500", "servers"),
    ({}, {"count": 130}, "E-PROPOSAL-501", "count"),
    ({}, {"accelerator": "h1000"}, "E-PROPOSAL-007", "accelerator"),
    ({}, {"sourcing": "on_demand"}, "E-PROPOSAL-502", "cooling"),
    ({}, {"sourcing": "spot", "cooling": None}, "E-PROPOSAL-502", "sourcing"),
    ({}, {"accelerator": "gb200-nvl72", "count": 144}, "E-PROPOSAL-503", "cooling"),
    ({}, {"site": "east"}, "E-PROPOSAL-505", "site"),
    ({}, {"job": "nothing"}, "E-PROPOSAL-505", "job"),
    ({}, {"tensor_parallel": 16}, "E-PROPOSAL-401", "tensor_parallel"),
    ({}, {"tensor_parallel": 3}, "E-PROPOSAL-401", "tensor_parallel"),
    ({}, {"pipeline_parallel": 33}, "E-PROPOSAL-401", "pipeline_parallel"),
    ({}, {"expert_parallel": 2}, "E-PROPOSAL-401", "expert_parallel"),
    ({}, {"data_parallel": 1000}, "E-PROPOSAL-401", "data_parallel"),
    ({}, {"virtual_stages": 5, "pipeline_parallel": 2}, "E-PROPOSAL-401", "virtual_stages"),
    ({}, {"zero_stage": 3, "pipeline_parallel": 2}, "E-PROPOSAL-401", "zero_stage"),
    ({}, {"precision": "fp4"}, "E-PROPOSAL-401", "precision"),
    ({}, {"precision": "fp5"}, "E-PROPOSAL-005", "precision"),
    ({}, {"scheme": "w16a16"}, "E-PROPOSAL-001", "scheme"),
    ({"workload__jobs": [{"name": "late", "earliest_start_day": 5}]}, {"start_day": 2}, "E-PROPOSAL-402", "start_day"),
]


@pytest.mark.parametrize(("change", "wrong", "code", "field"), FAULTS)
def test_a_faulty_proposal_is_refused_in_words(
    change: dict[str, Any], wrong: dict[str, Any], code: str, field: str
) -> None:
    instance = read(one_job(**change))
    value = {key: inner for key, inner in {**PROPOSAL, **wrong}.items() if inner is not None}
    with pytest.raises(InputError) as caught:
        evaluated(instance, value)
    (problem,) = caught.value.problems
    assert problem.code == code
    assert problem.field.rpartition(".")[2] == field


def test_replicas_of_a_mixture_are_whole_expert_groups() -> None:
    """105 experts over 7 ranks: 8 replicas are no whole groups; what the servers hold is taken in whole ones."""
    sizes: dict[str, Any] = {"workload__parameters_b": 48, "workload__active_parameters_b": 6}
    layouts = {"expert_parallel": [1, 7]}
    instance = read(one_job(**sizes, workload__layouts=layouts))
    degrees = {"tensor_parallel": 1, "pipeline_parallel": 1, "expert_parallel": 7}
    with pytest.raises(InputError, match="must be a multiple of 7") as caught:
        evaluated(instance, {**PROPOSAL, **degrees, "data_parallel": 8})
    assert caught.value.problems[0].field.endswith("data_parallel")
    found = evaluated(instance, {**PROPOSAL, **degrees})
    assert found.plan.training is not None
    assert found.plan.training.jobs[0].layout.data_parallel % 7 == 0


def test_kinds_of_work_do_not_mix() -> None:
    trained, served = read(one_job()), small()
    run, fleet = solve(trained).plan, solve(served).plan
    assert run is not None
    assert fleet is not None
    for instance, plan in ((trained, fleet), (served, run)):
        with pytest.raises(InputError, match="E-PROPOSAL-400"):
            evaluated(instance, plan)


def test_the_founding_proposal_of_25000_a100() -> None:
    """The account's 90 to 100 days lie inside the band; at a dollar an hour its 63 million are near the bill."""
    instance = load(path_of("train-63-million"))
    found = evaluated(instance, json.loads((FOLDER / "proposals" / "a100-25000-run.json").read_text(encoding="utf-8")))
    assert found.keeps_every_limit
    assert found.plan.accelerators == 25_000
    (job,) = found.plan.training.jobs if found.plan.training else ()
    assert job.days_band[0] < 90 < 100 < job.days_band[1]
    assert job.usd_per_accelerator_hour == pytest.approx(1.0)
    assert "inside the band" in found.messages[0]
