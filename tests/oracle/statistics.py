"""Student's t distribution in plain Python, from its definition by the incomplete beta function."""

import math


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Continued fraction of the incomplete beta function (Lentz), for x < (a + 1) / (a + b + 2)."""
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    value = d
    for step in range(1, 1000):
        even = step * (b - step) * x / ((a + 2 * step - 1.0) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1.0))
        change = 1.0
        for factor in (even, odd):
            d = 1.0 + factor * d
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = 1.0 + factor / c
            c = c if abs(c) > tiny else tiny
            change = c * d
            value *= change
        if abs(change - 1.0) < 1e-16:
            break
    return value


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularized incomplete beta function I_x(a, b)."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    front = math.exp(log_front)
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _beta_fraction(a, b, x) / a
    return 1.0 - front * _beta_fraction(b, a, 1.0 - x) / b


def t_probability(value: float, freedom: float) -> float:
    """Probability that a t variable with ``freedom`` degrees lies at or below ``value``."""
    tail = 0.5 * incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + value * value))
    return 1.0 - tail if value > 0 else tail


def t_quantile(probability: float, freedom: float) -> float:
    """The value that a t variable stays below with ``probability``, by bisection."""
    if probability == 0.5:
        return 0.0
    if probability < 0.5:
        return -t_quantile(1.0 - probability, freedom)
    high = 1.0
    while t_probability(high, freedom) < probability:
        high *= 2.0
    low = 0.0
    while True:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            return middle
        if t_probability(middle, freedom) < probability:
            low = middle
        else:
            high = middle
