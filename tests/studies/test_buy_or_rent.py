"""Buying against renting: the optimum is never dearer than either, and the break-even is where the costs meet."""

import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner

from optimizer.api import solve
from optimizer.commands.app import app
from optimizer.costs.payback import break_even_month
from optimizer.plan import Plan
from optimizer.studies.buy_or_rent import (
    BuyOrRent,
    break_even_utilization,
    buy_or_rent,
    mean_load,
)
from tests.studies.small import prices, small


@pytest.fixture(scope="module")
def found() -> BuyOrRent:
    return buy_or_rent(small())


def plan_of(way: object) -> Plan:
    plan = getattr(way, "plan", None)
    assert isinstance(plan, Plan)
    return plan


def test_the_optimum_is_that_of_solve(found: BuyOrRent) -> None:
    solved = solve(small()).plan
    assert solved is not None
    assert plan_of(found.optimum).bill.usd_per_year == pytest.approx(solved.bill.usd_per_year, rel=1e-9)


def test_each_way_keeps_to_itself(found: BuyOrRent) -> None:
    assert {one.sourcing for one in plan_of(found.buy).servers} == {"buy"}
    assert "buy" not in {one.sourcing for one in plan_of(found.rent).servers}
    assert {one.sourcing for one in plan_of(found.on_demand).servers} == {"on_demand"}
    best = plan_of(found.optimum).bill.usd_per_year
    for way in (found.buy, found.rent, found.on_demand):
        assert best <= plan_of(way).bill.usd_per_year * (1.0 + 1e-6)
        assert way.is_allowed


def test_a_way_outside_the_choices_is_shown_and_marked() -> None:
    found = buy_or_rent(small(("buy",)))
    assert not found.rent.is_allowed
    assert {one.sourcing for one in plan_of(found.rent).servers} <= {"on_demand", "reserved_1yr", "reserved_3yr"}
    assert plan_of(found.optimum) is plan_of(found.buy)


def test_costs_meet_at_the_break_even_utilization(found: BuyOrRent) -> None:
    buy, rent = plan_of(found.buy), plan_of(found.on_demand)
    share = found.utilization
    assert share is not None
    requests = math.fsum(
        one.usd_per_year for one in buy.bill.lines if one.component == "energy" and one.unit == "kWh/year"
    )
    owned = buy.bill.usd_per_year - requests + requests * share / mean_load(buy)
    rented = rent.bill.usd_per_year_by_component["rent"]
    beside = rent.bill.usd_per_year - rented
    assert owned == pytest.approx(beside + share * rented, rel=1e-9)
    assert found.load == pytest.approx(0.5)


def test_dear_servers_never_pay() -> None:
    found = buy_or_rent(small(economics=prices(server_usd=3_000_000)))
    assert found.utilization is None
    assert found.month is None
    assert plan_of(found.optimum) is plan_of(found.rent)


def test_the_month_is_where_the_sums_cross(found: BuyOrRent) -> None:
    buy, rent = plan_of(found.buy).bill, plan_of(found.rent).bill
    running = math.fsum(one.usd_per_year for one in buy.lines if one.capital_usd == 0.0) / 12.0
    rented = math.fsum(one.usd_per_year for one in rent.lines if one.capital_usd == 0.0) / 12.0
    wanted = math.ceil((buy.capital_usd - rent.capital_usd) / (rented - running))
    assert found.month == wanted
    assert found.month_discounted is None or found.month_discounted >= wanted


def test_replacement_counts() -> None:
    """Servers that last a year are bought again and again: what paid back in two years does not any more."""
    lasting = buy_or_rent(small())
    short = buy_or_rent(small(economics={**prices(), "server_life_years": 1.0, "network_life_years": 1.0}))
    assert lasting.month is not None
    assert short.month is None or short.month > lasting.month


def test_break_even_of_plans_by_hand(found: BuyOrRent) -> None:
    buy, rent = plan_of(found.buy), plan_of(found.on_demand)
    assert break_even_month(rent, rent) == 1
    assert break_even_utilization(buy, buy) is None


def test_nothing_fits() -> None:
    found = buy_or_rent(small(targets={"tpot_ms": 0.01}))
    assert found.optimum.plan is None
    assert found.utilization is None
    assert found.month is None
    assert json.loads(json.dumps(found.as_json()))["ways"][0]["summary"] == "nothing fits"


class TestVerb:
    """``optimize compare``."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "small.json"
        path.write_text(small().model_dump_json(by_alias=True, exclude_unset=True), encoding="utf-8")
        return path

    def test_table_and_json(self, path: Path) -> None:
        shown = CliRunner().invoke(app, ["compare", str(path), "--sourcing"])
        assert shown.exit_code == 0, shown.stderr
        for words in ("optimum", "all bought", "all rented", "all on demand", "of the hours", "month"):
            assert words in shown.stdout
        assert max(len(line) for line in shown.stdout.splitlines()) <= 80
        held = json.loads(CliRunner().invoke(app, ["compare", str(path), "--sourcing", "--json"]).stdout)
        assert [one["way"] for one in held["ways"]] == ["optimum", "all bought", "all rented", "all on demand"]
        assert held["break_even_month"] > 0

    def test_what_to_compare_must_be_said(self, path: Path) -> None:
        assert CliRunner().invoke(app, ["compare", str(path)]).exit_code == 2
