"""Of fillings of one fleet at one cost, one of few ways to serve: no second scheme or layout that buys nothing.

Ties by accelerators, types and names (``optimizer.ties``) leave open how equal servers are filled. What the solver
happens to meet may mix layouts and schemes for no reason that a reader could see, and differ between neighbours that
cost the same: a study would call that a flip of the choice.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from optimizer.program_data import ProgramData
from optimizer.solver import Compiled, FloatArray, Options


class _Ways:
    """Columns of each deployment's replicas, at the peak and by load level."""

    def __init__(self, compiled: Compiled, model: Any, data: ProgramData) -> None:
        self.columns: dict[str, list[int]] = {}
        for family in (model.Replicas, model.Running):
            for index, variable in family.items():
                self.columns.setdefault(index[0], []).append(compiled.column_of(variable))
        self._data = data

    def used(self, values: FloatArray) -> list[str]:
        """Deployments in use, by id."""
        return sorted(d for d, columns in self.columns.items() if any(values[column] > 0.5 for column in columns))

    def of(self, deployments: Iterable[str]) -> list[int]:
        """Columns of some deployments."""
        return [column for d in deployments for column in self.columns[d]]

    def groups(self, used: list[str]) -> Iterator[list[str]]:
        """What may be left out at once: schemes whole, then single deployments, the less capable of equals first."""
        offered = self._data.deployments
        schemes: dict[str, list[str]] = {}
        for d in used:
            schemes.setdefault(offered[d].scheme, []).append(d)
        if len(schemes) > 1:
            yield from (schemes[key] for key in sorted(schemes))
        yield from ([d] for d in sorted(used, key=lambda d: (self._data.capacity[d], d)))


def fewest_ways(
    compiled: Compiled,
    model: Any,
    data: ProgramData,
    values: FloatArray,
    options: Options,
    deadline: float,
    stop: Callable[[], bool] | None,
) -> FloatArray:
    """The same servers with no scheme and no deployment that those beside it could do without.

    The cost's row, at the least cost and its tie, stands in ``compiled`` already. One after the other is left out where
    the others in use still keep every row, so none of those that stay can be spared alone; nothing new is taken in.
    """
    ways = _Ways(compiled, model, data)
    used = ways.used(values)
    classes = {data.deployments[d].class_index for d in used}
    if len(used) == len(classes):
        return values
    servers = [compiled.column_of(model.Servers[q]) for q in data.pools]
    compiled.set_bounds(servers, values[servers], values[servers])
    _fix_at_zero(compiled, ways.of(d for d in ways.columns if d not in used))
    compiled.set_objective(np.zeros(values.size))
    tried: set[tuple[str, ...]] = set()
    while True:
        for group in ways.groups(used):
            left = deadline - time.perf_counter()
            if tuple(group) in tried or not _leaves_each_class(data, used, group):
                continue
            if left <= 0.0 or (stop is not None and stop()):
                return values
            tried.add(tuple(group))
            columns = ways.of(group)
            before = _fix_at_zero(compiled, columns)
            asked = Options(gap=options.gap, time_limit_s=left, threads=options.threads, seed=options.seed)
            found = compiled.solve(asked, stop)
            if found.values is not None:
                values = compiled.rounded(found.values)
                used = ways.used(values)
                break
            compiled.set_bounds(columns, *before)
        else:
            return values


def _fix_at_zero(compiled: Compiled, columns: list[int]) -> tuple[FloatArray, FloatArray]:
    """Leave columns out; the bounds that they had."""
    nothing = np.zeros(len(columns))
    return compiled.set_bounds(columns, nothing, nothing)


def _leaves_each_class(data: ProgramData, used: list[str], group: list[str]) -> bool:
    """Whether every class keeps a deployment."""
    left = {data.deployments[d].class_index for d in used if d not in group}
    return left == {data.deployments[d].class_index for d in used}
