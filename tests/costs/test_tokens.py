"""Cost by hour and by token."""

import pytest

from optimizer.costs.tokens import (
    margin_over_cost,
    token_revenue_usd,
    usd_per_installed_hour,
    usd_per_million_tokens,
    usd_per_million_tokens_of_pools,
    usd_per_million_tokens_of_year,
    usd_per_used_hour,
)


def test_hours_installed_and_used() -> None:
    assert usd_per_installed_hour(8766.0 * 20.0, 10.0) == pytest.approx(2.0)
    assert usd_per_installed_hour(8760.0 * 20.0, 10.0, 8760.0) == pytest.approx(2.0)
    assert usd_per_used_hour(2.0, 0.5) == pytest.approx(4.0)
    assert usd_per_used_hour(2.0, 0.5, 0.8) == pytest.approx(5.0)


def test_a_million_tokens_by_hour_and_by_year() -> None:
    # 1,000 tokens a second are 3.6 million an hour.
    assert usd_per_million_tokens(7.2, 1000.0) == pytest.approx(2.0)
    yearly = usd_per_million_tokens_of_year(7.2 * 8766.0, 1000.0 * 3600.0 * 8766.0)
    assert yearly == pytest.approx(usd_per_million_tokens(7.2, 1000.0))


def test_pools_apart_are_weighted_by_their_tokens() -> None:
    # Input at 2 USD, output at 20 USD, nine tokens in ten are input.
    assert usd_per_million_tokens_of_pools(7.2, 1000.0, 100.0, 0.9) == pytest.approx(0.9 * 2.0 + 0.1 * 20.0)
    assert usd_per_million_tokens_of_pools(7.2, 1000.0, 1000.0, 0.3) == pytest.approx(2.0)


def test_revenue_and_margin() -> None:
    assert token_revenue_usd([(2e6, 0.5), (1e6, 3.0)]) == pytest.approx(4.0)
    assert margin_over_cost(4.0, 1.0) == pytest.approx(3.0)
