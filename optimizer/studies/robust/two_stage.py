r"""The program under uncertainty: what is bought and committed now, what is rented and run when the scenario is known.

    x            now: servers of every bought or committed pool, schemes prepared; the same in every scenario
    y_s          then: servers on demand, replicas, rates, spares, racks, plants of scenario s
    C_s(x, y_s)  yearly cost of scenario s, that of docs/method.md section 5 with the scenario's own data

    every limit of every scenario holds, and one of these is least:

    expected     sum_s p_s C_s
    shortfall    eta + 1 / (1 - alpha) sum_s p_s Excess_s,   Excess_s >= C_s - eta, Excess_s >= 0
    regret       max_s (C_s - C*_s),   C*_s what the best plan of scenario s alone costs

The expected shortfall (conditional value at risk) at risk level alpha is the mean cost of the dearest 1 - alpha of the
scenarios; as a linear program: Rockafellar and Uryasev 2000. The regret is shifted by the mean of C*_s, so that the
solver's relative gap speaks of the cost. Of plans that are equally good within ``TIE`` the one of least expected cost
is taken.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from pyomo.common.gc_manager import PauseGC
from pyomo.core import Block, ConcreteModel, Constraint, NonNegativeReals, Objective, Reals, Var, minimize

from optimizer.answer import Stop
from optimizer.extract import TIE
from optimizer.fleet import Fleet, fleet_of
from optimizer.offer import Offer
from optimizer.program import state_program
from optimizer.program_data import ProgramData
from optimizer.solver import Compiled, FloatArray, Options, Outcome, Reason
from optimizer.studies.robust.scenarios import is_recourse
from optimizer.units import HOURS_PER_YEAR

Aim = Literal["expected", "shortfall", "regret"]


@dataclass(frozen=True, slots=True)
class Now:
    """What is decided before the scenario is known: servers by pool (only those that are there), schemes prepared."""

    servers: tuple[tuple[str, int], ...]
    schemes: tuple[str, ...]

    @property
    def count_of(self) -> dict[str, int]:
        """Servers by pool."""
        return dict(self.servers)


@dataclass(frozen=True, slots=True, eq=False)
class TwoStage:
    """An answer of the program: how the solver ended, what is decided now.

    ``usd_per_year`` is the value of the aim (for regret: the largest regret).
    """

    aim: Aim
    outcome: Outcome
    usd_per_year: float
    bound_usd_per_year: float
    now: Now


class TwoStageProgram:
    """The program over scenarios, stated once and solved for each aim."""

    def __init__(
        self,
        datas: Sequence[ProgramData],
        probabilities: Sequence[float],
        best_usd_per_year: Sequence[float],
        risk_level: float,
    ) -> None:
        self._datas = tuple(datas)
        self._shift = sum(p * best for p, best in zip(probabilities, best_usd_per_year, strict=True)) / HOURS_PER_YEAR
        best = [usd / HOURS_PER_YEAR for usd in best_usd_per_year]
        with PauseGC():
            self._model = self._stated(probabilities, best, risk_level)

    def _stated(self, probabilities: Sequence[float], best: Sequence[float], risk_level: float) -> Any:
        numbers = range(len(self._datas))
        model = ConcreteModel(name="gpu_cluster_under_uncertainty")
        model.Scenario = Block(list(numbers))
        for s, data in enumerate(self._datas):
            state_program(model.Scenario[s], data)
            model.Scenario[s].TotalCost.deactivate()
        self._tie_servers(model)
        self._costs = self._tie_schemes(model)
        model.Eta = Var(domain=NonNegativeReals, doc="cost that a share of the scenarios stays below, USD/hour")
        model.Excess = Var(list(numbers), domain=NonNegativeReals, doc="cost of a scenario above Eta, USD/hour")
        model.Excess_Rows = Constraint(
            list(numbers),
            rule=lambda m, s: self._costs[s] - m.Eta - m.Excess[s] <= 0.0,
            doc="cost above Eta is counted",
        )
        model.Regret = Var(domain=Reals, doc="largest regret and the mean cost of the best plans, USD/hour")
        model.Regret_Rows = Constraint(
            list(numbers),
            rule=lambda m, s: self._costs[s] - m.Regret <= best[s] - self._shift,
            doc="cost above that of the scenario's own best plan",
        )
        expected = sum(p * cost for p, cost in zip(probabilities, self._costs, strict=True) if p > 0.0)
        shortfall = model.Eta + sum(
            p / (1.0 - risk_level) * model.Excess[s] for s, p in enumerate(probabilities) if p > 0.0
        )
        self._aims: dict[Aim, Any] = {"expected": expected, "shortfall": shortfall, "regret": 1.0 * model.Regret}
        model.Aim = Objective(expr=expected, sense=minimize, doc="USD/hour")
        return model

    def _tie_servers(self, model: Any) -> None:
        """Servers decided now are the same in every scenario; none where a scenario's site cannot take the pool."""
        pools = dict.fromkeys(q for data in self._datas for q in data.pools if not is_recourse(data, q))
        rows = []
        for q in pools:
            places = [s for s, data in enumerate(self._datas) if q in data.pools]
            first = model.Scenario[places[0]].Servers[q]
            if len(places) < len(self._datas):
                rows.append(first <= 0.0)
            rows += [model.Scenario[s].Servers[q] - first == 0.0 for s in places[1:]]
        model.Same_Servers = Constraint(range(len(rows)), rule=lambda _m, i: rows[i], doc="decided before the scenario")

    def _tie_schemes(self, model: Any) -> list[Any]:
        """Schemes are prepared beforehand and paid in every scenario; gives the cost of each scenario, USD/hour."""
        blocks = [model.Scenario[s] for s in range(len(self._datas))]
        prepared = [set(block.SchemePrepared) if hasattr(block, "SchemePrepared") else set() for block in blocks]
        rows = []
        costs = [block.TotalCost.expr for block in blocks]
        for scheme in sorted(set().union(*prepared)):
            places = [s for s, own in enumerate(prepared) if scheme in own]
            first = blocks[places[0]].SchemePrepared[scheme]
            rows += [blocks[s].SchemePrepared[scheme] - first == 0.0 for s in places[1:]]
            usd = self._datas[places[0]].yearly_by_quantity["SchemePrepared", scheme] / HOURS_PER_YEAR
            for s in range(len(blocks)):
                # Nothing runs in that scheme there, but it has been prepared all the same.
                if s not in places:
                    costs[s] = costs[s] + usd * first
        model.Same_Schemes = Constraint(range(len(rows)), rule=lambda _m, i: rows[i], doc="decided before the scenario")
        return costs

    def solve(self, aim: Aim, options: Options, stop: Stop | None = None) -> tuple[Outcome, TwoStage | None]:
        """The best answer for an aim; None where no servers keep every limit of every scenario, or time ran out."""
        compiled = Compiled(self._model)
        costs = compiled.cost_vector(self._aims[aim])
        compiled.set_objective(costs)
        outcome = compiled.solve(options, stop)
        if outcome.values is None:
            return outcome, None
        values = compiled.rounded(outcome.values)
        if aim != "expected" and outcome.reason is Reason.OPTIMAL:
            values = self._cheapest(compiled, costs, outcome, values, options, stop)
        shift = self._shift if aim == "regret" else 0.0
        return outcome, TwoStage(
            aim,
            outcome,
            (float(costs @ values) - shift) * HOURS_PER_YEAR,
            (outcome.bound - shift) * HOURS_PER_YEAR,
            self._now(compiled, values),
        )

    def _cheapest(
        self,
        compiled: Compiled,
        costs: FloatArray,
        outcome: Outcome,
        values: FloatArray,
        options: Options,
        stop: Stop | None,
    ) -> FloatArray:
        """Among answers as good within ``TIE``: the one of least expected cost."""
        compiled.add_row(costs, outcome.objective + TIE * abs(outcome.objective))
        compiled.set_objective(compiled.cost_vector(self._aims["expected"]))
        compiled.start_from(values)
        found = compiled.solve(replace(options, gap=max(options.gap, TIE)), stop)
        return values if found.values is None else compiled.rounded(found.values)

    def _now(self, compiled: Compiled, values: FloatArray) -> Now:
        servers: dict[str, int] = {}
        schemes: set[str] = set()
        for s, data in enumerate(self._datas):
            block = self._model.Scenario[s]
            for q in data.pools:
                if not is_recourse(data, q):
                    servers[q] = round(float(values[compiled.column_of(block.Servers[q])]))
            if hasattr(block, "SchemePrepared"):
                schemes |= {key for key, var in block.SchemePrepared.items() if values[compiled.column_of(var)] > 0.5}
        return Now(tuple(sorted((q, n) for q, n in servers.items() if n)), tuple(sorted(schemes)))


def with_now(offer: Offer, data: ProgramData, now: Now) -> ProgramData | None:
    """Data of one scenario's program that keeps what was decided; None where a class has nothing to run on.

    Pools without servers are left out, and schemes that cost something and were not prepared. Bounds allow what was
    decided.
    """
    counts = now.count_of
    servers = {q: max(most, counts.get(q, 0)) for q, most in data.max_servers.items()}
    in_service = dict(data.max_in_service)
    for key, members in data.server_types.items():
        in_service[key] = max(in_service.get(key, 0), sum(counts.get(q, 0) for q in members))
    priced = {key[1] for key in data.yearly_by_quantity if key[0] == "SchemePrepared"}
    pools = {q: pool for q, pool in data.pools.items() if counts.get(q) or is_recourse(data, q)}
    pairs = tuple(
        (d, q)
        for d, q in data.pairs
        if q in pools and (data.deployments[d].scheme not in priced or data.deployments[d].scheme in now.schemes)
    )
    needed = {d for d, _ in pairs}
    deployments = {d: one for d, one in data.deployments.items() if d in needed}
    if {one.class_index for one in deployments.values()} != set(range(len(data.demand))):
        return None
    narrowed = replace(
        data, pools=pools, pairs=pairs, deployments=deployments, max_servers=servers, max_in_service=in_service
    )
    # All terms of the offer: a wider bound may reach a price tier that the narrower data knew nothing of.
    return narrowed.with_terms(offer.terms)


@dataclass(frozen=True, slots=True, eq=False)
class Recourse:
    """The best use of a choice in one scenario: its cost, and its fleet with the data that it belongs to."""

    usd_per_year: float
    fleet: Fleet
    data: ProgramData
    outcome: Outcome


def recourse(
    offer: Offer,
    data: ProgramData,
    now: Now,
    options: Options,
    preparation_usd_per_year: Mapping[str, float],
    stop: Stop | None = None,
) -> Recourse | Outcome | None:
    """The best use of what was decided in one scenario.

    How the solver ended where it found none; None where servers cannot stand at the scenario's site, or nothing runs on
    them. ``preparation_usd_per_year``: of each prepared scheme, for those that nothing runs in here.
    """
    counts = now.count_of
    if any(q not in data.pools for q in counts):
        return None
    narrowed = with_now(offer, data, now)
    if narrowed is None:
        return None
    with PauseGC():
        model = ConcreteModel(name="recourse")
        state_program(model, narrowed)
    for q, count in counts.items():
        model.Servers[q].setlb(count)
        model.Servers[q].setub(count)
    paid = 0.0
    own = set(model.SchemePrepared) if hasattr(model, "SchemePrepared") else set()
    for scheme in now.schemes:
        if scheme in own:
            model.SchemePrepared[scheme].setlb(1.0)
        else:
            paid += preparation_usd_per_year[scheme]
    compiled = Compiled(model)
    outcome = compiled.solve(options, stop)
    if outcome.values is None:
        return outcome
    values = compiled.rounded(outcome.values)
    names = compiled.by_index(values)
    cost = float(compiled.cost_vector(model.TotalCost.expr) @ values) * HOURS_PER_YEAR + paid
    return Recourse(cost, fleet_of(narrowed, names), narrowed, outcome)


def weighted_shortfall(costs: Sequence[float], probabilities: Sequence[float], risk_level: float) -> float:
    """Mean of the dearest ``1 - risk_level`` of the scenarios, the one at the edge in part."""
    order = np.argsort(-np.array(costs), kind="stable")
    left, total = 1.0 - risk_level, 0.0
    for place in order:
        part = min(left, probabilities[place])
        total += part * costs[place]
        left -= part
        if left <= 1e-12:
            break
    return total / (1.0 - risk_level)
