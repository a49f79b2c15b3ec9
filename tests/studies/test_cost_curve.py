"""The cost curve: each point is the best plan at its demand, its parts make the whole, a bend names what makes it."""

import pytest

from optimizer.studies.best import best_plan
from optimizer.studies.cost_curve import Point, as_csv, bends, cost_curve, scaled
from tests.core.real import small

GIVEN = small(choices={"sourcing": ["buy"], "accelerators": ["l40s"]})


def test_a_point_is_the_best_plan_of_that_demand_and_its_parts_make_the_whole() -> None:
    points = cost_curve(GIVEN, [1.0, 3.0])
    for one in points:
        plan = best_plan(scaled(GIVEN, one.share))
        assert plan is not None
        assert (one.accelerators, one.usd_per_hour) == (plan.accelerators, plan.bill.usd_per_hour)
        parts = sum(one.usd_per_accelerator_hour.values())
        assert parts == pytest.approx(one.total_usd_per_accelerator_hour, rel=1e-12)
    assert points[0].usd_per_hour <= points[1].usd_per_hour
    text = as_csv(points).splitlines()
    assert len(text) == 3
    assert text[0].startswith("share,accelerators,usd_per_hour,usd_per_accelerator_hour,")


def test_demand_is_scaled_in_every_class() -> None:
    assert GIVEN.workload.kind == "serving"
    moved = scaled(GIVEN, 2.5).workload
    assert moved.kind == "serving"
    assert [one.demand.requests_per_s for one in moved.all_classes()] == [
        2.5 * (one.demand.requests_per_s or 0.0) for one in GIVEN.workload.all_classes()
    ]


def test_a_bend_names_the_part_that_moves_with_the_whole() -> None:
    def point(count: int, servers: float, network: float) -> Point:
        parts = {"servers": servers, "network": network}
        return Point(1.0, count, (servers + network) * count, parts, (), "")

    (up,) = bends([point(500, 1.0, 0.02), point(600, 0.99, 0.08), point(700, 0.99, 0.08)])
    assert (up.component, up.after.accelerators) == ("network", 600)
    assert up.component_usd == pytest.approx(0.06)
    assert up.total_usd == pytest.approx(0.05)
    (down,) = bends([point(500, 1.0, 0.02), point(600, 0.8, 0.05)])
    assert down.component == "servers"
