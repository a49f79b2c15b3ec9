"""Solving: a Pyomo model compiled once to arrays and passed to HiGHS, stopped in time, keeping the best plan.

Only the options listed here reach the solver: some of its others give wrong answers. Objectives and bounds can be
changed between solves without rebuilding.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray
from pyomo.common.gc_manager import PauseGC
from pyomo.core import Constraint, Objective, SOSConstraint, Var, minimize
from pyomo.repn.linear import LinearRepnVisitor
from pyomo.repn.util import OrderedVarRecorder

from optimizer.errors import SolverError

FloatArray = NDArray[np.float64]

#: Absolute gap (in the objective's unit) below which two plans cost the same.
ABSOLUTE_GAP = 1e-9


class Reason(Enum):
    """Why the solver stopped."""

    OPTIMAL = "optimal"
    TIME_LIMIT = "time_limit"
    INTERRUPT = "interrupt"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    ERROR = "error"


class Search(Enum):
    """How much of a search goes into finding plans, beside proving the best one.

    WHOLE: all that the solver has. SMALL: for programs of some hundred columns, as that of a fleet that serves: no
    sub-programs by the root's reduced costs, and no new beginning when the root has fixed many columns; over the
    shipped instances they take 40 % less so, where large ones take longer. PROOF: the plan at hand is nearly always
    the best one, so no improvements of it are looked for either: programs that order plans take another fifth less.
    """

    WHOLE = "whole"
    SMALL = "small"
    PROOF = "proof"


#: Solver's option -> searches that have it on. None of them changes what is proven.
_SEARCHED: Mapping[str, frozenset[Search]] = MappingProxyType(
    {
        "mip_heuristic_run_root_reduced_cost": frozenset({Search.WHOLE}),
        "mip_allow_restart": frozenset({Search.WHOLE}),
        "mip_heuristic_run_rins": frozenset({Search.WHOLE, Search.SMALL}),
        "mip_heuristic_run_feasibility_jump": frozenset({Search.WHOLE, Search.SMALL}),
    }
)


@dataclass(frozen=True, slots=True)
class Options:
    """What may be asked of the solver."""

    gap: float = 1e-6
    time_limit_s: float = 300.0
    threads: int = 1
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Why the solver stopped, and what it holds: ``values`` by column, or None."""

    reason: Reason
    objective: float
    bound: float
    values: FloatArray | None
    nodes: int
    seconds: float

    @property
    def gap(self) -> float:
        """Relative distance of the plan to the bound; infinite without a plan."""
        if self.values is None:
            return float("inf")
        if self.objective == 0.0:
            return 0.0 if self.bound >= 0.0 else float("inf")
        return max(0.0, (self.objective - self.bound) / abs(self.objective))


@dataclass(frozen=True, slots=True)
class Watched:
    """A ``stop`` that is also told how searches stand, so that a screen can show it.

    ``see`` is called with (None, None) when a search begins, and during one for the least cost with the cost of the
    best plan so far and the bound, both in USD/hour; either may be infinite. It must be quick and must not raise.
    """

    asked: Callable[[], bool]
    see: Callable[[float | None, float | None], None]

    def __call__(self) -> bool:
        """Whether to stop."""
        return self.asked()


def solver_name() -> str:
    """Name and version of the solver."""
    return f"HiGHS {highspy.Highs().version()}"


class Compiled:
    """A Pyomo model as arrays in a HiGHS object.

    Rows and columns keep their place, so objectives may be exchanged, rows added and bounds moved between solves.
    """

    def __init__(self, model: Any) -> None:
        self.columns: list[Any] = []
        self._column_of: dict[int, int] = {}
        self._row_of: dict[int, int] = {}
        self._highs = highspy.Highs()
        _set(self._highs, "output_flag", False)
        with PauseGC():
            self._lp = self._compile(model)
        if self._highs.passModel(self._lp) == highspy.HighsStatus.kError:
            raise SolverError("the solver refused the program")
        self._integers = np.array([not var.is_continuous() for var in self.columns], dtype=np.bool_)

    def _compile(self, model: Any) -> Any:
        if next(model.component_data_objects(SOSConstraint, active=True), None) is not None:
            raise SolverError("special ordered sets cannot be passed to this solver")
        objectives = list(model.component_data_objects(Objective, active=True))
        if len(objectives) != 1:
            raise SolverError(f"a program needs exactly one objective, this one has {len(objectives)}")
        variables: dict[int, Any] = {}
        for var in model.component_data_objects(Var):
            self._column_of[id(var)] = len(variables)
            variables[id(var)] = var
        self.columns = list(variables.values())
        visitor = LinearRepnVisitor({}, var_recorder=OrderedVarRecorder(variables, dict(self._column_of), None))
        self._visitor = visitor
        starts, indices, values = [0], [], []
        lower: list[float] = []
        upper: list[float] = []
        infinity = highspy.kHighsInf
        for row in model.component_data_objects(Constraint, active=True):
            low, body, high = row.to_bounded_expression(True)
            repn = visitor.walk_expression(body)
            if repn.nonlinear is not None:
                raise SolverError(f"{row.name} is not linear")
            self._row_of[id(row)] = len(lower)
            scale, constant = repn.multiplier, repn.constant
            indices.append([self._column_of[key] for key in repn.linear])
            values.append([scale * value for value in repn.linear.values()])
            starts.append(starts[-1] + len(repn.linear))
            lower.append(-infinity if low is None else float(low) - constant)
            upper.append(infinity if high is None else float(high) - constant)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.columns), len(lower)
        lp.sense_ = highspy.ObjSense.kMinimize if objectives[0].sense == minimize else highspy.ObjSense.kMaximize
        lp.col_cost_ = self.cost_vector(objectives[0].expr)
        bounds = [var.bounds for var in self.columns]
        lp.col_lower_ = np.array([-infinity if low is None else float(low) for low, _ in bounds])
        lp.col_upper_ = np.array([infinity if high is None else float(high) for _, high in bounds])
        kinds = {False: highspy.HighsVarType.kInteger, True: highspy.HighsVarType.kContinuous}
        lp.integrality_ = [kinds[var.is_continuous()] for var in self.columns]
        lp.row_lower_, lp.row_upper_ = np.array(lower), np.array(upper)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.array(starts, dtype=np.int32)
        lp.a_matrix_.index_ = np.fromiter(chain.from_iterable(indices), np.int32, starts[-1])
        lp.a_matrix_.value_ = np.fromiter(chain.from_iterable(values), np.float64, starts[-1])
        if not (np.isfinite(lp.a_matrix_.value_).all() and np.isfinite(lp.col_cost_).all()):
            raise SolverError("the program holds a coefficient that is not a finite number")
        return lp

    def cost_vector(self, expression: Any) -> FloatArray:
        """Coefficients of a linear expression by column. A constant is refused: it spoils the relative gap."""
        costs = np.zeros(len(self.columns))
        if isinstance(expression, (int, float)):
            return costs
        repn = self._visitor.walk_expression(expression)
        if repn.nonlinear is not None:
            raise SolverError("the objective is not linear")
        if repn.constant:
            raise SolverError("the objective holds a constant, which would spoil the relative gap")
        for key, value in repn.linear.items():
            costs[self._column_of[key]] = repn.multiplier * value
        return costs

    def column_of(self, variable: Any) -> int:
        """Column of a variable of the model."""
        return self._column_of[id(variable)]

    def set_objective(self, costs: FloatArray) -> None:
        """Minimise other costs from now on."""
        self._highs.changeColsCost(costs.size, np.arange(costs.size, dtype=np.int32), costs)

    def add_switch(self, bounds: Mapping[int, float]) -> int:
        """Add a binary column that is 1 where any of the given columns, each with its upper bound, is not 0."""
        switch = int(self._highs.getNumCol())
        self._highs.addCol(0.0, 0.0, 1.0, 0, np.empty(0, dtype=np.int32), np.empty(0))
        self._highs.changeColIntegrality(switch, highspy.HighsVarType.kInteger)
        for column, upper in bounds.items():
            indices = np.array([column, switch], dtype=np.int32)
            self._highs.addRow(-highspy.kHighsInf, 0.0, 2, indices, np.array([1.0, -upper]))
        return switch

    def leave_out_dearer(self, limit: float) -> int:
        """Fix integer columns at 0 that no point up to ``limit`` of the present objective can use; their number.

        The relaxation's reduced cost of a column at 0 is what one whole unit of it adds at least.
        """
        highs = self._highs
        _set(highs, "solve_relaxation", True)
        _set(highs, "time_limit", float("inf"))
        _set(highs, "threads", 1)
        highspy.Highs.resetGlobalScheduler(True)
        try:
            highs.run()
            if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                return 0
            bound, solution = highs.getInfo().objective_function_value, highs.getSolution()
        finally:
            _set(highs, "solve_relaxation", False)
        columns = len(self.columns)
        values, extra = np.array(solution.col_value)[:columns], np.array(solution.col_dual)[:columns]
        lower = np.array(self._lp.col_lower_)
        dear = self._integers & (lower == 0.0) & (values <= 1e-9) & (bound + extra > limit)
        places = np.flatnonzero(dear).astype(np.int32)
        highs.changeColsBounds(places.size, places, np.zeros(places.size), np.zeros(places.size))
        return int(places.size)

    def set_bounds(self, columns: Sequence[int], lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Move the bounds of columns; the bounds that they had."""
        places, lp = np.array(columns, dtype=np.int32), self._highs.getLp()
        before = np.array(lp.col_lower_)[places], np.array(lp.col_upper_)[places]
        self._highs.changeColsBounds(places.size, places, lower, upper)
        return before

    def row_of(self, constraint: Any) -> int:
        """Row of a constraint of the model."""
        return self._row_of[id(constraint)]

    def add_share(self, entries: Mapping[int, float]) -> int:
        """Add a continuous column between 0 and 1 with a coefficient in some rows; its number."""
        column = int(self._highs.getNumCol())
        rows = np.array(sorted(entries), dtype=np.int32)
        values = np.array([entries[row] for row in rows.tolist()])
        self._highs.addCol(0.0, 0.0, 1.0, rows.size, rows, values)
        return column

    def set_row(self, row: int, lower: float, upper: float) -> None:
        """Move the bounds of a row."""
        self._highs.changeRowBounds(row, lower, upper)

    def add_row(self, coefficients: FloatArray, upper: float) -> None:
        """Add ``coefficients x <= upper``."""
        columns = np.flatnonzero(coefficients).astype(np.int32)
        self._highs.addRow(-highspy.kHighsInf, upper, columns.size, columns, coefficients[columns])

    def start_from(self, values: FloatArray) -> None:
        """Give the solver a plan to start from, added switches included."""
        solution = highspy.HighsSolution()
        solution.col_value = list(values)
        self._highs.setSolution(solution)

    def start_from_counts(self, counts: Mapping[int, float]) -> None:
        """Give the solver the values of some columns; it completes the rest itself."""
        columns = np.array(sorted(counts), dtype=np.int32)
        self._highs.setSolution(columns.size, columns, np.array([counts[column] for column in columns.tolist()]))

    def solve(
        self,
        options: Options,
        stop: Callable[[], bool] | None = None,
        *,
        search: Search = Search.WHOLE,
        is_cost: bool = False,
    ) -> Outcome:
        """Solve to the asked gap, or until the time limit or ``stop()``; the best plan met is kept.

        ``search``: how much is done to find plans beside proving the best one.
        ``is_cost``: the objective is a cost in USD/hour, which a ``Watched`` stop may see.

        Raises SolverError when the solver fails; an infeasible or unbounded program is an outcome, not an error.
        """
        highs = self._highs
        _set(highs, "mip_rel_gap", options.gap)
        _set(highs, "mip_abs_gap", ABSOLUTE_GAP)
        _set(highs, "threads", options.threads)
        # The pool of threads belongs to the process: without this a solve after one with other threads is refused.
        highspy.Highs.resetGlobalScheduler(True)
        _set(highs, "random_seed", options.seed)
        _set(highs, "time_limit", float(options.time_limit_s))
        # Tighter than the default 1e-6: a plan may lean on tolerances no more than verification forgives.
        _set(highs, "mip_feasibility_tolerance", 1e-7)
        _set(highs, "primal_feasibility_tolerance", 1e-7)
        for name, searches in _SEARCHED.items():
            _set(highs, name, search in searches)
        callback = _stopper(highs, stop, is_cost=is_cost) if stop is not None else None
        began = time.perf_counter()
        status = highs.run()
        seconds = time.perf_counter() - began
        if callback is not None:
            highs.cbMipInterrupt.unsubscribe(callback)
        if status == highspy.HighsStatus.kError:
            return Outcome(Reason.ERROR, float("nan"), -float("inf"), None, 0, seconds)
        return self._outcome(seconds)

    def _outcome(self, seconds: float) -> Outcome:
        highs = self._highs
        states = highspy.HighsModelStatus
        reasons = {
            states.kOptimal: Reason.OPTIMAL,
            states.kInfeasible: Reason.INFEASIBLE,
            # Every variable is bounded or costs something, so a program that has a plan is never unbounded.
            states.kUnboundedOrInfeasible: Reason.INFEASIBLE,
            states.kUnbounded: Reason.UNBOUNDED,
            states.kTimeLimit: Reason.TIME_LIMIT,
            states.kInterrupt: Reason.INTERRUPT,
        }
        if highs.getModelStatus() == states.kModelEmpty:
            return Outcome(Reason.OPTIMAL, 0.0, 0.0, np.zeros(len(self.columns)), 0, seconds)
        reason = reasons.get(highs.getModelStatus(), Reason.ERROR)
        info = highs.getInfo()
        if reason in (Reason.INFEASIBLE, Reason.UNBOUNDED, Reason.ERROR) or info.primal_solution_status != 2:
            return Outcome(reason, float("nan"), -float("inf"), None, info.mip_node_count, seconds)
        # Switches added since the program was compiled are no variables of it.
        values = np.array(highs.getSolution().col_value)[: len(self.columns)]
        bound = info.mip_dual_bound if self._integers.any() else info.objective_function_value
        return Outcome(reason, info.objective_function_value, bound, values, info.mip_node_count, seconds)

    def by_index(self, values: FloatArray) -> dict[tuple[Any, ...], float]:
        """Values by the family and index of their variable, such as ``("Servers", pool)``."""
        found = {}
        for variable, value in zip(self.columns, values, strict=True):
            index = variable.index()
            steps = index if isinstance(index, tuple) else (index,)
            found[(variable.parent_component().local_name, *steps)] = float(value)
        return found

    def rounded(self, values: FloatArray) -> FloatArray:
        """The same point with integers rounded; SolverError when one lies further than 1e-4 from a whole number."""
        whole = np.round(values)
        if np.any(np.abs(values - whole)[self._integers] > 1e-4):
            raise SolverError("the solver returned counts that are not whole numbers")
        return np.where(self._integers, whole, values)


def _set(highs: Any, name: str, value: object) -> None:
    """Set an option; the solver answers a wrong name or type with a status and goes on, so the status is checked.

    It takes nan for a number, so that is checked here.
    """
    if value != value or highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
        raise SolverError(f"the solver refused {name} = {value!r}")


def _stopper(highs: Any, stop: Callable[[], bool], *, is_cost: bool) -> Any:
    """Ask ``stop`` during the search. Nothing may be raised in a callback: the plan would be lost."""
    see = stop.see if isinstance(stop, Watched) else None
    if see is not None:
        see(None, None)

    def ask(event: Any) -> None:
        if see is not None and is_cost:
            see(event.data_out.mip_primal_bound, event.data_out.mip_dual_bound)
        if stop():
            event.interrupt()

    highs.cbMipInterrupt.subscribe(ask)
    return ask


def export(model: Any, path: Path) -> None:
    """Write the program as LP or MPS text, with the names of the model.

    Raises
    ------
    ValueError: the ending is neither ``.lp`` nor ``.mps``.
    """
    if path.suffix not in (".lp", ".mps"):
        raise ValueError(f"{path.name}: a program is written as .lp or .mps")
    # The writers register themselves in the environment package, which costs more to import than a solve takes.
    import pyomo.environ  # noqa: F401

    model.write(str(path), io_options={"symbolic_solver_labels": True})
