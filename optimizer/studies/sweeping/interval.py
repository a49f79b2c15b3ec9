"""A proof for all demands between two: one program in which the demand itself is a variable."""

from dataclasses import replace
from typing import Any

import numpy as np

from optimizer.extract import TIE
from optimizer.offer import Offer, program_data
from optimizer.pools import undominated_pools, undominated_schemes
from optimizer.program import build_program
from optimizer.program_data import ProgramData
from optimizer.prune import prune_between
from optimizer.solver import Compiled, FloatArray, Options, Reason, Search
from optimizer.studies.sweeping.solving import Counts, start_columns
from optimizer.ties import ORDER_GAP, Order, Stop
from optimizer.units import HOURS_PER_YEAR

#: Plans count as equally cheap when they differ by no more than this share; a tenth of the ties' window.
PROOF = 1e-7


def taken_throughout(
    high: Offer,
    low_demand: tuple[float, ...],
    counts: Counts,
    costs_usd_per_year: tuple[float, float],
    options: Options,
    stop: Stop | None,
) -> bool:
    """Whether a fleet is the one taken at every demand between ``low_demand`` and that of ``high``, both included.

    ``costs_usd_per_year`` are those of the cheapest known fleet at both ends; in between its cost must lie on the
    straight line between them, and the fleet must be within ``TIE`` of it (the caller checks both at each case).

    Proof. Demand is ``low + t (high - low)`` with ``t`` in 0..1. It stands on the right-hand side of two families of
    rows, at the peak and at each level, and there it becomes a column ``t``. The other rows that know the demand are
    implied by whole plans and are taken at the highest demand, where they are weakest, as bounds on counts are. So
    every plan at every demand in between is a point of this program. Its least value of ``cost - line(t)`` shows
    whether any plan is cheaper than the known one anywhere; where none is, the least of the order of plans
    (``optimizer.ties``) among those within ``TIE`` of the line shows whether any would be taken before the fleet.
    """
    program = _Between(high, low_demand, costs_usd_per_year)
    if program.data is None:
        return False
    return program.nothing_cheaper(counts, options, stop) and program.nothing_before(counts, options, stop)


class _Between:
    """The program over all demands between two."""

    def __init__(self, high: Offer, low: tuple[float, ...], costs: tuple[float, float]) -> None:
        self._low_usd, self._high_usd = (usd / HOURS_PER_YEAR for usd in costs)
        data = program_data(high, reduce=False)
        self.data: ProgramData | None = None
        if data is None:
            return
        if high.dominate:
            data = data.only_pairs(undominated_schemes(data))
            data = data.only_pools(undominated_pools(data))
        limit = max(self._low_usd, self._high_usd) * (1.0 + 2.0 * TIE)
        self.data = data = prune_between(data, low, limit)
        self._model: Any = build_program(data)
        self._compiled = Compiled(self._model)
        self._cost = self._compiled.cost_vector(self._model.TotalCost.expr)
        self._share = self._free_demand(data, low)

    def _free_demand(self, data: ProgramData, low: tuple[float, ...]) -> int:
        """Make the demand a column; rows are divided by the highest demand."""
        least = [one / most for one, most in zip(low, data.demand, strict=True)]
        entries: dict[int, float] = {}
        for b, row in self._model.Demand.items():
            place = self._compiled.row_of(row)
            self._compiled.set_row(place, least[b], float("inf"))
            entries[place] = -(1.0 - least[b])
        for (b, name), row in self._model.Serve.items():
            place, fraction = self._compiled.row_of(row), data.billed_levels[name].fraction
            self._compiled.set_row(place, fraction * least[b], fraction * least[b])
            entries[place] = -fraction * (1.0 - least[b])
        return self._compiled.add_share({row: value for row, value in entries.items() if value})

    def nothing_cheaper(self, counts: Counts, options: Options, stop: Stop | None) -> bool:
        """Whether no plan is cheaper than the line anywhere."""
        slope = self._high_usd - self._low_usd
        self._compiled.set_objective(np.append(self._cost, -slope))
        self._compiled.leave_out_dearer(self._low_usd + 2.0 * TIE * max(self._low_usd, self._high_usd))
        assert self.data is not None
        start: dict[tuple[str, ...], float] = {}
        start.update({("Replicas", *pair): float(count) for pair, count in counts.replicas.items()})
        start.update({("Servers", q): float(count) for q, count in counts.servers.items()})
        start.update({("Spare", q): float(count) for q, count in counts.spare.items()})
        self._compiled.start_from_counts(start_columns(self._compiled, self._model, start))
        found = self._compiled.solve(replace(options, gap=PROOF / 10.0), stop, search=Search.PROOF)
        proven = found.reason is Reason.OPTIMAL and found.bound >= self._low_usd * (1.0 - PROOF)
        return bool(proven)

    def nothing_before(self, counts: Counts, options: Options, stop: Stop | None) -> bool:
        """Whether no plan within ``TIE`` of the line comes before the fleet in the order of plans."""
        assert self.data is not None
        order = Order(self._compiled, self._model, self.data)
        if any(q not in order.column for q in counts.servers):
            return False
        fleet = np.zeros(self._cost.size)
        for q, count in counts.servers.items():
            fleet[order.column[q]] = count
        window = 1.0 + TIE
        slope = self._high_usd - self._low_usd
        self._compiled.add_row(np.append(self._cost, -window * slope), window * self._low_usd)
        used = np.array(order.used(fleet), dtype=np.float64)
        if used.size < 2:
            costs, own = np.append(order.without_types(), 0.0), float(order.without_types() @ fleet)
        else:
            weights = order.with_types(order.add_switches(self._compiled))
            own = float(weights @ np.concatenate((fleet, used)))
            costs = _with_share(weights, fleet.size)
        self._compiled.set_objective(costs)
        found = self._compiled.solve(replace(options, gap=ORDER_GAP), stop, search=Search.PROOF)
        return found.reason is Reason.OPTIMAL and bool(found.bound >= own - 2.0 * ORDER_GAP * max(1.0, own))


def _with_share(weights: FloatArray, columns: int) -> FloatArray:
    """Costs with a zero for the share, which stands between the program's columns and the switches."""
    return np.concatenate((weights[:columns], [0.0], weights[columns:]))
