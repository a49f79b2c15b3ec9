"""Network: switches, cables and optics of bought accelerators; a step function of how many of them share a fabric.

Steps come from the size of the fabric (more switch tiers cost more) and from the planner's quantity discounts. Where
both are stated the discount is one on the price of the size that the order falls into.
"""

from dataclasses import dataclass

from optimizer.catalog.rows import Fabric
from optimizer.costs.price_steps import PriceStep, cheapest_order, price_steps, reached_step
from optimizer.costs.term import QuantityKey, Term, capital, capital_recovery_factor
from optimizer.setting import Setting

COMPONENT = "network"
#: Between a fabric and the first accelerator of a discount step, in the name of a segment.
_STEP_MARK = "@"


@dataclass(frozen=True, slots=True)
class Segment:
    """A range of bought accelerators of one link speed with one straight price line.

    ``first`` to ``last`` are accelerators (``last`` None: without end); ``step`` has the price.
    """

    id: str
    fabric: Fabric
    first: int
    last: int | None
    step: PriceStep


def fabric_usd(setting: Setting, fabric: Fabric) -> float:
    """Price per accelerator (USD) at the instance's price level."""
    return {
        "low": fabric.low_usd_per_accelerator,
        "typical": fabric.typical_usd_per_accelerator,
        "high": fabric.high_usd_per_accelerator,
    }[setting.instance.economics.price_level]


def fabric_of(segment: str) -> str:
    """Fabric (catalogue id) of a segment's name."""
    return segment.partition(_STEP_MARK)[0]


def segments(setting: Setting, speed: float) -> tuple[Segment, ...]:
    """Segments of the network's price by rising count, for accelerators with a link of ``speed`` (GB/s)."""
    economics = setting.instance.economics
    discounts = [(one.from_accelerators, one.discount_fraction) for one in economics.network_discounts]
    fabrics = setting.fabrics[speed]
    found, start = [], 1
    for number, fabric in enumerate(fabrics):
        end = None if number + 1 == len(fabrics) else fabric.max_accelerators
        usd = fabric_usd(setting, fabric)
        steps = price_steps(usd, discounts, economics.network_discount_kind, start=1, counted=True)
        for place, step in enumerate(steps):
            first = max(start, int(step.first))
            ends = [end] if place + 1 == len(steps) else [end, int(steps[place + 1].first) - 1]
            last = min((one for one in ends if one is not None), default=None)
            if last is None or first <= last:
                name = fabric.id if place == 0 else f"{fabric.id}{_STEP_MARK}{int(step.first)}"
                found.append(Segment(name, fabric, first, last, PriceStep(first, step.usd, step.offset_usd)))
        start = fabric.max_accelerators + 1
    return tuple(found)


def terms(setting: Setting) -> list[Term]:
    """Price per accelerator of the segment that the order falls into, as an annuity over the network's life."""
    economics = setting.instance.economics
    annuity = ("annuity", capital_recovery_factor(economics.discount_rate, economics.network_life_years))
    result = []
    for speed in setting.fabrics:
        for one in segments(setting, speed):
            fabric = one.fabric
            provenance = (fabric.source, fabric.as_of, fabric.trust)
            item = fabric.name or fabric.id
            if one.id != fabric.id:
                item += f", ordered from {fabric_step(one.id)} accelerators"
            key = ("FabricAccelerators", one.id)
            result.append(capital(COMPONENT, item, key, "accelerators", one.step.usd, annuity, provenance))
            if one.step.offset_usd:
                item += ": dearer ones below the step"
                used = ("FabricUsed", one.id)
                result.append(capital(COMPONENT, item, used, "tier", one.step.offset_usd, annuity, provenance))
    return result


def fabric_step(segment: str) -> int:
    """First accelerator of a segment's discount step."""
    return int(segment.partition(_STEP_MARK)[2])


def may_order_more(setting: Setting) -> bool:
    """Whether more network than for the accelerators bought may be ordered, to reach a discount of all units."""
    economics = setting.instance.economics
    return bool(economics.network_discounts) and economics.network_discount_kind == "all_units"


def network_order(setting: Setting, speed: float, accelerators: int) -> tuple[Segment, float]:
    """(segment, accelerators ordered) of the cheapest order for bought accelerators of one link speed."""
    found = segments(setting, speed)
    steps = [one.step for one in found]
    if may_order_more(setting):
        place, ordered = cheapest_order(steps, accelerators)
        return found[place], ordered
    return found[reached_step(steps, accelerators)], float(accelerators)


def network_quantities(setting: Setting, speed: float, accelerators: int) -> dict[QuantityKey, float]:
    """Quantities of the cost terms of the network of bought accelerators of one link speed."""
    segment, ordered = network_order(setting, speed, accelerators)
    found: dict[QuantityKey, float] = {("FabricAccelerators", segment.id): ordered}
    if segment.step.offset_usd:
        found["FabricUsed", segment.id] = 1.0
    return found
