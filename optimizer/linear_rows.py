"""A small linear program, row by row: no model, no names."""

import math
from dataclasses import dataclass

import highspy
import numpy as np


@dataclass(frozen=True, slots=True)
class LinearSolution:
    """Objective, values and reduced costs of the columns."""

    objective: float
    values: list[float]
    reduced_costs: list[float]


class LinearRows:
    """Rows of a linear program as they come, solved by HiGHS."""

    def __init__(self, columns: int = 0) -> None:
        self.cost = [0.0] * columns
        self.upper = [math.inf] * columns
        self._bounds: list[tuple[float, float]] = []
        self._entries: list[tuple[int, int, float]] = []

    def column(self, cost: float, upper: float = math.inf) -> int:
        """A further column from 0 on; its number."""
        self.cost.append(cost)
        self.upper.append(upper)
        return len(self.cost) - 1

    def row(self, lower: float, upper: float) -> int:
        """A new row; its number."""
        self._bounds.append((lower, upper))
        return len(self._bounds) - 1

    def entry(self, row: int, column: int, value: float) -> None:
        """A coefficient."""
        self._entries.append((row, column, value))

    def solve(self) -> LinearSolution | None:
        """The optimum, or None when the solver does not reach one."""
        entries = sorted(self._entries)
        counts = np.bincount([row for row, _, _ in entries], minlength=len(self._bounds))
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.cost), len(self._bounds)
        lp.col_cost_, lp.col_upper_ = np.array(self.cost), np.array(self.upper)
        lp.col_lower_ = np.zeros(len(self.cost))
        lp.row_lower_ = np.array([low for low, _ in self._bounds])
        lp.row_upper_ = np.array([high for _, high in self._bounds])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        lp.a_matrix_.index_ = np.array([column for _, column, _ in entries], dtype=np.int32)
        lp.a_matrix_.value_ = np.array([value for _, _, value in entries])
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)
        highspy.Highs.resetGlobalScheduler(True)
        highs.passModel(lp)
        highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        found = highs.getSolution()
        return LinearSolution(highs.getInfo().objective_function_value, list(found.col_value), list(found.col_dual))
