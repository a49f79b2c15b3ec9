"""The next best plans for training that differ in type, format, cooling, sourcing or site: an exact ranking.

The search is that of serving (``optimizer.next_best``): what differs is how the cheapest plan without some things is
found. Each step makes the choices of every job anew from the pools and formats that remain, so that of one job the
answer is the cheapest there is; of several too, unless the program must leave runs out (``narrowing``).
"""

import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final

from optimizer.instance.model import Instance
from optimizer.next_best import Ranking, Stopped, Things, Told, next_best, ranked_row, told_apart
from optimizer.plan import Plan, Ranked, Uses
from optimizer.solver import Options, Reason
from optimizer.training.answer import Searched, Stop, answer, search
from optimizer.training.extract import make_plan
from optimizer.training.runners_up import difference, summary

#: Kinds of things, in the order in which they are told.
KINDS: Final = ("accelerators", "schemes", "cooling", "sourcing", "sites")


def things_of(plan: Plan, kinds: Collection[str] = KINDS) -> Things:
    """What a plan uses, of the given kinds."""
    assert plan.training is not None
    bought = {group.pool for group in plan.servers if group.sourcing == "buy"}
    found = {
        *(("accelerators", one.accelerator) for one in plan.servers),
        *(("schemes", job.precision) for job in plan.training.jobs),
        *(("cooling", one.cooling) for one in plan.servers if one.cooling is not None),
        *(("sourcing", one.sourcing) for one in plan.servers),
    }
    if plan.instance.sites:
        found |= {("sites", part.site) for job in plan.training.jobs for part in job.parts if part.pool in bought}
    return frozenset(one for one in found if one[0] in kinds)


def uses_of(plan: Plan) -> Uses:
    """What a plan uses, as it is written down."""
    names: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for kind, name in sorted(things_of(plan)):
        names[kind].append(name)
    return Uses(**{kind: tuple(found) for kind, found in names.items()})


def cheapest_without(
    searched: Searched, things: Things, options: Options, stop: Stop | None, deadline: float
) -> Plan | None:
    """The cheapest plan without some things; None where there is none. Raises Stopped when time is up."""
    left = deadline - time.perf_counter()
    if left <= 0.0 or (stop is not None and stop()):
        raise Stopped
    less = searched.without(things)
    found = answer(less.program(), replace(options, time_limit_s=left), stop, break_ties=False)
    if found.runs is None:
        if found.outcome.reason is not Reason.INFEASIBLE:
            raise Stopped
        return None
    return make_plan(searched, found, options, "")


def ranked(
    searched: Searched,
    plan: Plan,
    count: int,
    options: Options,
    stop: Stop | None,
    deadline: float,
    kinds: Collection[str] = KINDS,
) -> Plan:
    """The plan with its ranking, and a message where that is shorter than asked."""
    order = ranking_of(searched, plan, count, options, stop, deadline, kinds or KINDS)
    told = plan.messages
    if not order.is_complete:
        told = (f"the time limit came before rank {len(order.plans) + 2} was known", *told)
    elif len(order.plans) < count:
        told = (f"there are {len(order.plans)} further distinct plans, not {count}", *told)
    rows = tuple(_row(plan, other, rank) for rank, other in enumerate(order.plans, 2))
    return plan.model_copy(update={"ranking": rows, "messages": told})


def next_best_run(instance: Instance, plan: Plan, options: Options) -> Plan | None:
    """The cheapest plan without something that the best ``plan`` of an instance uses; None: there is none in time."""
    deadline = time.perf_counter() + options.time_limit_s
    plans = ranking_of(search(instance), plan, 1, options, None, deadline, KINDS).plans
    return plans[0] if plans else None


def ranking_of(
    searched: Searched,
    plan: Plan,
    count: int,
    options: Options,
    stop: Stop | None,
    deadline: float,
    kinds: Collection[str],
) -> Ranking:
    """The next best plans that are distinct by the given kinds."""
    answers: dict[Things, Plan | None] = {frozenset(): plan}

    def best(things: Things) -> tuple[float, Things, Plan] | None:
        # What is best without less, and uses none of the rest either, is best here too.
        for other, known in answers.items():
            if other <= things and (known is None or not things & things_of(known)):
                found = known
                break
        else:
            found = answers[things] = cheapest_without(searched, things, options, stop, deadline)
        return None if found is None else (found.bill.usd_per_hour, things_of(found, kinds), found)

    plans: list[Plan] = []
    complete = True
    try:
        plans.extend(next_best(best, (plan.bill.usd_per_hour, things_of(plan, kinds)), count))
    except Stopped:
        complete = False
    return Ranking(plans, complete)


def _row(plan: Plan, other: Plan, rank: int) -> Ranked:
    return ranked_row(
        plan,
        other,
        rank,
        uses=uses_of(other),
        summary=summary(other),
        reason=difference(plan, other),
        figures=compared(plan, other),
    )


def compared(plan: Plan, other: Plan) -> Told:
    """(better, worse): figures in which the other plan differs from the plan, most telling first."""
    return told_apart(
        (label, before, after, True)
        for (label, before), (_, after) in zip(_figures(plan), _figures(other), strict=True)
    )


def _figures(plan: Plan) -> Iterator[tuple[str, float]]:
    """Figures of which less is better."""
    training = plan.training
    assert training is not None
    yield "days", training.days
    yield "upper end of the band, days", max(job.start_day + job.days_band[1] for job in training.jobs)
    yield "capital, USD", plan.bill.capital_usd
    yield "accelerators", float(plan.accelerators)
    yield "power, kW", plan.power_kw
    yield "energy, MWh", training.energy_mwh
    yield "racks", float(sum(group.racks for group in plan.servers))
    yield "between sites, Gb/s", max(job.wan_gbit_per_s for job in training.jobs)
    yield "share of cost assumed", plan.bill.assumed_fraction
