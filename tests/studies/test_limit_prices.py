"""Prices of limits are differences of solved plans."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from optimizer.commands.app import app
from optimizer.instance.field_paths import find_field, with_values
from optimizer.studies.best import best_plan
from optimizer.studies.limit_prices import LimitPrices, limit_prices
from tests.studies.small import small

INSTANCE = small(site={"power_kw": 60.0, "racks": 6}, choices={"supply": {"h100-80gb-sxm": 400}})


@pytest.fixture(scope="module")
def found() -> LimitPrices:
    result = limit_prices(INSTANCE, by_fraction=0.1)
    assert result is not None
    return result


def test_every_limit_that_is_set_has_a_price(found: LimitPrices) -> None:
    assert {one.field for one in found.limits} == {
        "targets.tpot_ms",
        "targets.accuracy_floor_fraction",
        "targets.vram_fraction",
        "targets.nvlink_fraction",
        "targets.kv_link_fraction",
        "workload.demand.requests_per_s",
        "site.power_kw",
        "site.racks",
        "choices.supply.h100-80gb-sxm",
    }


def test_prices_are_finite_differences(found: LimitPrices) -> None:
    for one in found.limits:
        field = find_field(INSTANCE, one.field)
        for moved in (one.tighter, one.looser):
            if moved is None:
                continue
            plan = best_plan(with_values(INSTANCE, {field: int(moved.value) if field.is_whole else moved.value}))
            assert (moved.usd_per_year is None) == (plan is None)
            if plan is None or moved.change_usd_per_year is None:
                continue
            change = plan.bill.usd_per_year - found.usd_per_year
            assert moved.change_usd_per_year == pytest.approx(change, abs=3e-6 * found.usd_per_year)
            assert moved.usd_per_year_per_unit == pytest.approx(
                abs(moved.change_usd_per_year / (moved.value - one.now)), rel=1e-9
            )


def test_tighter_is_never_cheaper_and_looser_never_dearer(found: LimitPrices) -> None:
    for one in found.limits:
        if one.tighter is not None:
            assert one.tighter.change_usd_per_year is None or one.tighter.change_usd_per_year >= 0.0
        if one.looser is not None:
            assert one.looser.change_usd_per_year is not None
            assert one.looser.change_usd_per_year <= 0.0


def test_nothing_fits() -> None:
    assert limit_prices(small(targets={"tpot_ms": 0.001})) is None


def test_verb(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text(small(("buy",)).model_dump_json(by_alias=True, exclude_unset=True), encoding="utf-8")
    shown = CliRunner().invoke(app, ["limits-price", str(path), "-o", str(tmp_path / "l.csv")])
    assert shown.exit_code == 0, shown.stderr
    assert "targets.tpot_ms = 60.00 ms" in shown.stdout
    assert max(len(line) for line in shown.stdout.splitlines()) <= 80
    rows = list(csv.DictReader((tmp_path / "l.csv").read_text(encoding="utf-8").splitlines()))
    assert "targets.tpot_ms" in {row["field"] for row in rows}
    held = json.loads(CliRunner().invoke(app, ["limits-price", str(path), "--json", "-q"]).stdout)
    assert held["study"] == "limits-price"
