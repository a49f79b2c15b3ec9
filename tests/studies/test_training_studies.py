"""Studies of instances for training: the same verbs, plans of training's own search."""

from typing import Any

import pytest

from optimizer.api import solve
from optimizer.commands.money import in_money, money_of
from optimizer.commands.sweep_tables import on_screen
from optimizer.errors import UsageProblems
from optimizer.instance.model import Instance
from optimizer.report.cost_study import cost_study_lines
from optimizer.report.words import usd
from optimizer.studies.best import best_plan
from optimizer.studies.buy_or_rent import buy_or_rent
from optimizer.studies.cost_study import explain_cost
from optimizer.studies.decision_map import decision_map
from optimizer.studies.frontier import frontier
from optimizer.studies.limit_prices import limit_prices
from optimizer.studies.robust.study import robust
from optimizer.studies.sweep import sweep
from optimizer.studies.tipping import tipping_points
from tests.instance.samples import read, training
from tests.training.small import one_job as one_run
from tests.training.small import read as read_run
from tests.training.small import two_jobs, two_sites


def one_job() -> Instance:
    value: dict[str, Any] = training()
    for key in ("jobs", "multi_site"):
        value["workload"].pop(key)
    for key in ("sites", "wan_links", "catalog"):
        value.pop(key)
    value["workload"]["tokens"] = 1e12
    value["site"] = {"power_kw": 50_000}
    value["choices"] = {"accelerators": ["b200-180gb-sxm"]}
    value["economics"] = {}
    value["targets"] = {"deadline_days": 90}
    return read(value)


def test_the_best_plan_is_that_of_solve() -> None:
    plan, wanted = best_plan(one_job()), solve(one_job()).plan
    assert plan is not None
    assert wanted is not None
    assert plan.bill.usd_per_year == pytest.approx(wanted.bill.usd_per_year, rel=2e-6)


def test_days_against_dollars() -> None:
    found = frontier(one_job(), "cost,targets.deadline_days=8:60", step=0.2)
    assert len(found.points) > 1
    days = [one.reached[0] for one in found.points]
    assert days == sorted(days, reverse=True)
    assert all("fp8" in one.summary or "bf16" in one.summary for one in found.points)


def test_every_cell_is_solved() -> None:
    found = tipping_points(one_job(), "targets.deadline_days=2:42", resolution=10.0)
    assert found.solved == found.cells + 1
    assert "every cell was solved" in found.guarantee


def test_limits_have_prices() -> None:
    found = limit_prices(one_job())
    assert found is not None
    assert "targets.deadline_days" in {one.field for one in found.limits}


def test_the_program_over_scenarios_refuses_in_words() -> None:
    with pytest.raises(UsageProblems, match="E-STUDY-405"):
        robust(one_job())


def test_limits_of_serving_are_not_priced_of_runs() -> None:
    found = limit_prices(read_run(one_run()))
    assert found is not None
    known = {"targets.deadline_days", "targets.spare_fraction", "targets.nvlink_fraction"}
    assert {one.field for one in found.limits} <= known


def test_buying_against_renting_over_sites_where_renting_is_not_allowed() -> None:
    """Ways that are not allowed are priced too, but for spot servers, which no run is priced on."""
    found = buy_or_rent(read_run(two_sites()))
    assert found.buy.plan is not None
    assert found.rent.plan is not None
    assert not found.rent.is_allowed
    assert "spot" not in found.rent.sourcing
    assert found.month is None


def test_a_sweep_tells_what_keeps_runs_out_and_no_demand() -> None:
    found = sweep(read_run(one_run()), ["targets.deadline_days=5,60"])
    late, fine = found.rows
    assert late.forbidden_by == ("targets.deadline_days",)
    text = on_screen(found, 80)
    assert "nothing fits: targets.deadline_days" in text
    assert "demand" not in text
    assert text.count("bf16") == 1
    assert fine.status == "optimal"


def test_studies_tell_what_a_run_costs_whatever_the_horizon() -> None:
    """Charged for its days a run costs the same under another horizon, but for how its lasting parts are spread."""
    instance = read_run(one_run())
    plan = best_plan(instance)
    assert plan is not None
    assert plan.training is not None
    found = sweep(instance, ["economics.horizon_years=3,5,8"])
    money = money_of(instance)
    told = in_money(found, money)
    costs = [row.usd_per_year or 0.0 for row in told.rows]
    assert costs[1] == pytest.approx(plan.training.usd, rel=1e-6)
    assert max(costs) < 1.05 * min(costs)
    text = on_screen(told, 80, money.words)
    assert usd(plan.training.usd) in text
    assert "for the run" in text
    assert "per year" not in text
    assert money_of(read_run(two_jobs())).words == "for the runs"


def test_near_ties_of_a_map_of_runs_are_the_next_best_plans() -> None:
    instance = read_run(one_run())
    found = decision_map(
        instance, "targets.deadline_days=50:60:2", "site.electricity_usd_per_kwh=0.05:0.1:2", near_fraction=0.05
    )
    other = solve(instance, runners_up=1).plan
    assert other is not None
    assert any(cell.next_choice is not None for cell in found.cells)
    near = [cell for cell in found.cells if cell.is_near_tie]
    assert near
    assert all(0.0 <= (cell.extra_fraction or 0.0) <= 0.05 for cell in near)


def test_the_cost_of_a_run_is_explained_as_what_the_run_costs() -> None:
    """A run is paid once: another horizon spreads it over other years and moves nothing."""
    instance = read_run(one_run())
    plan = solve(instance).plan
    assert plan is not None
    assert plan.training is not None
    explained = explain_cost(instance, plan, count=30)
    assert explained.cost_study is not None
    lines = "\n".join(cost_study_lines(explained, 200))
    assert "per year" not in lines
    assert "for the run" in lines
    assert f"all bought: {usd(plan.training.usd)} for the run (the same)" in lines
    assert "break-even" not in lines
    spread = next(one for one in explained.cost_study.figures if one.field == "economics.server_life_years")
    life = instance.model_copy(update={"economics": instance.economics.model_copy(update={"server_life_years": 4.0})})
    other = solve(life).plan
    assert other is not None
    assert other.training is not None
    assert spread.low_usd_per_year == pytest.approx(other.training.usd * plan.bill.usd_per_year / plan.training.usd)
    horizon = next(one for one in explained.cost_study.figures if one.field == "economics.horizon_years")
    # Charged for the job's days, so only what rises over the years is seen from another horizon.
    assert horizon.change_usd_per_year < 0.1 * plan.bill.usd_per_year
