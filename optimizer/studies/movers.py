"""What a tornado moves: a figure with its range, and the instance that has another value in its place."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from optimizer.catalog import Catalog
from optimizer.instance.economics import AcceleratorPrices
from optimizer.instance.model import Instance
from optimizer.plan import BillLine, Plan

#: How far a price is moved where the catalogue states no range.
SPREAD: Final = 0.25

#: price: what the plan pays; assumption: how cost and performance are counted; bound: what must hold.
Kind = Literal["price", "assumption", "bound"]
#: Neighbour of the instance, and the catalogue it stands on (None: the packaged one).
Neighbour = tuple[Instance, Catalog | None]


@dataclass(frozen=True, slots=True, eq=False)
class Mover:
    """A figure that can be moved: its range with what the range rests on, and the instance with another value.

    ``basis`` is ``catalogue range``, ``+-25 %`` or the words of ``plausible_ranges``.
    """

    name: str
    field: str
    unit: str
    now: float
    low: float
    high: float
    basis: str
    trust: str
    as_of: str
    at: Callable[[float], Neighbour]
    kind: Kind = "price"


def row_of(plan: Plan, table: str, key: str) -> dict[str, Any]:
    return next((one.row for one in plan.catalog_rows if one.table == table and one.id == key), {})


def ends_of(now: float, row: dict[str, Any], form: str, base: str) -> tuple[float, float, str]:
    """Low and high of a row in proportion to the figure used, or the spread where the row states none."""
    figures = [row.get(form.format(name)) for name in ("low", base, "high")]
    if any(figure is None for figure in figures) or not figures[1]:
        return now * (1.0 - SPREAD), now * (1.0 + SPREAD), "+-25 %"
    low, middle, high = (float(figure) for figure in figures if figure is not None)
    return now * low / middle, now * high / middle, "catalogue range"


def with_economics(instance: Instance, **changes: object) -> Instance:
    return instance.model_copy(update={"economics": instance.economics.model_copy(update=changes)})


def with_prices(instance: Instance, accelerator: str, **changes: float) -> Instance:
    """The instance with a price of its own for an accelerator; discounts and other prices stay."""
    prices = dict(instance.economics.prices)
    prices[accelerator] = prices.get(accelerator, AcceleratorPrices()).model_copy(update=changes)
    return with_economics(instance, prices=prices)


def lines_of(plan: Plan, component: str, item: str) -> Iterator[BillLine]:
    return (one for one in plan.bill.lines if one.component == component and one.item.startswith(item))


def economics_mover(
    instance: Instance,
    name: str,
    field: str,
    unit: str,
    now: float,
    line: BillLine,
    row: dict[str, Any],
    own: float | None,
) -> Mover:
    """A field of ``economics``; its range is the row's unless the planner states the figure."""

    def at(value: float) -> Neighbour:
        return with_economics(instance, **{field: value}), None

    ends = ends_of(now, row if own is None else {}, "{}", "typical")
    return Mover(name, f"economics.{field}", unit, now, *ends, line.trust, line.as_of, at)
