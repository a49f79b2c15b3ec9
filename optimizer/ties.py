"""Which of several plans of one cost is taken: fewest accelerators, then fewest types, then names in order."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from optimizer.extract import TIE
from optimizer.fewest_ways import fewest_ways
from optimizer.program_data import ProgramData
from optimizer.solver import Compiled, FloatArray, Options, Outcome, Search

Stop = Callable[[], bool]

#: Relative gap of the programs that order plans: far below one accelerator in any fleet.
ORDER_GAP = 1e-9


class Order:
    """The order of plans as objectives of a program.

    Accelerators count whole; all names together at most half an accelerator. Where types are counted too they weigh a
    quarter of an accelerator all together, and names less than one type.
    """

    def __init__(self, compiled: Compiled, model: Any, data: ProgramData) -> None:
        self._data = data
        self.accelerators = compiled.cost_vector(model.Accelerators)
        self.column = {q: compiled.column_of(model.Servers[q]) for q in sorted(data.pools)}
        most = sum(data.max_servers.values()) + 1.0
        self.names = np.zeros_like(self.accelerators)
        for rank, place in enumerate(self.column.values()):
            # All ranks together stay below one accelerator, so names never buy one.
            self.names[place] = rank / (len(self.column) * most)

    def without_types(self) -> FloatArray:
        """Costs by column: accelerators, then names."""
        costs: FloatArray = self.accelerators + 0.5 * self.names
        return costs

    def with_types(self, switches: int) -> FloatArray:
        """Costs by column and switch: accelerators, then types, then names."""
        share = 0.25 / switches
        return np.concatenate((self.accelerators + 0.5 * share * self.names, np.full(switches, share)))

    def capacity(self, compiled: Compiled, model: Any) -> FloatArray:
        """Costs by column that prefer capacity, all of it weighing less than one place in the order of names."""
        costs = np.zeros_like(self.accelerators)
        most = self._data.most_capacity
        servers = sum(self._data.max_servers.values()) + 1.0
        step = 0.5 * 0.25 / len(self._data.accelerator_pools) / (len(self.column) * servers)
        for (d, _), variable in model.Replicas.items():
            b = self._data.deployments[d].class_index
            costs[compiled.column_of(variable)] = -0.25 * step * self._data.capacity[d] / most[b] / len(most)
        return costs

    def used(self, fleet: FloatArray) -> list[bool]:
        """Whether each accelerator of the program is used by a fleet."""
        pools = self._data.accelerator_pools.values()
        return [any(fleet[self.column[q]] > 0.5 for q in members) for members in pools]

    def add_switches(self, compiled: Compiled) -> int:
        """Add a switch for each accelerator; their number."""
        for members in self._data.accelerator_pools.values():
            compiled.add_switch({self.column[q]: float(self._data.max_servers[q]) for q in members})
        return len(self._data.accelerator_pools)


def break_ties(
    compiled: Compiled,
    model: Any,
    data: ProgramData,
    outcome: Outcome,
    values: FloatArray,
    options: Options,
    deadline: float,
    stop: Stop | None,
    *,
    roomy: bool = False,
) -> FloatArray:
    """Among plans within ``TIE`` of the least cost: fewest accelerators, then fewest types, then names in order.

    Lexicographic by hand: the cost becomes a row, then the count of accelerators is minimised with half an accelerator
    at most for all names together. A fleet of one type that comes first so is first in the whole order, for no fleet
    has fewer types. Where there may be a mix, types are counted too, at a quarter of an accelerator for all of them,
    and names weigh less than one type: that is the whole order, so where the cheapest plan is a mix already it is
    asked at once. Of plans that are equal even then, one with few ways to serve (``fewest_ways``); ``roomy``: in its
    place one with much capacity, which neighbours with more demand may use.
    """
    cost = compiled.cost_vector(model.TotalCost.expr)
    compiled.leave_out_dearer(outcome.objective + 2.0 * TIE * abs(outcome.objective))
    compiled.add_row(cost, outcome.objective + TIE * abs(outcome.objective))
    order = Order(compiled, model, data)
    room = order.capacity(compiled, model) if roomy else np.zeros_like(order.names)

    def least(costs: FloatArray, start: FloatArray) -> FloatArray | None:
        compiled.set_objective(costs)
        compiled.start_from(start)
        left = max(1e-3, deadline - time.perf_counter())
        asked = Options(gap=ORDER_GAP, time_limit_s=left, threads=options.threads, seed=options.seed)
        found = compiled.solve(asked, stop, search=Search.PROOF)
        return None if found.values is None else compiled.rounded(found.values)

    best: FloatArray | None = values
    if sum(order.used(values)) < 2:
        best = least(order.without_types() + room, values)
    if best is None:
        return values
    if sum(order.used(best)) > 1:
        switches = order.add_switches(compiled)
        costs = order.with_types(switches)
        costs[: room.size] += room
        fewest = least(costs, np.concatenate((best, np.array(order.used(best), dtype=np.float64))))
        best = best if fewest is None else fewest
    return best if roomy else fewest_ways(compiled, model, data, best, options, deadline, stop)
