"""The screen of a fixed plan and a fixed diagnosis: golden text at 80 and 120 columns, and what it must never do.

The files beside this test are plans as an earlier version wrote them: reading them also proves that old plans still
render. Refresh the goldens with ``pytest tests/report --update``.
"""

from pathlib import Path

import pytest

from optimizer.diagnosis import Diagnosis
from optimizer.plan import Plan
from optimizer.report.screen import render, render_diagnosis

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Plan.model_validate_json((HERE / "plan.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def diagnosis() -> Diagnosis:
    return Diagnosis.model_validate_json((HERE / "diagnosis.json").read_text(encoding="utf-8"))


def golden(name: str, text: str, request: pytest.FixtureRequest) -> None:
    path = HERE / "golden" / f"{name}.txt"
    if request.config.getoption("--update"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [80, 120])
def test_plan_on_one_screen(plan: Plan, width: int, request: pytest.FixtureRequest) -> None:
    text = render(plan, {"setting": 0.5, "program": 0.7}, width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert len(text.splitlines()) <= 28
    golden(f"plan-{width}", text, request)


@pytest.mark.parametrize("width", [80, 120])
def test_diagnosis_on_one_screen(diagnosis: Diagnosis, width: int, request: pytest.FixtureRequest) -> None:
    text = render_diagnosis(diagnosis, {"diagnosis": 1.0}, width)
    assert max(len(line) for line in text.splitlines()) <= width
    golden(f"diagnosis-{width}", text, request)


def test_screen_says_basis_units_and_certainty(plan: Plan) -> None:
    text = render(plan)
    for words in (
        "per year",
        "per hour",
        "per million output tokens",
        "present value",
        "proven",
        "gap",
        "defaulted",
        "assumed",
        "oldest price",
    ):
        assert words in text


def test_every_limit_is_shown_and_binding_ones_are_marked(plan: Plan) -> None:
    lines = render(plan).splitlines()
    for row in plan.headroom:
        (line,) = [one for one in lines if one.strip().startswith(row.label)]
        assert ("<- binds" in line) == row.binding


def test_shares_of_cost_add_up(plan: Plan) -> None:
    assert sum(plan.bill.usd_per_year_by_component.values()) == pytest.approx(plan.bill.usd_per_year, abs=0.005)


def test_same_plan_same_text(plan: Plan) -> None:
    assert render(plan) == render(plan)


def test_no_seconds_without_timing(plan: Plan) -> None:
    assert " in " not in render(plan).splitlines()[0].partition("·")[2]
