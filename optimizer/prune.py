"""Leaving out what no optimal plan can contain: a bound from below against a plan that exists.

A small linear program over replicas and rates alone bounds every plan from below: it prices each replica at the least
its servers can cost (cheapest step of every price, spares and racks shared out), charges what is built once by the
share of demand it serves, and forgets every cap. When one whole replica of a (deployment, pool) pair lifts that bound
above the cost of a simple plan at hand, no optimal plan contains it.
"""

import math
from dataclasses import replace

from optimizer.bound import least_server_usd_per_hour, lower_bound
from optimizer.program_data import ProgramData
from optimizer.simple_plan import best_simple_plan

#: Relative margin that keeps rounding errors from cutting off an optimal plan.
_MARGIN = 1e-7


def prune(data: ProgramData) -> ProgramData:
    """The same program with fewer pairs and smaller bounds, and the same optimum."""
    bound, extra = lower_bound(data)
    plan = best_simple_plan(data, extra)
    if plan is None or not math.isfinite(bound):
        return data
    limit = plan.usd_per_hour * (1.0 + _MARGIN) + 1e-9
    data = _affordable(data, limit)
    bound, extra = lower_bound(data)
    kept = [pair for pair, more in zip(data.pairs, extra, strict=True) if bound + more <= limit]
    # The simple plan's own pairs are kept: each costs no more than the plan.
    return replace(data.only_pairs(kept), start=plan.start())


def prune_between(data: ProgramData, least_demand: tuple[float, ...], limit: float) -> ProgramData:
    """The program of the largest demand, for every demand from ``least_demand`` up to it, without useless pairs.

    ``limit`` (USD/hour) bounds the cost of every plan that is looked for, at whatever demand in between. Proof: such a
    plan carries the least demand too, where it costs no more, since rates fall and nothing else changes; so the bound
    from below at the least demand, with shares of the most capacity that any of them has, holds for all. Bounds on
    counts are those of the largest demand, where they are largest.
    """
    limit = limit * (1.0 + _MARGIN) + 1e-9
    data = _affordable(data, limit)
    bound, extra = lower_bound(replace(data, demand=least_demand), data.most_capacity)
    if not math.isfinite(bound):
        return data
    return data.only_pairs(pair for pair, more in zip(data.pairs, extra, strict=True) if bound + more <= limit)


def _affordable(data: ProgramData, limit: float) -> ProgramData:
    """The same program with no more servers of a pool, or of a type, than ``limit`` USD/hour pays for.

    No optimal plan costs more than ``limit``. Small fleets gain most: a spare for few servers is a large share of them.
    """
    alone = least_server_usd_per_hour(data, spares=False)
    most = {q: _paid(limit, alone[q], data.max_servers[q]) for q in data.pools}
    in_service = {
        type_id: min(count, max((_paid(limit, alone[q], count) for q in data.server_types[type_id]), default=0))
        for type_id, count in data.max_in_service.items()
        if type_id in data.server_types
    }
    smaller = replace(data, max_servers=most, max_in_service={**data.max_in_service, **in_service})
    return smaller.with_terms(data.terms)


def _paid(limit: float, usd_per_hour: float, most: int) -> int:
    """Servers that a budget pays for, at most ``most``."""
    return most if usd_per_hour <= 0.0 else min(most, math.floor(limit / usd_per_hour + 1e-6))
