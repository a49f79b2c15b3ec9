"""Buy against rent and the committed level, against plain enumeration."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.costs.renting import (
    RentedCluster,
    break_even_hours,
    break_even_month,
    break_even_utilization,
    committed_level,
    mixed_rent_usd_per_year,
)
from optimizer.units import HOURS_PER_YEAR

LOADS = st.lists(st.tuples(st.integers(0, 50).map(float), st.integers(1, 1000).map(float)), min_size=1, max_size=6)


def test_break_even_hours_is_where_both_have_cost_the_same() -> None:
    hours = break_even_hours(1000.0, 3.0, 0.5)
    assert 1000.0 + 0.5 * hours == pytest.approx(3.0 * hours)
    assert break_even_hours(1000.0, 0.5, 0.5) == math.inf
    assert break_even_hours(1000.0, 0.4, 0.5) == math.inf


def test_break_even_utilization_is_where_a_used_hour_costs_the_same() -> None:
    share = break_even_utilization(1.7459, 2.5)
    assert 1.7459 / share == pytest.approx(2.5)
    assert break_even_utilization(3.0, 2.0) > 1.0


def test_break_even_month() -> None:
    # 1000 + 10 m < 60 m after 20 months: in the 21st.
    assert break_even_month(1000.0, 10.0, 60.0) == 21
    assert break_even_month(1000.0, 60.0, 60.0) is None
    # Discounting and falling rent both speak for renting.
    assert (break_even_month(1000.0, 10.0, 60.0, rate=0.1) or 0) > 21
    assert (break_even_month(1000.0, 10.0, 60.0, rent_fall_per_year=0.2) or 0) > 21
    # Rent falls below what running costs before the price is earned back: never.
    assert break_even_month(5000.0, 30.0, 60.0, rent_fall_per_year=0.4) is None


def test_committed_level_by_hand() -> None:
    load = [(100.0, 1000.0), (60.0, 5000.0), (20.0, 2766.0)]
    # Above 20 for 68 % of the hours, above 60 for 11 %.
    assert committed_level(load, 0.6, 1.0) == 60.0
    assert committed_level(load, 0.7, 1.0) == 20.0
    assert committed_level(load, 0.1, 1.0) == 100.0
    assert committed_level(load, 1.0, 1.0) == 0.0


@pytest.mark.parametrize(("rate", "fall"), [(0.08, 0.0), (0.0, 0.2), (0.08, 0.15)])
def test_break_even_month_by_geometric_sums(rate: float, fall: float) -> None:
    def until(month: int, ratio: float) -> float:
        return float(month) if ratio == 1.0 else ratio * (1.0 - ratio**month) / (1.0 - ratio)

    worth, rent = (1.0 + rate) ** (-1.0 / 12.0), ((1.0 - fall) / (1.0 + rate)) ** (1.0 / 12.0)
    month = break_even_month(1000.0, 10.0, 60.0, rate=rate, rent_fall_per_year=fall)
    assert month is not None
    saved = [60.0 * until(one, rent) - 10.0 * until(one, worth) for one in (month - 1, month)]
    assert saved[0] <= 1000.0 < saved[1]


@given(load=LOADS, committed=st.floats(0.05, 2.0))
def test_no_other_level_costs_less(load: list[tuple[float, float]], committed: float) -> None:
    hours = sum(lasting for _, lasting in load)
    year = [(need, lasting / hours * HOURS_PER_YEAR) for need, lasting in load]
    best = mixed_rent_usd_per_year(year, committed_level(load, committed, 1.0), committed, 1.0)
    for level in range(51):
        assert best <= mixed_rent_usd_per_year(year, float(level), committed, 1.0) * (1.0 + 1e-9) + 1e-6


def test_bill_of_a_rented_cluster() -> None:
    one = RentedCluster(100.0, 10.0, 5.0, 5.0, support_fraction=0.1, goodput_usd=3.0, debugging_usd=2.0, setup_usd=24.0)
    assert one.support_usd_per_month == pytest.approx(12.0)
    assert one.usd_per_month(12.0) == pytest.approx(120.0 + 12.0 + 3.0 + 2.0 + 2.0)
    assert RentedCluster(100.0).usd_per_month(36.0) == 100.0
