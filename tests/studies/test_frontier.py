"""Frontiers: under any limit the cheapest plan costs what the front says, by an enumeration without a solver."""

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from optimizer.commands.app import app
from optimizer.errors import UsageProblems
from optimizer.instance.field_paths import find_field, with_values
from optimizer.instance.model import Instance
from optimizer.studies.best import best_plan
from optimizer.studies.frontier import Aim, Front, FrontPoint, _knee, frontier, read_aims
from tests.oracle.enumerate import TooLarge, cheapest_by_enumeration
from tests.oracle.random_instances import draw
from tests.studies.small import small

SAME = 4e-6
STEPS = 30_000


def least(found: Front, limits: list[float]) -> float | None:
    """What the front says the cheapest plan under some limits costs."""
    costs = [
        one.usd_per_year
        for one in found.points
        if all(
            value <= limit if less else value >= limit
            for value, limit, less in zip(one.reached, limits, found.less_is_better, strict=True)
        )
    ]
    return min(costs, default=None)


def differences(seed: int, trade: str, checks: int = 5) -> list[str] | None:
    """Limits under which the enumeration says otherwise than the exact front; None where it is too large.

    Random limits, and those that the points reach. A recovery step is priced by the chance of needing it at the floor
    that is asked, so between two points the least cost then rises with the floor: there the front, priced at the floors
    that are reached, may say more than the enumeration, and never less.
    """
    instance = draw(seed).instance
    rises = "accuracy" in trade and instance.choices.recovery_steps != ("none",)
    try:
        found = frontier(instance, trade, step=0.0)
        lines = []
        random = Random(seed)
        aims = read_aims(instance, trade)
        asked = [(_random_limits(found, aims, random), rises) for _ in range(checks)]
        asked += [(list(one.reached), False) for one in found.points[:checks]] if rises else []
        for limits, may_say_more in asked:
            tight = zip(aims, limits, strict=True)
            moved = {
                aim.field: round(one) if aim.field.is_whole else one if aim.less_is_better else one * (1.0 - 1e-9)
                for aim, one in tight
            }
            expected = cheapest_by_enumeration(with_values(instance, moved), STEPS)
            said = least(found, limits)
            wanted = None if expected is None else expected.usd_per_year
            more = said / wanted - 1.0 if said and wanted else 0.0
            if (said is None) != (wanted is None) or more < -SAME or (more > SAME and not may_say_more):
                lines.append(f"seed {seed}, {trade} at {limits}: front {said}, enumeration {wanted}")
        lines += [f"seed {seed}, {trade}: {one} is dominated" for one in dominated(found)]
    except TooLarge:
        return None
    return lines


def _random_limits(found: Front, aims: Sequence[Aim], random: Random) -> list[float]:
    """Limits from a little below the least value that a point reaches to a little above the largest."""
    limits = []
    for place, aim in enumerate(aims):
        values = sorted({one.reached[place] for one in found.points} or {1.0})
        limits.append(_asked(aim, random.uniform(0.9 * values[0], 1.1 * values[-1])))
    return limits


def _asked(aim: Aim, value: float) -> float:
    """A limit that an instance may have."""
    if aim.field.is_whole:
        return float(round(value))
    return max(value, 1e-3) if aim.less_is_better else min(value, 0.9999)


def dominated(found: Front) -> list[FrontPoint]:
    """Points of a front that another one beats."""
    signs = [1.0 if less else -1.0 for less in found.less_is_better]
    rows = [
        (one.usd_per_year, *(sign * value for sign, value in zip(signs, one.reached, strict=True)))
        for one in found.points
    ]
    return [
        one
        for one, row in zip(found.points, rows, strict=True)
        if any(other != row and all(a <= b for a, b in zip(other, row, strict=True)) for other in rows)
    ]


@pytest.mark.parametrize(
    ("seed", "trade"),
    [
        (2, "cost,site.power_kw"),
        (4, "cost,targets.accuracy_floor_fraction"),
        (30, "cost,targets.accuracy_floor_fraction"),
        (9, "cost,site.racks"),
    ],
)
def test_the_front_is_that_of_the_enumeration(seed: int, trade: str) -> None:
    assert not differences(seed, trade, 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "trade",
    [
        "cost,site.power_kw",
        "cost,site.racks",
        "cost,economics.budget_capex_usd",
        "cost,targets.accuracy_floor_fraction",
        "cost,site.racks,economics.budget_capex_usd",
        "cost,choices.max_accelerator_types,site.racks",
    ],
)
def test_fronts_are_those_of_the_enumeration(trade: str) -> None:
    found = [differences(seed, trade, 3) for seed in (0, 2, 4, 5, 9, 11)]
    assert [line for lines in found if lines for line in lines] == []
    assert sum(one is not None for one in found) >= 4


@pytest.fixture(scope="module")
def latency() -> Front:
    return frontier(small(), "cost,targets.tpot_ms=20:60", step=0.2)


def test_points_are_best_plans_of_their_limits(latency: Front) -> None:
    instance = small()
    field = find_field(instance, "targets.tpot_ms")
    for one in latency.points[:: max(1, len(latency.points) // 4)]:
        plan = best_plan(with_values(instance, {field: one.reached[0] * (1.0 + 1e-9)}))
        assert plan is not None
        assert plan.bill.usd_per_year == pytest.approx(one.usd_per_year, rel=SAME)
    assert not dominated(latency)
    reached = [one.reached[0] for one in latency.points]
    assert reached == sorted(reached, reverse=True)


def test_the_own_limit_and_the_knee_are_marked(latency: Front) -> None:
    assert latency.now == (60.0,)
    assert latency.points[0].is_now
    assert sum(one.is_knee for one in latency.points) == 1


def test_knee_by_hand() -> None:
    assert _knee([(0.0, 10.0), (1.0, 2.0), (10.0, 0.0)]) == 1
    assert _knee([(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)]) is None
    assert _knee([(0.0, 1.0), (1.0, 0.0)]) is None
    assert _knee([(0.0, 1.0, 1.0), (0.4, 0.4, 0.4), (1.0, 0.0, 1.0), (1.0, 1.0, 0.0)]) == 1


def test_stopped_keeps_points() -> None:
    calls = iter([False] * 4 + [True] * 50)
    found = frontier(small(), "cost,targets.tpot_ms=8:60", stop=lambda: next(calls))
    assert not found.is_complete
    assert found.points
    assert all(math.isfinite(one.usd_per_year) for one in found.points)


@pytest.mark.parametrize(
    "trade",
    [
        "cost",
        "targets.tpot_ms,cost",
        "cost,targets.tpot",
        "cost,workload.request.input_tokens",
        "cost,targets.tpot_ms=9:1",
    ],
)
def test_bad_trades(trade: str) -> None:
    with pytest.raises(UsageProblems):
        read_aims(small(), trade)


def test_every_bad_aim_is_told() -> None:
    with pytest.raises(UsageProblems) as error:
        read_aims(small(), "price,targets.tpot,targets.ttft_ms,targets.ttft_ms,targets.vram_fraction")
    assert [one.code for one in error.value.problems] == ["E-STUDY-403"] + ["E-STUDY-404"] * 3


def written(path: Path, instance: Instance) -> Path:
    path.write_text(instance.model_dump_json(by_alias=True, exclude_unset=True), encoding="utf-8")
    return path


def test_verb(tmp_path: Path) -> None:
    path = written(tmp_path / "small.json", small(("buy",)))
    asked = ["frontier", str(path), "--trade", "cost,site.power_kw"]
    shown = CliRunner().invoke(app, [*asked, "-o", str(tmp_path / "f.csv")])
    assert shown.exit_code == 0, shown.stderr
    assert max(len(line) for line in shown.stdout.splitlines()) <= 80
    rows = list(csv.DictReader((tmp_path / "f.csv").read_text(encoding="utf-8").splitlines()))
    held = json.loads(CliRunner().invoke(app, [*asked, "--json", "-q"]).stdout)
    assert len(rows) == len(held["points"])
    CliRunner().invoke(app, [*asked, "-q", "-o", str(tmp_path / "f.svg")])
    assert ET.fromstring((tmp_path / "f.svg").read_text(encoding="utf-8")).attrib["id"] == "optimize-frontier"
    nothing = written(tmp_path / "nothing.json", small(targets={"ttft_ms": 0.001}))
    assert CliRunner().invoke(app, ["frontier", str(nothing), "--trade", "cost,site.power_kw"]).exit_code == 4


def test_a_floor_ends_where_nothing_more_can_be_asked() -> None:
    """Unquantized weights reach 1: no floor beyond it is tried."""
    found = frontier(draw(8).instance, "cost,targets.accuracy_floor_fraction", step=0.0)
    assert found.is_complete
    assert found.points[-1].reached[0] >= 0.99
