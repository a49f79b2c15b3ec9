"""The ranking of distinct plans agrees with the enumeration, rank by rank.

At each rank the enumeration lists every way to do without one thing of each plan before it and takes the cheapest; of
plans of equal cost the program may name any, so what is compared is the cost of the rank given the plans before it.
"""

from collections.abc import Iterable
from itertools import product

import pytest

from optimizer.api import solve
from optimizer.plan import Uses
from optimizer.ranking import uses_of
from tests.oracle.enumerate import Answer, TooLarge, answer, without
from tests.oracle.listing import Listing
from tests.oracle.random_instances import Drawn, draw

RANKS = 4
FAST = range(200, 203)
SLOW = range(203, 245)
TOLERANCE = 2e-6
#: A fleet may grow large without its best type; such an instance is not enumerated.
STEPS = 20_000
_WORDS = {"accelerators": "accelerator", "schemes": "scheme", "cooling": "cooling", "sourcing": "sourcing"}


def cheapest_without(listing: Listing, before: Iterable[Uses]) -> Answer | None:
    """The cheapest plan that does without at least one thing of each plan before it."""
    things = [[(word, name) for kind, word in _WORDS.items() for name in getattr(one, kind)] for one in before]
    best: Answer | None = None
    for chosen in {frozenset(row) for row in product(*things)}:
        left = listing
        for word, name in sorted(chosen):
            left = without(left, word, name)
        found = answer(left, STEPS)
        if found is not None and (best is None or found.usd_per_year < best.usd_per_year):
            best = found
    return best


def difference(one: Drawn) -> str | None:
    """Where the ranking is wrong, in one line; None where it agrees."""
    plan = solve(one.instance, runners_up=RANKS).plan
    if plan is None:
        return None
    before = [uses_of(plan)]
    for row in plan.ranking:
        expected = cheapest_without(one.listing, before)
        if expected is None:
            return f"seed {one.seed} rank {row.rank}: {row.summary} where the enumeration has nothing"
        if abs(row.usd_per_year - expected.usd_per_year) > TOLERANCE * expected.usd_per_year:
            return f"seed {one.seed} rank {row.rank}: {row.usd_per_year} but {expected.usd_per_year} by enumeration"
        if any(_holds(row.uses, other) for other in before):
            return f"seed {one.seed} rank {row.rank}: uses all that an earlier plan uses"
        before.append(row.uses)
    if len(plan.ranking) < RANKS and cheapest_without(one.listing, before) is not None:
        return f"seed {one.seed}: the ranking ends after {len(plan.ranking)}, the enumeration goes on"
    return None


def _holds(one: Uses, other: Uses) -> bool:
    return all(set(getattr(other, kind)) <= set(getattr(one, kind)) for kind in _WORDS)


def _check(seeds: range) -> None:
    lines, compared = [], 0
    for seed in seeds:
        try:
            line = difference(draw(seed))
        except TooLarge:
            continue
        compared += 1
        if line is not None:
            lines.append(line)
    assert not lines, "\n".join(lines)
    assert compared >= len(seeds) // 2


def test_ranking_agrees_with_the_enumeration() -> None:
    _check(FAST)


@pytest.mark.slow
def test_ranking_agrees_on_many_instances() -> None:
    _check(SLOW)
