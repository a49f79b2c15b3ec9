"""The cost curve of a fleet: its best plan at growing demand, what an accelerator costs in each, and where that bends.

``python -m optimizer.studies.cost_curve INSTANCE SHARE [SHARE ...]`` prints the curve as CSV.
"""

import csv
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from optimizer.instance.model import Instance
from optimizer.plan import Plan
from optimizer.studies.best import best_plan, prepared, summary


@dataclass(frozen=True, slots=True)
class Point:
    """The best plan at one demand.

    Attributes
    ----------
    share: demand as a multiple of the instance's own.
    usd_per_accelerator_hour: by component of the bill, spares' share of it included; their sum is the whole.
    cooling: cooling options in use. summary: what is bought and rented.
    """

    share: float
    accelerators: int
    usd_per_hour: float
    usd_per_accelerator_hour: dict[str, float]
    cooling: tuple[str, ...]
    summary: str

    @property
    def total_usd_per_accelerator_hour(self) -> float:
        """Cost of one accelerator and hour, everything in it."""
        return self.usd_per_hour / self.accelerators


@dataclass(frozen=True, slots=True)
class Bend:
    """A step of the curve: where an accelerator's cost changes by at least a share, and which component does it."""

    before: Point
    after: Point
    component: str
    component_usd: float
    total_usd: float


def cost_curve(instance: Instance, shares: Sequence[float], instance_path: Path | None = None) -> tuple[Point, ...]:
    """The best plan at each multiple of the instance's demand, in the order given; where nothing fits is left out.

    Raises
    ------
    SolverError, StoppedWithoutPlan, InternalError: as ``studies.best.best_plan``.
    """
    instance = prepared(instance, instance_path)
    points = []
    for share in shares:
        plan = best_plan(scaled(instance, share))
        if plan is not None:
            points.append(point_of(share, plan))
    return tuple(points)


def scaled(instance: Instance, share: float) -> Instance:
    """The instance with ``share`` of its demand, in every class."""
    workload = instance.workload
    units = ("output_tokens_per_s", "requests_per_s", "concurrent_users")

    def of(demand: object) -> dict[str, float]:
        return {name: value * share for name in units if (value := getattr(demand, name)) is not None}

    if workload.kind != "serving":
        raise ValueError("a cost curve is of a serving workload")
    changes: dict[str, object] = {}
    if workload.demand is not None:
        changes["demand"] = workload.demand.model_copy(update=of(workload.demand))
    changes["classes"] = tuple(
        one.model_copy(update={"demand": one.demand.model_copy(update=of(one.demand))}) for one in workload.classes
    )
    return instance.model_copy(update={"workload": workload.model_copy(update=changes)})


def point_of(share: float, plan: Plan) -> Point:
    """The figures of a plan on the curve."""
    hours = plan.bill.usd_per_hour / plan.bill.usd_per_year if plan.bill.usd_per_year else 0.0
    parts = plan.bill.usd_per_year_by_component
    return Point(
        share=share,
        accelerators=plan.accelerators,
        usd_per_hour=plan.bill.usd_per_hour,
        usd_per_accelerator_hour={name: usd * hours / plan.accelerators for name, usd in parts.items()},
        cooling=tuple(sorted({group.cooling for group in plan.servers if group.cooling is not None})),
        summary=summary(plan),
    )


def bends(points: Sequence[Point], least_fraction: float = 0.005) -> tuple[Bend, ...]:
    """Steps between neighbours at which an accelerator's cost changes by at least a share of it.

    The component named is the one that changes most in the direction of the whole.
    """
    found = []
    for before, after in pairwise(points):
        total = after.total_usd_per_accelerator_hour - before.total_usd_per_accelerator_hour
        if abs(total) < least_fraction * before.total_usd_per_accelerator_hour:
            continue
        names = {*before.usd_per_accelerator_hour, *after.usd_per_accelerator_hour}
        moved = {
            name: after.usd_per_accelerator_hour.get(name, 0.0) - before.usd_per_accelerator_hour.get(name, 0.0)
            for name in names
        }
        sign = 1.0 if total > 0.0 else -1.0
        component = max(sorted(names), key=lambda name: sign * moved[name])
        found.append(Bend(before, after, component, moved[component], total))
    return tuple(found)


def as_csv(points: Sequence[Point]) -> str:
    """The curve as CSV: a row a point, components in columns."""
    names = list(dict.fromkeys(name for one in points for name in one.usd_per_accelerator_hour))
    header = ["share", "accelerators", "usd_per_hour", "usd_per_accelerator_hour", *names, "cooling", "plan"]
    rows = [
        [
            one.share,
            one.accelerators,
            f"{one.usd_per_hour:.4f}",
            f"{one.total_usd_per_accelerator_hour:.5f}",
            *(f"{one.usd_per_accelerator_hour.get(name, 0.0):.5f}" for name in names),
            " + ".join(one.cooling),
            one.summary,
        ]
        for one in points
    ]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def main(arguments: Sequence[str]) -> int:
    """Print the curve of an instance at the given multiples of its demand."""
    from optimizer.api import load

    path = Path(arguments[0])
    sys.stdout.write(as_csv(cost_curve(load(path), [float(one) for one in arguments[1:]], path)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
