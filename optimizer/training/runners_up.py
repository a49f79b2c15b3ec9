"""The cheapest plan for training that does without each thing that the plan uses."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from optimizer.plan import Plan, RunnerUp
from optimizer.solver import Options, Reason
from optimizer.training.answer import Searched, Stop, answer
from optimizer.training.extract import make_plan


def runners_up(
    searched: Searched, plan: Plan, options: Options, stop: Stop | None, deadline: float
) -> tuple[RunnerUp, ...]:
    """One row for each accelerator, format, cooling option, way of sourcing and method in use, cheapest first."""
    rows = []
    for name, less in _uses(searched, plan):
        left = deadline - time.perf_counter()
        if left <= 0.0 or (stop is not None and stop()):
            break
        others = less()
        found = answer(others.program(), replace(options, time_limit_s=left), stop, break_ties=False)
        if found.runs is None:
            if found.outcome.reason is Reason.INFEASIBLE:
                allowed = others.prices and all(others.options)
                reason = "nothing else meets every limit" if allowed else "the instance allows nothing else"
                rows.append(
                    RunnerUp(without=name, summary="no plan", usd_per_hour=None, extra_fraction=None, reason=reason)
                )
            continue
        other = make_plan(searched, found, options, plan.outcome.solver)
        extra = other.bill.usd_per_hour / plan.bill.usd_per_hour - 1.0 if plan.bill.usd_per_hour else 0.0
        rows.append(
            RunnerUp(
                without=name,
                summary=summary(other),
                usd_per_hour=other.bill.usd_per_hour,
                extra_fraction=extra,
                reason=difference(plan, other),
            )
        )
    return tuple(sorted(rows, key=lambda row: (row.usd_per_hour is None, row.usd_per_hour or 0.0, row.without)))


def _uses(searched: Searched, plan: Plan) -> Iterator[tuple[str, Callable[[], Searched]]]:
    """What the plan uses, each with the search that does without it, its choices made anew from what remains."""
    assert plan.training is not None
    jobs = plan.training.jobs

    def without(kind: str, name: str) -> Callable[[], Searched]:
        return lambda: searched.without(frozenset({(kind, name)}))

    for key in sorted({job.accelerator for job in jobs}):
        yield f"accelerator {key}", without("accelerators", key)
    for key in sorted({job.precision for job in jobs}):
        yield f"format {key}", without("schemes", key)
    for key in sorted({group.cooling for group in plan.servers if group.cooling is not None}):
        yield f"cooling {key}", without("cooling", key)
    for key in sorted({group.sourcing for group in plan.servers}):
        yield f"sourcing {key}", without("sourcing", key)
    if any(job.method != "one_site" for job in jobs):
        yield "training over several sites", searched.on_one_site


def summary(plan: Plan) -> str:
    """What a plan buys or rents, and how it trains."""
    assert plan.training is not None
    parts = []
    for group in plan.servers:
        how = group.cooling or group.sourcing.replace("_", " ")
        parts.append(f"{group.servers:,} x {group.server_type} ({how})")
    formats = ", ".join(sorted({job.precision for job in plan.training.jobs}))
    return " + ".join(parts) + f", {formats}, {plan.training.days:.0f} days"


def difference(plan: Plan, other: Plan) -> str:
    """Where the other plan is dearer, cheaper, larger, slower."""
    before, after = plan.bill.usd_per_year_by_component, other.bill.usd_per_year_by_component
    changes = sorted((after.get(name, 0.0) - before.get(name, 0.0), name) for name in {*before, *after})
    total = plan.bill.usd_per_year
    dearer = [name for usd, name in reversed(changes) if usd > 0.002 * total][:2]
    cheaper = [name for usd, name in changes if usd < -0.002 * total][:2]
    parts = [f"dearer {' and '.join(dearer)}"] if dearer else []
    parts += [f"cheaper {' and '.join(cheaper)}"] if cheaper else []
    if other.accelerators != plan.accelerators:
        parts.append(f"{other.accelerators - plan.accelerators:+,d} accelerators")
    assert plan.training is not None
    assert other.training is not None
    days = other.training.days - plan.training.days
    if abs(days) >= 0.5:
        parts.append(f"{days:+.0f} days")
    return "; ".join(parts) or "nearly the same"
