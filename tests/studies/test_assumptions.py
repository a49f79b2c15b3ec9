"""The assumptions that lead: each change is what solving the neighbour says, and the order is that of the changes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from optimizer.api import solve
from optimizer.commands.app import app
from optimizer.studies.assumptions import Leading, leading_assumptions, movers
from optimizer.studies.best import best_plan
from tests.studies.small import prices, small


@pytest.fixture(scope="module")
def bought() -> Leading:
    found = leading_assumptions(small(("buy",)), count=100)
    assert found is not None
    return found


def test_every_price_of_the_plan_is_moved(bought: Leading) -> None:
    fields = {one.field for one in bought.assumptions}
    assert fields == {
        "economics.prices.h100-80gb-sxm.server_usd",
        "economics.cooling_prices.air_containment_econ",
        "fabrics.ib-ndr-400g-1tier",
        "site.electricity_usd_per_kwh",
        "economics.colocation_usd_per_kw_month",
        "economics.rack_usd",
        "economics.server_maintenance_fraction",
        "economics.network_maintenance_fraction",
    }
    assert bought.moved == len(bought.assumptions)


def test_ranked_by_the_change_of_the_total(bought: Leading) -> None:
    changes = [one.change_usd_per_year for one in bought.assumptions]
    assert changes == sorted(changes, reverse=True)
    assert bought.assumptions[0].name == "price of a server of h100-80gb-sxm x8"
    first = leading_assumptions(small(("buy",)), count=2)
    assert first is not None
    assert [one.name for one in first.assumptions] == [one.name for one in bought.assumptions[:2]]


def test_a_change_is_what_solving_says(bought: Leading) -> None:
    server = bought.assumptions[0]
    assert server.basis == "+-25 %"
    assert (server.low.value, server.high.value) == (187_500.0, 312_500.0)
    plan = solve(small(("buy",), economics=prices(server_usd=312_500.0))).plan
    assert plan is not None
    assert server.high.usd_per_year == pytest.approx(plan.bill.usd_per_year, rel=1e-9)
    assert server.high.change_usd_per_year == pytest.approx(plan.bill.usd_per_year - bought.usd_per_year, rel=1e-6)


def test_ranges_are_those_of_the_catalogue(bought: Leading) -> None:
    ranges = {one.field: one for one in bought.assumptions}
    rack = ranges["economics.rack_usd"]
    assert (rack.low.value, rack.now, rack.high.value, rack.basis) == (1200.0, 1476.0, 4000.0, "catalogue range")
    fabric = ranges["fabrics.ib-ndr-400g-1tier"]
    assert fabric.basis == "catalogue range"
    # A price that an instance cannot state moves the total by exactly its lines.
    plan = solve(small(("buy",))).plan
    assert plan is not None
    share = fabric.high.value / fabric.now - 1.0
    network = plan.bill.usd_per_year_by_component["network"]
    kept = network + next(
        one.usd_per_year
        for one in plan.bill.lines
        if one.component == "maintenance" and one.unit_price_usd == fabric.now
    )
    assert fabric.high.change_usd_per_year == pytest.approx(share * kept, rel=1e-6)


def test_catalogue_prices_move_through_their_range() -> None:
    instance = small(("buy",), economics={"prices": {}})
    plan = best_plan(instance)
    assert plan is not None
    server = next(one for one in movers(instance, plan) if one.unit == "USD/server")
    row = next(one.row for one in plan.catalog_rows if one.table == "purchase_prices")
    assert [server.low, server.now, server.high] == [row["low_usd"], row["typical_usd"], row["high_usd"]]


@pytest.mark.parametrize("own", [True, False])
def test_rent_moves_as_the_market_does(own: bool) -> None:
    instance = small(("on_demand",), economics=prices(None) if own else {"prices": {}})
    found = leading_assumptions(instance)
    assert found is not None
    rent = found.assumptions[0]
    assert rent.name.startswith("rent of h100-80gb-sxm")
    assert rent.low.change_usd_per_year is not None
    assert rent.low.change_usd_per_year < 0.0
    if rent.low.is_same_choice:
        assert rent.low.change_usd_per_year == pytest.approx(-0.25 * found.usd_per_year, rel=1e-6)


def test_another_choice_is_named() -> None:
    """Renting costs a little more than buying: dearer servers flip the answer."""
    buy, rent = (best_plan(small((way,))) for way in ("buy", "on_demand"))
    assert buy is not None
    assert rent is not None
    usd = 3.0 * buy.bill.usd_per_year / rent.bill.usd_per_year * 1.02
    found = leading_assumptions(small(economics=prices(usd_per_hour=usd)), count=1)
    assert found is not None
    assert found.assumptions[0].is_decisive
    assert "rented on demand" in found.assumptions[0].high.summary


def test_preparation_is_moved() -> None:
    instance = small(("on_demand",), choices={"schemes": ["w8a8-fp8"]})
    plan = best_plan(instance)
    assert plan is not None
    one = next(mover for mover in movers(instance, plan) if mover.field == "recovery_steps")
    moved = best_plan(*one.at(one.high))
    assert moved is not None
    assert moved.bill.capital_usd == pytest.approx(1.25 * plan.bill.capital_usd)


def test_nothing_fits() -> None:
    assert leading_assumptions(small(targets={"tpot_ms": 0.01})) is None


def test_verb(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text(small(("buy",)).model_dump_json(by_alias=True, exclude_unset=True), encoding="utf-8")
    shown = CliRunner().invoke(app, ["tornado", str(path), "--count", "2"])
    assert shown.exit_code == 0, shown.stderr
    assert "price of a server of h100-80gb-sxm x8" in shown.stdout
    assert "moving" in shown.stderr
    assert max(len(line) for line in shown.stdout.splitlines()) <= 80
    held = json.loads(CliRunner().invoke(app, ["tornado", str(path), "--json", "-q"]).stdout)
    assert len(held["assumptions"]) == 5
    assert held["assumptions"][0]["change_usd_per_year"] > 0.0
