"""The decision map: the best choice over a grid of two fields, where another is nearly as good, where we are now."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from optimizer.errors import Problem, UsageProblems
from optimizer.instance.field_paths import FieldPath
from optimizer.instance.model import Instance
from optimizer.plan import Plan
from optimizer.studies.best import next_best_plan, prepared, summary, yearly_usd
from optimizer.studies.cases import Cases, Stopped, choice, choice_words
from optimizer.studies.spans import Span, read_counted_span
from optimizer.studies.standing import Standing, Tell

#: Points across and up where none are stated, and the most there may be.
ACROSS: Final = 13
UP: Final = 9
#: A choice within this share of the least cost is nearly as good.
NEAR: Final = 0.01


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of the grid: the best choice (a place in ``DecisionMap.choices``), its cost, the next best one.

    ``choice`` is None where nothing fits, ``usd_per_year`` too. ``next_choice`` does without something that the best
    one uses; ``extra_fraction`` is how much more it costs; both None where there is none or it was not asked for.
    """

    x: float
    y: float
    choice: int | None
    usd_per_year: float | None
    summary: str
    next_choice: str | None
    extra_fraction: float | None
    is_near_tie: bool


@dataclass(frozen=True, slots=True)
class MapAxis:
    """One of the two fields, its points and what it is now."""

    field: str
    unit: str
    points: tuple[float, ...]
    now: float | None


@dataclass(frozen=True, slots=True)
class DecisionMap:
    """The map; ``cells`` run along ``x`` first, from the lowest ``y`` on. Fewer than all where it was stopped."""

    name: str
    x: MapAxis
    y: MapAxis
    choices: tuple[str, ...]
    cells: tuple[Cell, ...]
    near_fraction: float
    solved: int
    is_complete: bool

    def at(self, column: int, row: int) -> Cell | None:
        """The cell of a column and a row, None where it was not reached."""
        place = row * len(self.x.points) + column
        return self.cells[place] if place < len(self.cells) else None


def decision_map(
    instance: Instance,
    first: str,
    second: str,
    instance_path: Path | None = None,
    *,
    near_fraction: float = NEAR,
    tell: Tell = lambda _standing: None,
    stop: Callable[[], bool] = lambda: False,
) -> DecisionMap:
    """The best choice at every point of a grid over two fields (``PATH=LOW:HIGH[:N]`` each).

    ``near_fraction``: the next best choice is looked for at every point, and marked a near tie within that share of the
    least cost; 0 looks for none, which takes a third of the time or less.

    Raises
    ------
    UsageProblems: a path or range is bad. SolverError, StoppedWithoutPlan, InternalError: as for ``api.solve``.
    """
    instance = prepared(instance, instance_path)
    x, across = read_counted_span(instance, first, "--vary", ACROSS)
    y, up = read_counted_span(instance, second, "--vary", UP)
    _refuse_twice(x, y)
    columns, rows = x.points(across), y.points(up)
    cases = Cases(instance, stop)
    cells: list[Cell] = []
    choices: list[str] = []
    complete = True
    try:
        for row in rows:
            for column in columns:
                tell(Standing(len(cells), len(rows) * len(columns), best=f"{len(choices)} choices"))
                values = {**x.values(column), **y.values(row)}
                cells.append(_cell(instance, cases, values, (column, row), choices, near_fraction))
    except Stopped:
        complete = False
    return DecisionMap(
        name=instance.name,
        x=MapAxis(x.label, x.unit, columns, x.now),
        y=MapAxis(y.label, y.unit, rows, y.now),
        choices=tuple(choices),
        cells=tuple(cells),
        near_fraction=near_fraction,
        solved=cases.solved,
        is_complete=complete,
    )


def _cell(
    base: Instance,
    cases: Cases,
    values: dict[FieldPath, object],
    place: tuple[float, float],
    choices: list[str],
    near_fraction: float,
) -> Cell:
    plan = cases.plan(values)
    if plan is None:
        return Cell(*place, None, None, choice_words(None), None, None, False)
    words = choice_words(choice(plan))
    if words not in choices:
        choices.append(words)
    other: Plan | None = None
    if near_fraction > 0.0:
        other = next_best_plan(cases.neighbour(values), plan)
    extra = None if other is None else other.bill.usd_per_year / plan.bill.usd_per_year - 1.0
    return Cell(
        *place,
        choices.index(words),
        yearly_usd(plan, base),
        summary(plan),
        None if other is None else choice_words(choice(other)),
        extra,
        extra is not None and extra <= near_fraction,
    )


def _refuse_twice(x: Span, y: Span) -> None:
    if {field.steps for field in x.fields} & {field.steps for field in y.fields}:
        found = "a field that is on both axes"
        raise UsageProblems((Problem("E-STUDY-401", "--vary", 0, 0, x.label, found, "must be two fields"),))
