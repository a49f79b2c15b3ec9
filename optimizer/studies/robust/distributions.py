"""Draws of uncertain fields: Latin hypercube samples through each distribution's inverse, with rank correlations.

Sources: McKay, Beckman and Conover 1979 (Latin hypercube); Iman and Conover 1982 (rank correlation without touching the
marginals). The random numbers are those of Python's ``random.Random.random``, which promises the same stream for ever.
"""

import math
from collections.abc import Sequence
from random import Random
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from optimizer.instance.uncertainty import UncertainField, Uncertainty

FloatArray = NDArray[np.float64]


def quantile(field: UncertainField, probability: float) -> float:
    """Value of a field's distribution below which it lies with a probability in (0, 1)."""
    p = probability
    if field.distribution == "uniform":
        low, high = _given(field.low), _given(field.high)
        return low + p * (high - low)
    if field.distribution == "triangular":
        low, mode, high = _given(field.low), _given(field.mode), _given(field.high)
        turn = (mode - low) / (high - low)
        if p < turn:
            return low + math.sqrt(p * (high - low) * (mode - low))
        return high - math.sqrt((1.0 - p) * (high - low) * (high - mode))
    if field.distribution == "discrete":
        reached = 0.0
        values = field.values or ()
        for value, share in zip(values, field.probabilities or (), strict=True):
            reached += share
            if p < reached:
                return value
        return values[-1]
    if field.distribution == "normal":
        law = NormalDist(_given(field.mean), _given(field.standard_deviation))
        return law.inv_cdf(_within(law, field.low, field.high, p))
    law = NormalDist(math.log(_given(field.median)), _given(field.log_standard_deviation))
    low_log = None if field.low is None else math.log(field.low) if field.low > 0.0 else -math.inf
    high_log = None if field.high is None else math.log(field.high) if field.high > 0.0 else -math.inf
    return math.exp(law.inv_cdf(_within(law, low_log, high_log, p)))


def _given(value: float | None) -> float:
    assert value is not None, "the rules of an uncertain field ask for every parameter"
    return value


def _within(law: NormalDist, low: float | None, high: float | None, p: float) -> float:
    """Probability of the whole law at share ``p`` of the part between its cuts."""
    first = 0.0 if low is None or low == -math.inf else law.cdf(low)
    last = 1.0 if high is None else law.cdf(high)
    return min(max(first + p * (last - first), 1e-15), 1.0 - 1e-15)


def draw(uncertainty: Uncertainty, count: int, seed: int) -> FloatArray:
    """``count`` scenarios (rows) of every uncertain field (columns), in the fields' own figures.

    Each column has one value in each of ``count`` equally likely slices of its distribution; columns are in random
    order, or in the order that gives the asked rank correlations as nearly as ranks can.
    """
    fields = uncertainty.fields
    random = Random(seed)  # noqa: S311 - a reproducible draw is wanted, not a secret
    slices = np.empty((count, len(fields)), dtype=np.int64)
    shares = np.empty((count, len(fields)))
    for column in range(len(fields)):
        slices[:, column] = _ranks([random.random() for _ in range(count)])
        shares[:, column] = [random.random() for _ in range(count)]
    if len(fields) > 1 and count > len(fields) + 1:
        slices = _correlated(slices, _target(uncertainty))
    probabilities = (slices + shares) / count
    values = np.empty((count, len(fields)))
    for column, field in enumerate(fields):
        values[:, column] = [quantile(field, float(p)) for p in probabilities[:, column]]
    return values


def _ranks(values: Sequence[float]) -> NDArray[np.int64]:
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[np.argsort(np.array(values), kind="stable")] = np.arange(len(values))
    return ranks


def _target(uncertainty: Uncertainty) -> FloatArray:
    """Matrix of the asked rank correlations."""
    place = {one.field: index for index, one in enumerate(uncertainty.fields)}
    matrix = np.eye(len(place))
    for one in uncertainty.correlations:
        row, column = place[one.first], place[one.second]
        matrix[row, column] = matrix[column, row] = one.rank_correlation
    return matrix


def _correlated(slices: NDArray[np.int64], target: FloatArray) -> NDArray[np.int64]:
    """The same slices of each column in another order, so that ranks correlate as ``target`` says (Iman, Conover).

    Normal scores of the slices are turned by the Cholesky factors of what they have and of what they should have. A
    rank correlation r of normal scores is the plain one 2 sin(pi r / 6).
    """
    count = slices.shape[0]
    law = NormalDist()
    score = np.array([law.inv_cdf((rank + 1) / (count + 1)) for rank in range(count)])
    scores = score[slices]
    plain = 2.0 * np.sin(math.pi * target / 6.0)
    np.fill_diagonal(plain, 1.0)
    try:
        wanted = np.linalg.cholesky(plain)
    except np.linalg.LinAlgError:
        # Near the edge of what is possible the plain matrix may lie beyond it; the rank matrix itself does not.
        wanted = np.linalg.cholesky(target)
    try:
        present = np.linalg.cholesky(np.corrcoef(scores, rowvar=False))
    except np.linalg.LinAlgError:
        # Too few scenarios to tell the columns apart: their order stays as drawn.
        return slices
    turned = scores @ np.linalg.inv(present).T @ wanted.T
    result = np.empty_like(slices)
    for column in range(slices.shape[1]):
        ranks = _ranks(list(turned[:, column]))
        result[:, column] = np.sort(slices[:, column])[ranks]
    return result
