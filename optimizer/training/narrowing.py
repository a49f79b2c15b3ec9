"""Fewer runs for the program of several jobs: those that a plan of least cost cannot make are left out.

A plan that makes a run costs at least that run, the cheapest run of every other job beside the fleets, and a fleet for
whichever job asks for the dearest one. Where that is more than a plan that is known, from a program over a thinned
set of runs, no plan of least cost makes the run. If still more runs remain than a program can hold, those with the
least such bound are kept, and the least bound of the rest bounds what leaving them out may have cost: the gap of
the plan says it.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from optimizer.performance.factors import FloatArray
from optimizer.training.fleet_price import horizon_usd
from optimizer.training.program import Run, TrainingProgram

#: Runs with which the program is solved as it is, and most that a program holds.
_FEW: Final = 3_000
_MOST: Final = 40_000
#: Choices of a job in the thinned program, of each set of pools the smallest and quickest, and starts of each.
_CHOICES, _OF_POOLS, _STARTS = 40, 4, 8
#: Slack of a comparison of costs.
_ROUNDING: Final = 1e-9

#: Solves a program: USD and runs of its plan, or None.
Known = Callable[[TrainingProgram], tuple[float, tuple[Run, ...]] | None]


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A program with fewer runs; what a plan with any of the others costs at least, in USD; runs of a plan known."""

    data: TrainingProgram
    others_usd: float
    known: tuple[Run, ...] = ()


def narrowed(data: TrainingProgram, known: Known) -> Narrowed:
    """The program without runs that cannot be part of the best plan.

    ``known`` solves a thinned program, so that runs which cost more than its plan are told.
    """
    if not data.is_shared or len(data.runs) <= _FEW:
        return Narrowed(data, math.inf)
    bounds = least_usd(data)
    thin = thinned(data, bounds)
    found = known(replace(data, only=thin))
    limit = math.inf if found is None else found[0] * (1.0 + _ROUNDING)
    start = () if found is None else found[1]
    kept = sorted((run for run in data.runs if bounds[run] <= limit), key=lambda run: (bounds[run], run))
    left_out = kept[_MOST:]
    others = min((bounds[run] for run in left_out), default=math.inf)
    kept = kept[:_MOST]
    return Narrowed(replace(data, only=frozenset({*kept, *start, *(thin if left_out else ())})), others, start)


def least_usd(data: TrainingProgram) -> dict[Run, float]:
    """What a plan that makes a run costs at least, in USD."""
    own = {run: data.run_usd(run) for run in data.runs}
    cheapest = [math.inf] * len(data.jobs)
    for run, usd in own.items():
        cheapest[run[0]] = min(cheapest[run[0]], usd)
    every = math.fsum(cheapest)
    fleets: dict[tuple[int, int], float] = {}
    if data.charges_horizon:
        at_least = _fleet_at_least(data)
        fleets = {
            (j, c): sum(
                float(at_least[part.prices.id][part.total]) for part in choice.parts if part.prices.pool.is_bought
            )
            for j, choices in enumerate(data.choices)
            for c, choice in enumerate(choices)
        }
    # Above the cheapest run of its job, what each job pays at least for its run with the fleet that this needs.
    least = [math.inf] * len(data.jobs)
    for (j, c, _), usd in zip(own, own.values(), strict=True):
        least[j] = min(least[j], usd - cheapest[j] + fleets.get((j, c), 0.0))
    found = {}
    for (j, c, period), usd in own.items():
        above = usd - cheapest[j]
        others = max((least[i] for i in range(len(data.jobs)) if i != j), default=0.0)
        found[j, c, period] = every + max(above + fleets.get((j, c), 0.0), others)
    return found


def _fleet_at_least(data: TrainingProgram) -> dict[str, FloatArray]:
    """Pool -> what a fleet of at least 0, 1, 2 ... servers costs: with discounts more may cost less."""
    found = {}
    for q, prices in data.pools.items():
        if prices.pool.is_bought:
            usd = horizon_usd(prices, np.arange(data.most[q] + 1))
            found[q] = np.minimum.accumulate(usd[::-1])[::-1]
    return found


def thinned(data: TrainingProgram, bounds: dict[Run, float]) -> frozenset[Run]:
    """Some runs of every job: of its best choices and of those with the smallest and quickest of all pools."""
    starts: dict[tuple[int, int], list[int]] = {}
    best: dict[tuple[int, int], float] = {}
    for run in data.runs:
        key = (run[0], run[1])
        starts.setdefault(key, []).append(run[2])
        best[key] = min(best.get(key, math.inf), bounds[run])
    kept: set[tuple[int, int]] = set()
    for j, choices in enumerate(data.choices):
        own = [c for c in range(len(choices)) if (j, c) in starts]
        ranked = sorted(own, key=lambda c: (best[j, c], c))
        kept |= {(j, c) for c in _spread(ranked, _CHOICES)}
        by_pools: dict[tuple[str, ...], list[int]] = {}
        for c in own:
            by_pools.setdefault(tuple(part.prices.id for part in choices[c].parts), []).append(c)
        for several in by_pools.values():
            several.sort(key=lambda c: (choices[c].accelerators, choices[c].days, c))
            kept |= {(j, c) for c in (*several[: _OF_POOLS // 2], *several[-_OF_POOLS // 2 :])}
    return frozenset((j, c, period) for j, c in kept for period in _spread(sorted(starts[j, c]), _STARTS))


def _spread(values: list[int], count: int) -> Iterable[int]:
    """So many of the values, both ends among them: half from the start, the rest evenly spread."""
    if len(values) <= count:
        return values
    first = count // 2
    places = np.unique(np.round(np.linspace(first, len(values) - 1, count - first)).astype(int)).tolist()
    return [*values[:first], *(values[place] for place in places)]
