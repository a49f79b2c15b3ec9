"""Why the plan of a run does not make a choice: the instance is solved with the choice forced."""

import time
from collections.abc import Iterator
from typing import Any, Final

from optimizer.catalog import Catalog, load_catalog
from optimizer.errors import InternalError
from optimizer.instance.model import Instance
from optimizer.limits import limit
from optimizer.plan import Plan
from optimizer.proposals.result import OutsideChoice
from optimizer.proposals.telling import distance_to
from optimizer.setting import instance_catalog
from optimizer.solver import Options, Reason, solver_name
from optimizer.training.answer import Searched, Stop, answer, best_plan, search
from optimizer.training.diagnose import diagnose
from optimizer.training.evaluate import bounds_of
from optimizer.training.extract import make_plan
from optimizer.training.places import training_accelerator
from optimizer.training.ranking import compared
from optimizer.training.runners_up import summary
from optimizer.verify import verify
from optimizer.whynot.result import NearestValue, Verdict, WhyNot
from optimizer.whynot.training_asked import AskedRun

#: A difference of cost below this share is none.
_SAME: Final = 2e-6


def why_not_run(instance: Instance, asked: AskedRun, options: Options, stop: Stop | None, deadline: float) -> WhyNot:
    """Why the cheapest plan does not make a choice. ``instance`` is resolved. Raises StoppedWithoutPlan."""
    best = best_plan(instance, options)
    catalog: Catalog = instance_catalog(instance, load_catalog())
    outside = tuple(OutsideChoice(field=field, value=value) for field, value in asked.left_out(instance, catalog))
    searched = search(asked.forced(instance))
    missing = _missing(searched)
    if missing:
        return _told(instance, asked, "cannot_be_had", f"{asked.text} cannot be had: {missing}", outside, (missing,))
    found = answer(searched.program(), options, stop)
    if found.runs is not None:
        plan = make_plan(searched, found, options, solver_name())
        findings = verify(plan)
        if findings:
            raise InternalError("a forced plan does not stand:\n" + "\n".join(str(one) for one in findings[:20]))
        return _priced(instance, asked, best, plan, outside)
    if found.outcome.reason is not Reason.INFEASIBLE:
        why = f"stopped by {found.outcome.reason.value.replace('_', ' ')} before it was known"
        return _told(instance, asked, "unknown", why, outside, ())
    diagnosis = diagnose(searched, options, stop, max(deadline, time.perf_counter()), widen=False)
    values = tuple(nearest_values(searched))
    changes = tuple(
        one for one in diagnosis.changes if not (one.field == "workload.accelerator_counts" and "count" in asked.values)
    )
    return _told(
        instance,
        asked,
        "breaks_limits",
        _why(searched, asked, values),
        outside,
        (),
        nearest_values=values,
        nearest=diagnosis.nearest,
        changes=changes,
    )


def _missing(searched: Searched) -> str:
    """Why there is nothing to try at all; empty where there is."""
    if not searched.prices:
        ways = ", ".join(searched.instance.choices.sourcing)
        return f"no whole server of it has a price ({ways}) and a cooling that it can take"
    for job, options in zip(searched.jobs, searched.options, strict=True):
        lead = f"{job.name}: " if len(searched.jobs) > 1 else ""
        if not options:
            return f"{lead}no matrix units of {', '.join(job.precisions)} are there, or no layout suits the model"
        if not any(one.tried for one in options):
            return f"{lead}no layout of it suits the model, the batch and the count"
    return ""


def nearest_values(searched: Searched) -> Iterator[NearestValue]:
    """Limits that keep layouts out of a job that has none left, with the best that any of them reaches."""
    rows = []
    for job, options in zip(searched.jobs, searched.options, strict=True):
        if any(one.admissible for one in options):
            continue
        best: dict[str, tuple[float, float]] = {}
        kills: dict[str, int] = {}
        for one in options:
            bounds = bounds_of(searched.instance, job, training_accelerator(one.server_type.accelerator))
            needed = {
                "training_vram_gib": bounds.memory_gib,
                "training_vram_cap_gib": bounds.memory_cap_gib,
                "training_nvlink": bounds.scale_up_fraction,
                "training_nvlink_cap_gb_s": bounds.scale_up_cap_gb_s,
                "scale_out_fraction": bounds.scale_out_fraction,
                "mfu_fraction": bounds.mfu_fraction,
                "deadline_days": bounds.days,
                "accelerator_count": bounds.accelerators,
            }
            for name, reached in one.extremes.items():
                kills[name] = kills.get(name, 0) + one.broken.get(name, 0)
                sign = 1.0 if limit(name).direction == "<=" else -1.0
                known = best.get(name)
                if known is None or sign * (reached - needed[name]) < sign * (known[0] - known[1]):
                    best[name] = (reached, needed[name])
        for name, (reached, bound) in best.items():
            if kills[name]:
                rule = limit(name)
                rows.append(
                    NearestValue(
                        limit=name,
                        field=rule.field,
                        unit=rule.unit,
                        direction=rule.direction,
                        needed=bound,
                        reached=reached,
                        request_class=job.name,
                        kills=kills[name],
                        candidates=sum(one.tried for one in options),
                    )
                )
    yield from sorted(rows, key=lambda row: (-row.kills, row.limit))


def _why(searched: Searched, asked: AskedRun, values: tuple[NearestValue, ...]) -> str:
    always = [row for row in values if row.kills == row.candidates]
    if always:
        row = always[0]
        needed = f"{row.direction} {row.needed:,.4g} needed"
        return f"{asked.text} breaks {row.field}: {row.reached:,.4g} {row.unit} at best, {needed}"
    if values:
        names = ", ".join(dict.fromkeys(row.field for row in values[:3]))
        return f"{asked.text}: no layout of it keeps {names} together"
    broken: dict[str, int] = {}
    for one in searched.choices:
        for name, count in one.broken.items():
            broken[name] = broken.get(name, 0) + count
    ranked = sorted(((count, name) for name, count in broken.items() if count), reverse=True)[:3]
    names = ", ".join(dict.fromkeys(limit(name).field for _, name in ranked))
    told = f": {names} broken" if names else ""
    return f"{asked.text}: layouts of it keep their limits, but no fleet does{told}"


def _priced(
    instance: Instance, asked: AskedRun, best: Plan | None, plan: Plan, outside: tuple[OutsideChoice, ...]
) -> WhyNot:
    """The answer where servers of the choice keep every limit."""
    if best is None:
        words = f"{asked.text} keeps every limit, where the instance's own choices have no plan: {summary(plan)}"
        return _told(instance, asked, "costs_less", words, outside, (), plan=plan)
    extra = plan.bill.usd_per_year / best.bill.usd_per_year - 1.0 if best.bill.usd_per_year else 0.0
    same = abs(extra) <= _SAME
    verdict: Verdict = "costs_the_same" if same else "costs_more" if extra > 0.0 else "costs_less"
    if same and not outside and summary(plan) == summary(best):
        verdict = "is_the_plan"
    words = {
        "is_the_plan": "is what the plan does",
        "costs_the_same": "costs the same: the plan is one of several",
        "costs_more": f"costs {extra:+.1%}",
        "costs_less": f"costs {extra:+.1%}, but the instance's choices leave it out",
    }[verdict]
    better, worse = compared(best, plan)
    return _told(
        instance,
        asked,
        verdict,
        f"{asked.text} {words}: {summary(plan)}",
        outside,
        (),
        distance=distance_to(best, plan),
        better=better,
        worse=worse,
        plan=plan,
    )


def _told(
    instance: Instance,
    asked: AskedRun,
    verdict: Verdict,
    words: str,
    outside: tuple[OutsideChoice, ...],
    reasons: tuple[str, ...],
    **more: Any,
) -> WhyNot:
    """An answer; what is not given is empty."""
    return WhyNot(
        name=instance.name,
        kind="training",
        asked=asked.text,
        verdict=verdict,
        summary=words,
        outside=outside,
        reasons=reasons,
        **more,
    )
