"""The plan beside the naive choice and beside today's fleet: savings, payback, power."""

import json
from typing import Any

import pytest

from optimizer.api import solve
from optimizer.plan import Baseline, Plan
from optimizer.proposals.naive import naive_instance, naive_plan
from optimizer.proposals.reading import read_proposal_text
from optimizer.report.screen import render
from optimizer.solver import Options
from tests.core.real import small
from tests.oracle.random_instances import draw


def beside(**change: Any) -> tuple[Plan, Baseline]:
    """A plan and its baseline: H100 servers of today."""
    value = {"accelerator": "h100-80gb-sxm", "servers": 4, "tensor_parallel": 1, **change}
    plan = solve(small(), baseline=read_proposal_text(json.dumps(value), "p.json", small())).plan
    assert plan is not None
    assert plan.baseline is not None
    return plan, plan.baseline


def test_savings_are_the_difference_of_the_bills() -> None:
    plan, row = beside()
    assert row.usd_per_year is not None
    assert row.saving_usd_per_year == pytest.approx(row.usd_per_year - plan.bill.usd_per_year)
    assert row.saving_fraction == pytest.approx(1.0 - plan.bill.usd_per_year / row.usd_per_year)
    assert row.power_kw is not None
    assert row.saving_kw == pytest.approx(row.power_kw - plan.power_kw)
    assert "Baseline" in render(plan)


def test_an_owned_fleet_counts_at_its_running_cost() -> None:
    plan, new = beside()
    same, owned = beside(is_owned=True)
    assert same.bill == plan.bill
    assert owned.usd_per_year == new.usd_per_year
    assert owned.running_usd_per_year is not None
    assert owned.running_usd_per_year < (owned.usd_per_year or 0.0)
    assert owned.saving_usd_per_year == pytest.approx(owned.running_usd_per_year - plan.bill.usd_per_year)
    assert owned.extra_capital_usd == pytest.approx(plan.bill.capital_usd)


def test_payback_is_the_month_by_which_the_sums_meet() -> None:
    plan, row = beside(is_owned=True, servers=60)
    assert row.payback_months is not None
    assert row.payback_months >= 1
    # Running cost alone, by hand: nothing is replaced in so few months.
    running = sum(line.usd_per_year for line in plan.bill.lines if line.capital_usd == 0.0)
    rate = plan.instance.economics.discount_rate
    saved = 0.0
    month = 0
    while saved < plan.bill.capital_usd:
        month += 1
        saved += ((row.running_usd_per_year or 0.0) - running) / 12.0 * (1.0 + rate) ** (-month / 12.0)
    assert row.payback_months == month


def test_broken_limits_of_today_are_told() -> None:
    _, row = beside(servers=1)
    assert any("spare servers" in text for text in row.broken)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_naive_keeps_its_rule_and_costs_no_less_than_the_optimum_of_its_choices(seed: int) -> None:
    given = draw(seed).instance
    plan, reason = naive_plan(given, Options())
    assert (plan is None) == bool(reason)
    if plan is None:
        return
    assert len({group.accelerator for group in plan.servers}) == 1
    for one in plan.deployments:
        assert (one.scheme, one.kv_scheme, one.recovery) == ("w16a16", "kv16", "none")
        assert one.expert_parallel == one.attention_data_parallel == 1
    for group in plan.servers:
        assert group.cooling in (None, "air_containment_econ", "d2c_1p")
    free = solve(naive_instance(given)).plan
    assert free is not None
    assert plan.bill.usd_per_year >= free.bill.usd_per_year * (1.0 - 2e-6)


def test_no_naive_choice_is_told_with_its_reason() -> None:
    plan = solve(
        small(targets={"weights_gib_per_accelerator": 6.0}, choices={"schemes": ["w8a8-fp8"], "tensor_parallel": [2]}),
        baseline="naive",
    ).plan
    assert plan is not None
    row = plan.baseline
    assert row is not None
    if row.summary is None:
        assert row.reason
    hard = solve(small(targets={"tpot_ms": 3.0}), baseline="naive").plan
    if hard is not None:
        assert hard.baseline is not None
        assert hard.baseline.summary is not None or hard.baseline.reason
