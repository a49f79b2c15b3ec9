"""Recovery quantiles and probabilities against values worked from published fits."""

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.performance import accuracy as acc

#: Mean loss, spread of a suite, models: fits of published results of 8-bit floating point and 4-bit weights.
FP8, INT4 = (0.37, 1.1, 13), (2.07, 1.98, 26)


def test_quantile_by_hand() -> None:
    # t(0.9; 12) = 1.35622; 100 - 0.37 - 1.35622 x 1.1 x sqrt(14/13) = 98.08.
    assert acc.recovery_quantile(*FP8, 0.9) == pytest.approx(98.08, abs=0.005)
    assert acc.recovery_quantile(*FP8, 0.5) == pytest.approx(99.63)


def test_probability_by_hand() -> None:
    assert acc.probability_meets(98.7, *FP8) == pytest.approx(0.78, abs=0.01)
    assert acc.probability_meets(99.63, *FP8) == pytest.approx(0.5)


def test_founding_story_at_both_confidences() -> None:
    # At the mean 8 bits meet 98.7 and 4 bits do not; at 0.9 8 bits fall just short, 4 bits clearly.
    assert acc.recovery_quantile(*FP8, 0.5) > 98.7 > acc.recovery_quantile(*INT4, 0.5)
    assert 98.7 - acc.recovery_quantile(*FP8, 0.9) < 1.0 < 98.7 - acc.recovery_quantile(*INT4, 0.9)


@given(st.floats(-1, 10), st.floats(0.01, 5), st.integers(2, 40), st.floats(0.05, 0.95))
def test_quantile_and_probability_are_inverse(mean: float, sd: float, models: int, confidence: float) -> None:
    floor = acc.recovery_quantile(mean, sd, models, confidence)
    if floor < 100.0:
        assert acc.probability_meets(floor, mean, sd, models) == pytest.approx(confidence, abs=1e-6)
    else:
        assert acc.probability_meets(100.0, mean, sd, models) >= confidence - 1e-6


def test_no_spread_is_certain() -> None:
    assert acc.probability_meets(99.0, 0.9, 0.0, 5) == 1.0
    assert acc.probability_meets(99.0, 1.1, 0.0, 5) == 0.0


def test_too_few_models_give_no_quantile() -> None:
    with pytest.raises(ValueError, match="two models"):
        acc.recovery_quantile(1.0, 1.0, 1, 0.9)
    with pytest.raises(ValueError, match="two models"):
        acc.probability_meets(98.7, 1.0, 1.0, 1)


def test_size_effect_is_clamped() -> None:
    def loss(size: float) -> float:
        return acc.loss_at_size(
            1.5, size, slope_points_per_decade=-1.2, reference_b=70.0, largest_b=405.0, smallest_b=1.0
        )

    assert loss(70.0) == pytest.approx(1.5)
    assert loss(7.0) == pytest.approx(2.7)
    assert loss(10_000.0) == loss(405.0)
    assert loss(0.1) == loss(1.0)
    assert acc.loss_at_size(1.5, 1e6) == 1.5
    assert acc.loss_at_size(0.1, 7e6, slope_points_per_decade=-5.0) == 0.0


def test_cache_loss_adds() -> None:
    both = acc.combine_losses(acc.Loss(0.4, 0.9, 13), acc.Loss(0.2, 1.2, 5))
    assert both.mean_points == pytest.approx(0.6)
    assert both.sd_points == pytest.approx(sqrt(0.81 + 1.44))
    assert both.models == 5


def test_recovery_step_closes_a_share() -> None:
    after = acc.recovered_loss(acc.Loss(2.0, 1.0, 14), 0.55)
    assert after.mean_points == pytest.approx(0.9)
    assert after.recovery_mean_pct == pytest.approx(99.1)
    assert acc.recovered_loss(acc.Loss(2.0, 1.0, 14), 1.4).mean_points == 0.0
    assert acc.recovered_loss(acc.Loss(2.0, 1.0, 14), -0.5).mean_points == pytest.approx(3.0)
    assert acc.Loss(-0.3, 1.0, 4).recovery_mean_pct == 100.0
