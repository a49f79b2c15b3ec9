"""The price of each limit: what the plan costs with it tightened and loosened, by solving again.

A dual value of the relaxed program is no price: the next server is bought whole. So each limit is moved by a share of
its value, a count by one at least, and the difference of the two costs is what is told, per unit of the move.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from optimizer.errors import UsageProblems
from optimizer.instance.field_paths import FieldPath, known_fields, stated_value
from optimizer.instance.model import Instance
from optimizer.limits import LIMITS, Limit
from optimizer.plan import Plan
from optimizer.studies.best import prepared, summary
from optimizer.studies.cases import NOTHING_FITS, Cases, Stopped
from optimizer.studies.current_values import current_value
from optimizer.studies.standing import Standing, Tell

#: How far a limit is moved.
BY: Final = 0.05
_SAME: Final = 2e-6
#: Floors and shares do not pass these.
_LEAST: Final = 1e-3
_MOST: Final = 0.9999


@dataclass(frozen=True, slots=True)
class Moved:
    """The best plan with a limit at another value; no cost where nothing fits."""

    value: float
    usd_per_year: float | None
    change_usd_per_year: float | None
    usd_per_year_per_unit: float | None
    summary: str


@dataclass(frozen=True, slots=True)
class LimitPrice:
    """A limit with its value now, whether it holds the plan back, and the plans with it tighter and looser."""

    field: str
    label: str
    unit: str
    now: float
    is_binding: bool
    tighter: Moved | None
    looser: Moved | None

    @property
    def largest_change_usd_per_year(self) -> float:
        """The larger of both changes; infinite where nothing fits with the limit tighter."""
        sides = [one for one in (self.tighter, self.looser) if one is not None]
        if any(one.usd_per_year is None for one in sides):
            return float("inf")
        return max((abs(one.change_usd_per_year or 0.0) for one in sides), default=0.0)


@dataclass(frozen=True, slots=True)
class LimitPrices:
    """Every limit that the instance sets, the dearest first."""

    name: str
    usd_per_year: float
    summary: str
    by_fraction: float
    limits: tuple[LimitPrice, ...]
    total: int
    is_complete: bool


def limit_prices(
    instance: Instance,
    instance_path: Path | None = None,
    *,
    by_fraction: float = BY,
    tell: Tell = lambda _standing: None,
    stop: Callable[[], bool] = lambda: False,
) -> LimitPrices | None:
    """What each limit of the instance costs, by moving it ``by_fraction`` of its value either way; None: nothing fits.

    A floor of accuracy moves by that share of the loss that it allows. Ends that the instance's rules refuse are left
    out.

    Raises
    ------
    SolverError, StoppedWithoutPlan, InternalError: as for ``api.solve``.
    """
    instance = prepared(instance, instance_path)
    cases = Cases(instance, stop)
    try:
        plan = cases.plan({})
    except Stopped:
        return None
    if plan is None:
        return None
    limits = [one for one in _limits(instance) if _is_asked(plan, one)]
    found: list[LimitPrice] = []
    complete = True
    try:
        for done, (field, limit, now) in enumerate(limits):
            tell(Standing(done, len(limits), best=field.name))
            one = _priced(cases, plan, field, limit, now, by_fraction)
            if one.tighter is not None or one.looser is not None:
                found.append(one)
    except Stopped:
        complete = False
    found.sort(key=lambda one: (-one.largest_change_usd_per_year, one.field))
    return LimitPrices(
        instance.name, plan.bill.usd_per_year, summary(plan), by_fraction, tuple(found), len(limits), complete
    )


def _is_asked(plan: Plan, one: tuple[FieldPath, Limit, float]) -> bool:
    """Whether a plan is held against a limit: a run knows no caches, and takes all memory where no share is stated."""
    if plan.training is None:
        return True
    default = one[1].field == "targets.vram_fraction" and "vram_fraction" not in plan.instance.targets.model_fields_set
    return not default and one[1].field in {row.field for row in plan.headroom}


def _limits(instance: Instance) -> list[tuple[FieldPath, Limit, float]]:
    """Fields that set a limit, with the limit and the value now; several classes' own targets are each one."""
    rules = {one.field: one for one in LIMITS}
    found = []
    for field in known_fields(instance):
        if not field.is_number:
            continue
        limit = rules.get(field.name) or rules.get(".".join(map(str, field.steps[:-1])))
        if limit is None and field.steps[:2] == ("workload", "classes") and field.steps[3:4] == ("targets",):
            limit = rules.get(f"targets.{field.steps[-1]}")
        if limit is None or field.steps[-1] == "think_time_s":
            continue
        now = current_value(instance, field)
        if field.steps[:2] == ("workload", "classes") and stated_value(instance, field) is None:
            continue
        if isinstance(now, int | float) and not isinstance(now, bool):
            found.append((field, limit, float(now)))
    return found


def _priced(cases: Cases, plan: Plan, field: FieldPath, limit: Limit, now: float, by_fraction: float) -> LimitPrice:
    # A demand is met and a spare stands ready: tighter is more of them.
    tighter = -1.0 if limit.direction == "<=" else 1.0
    step = max(1.0, round(by_fraction * now)) if field.is_whole else by_fraction * now
    is_floor = limit.direction == ">=" and limit.unit == "fraction" and 0.0 < now < 1.0
    if is_floor:
        step = by_fraction * (1.0 - now)
    sides = [_moved(cases, plan, field, now, now + way * step) for way in (tighter, -tighter)]
    binding = any(row.binding for row in plan.headroom if row.limit == limit.name)
    unit = field.unit or limit.unit
    return LimitPrice(field.name, limit.label, unit, now, binding, *sides)


def _moved(cases: Cases, plan: Plan, field: FieldPath, now: float, value: float) -> Moved | None:
    if value == now:
        return None
    if field.unit in ("fraction", "probability"):
        value = min(max(value, _LEAST), 1.0 if now == 1.0 else _MOST)
    if value < 0.0 or value == now:
        return None
    try:
        there = cases.plan({field: round(value) if field.is_whole else value})
    except UsageProblems:
        return None
    if there is None:
        return Moved(value, None, None, None, NOTHING_FITS)
    change = there.bill.usd_per_year - plan.bill.usd_per_year
    change = 0.0 if abs(change) <= _SAME * plan.bill.usd_per_year else change
    return Moved(value, there.bill.usd_per_year, change, abs(change / (value - now)), summary(there))
