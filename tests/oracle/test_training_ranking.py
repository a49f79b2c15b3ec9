"""The next best plans for training are those of the enumeration, rank by rank."""

import pytest

from optimizer.api import solve
from optimizer.catalog import load_catalog
from optimizer.instance.model import Instance
from optimizer.plan import Plan, Uses
from tests.oracle.random_training import draw_training, instance_of
from tests.oracle.training import Way, ways

RANKS = 4
FAST = range(14)
SLOW = range(14, 75)
TOLERANCE = 1e-9
_KINDS = ("accelerators", "schemes", "cooling", "sourcing", "sites")

Things = frozenset[tuple[str, str]]


def _of_way(instance: Instance, way: Way) -> Things:
    """Type, format, cooling or term, and named sites of bought servers."""
    cooling = load_catalog().cooling
    found = {("schemes", way.precision)}
    for (site, accelerator, pool, _), _ in way.held:
        bought = pool in cooling
        found |= {("accelerators", accelerator), ("sourcing", "buy" if bought else pool)}
        found |= {("cooling", pool)} if bought else set()
        found |= {("sites", site)} if bought and instance.sites else set()
    return frozenset(found)


def _of_uses(uses: Uses) -> Things:
    return frozenset((kind, name) for kind in _KINDS for name in getattr(uses, kind))


def _plan_things(plan: Plan) -> Things:
    from optimizer.training.ranking import things_of

    return things_of(plan)


def difference(seed: int) -> tuple[int, str | None]:
    """(ranks compared, where the ranking is wrong in one line)."""
    instance = instance_of(draw_training(seed))
    plan = solve(instance, runners_up=RANKS).plan
    if plan is None:
        return 0, None
    least: dict[Things, float] = {}
    for way in ways(instance, instance.workload.all_jobs()[0]):  # type: ignore[union-attr]  # it trains
        key = _of_way(instance, way)
        least[key] = min(least.get(key, way.usd), way.usd)
    share = plan.training.usd / plan.bill.usd_per_year if plan.training else 1.0
    before = [_plan_things(plan)]

    def expected() -> float | None:
        return min((usd for key, usd in least.items() if not any(one <= key for one in before)), default=None)

    for row in plan.ranking:
        usd, wanted = row.usd_per_year * share, expected()
        if wanted is None:
            return 0, f"seed {seed} rank {row.rank}: {row.summary} where the enumeration has nothing"
        if abs(usd - wanted) > TOLERANCE * wanted:
            return 0, f"seed {seed} rank {row.rank}: {usd} but {wanted} by enumeration"
        if any(one <= _of_uses(row.uses) for one in before):
            return 0, f"seed {seed} rank {row.rank}: uses all that an earlier plan uses"
        before.append(_of_uses(row.uses))
    if len(plan.ranking) < RANKS and expected() is not None:
        return 0, f"seed {seed}: the ranking ends after {len(plan.ranking)}, the enumeration goes on"
    return len(plan.ranking), None


def _check(seeds: range) -> int:
    found = [difference(seed) for seed in seeds]
    lines = [line for _, line in found if line is not None]
    assert not lines, "\n".join(lines)
    return sum(count for count, _ in found)


def test_ranking_agrees_with_the_enumeration() -> None:
    assert _check(FAST) >= 6


@pytest.mark.slow
def test_rankings_of_sixty_random_instances_agree_with_the_enumeration() -> None:
    assert _check(SLOW) >= 45
