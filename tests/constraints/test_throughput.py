"""Throughput: replicas carry the peak at their margin, every level is served, servers carry the replicas."""

import itertools

import pytest

from optimizer.program_data import ProgramData
from optimizer.solver import Reason
from tests.core.hand import (
    bought,
    cost,
    data_of,
    instance,
    offered,
    price,
    rented,
    run,
    server_type,
    solve,
    with_bounds,
)


def program(demand: float, *, rate: float = 2.0, margin: float = 1.0, weight: float = 1.0) -> ProgramData:
    """One replica a server at 1 an hour."""
    of = server_type()
    given = instance(targets={"peak_utilization_fraction": margin})
    terms = [price(("Servers", "air"), 1.0)]
    deployments = [offered("d", of, rate=rate, weight=weight)]
    return data_of(given, [bought("air", of)], deployments, terms, demand=(demand,))


@pytest.mark.parametrize(
    ("demand", "margin", "weight", "replicas"),
    [
        (8.0, 1.0, 1.0, 4),
        (8.001, 1.0, 1.0, 5),
        (8.0, 0.8, 1.0, 5),
        (8.001, 0.8, 1.0, 6),
        # Each request/s stands for five users: a replica carries ten.
        (40.0, 1.0, 5.0, 4),
        (40.01, 1.0, 5.0, 5),
    ],
)
def test_border_of_demand(demand: float, margin: float, weight: float, replicas: int) -> None:
    assert cost(program(demand, margin=margin, weight=weight)) == pytest.approx(replicas)


@pytest.mark.parametrize(("bound", "holds"), [(4, True), (3, False)])
def test_servers_that_cannot_be_had(bound: int, holds: bool) -> None:
    assert (run(with_bounds(program(8.0), bound)).reason is Reason.OPTIMAL) == holds


def packed(widths: dict[int, int], accelerators: int = 8) -> float:
    """Servers that replicas of the given widths need: one class each, so that every width must be used."""
    of = server_type(per_server=accelerators)
    classes = [
        {"name": f"w{width}", "request": {"input_tokens": 9, "output_tokens": 9}, "demand": {"requests_per_s": count}}
        for width, count in widths.items()
    ]
    deployments = [offered(f"w{width}", of, width=width, class_index=b) for b, width in enumerate(widths)]
    demand = tuple(float(count) for count in widths.values())
    pools = [bought("air", of)]
    terms = [price(("Servers", "air"), 1.0)]
    return cost(data_of(instance(workload={"classes": classes}), pools, deployments, terms, demand=demand))


@pytest.mark.parametrize(
    ("widths", "servers"),
    [
        ({3: 8}, 4),  # two 3-GPU groups in a server, not 24 / 8 = 3 servers
        ({3: 7}, 4),
        ({3: 6}, 3),
        ({5: 3}, 3),
        ({6: 2, 2: 2}, 2),
        ({5: 2, 3: 2}, 2),
        ({5: 2, 3: 3}, 3),
        ({3: 2, 2: 1}, 1),
        ({3: 2, 2: 2}, 2),
        ({4: 3}, 2),
        ({4: 1, 2: 1, 1: 2}, 1),
        ({4: 1, 2: 1, 1: 3}, 2),
        ({8: 2, 4: 1}, 3),
        ({16: 2}, 4),  # wider than a server: two whole servers each
        ({16: 1, 4: 1}, 3),
        ({16: 1, 3: 2}, 3),
        ({24: 1, 3: 3, 5: 1}, 5),
    ],
)
def test_packing(widths: dict[int, int], servers: int) -> None:
    assert packed(widths) == pytest.approx(servers)


@pytest.mark.parametrize("accelerators", [4, 6, 8])
def test_packing_against_enumeration(accelerators: int) -> None:
    """Two widths, a few replicas of each: as many servers as the best of all ways to place them."""
    for first, second in itertools.combinations(range(1, accelerators + 1), 2):
        for counts in ((2, 3), (4, 1)) if accelerators < 8 else ((2, 3),):
            wanted = {first: counts[0], second: counts[1]}
            assert packed(wanted, accelerators) == pytest.approx(_fewest(wanted, accelerators)), wanted


def _fewest(widths: dict[int, int], accelerators: int) -> int:
    """Fewest bins by trying every placement."""
    pieces = tuple(sorted((width for width, count in widths.items() for _ in range(count)), reverse=True))
    best = len(pieces)

    def place(position: int, room: tuple[int, ...]) -> None:
        nonlocal best
        if len(room) >= best:
            return
        if position == len(pieces):
            best = len(room)
            return
        width = pieces[position]
        for index, left in enumerate(room):
            if left >= width:
                place(position + 1, (*room[:index], left - width, *room[index + 1 :]))
        place(position + 1, (*room, accelerators - width))

    place(0, ())
    return best


def test_a_replica_wider_than_a_server_is_not_rented() -> None:
    of = server_type(rent={"on_demand": 1.0})
    terms = [price(("Servers", "air"), 5.0), price(("Servers", "rent"), 1.0)]
    pools = [bought("air", of), rented("rent", of)]
    assert cost(data_of(instance(), pools, [offered("d", of, width=16)], terms, demand=(2.0,))) == pytest.approx(20.0)


def test_every_level_is_served_and_energy_picks_the_deployment() -> None:
    """Half of the day at half load: the thrifty deployment alone serves it, the other one only helps at the peak."""
    of = server_type()
    given = instance(workload={"load": {"hourly_fractions": [1.0] * 12 + [0.5] * 12}})
    deployments = [offered("thrifty", of, rate=1.0, busy_kw=5.0), offered("hungry", of, rate=1.0, busy_kw=9.0)]
    terms = [price(("Servers", "air"), 1.0), price(("BusyKwh", "air"), 1e-6, component="energy")]
    data = data_of(given, [bought("air", of)], deployments, terms, demand=(4.0,))
    found = solve(data)
    assert found is not None
    for level, share in (("0", 1.0), ("1", 0.5)):
        served = sum(
            value for name, value in found.values.items() if name.startswith("Rate[") and name.endswith(f",'{level}']")
        )
        assert served == pytest.approx(4.0 * share)
    assert found.count("Replicas") == 4
    assert "Replicas[hungry,air]" not in found.values


def test_one_class_takes_nothing_of_another() -> None:
    of = server_type()
    classes = [
        {"name": name, "request": {"input_tokens": 9, "output_tokens": 9}, "demand": {"requests_per_s": 1}}
        for name in ("x", "y")
    ]
    deployments = [offered("x", of, width=4, class_index=0), offered("y", of, width=4, class_index=1)]
    terms = [price(("Servers", "air"), 1.0)]
    given = instance(workload={"classes": classes})
    for demand, servers in (((1.0, 1.0), 1), ((2.0, 1.0), 2), ((1.5, 1.5), 2), ((3.0, 2.0), 3)):
        data = data_of(given, [bought("air", of)], deployments, terms, demand=demand)
        assert cost(data) == pytest.approx(servers)
