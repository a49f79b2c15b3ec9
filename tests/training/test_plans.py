"""Plans for training: what holds of every one, several jobs against brute force, sites, faults that are found."""

import csv
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optimizer import api
from optimizer.commands.money import money_of
from optimizer.plan import Plan
from optimizer.plan_training import TrainedJob
from optimizer.report.bom import bom_text, materials
from optimizer.report.screen import render, render_diagnosis
from optimizer.report.words import usd
from optimizer.solver import Options, Outcome, Reason
from optimizer.studies.best import best_plan
from optimizer.training import evaluate
from optimizer.training.answer import Answered, answer, search
from optimizer.training.evaluate import Evaluator
from optimizer.training.extract import make_plan
from optimizer.training.jobs import jobs_of
from optimizer.training.places import groups_of
from optimizer.verify import verify
from tests.training.small import one_job, read, two_jobs, two_sites


def solved(value: dict[str, Any]) -> Plan:
    plan = api.solve(read(value)).plan
    assert plan is not None
    assert plan.training is not None
    return plan


def first(plan: Plan) -> TrainedJob:
    assert plan.training is not None
    return plan.training.jobs[0]


def test_a_plan_is_proven_verified_and_in_time() -> None:
    plan = solved(one_job())
    assert plan.outcome.holds == "proven"
    assert first(plan).end_day <= 60
    assert plan.training is not None
    assert plan.bill.usd_over_horizon == pytest.approx(plan.training.usd)
    assert sum(job.usd for job in plan.training.jobs) == pytest.approx(plan.training.usd)


def test_the_same_flop_in_two_conventions_is_the_same_run() -> None:
    model = {"workload__tokens": None}
    values = []
    for convention, share in (("6nd", 6.0), ("8nd", 8.0)):
        value = one_job(**model, workload__flop=share * 7e9 * 1e12, workload__flop_convention=convention)
        del value["workload"]["tokens"]
        values.append(solved(value))
    assert first(values[0]).tokens == pytest.approx(first(values[1]).tokens)
    assert values[0].bill.usd_per_year == pytest.approx(values[1].bill.usd_per_year)


@pytest.mark.parametrize(
    ("change", "dearer"),
    [
        ({"targets__deadline_days": 30}, True),
        ({"targets__confidence": 0.9}, True),
        ({"workload__reliability": {"restart_s": 3600}}, True),
        ({"choices__sourcing": ["buy", "on_demand"]}, False),
        ({"choices__accelerators": ["h100-80gb-sxm", "h200-141gb-sxm"]}, False),
    ],
)
def test_less_freedom_costs_no_less_and_more_no_more(change: dict[str, Any], dearer: bool) -> None:
    before, after = best_plan(read(one_job())), best_plan(read(one_job(**change)))
    assert before is not None
    if after is None:
        assert dearer
        return
    sign = 1.0 if dearer else -1.0
    assert sign * (after.bill.usd_per_year / before.bill.usd_per_year - 1.0) >= -1e-9


@pytest.mark.parametrize(
    ("charge", "caps"),
    [
        ("job", {"site": {"power_kw": 150}}),
        *(
            pytest.param(charge, caps, marks=pytest.mark.slow)
            for charge in ("job", "horizon")
            for caps in ({}, {"site": {"power_kw": 260}}, {"economics": {"budget_capex_usd": 6e6}})
        ),
    ],
)
def test_two_jobs_against_every_pair_of_runs(charge: str, caps: dict[str, Any]) -> None:
    """Each pair of runs as a plan of its own; the program finds the cheapest that keeps every limit."""
    value = two_jobs(economics__charge=charge, workload__accelerator_counts=[32, 64])
    value["choices"]["cooling"] = ["rdhx_passive", "imm_1p"]
    for section, own in caps.items():
        value[section] = {**value.get(section, {}), **own}
    instance = read(value)
    data = search(instance).program()
    found = answer(data, Options())
    searched = search(instance)
    costs = []
    by_job = [[run for run in data.runs if run[0] == j] for j in (0, 1)]
    outcome = Outcome(Reason.OPTIMAL, 0.0, 0.0, np.zeros(1), 0, 0.0)
    pairs = list(product(*by_job))
    for pair in pairs[:: max(1, len(pairs) // 60)] + ([] if found.runs is None else [found.runs]):
        plan = make_plan(searched, Answered(data, outcome, tuple(pair)), Options(), "none")
        kept = all(row.reached <= row.needed * (1 + 1e-9) for row in plan.headroom if row.direction == "<=")
        if kept:
            costs.append(plan.bill.usd_per_hour)
    assert (found.runs is None) == (not costs)
    if found.runs is not None:
        assert found.outcome.objective == pytest.approx(min(costs), rel=1e-6)
        assert len(pairs) > 10


def test_two_sites_do_what_one_cannot() -> None:
    value = two_sites()
    plan = solved(value)
    assert {part.site for part in first(plan).parts} == {"east", "west"}
    assert first(plan).method == "synchronous"
    assert all(row.reached <= row.needed for row in plan.headroom if row.limit == "power_kw")
    assert plan.training is not None
    assert len(plan.training.sites) == 2
    value["wan_links"] = []
    assert api.solve(read(value)).plan is None


def test_gradients_between_sites_are_those_of_the_published_example() -> None:
    """340e9 parameters in 16 bits over two sites: 680 GB each way a step, 4 s at 1.36 Tb/s (data handed to us)."""
    value = two_sites(workload__parameters_b=340)
    value["wan_links"][0] |= {"gbit_per_s": 1360, "km": 0}
    instance = read(value)
    (job,) = jobs_of(instance, __import__("optimizer.catalog", fromlist=["load_catalog"]).load_catalog())
    (group,) = groups_of(instance)
    found = search(instance).options[0][0].evaluator
    evaluator = Evaluator(instance, job, found.accelerator, "bf16", group)
    layouts = search(instance).options[0][0].bases
    rows, alone = evaluator.rows(layouts), Evaluator(instance, job, found.accelerator, "bf16").rows(layouts)
    sent = rows.wan_gbit_per_s * rows.expected_step_s
    assert sent == pytest.approx(job.model.parameters * 2 * 8 / 1e9, rel=1e-9)
    assert np.all(rows.expected_step_s >= alone.expected_step_s)
    # Where half of the step is longer than the transfer, nothing is lost but distance.
    hidden = alone.expected_step_s > 2.2 * sent / 1360
    assert rows.expected_step_s[hidden] == pytest.approx(alone.expected_step_s[hidden])


def test_low_communication_needs_less_and_trains_more() -> None:
    value = two_sites(workload__multi_site={"methods": ["low_communication"], "token_penalty_fraction": 0.1})
    value["wan_links"][0]["gbit_per_s"] = 1
    job = first(solved(value))
    assert job.method == "low_communication"
    assert job.tokens == pytest.approx(1.1e12)
    assert job.wan_gbit_per_s < 1


def test_each_change_of_a_diagnosis_gives_a_plan_at_its_cost() -> None:
    from optimizer.training.diagnose import moves

    instance = read(one_job(targets__deadline_days=10, choices__supply={"h100-80gb-sxm": 80}))
    diagnosis = api.solve(instance).diagnosis
    assert diagnosis is not None
    assert diagnosis.changes
    for change in diagnosis.changes:
        (move,) = (one for one in moves(instance) if one.path == change.field)
        plan = best_plan(move.moved(change.needed))
        assert plan is not None
        assert plan.bill.usd_per_hour == pytest.approx(change.usd_per_hour, rel=1e-9)
    text = render_diagnosis(diagnosis)
    assert "deadline_days" in text
    assert max(map(len, text.splitlines())) <= 80


def test_screen_fits_its_width_and_says_days_cost_and_next_best() -> None:
    for value in (one_job(), two_jobs(), two_sites()):
        text = render(solved(value))
        assert max(map(len, text.splitlines())) <= 80
        for word in ("Train", "band", "in all", "per accelerator-hour", "Next best", "MFU"):
            assert word in text


_FAULTS: dict[str, Callable[[Plan], Plan]] = {}


def _fault(change: Callable[[Plan], Plan]) -> Callable[[Plan], Plan]:
    _FAULTS[change.__name__] = change
    return change


def _with_job(plan: Plan, **update: Any) -> Plan:
    assert plan.training is not None
    jobs = (plan.training.jobs[0].model_copy(update=update), *plan.training.jobs[1:])
    return plan.model_copy(update={"training": plan.training.model_copy(update={"jobs": jobs})})


@_fault
def faster(plan: Plan) -> Plan:
    return _with_job(plan, step_s=first(plan).step_s * 0.99)


@_fault
def earlier(plan: Plan) -> Plan:
    return _with_job(plan, days=first(plan).days * 0.99)


@_fault
def another_format(plan: Plan) -> Plan:
    return _with_job(plan, precision="fp8")


@_fault
def fewer_tokens(plan: Plan) -> Plan:
    return _with_job(plan, tokens=first(plan).tokens * 0.9)


@_fault
def less_memory(plan: Plan) -> Plan:
    return _with_job(plan, memory_gib=first(plan).memory_gib / 2)


@_fault
def other_layout(plan: Plan) -> Plan:
    return _with_job(plan, layout=first(plan).layout.model_copy(update={"tensor_parallel": 64}))


@_fault
def no_spares(plan: Plan) -> Plan:
    part = first(plan).parts[0]
    return _with_job(plan, parts=(part.model_copy(update={"spare": 0}),))


@_fault
def cheaper_job(plan: Plan) -> Plan:
    return _with_job(plan, usd=first(plan).usd * 0.9)


@_fault
def cheaper_line(plan: Plan) -> Plan:
    line = plan.bill.lines[0].model_copy(update={"unit_price_usd": plan.bill.lines[0].unit_price_usd * 0.9})
    return plan.model_copy(update={"bill": plan.bill.model_copy(update={"lines": (line, *plan.bill.lines[1:])})})


@_fault
def a_line_less(plan: Plan) -> Plan:
    return plan.model_copy(update={"bill": plan.bill.model_copy(update={"lines": plan.bill.lines[1:]})})


@_fault
def fewer_servers(plan: Plan) -> Plan:
    group = plan.servers[0].model_copy(update={"servers": plan.servers[0].servers - 1})
    return plan.model_copy(update={"servers": (group, *plan.servers[1:])})


@_fault
def less_power(plan: Plan) -> Plan:
    return plan.model_copy(update={"power_kw": plan.power_kw * 0.9})


@_fault
def no_limits(plan: Plan) -> Plan:
    return plan.model_copy(update={"headroom": ()})


@_fault
def no_jobs(plan: Plan) -> Plan:
    return plan.model_copy(update={"training": None})


@pytest.fixture(scope="module")
def plan() -> Plan:
    return solved(one_job())


@pytest.mark.parametrize("name", _FAULTS)
def test_the_checker_finds_each_fault(plan: Plan, name: str) -> None:
    assert verify(plan) == ()
    assert verify(_FAULTS[name](plan)) != ()


def _findings(plan: Plan, **changes: Any) -> str:
    layout = first(plan).layout.model_copy(update=changes)
    return " ".join(str(one) for one in verify(_with_job(plan, layout=layout)))


def test_the_checker_wants_whole_expert_groups() -> None:
    """105 experts over 7 ranks: replicas that are no multiple of 7 suit no framework."""
    layouts = {"tensor_parallel": [1], "pipeline_parallel": [1], "expert_parallel": [7]}
    sizes: dict[str, Any] = {"workload__parameters_b": 48, "workload__active_parameters_b": 6}
    found = solved(one_job(**sizes, workload__layouts=layouts))
    assert verify(found) == ()
    layout = first(found).layout
    assert (layout.expert_parallel, layout.data_parallel % 7) == (7, 0)
    words = "the layout does not suit the model"
    assert words in _findings(found, data_parallel=layout.data_parallel - 1)
    assert words not in _findings(found, data_parallel=layout.data_parallel - 7)


def test_the_checker_wants_whole_replicas_at_each_site() -> None:
    found = solved(two_sites())
    assert verify(found) == ()
    one, other = first(found).parts
    # Two replicas of four servers: they fill both sites evenly, and at 3 and 5 servers one of them would lie across.
    degrees = {"tensor_parallel": 1, "context_parallel": 1, "pipeline_parallel": 32, "data_parallel": 2}
    for here, there, is_across in ((4, 4, False), (3, 5, True)):
        parts = (one.model_copy(update={"in_service": here}), other.model_copy(update={"in_service": there}))
        words = _findings(_with_job(found, parts=parts), **degrees)
        assert "servers hold fewer" not in words
        assert ("sites hold fewer in whole replicas" in words) == is_across


def test_serving_loads_nothing_of_training() -> None:
    code = (
        "import sys; from optimizer import api; api.solve(api.load('instances/small-8b.json'));"
        "own = ('optimizer.training', 'optimizer.performance.training');"
        "print([name for name in sys.modules if name.startswith(own)])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_loss_by_distance_is_that_of_published_runs() -> None:
    """The line through the published two-site runs stays within a per cent of each."""
    path = Path(evaluate.__file__).parent / "data" / "multisite.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == "synchronous"]
    assert len(rows) == 4
    for row in rows:
        share = 1.0 - evaluate.LOSS_PER_KM * float(row["distance_km"])
        assert float(row["throughput_share_low"]) - 0.01 <= share <= float(row["throughput_share_high"]) + 0.01


def test_next_best_of_several_jobs_is_the_best_without_that_thing() -> None:
    """Held against solving the instance with the thing left out of its choices."""
    value = two_jobs(economics__charge="horizon")
    value["choices"]["sourcing"] = ["buy", "on_demand"]
    plan = solved(value)
    rows = {row.without: row for row in plan.runners_up}
    assert rows["sourcing on_demand"].usd_per_hour is not None
    value["choices"]["sourcing"] = ["buy"]
    assert rows["sourcing on_demand"].usd_per_hour == pytest.approx(solved(value).bill.usd_per_hour, rel=2e-6)
    assert rows["accelerator h100-80gb-sxm"].reason == "the instance allows nothing else"


def test_a_capital_budget_where_everything_is_rented() -> None:
    value = two_jobs(economics__budget_capex_usd=1e6)
    value["choices"]["sourcing"] = ["on_demand"]
    assert solved(value).bill.capital_usd == 0.0


def test_the_nearest_layout_is_that_which_misses_by_least() -> None:
    """Of a floor of MFU that no layout reaches the nearest is the layout of most MFU, not the quickest run."""
    value = one_job(targets__mfu_floor_fraction=0.9)
    found = api.solve(read(value)).diagnosis
    assert found is not None
    assert found.nearest is not None
    lowered = next(one for one in found.changes if one.field == "targets.mfu_floor_fraction")
    assert float(found.nearest.misses["mfu_fraction"].split()[0]) == pytest.approx(lowered.needed, rel=0.02)


def test_degrees_that_suit_no_model_are_not_blamed_on_the_accelerator() -> None:
    value = one_job(workload__layouts={"tensor_parallel": [7], "pipeline_parallel": [13]})
    found = api.solve(read(value)).diagnosis
    assert found is not None
    text = "\n".join(found.messages)
    assert "no layout of workload.layouts suits a model of" in text
    assert "matrix units" not in text


def test_a_deadline_binds_where_one_replica_less_would_be_late() -> None:
    value = one_job()
    del value["workload"]["accelerator_counts"]
    plan = solved(value)
    job = first(plan)
    row = next(row for row in plan.headroom if row.limit == "deadline_days")
    replicas = job.layout.data_parallel
    assert replicas > 1
    assert row.binding == (job.end_day + job.days / (replicas - 1) > 60)


def test_the_bill_of_materials_tells_what_the_run_pays_and_uses() -> None:
    plan = solved(one_job())
    assert plan.training is not None
    money = money_of(plan.instance)
    text = bom_text(materials(plan), 80, money.times, money.words)
    assert f"{usd(plan.training.usd)} for the run: " in text
    assert "per year" not in text
    assert "a year" not in text
    used = [float(one.replace(",", "")) for one in re.findall(r"energy: ([\d,.]+) kWh ", text)]
    assert sum(used) == pytest.approx(plan.training.energy_mwh * 1e3, rel=0.01)
