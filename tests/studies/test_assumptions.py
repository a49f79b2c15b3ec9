"""The assumptions that lead: each change is what solving the neighbour says, and the order is that of the changes."""

import csv
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from optimizer.api import solve
from optimizer.commands.app import app
from optimizer.instance.field_paths import find_field, with_values
from optimizer.instance.model import Instance
from optimizer.report.charts.tornado import tornado_bars
from optimizer.studies.assumptions import Leading, leading_assumptions, movers
from optimizer.studies.best import best_plan
from optimizer.studies.bound_movers import bounds_and_assumptions
from optimizer.studies.plausible_ranges import RANGES
from tests.studies.small import prices, small


@pytest.fixture(scope="module")
def bought() -> Leading:
    found = leading_assumptions(small(("buy",)), None, kinds=("price",))
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
        "economics.staff.usd_per_fte_year",
        "economics.services.insurance_fraction",
    }
    assert bought.moved == len(bought.assumptions)


def test_ranked_by_the_change_of_the_total(bought: Leading) -> None:
    changes = [one.change_usd_per_year for one in bought.assumptions]
    assert changes == sorted(changes, reverse=True)
    assert bought.assumptions[0].name == "price of a server of h100-80gb-sxm x8"
    first = leading_assumptions(small(("buy",)), count=2, kinds=("price",))
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
    kept = network + sum(
        one.usd_per_year
        for one in plan.bill.lines
        if one.component in ("maintenance", "insurance") and one.unit_price_usd == fabric.now
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
    found = leading_assumptions(instance, kinds=("price",))
    assert found is not None
    rent = found.assumptions[0]
    assert rent.name.startswith("rent of h100-80gb-sxm")
    assert rent.low.change_usd_per_year is not None
    assert rent.low.change_usd_per_year < 0.0
    if rent.low.is_same_choice:
        assert rent.low.change_usd_per_year == pytest.approx(-0.25 * found.usd_per_year, rel=1e-6)


def test_another_choice_is_named() -> None:
    """Renting everything costs a little more than the best fleet, mostly bought: dearer servers flip the answer."""
    best, rent = (best_plan(small(ways)) for ways in (("buy", "on_demand"), ("on_demand",)))
    assert best is not None
    assert rent is not None
    usd = 3.0 * best.bill.usd_per_year / rent.bill.usd_per_year * 1.02
    found = leading_assumptions(small(economics=prices(usd_per_hour=usd)), count=1, kinds=("price",))
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


@pytest.fixture(scope="module")
def limited() -> Instance:
    return small(site={"power_kw": 400.0, "racks": 20}, choices={"supply": {"h100-80gb-sxm": 400}})


@pytest.fixture(scope="module")
def moved(limited: Instance) -> Leading:
    found = leading_assumptions(limited, None, kinds=("assumption", "bound"))
    assert found is not None
    return found


def test_every_bound_that_is_set_and_every_assumption_is_moved(moved: Leading) -> None:
    bounds = {one.field for one in moved.assumptions if one.kind == "bound"}
    assert bounds == {
        "targets.tpot_ms",
        "targets.accuracy_floor_fraction",
        "targets.nvlink_fraction",
        "targets.kv_link_fraction",
        "targets.spare_servers",
        "workload.demand.requests_per_s",
        "site.power_kw",
        "site.racks",
        "choices.supply.h100-80gb-sxm",
    }
    assumptions = {one.field for one in moved.assumptions if one.kind == "assumption"}
    assert {"economics.discount_rate", "targets.confidence", "workload.load.mean_fraction"} <= assumptions
    assert all(one.low.value <= one.now <= one.high.value for one in moved.assumptions)


def test_a_bound_moved_is_what_solving_says(limited: Instance, moved: Leading) -> None:
    checked = 0
    for one in [row for row in moved.assumptions if row.kind == "bound"][:5]:
        field = find_field(limited, one.field)
        value = int(one.high.value) if field.is_whole else one.high.value
        plan = best_plan(with_values(limited, {field: value}))
        assert one.high.usd_per_year == (None if plan is None else pytest.approx(plan.bill.usd_per_year, rel=2e-6))
        checked += one.high.change_usd_per_year != 0.0
    assert checked > 2


def test_figures_that_may_forbid_come_first() -> None:
    plan = best_plan(small(("buy",)))
    assert plan is not None
    tight = small(("buy",), site={"power_kw": 1.05 * plan.power_kw})
    found = leading_assumptions(tight, None, kinds=("bound",))
    assert found is not None
    forbidding = [one.may_forbid for one in found.assumptions]
    assert True in forbidding
    assert forbidding == sorted(forbidding, reverse=True)


def test_an_end_that_the_rules_refuse_is_drawn_in() -> None:
    instance = small(targets={"ttft_ms": 1000.0, "latency_ms": 1000.0})
    found = {one.field: one for one in bounds_and_assumptions(instance)}
    assert found["targets.ttft_ms"].high == 1000.0
    assert found["targets.ttft_ms"].low == 900.0
    assert found["targets.latency_ms"].low == 1000.0


def test_the_page_lists_every_range() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "studies.md").read_text(encoding="utf-8")
    for one in RANGES:
        assert f"| `{'.'.join(map(str, one.pattern))}` | {one.kind} | {one.basis} |" in page


def test_stopped_keeps_what_is_done(limited: Instance) -> None:
    asked = iter([False, False, True])
    found = leading_assumptions(limited, None, kinds=("bound",), stop=lambda: next(asked))
    assert found is not None
    assert (found.moved, len(found.assumptions)) == (2, 2)
    assert found.total == 9


def test_bars_are_in_proportion(moved: Leading) -> None:
    rows = [one for one in moved.assumptions if not one.may_forbid]
    bars = tornado_bars(tuple(rows), 41)
    assert len({bar.index("|") for bar in bars}) == 1
    every = [end.change_usd_per_year or 0.0 for row in rows for end in (row.low, row.high)]
    scale = 40.0 / (max(every) - min(every))
    for row, bar in zip(rows, bars, strict=True):
        changes = [end.change_usd_per_year or 0.0 for end in (row.low, row.high)]
        below, above = max(0.0, -min(changes)), max(0.0, *changes)
        assert abs(bar.count("+") - scale * above) <= 1.0
        assert abs(bar.count("-") - scale * below) <= 1.0
    longest = max(rows, key=lambda one: one.change_usd_per_year)
    assert len(bars[rows.index(longest)].strip()) == max(len(bar.strip()) for bar in bars)


class TestVerb:
    """``optimize tornado``."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "small.json"
        path.write_text(small(("buy",)).model_dump_json(by_alias=True, exclude_unset=True), encoding="utf-8")
        return path

    def test_screen_and_files(self, path: Path) -> None:
        for ending in ("json", "csv", "svg"):
            made = path.with_name(f"t.{ending}")
            shown = CliRunner().invoke(app, ["tornado", str(path), "--count", "2", "--only", "prices", "-o", str(made)])
            assert shown.exit_code == 0, shown.stderr
            assert "price of a server of h100-80gb-sxm x8" in shown.stdout
            assert max(len(line) for line in shown.stdout.splitlines()) <= 80
            text = made.read_text(encoding="utf-8")
            if ending == "json":
                held = json.loads(text)
                assert len(held["assumptions"]) == held["moved"] == held["total"] == 10
                assert held["assumptions"][0]["change_usd_per_year"] > 0.0
            elif ending == "csv":
                rows = list(csv.DictReader(text.splitlines()))
                assert len(rows) == 10
                assert float(rows[0]["high_change_usd_per_year"]) > 0.0
            else:
                words = [one.text for one in ET.fromstring(text).iter("{http://www.w3.org/2000/svg}text")]
                assert "price of a server of h100-80gb-sxm x8" in words

    def test_a_file_that_is_something_else_stays(self, path: Path) -> None:
        made = path.with_name("t.csv")
        made.write_text("mine\n", encoding="utf-8")
        assert CliRunner().invoke(app, ["tornado", str(path), "-o", str(made)]).exit_code == 2
        assert made.read_text(encoding="utf-8") == "mine\n"
        assert CliRunner().invoke(app, ["tornado", str(path), "-o", str(path.with_name("t.pdf"))]).exit_code == 2
