"""Student's t distribution without scipy: cdf by the incomplete beta function, quantile by bisection."""

from functools import cache
from math import exp, inf, isfinite, lgamma, log, log1p

#: Smallest denominator of the continued fraction, relative change that ends it, and its longest run.
_TINY, _CLOSE, _TERMS = 1e-300, 1e-15, 500


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Continued fraction of the incomplete beta function by the modified method of Lentz.

    Source: DLMF 8.17.22.
    """
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    value = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for term in (even, odd):
            d = 1.0 + term * d
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = 1.0 + term / c
            c = c if abs(c) > _TINY else _TINY
            value *= c * d
        if abs(c * d - 1.0) < _CLOSE:
            break
    return value


def regularised_incomplete_beta(a: float, b: float, x: float) -> float:
    """I_x(a, b) for a, b > 0 and 0 <= x <= 1."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    # The fraction converges fast only below the mean; the other side follows by symmetry.
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _beta_fraction(a, b, x) / a
    return 1.0 - front * _beta_fraction(b, a, 1.0 - x) / b


def student_t_cdf(t: float, degrees: float) -> float:
    """P(T <= t) with ``degrees`` > 0 degrees of freedom."""
    if degrees <= 0:
        raise ValueError("degrees of freedom must be above 0")
    if not isfinite(t):
        return 1.0 if t > 0 else 0.0
    tail = 0.5 * regularised_incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t))
    return 1.0 - tail if t > 0 else tail


@cache
def student_t_quantile(probability: float, degrees: float) -> float:
    """t with P(T <= t) = probability, 0 < probability < 1."""
    if not 0.0 < probability < 1.0:
        raise ValueError("probability must lie strictly between 0 and 1")
    if probability == 0.5:
        return 0.0
    if probability < 0.5:
        return -student_t_quantile(1.0 - probability, degrees)
    high = 1.0
    while student_t_cdf(high, degrees) < probability:
        high *= 2.0
        if high == inf or high > 1e18:
            return high
    low = 0.0
    while high - low > 1e-14 * high:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if student_t_cdf(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
