"""How old the prices of a plan are."""

import datetime as dt
from dataclasses import dataclass
from typing import Final

from optimizer.catalog.rows import as_of_end
from optimizer.plan import Plan

#: Prices of servers and rent move by more than most bands within a quarter.
OLD_DAYS: Final = 90


@dataclass(frozen=True, slots=True)
class OldPrice:
    """A source of the bill that is older than it should be, and the share of the yearly cost that rests on it."""

    item: str
    as_of: str
    days: int
    share_fraction: float


def old_prices(plan: Plan, today: dt.date, days: int = OLD_DAYS) -> tuple[OldPrice, ...]:
    """Prices more than ``days`` days old, the greatest share of cost first; a coarse date counts as its end.

    Prices without a date (a planner's own) are not called old.
    """
    found: dict[tuple[str, str], OldPrice] = {}
    for line in plan.bill.lines:
        end = as_of_end(line.as_of)
        if end is None or (today - end).days <= days:
            continue
        share = line.usd_per_year / plan.bill.usd_per_year if plan.bill.usd_per_year else 0.0
        before = found.get((line.source, line.as_of))
        item, share = (before.item, before.share_fraction + share) if before else (line.item, share)
        found[line.source, line.as_of] = OldPrice(item, line.as_of, (today - end).days, share)
    return tuple(sorted(found.values(), key=lambda one: (-one.share_fraction, one.item)))
