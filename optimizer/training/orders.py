"""What is ordered of the network and of cooling plants for many fleets of one pool at once.

The same rule as ``costs.price_steps.cheapest_order``, over arrays; each pool has a network and plants of its own.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from optimizer.costs import cooling, network
from optimizer.costs.price_steps import CHEAPER, PriceStep
from optimizer.costs.term import QuantityKey
from optimizer.performance.factors import FloatArray
from optimizer.setting import Pool, Setting


def cheapest_orders(
    steps: Sequence[PriceStep], amounts: FloatArray, *, may_order_more: bool
) -> tuple[NDArray[np.int64], FloatArray]:
    """(step, amount ordered) of the cheapest orders of at least ``amounts``."""
    first, usd, offset = (np.array(row, dtype=np.float64) for row in zip(*steps, strict=True))
    reached = np.searchsorted(first, amounts * (1.0 + CHEAPER), side="right") - 1
    best = np.maximum(reached, 0)
    ordered = np.asarray(amounts, dtype=np.float64)
    for place in range(1, len(steps) if may_order_more else 1):
        paid = offset[best] + usd[best] * ordered
        better = (place > reached) & (steps[place].of(first[place]) < paid * (1.0 - CHEAPER))
        best, ordered = np.where(better, place, best), np.where(better, first[place], ordered)
    return best.astype(np.int64), ordered


def ordered_network(setting: Setting, pool: Pool, key: QuantityKey, servers: FloatArray) -> FloatArray:
    """Quantity of a network term for fleets of a pool."""
    found = network.segments(setting, pool.server_type.accelerator.scale_out_gb_s)
    names = [one.id for one in found]
    if key[1] not in names:
        return np.zeros(servers.shape)
    more = network.may_order_more(setting)
    count = servers * pool.server_type.accelerators
    step, ordered = cheapest_orders([one.step for one in found], count, may_order_more=more)
    taken = (step == names.index(key[1])) & (servers > 0)
    return np.where(taken, ordered if key[0] == "FabricAccelerators" else 1.0, 0.0)


def ordered_plant(setting: Setting, heat_kw: float, key: QuantityKey, servers: FloatArray) -> FloatArray:
    """Quantity of a term of a plant with a quantity discount; each server sends it ``heat_kw``."""
    option = setting.catalog.cooling[key[1]]
    more = cooling.may_order_more(setting, option)
    step, ordered = cheapest_orders(cooling.plant_steps(setting, option), servers * heat_kw, may_order_more=more)
    taken = (step == int(key[2])) & (servers > 0)
    return np.where(taken, ordered if key[0] == "PlantTierKw" else 1.0, 0.0)


def discount_starts(setting: Setting, pool: Pool, heat: dict[str, float]) -> Iterator[float]:
    """Servers of a pool at which a step of a discount on network or plant begins."""
    for one in setting.instance.economics.network_discounts:
        yield one.from_accelerators / pool.server_type.accelerators
    for plant, kw in heat.items():
        for step in cooling.plant_steps(setting, setting.catalog.cooling[plant])[1:]:
            if kw > 0.0:
                yield step.first / kw


def has_discounts(setting: Setting, heat: dict[str, float]) -> bool:
    """Whether network or plants of a pool have steps of a discount."""
    plants = (setting.catalog.cooling[plant] for plant in heat)
    return bool(setting.instance.economics.network_discounts) or any(
        len(cooling.plant_steps(setting, option)) > 1 for option in plants
    )


def bends(usd: FloatArray) -> set[int]:
    """Counts (from 1) at which a straight piece of a cost begins; ``usd`` is the cost of 1, 2, 3 ... servers.

    A count at which the line bends or jumps begins a piece, and so does the next one.
    """
    bent = np.abs(np.diff(usd, 2)) > 1e-9 * np.maximum(np.abs(usd[1:-1]), 1.0)
    counts = np.nonzero(bent)[0] + 2
    return {int(count) for count in counts} | {int(count) + 1 for count in counts}
