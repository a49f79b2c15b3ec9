"""The solver layer: outcomes, limits that stop it, a closed list of options, and programs it must refuse."""

import math
from pathlib import Path
from random import Random
from typing import Any

import highspy
import numpy as np
import pytest
from pyomo.core import (
    Binary,
    ConcreteModel,
    Constraint,
    NonNegativeIntegers,
    NonNegativeReals,
    Objective,
    SOSConstraint,
    Var,
    maximize,
)

from optimizer.errors import SolverError
from optimizer.program import build_program
from optimizer.solver import Compiled, Options, Outcome, Reason, Search, export, solver_name
from tests.core.hand import EXACT, cost
from tests.core.test_random_programs import draw


def toy(**changes: Any) -> ConcreteModel:
    """min 3x + 2y, x + y >= 3.5, x whole: x = 0, y = 3.5."""
    model = ConcreteModel()
    model.x = Var(domain=NonNegativeIntegers, bounds=(0, changes.get("most", 10)))
    model.y = Var(domain=NonNegativeReals, bounds=(0, changes.get("most", 10)))
    model.enough = Constraint(expr=model.x + model.y >= changes.get("needed", 3.5))
    model.cost = Objective(expr=changes.get("dear", 3.0) * model.x + 2.0 * model.y)
    return model


def hard(size: int = 40, seed: int = 1) -> ConcreteModel:
    """A market split program: quick to find a plan, long to prove it."""
    random = Random(seed)
    model = ConcreteModel()
    items = list(range(size))
    model.x = Var(items, domain=Binary)
    model.over = Var(range(5), domain=NonNegativeReals)
    model.under = Var(range(5), domain=NonNegativeReals)
    weights = {(row, i): random.randrange(100) for row in range(5) for i in items}

    def split(m: Any, row: int) -> Any:
        half = sum(weights[row, i] for i in items) // 2
        return sum(weights[row, i] * m.x[i] for i in items) + m.under[row] - m.over[row] == half

    model.split = Constraint(range(5), rule=split)
    model.cost = Objective(expr=sum(model.over[row] + model.under[row] for row in range(5)))
    return model


def test_optimum_of_a_toy() -> None:
    compiled = Compiled(toy())
    outcome = compiled.solve(EXACT)
    assert outcome.reason is Reason.OPTIMAL
    assert outcome.objective == pytest.approx(7.0)
    assert outcome.bound == pytest.approx(7.0)
    assert outcome.gap == pytest.approx(0.0)
    assert outcome.values is not None
    assert compiled.rounded(outcome.values).tolist() == pytest.approx([0.0, 3.5])


def test_integers_are_whole() -> None:
    outcome = Compiled(toy(dear=1.0)).solve(EXACT)
    assert outcome.values is not None
    # x = 3 and half a y (4) is dearer than x = 4 (4): a tie; both are whole.
    assert outcome.objective == pytest.approx(4.0)
    assert outcome.values[0] == pytest.approx(round(outcome.values[0]))


@pytest.mark.parametrize(("needed", "reason"), [(20.0, Reason.OPTIMAL), (20.001, Reason.INFEASIBLE)])
def test_border_of_infeasible(needed: float, reason: Reason) -> None:
    outcome = Compiled(toy(needed=needed)).solve(EXACT)
    assert outcome.reason is reason
    if reason is Reason.INFEASIBLE:
        assert outcome.values is None
        assert math.isnan(outcome.objective)
        assert outcome.gap == math.inf


def test_a_program_without_rows() -> None:
    model = ConcreteModel()
    model.x = Var(domain=NonNegativeIntegers, bounds=(2, 5))
    model.cost = Objective(expr=3.0 * model.x)
    outcome = Compiled(model).solve(EXACT)
    assert (outcome.reason, outcome.objective) == (Reason.OPTIMAL, 6.0)


def test_an_empty_program() -> None:
    model = ConcreteModel()
    model.cost = Objective(expr=0.0)
    outcome = Compiled(model).solve(EXACT)
    assert outcome.reason is Reason.OPTIMAL
    assert outcome.objective == 0.0


def test_a_continuous_program_has_its_own_objective_as_bound() -> None:
    model = ConcreteModel()
    model.y = Var(domain=NonNegativeReals)
    model.enough = Constraint(expr=model.y >= 3.5)
    model.cost = Objective(expr=2.0 * model.y)
    outcome = Compiled(model).solve(EXACT)
    assert outcome.objective == pytest.approx(7.0)
    assert outcome.bound == pytest.approx(7.0)


def test_unbounded_is_not_a_plan() -> None:
    model = ConcreteModel()
    model.y = Var(domain=NonNegativeReals)
    model.cost = Objective(expr=-2.0 * model.y)
    outcome = Compiled(model).solve(EXACT)
    assert outcome.reason is Reason.UNBOUNDED
    assert outcome.values is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("place", ["objective", "row"])
def test_a_coefficient_that_is_no_finite_number_is_refused(place: str, value: float) -> None:
    model = ConcreteModel()
    model.x = Var(domain=NonNegativeReals, bounds=(0, 1))
    model.enough = Constraint(expr=(value if place == "row" else 1.0) * model.x <= 1.0)
    model.cost = Objective(expr=(value if place == "objective" else 1.0) * model.x)
    with pytest.raises((SolverError, ValueError)):
        Compiled(model)


def test_what_is_not_linear_is_refused() -> None:
    model = toy()
    model.square = Constraint(expr=model.x * model.y <= 1.0)
    with pytest.raises(SolverError, match="not linear"):
        Compiled(model)
    model = toy()
    model.cost.deactivate()
    model.squared = Objective(expr=model.x * model.y)
    with pytest.raises(SolverError, match="not linear"):
        Compiled(model)


def test_exactly_one_objective() -> None:
    model = toy()
    model.second = Objective(expr=model.x)
    with pytest.raises(SolverError, match="2"):
        Compiled(model)
    model = toy()
    model.cost.deactivate()
    with pytest.raises(SolverError, match="0"):
        Compiled(model)


def test_a_constant_in_the_objective_is_refused() -> None:
    model = toy()
    model.cost.deactivate()
    model.shifted = Objective(expr=model.x + 5.0)
    with pytest.raises(SolverError, match="constant"):
        Compiled(model)


def test_special_ordered_sets_are_refused() -> None:
    model = toy()
    model.z = Var([1, 2], domain=NonNegativeReals)
    model.sets = SOSConstraint(var=model.z, sos=1)
    with pytest.raises(SolverError, match="ordered"):
        Compiled(model)


def test_maximising_is_passed_on() -> None:
    model = toy()
    model.cost.deactivate()
    model.most = Constraint(expr=2 * model.x + model.y <= 7.5)
    model.profit = Objective(expr=model.x + 0.25 * model.y, sense=maximize)
    outcome = Compiled(model).solve(EXACT)
    assert outcome.objective == pytest.approx(3.0 + 0.25 * 1.5)


def test_constants_on_both_sides_of_a_row() -> None:
    model = ConcreteModel()
    model.x = Var(domain=NonNegativeReals)
    model.enough = Constraint(expr=model.x + 2.0 >= 5.0 - 0.5 * model.x)
    model.cost = Objective(expr=model.x)
    assert Compiled(model).solve(EXACT).objective == pytest.approx(2.0)


@pytest.mark.parametrize(
    "wrong",
    [Options(gap=-1.0), Options(gap=float("nan")), Options(time_limit_s=-1.0), Options(threads=-1), Options(seed=-1)],
    ids=["gap", "gap nan", "time", "threads", "seed"],
)
def test_an_option_that_the_solver_refuses_is_said(wrong: Options) -> None:
    with pytest.raises(SolverError, match="refused"):
        Compiled(toy()).solve(wrong)


def test_a_time_limit_stops_the_search_and_keeps_its_plan() -> None:
    outcome = Compiled(hard()).solve(Options(gap=0.0, time_limit_s=0.5))
    assert outcome.reason is Reason.TIME_LIMIT
    if outcome.values is not None:
        assert outcome.bound <= outcome.objective
        assert outcome.gap > 0.0


def test_a_stop_keeps_the_incumbent() -> None:
    compiled = Compiled(hard())
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 50

    outcome = compiled.solve(Options(gap=0.0, time_limit_s=60.0), stop)
    assert outcome.reason is Reason.INTERRUPT
    assert asked > 50
    assert outcome.values is not None
    values = compiled.rounded(outcome.values)
    assert outcome.objective == pytest.approx(float(values[40:].sum()), abs=1e-6)
    assert outcome.bound <= outcome.objective + 1e-9


def test_a_stop_before_any_plan_holds_nothing_or_a_plan_but_no_proof() -> None:
    outcome = Compiled(hard()).solve(Options(gap=0.0, time_limit_s=60.0), lambda: True)
    assert outcome.reason is Reason.INTERRUPT


def test_the_callback_of_one_solve_does_not_reach_the_next() -> None:
    compiled = Compiled(toy())
    compiled.solve(EXACT, lambda: False)
    assert compiled.solve(EXACT).reason is Reason.OPTIMAL


def test_other_threads_after_one_thread() -> None:
    for threads in (1, 2, 1):
        assert Compiled(toy()).solve(Options(gap=0.0, threads=threads)).objective == pytest.approx(7.0)


def test_another_objective_and_one_more_row_on_the_same_program() -> None:
    model = toy()
    compiled = Compiled(model)
    first = compiled.solve(EXACT)
    assert first.values is not None
    compiled.add_row(compiled.cost_vector(model.cost.expr), 9.0)
    compiled.set_objective(compiled.cost_vector(-1.0 * model.x))
    compiled.start_from(compiled.rounded(first.values))
    second = compiled.solve(EXACT)
    # 3x + 2y <= 9 with x + y >= 3.5 leaves x at most 2.
    assert second.objective == pytest.approx(-2.0)


@pytest.mark.parametrize("start", [{0: 2.0}, {0: 99.0}, {}, {0: 0.0, 1: 3.5}])
def test_a_start_never_changes_the_optimum(start: dict[int, float]) -> None:
    compiled = Compiled(toy())
    compiled.start_from_counts(start)
    assert compiled.solve(EXACT).objective == pytest.approx(7.0)


@pytest.mark.parametrize("seed", range(6))
def test_how_much_is_searched_never_changes_what_is_proven(seed: int) -> None:
    """Nor does a search before, with other options, on the same object."""
    data = draw(seed)
    programs = [toy(), hard(12, seed), *([] if data is None else [build_program(data)])]
    for program in programs:
        compiled = Compiled(program)
        found = [compiled.solve(EXACT, search=search) for search in (*Search, Search.WHOLE)]
        assert {one.reason for one in found} == {found[0].reason}
        if found[0].reason is Reason.OPTIMAL:
            assert [one.objective for one in found] == pytest.approx([found[0].objective] * len(found))
            assert [one.bound for one in found] == pytest.approx([found[0].objective] * len(found))


def test_a_switch_is_on_where_its_columns_are_not_nought() -> None:
    model = toy()
    compiled = Compiled(model)
    y = compiled.column_of(model.y)
    switch = compiled.add_switch({y: 10.0})
    costs = np.append(compiled.cost_vector(model.cost.expr), 6.0)
    assert costs.size == switch + 1
    compiled.set_objective(costs)
    outcome = compiled.solve(EXACT)
    # Any y costs 6 more than its 2: four x at 3 (12) beat 3.5 y at 2 and the switch (13).
    assert outcome.objective == pytest.approx(12.0)
    assert outcome.values is not None
    assert outcome.values.tolist() == pytest.approx([4.0, 0.0])


def test_columns_of_variables() -> None:
    model = toy()
    compiled = Compiled(model)
    assert (compiled.column_of(model.x), compiled.column_of(model.y)) == (0, 1)
    assert [one.name for one in compiled.columns] == ["x", "y"]


def test_a_count_that_is_not_whole_is_refused() -> None:
    compiled = Compiled(toy())
    assert compiled.rounded(np.array([1.00001, 0.3])).tolist() == [1.0, 0.3]
    with pytest.raises(SolverError, match="whole"):
        compiled.rounded(np.array([1.001, 0.3]))


def test_gap_of_an_outcome() -> None:
    def outcome(objective: float, bound: float, values: Any = ()) -> Outcome:
        held = None if values is None else np.array(values)
        return Outcome(Reason.OPTIMAL, objective, bound, held, 0, 0.0)

    assert outcome(10.0, 9.0).gap == pytest.approx(0.1)
    assert outcome(10.0, 11.0).gap == 0.0
    assert outcome(0.0, 0.0).gap == 0.0
    assert outcome(0.0, -1.0).gap == math.inf
    assert outcome(10.0, 9.0, None).gap == math.inf


def test_name_of_the_solver() -> None:
    assert solver_name().startswith("HiGHS 1.")


def test_same_program_same_answer() -> None:
    first, second = (Compiled(build_program(draw(0))).solve(Options(seed=3)) for _ in range(2))
    assert first.values is not None
    assert second.values is not None
    assert np.array_equal(first.values, second.values)


@pytest.mark.parametrize("ending", [".lp", ".mps"])
@pytest.mark.parametrize("seed", [0, 3, 5])
def test_an_exported_program_has_the_same_optimum(ending: str, seed: int, tmp_path: Path) -> None:
    data = draw(seed)
    best = cost(data)
    path = tmp_path / f"program{ending}"
    export(build_program(data), path)
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 0.0)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    assert highs.getInfo().objective_function_value == pytest.approx(best, rel=1e-6)
    assert "Replicas" in path.read_text()


def test_export_of_another_kind_is_refused(tmp_path: Path) -> None:
    for name in ("program.txt", "program", "program.LP"):
        with pytest.raises(ValueError, match=r"\.lp or \.mps"):
            export(toy(), tmp_path / name)
        assert not (tmp_path / name).exists()
