"""Baselines of runs: the naive rule against enumeration, savings in dollars and days of the run."""

import copy
import json
from typing import Any

import pytest

from optimizer.api import resolved, solve
from optimizer.catalog import load_catalog
from optimizer.performance.training import TrainingModel
from optimizer.plan import Baseline
from optimizer.proposals.reading import read_proposal_text
from optimizer.proposals.training_naive import naive_plan
from optimizer.report.screen import render
from optimizer.solver import Options
from optimizer.training.layouts import PIPELINE, TENSOR
from tests.oracle.random_training import draw_training, instance_of
from tests.oracle.training import cheapest
from tests.training.small import one_job, read, two_jobs


def _plain(seed: int) -> dict[str, Any]:
    """A random instance on one site without caps of its fleet: those do not say how many stages a layout takes."""
    value = draw_training(seed)
    for key in ("sites", "wan_links"):
        value.pop(key, None)
    value["site"] = {}
    value["choices"].pop("supply", None)
    for key in ("budget_usd", "budget_capex_usd"):
        value["economics"].pop(key, None)
    return value


def _naive(value: dict[str, Any]) -> float | None:
    """The rule by enumeration: of each type the widest tensor parallelism, the fewest stages that keep the limits."""
    workload = value["workload"]
    active = workload.get("active_parameters_b")
    model = TrainingModel.from_parameters(workload["parameters_b"] * 1e9, None if active is None else active * 1e9)
    found = []
    for name in value["choices"]["accelerators"]:
        row = load_catalog().accelerators[name]
        most = min(max(row.scale_up_domain, 1), row.accelerators_per_server)
        tensor = max(t for t in TENSOR if t <= most and model.attention_heads % t == 0)
        for stages in PIPELINE:
            layers = -(-model.layers // stages)
            if stages > 1 and (layers * stages > model.layers * 1.1 or stages > model.layers):
                continue
            one = copy.deepcopy(value)
            one["workload"]["precisions"] = ["bf16"]
            one["workload"]["layouts"] |= {"tensor_parallel": [tensor], "pipeline_parallel": [stages]}
            liquid = row.liquid_cooling == "required"
            ways = [way for way in ("buy", "on_demand") if way in value["choices"]["sourcing"]]
            one["choices"] = {
                "accelerators": [name],
                "cooling": ["d2c_1p" if liquid else "air_containment_econ"],
                "sourcing": ways,
            }
            # What no layout keeps is told by a run without a price to find: rented to all.
            usd = cheapest(instance_of(one))
            if usd is not None:
                found.append(usd)
                break
    return min(found, default=None)


def _check(seeds: range) -> int:
    told, some = [], 0
    for seed in seeds:
        value = _plain(seed)
        expected = _naive(value)
        plan, _, reason = naive_plan(instance_of(value), Options())
        usd = None if plan is None or plan.training is None else plan.training.usd
        some += usd is not None
        if (usd is None) != (expected is None) or (usd is None) != bool(reason):
            told.append(f"seed {seed}: enumeration {expected}, naive {usd} {reason}")
        elif usd is not None and expected is not None and abs(usd - expected) > 1e-9 * expected:
            told.append(f"seed {seed}: enumeration {expected}, naive {usd}")
    assert not told, "\n".join(told)
    return some


def test_the_naive_run_is_that_of_enumeration() -> None:
    assert _check(range(6)) >= 2


@pytest.mark.slow
def test_many_naive_runs_are_those_of_enumeration() -> None:
    assert _check(range(6, 60)) >= 15


def _baseline(value: dict[str, Any], given: Any) -> tuple[Baseline, float, str]:
    plan = solve(read(value), baseline=given).plan
    assert plan is not None
    assert plan.training is not None
    assert plan.baseline is not None
    text = render(plan)
    assert max(map(len, text.splitlines())) <= 80
    return plan.baseline, plan.training.usd, text


@pytest.mark.parametrize("value", [one_job(), two_jobs()])
def test_the_plan_is_held_against_the_naive_run(value: dict[str, Any]) -> None:
    row, usd, text = _baseline(value, "naive")
    assert row.usd is not None
    assert row.saving_usd == pytest.approx(row.usd - usd)
    assert row.saving_fraction == pytest.approx(1.0 - usd / row.usd)
    assert row.payback_months is None
    assert "in all" in text.partition("Baseline")[2].partition("Trust")[0]


def test_todays_fleet_is_a_baseline_whose_capital_is_paid() -> None:
    value = {"name": "ours", "is_owned": True, "accelerator": "h100-80gb-sxm", "count": 128, "cooling": "rdhx_passive"}
    instance = resolved(read(one_job()))
    owned, usd, text = _baseline(one_job(), read_proposal_text(json.dumps(value), "p.json", instance))
    bought, _, _ = _baseline(
        one_job(), read_proposal_text(json.dumps({**value, "is_owned": False}), "p.json", instance)
    )
    assert owned.usd == bought.usd
    assert owned.saving_usd is not None
    assert bought.saving_usd is not None
    assert bought.saving_usd >= -0.005
    assert owned.saving_usd < bought.saving_usd
    assert "paid already" in text
    assert usd > 0.0


def test_why_there_is_no_naive_run() -> None:
    value = one_job(workload__precisions=["fp8"], targets__deadline_days=13, workload__accelerator_counts=[128])
    row, _, text = _baseline(value, "naive")
    assert row.summary is None
    assert "deadline_days" in row.reason
    assert "naive: none" in text
