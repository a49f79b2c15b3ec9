"""The next best distinct plans of any kind of work: best-first search over what a plan must do without."""

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from optimizer.plan import Plan, Ranked, Uses

#: One thing that a plan uses: its kind (a field of ``Uses``) and its name.
Thing = tuple[str, str]
Things = frozenset[Thing]
#: (better, worse), in words.
Told = tuple[tuple[str, ...], tuple[str, ...]]

#: Differences below this share of the plan's own figure are not worth a word.
_WORTH = 0.005


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


def told_apart(figures: Iterable[tuple[str, float, float, bool]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(better, worse) of figures: (label, of the plan, of the other one, whether less is better)."""
    better: list[str] = []
    worse: list[str] = []
    for label, before, after, less_is_better in figures:
        if abs(after - before) <= _WORTH * max(abs(before), abs(after)):
            continue
        change = f"{after / before - 1.0:+.1%}" if before else "from none"
        text = f"{label} {_short(before)} -> {_short(after)} ({change})"
        (better if (after < before) == less_is_better else worse).append(text)
    return tuple(better), tuple(worse)


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.4g}"


def ranked_row(plan: Plan, other: Plan, rank: int, *, uses: Uses, summary: str, reason: str, figures: Told) -> Ranked:
    """A row of a plan's ranking; ``figures`` are what is (better, worse) about the other one."""
    cost = plan.bill.usd_per_hour
    better, worse = figures
    return Ranked(
        rank=rank,
        summary=summary,
        uses=uses,
        holds="proven" if other.outcome.holds == "proven" else "feasible",
        usd_per_hour=other.bill.usd_per_hour,
        usd_per_year=other.bill.usd_per_year,
        extra_fraction=other.bill.usd_per_hour / cost - 1.0 if cost else 0.0,
        capital_usd=other.bill.capital_usd,
        accelerators=other.accelerators,
        power_kw=other.power_kw,
        better=better,
        worse=worse,
        reason=reason,
    )
