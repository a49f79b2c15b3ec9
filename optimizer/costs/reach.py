"""Which steps of a price an optimal order can fall into, given the most that is ever needed.

A step that starts beyond it is ordered only where reaching for it costs less than the most that is needed: whoever
needs less has that order for less, too.
"""

from optimizer.catalog.rows import CoolingOption
from optimizer.costs import cooling, network
from optimizer.costs.price_steps import reached_step
from optimizer.setting import Setting


def network_reach(setting: Setting, speed: float, most: int) -> dict[str, tuple[int, int]]:
    """Segment -> (first, last) accelerators that may be ordered where at most ``most`` are bought."""
    found = network.segments(setting, speed)
    more = network.may_order_more(setting)
    reached = found[reached_step([one.step for one in found], most)]
    result = {}
    for number, one in enumerate(found):
        if one.first <= most or number == 0:
            result[one.id] = (one.first, most if one.last is None else min(most, one.last))
        elif more and one.step.of(one.first) < reached.step.of(most):
            result[one.id] = (one.first, one.first)
    return result


def plant_reach(setting: Setting, option: CoolingOption, most_kw: float) -> dict[int, tuple[float, float]]:
    """Step -> (least, most) kW that may be ordered where at most ``most_kw`` of heat arise; empty without discounts."""
    steps = cooling.plant_steps(setting, option)
    if len(steps) == 1:
        return {}
    more = cooling.may_order_more(setting, option)
    last = steps[reached_step(steps, most_kw)].of(most_kw)
    result = {}
    for number, one in enumerate(steps):
        if one.first <= most_kw or number == 0:
            end = steps[number + 1].first if number + 1 < len(steps) else most_kw
            result[number] = (one.first, min(end, most_kw))
        elif more and one.of(one.first) < last:
            result[number] = (one.first, one.first)
    return result
