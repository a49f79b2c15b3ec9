"""The next best plans that differ in what they use: an exact ranking by search over what a plan must do without.

What a plan uses is its set of accelerator types, schemes, cooling options and ways of sourcing. Plan ``k + 1`` of the
ranking is the cheapest one that does without at least one thing of each plan before it. So a plan that only adds a
token of something to an earlier one is no alternative, and layout or concurrency alone make none.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from time import perf_counter

from optimizer.answer import Stop, answer, difference, plan_of, summary
from optimizer.next_best import Ranking, Stopped, Things, Told, next_best, ranked_row, told_apart
from optimizer.offer import Offer, Without
from optimizer.plan import Plan, Ranked, RunnerUp, Uses
from optimizer.solver import Options, Reason

#: Kinds of things, in the order in which they are told.
KINDS = ("accelerators", "schemes", "cooling", "sourcing")


def things_of(plan: Plan, kinds: Collection[str] = KINDS) -> Things:
    """What a plan uses, of the given kinds."""
    pools = plan.servers
    found = {
        *(("accelerators", one.accelerator) for one in pools),
        *(("schemes", f"{one.scheme}+{one.kv_scheme}+{one.recovery}") for one in plan.deployments),
        *(("cooling", one.cooling) for one in pools if one.cooling is not None),
        *(("sourcing", one.sourcing) for one in pools),
    }
    return frozenset(one for one in found if one[0] in kinds)


def _without(things: Things) -> Without:
    return Without(**{kind: frozenset(name for one, name in things if one == kind) for kind in KINDS})


def ranking(
    offer: Offer,
    plan: Plan,
    count: int,
    options: Options,
    stop: Stop | None = None,
    deadline: float = float("inf"),
    known: dict[Things, Plan | None] | None = None,
    kinds: Collection[str] = KINDS,
) -> Ranking:
    """The ``count`` next best plans after the cheapest one, each solved to the asked gap.

    ``kinds``: what makes plans distinct; with accelerators alone, each further plan has another mix of types.
    ``known``: answers at hand, by what they do without. A set whose answer is also that of a smaller one (it uses
    nothing of what is left out besides) is not solved again.
    """
    answers: dict[Things, Plan | None] = {frozenset(): plan, **(known or {})}

    def best(things: Things) -> tuple[float, Things, Plan] | None:
        found = _known(answers, things)
        if isinstance(found, _Unknown):
            left = deadline - perf_counter()
            if left <= 0.0 or (stop is not None and stop()):
                raise Stopped
            solved = answer(offer, replace(options, time_limit_s=left), _without(things), stop, break_ties=False)
            if solved.fleet is None and solved.outcome.reason is not Reason.INFEASIBLE:
                raise Stopped
            found = None if solved.fleet is None else plan_of(offer, solved, options)
            answers[things] = found
        return None if found is None else (found.bill.usd_per_hour, things_of(found, kinds), found)

    plans: list[Plan] = []
    try:
        plans.extend(next_best(best, (plan.bill.usd_per_hour, things_of(plan, kinds)), count))
    except Stopped:
        return Ranking(plans, False)
    return Ranking(plans, True)


class _Unknown:
    """No answer is at hand."""


def _known(answers: dict[Things, Plan | None], things: Things) -> Plan | _Unknown | None:
    for other, found in answers.items():
        if other <= things and (found is None or not things & things_of(found)):
            return found
    return _Unknown()


def ranked_rows(plan: Plan, found: Ranking) -> tuple[Ranked, ...]:
    """Rows of a plan's ranking, each held against the plan."""
    return tuple(
        ranked_row(
            plan,
            other,
            rank,
            uses=uses_of(other),
            summary=summary(other),
            reason=difference(plan, other),
            figures=compared(plan, other),
        )
        for rank, other in enumerate(found.plans, 2)
    )


def uses_of(plan: Plan) -> Uses:
    """What a plan uses, as it is written down."""
    names: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for kind, name in sorted(things_of(plan)):
        names[kind].append(name)
    return Uses(**{kind: tuple(found) for kind, found in names.items()})


def compared(plan: Plan, other: Plan) -> Told:
    """(better, worse): figures in which the other plan differs from the plan, most telling first."""
    return told_apart(_figures(plan, other))


def _figures(plan: Plan, other: Plan) -> Iterator[tuple[str, float, float, bool]]:
    """(label, of the plan, of the other one, whether less is better)."""

    def both(figure: Callable[[Plan], float]) -> tuple[float, float]:
        return figure(plan), figure(other)

    yield "capital, USD", *both(lambda one: one.bill.capital_usd), True
    yield "accelerators", *both(lambda one: float(one.accelerators)), True
    yield "power, kW", *both(lambda one: one.power_kw), True
    yield "racks", *both(lambda one: float(sum(group.racks for group in one.servers))), True
    yield "longest TPOT, ms", *both(lambda one: max(run.prediction.tpot_ms for run in one.deployments)), True
    yield "longest TTFT, ms", *both(lambda one: max(run.prediction.ttft_ms for run in one.deployments)), True
    yield (
        "expected loss of accuracy",
        *both(lambda one: 1.0 - min(run.prediction.accuracy_mean for run in one.deployments)),
        True,
    )
    yield "share of cost assumed", *both(lambda one: one.bill.assumed_fraction), True


#: Kinds of things by the word that a runner-up's row uses for them.
_KINDS = {"accelerator": "accelerators", "scheme": "schemes", "cooling": "cooling", "sourcing": "sourcing"}


def without_each(others: list[tuple[RunnerUp, Plan | None]]) -> dict[Things, Plan | None]:
    """Answers at hand for a ranking: the plans that do without one thing each."""
    known: dict[Things, Plan | None] = {}
    for row, found in others:
        word, _, name = row.without.partition(" ")
        if word in _KINDS:
            known[frozenset({(_KINDS[word], name)})] = found
    return known


def ranked(plan: Plan, found: Ranking, asked: int) -> Plan:
    """The plan with its ranking, and a message where it is shorter than asked."""
    told = plan.messages
    if not found.is_complete:
        told = (f"the time limit came before rank {len(found.plans) + 2} was known", *told)
    elif len(found.plans) < asked:
        told = (f"there are {len(found.plans)} further distinct plans, not {asked}", *told)
    return plan.model_copy(update={"ranking": ranked_rows(plan, found), "messages": told})
