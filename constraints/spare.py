r"""Spares: servers stand ready for those that fail.

    sum_q Spare[q] >= spare_fraction x sum_q InService[q]         pools q of the hall, bought or owned, of one type
    sum_q Spare[q] >= spare_servers x BoughtUsed[n]                integers, so both are rounded up

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
