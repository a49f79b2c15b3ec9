"""How one case stands to another: tighter, on a straight line between two, mixed from the prices of two."""

import math
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from optimizer.costs.term import Term
from optimizer.offer import Offer, program_data
from optimizer.program_data import Pair, ProgramData
from optimizer.solver import FloatArray
from optimizer.studies.sweeping.solving import Solution

#: A line is straight, and a mix of prices exact, to this share of the value.
STRAIGHT: Final = 1e-11


def screened_data(solution: Solution, offer: Offer, pairs: Iterable[Pair]) -> ProgramData | None:
    """A tighter case's own data, where a fleet's deployments stand in it unchanged; None where they do not.

    None also where the case is not tighter throughout: some candidate carries more there than in the solved one. Plans
    of a tighter case are then plans of the solved one at no higher cost: the same replicas carry at least as much, and
    energy above idle is in inverse proportion to what a replica carries.
    """
    if not is_tighter(solution.offer, offer):
        return None
    data = program_data(offer, reduce=False)
    if data is None or data.patterns_by_pool or (solution.data is not None and solution.data.patterns_by_pool):
        return None
    return data if set(pairs) <= set(data.pairs) else None


def is_tighter(loose: Offer, tight: Offer) -> bool:
    """Whether every candidate that ``tight`` offers is one of ``loose`` that carries at least as much there."""
    one, other = loose.screened, tight.screened
    if one.candidates.prepared is not other.candidates.prepared or loose.demand != tight.demand:
        return False
    capacity = np.zeros(one.candidates.size)
    capacity[one.rows] = loose.demand_weight * loose.requests_per_s
    return bool(np.all(tight.demand_weight * tight.requests_per_s <= capacity[other.rows]))


def straight(demands: Sequence[tuple[float, ...]], costs: Sequence[float]) -> int:
    """How far the demand of every class, and the cost, lie on straight lines from the first point; 0: not at all.

    The answer is the number of the last point of the longest such beginning, with the points between on the line
    between the first and the last.
    """
    points = np.array([(*demand, cost) for demand, cost in zip(demands, costs, strict=True)])
    moved = [b for b in range(points.shape[1] - 1) if not np.all(points[:, b] == points[0, b])]
    if not moved:
        return 0
    share = points[:, moved[0]] - points[0, moved[0]]
    if np.any(share[1:] == 0.0):
        return 0
    slopes = (points[1:] - points[0]) / share[1:, None]
    # Slopes of near points carry the rounding of large figures, so they are held against the values themselves.
    slack = STRAIGHT * np.max(np.abs(points), axis=0)
    for last in range(len(points) - 1, 0, -1):
        line = points[0] + share[: last + 1, None] * slopes[last - 1]
        if np.all(np.abs(points[: last + 1] - line) <= slack):
            return last
    return 0


class CostMix:
    """Prices of two cases, and the best bound that they give on a third one over the same plans.

    With costs ``c >= (1 - x) a + x b`` in every quantity, the least cost at ``c`` is at least
    ``(1 - x) least(a) + x least(b)``: quantities are not negative and a least of linear functions is concave.
    """

    def __init__(self, one: Iterable[Term], other: Iterable[Term]) -> None:
        first, last = _by_quantity(one), _by_quantity(other)
        self._keys = sorted({*first, *last})
        self._low, self._high = self._vector(first), self._vector(last)

    def _vector(self, costs: dict[tuple[str, ...], float]) -> FloatArray:
        return np.array([costs.get(key, 0.0) for key in self._keys])

    def least(self, terms: Iterable[Term], low_usd: float, high_usd: float) -> float:
        """What no plan costs less than under ``terms``, given both other least costs; minus infinity: unknown."""
        costs = _by_quantity(terms)
        if not costs.keys() <= set(self._keys):
            return -math.inf
        here = self._vector(costs)
        move, slack = self._high - self._low, STRAIGHT * np.maximum(np.abs(here), np.abs(self._low))
        up, down = move > 0.0, move < 0.0
        if np.any((here - self._low < -slack) & (move == 0.0)):
            return -math.inf
        most = float(np.min((here - self._low + slack)[up] / move[up], initial=1.0))
        least = float(np.max((here - self._low + slack)[down] / move[down], initial=0.0))
        if least > most or most < 0.0:
            return -math.inf
        low_x, high_x = max(0.0, least), min(1.0, most)
        # The slack of a price is one of the whole sum at most, since no cost is negative.
        return max((1.0 - x) * low_usd + x * high_usd for x in (low_x, high_x)) * (1.0 - 2.0 * STRAIGHT)


def _by_quantity(terms: Iterable[Term]) -> dict[tuple[str, ...], float]:
    costs: dict[tuple[str, ...], float] = {}
    for term in terms:
        costs[term.quantity] = costs.get(term.quantity, 0.0) + term.usd_per_year
    return costs
