"""What has to be ordered of network and cooling plant, and at what price, by the checker's own count of the offers."""

from collections.abc import Sequence
from typing import NamedTuple

from optimizer.catalog.rows import CoolingOption, Fabric
from optimizer.verify.facts import Facts

#: A larger order is taken where it costs less by more than this share.
_LESS = 1e-9


class Order(NamedTuple):
    """An order: how much, the price of each unit, and what all of them cost beyond that."""

    amount: float
    usd: float
    dearer_usd: float

    @property
    def total_usd(self) -> float:
        """Price of the order."""
        return self.amount * self.usd + self.dearer_usd


def priced(list_usd: float, amount: float, steps: Sequence[tuple[float, float]], kind: str, *, counted: bool) -> Order:
    """An order of exactly ``amount`` under discounts (start, share off).

    The step reached prices every unit; incremental discounts leave those below each step dearer.
    """
    reached = [step for step in steps if amount * (1.0 + _LESS) >= step[0]]
    usd = list_usd * (1.0 - (reached[-1][1] if reached else 0.0))
    if kind == "all_units":
        return Order(amount, usd, 0.0)
    dearer = before = 0.0
    for start, share in reached:
        dearer += (start - 1 if counted else start) * list_usd * (share - before)
        before = share
    return Order(amount, usd, dearer)


def _best(orders: Sequence[Order]) -> int:
    """The first order that none undercuts; more is ordered only where that is cheaper."""
    best = 0
    for place, one in enumerate(orders):
        if one.total_usd < orders[best].total_usd * (1.0 - _LESS):
            best = place
    return best


def network_order(facts: Facts, speed: float, accelerators: int) -> tuple[Fabric, Order]:
    """Fabric and order for bought accelerators with links of one speed."""
    economics = facts.instance.economics
    steps = [(float(one.from_accelerators), one.discount_fraction) for one in economics.network_discounts]
    amounts = [float(accelerators)]
    if economics.network_discount_kind == "all_units":
        amounts += [start for start, _ in steps if start > accelerators]
    rows, orders = [], []
    fabrics = facts.catalog.fabric_for(speed)
    for amount in amounts:
        row = next((one for one in fabrics if amount <= one.max_accelerators), fabrics[-1])
        usd: float = getattr(row, f"{economics.price_level}_usd_per_accelerator")
        rows.append(row)
        orders.append(priced(usd, amount, steps, economics.network_discount_kind, counted=True))
    chosen = _best(orders)
    return rows[chosen], orders[chosen]


def plant_order(facts: Facts, option: CoolingOption, list_usd: float, heat_kw: float) -> Order:
    """Order of a plant's kW for the heat that goes to it."""
    own = facts.instance.economics.cooling_prices.get(option.id)
    if own is None or not own.discounts:
        return Order(heat_kw, list_usd, 0.0)
    steps = [(one.from_kw, one.discount_fraction) for one in own.discounts]
    amounts = [heat_kw]
    if own.discount_kind == "all_units":
        amounts += [start for start, _ in steps if start > heat_kw]
    orders = [priced(list_usd, amount, steps, own.discount_kind, counted=False) for amount in amounts]
    return orders[_best(orders)]
