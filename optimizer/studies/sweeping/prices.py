"""Cases that differ in prices alone, along one price or several at once: few are solved, the others are proven.

The cases are a grid: one price after another, in every combination. A line of it, along one price, is proven from its
two ends (facts *Concavity* of ``sweeping.chains``), whether these were solved or are proven themselves. So the corners
are solved, then edges are proven from corners, faces from edges, and so on; what an end cannot prove is solved.

Proof for ends that are proven and not solved. All that a line asks of an end is the least cost there and which plan is
taken. ``Answer.floor_usd`` is a proven bound from below at each: at an end that was proven it is the mix of the bounds
of that one's own ends. A plan is accepted where its cost is within ``interval.PROOF`` of the bound at its own case, so
errors do not add up from line to line. What is taken there was proven of it, so it may be an end.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

from optimizer.offer import Offer
from optimizer.studies.sweeping.interval import PROOF
from optimizer.studies.sweeping.priced import Priced
from optimizer.studies.sweeping.relations import CostMix
from optimizer.studies.sweeping.rows import Row
from optimizer.studies.sweeping.solving import Counts, Solution


class Solver(Protocol):
    """What a grid needs of its chain: cases by their place in it."""

    def solve(self, at: int) -> Solution:
        """The solution of a case."""

    def told(self, at: int, solution: Solution) -> Row:
        """The row of a case that was solved, its plan verified."""

    def priced(self, solution: Solution, at: int) -> Priced | None:
        """A solution's fleets at a case; None where they cannot stand there."""

    def taken_over(self, at: int, first: int, counts: Counts, one: Priced, least_usd: float) -> Row:
        """The row of a case that another case's fleet answers."""

    def left_without(self, at: int, row: Row) -> Row:
        """The row of a case that has no plan since the one of ``row`` has none."""

    def offer(self, at: int) -> Offer:
        """What is offered at a case."""


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The answer of a case: a solution, that of case ``first``, and what no plan of this case costs less than."""

    first: int
    solution: Solution
    here: Priced | None
    floor_usd: float


@dataclass(slots=True, eq=False)
class PriceGrid:
    """Cases of a grid of prices, the last price moving fastest; ``shape`` is the count of values of each."""

    solver: Solver
    shape: tuple[int, ...]
    answers: dict[int, Answer]

    @classmethod
    def of(cls, solver: Solver, shape: Sequence[int]) -> "PriceGrid":
        """A grid of which nothing is known yet."""
        return cls(solver, tuple(shape), {})

    def rows(self) -> Iterator[Row]:
        """The row of every case, in whatever order they are proven."""
        row = self._solved(0)
        yield row
        if self.answers[0].solution.is_infeasible:
            # Prices decide on no plan whether it is one.
            for at in range(1, prod(self.shape)):
                yield self.solver.left_without(at, row)
            return
        yield from self._filled(len(self.shape), 0)

    def _solved(self, at: int) -> Row:
        solution = self.solver.solve(at)
        row = self.solver.told(at, solution)
        here = self.solver.priced(solution, at) if solution.is_proven else None
        self.answers[at] = Answer(at, solution, here, 0.0 if here is None else here.least_usd)
        return row

    def _filled(self, count: int, base: int) -> Iterator[Row]:
        """Rows of the part of the grid in which the last ``count`` prices move, from case ``base`` on."""
        if not count:
            if base not in self.answers:
                yield self._solved(base)
            return
        values, stride = self.shape[-count], prod(self.shape[len(self.shape) - count + 1 :])
        yield from self._filled(count - 1, base)
        if values == 1:
            return
        yield from self._filled(count - 1, base + (values - 1) * stride)
        for offset in range(stride):
            yield from self._line([base + offset + value * stride for value in range(values)])

    def _line(self, line: Sequence[int]) -> Iterator[Row]:
        """Rows of the cases of a line whose ends are answered."""
        open_spans = [(0, len(line) - 1)]
        while open_spans:
            low, high = open_spans.pop()
            if high - low < 2:
                continue
            closed, worst = self._between(line[low : high + 1])
            if closed is not None:
                yield from closed
                continue
            yield self._solved(line[low + worst])
            open_spans += [(low + worst, high), (low, low + worst)]

    def _between(self, span: Sequence[int]) -> tuple[list[Row] | None, int]:
        """Rows of all cases strictly between two answered ones, or None and the place of the case to solve next."""
        middle = (len(span) - 1) // 2
        one, other = self.answers[span[0]], self.answers[span[-1]]
        if one.here is None or other.here is None:
            return None, middle
        counts = one.solution.counts
        assert counts is not None
        assert other.solution.counts is not None
        across = self._across(one, other, span[-1])
        if across is None:
            return None, middle
        same = (
            counts.key == other.solution.counts.key
            and across.least_usd <= other.floor_usd * (1.0 + PROOF)
            and across.in_window
        )
        costs = CostMix(self.solver.offer(span[0]).terms, self.solver.offer(span[-1]).terms)
        found: list[tuple[int, Answer, Priced]] = []
        worst, widest = middle, -1.0
        for place, at in enumerate(span[1:-1], 1):
            here = self.solver.priced(one.solution, at)
            there = here if one.first == other.first else self.solver.priced(other.solution, at)
            if here is None or there is None:
                return None, middle
            floor = costs.least(self.solver.offer(at).terms, one.floor_usd, other.floor_usd)
            gap = min(here.least_usd, there.least_usd) - floor
            if gap > widest:
                worst, widest = place, gap
            if same and here.least_usd <= floor * (1.0 + PROOF) and here.in_window:
                found.append((at, Answer(one.first, one.solution, here, floor), here))
        if len(found) < len(span) - 2:
            return None, worst
        self.answers.update({at: answer for at, answer, _ in found})
        return [self.solver.taken_over(at, a.first, counts, here, a.floor_usd) for at, a, here in found], middle

    def _across(self, one: Answer, other: Answer, at: int) -> Priced | None:
        """The fleets of one end at the other one."""
        return other.here if one.first == other.first else self.solver.priced(one.solution, at)
