"""Spares: a share of the servers in service of each bought type, rounded up, and a least count."""

import math

import pytest

from optimizer.program_data import ProgramData, least_spare_share
from tests.core.hand import (
    LIQUID,
    bought,
    cost,
    data_of,
    instance,
    offered,
    price,
    rented,
    server_type,
    solve,
    with_bounds,
)


def program(replicas: int, fraction: float, least: int = 0, *, bound: int = 40) -> ProgramData:
    """Replicas of one server each."""
    of = server_type()
    given = instance(targets={"spare_fraction": fraction, "spare_servers": least})
    terms = [price(("Servers", "air"), 1.0)]
    data = data_of(given, [bought("air", of)], [offered("d", of)], terms, demand=(float(replicas),))
    return with_bounds(data, bound)


@pytest.mark.parametrize(
    ("replicas", "fraction", "spares"),
    [(1, 0.05, 1), (20, 0.05, 1), (21, 0.05, 2), (10, 0.1, 1), (11, 0.1, 2), (3, 1 / 3, 1), (4, 1 / 3, 2), (5, 1.0, 5)],
)
def test_border_of_the_share(replicas: int, fraction: float, spares: int) -> None:
    assert spares == math.ceil(fraction * replicas - 1e-9)
    assert cost(program(replicas, fraction)) == pytest.approx(replicas + spares)


@pytest.mark.parametrize(("least", "spares"), [(0, 1), (1, 1), (2, 2), (5, 5)])
def test_least_count(least: int, spares: int) -> None:
    assert cost(program(4, 0.05, least)) == pytest.approx(4 + spares)


def test_no_spares_asked_for() -> None:
    assert cost(program(4, 0.0)) == pytest.approx(4.0)
    assert cost(program(4, 0.0, 3)) == pytest.approx(7.0)


def test_rented_servers_need_none() -> None:
    of = server_type(rent={"on_demand": 1.0})
    given = instance(targets={"spare_fraction": 0.5, "spare_servers": 3})
    terms = [price(("Servers", "rent"), 1.0)]
    data = data_of(given, [rented("rent", of)], [offered("d", of)], terms, demand=(4.0,))
    assert cost(data) == pytest.approx(4.0)


def test_pools_of_one_type_share_their_spares_and_types_do_not() -> None:
    """Twelve racks of one server: six by air, six by liquid; one spare covers both pools of a type, not two types."""
    one, two = server_type("one"), server_type("two")
    given = instance(
        workload={
            "classes": [
                {"name": name, "request": {"input_tokens": 9, "output_tokens": 9}, "demand": {"requests_per_s": 6}}
                for name in ("x", "y")
            ]
        },
        targets={"spare_fraction": 0.05},
    )
    pools = [bought("air", one), bought("liquid", one, cooling=LIQUID)]
    same = [offered("x", one, class_index=0), offered("y", one, class_index=1)]
    terms = [price(("Servers", q), 1.0) for q in ("air", "liquid", "other")]
    assert cost(data_of(given, pools, same, terms, demand=(6.0, 6.0))) == pytest.approx(13.0)
    differ = [offered("x", one, class_index=0), offered("y", two, class_index=1)]
    pools = [bought("air", one), bought("other", two)]
    assert cost(data_of(given, pools, differ, terms, demand=(6.0, 6.0))) == pytest.approx(14.0)


def test_a_spare_carries_no_replica() -> None:
    found = solve(program(4, 0.25))
    assert found is not None
    assert found.values["Servers[air]"] - found.values["Spare[air]"] >= found.values["Replicas[d,air]"]


@pytest.mark.parametrize("fraction", [0.01, 0.05, 1 / 12, 0.1, 0.125, 0.3, 1 / 3, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("most", [1, 2, 3, 7, 12, 20, 33, 100])
def test_tightened_share_cuts_off_no_whole_plan(fraction: float, most: int) -> None:
    share = least_spare_share(fraction, most)
    assert share >= fraction
    for count in range(1, most + 1):
        assert math.ceil(fraction * count - 1e-9) >= share * count - 1e-9
    # And it is the largest such share: some count has no more.
    assert (
        any(math.ceil(fraction * count - 1e-9) <= share * count + 1e-9 for count in range(1, most + 1))
        or share == fraction
    )


@pytest.mark.parametrize("bound", [5, 6, 21, 40])
def test_bounds_of_the_servers_do_not_change_the_spares(bound: int) -> None:
    assert cost(program(4, 0.05, bound=bound)) == pytest.approx(5.0)
