"""The decision map: each cell is what solving its point says, near ties are what a restricted solve says."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from optimizer.commands.app import app
from optimizer.errors import UsageProblems
from optimizer.instance.field_paths import find_field, with_values
from optimizer.report.charts.regions import nearest_point
from optimizer.studies.best import best_plan
from optimizer.studies.cases import choice, choice_words
from optimizer.studies.decision_map import DecisionMap, decision_map
from tests.studies.small import small

SERVER = "economics.prices.h100-80gb-sxm.server_usd"
RENT = "economics.prices.h100-80gb-sxm.on_demand_usd_per_hour"


@pytest.fixture(scope="module")
def found() -> DecisionMap:
    return decision_map(small(), f"{SERVER}=200000:600000:3", f"{RENT}=1:5:3", near_fraction=0.5)


def test_cells_are_what_solving_says(found: DecisionMap) -> None:
    instance = small()
    fields = find_field(instance, SERVER), find_field(instance, RENT)
    assert len(found.cells) == 9
    for place, cell in enumerate(found.cells):
        assert (cell.x, cell.y) == (found.x.points[place % 3], found.y.points[place // 3])
        there = with_values(instance, dict(zip(fields, (cell.x, cell.y), strict=True)))
        plan = best_plan(there)
        assert plan is not None
        assert cell.usd_per_year == pytest.approx(plan.bill.usd_per_year, rel=2e-6)
        assert cell.choice is not None
        assert found.choices[cell.choice] == choice_words(choice(plan))
        # Two ways are open here: the next best choice does without the one that the plan uses.
        ways = {one.sourcing for one in plan.servers}
        costs = []
        for way in sorted(ways):
            left = tuple(one for one in ("buy", "on_demand") if one != way)
            other = best_plan(there.model_copy(update={"choices": there.choices.model_copy(update={"sourcing": left})}))
            costs += [other.bill.usd_per_year] if other is not None else []
        assert cell.extra_fraction == pytest.approx(min(costs) / plan.bill.usd_per_year - 1.0, abs=1e-5)
        assert cell.is_near_tie == (cell.extra_fraction is not None and cell.extra_fraction <= 0.5)
    assert len(found.choices) >= 2


def test_where_nothing_fits_and_where_we_are() -> None:
    found = decision_map(
        small(), "targets.tpot_ms=0.001:60:2", "workload.demand.requests_per_s=500:960:2", near_fraction=0.0
    )
    assert [one.choice is None for one in found.cells] == [True, False, True, False]
    assert (nearest_point(found.x), nearest_point(found.y)) == (1, 1)
    assert all(one.extra_fraction is None for one in found.cells)


def test_stopped() -> None:
    calls = iter([False, False, True])
    found = decision_map(small(), f"{SERVER}=2e5:6e5:3", f"{RENT}=1:5:3", near_fraction=0.0, stop=lambda: next(calls))
    assert not found.is_complete
    assert len(found.cells) == 2
    assert found.at(2, 2) is None


def test_bad_axes() -> None:
    with pytest.raises(UsageProblems):
        decision_map(small(), f"{SERVER}=2e5:6e5", f"{SERVER}=1e5:2e5")
    with pytest.raises(UsageProblems):
        decision_map(small(), f"{SERVER}=2e5:6e5", "choices.schemes=1:2")


def test_verb(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text(small().model_dump_json(by_alias=True, exclude_unset=True), encoding="utf-8")
    asked = ["map", str(path), "--vary", f"{SERVER}=200000:600000:3", "--vary", f"{RENT}=1:5:2", "--near", "0"]
    shown = CliRunner().invoke(app, [*asked, "-o", str(tmp_path / "m.svg")])
    assert shown.exit_code == 0, shown.stderr
    assert "A " in shown.stdout
    assert max(len(line) for line in shown.stdout.splitlines()) <= 80
    assert ET.fromstring((tmp_path / "m.svg").read_text(encoding="utf-8")).attrib["id"] == "optimize-map"
    assert len(json.loads(CliRunner().invoke(app, [*asked, "--json", "-q"]).stdout)["cells"]) == 6
    assert CliRunner().invoke(app, asked[:4]).exit_code == 2
