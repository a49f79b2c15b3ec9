"""Rows that whole counts imply and fractional plans break: mixed-integer rounding of a fleet's demand.

The method is that of H. Marchand, L. Wolsey, Operations Research 49 (2001) 363-371: where ``sum a_i x_i + y >= b`` with
``x`` whole and ``y >= 0``, also ``sum F(a_i) x_i + y / f >= ceil(b)`` with ``f = b - floor(b)`` and
``F(a) = floor(a) + min(1, (a - floor(a)) / f)``. The rows belong to one demand, so they are added where a program is
solved for it alone; the program as stated, which studies move to other demands, is without them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from optimizer.program_data import Pair, ProgramData
from optimizer.solver import Compiled

#: Fractions nearer a whole number than this are not rounded: the row would hang on rounding errors.
_LEAST_FRACTION: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Rounded:
    """A rounded row: factors of the whole counts, of what is not whole, and the whole right-hand side."""

    whole: dict[str, float]
    others: float
    least: float


def rounded(counts: Mapping[str, float], least: float) -> Rounded | None:
    """The row that ``sum counts x + y >= least`` implies; None where ``least`` is nearly whole."""
    fraction = least - math.floor(least)
    if not _LEAST_FRACTION < fraction < 1.0 - _LEAST_FRACTION:
        return None
    whole = {
        key: math.floor(each) + min(1.0, (each - math.floor(each)) / fraction) for key, each in counts.items() if each
    }
    return Rounded(whole, 1.0 / fraction, math.floor(least) + 1.0)


@dataclass(frozen=True, slots=True)
class Need:
    """A fleet's peak in accelerators, each class by the deployment that needs fewest for it.

    ``carried`` is what one replica of each pair carries of it, ``per_server`` the most that one server in service of a
    type in the hall carries: no more than its accelerators.
    """

    accelerators: float
    carried: dict[Pair, float]
    per_server: dict[str, float]


def least_need(data: ProgramData) -> Need:
    """What a fleet must carry in all, whatever types share it; capacity is at the peak."""
    weight = [math.inf] * len(data.demand)
    for d, one in data.deployments.items():
        weight[one.class_index] = min(weight[one.class_index], one.width / data.capacity[d])
    total = sum(each * demand for each, demand in zip(weight, data.demand, strict=True))
    carried: dict[Pair, float] = {}
    per_server: dict[str, float] = {}
    for d, q in data.pairs:
        one = data.deployments[d]
        carried[d, q] = weight[one.class_index] * data.pair_capacity(d, q)
        if data.pools[q].in_hall:
            most = carried[d, q] / one.servers_per_replica
            per_server[one.server_type] = max(per_server.get(one.server_type, 0.0), most)
    return Need(total, carried, per_server)


def add_rounded_rows(compiled: Compiled, model: Any, data: ProgramData) -> None:
    """Add the rows that follow for whole spares and whole posts. No whole plan is cut off."""
    need = least_need(data)
    if not need.per_server or not math.isfinite(need.accelerators):
        return
    shares = {n: data.least_spare_share(n) if data.has_spares() else 0.0 for n in need.per_server}
    if all(shares.values()):
        # Servers in service behind one spare of a type carry at most this.
        behind = {n: most / shares[n] for n, most in need.per_server.items()}
        spare = {n: [compiled.column_of(model.Spare[q]) for q in _hall(data, n)] for n in behind}
        for unit in sorted(set(behind.values())):
            found = rounded({n: most / unit for n, most in behind.items()}, need.accelerators / unit)
            if found is not None:
                whole = {column: factor for n, factor in found.whole.items() for column in spare[n]}
                _add(compiled, model, data, need, whole, found.others / unit, found.least)
    if data.staff is not None:
        each = data.staff.per_accelerator / data.staff.step * (1.0 + min(shares.values()))
        found = rounded({}, each * need.accelerators)
        if found is not None:
            steps = {compiled.column_of(model.StaffSteps["site"]): 1.0}
            _add(compiled, model, data, need, steps, found.others * each, found.least)


def _hall(data: ProgramData, server_type: str) -> list[str]:
    """Pools of the hall of a server type."""
    return [q for q in data.server_types[server_type] if data.pools[q].in_hall]


def _add(
    compiled: Compiled,
    model: Any,
    data: ProgramData,
    need: Need,
    whole: Mapping[int, float],
    others: float,
    least: float,
) -> None:
    """Add ``whole + others x what rented servers carry >= least``."""
    costs = np.zeros(len(compiled.columns))
    for column, factor in whole.items():
        costs[column] = -factor
    for (d, q), carried in need.carried.items():
        if not data.pools[q].in_hall:
            costs[compiled.column_of(data.replicas(model, d, q, data.levels_of(q)[0]))] = -others * carried
    compiled.add_row(costs, -least)
