"""The oracle's own mathematics against values that are known from elsewhere."""

import math

import pytest

from tests.oracle.packing import fits, maximal_counts
from tests.oracle.statistics import t_probability, t_quantile


@pytest.mark.parametrize(
    ("probability", "freedom", "value"),
    [  # Student's own table, as printed in any textbook.
        (0.9, 12, 1.356),
        (0.95, 1, 6.314),
        (0.975, 4, 2.776),
        (0.75, 30, 0.683),
        (0.99, 9, 2.821),
    ],
)
def test_t_quantiles_are_those_of_the_printed_table(probability: float, freedom: int, value: float) -> None:
    assert t_quantile(probability, freedom) == pytest.approx(value, abs=5e-4)
    assert t_quantile(1.0 - probability, freedom) == pytest.approx(-value, abs=5e-4)


def test_t_with_one_degree_of_freedom_is_cauchy() -> None:
    for value in (-3.0, -0.5, 0.0, 0.7, 12.0):
        assert t_probability(value, 1) == pytest.approx(0.5 + math.atan(value) / math.pi, abs=1e-13)


def test_eight_groups_of_three_need_four_servers_of_eight() -> None:
    assert not fits(((3, 8),), 3, 8)
    assert fits(((3, 8),), 4, 8)


def test_narrow_replicas_fill_what_wide_ones_leave() -> None:
    assert fits(((1, 2), (3, 2)), 1, 8)
    assert not fits(((1, 3), (3, 2)), 1, 8)
    assert fits(((3, 1), (16, 1)), 3, 8)
    assert not fits(((3, 3), (16, 1)), 3, 8)


def test_maximal_counts_leave_no_room() -> None:
    assert sorted(maximal_counts((3, 1), 1, 8)) == [(0, 8), (1, 5), (2, 2)]
    assert sorted(maximal_counts((4, 8), 1, 8)) == [(0, 1), (2, 0)]
    assert list(maximal_counts((16,), 3, 8)) == [(1,)]
