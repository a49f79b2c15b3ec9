"""Cases of a sweep over an instance that trains: each is solved by itself, and nothing is taken over."""

from collections.abc import Callable, Iterable

from optimizer.instance.model import Instance
from optimizer.limits import limit
from optimizer.studies.best import best_plan, summary, yearly_usd
from optimizer.studies.sweeping.chains import Case, Stopped
from optimizer.studies.sweeping.rows import Row
from optimizer.ties import Stop


def training_rows(
    base: Instance, cases: Iterable[Case], stop: Stop | None, tell: Callable[[Row], None] | None
) -> list[Row]:
    """Rows of some cases of ``base``, in their order. Raises chains.Stopped where ``stop`` said so."""
    rows = []
    for case in cases:
        if stop is not None and stop():
            raise Stopped
        row = _row(base, case)
        rows.append(row)
        if tell is not None:
            tell(row)
    return rows


def _row(base: Instance, case: Case) -> Row:
    plan = best_plan(case.instance)
    if plan is None or plan.training is None:
        return Row(case.number, case.values, "infeasible", forbidden_by=forbidding(case.instance))
    bill = plan.bill
    return Row(
        case=case.number,
        values=case.values,
        status="optimal" if plan.outcome.holds == "proven" else "feasible",
        winner=summary(plan),
        schemes=tuple(sorted({job.precision for job in plan.training.jobs})),
        accelerators=plan.accelerators,
        usd_per_year=yearly_usd(plan, base),
        capital_usd=bill.capital_usd,
        power_kw=plan.power_kw,
        replicas=sum(job.layout.data_parallel for job in plan.training.jobs),
        usd_per_million_output_tokens=bill.usd_per_million_output_tokens,
        gap_fraction=plan.outcome.gap,
        binding=tuple(dict.fromkeys(limit(row.limit).field for row in plan.headroom if row.binding)),
    )


def forbidding(instance: Instance) -> tuple[str, ...]:
    """Fields of the limits that leave a run without a plan: those that alone keep some way out, else all that any
    way breaks. Where a job has no layout left they are the limits of layouts, else those of its servers."""
    from optimizer.training.answer import search

    searched = search(instance)
    broken: dict[str, int] = {}
    alone: dict[str, int] = {}
    for options, choices in zip(searched.options, searched.choices, strict=True):
        tallies = [choices] if any(one.admissible for one in options) else options
        for one in tallies:
            for name, count in one.broken.items():
                broken[name] = broken.get(name, 0) + count
                alone[name] = alone.get(name, 0) + one.alone.get(name, 0)
    names = [name for name, count in alone.items() if count] or [name for name, count in broken.items() if count]
    ranked = sorted(names, key=lambda name: (-alone[name], -broken[name], name))
    return tuple(dict.fromkeys(limit(name).field for name in ranked))
