"""Studies of instances for training: the same verbs, plans of training's own search."""

from typing import Any

import pytest

from optimizer.api import solve
from optimizer.errors import UsageProblems
from optimizer.instance.model import Instance
from optimizer.studies.best import best_plan
from optimizer.studies.frontier import frontier
from optimizer.studies.limit_prices import limit_prices
from optimizer.studies.robust.study import robust
from optimizer.studies.tipping import tipping_points
from tests.instance.samples import read, training


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
