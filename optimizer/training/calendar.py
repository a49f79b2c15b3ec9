"""The calendar that several jobs share: periods that a run holds its servers, and which choices can matter on it.

Of choices on the same pools one is no better than another that takes no more servers of any of them, holds them for no
more periods, may start as late, and costs no more beside the fleet: whatever a plan does with it, it does with the
other in its place, within every limit (power, racks, supply, types and budgets grow with the servers of a pool) and for
no more. So leaving it out loses no plan.
"""

import numpy as np
from numpy.typing import NDArray

from optimizer.performance.factors import FloatArray

#: Slack of days that are rounded to periods, for the last bit of a division.
_ROUNDING = 1e-9


def periods_held(days: FloatArray, period_days: float) -> NDArray[np.int64]:
    """Whole periods that runs of so many days hold their servers."""
    return np.asarray(np.ceil(np.asarray(days) / period_days - _ROUNDING), dtype=np.int64)


def first_period(start_day: float, period_days: float) -> int:
    """The first period of the calendar from a day on."""
    return int(np.ceil(start_day / period_days - _ROUNDING))


def last_period(days: FloatArray, deadline_day: float, period_days: float) -> NDArray[np.int64]:
    """Last period in which runs of so many days may start."""
    return np.asarray(np.floor((deadline_day - np.asarray(days)) / period_days + _ROUNDING), dtype=np.int64)


def undominated(columns: NDArray[np.float64]) -> NDArray[np.int64]:
    """Rows (choices, figures of which less is better) to which no other is at least equal in every figure.

    Of equal rows the first is kept. By rising last figure, then the others.
    """
    order = np.lexsort(columns.T)
    kept = np.empty((order.size, columns.shape[1]))
    rows: list[int] = []
    for row in order.tolist():
        # A row that is at least equal comes before, and if it was left out so was something better than both.
        if not (kept[: len(rows)] <= columns[row]).all(axis=1).any():
            kept[len(rows)] = columns[row]
            rows.append(row)
    return np.array(rows, dtype=np.int64)
