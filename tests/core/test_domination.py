"""Rows that ``not_dominated`` leaves out: whatever is packed and served without them is as good."""

from collections import Counter
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from optimizer.screen import not_dominated

G = 8


def servers_of(width: int) -> float:
    """What one replica blocks of a server of 8."""
    return 1.0 / (G // width) if width <= G else float(-(-width // G))


def kept(widths: list[int], capacity: list[float], energy: list[float] | None = None) -> list[bool]:
    """Rows of one group."""
    result = not_dominated(
        np.zeros(len(widths), dtype=np.int64),
        np.array(widths, dtype=np.int64),
        np.array([servers_of(width) for width in widths]),
        np.array(capacity),
        np.array([1.0] * len(widths) if energy is None else energy),
    )
    return [bool(one) for one in result]


@pytest.mark.parametrize(
    ("widths", "capacity", "rows"),
    [
        ([4, 2], [2.0, 1.0], [False, True]),  # two replicas of half the size do as well
        ([4, 2], [2.1, 1.0], [True, True]),
        ([2, 4], [2.0, 2.0], [True, False]),
        ([8, 3], [2.0, 1.0], [False, True]),  # two of three in a server
        ([8, 3], [2.1, 1.0], [True, True]),
        ([6, 4], [2.0, 1.0], [True, True]),  # beside six there is room for two more
        ([6, 4], [1.0, 1.0], [False, True]),
        ([6, 3], [2.0, 1.0], [False, True]),
        ([5, 2], [2.0, 1.0], [False, True]),
        ([16, 8], [4.0, 2.0], [False, True]),
        ([16, 4], [4.0, 1.0], [False, True]),
        ([24, 16], [5.0, 4.0], [True, True]),  # one of sixteen where twenty-four stood
        ([24, 16], [4.0, 4.0], [False, True]),
        ([4, 16], [1.0, 9.0], [True, True]),
        ([4, 4, 4], [1.0, 1.0, 1.0], [True, False, False]),  # of equal rows the first
    ],
)
def test_border(widths: list[int], capacity: list[float], rows: list[bool]) -> None:
    assert kept(widths, capacity) == rows


def test_energy_keeps_what_is_smaller_but_thirstier_from_winning() -> None:
    assert kept([4, 4], [1.0, 2.0], [1.0, 1.0]) == [False, True]
    assert kept([4, 4], [1.0, 2.0], [1.0, 1.1]) == [True, True]
    assert kept([4, 4], [1.0, 2.0], [1.0, 0.9]) == [False, True]


def test_groups_do_not_meet() -> None:
    result = not_dominated(
        np.array([0, 1]), np.array([4, 4]), np.array([0.5, 0.5]), np.array([1.0, 2.0]), np.array([1.0, 1.0])
    )
    assert result.tolist() == [True, True]


def test_nothing_in_nothing_out() -> None:
    empty = np.empty(0)
    assert not_dominated(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), empty, empty, empty).size == 0


def fleets(widths: list[int], most: int) -> Iterator[Counter[int]]:
    """Every multiset of at most ``most`` rows."""

    def extend(position: int, chosen: tuple[int, ...]) -> Iterator[Counter[int]]:
        yield Counter(chosen)
        if len(chosen) < most:
            for row in range(position, len(widths)):
                yield from extend(row, (*chosen, row))

    yield from extend(0, ())


def fits(widths: list[int], fleet: Counter[int], servers: int) -> bool:
    """Whether the replicas of a fleet fit that many servers, by trying every placement."""
    wide = sum(-(-widths[row] // G) * count for row, count in fleet.items() if widths[row] > G)
    pieces = sorted(
        (widths[row] for row, count in fleet.items() if widths[row] <= G for _ in range(count)), reverse=True
    )

    def place(position: int, room: tuple[int, ...]) -> bool:
        if position == len(pieces):
            return True
        tried = set()
        for index, left in enumerate(room):
            if left >= pieces[position] and left not in tried:
                tried.add(left)
                if place(position + 1, (*room[:index], left - pieces[position], *room[index + 1 :])):
                    return True
        return False

    return wide <= servers and place(0, (G,) * (servers - wide))


def most_served(widths: list[int], capacity: list[float], rows: list[bool], servers: int) -> float:
    """Most that the kept rows serve on that many servers."""
    alive = [row for row, keep in enumerate(rows) if keep]
    w, c = [widths[row] for row in alive], [capacity[row] for row in alive]
    best = 0.0
    for fleet in fleets(w, servers * (G // min(w))):
        served = sum(c[row] * count for row, count in fleet.items())
        if served > best and fits(w, fleet, servers):
            best = served
    return best


@pytest.mark.parametrize("seed", range(30))
def test_as_much_is_served_on_every_count_of_servers(seed: int) -> None:
    random = Random(seed)
    widths = random.choices((3, 4, 5, 6, 8, 16), k=4)
    capacity = [width * random.choice((0.75, 1.0, 1.25, 1.5)) for width in widths]
    rows = kept(widths, capacity)
    everything = [True] * len(widths)
    for servers in (1, 2):
        assert most_served(widths, capacity, rows, servers) == most_served(widths, capacity, everything, servers)


@pytest.mark.parametrize("seed", range(50))
def test_each_row_left_out_is_beaten_by_a_kept_one(seed: int) -> None:
    random = Random(seed)
    size = 30
    group = [random.randrange(3) for _ in range(size)]
    widths = random.choices((1, 2, 3, 4, 6, 8, 16, 24), k=size)
    capacity = [width * random.uniform(0.5, 1.5) for width in widths]
    energy = [random.choice((1.0, 1.5, 2.0)) for _ in range(size)]
    rows = not_dominated(
        np.array(group),
        np.array(widths),
        np.array([servers_of(w) for w in widths]),
        np.array(capacity),
        np.array(energy),
    )
    for i in np.flatnonzero(~rows):
        beaten = False
        for j in np.flatnonzero(rows):
            if widths[i] > G:
                times = int(servers_of(widths[i]) / servers_of(widths[j]) + 1e-9)
            else:
                times = widths[i] // widths[j]
            good = times >= 1 and times * capacity[j] >= capacity[i] and energy[j] <= energy[i]
            beaten |= bool(good and group[i] == group[j])
        assert beaten


@pytest.mark.parametrize("seed", range(3))
def test_ten_thousand_random_rows_shrink_to_hundreds(seed: int) -> None:
    random = np.random.default_rng(seed)
    group = random.integers(0, 60, 10_000)
    width = 2 ** random.integers(0, 4, 10_000)
    capacity = width * random.lognormal(0.0, 0.4, 10_000)
    kept = not_dominated(group, width, width / 8.0, capacity, random.lognormal(0.0, 0.2, 10_000))
    # Each group keeps its best. Of rows with two random attributes about ln(rows) stand: 60 x 4 x ln(42), about 900,
    # and narrow rows beat wide ones on top.
    assert np.array_equal(np.unique(group[kept]), np.arange(60))
    assert kept.sum() <= 900
