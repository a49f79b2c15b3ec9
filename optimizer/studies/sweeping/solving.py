"""One case solved: the program, its ties, the plan and its verification; and any fleet priced at another case."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from optimizer import rates
from optimizer.extract import make_plan
from optimizer.fleet import Fleet, fleet_of, fleet_quantities, without_idle
from optimizer.offer import Offer, program_data
from optimizer.plan import Plan
from optimizer.program import build_program
from optimizer.program_data import Pair, ProgramData
from optimizer.rates import serving_rates
from optimizer.solver import Compiled, FloatArray, Options, Outcome, Reason, Search, solver_name
from optimizer.ties import Stop, break_ties
from optimizer.units import HOURS_PER_YEAR

#: Gap asked of the solver where no wider one was: reuse needs bounds that are tight.
EXACT: Final = 0.0
#: Gaps up to this one are solved exactly, so that ties are decided the same way everywhere.
TIE_GAP: Final = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """A fleet before replicas that nobody needs are left out: what it could carry.

    ``replicas`` by (deployment, pool); ``servers`` (spares included) and ``spare`` by pool; the others as in Fleet.
    """

    replicas: dict[Pair, int]
    servers: dict[str, int]
    spare: dict[str, int]
    fillings: dict[tuple[str, str], dict[int, int]]
    running: dict[Pair, tuple[int, ...]] = field(default_factory=dict)
    used: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def counted(self) -> rates.Counts:
        """Replicas that run always, and those of servers paid by level."""
        always = {pair: count for pair, count in self.replicas.items() if pair not in self.running}
        return rates.Counts(always, self.running)

    @property
    def key(self) -> tuple[tuple[str, int], ...]:
        """What is bought and rented."""
        return tuple(sorted(self.servers.items()))


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """A case's program and what its solution holds; ``counts`` and ``cheapest`` are None where there is no plan.

    ``cheapest`` costs least; ``counts`` is taken, of all within ``extract.TIE`` of it. ``bound`` is in USD/hour.
    """

    offer: Offer
    data: ProgramData | None
    outcome: Outcome
    counts: Counts | None
    cheapest: Counts | None

    @property
    def is_proven(self) -> bool:
        """Whether the solver ended with a proof."""
        return self.outcome.reason is Reason.OPTIMAL and self.counts is not None

    @property
    def is_infeasible(self) -> bool:
        """Whether it is proven that nothing fits."""
        return self.outcome.reason is Reason.INFEASIBLE


_NOTHING: Final = Outcome(Reason.INFEASIBLE, float("nan"), -float("inf"), None, 0, 0.0)


def solve_case(offer: Offer, options: Options, stop: Stop | None = None, *, roomy: bool = False) -> Solution:
    """The solution of one case, ties broken; ``roomy``: with much capacity, where cases of more demand follow."""
    data = program_data(offer)
    if data is None:
        return Solution(offer, None, _NOTHING, None, None)
    if options.gap <= TIE_GAP:
        options = replace(options, gap=EXACT)
    deadline = time.perf_counter() + options.time_limit_s
    model = build_program(data)
    compiled = Compiled(model)
    if data.start is not None:
        compiled.start_from_counts(start_columns(compiled, model, data.start))
    outcome = compiled.solve(options, stop, search=Search.SMALL)
    if outcome.values is None:
        return Solution(offer, data, outcome, None, None)
    values = compiled.rounded(outcome.values)
    cheapest = counts_of(data, compiled, values)
    if outcome.reason is not Reason.OPTIMAL:
        return Solution(offer, data, outcome, cheapest, cheapest)
    values = break_ties(compiled, model, data, outcome, values, options, deadline, stop, roomy=roomy)
    return Solution(offer, data, outcome, counts_of(data, compiled, values), cheapest)


def start_columns(compiled: Compiled, model: Any, start: Mapping[tuple[str, ...], float]) -> dict[int, float]:
    """Values by column: those of the plan at hand, 0 for the other counts of replicas, servers and spares."""
    values = {}
    for name in ("Replicas", "Servers", "Spare", "Running", "Used"):
        for index, variable in getattr(model, name).items():
            key = (name, *index) if isinstance(index, tuple) else (name, index)
            values[compiled.column_of(variable)] = start.get(key, 0.0)
    return values


def counts_of(data: ProgramData, compiled: Compiled, values: FloatArray) -> Counts:
    """Whole counts of a solution, replicas that no request reaches among them."""
    names = compiled.by_index(values)
    fleet = fleet_of(data, names)
    replicas = {pair: round(names["Replicas", *pair]) for pair in data.pairs if pair[1] not in data.elastic}
    replicas |= {pair: max(counts) for pair, counts in fleet.running.items()}
    replicas = {pair: count for pair, count in replicas.items() if count}
    return Counts(replicas, fleet.servers, fleet.spare, fleet.fillings, fleet.running, fleet.used)


def at_case(solution: Solution, counts: Counts, offer: Offer, own: ProgramData | None = None) -> ProgramData:
    """Data at another case, of what a fleet uses alone: demand, limits and costs are that case's.

    ``own`` are the case's own data, where its candidates differ from those that were solved.
    """
    assert solution.data is not None
    if own is not None:
        return own.only_pairs(counts.replicas)
    small = solution.data.only_pairs(counts.replicas)
    small = replace(small, setting=offer.setting, demand=offer.demand, start=None)
    return small if offer.terms is solution.offer.terms else small.with_terms(offer.terms)


def fleet_at(data: ProgramData, counts: Counts) -> Fleet:
    """The fleet that serves a case's demand: replicas that it does not need are left out."""
    left = without_idle(data, counts.counted, counts.servers)
    replicas = dict(left.always) | {pair: max(row) for pair, row in left.by_level.items()}
    served = serving_rates(data, left, counts.servers)
    running = dict(left.by_level)
    return Fleet(replicas, counts.servers, counts.spare, served, counts.fillings, running, counts.used)


def carries(data: ProgramData, counts: Counts) -> bool:
    """Whether a fleet's replicas carry the demand of every class."""
    capacity = [0.0] * len(data.demand)
    for (d, q), count in counts.replicas.items():
        capacity[data.deployments[d].class_index] += data.pair_capacity(d, q) * count
    return all(had >= asked for had, asked in zip(capacity, data.demand, strict=True))


def whole_fleet(data: ProgramData, counts: Counts) -> Fleet:
    """A fleet with all of its replicas running."""
    served = serving_rates(data, counts.counted, counts.servers)
    return Fleet(counts.replicas, counts.servers, counts.spare, served, counts.fillings, counts.running, counts.used)


def usd_per_year(data: ProgramData, counts: Counts) -> float:
    """Yearly cost of a fleet at a case, with all of its replicas running: the objective of the program."""
    quantities = fleet_quantities(data, whole_fleet(data, counts))
    return math.fsum(term.usd_per_year * quantities.get(term.quantity, 0.0) for term in data.terms)


def bound_usd_per_year(solution: Solution) -> float:
    """What no plan of a case costs less than."""
    return max(solution.outcome.bound, 0.0) * HOURS_PER_YEAR


def full_plan(
    solution: Solution,
    counts: Counts,
    offer: Offer,
    options: Options,
    own: ProgramData | None = None,
    least_usd_per_year: float | None = None,
) -> Plan:
    """The whole plan of a fleet at a case, as ``optimize solve`` would write it, without runners-up.

    ``least_usd_per_year`` is the bound that was proven there, where it is not the solved case itself.
    """
    assert solution.data is not None
    data = own
    if data is None:
        data = replace(solution.data, setting=offer.setting, demand=offer.demand, start=None)
        if offer.terms is not solution.offer.terms:
            data = data.with_terms(offer.terms)
    outcome = solution.outcome
    if least_usd_per_year is not None:
        outcome = replace(outcome, bound=least_usd_per_year / HOURS_PER_YEAR)
    return make_plan(offer, data, fleet_at(data, counts), outcome, options, solver_name())
