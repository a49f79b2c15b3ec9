"""Cases along one field, solved only where they must be: which solution of one case is another's too, and why.

Write ``F`` for the plans that meet every limit of a case and ``cost`` for its objective. All proofs use three facts:

* *Relaxation.* Where the plans of case ``j`` are among those of case ``i`` and cost as much there, the cheapest of
  ``i`` is the cheapest of ``j`` as soon as it is a plan of ``j``. So is the one that is taken among those within
  ``extract.TIE`` of the least cost: as long as the cheapest itself stays a plan of ``j``, the least cost is the same
  number, so the plans that compete at ``j`` are among those that competed at ``i``, and it came first there.
  A case tighter than one that has no plan has none.
* *Concavity.* Over fixed ``F`` the least cost is a concave function of the prices: a least of linear functions. A plan
  that is cheapest at two ends is cheapest in between, where prices are mixed from those of both ends. A plan that is
  not within the ties' window at either end is in none in between, since both sides are linear; so what is taken at both
  ends is taken in between.
* *Interval.* A program in which the demand is a variable bounds all demands between two at once
  (``sweeping.interval``).

A fleet that is taken over from case ``i`` up to case ``m`` is verified, by the checker that shares no code with the
program, at both: the limits that move are tightest at ``m`` and every limit that demand drives is monotone in it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from optimizer.errors import InternalError, SolverError
from optimizer.extract import TIE
from optimizer.instance.model import Instance
from optimizer.offer import Offer
from optimizer.solver import Options, Reason
from optimizer.studies.sweeping.forbidding import forbidding_fields
from optimizer.studies.sweeping.interval import PROOF, taken_throughout
from optimizer.studies.sweeping.kinds import Kind
from optimizer.studies.sweeping.priced import Priced, have_the_same_plans, priced
from optimizer.studies.sweeping.prices import PriceGrid
from optimizer.studies.sweeping.relations import straight
from optimizer.studies.sweeping.rows import Row, Status, Teller
from optimizer.studies.sweeping.solving import (
    TIE_GAP,
    Counts,
    Solution,
    at_case,
    bound_usd_per_year,
    full_plan,
    solve_case,
    usd_per_year,
)
from optimizer.ties import Stop


class Stopped(Exception):  # noqa: N818 - it is no error that someone asked to stop
    """The sweep was asked to stop in the middle of a chain."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A case: its number, the values of the varied fields, the instance, and what is offered there."""

    number: int
    values: tuple[object, ...]
    instance: Instance
    offer: Callable[[], Offer]


@dataclass(slots=True, eq=False)
class Chain:
    """Cases in order of one field, loosest first where the field has such an order, and what was found of them."""

    kind: Kind
    cases: Sequence[Case]
    options: Options
    shape: tuple[int, ...] = ()
    stop: Stop | None = None
    teller: Teller = field(default_factory=Teller)
    solved: int = 0

    def rows(self, *, reuse: bool = True) -> Iterator[Row]:
        """The row of every case, in whatever order they are proven.

        Raises
        ------
        Stopped: ``stop`` said so. InternalError: our own check refused a plan. SolverError: the solver failed.
        """
        if not reuse or self.kind in (Kind.OTHER, Kind.FLEET) or self.options.gap > TIE_GAP or not self._are_alike():
            yield from map(self._solved, range(len(self.cases)))
        elif self.kind is Kind.PRICE:
            yield from PriceGrid.of(self, self.shape).rows()
        else:
            yield from self._tightening()

    def _solved(self, at: int) -> Row:
        return self.told(at, self.solve(at))

    def _are_alike(self) -> bool:
        return have_the_same_plans(self.offer(at).setting for at in range(len(self.cases)))

    def offer(self, at: int) -> Offer:
        """What is offered at a case."""
        return self.cases[at].offer()

    def solve(self, at: int) -> Solution:
        if self.stop is not None and self.stop():
            raise Stopped
        self.solved += 1
        offer = self.offer(at)
        solution = solve_case(offer, self.options, self.stop, roomy=self.kind in (Kind.DEMAND, Kind.SCREEN))
        if solution.outcome.reason in (Reason.ERROR, Reason.UNBOUNDED):
            raise SolverError(f"the solver ended case {self.cases[at].number} with {solution.outcome.reason.value}")
        if solution.outcome.reason is Reason.INTERRUPT:
            raise Stopped
        return solution

    def told(self, at: int, solution: Solution) -> Row:
        """The row of a case that was solved, its plan verified."""
        case = self.cases[at]
        if solution.counts is None:
            return self._without_plan(at, solution)
        assert solution.data is not None
        findings = self._verified(solution, at)
        if findings:
            told = "\n".join(findings[:20])
            raise InternalError(f"the plan of case {case.number} does not stand up to its own check:\n{told}")
        data = at_case(solution, solution.counts, solution.offer)
        cost = usd_per_year(data, solution.counts)
        gap = max(0.0, 1.0 - bound_usd_per_year(solution) / cost) if cost else 0.0
        status: Status = "optimal" if solution.is_proven and gap <= self.options.gap + TIE else "feasible"
        return self.teller.row(
            case.number,
            case.values,
            data,
            solution.counts,
            solution.offer,
            status=status,
            gap_fraction=gap,
            proof="solved",
        )

    def left_without(self, at: int, row: Row) -> Row:
        """The row of a case that has no plan since the looser one of ``row`` has none."""
        case = self.cases[at]
        return Row(case.number, case.values, "infeasible", forbidden_by=row.forbidden_by, proof=f"case {row.case}")

    def _none_further(self, first: int, row: Row) -> Iterator[Row]:
        """Rows of the cases after ``first``, which has no plan, so that these have none either.

        What forbids them is found by dropping caps one after another (``forbidding``), and may change on the way. Where
        it is the same at two cases it is the same in between: which caps are left says how each attempt ended, so all
        ended alike at both; and what fits without some caps at a tighter case fits at every looser one. Limits of a
        deployment decide which class is looked at, too, so every case of theirs is asked.
        """
        last = len(self.cases) - 1
        fields = {first: row.forbidden_by}
        if last > first:
            fields[last] = forbidding_fields(self.offer(last), self.options)
        spans = [(first, last)]
        while spans:
            low, high = spans.pop()
            if high - low < 2:
                continue
            if self.kind is not Kind.SCREEN and fields[low] == fields[high]:
                fields.update(dict.fromkeys(range(low + 1, high), fields[low]))
                continue
            middle = (low + high) // 2
            fields[middle] = forbidding_fields(self.offer(middle), self.options)
            spans += [(low, middle), (middle, high)]
        for at in range(first + 1, last + 1):
            yield replace(self.left_without(at, row), forbidden_by=fields[at])

    def _without_plan(self, at: int, solution: Solution) -> Row:
        case = self.cases[at]
        if not solution.is_infeasible:
            return Row(case.number, case.values, "unknown")
        fields = forbidding_fields(solution.offer, self.options)
        return Row(case.number, case.values, "infeasible", forbidden_by=fields)

    def taken_over(self, at: int, first: int, counts: Counts, one: Priced, least_usd: float) -> Row:
        """The row of a case that another case's fleet answers."""
        case = self.cases[at]
        return self.teller.row(
            case.number,
            case.values,
            one.data,
            counts,
            one.offer,
            status="optimal",
            gap_fraction=max(0.0, 1.0 - least_usd / one.usd) if one.usd else 0.0,
            proof=f"case {self.cases[first].number}",
        )

    def _verified(self, solution: Solution, at: int, one: Priced | None = None) -> list[str]:
        """What our own check has against the fleet of a solution: at its own case, or at another one."""
        from optimizer.verify import verify

        assert solution.counts is not None
        offer = self.offer(at)
        if one is None:
            plan = full_plan(solution, solution.counts, offer, self.options)
        else:
            plan = full_plan(solution, solution.counts, offer, self.options, one.screened, one.least_usd)
        return [str(finding) for finding in verify(plan)]

    # -- limits and demand: each case is tighter than the one before ---------------------------------------------------

    def _tightening(self) -> Iterator[Row]:
        at = 0
        while at < len(self.cases):
            solution = self.solve(at)
            row = self.told(at, solution)
            yield row
            if solution.is_infeasible:
                yield from self._none_further(at, row)
                return
            carried = self._carried_on(at, solution) if row.status == "optimal" else []
            yield from carried
            at += 1 + len(carried)

    def _carried_on(self, first: int, solution: Solution) -> list[Row]:
        """Rows of the cases right after ``first`` that its fleet answers."""
        assert solution.counts is not None
        reached = self._reach(first, solution)
        count = len(reached)
        if self.kind is Kind.DEMAND and count:
            count = self._proven_reach(first, solution, reached)
        while count and self._verified(solution, first + count, reached[count - 1]):
            count //= 2
        bound = bound_usd_per_year(solution)
        rows = []
        for at, one in enumerate(reached[:count], first + 1):
            least = one.least_usd if self.kind is Kind.DEMAND else min(bound, one.least_usd)
            rows.append(self.taken_over(at, first, solution.counts, one, least))
        return rows

    def _reach(self, first: int, solution: Solution) -> list[Priced]:
        """The cases right after ``first`` at which both of its fleets stay plans, with their costs there."""
        assert solution.counts is not None
        assert solution.cheapest is not None
        found: list[Priced] = []
        bound = bound_usd_per_year(solution)
        for at in range(first + 1, len(self.cases)):
            one = self.priced(solution, at)
            if one is None or not one.fits:
                break
            # A cap on carbon or water may force another split of the load, and a slower replica takes more energy: the
            # same fleet may cost more there, and is then no longer known to be the cheapest.
            is_dearer = one.least_usd > bound * (1.0 + PROOF) or not one.in_window
            if self.kind is not Kind.DEMAND and is_dearer:
                break
            found.append(one)
        return found

    def priced(self, solution: Solution, at: int) -> Priced | None:
        """Both fleets of a solution at another case; None where they cannot stand there as they are."""
        return priced(solution, self.offer(at), screens=self.kind is Kind.SCREEN)

    def _proven_reach(self, first: int, solution: Solution, reached: Sequence[Priced]) -> int:
        """How many cases after ``first`` the interval program proves."""
        assert solution.counts is not None
        start = self.priced(solution, first)
        if start is None:
            return 0
        points = [start, *reached]
        count = straight([one.data.demand for one in points], [one.least_usd for one in points])
        count = min(count, next((at for at, one in enumerate(reached) if not one.in_window), len(reached)))
        while count:
            end = reached[count - 1]
            self.solved += 1
            if taken_throughout(
                self.offer(first + count),
                start.data.demand,
                solution.counts,
                (start.least_usd, end.least_usd),
                self.options,
                self.stop,
            ):
                return count
            if self.stop is not None and self.stop():
                raise Stopped
            count //= 2
        return 0
