"""From an evaluated proposal and the optimum to the evaluation that is written."""

from typing import Literal

from optimizer.instance.model import Instance
from optimizer.plan import Plan
from optimizer.plan_training import TrainingPlan
from optimizer.proposals.baseline import said
from optimizer.proposals.broken import Evaluated
from optimizer.proposals.kinds import summary_of
from optimizer.proposals.result import BrokenLimit, Distance, Evaluation, OutsideChoice


def evaluation(
    instance: Instance,
    name: str,
    found: Evaluated,
    best: Plan | None,
    state: Literal["solved", "infeasible", "stopped", "not asked"],
) -> Evaluation:
    """The evaluation of a proposal beside the optimum."""
    distance = None if best is None else distance_to(best, found.plan)
    told = list(found.told)
    if distance is not None and distance.extra_usd_per_year < 0.0:
        why = "breaks limits" if found.broken else "uses what the choices leave out" if found.outside else ""
        if why:
            told.append(f"it costs less than the optimum because it {why}")
    return Evaluation(
        name=instance.name,
        proposal=name,
        keeps_every_limit=not found.broken,
        is_allowed=not found.outside,
        broken=tuple(
            BrokenLimit(
                limit=row.limit,
                field=row.field,
                label=row.label,
                unit=row.unit,
                direction=row.direction,
                needed=row.needed,
                reached=row.reached,
                where=row.where,
                summary=said(row),
            )
            for row in found.broken
        ),
        outside=tuple(OutsideChoice(field=field, value=value) for field, value in found.outside),
        limits=found.plan.headroom,
        optimum=distance,
        optimum_state=state,
        messages=(*told, *found.plan.messages),
        plan=found.plan,
    )


def distance_to(best: Plan, plan: Plan) -> Distance:
    """A plan beside the optimum."""
    mine, theirs = plan.bill, best.bill
    components = dict.fromkeys((*theirs.usd_per_year_by_component, *mine.usd_per_year_by_component), 0.0)
    for key in components:
        before, after = theirs.usd_per_year_by_component.get(key, 0.0), mine.usd_per_year_by_component.get(key, 0.0)
        components[key] = after - before
    extra = mine.usd_per_year - theirs.usd_per_year
    return Distance(
        summary=summary_of(best),
        holds="proven" if best.outcome.holds == "proven" else "feasible",
        usd_per_hour=theirs.usd_per_hour,
        usd_per_year=theirs.usd_per_year,
        capital_usd=theirs.capital_usd,
        accelerators=best.accelerators,
        power_kw=best.power_kw,
        extra_usd_per_year=extra,
        extra_fraction=extra / theirs.usd_per_year if theirs.usd_per_year else 0.0,
        extra_usd_per_year_by_component=components,
        extra_capital_usd=mine.capital_usd - theirs.capital_usd,
        extra_accelerators=plan.accelerators - best.accelerators,
        extra_power_kw=plan.power_kw - best.power_kw,
        **({} if best.training is None or plan.training is None else _of_runs(best.training, plan.training)),
    )


def _of_runs(best: TrainingPlan, plan: TrainingPlan) -> dict[str, float]:
    """Days and whole cost of the optimum's jobs, and how far the plan's are from them."""
    return {
        "usd": best.usd,
        "days": best.days,
        "extra_usd": plan.usd - best.usd,
        "extra_days": plan.days - best.days,
    }
