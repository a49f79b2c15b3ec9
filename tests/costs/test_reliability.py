"""Failures, spares and goodput."""

import pytest

from optimizer.costs.reliability import (
    failures_per_year,
    hours_between_interruptions,
    spares_fraction,
    training_goodput,
)


def test_failures_scale_to_a_year_and_a_unit() -> None:
    assert failures_per_year(10.0, 1000.0, 365.25 / 2.0) == pytest.approx(0.02)
    assert failures_per_year(10.0, 1000.0, 365.0, 365.0) == pytest.approx(0.01)


def test_interruptions_come_more_often_in_a_larger_job() -> None:
    assert hours_between_interruptions(16384, 0.173) == pytest.approx(3.1, abs=0.05)
    assert hours_between_interruptions(100, 0.173) == pytest.approx(2.0 * hours_between_interruptions(200, 0.173))


def test_spares_last_until_replacements_come() -> None:
    # 4 % a year and a month of restocking.
    assert spares_fraction(0.04, 365.25 / 12.0) == pytest.approx(0.04 / 12.0)
    assert spares_fraction(0.04, 365.25 / 12.0, 0.05) == pytest.approx(0.05 + 0.04 / 12.0)


def test_goodput_by_hand_and_its_best_interval() -> None:
    assert training_goodput(1.0, 0.01, 0.25, 100.0) == pytest.approx(1.0 - 0.75 / 100.0 - 0.01)
    assert training_goodput(1.0, 0.01, 0.25, 0.5) == 0.0
    # Young's rule: the best interval is sqrt(2 x save x time between interruptions).
    best = (2.0 * 0.01 * 100.0) ** 0.5
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert training_goodput(best, 0.01, 0.25, 100.0) > training_goodput(factor * best, 0.01, 0.25, 100.0)
