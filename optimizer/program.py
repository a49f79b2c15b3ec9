"""The program: sets, variables, cost components, then each family of constraints in order.

The formulation is docs/method.md section 5. Pyomo states it; ``optimizer.solver`` compiles and solves it.
"""

from collections.abc import Mapping
from typing import Any

from pyomo.common.gc_manager import PauseGC
from pyomo.core import (
    Binary,
    ConcreteModel,
    Constraint,
    Expression,
    NonNegativeIntegers,
    NonNegativeReals,
    Objective,
    Var,
    minimize,
)
from pyomo.core.expr.numeric_expr import LinearExpression

import constraints
from optimizer.costs import COST_COMPONENTS
from optimizer.price_tiers import add_price_tiers
from optimizer.program_data import PEAK, ProgramData
from optimizer.units import HOURS_PER_YEAR


def linear(pairs: Any) -> Any:
    """A linear expression from (coefficient, variable) pairs, built without intermediate nodes."""
    kept = [(coefficient, variable) for coefficient, variable in pairs if coefficient != 0.0]
    if not kept:
        return 0.0
    coefficients, variables = zip(*kept, strict=True)
    return LinearExpression(linear_coefs=list(coefficients), linear_vars=list(variables))


def build_program(data: ProgramData) -> ConcreteModel:
    """The mixed-integer program of ``data``; its objective is USD per hour."""
    with PauseGC():
        model = ConcreteModel(name="gpu_cluster")
        state_program(model, data)
    return model


def state_program(model: Any, data: ProgramData) -> None:
    """State the program of ``data`` on a model, or on a block of a larger one."""
    add_variables(model, data)
    add_quantities(model, data)
    add_price_tiers(model, data)
    for family in constraints.FAMILIES:
        add = getattr(family, "add", None)
        if add is not None:
            add(model, data)
    add_costs(model, data)


def add_variables(model: Any, data: ProgramData) -> None:
    """Decision variables with bounds that no optimal plan exceeds."""
    model.Replicas = Var(
        [(d, q) for d, q in data.pairs if q not in data.elastic],
        domain=NonNegativeIntegers,
        bounds=lambda _m, d, _q: (0, data.max_replicas[d]),
        doc="replicas of a deployment in a pool",
    )
    add_elastic_variables(model, data)
    model.Rate = Var(
        [(d, q, level) for d, q in data.pairs for level in data.billed_levels],
        domain=NonNegativeReals,
        doc="requests/s of a deployment in a pool at a load level",
    )
    model.Servers = Var(
        list(data.pools),
        domain=NonNegativeIntegers,
        bounds=lambda _m, q: (0, data.max_servers[q]),
        doc="servers of a pool, spares included",
    )
    model.Spare = Var(
        list(data.hall) if data.has_spares() else [],
        domain=NonNegativeIntegers,
        bounds=lambda _m, q: (0, data.max_servers[q]),
        doc="spare servers of a pool in the hall",
    )
    model.Racks = Var(
        [q for q in data.hall if data.pools[q].per_rack > 1],
        domain=NonNegativeIntegers,
        bounds=lambda _m, q: (0, -(-data.max_servers[q] // data.pools[q].per_rack)),
        doc="racks of a pool in the hall",
    )
    model.TypeUsed = Var(list(types_with_switch(data)), domain=Binary, doc="an accelerator type is used")
    model.InService = Expression(
        list(data.pools),
        rule=lambda m, q: m.Servers[q] - m.Spare[q] if q in m.Spare else m.Servers[q],
        doc="servers that carry replicas",
    )


def add_elastic_variables(model: Any, data: ProgramData) -> None:
    """Decisions by load level, for pools whose servers are paid in the levels that use them only."""
    levels = list(data.billed_levels)
    model.Running = Var(
        [(d, q, level) for d, q in data.pairs if q in data.elastic for level in levels],
        domain=NonNegativeIntegers,
        bounds=lambda _m, d, _q, _level: (0, data.max_replicas[d]),
        doc="replicas of a deployment that run at a level, in a pool paid by level",
    )
    model.Used = Var(
        [(q, level) for q in data.pools if q in data.elastic for level in levels],
        domain=NonNegativeIntegers,
        bounds=lambda _m, q, _level: (0, data.max_servers[q]),
        doc="servers that are paid at a level",
    )


def types_with_switch(data: ProgramData) -> list[str]:
    """Accelerators whose use must be known: all when types are counted, else none."""
    return [] if data.setting.instance.choices.max_accelerator_types is None else sorted(data.accelerator_pools)


def add_quantities(model: Any, data: ProgramData) -> None:
    """What cost terms are multiplied with, where it is not a variable itself."""
    model.SpaceKw = Expression(
        expr=linear((data.pools[q].server_kw, model.Servers[q]) for q in data.hall),
        doc="IT peak of servers in the hall, kW",
    )
    model.ServerHours = Expression(
        [q for q in data.pools if q in data.elastic],
        rule=lambda m, q: linear((level.hours_per_year, m.Used[q, name]) for name, level in data.billed_levels.items()),
        doc="hours a year of servers paid by level",
    )

    by_pool: dict[str, list[str]] = {}
    for d, q in data.pairs:
        by_pool.setdefault(q, []).append(d)
    levels = data.billed_levels

    def busy_kw(m: Any, q: str, hours: Mapping[str, float]) -> Any:
        pool = data.pools[q]
        return linear(
            (data.busy_kwh_per_request_rate(data.deployments[d], pool) * span, m.Rate[d, q, name])
            for d in by_pool.get(q, ())
            for name, span in hours.items()
        )

    every = {name: level.hours_per_year for name, level in levels.items() if level.hours_per_year > 0.0}
    model.BusyKwh = Expression(
        list(data.hall), rule=lambda m, q: busy_kw(m, q, every), doc="energy above idle, kWh a year before PUE"
    )
    model.LevelKwh = Expression(
        [key[1:] for key in data.yearly_by_quantity if key[0] == "LevelKwh"],
        rule=lambda m, q, name: busy_kw(m, q, {name: levels[name].hours_per_year}),
        doc="the same at one load level",
    )
    model.PeakKw = Expression(
        [key[1] for key in data.yearly_by_quantity if key[0] == "PeakKw"],
        rule=lambda m, q: busy_kw(m, q, {PEAK: 1.0}),
        doc="power above idle at the peak, kW before PUE",
    )


def add_costs(model: Any, data: ProgramData) -> None:
    """One expression a cost component, USD per hour; the objective is their sum, without a constant."""

    def component(_m: Any, name: str) -> Any:
        return sum(
            (
                term.usd_per_year / HOURS_PER_YEAR * data.quantity(model, term.quantity)
                for term in data.terms
                if term.component == name
            ),
            0.0,
        )

    model.Cost = Expression(list(COST_COMPONENTS), rule=component, doc="USD per hour by component")
    model.TotalCost = Objective(
        expr=sum(model.Cost[name] for name in COST_COMPONENTS), sense=minimize, doc="USD per hour"
    )
    model.Accelerators = Expression(
        expr=linear((float(pool.server_type.accelerators), model.Servers[q]) for q, pool in data.pools.items()),
        doc="accelerators of the fleet, spares included",
    )


def named_rows(model: Any) -> list[str]:
    """Names of all constraint rows, for tests of completeness."""
    return [component.name for component in model.component_objects(Constraint, active=True)]
