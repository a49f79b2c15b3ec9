"""Small programs that a version of the solver got wrong, and one that its default gap gets wrong.

Versions of HiGHS around 1.14 called worse plans optimal on programs of two or three variables (issues 2957, 2975,
3002, 3043, 3073 of github.com/ERGO-Code/HiGHS; issue 651 of PyPSA/linopy). Whatever solver is installed must pass them.
"""

from collections.abc import Callable
from typing import Any

import pytest
from pyomo.core import (
    Binary,
    ConcreteModel,
    Constraint,
    NonNegativeIntegers,
    NonNegativeReals,
    Objective,
    Reals,
    Var,
    minimize,
)

from optimizer.solver import Compiled, Options, Reason


def issue_2957() -> Any:
    """An integer and a continuous variable share a requirement that is no whole number."""
    model = ConcreteModel()
    model.X = Var(domain=NonNegativeIntegers, bounds=(0, 20))
    model.Y = Var(domain=NonNegativeReals, bounds=(8, 20))
    model.Need = Constraint(expr=model.X + model.Y >= 20.1)
    model.Cost = Objective(expr=model.X + 2 * model.Y, sense=minimize)
    return model


def issue_2975() -> Any:
    """A dear binary with a big M was fixed at 1, where 0 is free."""
    model = ConcreteModel()
    model.A, model.B = Var(domain=NonNegativeReals), Var(domain=NonNegativeReals)
    model.Y = Var(domain=Binary)
    model.Total = Constraint(expr=model.A + model.B == 10)
    model.Open = Constraint(expr=model.A - 100 * model.Y <= 0)
    model.Cost = Objective(expr=2 * model.B + 99_999 * model.Y, sense=minimize)
    return model


def issue_3002() -> Any:
    """An equation ties an integer to half a unit of a continuous variable."""
    model = ConcreteModel()
    model.X, model.Y = Var(bounds=(0, 4), domain=Reals), Var(bounds=(-1, 1), domain=Reals)
    model.Z = Var(domain=NonNegativeIntegers)
    model.One = Constraint(expr=model.X + model.Y <= 5)
    model.Two = Constraint(expr=model.X + model.Z >= 10)
    model.Three = Constraint(expr=-model.Y + model.Z == 7.5)
    model.Cost = Objective(expr=model.X + 4 * model.Y + 9 * model.Z, sense=minimize)
    return model


def issue_3043() -> Any:
    """One row, one cheap continuous variable: the integer is not needed at all."""
    model = ConcreteModel()
    model.X = Var(domain=NonNegativeReals, bounds=(0, 10))
    model.Z = Var(domain=NonNegativeIntegers, bounds=(0, 10))
    model.Need = Constraint(expr=model.X + model.Z >= 4.5)
    model.Cost = Objective(expr=2 * model.X + 3 * model.Z, sense=minimize)
    return model


def issue_3073() -> Any:
    """A dear gap is closed by an integer whose size is charged a little."""
    model = ConcreteModel()
    model.Gap, model.T = Var(domain=NonNegativeReals), Var(domain=Reals)
    model.X = Var(domain=NonNegativeIntegers)
    model.Sum = Constraint(expr=model.Gap + model.X == 3)
    model.Above = Constraint(expr=model.X - model.T <= 0)
    model.Below = Constraint(expr=-model.X - model.T <= 0)
    model.Most = Constraint(expr=model.X <= 3)
    model.Least = Constraint(expr=-model.X <= -0.45)
    model.Cost = Objective(expr=100 * model.Gap + 0.01 * model.T, sense=minimize)
    return model


def linopy_651() -> Any:
    """Ten like pairs of a binary and a continuous variable, one of them enough for each row."""
    model = ConcreteModel()
    pairs = range(10)
    model.X = Var(pairs, domain=Binary)
    model.Y = Var(pairs, bounds=(9, None), domain=Reals)
    model.Need = Constraint(pairs, rule=lambda m, i: 2 * m.X[i] + m.Y[i] >= 10)
    model.Cost = Objective(expr=sum(2 * model.X[i] + model.Y[i] for i in pairs), sense=minimize)
    return model


def dear_servers() -> Any:
    """Costs of a million each: at the solver's own gap of 1e-4 a plan 150 too dear counts as optimal."""
    model = ConcreteModel()
    costs, sizes = (1_000_300, 2_000_500, 3_000_650), (1, 2, 3)
    model.N = Var(range(3), domain=NonNegativeIntegers)
    model.Need = Constraint(expr=sum(size * model.N[i] for i, size in enumerate(sizes)) >= 1000)
    model.Cost = Objective(expr=sum(cost * model.N[i] for i, cost in enumerate(costs)), sense=minimize)
    return model


@pytest.mark.parametrize(
    ("build", "optimum"),
    [
        (issue_2957, 28.2),
        (issue_2975, 20.0),
        (issue_3002, 64.0),
        (issue_3043, 9.0),
        (issue_3073, 0.03),
        (linopy_651, 100.0),
        (dear_servers, 1_000_216_750.0),
    ],
)
def test_cases_that_a_solver_once_got_wrong(build: Callable[[], Any], optimum: float) -> None:
    outcome = Compiled(build()).solve(Options(gap=0.0))
    assert outcome.reason is Reason.OPTIMAL
    assert outcome.objective == pytest.approx(optimum, rel=1e-8, abs=1e-7)


def test_the_gap_asked_for_is_the_gap_reported() -> None:
    outcome = Compiled(dear_servers()).solve(Options(gap=1e-6))
    assert outcome.objective <= 1_000_216_750.0 * (1.0 + 1e-6)
    assert outcome.gap <= 1e-6
    assert outcome.bound <= 1_000_216_750.0 * (1.0 + 1e-9)


def test_an_infeasible_program_is_an_outcome() -> None:
    model = issue_3043()
    model.Never = Constraint(expr=model.X + model.Z <= 4.0)
    outcome = Compiled(model).solve(Options())
    assert outcome.reason is Reason.INFEASIBLE
    assert outcome.values is None
