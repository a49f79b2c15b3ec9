"""Why a plan costs what it costs: each way and each figure solved again; unit costs of the bill."""

import pytest
from click.testing import CliRunner

from optimizer import api
from optimizer.commands.app import app
from optimizer.plan import Plan
from optimizer.report.cash_flow import unit_costs
from optimizer.report.screen import render
from optimizer.studies.best import best_plan
from optimizer.studies.buy_or_rent import buy_or_rent
from optimizer.studies.cost_study import explain_cost
from optimizer.verify import verify
from tests.instances import library
from tests.studies.small import prices, small


@pytest.fixture(scope="module")
def explained() -> Plan:
    plan = api.solve(small()).plan
    assert plan is not None
    return explain_cost(small(), plan)


def test_ways_and_break_even_are_those_of_the_comparison(explained: Plan) -> None:
    study, found = explained.cost_study, buy_or_rent(small())
    assert study is not None
    best, bought, rented, hourly = study.ways
    assert best.usd_per_year == explained.bill.usd_per_year
    for way, other in zip(study.ways[1:], (found.buy, found.rent, found.on_demand), strict=True):
        assert other.plan is not None
        assert way.usd_per_year is not None
        assert way.usd_per_year == pytest.approx(other.plan.bill.usd_per_year, rel=1e-9)
        assert way.usd_per_year >= explained.bill.usd_per_year * (1 - 1e-6)
    assert bought.extra_fraction == pytest.approx((bought.usd_per_year or 0.0) / explained.bill.usd_per_year - 1.0)
    assert rented.extra_fraction is not None
    assert hourly.sourcing == ("on_demand",)
    assert study.break_even_utilization_fraction == pytest.approx(found.utilization)
    assert (study.break_even_month, study.break_even_month_discounted) == (found.month, found.month_discounted)


def test_five_figures_from_solving_again_the_strongest_first(explained: Plan) -> None:
    study = explained.cost_study
    assert study is not None
    assert len(study.figures) == 5
    assert study.moved == study.movable > 5
    feasible = [one for one in study.figures if None not in (one.low_usd_per_year, one.high_usd_per_year)]
    changes = [one.change_usd_per_year for one in feasible]
    assert changes == sorted(changes, reverse=True)
    base = explained.bill.usd_per_year
    for one in study.figures:
        ends = [usd for usd in (one.low_usd_per_year, one.high_usd_per_year) if usd is not None]
        assert one.change_usd_per_year == pytest.approx(max(abs(usd - base) for usd in ends))


def test_a_figure_is_what_the_instance_costs_with_it(explained: Plan) -> None:
    study = explained.cost_study
    assert study is not None
    field = "economics.prices.h100-80gb-sxm.server_usd"
    (price,) = (one for one in study.figures if one.field == field)
    for value, usd in ((price.low, price.low_usd_per_year), (price.high, price.high_usd_per_year)):
        there = best_plan(small(economics=prices(server_usd=value)))
        assert there is not None
        assert usd == pytest.approx(there.bill.usd_per_year, rel=1e-9)


def test_the_screen_shows_it_or_names_the_option(explained: Plan) -> None:
    plain = explained.model_copy(update={"cost_study": None})
    assert "--explain-cost" in render(plain)
    text = render(explained)
    assert "--explain-cost" not in text
    for words in ("all bought", "all on demand", "of the hours on", "per month", "per accelerator-hour used", "Moves"):
        assert words in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("name", ["small-8b", "mixed-fleet", "peak-charged"])
def test_unit_costs_in_the_bill_are_those_of_the_report(name: str) -> None:
    plan = library.solved(name).plan
    assert plan is not None
    bill, found = plan.bill, unit_costs(plan)
    for mine, other in (
        (bill.usd_per_month, found.usd_per_month),
        (bill.usd_per_million_total_tokens, found.usd_per_million_total_tokens),
        (bill.usd_per_accelerator_hour_installed, found.usd_per_accelerator_hour_installed),
        (bill.usd_per_accelerator_hour_used, found.usd_per_accelerator_hour_used),
    ):
        assert mine == pytest.approx(other, rel=1e-9)


@pytest.mark.parametrize(
    "field",
    [
        "usd_per_month",
        "usd_per_million_total_tokens",
        "usd_per_accelerator_hour_installed",
        "usd_per_accelerator_hour_used",
    ],
)
def test_a_wrong_unit_cost_is_found(explained: Plan, field: str) -> None:
    assert not verify(explained)
    wrong = explained.bill.model_copy(update={field: 1.01 * getattr(explained.bill, field)})
    findings = verify(explained.model_copy(update={"bill": wrong}))
    assert [one.path for one in findings] == [f"bill.{field}"]


def test_the_verb_takes_the_option() -> None:
    assert "--explain-cost" in CliRunner().invoke(app, ["solve", "--help"]).output
