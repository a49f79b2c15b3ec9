"""The ranking of distinct plans: order, what makes plans distinct, what is told."""

from functools import cache

import pytest

from optimizer.api import solve
from optimizer.plan import Plan
from optimizer.ranking import KINDS, ranked, ranking, things_of
from optimizer.report.screen import render
from optimizer.verify import verify
from tests.core.hand import EXACT
from tests.core.real import offer, small


@cache
def plan(*distinct: str, count: int = 5) -> Plan:
    """An 8B model on two types, two schemes, two cooling options, bought or rented."""
    given = small(
        choices={
            "accelerators": ["l40s", "h100-80gb-sxm"],
            "schemes": ["w16a16", "w8a8-fp8"],
            "cooling": ["air_containment_econ", "dynamic"],
            "sourcing": ["buy", "on_demand"],
        },
        targets={"accuracy_floor_fraction": 0.9},
    )
    found = solve(given, runners_up=count, distinct=distinct or KINDS).plan
    assert found is not None
    return found


def test_ranks_rise_in_cost_and_differ_in_what_they_use() -> None:
    found = plan()
    rows = found.ranking
    assert [row.rank for row in rows] == list(range(2, 2 + len(rows)))
    assert len(rows) == 5
    costs = [found.bill.usd_per_hour, *(row.usd_per_hour for row in rows)]
    assert costs == sorted(costs)
    used = [row.uses for row in rows]
    assert len(set(used)) == len(used)
    for row in rows:
        assert row.extra_fraction == pytest.approx(row.usd_per_hour / found.bill.usd_per_hour - 1.0)
        assert row.holds == "proven"


def test_the_first_is_the_cheapest_plan_without_something() -> None:
    found = plan()
    least = min(row.usd_per_hour for row in found.runners_up if row.usd_per_hour is not None)
    assert found.ranking[0].usd_per_hour == pytest.approx(least, rel=1e-9)


def test_distinct_in_accelerators_alone() -> None:
    found = plan("accelerators")
    mixes = [frozenset(name for _, name in things_of(found, ("accelerators",)))]
    for row in found.ranking:
        assert not any(mix <= set(row.uses.accelerators) for mix in mixes)
        mixes.append(frozenset(row.uses.accelerators))
    assert len(found.ranking) < 5
    assert any("further distinct plan" in text for text in found.messages)


def test_not_asked_not_ranked_and_the_same_plan() -> None:
    without, ranked = plan(count=0), plan()
    assert without.ranking == ()
    assert without.bill == ranked.bill


def test_a_plan_with_its_ranking_stands_and_is_shown() -> None:
    found = plan()
    assert verify(found) == ()
    text = render(found)
    for row in found.ranking:
        assert f"Rank {row.rank}" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_time_that_runs_out_is_told() -> None:
    found = plan(count=0)
    stopped = ranking(offer(found.instance), found, 3, EXACT, deadline=0.0)
    assert stopped.plans == []
    assert not stopped.is_complete
    assert "the time limit came before rank 2" in ranked(found, stopped, 3).messages[0]
