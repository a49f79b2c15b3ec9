r"""Spares: servers stand ready for those that fail.

    sum_q Spare[q] >= spare_fraction x sum_q InService[q]         pools q of the hall, bought or owned, of one type
    sum_q Spare[q] >= spare_servers x BoughtUsed[n]                integers, so both are rounded up
    sum_q InService[q] <= b_0 + sum_k (b_k - b_(k-1)) SpareStep[n,k],  sum_q Spare[q] >= sum_k SpareStep[n,k]
                                       b_k: most servers that k spares keep available with the asked probability

Losing a server takes every replica that touches it. Rented servers need none: the provider replaces them. Spares
stand in racks, count for power and idle. Binds in every bought fleet.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from optimizer.program_data import ProgramData

LIMITS: Final = ("spare_servers",)


def add(model: Any, data: "ProgramData") -> None:
    """Rows of spares, by server type."""
    from pyomo.core import Binary, Constraint, Var

    if not data.has_spares():
        return
    targets = data.setting.instance.targets
    groups = {key: [q for q in members if data.pools[q].in_hall] for key, members in data.server_types.items()}
    groups = {key: members for key, members in groups.items() if members}

    def share(m: Any, n: str) -> Any:
        share = data.least_spare_share(n)
        return sum((1.0 + share) * m.Spare[q] - share * m.Servers[q] for q in groups[n]) >= 0.0

    model.Spare_Share = Constraint(list(groups), rule=share, doc="a share of the servers in service stands ready")
    if targets.availability_fraction is not None:
        _add_available(model, data, groups)
    if targets.spare_servers == 0:
        return

    model.BoughtUsed = Var(list(groups), domain=Binary, doc="servers of a type are bought")

    def used(m: Any, n: str, q: str) -> Any:
        return m.Servers[q] - data.max_servers[q] * m.BoughtUsed[n] <= 0.0

    def count(m: Any, n: str) -> Any:
        return sum(m.Spare[q] for q in groups[n]) - targets.spare_servers * m.BoughtUsed[n] >= 0.0

    pools = [(n, q) for n, members in groups.items() for q in members]
    model.Bought_Used = Constraint(pools, rule=used, doc="bought servers use their type")
    model.Spare_Count = Constraint(list(groups), rule=count, doc="a used type has its least spares")


def _add_available(model: Any, data: "ProgramData", groups: dict[str, list[str]]) -> None:
    """The least spares for a probability that enough servers are up: a step function of the count in service."""
    from pyomo.core import Binary, Constraint, Var

    ends = {n: data.spare_steps(n) for n in groups}
    keys = [(n, k) for n, counts in ends.items() for k in range(1, len(counts))]
    model.SpareStep = Var(keys, domain=Binary, doc="so many spares of a type stand ready for its availability")

    def reached(m: Any, n: str) -> Any:
        counts = ends[n]
        more = sum((counts[k] - counts[k - 1]) * m.SpareStep[n, k] for k in range(1, len(counts)))
        return sum(m.Servers[q] - m.Spare[q] for q in groups[n]) - more <= counts[0]

    def ready(m: Any, n: str) -> Any:
        steps = range(1, len(ends[n]))
        return sum(m.Spare[q] for q in groups[n]) - sum(m.SpareStep[n, k] for k in steps) >= 0.0

    model.Spare_Reached = Constraint(list(groups), rule=reached, doc="servers in service need steps of spares")
    model.Spare_Ready = Constraint(list(groups), rule=ready, doc="a spare for each step")
    model.Spare_Order = Constraint(
        [(n, k) for n, k in keys if k > 1],
        rule=lambda m, n, k: m.SpareStep[n, k] - m.SpareStep[n, k - 1] <= 0.0,
        doc="steps of spares are taken in order",
    )
