"""Tipping points: every value of a field, within a range, at which another choice becomes the best.

The range is cut into cells of the asked resolution. Every stretch of values that is at least as long as a cell holds
one of their ends, so solving all ends would miss no choice that is best over such a stretch. Ends are left out only
where one of these proves that the choice between two solved ones is known:

*Prices.* A price that a plan pays in proportion to what it buys changes no limit, so the least cost is the minimum of
straight lines, a concave function. Where one and the same plan (fleet and rates) is best at both ends, its line touches
that function at both ends, and a concave function lies above its chord: the plan is best in between. This needs that no
capital budget is set, which would make plans come and go with the price.

*Limits and demand.* A plan for a tighter limit (or more demand) keeps a looser one at no more cost, so the least cost
only falls as the limit loosens. Where it is the same at both ends (within the tie of ``optimizer.extract``), the plan
of the tighter end is best in between; where nothing fits at the looser end, nothing fits in between.

For every other field all ends are solved.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from optimizer.errors import Problem, UsageProblems
from optimizer.instance.model import Instance
from optimizer.instance.positions import Path as Steps
from optimizer.plan import Plan
from optimizer.studies.best import prepared, summary, yearly_usd
from optimizer.studies.cases import NOTHING_FITS, Cases, Stopped, choice, choice_words
from optimizer.studies.spans import Span, read_span
from optimizer.studies.standing import Standing, Tell

#: Cells of a range, unless a resolution is asked for (prices need few solves whatever their number), and the most.
CELLS: Final = 128
PRICE_CELLS: Final = 1024
MOST_CELLS: Final = 100_000
#: Costs closer than this are the same: a proven gap of 1e-6, and ties of as much.
_SAME: Final = 2e-6

#: Prices that a plan pays in proportion to what it buys.
_PRICES: Final[tuple[Steps, ...]] = (
    ("economics", "prices", "*", "server_usd"),
    ("economics", "prices", "*", "on_demand_usd_per_hour"),
    ("economics", "prices", "*", "reserved_1yr_usd_per_hour"),
    ("economics", "prices", "*", "reserved_3yr_usd_per_hour"),
    ("economics", "cooling_prices", "*", "fixed_usd"),
    ("economics", "cooling_prices", "*", "marginal_usd_per_kw"),
    ("economics", "rack_usd"),
    ("economics", "liquid_ready_usd_per_kw"),
    ("site", "electricity_usd_per_kwh"),
)
#: Fields that loosen as they rise (+1) or fall (-1).
_LOOSENS: Final[tuple[tuple[Steps, int], ...]] = (
    (("targets", "tpot_ms"), 1),
    (("targets", "ttft_ms"), 1),
    (("targets", "latency_ms"), 1),
    (("targets", "deadline_days"), 1),
    (("targets", "accuracy_floor_fraction"), -1),
    (("targets", "vram_gib_per_accelerator"), 1),
    (("targets", "weights_gib_per_accelerator"), 1),
    (("targets", "nvlink_fraction"), 1),
    (("targets", "nvlink_gb_s"), 1),
    (("targets", "spare_fraction"), -1),
    (("targets", "spare_servers"), -1),
    (("workload", "demand", "output_tokens_per_s"), -1),
    (("workload", "demand", "requests_per_s"), -1),
    (("workload", "demand", "concurrent_users"), -1),
    (("workload", "classes", "*", "demand", "output_tokens_per_s"), -1),
    (("workload", "classes", "*", "demand", "requests_per_s"), -1),
    (("workload", "classes", "*", "demand", "concurrent_users"), -1),
    (("workload", "classes", "*", "targets", "tpot_ms"), 1),
    (("workload", "classes", "*", "targets", "ttft_ms"), 1),
    (("workload", "classes", "*", "targets", "latency_ms"), 1),
    (("site", "power_kw"), 1),
    (("site", "racks"), 1),
    (("choices", "supply", "*"), 1),
    (("choices", "max_accelerator_types"), 1),
    (("economics", "budget_capex_usd"), 1),
    (("economics", "budget_usd_per_year"), 1),
)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Values over which one choice is best, from the first to the last solved point of it."""

    first: float
    last: float
    choice: str
    first_usd_per_year: float | None
    last_usd_per_year: float | None
    first_summary: str
    last_summary: str


@dataclass(frozen=True, slots=True)
class Flip:
    """Between ``low`` and ``high`` the best choice changes."""

    low: float
    high: float
    before: str
    after: str
    message: str


@dataclass(frozen=True, slots=True)
class Tipping:
    """Every flip of the choice in a range, at a resolution."""

    name: str
    field: str
    unit: str
    now: float | None
    low: float
    high: float
    resolution: float
    stretches: tuple[Stretch, ...]
    flips: tuple[Flip, ...]
    solved: int
    cells: int
    guarantee: str
    is_complete: bool


def tipping_points(
    instance: Instance,
    vary: str,
    instance_path: Path | None = None,
    *,
    resolution: float | None = None,
    tell: Tell = lambda _standing: None,
    stop: Callable[[], bool] = lambda: False,
) -> Tipping:
    """Every flip of the best choice as a field goes through a range (``PATH=LOW:HIGH``).

    ``resolution``: length of the shortest stretch that must not be missed, and how well each flip is located, in the
    field's unit; unless given a 1024th of the range for prices, a 128th for other fields. Stopped early, flips between
    the solved points are given.

    Raises
    ------
    UsageProblems: path, range or resolution is bad. SolverError, StoppedWithoutPlan, InternalError: as for
    ``api.solve``.
    """
    instance = prepared(instance, instance_path)
    span = read_span(instance, vary, "--vary")
    rule = _rule(instance, span)
    points = _points(span, resolution, PRICE_CELLS if rule == "price" else CELLS)
    search = _Search(Cases(instance, stop), span, points, rule, tell)
    complete = True
    try:
        search.between(0, len(points) - 1)
    except Stopped:
        complete = False
    known = sorted(search.plans)
    stretches = _stretches(instance, points, known, search.plans)
    return Tipping(
        name=instance.name,
        field=span.label,
        unit=span.unit,
        now=span.now,
        low=span.low,
        high=span.high,
        resolution=(points[-1] - points[0]) / (len(points) - 1),
        stretches=tuple(stretches),
        flips=tuple(_flip(span, one, after) for one, after in pairwise(stretches)),
        solved=search.cases.solved,
        cells=len(points) - 1,
        guarantee=_GUARANTEES[search.rule],
        is_complete=complete,
    )


_NONE_MISSED: Final = "no choice that is best over a stretch of at least the resolution is missed"
_GUARANTEES: Final = {
    "price": f"{_NONE_MISSED}: the least cost is concave in a price, so a plan that is best at two prices is best"
    " between them",
    "limit": f"{_NONE_MISSED}: the least cost only falls as the field loosens, so where it is equal at two values the"
    " tighter one's plan is best between them",
    "all": f"{_NONE_MISSED}: every cell was solved",
}


def _points(span: Span, resolution: float | None, usual: int) -> tuple[float, ...]:
    length = span.high - span.low
    cells = usual if resolution is None else length / resolution if resolution > 0.0 else math.inf
    if not 0.5 <= cells <= MOST_CELLS:
        allowed = f"must be {length / MOST_CELLS:g} to {length:g} {span.unit}".rstrip()
        raise UsageProblems(
            (Problem("E-STUDY-402", "--resolution", field=span.label, found=f"{resolution:g}", allowed=allowed),)
        )
    return span.points(math.ceil(cells - 1e-9) + 1)


def _matches(pattern: Steps, steps: Steps) -> bool:
    return len(pattern) == len(steps) and all(a in ("*", b) for a, b in zip(pattern, steps, strict=True))


def _rule(instance: Instance, span: Span) -> str:
    if instance.workload.kind != "serving":
        # Fleets for training are looked at on a ladder of sizes that depends on the targets: nothing is proven of it.
        return "all"
    if all(any(_matches(one, field.steps) for one in _PRICES) for field in span.fields):
        return "price" if instance.economics.budget_capex_usd is None else "all"
    return "limit" if _loosening(span) else "all"


def _loosening(span: Span) -> int:
    """+1 or -1 where every field loosens as it rises or falls, else 0."""
    found = set()
    for field in span.fields:
        found.add(next((way for pattern, way in _LOOSENS if _matches(pattern, field.steps)), 0))
    return found.pop() if len(found) == 1 else 0


class _Search:
    """Solves ends of cells until every one is solved or known."""

    def __init__(self, cases: Cases, span: Span, points: tuple[float, ...], rule: str, tell: Tell) -> None:
        self.cases, self.rule = cases, rule
        self.plans: dict[int, Plan | None] = {}
        self._span, self._points, self._tell = span, points, tell
        self._way = _loosening(span)
        self._known = 0

    def plan(self, place: int) -> Plan | None:
        """The best plan at an end of a cell."""
        if place not in self.plans:
            self._tell(Standing(self._known, len(self._points), best=f"{self.cases.solved} solved"))
            self.plans[place] = self.cases.plan(self._span.values(self._points[place]))
            self._known += 1
        return self.plans[place]

    def between(self, first: int, last: int) -> None:
        """Solve what has to be solved between two ends, halves first, so that a stop leaves an even picture."""
        queue = [(first, last)]
        while queue:
            low, high = queue.pop(0)
            one, other = self.plan(low), self.plan(high)
            if high - low < 2:
                continue
            if self._is_known(one, other):
                self._known += high - low - 1
                continue
            middle = (low + high) // 2
            queue += [(low, middle), (middle, high)]

    def _is_known(self, low: Plan | None, high: Plan | None) -> bool:
        """Whether the choice between two ends follows from their plans."""
        if self.rule == "price":
            # What fits does not depend on a price.
            return (low is None) or (high is not None and _same_plan(low, high))
        if self.rule == "limit":
            loose, tight = (high, low) if self._way > 0 else (low, high)
            if loose is None:
                return True
            return (
                tight is not None
                and choice(tight) == choice(loose)
                and tight.bill.usd_per_year <= loose.bill.usd_per_year * (1.0 + _SAME)
            )
        return False


def _same_plan(one: Plan, other: Plan) -> bool:
    """The same servers, the same replicas, the same rates: the same line over a price."""

    def shape(plan: Plan) -> tuple[object, ...]:
        servers = tuple((group.pool, group.servers, group.spare) for group in plan.servers)
        return servers, tuple((run.id, run.pool, run.replicas, run.rates_requests_per_s) for run in plan.deployments)

    return shape(one) == shape(other)


def _stretches(
    base: Instance, points: tuple[float, ...], known: list[int], plans: dict[int, Plan | None]
) -> list[Stretch]:
    found: list[Stretch] = []
    start = 0
    for place in range(1, len(known) + 1):
        if place < len(known) and choice(plans[known[place]]) == choice(plans[known[start]]):
            continue
        first, last = plans[known[start]], plans[known[place - 1]]
        found.append(
            Stretch(
                first=points[known[start]],
                last=points[known[place - 1]],
                choice=choice_words(choice(first)),
                first_usd_per_year=None if first is None else yearly_usd(first, base),
                last_usd_per_year=None if last is None else yearly_usd(last, base),
                first_summary=NOTHING_FITS if first is None else summary(first),
                last_summary=NOTHING_FITS if last is None else summary(last),
            )
        )
        start = place
    return found


def _flip(span: Span, before: Stretch, after: Stretch) -> Flip:
    value = (before.last + after.first) / 2.0
    digits = max(3, math.ceil(math.log10(abs(value) / max(after.first - before.last, 1e-12)) + 1)) if value else 3
    place = f"{value:,.{min(digits, 9)}g}" if abs(value) < 10**digits else f"{value:,.0f}"
    message = (
        f"the choice flips when {span.label} rises above {place} {span.unit}".rstrip()
        + f": {before.choice} -> {after.choice}"
    )
    return Flip(before.last, after.first, before.choice, after.choice, message)
