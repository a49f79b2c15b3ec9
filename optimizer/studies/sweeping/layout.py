"""How a sweep's cases are cut into pieces of work: the same pieces whoever does them, so the same answers."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from types import MappingProxyType
from typing import Any, Final

from optimizer.instance.model import Instance
from optimizer.studies.ranges import Axis, case_count, case_number, case_points
from optimizer.studies.sweeping.kinds import Kind, Looser, kind_of
from optimizer.studies.sweeping.stages import StageKeys

#: Most cases of one piece, by what relates them: few where few are taken over or a solve is long, so that workers share
#: them and little is lost by an interruption.
LONGEST: Final = MappingProxyType(
    {Kind.LIMIT: 128, Kind.DEMAND: 256, Kind.PRICE: 256, Kind.SCREEN: 16, Kind.FLEET: 4, Kind.OTHER: 4}
)

#: Pieces that a sweep of these kinds is cut into, so that workers share a short one too: few, for each begins with a
#: solve that a longer one might have spared, more for caps, near the tightest of which lies most of the work. Fixed:
#: layouts of equal cost, and so the bytes of a result, must not depend on how many workers there are.
SHARED: Final = MappingProxyType({Kind.LIMIT: 8, Kind.DEMAND: 4})

#: Cases that no such piece is cut below: proving so many from a few solves takes no longer than starting a worker.
SHORTEST: Final = 32

#: Number of the way in which cases are cut: pieces that another way left done are not gone on with.
LAYOUT: Final = 3

#: Kinds whose cases can be a chain, the most telling first.
_CHAINED: Final = (Kind.LIMIT, Kind.DEMAND, Kind.PRICE, Kind.SCREEN)


@dataclass(frozen=True, slots=True)
class Piece:
    """Cases that one worker does in one go, in their order, and what relates them.

    ``shape``: of a grid of prices, the count of values of each, the last moving fastest.
    """

    number: int
    kind: Kind
    cases: tuple[int, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Sort:
    """An axis: what its stage sees, what relates its cases, and its points from the loosest to the tightest."""

    stage: Kind
    chain: Kind
    order: tuple[int, ...]


def sorts_of(instance: Instance, axes: Sequence[Axis]) -> tuple[_Sort, ...]:
    """What each axis does to the program."""
    if instance.inventory:
        # Owned servers are priced as what replaces them: their terms hang on more fields than kinds tell apart.
        return tuple(_Sort(Kind.OTHER, Kind.OTHER, tuple(range(len(axis)))) for axis in axes)
    fields = [field for axis in axes for field in axis.fields]
    moved = {field.steps[:2] for field in fields}
    budgets = [("economics", name) for name in ("budget_capex_usd", "budget_usd_per_year")]
    # Under a budget, prices decide what may be bought: the plans that compete change with them.
    has_budget = any(
        getattr(instance.economics, name) is not None or (section, name) in moved for section, name in budgets
    )
    return tuple(_sort(axis, has_budget=has_budget) for axis in axes)


def _sort(axis: Axis, *, has_budget: bool) -> _Sort:
    kinds = {kind_of(field) for field in axis.fields}
    unordered = tuple(range(len(axis)))
    stages = {kind for kind, _ in kinds}
    if len(kinds) != 1:
        return _Sort(stages.pop() if len(stages) == 1 else Kind.OTHER, Kind.OTHER, unordered)
    kind, looser = next(iter(kinds))
    if kind is Kind.PRICE:
        ascending = None if has_budget else _loosest_first(axis.values, "smaller")
        return _Sort(kind, Kind.OTHER if has_budget else kind, unordered if ascending is None else ascending)
    if kind not in _CHAINED:
        return _Sort(kind, Kind.OTHER, unordered)
    order = _loosest_first(axis.values, looser)
    return _Sort(kind, kind if order is not None else Kind.OTHER, unordered if order is None else order)


def _loosest_first(values: Sequence[tuple[Any, ...]], looser: Looser) -> tuple[int, ...] | None:
    """Points from the loosest to the tightest; None where fields of an axis disagree. No limit is the loosest."""
    sign = -1.0 if looser == "larger" else 1.0

    def key(place: int) -> tuple[float, ...]:
        return tuple(-float("inf") if one is None else sign * float(one) for one in values[place])

    order = sorted(range(len(values)), key=key)
    keys = [key(place) for place in order]
    for one, other in pairwise(keys):
        if any(b < a for a, b in zip(one, other, strict=True)):
            return None
    return tuple(order)


def longest(kind: Kind, cases: int, chains: int) -> int:
    """Cases of a piece, of a chain of so many in a sweep of so many ``chains``; pieces of a chain are about as long."""
    shared = min(SHARED.get(kind, 0) // chains, cases // SHORTEST)
    if -(-cases // LONGEST[kind]) > shared or shared < 2:
        return LONGEST[kind]
    return -(-cases // shared)


def pieces(instance: Instance, axes: Sequence[Axis], *, linked: bool = False, reuse: bool = True) -> tuple[Piece, ...]:
    """Every case of a sweep, once, in pieces that do not depend on who does them.

    Without ``reuse`` no case needs another, so pieces are as short as those of cases that nothing relates.
    """
    sorts = sorts_of(instance, axes)
    count = case_count(axes, linked=linked)
    found: list[Piece] = []

    def add(kind: Kind, cases: Sequence[int], chains: int = 1) -> None:
        most = longest(kind, len(cases), chains)
        for start in range(0, len(cases), most):
            part = tuple(cases[start : start + most])
            found.append(Piece(len(found), kind, part, (len(part),)))

    if linked:
        kind, order = (_linked_chain(sorts) if reuse else None) or (Kind.OTHER, tuple(range(count)))
        add(kind, order)
        return tuple(found)
    chain = _chain(sorts, axes) if reuse else None
    if chain is None:
        add(Kind.OTHER, sorted(range(count), key=lambda case: _slowest_first(sorts, axes, case)))
        return tuple(found)
    along, order = chain
    if sorts[along].chain is Kind.PRICE:
        for shape, grid in _price_grids(sorts, axes, along):
            found.append(Piece(len(found), Kind.PRICE, grid, shape))
        return tuple(found)
    groups: dict[tuple[int, ...], list[int]] = {}
    for case in sorted(range(count), key=lambda case: _slowest_first(sorts, axes, case)):
        points = case_points(axes, case)
        groups.setdefault((*points[:along], *points[along + 1 :]), []).append(case)
    place = {point: rank for rank, point in enumerate(order)}
    for cases in groups.values():
        add(sorts[along].chain, sorted(cases, key=lambda case: place[case_points(axes, case)[along]]), len(groups))
    return tuple(found)


def _price_grids(
    sorts: Sequence[_Sort], axes: Sequence[Axis], along: int
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(shape, cases) of grids of all prices, axis ``along`` moving fastest, for each value of the other axes."""
    priced = [place for place, sort in enumerate(sorts) if sort.chain is Kind.PRICE and place != along] + [along]
    others = [place for place in range(len(axes)) if place not in priced]
    # Blocks are as long as may be along the last price, then along the one before it.
    room = LONGEST[Kind.PRICE]
    parts: dict[int, list[tuple[int, ...]]] = {}
    for place in reversed(priced):
        order, most = sorts[place].order, max(1, min(room, len(axes[place])))
        parts[place] = [order[start : start + most] for start in range(0, len(order), most)]
        room //= most
    rank = {Kind.OTHER: 0, Kind.SCREEN: 1}
    others.sort(key=lambda place: (rank.get(sorts[place].stage, 3), place))
    for fixed in product(*(range(len(axes[place])) for place in others)):
        for blocks in product(*(parts[place] for place in priced)):
            points = [0] * len(axes)
            cases = []
            for moving in product(*blocks):
                for place, point in zip([*others, *priced], [*fixed, *moving], strict=True):
                    points[place] = point
                cases.append(case_number(axes, points))
            yield tuple(len(block) for block in blocks), tuple(cases)


def _slowest_first(sorts: Sequence[_Sort], axes: Sequence[Axis], case: int) -> tuple[int, ...]:
    """Order of cases in which the most costly stage changes least often."""
    rank = {Kind.OTHER: 0, Kind.SCREEN: 1, Kind.PRICE: 2}
    points = case_points(axes, case)
    places = sorted(range(len(axes)), key=lambda place: (rank.get(sorts[place].stage, 3), place))
    return tuple(points[place] for place in places)


def _chain(sorts: Sequence[_Sort], axes: Sequence[Axis]) -> tuple[int, tuple[int, ...]] | None:
    """The axis that cases are chained along: the longest one of the kinds that tell most; None where there is none."""
    best = None
    for place, (sort, axis) in enumerate(zip(sorts, axes, strict=True)):
        if sort.chain in _CHAINED and len(axis) > 1:
            key = (sort.chain is not Kind.SCREEN, len(axis), place)
            if best is None or key > best[0]:
                best = (key, place)
    return None if best is None else (best[1], sorts[best[1]].order)


def _linked_chain(sorts: Sequence[_Sort]) -> tuple[Kind, tuple[int, ...]] | None:
    """Kind and order of cases whose axes move together; None where they do not agree."""
    kinds, orders = {sort.chain for sort in sorts}, {sort.order for sort in sorts}
    kind = next(iter(kinds))
    if len(kinds) != 1 or kind not in _CHAINED or (len(orders) != 1 and kind is not Kind.PRICE):
        return None
    # Prices need no order.
    return kind, sorts[0].order


def stage_keys(sorts: Sequence[_Sort], points: Sequence[int]) -> StageKeys:
    """Keys of the stages that a case shares with others."""

    def of(*kinds: Kind) -> Hashable:
        return tuple(point for sort, point in zip(sorts, points, strict=True) if sort.stage in kinds)

    return StageKeys(base=of(Kind.OTHER), screen=of(Kind.SCREEN), price=of(Kind.PRICE))
