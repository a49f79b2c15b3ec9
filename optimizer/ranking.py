"""The next best plans that differ in what they use: an exact ranking by search over what a plan must do without.

What a plan uses is its set of accelerator types, schemes, cooling options and ways of sourcing. Plan ``k + 1`` of the
ranking is the cheapest one that does without at least one thing of each plan before it. So a plan that only adds a
token of something to an earlier one is no alternative, and layout or concurrency alone make none.
"""

import heapq
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from time import perf_counter

from optimizer.answer import Stop, answer, difference, plan_of, summary
from optimizer.offer import Offer, Without
from optimizer.plan import Plan, Ranked, RunnerUp, Uses
from optimizer.solver import Options, Reason

#: One thing that a plan uses: its kind (a field of ``Uses``) and its name.
Thing = tuple[str, str]
Things = frozenset[Thing]

#: Differences below this share of the plan's own figure are not worth a word.
_WORTH = 0.005


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


class Stopped(Exception):  # noqa: N818 - it reports how a search ended
    """Time was up, or the search was asked to stop."""


@dataclass(slots=True)
class Ranking:
    """Plans in the order of their cost; ``is_complete`` says that no further one was lost to time."""

    plans: list[Plan]
    is_complete: bool


def next_best(
    best: Callable[[Things], tuple[float, Things, Plan] | None], first: tuple[float, Things], count: int
) -> Iterator[Plan]:
    """The next best plans after the first one, cheapest first, at most ``count``.

    ``best(W)`` gives cost, things and the plan itself of the cheapest plan without any thing of ``W``; None: no plan.

    Proof. A plan is allowed when it does without a thing of every listed plan, so it lies in ``best(W)``'s program for
    some ``W`` that holds a thing of each listed plan. The queue holds a subset of each such ``W`` at all times: it
    starts with one thing of the first plan each, and a set that misses a listed plan is replaced by its extensions
    with each thing of it. A superset costs no less, so a set stands in the queue at its own least cost or, before it
    is solved, at that of the set it extends. What leaves the queue at its own cost and misses no listed plan is
    therefore the cheapest allowed plan.
    """
    listed = [first[1]]
    seen: set[Things] = set()
    queue: list[tuple[float, int, tuple[Thing, ...]]] = []
    solved: dict[Things, tuple[Things, Plan]] = {}

    def extend(things: Things, by: Things, cost: float) -> None:
        for one in sorted(by):
            wider = things | {one}
            if wider not in seen:
                seen.add(wider)
                # Solved sets go before unsolved ones of equal bound, so that equal costs are not solved in vain.
                heapq.heappush(queue, (cost, 1, tuple(sorted(wider))))

    extend(frozenset(), first[1], first[0])
    found = 0
    while queue and found < count:
        cost, unsolved, key = heapq.heappop(queue)
        things = frozenset(key)
        missed = next((one for one in listed if not one & things), None)
        if missed is not None:
            extend(things, missed, cost)
        elif unsolved:
            cheapest = best(things)
            if cheapest is not None:
                solved[things] = cheapest[1:]
                heapq.heappush(queue, (max(cost, cheapest[0]), 0, key))
        else:
            used, plan = solved[things]
            listed.append(used)
            found += 1
            yield plan
            extend(things, used, cost)


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
    cost = plan.bill.usd_per_hour
    rows = []
    for rank, other in enumerate(found.plans, 2):
        better, worse = compared(plan, other)
        rows.append(
            Ranked(
                rank=rank,
                summary=summary(other),
                uses=uses_of(other),
                holds="proven" if other.outcome.holds == "proven" else "feasible",
                usd_per_hour=other.bill.usd_per_hour,
                usd_per_year=other.bill.usd_per_year,
                extra_fraction=other.bill.usd_per_hour / cost - 1.0 if cost else 0.0,
                capital_usd=other.bill.capital_usd,
                accelerators=other.accelerators,
                power_kw=other.power_kw,
                better=better,
                worse=worse,
                reason=difference(plan, other),
            )
        )
    return tuple(rows)


def uses_of(plan: Plan) -> Uses:
    """What a plan uses, as it is written down."""
    names: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for kind, name in sorted(things_of(plan)):
        names[kind].append(name)
    return Uses(**{kind: tuple(found) for kind, found in names.items()})


def compared(plan: Plan, other: Plan) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(better, worse): figures in which the other plan differs from the plan, most telling first."""
    better: list[str] = []
    worse: list[str] = []
    for label, before, after, less_is_better in _figures(plan, other):
        if abs(after - before) <= _WORTH * max(abs(before), abs(after)):
            continue
        change = f"{after / before - 1.0:+.1%}" if before else "from none"
        text = f"{label} {_short(before)} -> {_short(after)} ({change})"
        (better if (after < before) == less_is_better else worse).append(text)
    return tuple(better), tuple(worse)


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


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.4g}"


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
