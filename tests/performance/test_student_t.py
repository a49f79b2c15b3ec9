"""Student's t against published tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.performance.student_t import regularised_incomplete_beta, student_t_cdf, student_t_quantile


@pytest.mark.parametrize(
    ("probability", "degrees", "t"),
    [
        (0.90, 1, 3.078), (0.95, 1, 6.314), (0.975, 1, 12.706), (0.99, 1, 31.821), (0.995, 1, 63.657),
        (0.90, 2, 1.886), (0.975, 2, 4.303), (0.90, 4, 1.533), (0.95, 4, 2.132), (0.99, 4, 3.747),
        (0.90, 9, 1.383), (0.95, 9, 1.833), (0.975, 10, 2.228), (0.995, 10, 3.169), (0.90, 12, 1.356),
        (0.90, 25, 1.316), (0.975, 30, 2.042), (0.995, 30, 2.750), (0.975, 120, 1.980), (0.975, 1e7, 1.960),
    ],
)  # fmt: skip
def test_table(probability: float, degrees: float, t: float) -> None:
    assert student_t_quantile(probability, degrees) == pytest.approx(t, abs=5.1e-4)
    assert student_t_quantile(1 - probability, degrees) == pytest.approx(-t, abs=5.1e-4)
    assert student_t_cdf(t, degrees) == pytest.approx(probability, abs=1e-4)


def test_closed_forms() -> None:
    assert student_t_cdf(1.0, 1) == pytest.approx(0.75, abs=1e-14)  # Cauchy
    assert student_t_cdf(2.0**0.5, 2) == pytest.approx(0.5 + 2**0.5 / (2 * 2.0), abs=1e-14)
    assert regularised_incomplete_beta(1.0, 1.0, 0.3) == pytest.approx(0.3)
    assert regularised_incomplete_beta(2.0, 1.0, 0.3) == pytest.approx(0.09)
    assert (regularised_incomplete_beta(2.0, 1.0, 0.0), regularised_incomplete_beta(2.0, 1.0, 1.0)) == (0.0, 1.0)
    assert student_t_quantile(0.5, 3) == 0.0
    assert (student_t_cdf(float("inf"), 3), student_t_cdf(float("-inf"), 3)) == (1.0, 0.0)


@given(st.floats(0.001, 0.999), st.floats(1.0, 500.0))
def test_quantile_inverts_cdf(probability: float, degrees: float) -> None:
    assert student_t_cdf(student_t_quantile(probability, degrees), degrees) == pytest.approx(probability, abs=1e-9)


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1, float("nan")])
def test_wrong_probability(probability: float) -> None:
    with pytest.raises(ValueError, match="strictly"):
        student_t_quantile(probability, 3)


def test_wrong_degrees() -> None:
    with pytest.raises(ValueError, match="degrees"):
        student_t_cdf(1.0, 0)
