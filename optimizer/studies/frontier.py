"""The trade-off front between cost and limits: what less time, power or loss of accuracy costs, plan by plan.

Epsilon-constraint method (Haimes, Lasdon and Wismer 1971): the cost is least, each other aim is a limit that is
tightened step by step. A plan found under a limit reaches a value at least as good as the limit; the next limit lies
just beyond that value. So with ``step`` 0 every undominated point is found: between two limits in a row no plan reaches
better at the same cost. With several limits the first ones are tightened around the last: a limit moves on to just
beyond the worst value that the inner front reaches, since until then the inner front stays the same.

With a ``step`` above 0 a limit that is a continuous figure moves on by that share at least, so points nearer than it to
the one before may be left out; those that are given are undominated all the same: the tightest limit that costs no more
is found for each, and the plan just beyond it costs more.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from optimizer.errors import Problem, UsageProblems
from optimizer.instance.field_paths import FieldPath, UnknownFieldError, find_field
from optimizer.instance.model import Instance
from optimizer.limits import LIMITS, Limit
from optimizer.plan import Plan
from optimizer.studies.best import prepared, summary
from optimizer.studies.cases import Cases, Stopped
from optimizer.studies.current_values import current_value
from optimizer.studies.spans import read_span
from optimizer.studies.standing import Standing, Tell

COST: Final = "cost"
STEP: Final = 0.05
#: Limits that are held against a figure of another unit than their field's cannot be traded.
_OTHER_UNIT: Final = frozenset(
    {"targets.vram_fraction", "targets.nvlink_fraction", "targets.spare_fraction", "workload.demand", "choices.supply"}
)
#: "Just beyond": a share well above the solver's tolerance of rows scaled to 1, far below any step of a figure.
_BEYOND: Final = 2e-6
#: Costs closer than this are the same.
_SAME: Final = 2e-6
#: Halving between a limit that is free and one that costs more ends at this share; then limits go on one by one.
_NARROW: Final = 1e-3
#: A limit this far out limits nothing.
_FAR: Final = 1e4
_LEAST_FRACTION: Final = 0.01

#: A floor that a plan reaches holds in spite of the last bits of its sum.
_ROUNDING: Final = 1e-9
#: Least cap and largest floor that can be asked for, by unit.
_LEAST: Final = MappingProxyType({"types": 1.0})
_MOST: Final = MappingProxyType({"fraction": 1.0, "points": 100.0})


@dataclass(frozen=True, slots=True)
class Aim:
    """A limit that is traded against cost: its field, which way is better, where it starts and ends."""

    field: FieldPath
    limit: Limit
    start: float
    end: float
    now: float | None

    @property
    def less_is_better(self) -> bool:
        """Whether a smaller value is the better one."""
        return self.limit.direction == "<="

    def beyond(self, value: float, step: float) -> float:
        """The next limit after plans that reach ``value``."""
        if self.field.is_whole:
            return round(value) - 1.0 if self.less_is_better else round(value) + 1.0
        if self.less_is_better:
            return value * (1.0 - max(step, _BEYOND))
        # A floor (of accuracy) has few values, one a scheme: none is left out.
        return value + _BEYOND * max(1.0 - value, 1e-3) if value < 1.0 else value * (1.0 + _BEYOND)

    def is_past(self, value: float) -> bool:
        """Whether a limit lies beyond the end of what is asked for, or cannot be asked for."""
        if self.less_is_better:
            least = _LEAST.get(self.limit.unit, 0.0)
            return value < max(self.end, least) or (value <= 0.0 and not self.field.is_whole)
        return value > min(self.end, _MOST.get(self.limit.unit, self.end))

    def worst(self, values: Sequence[float]) -> float:
        """The worst of several values."""
        return max(values) if self.less_is_better else min(values)


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """A plan on the front: its cost and what it reaches of each aim, in their order."""

    usd_per_year: float
    reached: tuple[float, ...]
    summary: str
    holds: str
    is_knee: bool
    is_now: bool


@dataclass(frozen=True, slots=True)
class Front:
    """The front, the cheapest plan first.

    ``aims`` are the fields traded, ``units`` and ``less_is_better`` belong to them; ``now`` is the limit that the
    instance sets, None where it sets none.
    """

    name: str
    aims: tuple[str, ...]
    labels: tuple[str, ...]
    units: tuple[str, ...]
    less_is_better: tuple[bool, ...]
    now: tuple[float | None, ...]
    points: tuple[FrontPoint, ...]
    step: float
    solved: int
    is_complete: bool


def frontier(
    instance: Instance,
    trade: str,
    instance_path: Path | None = None,
    *,
    step: float = STEP,
    tell: Tell = lambda _standing: None,
    stop: Callable[[], bool] = lambda: False,
) -> Front:
    """The undominated plans between cost and the limits of ``trade``: ``cost,targets.tpot_ms[=LOW:HIGH],...``.

    ``step``: least share by which a continuous limit is tightened at once; 0 gives every point. Stopped early, the
    points found so far are given.

    Raises
    ------
    UsageProblems: an aim is unknown or cannot be traded. SolverError, StoppedWithoutPlan, InternalError: as for
    ``api.solve``.
    """
    instance = prepared(instance, instance_path)
    aims = read_aims(instance, trade)
    search = _Search(Cases(instance, stop), aims, step, tell)
    complete = True
    try:
        every = search.front(0, {})
    except Stopped:
        complete, every = False, search.found
    found = _undominated(every, aims)
    knee = _knee([_vector(one, aims) for one in found])
    now = _now_point(search.cases, aims, found) if complete else None
    points = [
        FrontPoint(
            usd_per_year=plan.bill.usd_per_year,
            reached=values,
            summary=summary(plan),
            holds=plan.outcome.holds,
            is_knee=place == knee,
            is_now=place == now,
        )
        for place, (plan, values) in enumerate(found)
    ]
    return Front(
        name=instance.name,
        aims=tuple(one.field.name for one in aims),
        labels=tuple(one.limit.label for one in aims),
        units=tuple(one.limit.unit for one in aims),
        less_is_better=tuple(one.less_is_better for one in aims),
        now=tuple(one.now for one in aims),
        points=tuple(points),
        step=step,
        solved=search.cases.solved,
        is_complete=complete,
    )


def read_aims(instance: Instance, trade: str) -> tuple[Aim, ...]:
    """The aims of ``cost,PATH[=LOW:HIGH],...``; UsageProblems with everything that is wrong with them."""
    parts = [one.strip() for one in trade.split(",")]
    known = {one.field: one for one in LIMITS if one.field not in _OTHER_UNIT}
    problems: list[Problem] = []
    aims: list[Aim] = []

    def refuse(number: int, field: str, found: str, allowed: str, fix: str = "") -> None:
        problems.append(Problem(f"E-STUDY-{number}", "--trade", field=field, found=found, allowed=allowed, fix=fix))

    if parts[0] != COST:
        refuse(403, parts[0], f"{parts[0] or 'nothing'} in the first place", f"must be {COST}: it is what is least")
    if len(parts) < 2:
        refuse(403, "", "cost alone", "must name at least one limit beside it", f"Such as {COST},targets.tpot_ms")
    for part in parts[1:]:
        path, _, spec = part.partition("=")
        try:
            field = find_field(instance, path)
        except UnknownFieldError as error:
            refuse(404, path, error.found, error.allowed, error.fix)
            continue
        if field.name not in known:
            refuse(404, field.name, "no limit of a plan in its own unit", f"must be one of {', '.join(sorted(known))}")
            continue
        if any(one.field.name == field.name for one in aims):
            refuse(404, field.name, "a limit that is traded twice", "must be named once")
            continue
        try:
            aims.append(_aim(instance, field, known[field.name], part if spec else None))
        except UsageProblems as error:
            problems += error.problems
    if problems:
        raise UsageProblems(tuple(problems))
    return tuple(aims)


def _aim(instance: Instance, field: FieldPath, limit: Limit, text: str | None) -> Aim:
    held = current_value(instance, field)
    now = float(held) if isinstance(held, int | float) else None
    less = limit.direction == "<="
    if text is not None:
        span = read_span(instance, text, "--trade")
        return Aim(field, limit, *((span.high, span.low) if less else (span.low, span.high)), now)
    if less:
        return Aim(field, limit, max(now or 1.0, 1.0) * _FAR, -math.inf, now)
    return Aim(field, limit, _LEAST_FRACTION, math.inf, now)


Found = tuple[Plan, tuple[float, ...]]


class _Search:
    """Tightens limits one within the other."""

    def __init__(self, cases: Cases, aims: Sequence[Aim], step: float, tell: Tell) -> None:
        self.cases = cases
        self.found: list[Found] = []
        self._aims, self._step, self._tell = tuple(aims), step, tell

    def front(self, place: int, outer: dict[FieldPath, float]) -> list[Found]:
        """The front from the aim at ``place`` on, under the limits of those before it."""
        aim = self._aims[place]
        limit, result = aim.start, list[Found]()
        while not aim.is_past(limit):
            inner = self._at(place, {**outer, aim.field: limit})
            if not inner:
                break
            if self._step and not aim.field.is_whole:
                inner = self._tightest(place, outer, inner)
            if aim.limit.family == "accuracy":
                inner = self._at_what_it_reaches(place, outer, inner)
            result += inner
            limit = aim.beyond(self._worst(place, inner), self._step)
        return result

    def _worst(self, place: int, found: Sequence[Found]) -> float:
        return self._aims[place].worst([values[place] for _, values in found])

    def _at_what_it_reaches(self, place: int, outer: dict[FieldPath, float], inner: list[Found]) -> list[Found]:
        """The same under the floor that is reached.

        A recovery step is priced by the chance of needing it at the floor that is asked, so a plan that was found
        under a lower floor costs more at the accuracy that the point states.
        """
        reached = self._worst(place, inner)
        return self._at(place, {**outer, self._aims[place].field: min(reached, 1.0) * (1.0 - _ROUNDING)}) or inner

    def _tightest(self, place: int, outer: dict[FieldPath, float], inner: list[Found]) -> list[Found]:
        """What the tightest limit gives that costs no more: the cost only rises as a limit tightens, so by halving."""
        aim, cheap = self._aims[place], inner
        dear: float | None = None
        while True:
            reached = self._worst(place, cheap)
            probe = aim.beyond(reached, 0.0)
            if dear is not None and abs(dear - reached) > _NARROW * abs(reached):
                probe = (reached + dear) / 2.0
            elif dear is None and cheap is not inner:
                probe = aim.beyond(reached, self._step)
            if aim.is_past(probe) or (dear is not None and not _tighter(reached, probe, dear)):
                return cheap
            better = self._at(place, {**outer, aim.field: probe})
            if better and _as_cheap(better, inner):
                cheap = better
            elif probe == aim.beyond(reached, 0.0):
                return cheap
            else:
                dear = probe

    def _at(self, place: int, limits: dict[FieldPath, float]) -> list[Found]:
        if place + 1 < len(self._aims):
            return self.front(place + 1, limits)
        chosen = {field: round(value) if field.is_whole else value for field, value in limits.items()}
        self._tell(Standing(self.cases.solved, None, best=f"{len(self.found)} points"))
        plan = self.cases.plan(chosen)
        if plan is None:
            return []
        one = plan, tuple(_reached(plan, aim) for aim in self._aims)
        self.found.append(one)
        return [one]


def _as_cheap(better: Sequence[Found], inner: Sequence[Found]) -> bool:
    """Whether fronts of equal length cost the same point by point: the tighter limit is free."""
    return len(better) == len(inner) and all(
        a.bill.usd_per_year <= b.bill.usd_per_year * (1.0 + _SAME) for (a, _), (b, _) in zip(better, inner, strict=True)
    )


def _tighter(reached: float, probe: float, dear: float) -> bool:
    """Whether a limit lies between a value that is reached and a limit that is known to cost more."""
    return min(reached, dear) < probe < max(reached, dear)


def _reached(plan: Plan, aim: Aim) -> float:
    """What a plan reaches of a limit at its worst place; 0 of a cap that nothing of the plan counts for."""
    values = [row.reached for row in plan.headroom if row.limit == aim.limit.name]
    return aim.worst(values) if values else 0.0


def _vector(one: Found, aims: Sequence[Aim]) -> tuple[float, ...]:
    """Cost and aims so that less is better throughout."""
    plan, values = one
    signed = [value if aim.less_is_better else -value for value, aim in zip(values, aims, strict=True)]
    return (plan.bill.usd_per_year, *signed)


def _undominated(found: Sequence[Found], aims: Sequence[Aim]) -> list[Found]:
    """Points that no other one beats, each once, by cost."""
    kept: list[Found] = []
    vectors: list[tuple[float, ...]] = []
    for one in sorted(found, key=lambda each: _vector(each, aims)):
        mine = _vector(one, aims)
        if not any(_no_worse(other, mine) for other in vectors):
            # A plan that costs as much within the tie but is better in another aim takes the place of the other.
            beaten = [place for place, other in enumerate(vectors) if _no_worse(mine, other)]
            kept = [each for place, each in enumerate(kept) if place not in beaten] + [one]
            vectors = [each for place, each in enumerate(vectors) if place not in beaten] + [mine]
    return kept


def _no_worse(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(a <= b + _SAME * abs(b) for a, b in zip(one, other, strict=True))


def _knee(vectors: Sequence[Sequence[float]]) -> int | None:
    """The point at which the front bends most.

    With two aims the one furthest below the straight line between both ends, each aim scaled to its range (Das 1999);
    with more the one nearest to the point that has the best value of every aim.
    """
    if len(vectors) < 3:
        return None
    columns = list(zip(*vectors, strict=True))
    spans = [(min(column), max(column) - min(column)) for column in columns]
    scaled = [
        [(value - low) / span if span > 0.0 else 0.0 for value, (low, span) in zip(row, spans, strict=True)]
        for row in vectors
    ]
    if len(columns) == 2:
        # The line runs from (0, 1) to (1, 0): below it the sum of both is less than 1.
        depth = [1.0 - sum(row) for row in scaled]
        best = max(range(len(depth)), key=lambda place: depth[place])
        return best if depth[best] > 1e-9 else None
    return min(range(len(scaled)), key=lambda place: math.hypot(*scaled[place]))


def _now_point(cases: Cases, aims: Sequence[Aim], found: Sequence[Found]) -> int | None:
    """The point that the instance's own limits lead to, where it is on the front."""
    if any(one.now is None for one in aims):
        return None
    plan = cases.plan({})
    if plan is None:
        return None
    cost = plan.bill.usd_per_year
    for place, (other, values) in enumerate(found):
        kept = all(
            (value <= (aim.now or 0.0) * (1.0 + _SAME)) if aim.less_is_better else (value >= (aim.now or 0.0) - _SAME)
            for value, aim in zip(values, aims, strict=True)
        )
        if kept and abs(other.bill.usd_per_year - cost) <= _SAME * cost:
            return place
    return None
