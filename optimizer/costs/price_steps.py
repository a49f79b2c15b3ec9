"""Prices that fall with quantity: steps of a discount, and what is cheapest to order for a given need."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

#: A larger order is taken where it costs less by more than this share: sums of prices round.
CHEAPER = 1e-9


class PriceStep(NamedTuple):
    """From ``first`` units on: price of one more unit, and what all of them cost beyond that (paid once), in USD."""

    first: float
    usd: float
    offset_usd: float

    def of(self, amount: float) -> float:
        """Cost (USD) of an amount within the step."""
        return self.offset_usd + self.usd * amount


def price_steps(
    list_usd: float,
    discounts: Iterable[tuple[float, float]],
    kind: Literal["all_units", "incremental"],
    *,
    start: float,
    counted: bool,
) -> tuple[PriceStep, ...]:
    """Steps of a price under ``discounts`` as (first amount, share taken off), rising; the first starts at ``start``.

    All-units discounts price everything in the step alike (offset 0). Incremental discounts price only what lies beyond
    each step, so the step's line starts from the dearer units below it: that difference is the offset. ``counted``:
    units are whole, and the unit numbered ``first`` is the first at the lower price.
    """
    found = [PriceStep(start, list_usd, 0.0)]
    offset, previous = 0.0, list_usd
    for first, share in discounts:
        usd = list_usd * (1.0 - share)
        if kind == "incremental":
            offset += (previous - usd) * (first - 1 if counted else first)
        found.append(PriceStep(first, usd, offset))
        previous = usd
    return tuple(found)


def reached_step(steps: Sequence[PriceStep], amount: float) -> int:
    """The last step that starts at ``amount`` or below it; the first where none does."""
    return max(place for place, one in enumerate(steps) if place == 0 or one.first <= amount * (1.0 + CHEAPER))


def cheapest_order(steps: Sequence[PriceStep], amount: float) -> tuple[int, float]:
    """(step, amount ordered) of the cheapest order of at least ``amount``: that, or up to where a later one starts.

    Within a step cost rises with the amount, so nothing else can be cheaper. ``steps`` rise by ``first``.
    """
    best, ordered = reached_step(steps, amount), amount
    for place in range(best + 1, len(steps)):
        first = steps[place].first
        if steps[place].of(first) < steps[best].of(ordered) * (1.0 - CHEAPER):
            best, ordered = place, first
    return best, ordered
