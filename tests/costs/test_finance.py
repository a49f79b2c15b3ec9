"""Money over time against sums written out, and laws that hold for every figure."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.costs import term
from optimizer.costs.finance import (
    Asset,
    annuity_factor,
    annuity_usd,
    capital_recovery_factor,
    discount_factor,
    free_cash_flow,
    growing,
    internal_rate_of_return,
    later_price_fraction,
    life_cycle_cost_usd,
    monthly_payment_usd,
    payback_year,
    present_value,
    present_worth_factor,
    purchase_years,
    residual_fraction,
    straight_line_usd,
)

RATES = st.floats(0.001, 0.5)
YEARS = st.integers(1, 40)
SHARES = st.floats(0.0, 1.0)


def test_terms_use_the_same_factor() -> None:
    assert term.capital_recovery_factor is capital_recovery_factor


@given(rate=RATES, years=YEARS, left=SHARES)
def test_an_annuity_repays_capital_less_resale(rate: float, years: int, left: float) -> None:
    payment = annuity_usd(1000.0, rate, years, left)
    flow = [-1000.0, *[payment] * (years - 1), payment + 1000.0 * left]
    assert present_value(flow, rate) == pytest.approx(0.0, abs=1e-6)


def test_an_annuity_at_no_interest_is_the_loss_of_value_by_year() -> None:
    assert annuity_usd(1000.0, 0.0, 4, 0.2) == pytest.approx(200.0)
    assert annuity_factor(0.08, 5) == capital_recovery_factor(0.08, 5)
    # What keeps its value costs interest alone.
    assert annuity_usd(1000.0, 0.08, 5, 1.0) == pytest.approx(80.0)


@pytest.mark.parametrize(("rate", "months"), [(0.05, 36), (0.0, 12), (0.12, 1)])
def test_a_loan_is_paid_off_by_its_payments(rate: float, months: int) -> None:
    balance = 1000.0
    for _ in range(months):
        balance = balance * (1.0 + rate / 12.0) - monthly_payment_usd(1000.0, rate, months)
    assert balance == pytest.approx(0.0, abs=1e-7)


def test_straight_line_is_a_few_percent_off_the_annuity() -> None:
    assert straight_line_usd(1000.0, 0.08, 5) == pytest.approx(200.0 + 40.0)
    assert straight_line_usd(1000.0, 0.08, 5, 0.5) == pytest.approx(100.0 + 60.0)
    assert straight_line_usd(1000.0, 0.08, 5) == pytest.approx(annuity_usd(1000.0, 0.08, 5), rel=0.05)


@given(rate=RATES, growth=st.floats(-0.2, 0.2), years=YEARS)
def test_present_worth_is_that_of_the_growing_flow(rate: float, growth: float, years: int) -> None:
    for first in (True, False):
        flow = [0.0, *growing(1.0, growth, years, grows_in_first_year=first)]
        factor = present_worth_factor(years, growth, rate, grows_in_first_year=first)
        assert factor == pytest.approx(present_value(flow, rate), rel=1e-6)


def test_present_worth_where_growth_is_the_rate() -> None:
    assert present_worth_factor(7, 0.05, 0.05) == pytest.approx(7.0)
    assert present_worth_factor(7, 0.05, 0.05, grows_in_first_year=False) == pytest.approx(7.0 / 1.05)
    # Without growth it is the inverse of the capital recovery factor.
    assert present_worth_factor(7, 0.0, 0.05) == pytest.approx(1.0 / capital_recovery_factor(0.05, 7))


def test_growing() -> None:
    assert growing(100.0, 0.1, 3) == pytest.approx((100.0, 110.0, 121.0))
    assert growing(100.0, 0.1, 2, grows_in_first_year=True) == pytest.approx((110.0, 121.0))


def test_present_value_by_hand() -> None:
    assert present_value([-100.0, 60.0, 60.5], 0.1) == pytest.approx(-100.0 + 60.0 / 1.1 + 50.0)
    assert present_value([], 0.1) == 0.0
    assert discount_factor(0.1, 2) == pytest.approx(1.0 / 1.21)


@given(rate=st.floats(-0.5, 2.0), years=st.integers(1, 20))
def test_the_internal_rate_of_a_deposit_is_its_rate(rate: float, years: int) -> None:
    flow = [-1000.0, *[0.0] * (years - 1), 1000.0 * (1.0 + rate) ** years]
    assert internal_rate_of_return(flow) == pytest.approx(rate, abs=1e-6)


def test_no_internal_rate_where_nothing_comes_back_or_nothing_is_paid() -> None:
    assert internal_rate_of_return([-1.0, -1.0]) is None
    assert internal_rate_of_return([1.0, 1.0]) is None


def test_payback_is_the_first_year_above_nought() -> None:
    assert payback_year([-100.0, 50.0, 50.0, 1.0]) == 3
    assert payback_year([-100.0, 50.0]) is None
    assert payback_year([5.0, -6.0, 2.0]) == 2
    assert payback_year([0.0, 1.0]) == 1


def test_residual_value_falls_and_later_work_is_cheaper() -> None:
    assert residual_fraction(0.0) == 1.0
    assert residual_fraction(5.0) == pytest.approx(math.exp(-2.15))
    # 38 % more work for the same money after a year.
    assert 1.0 / later_price_fraction(1.0) == pytest.approx(1.38, abs=0.005)


def test_purchases_cover_the_horizon() -> None:
    assert purchase_years(15, 3, first_year=1) == (1, 4, 7, 10, 13)
    assert purchase_years(15, 5, first_year=1) == (1, 6, 11)
    # In service in years 1 to 4, the second for one year alone.
    assert purchase_years(4, 3, first_year=1) == (1, 4)
    assert purchase_years(5, 5) == (0,)
    assert purchase_years(6, 5) == (0, 5)


def test_life_cycle_cost_by_hand() -> None:
    assert life_cycle_cost_usd(100.0, 0.1, 5, 5) == pytest.approx(100.0)
    assert life_cycle_cost_usd(100.0, 0.1, 6, 5) == pytest.approx(100.0 * (1.0 + 1.1**-5))
    # The second one costs 10 % less each year of waiting, and half its price is left after its one year.
    again = 100.0 * 0.9**5
    with_resale = life_cycle_cost_usd(100.0, 0.1, 6, 5, price_growth=-0.1, residual=lambda age: 0.5**age)
    assert with_resale == pytest.approx(100.0 + again * 1.1**-5 - 0.5 * again * 1.1**-6)


@given(rate=RATES, life=st.integers(1, 8), times=st.integers(1, 4))
def test_replacing_like_by_like_is_the_annuity_over_the_horizon(rate: float, life: int, times: int) -> None:
    """Whole lives in the horizon: purchase and replacements are worth as much as the annuity paid all the time."""
    horizon = life * times
    replaced = life_cycle_cost_usd(1000.0, rate, horizon, life)
    assert replaced == pytest.approx(annuity_usd(1000.0, rate, life) / capital_recovery_factor(rate, horizon))


def test_write_off_and_book_value_by_year() -> None:
    asset = Asset(300.0, 0, 1, 3)
    assert [asset.written_off_usd(year) for year in range(6)] == pytest.approx([0.0, 100.0, 100.0, 100.0, 0.0, 0.0])
    assert [asset.book_usd(year) for year in range(6)] == pytest.approx([0.0, 300.0, 200.0, 100.0, 0.0, 0.0])
    never = Asset(300.0, 0, 1, None)
    assert never.written_off_usd(1) == never.book_usd(1) == 0.0


def test_free_cash_flow_by_hand() -> None:
    assets = [Asset(100.0, 0, 1, 2)]
    # Year 1: 80 earned, 50 written off, tax on 30; year 2: 20 earned is less than the write-off, so no tax.
    assert free_cash_flow(assets, [100.0, 40.0], [20.0, 20.0], 0.1) == pytest.approx((-100.0, 77.0, 20.0))
    assert free_cash_flow(assets, [100.0, 40.0], [20.0, 20.0]) == pytest.approx((-100.0, 80.0, 20.0))
    # A plan without revenue: what it costs by year.
    assert free_cash_flow(assets, [0.0], [20.0], 0.1) == pytest.approx((-100.0, -20.0))
    with pytest.raises(ValueError, match="zip"):
        free_cash_flow(assets, [1.0], [1.0, 2.0])
