r"""Supply: no more accelerators of a type than can be had, no more types than allowed.

    Supply_Limit[a]  sum_q G_q Servers[q] <= supply_a                     bought and rented, spares included
    Type_Used[q]     Servers[q] <= bound_q TypeUsed[a],   sum_a TypeUsed[a] <= max_accelerator_types

Binds when lead times or quotas cap a type, or when a planner wants one type to operate.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from optimizer.program_data import ProgramData

LIMITS: Final = ("supply", "accelerator_types")


def add(model: Any, data: "ProgramData") -> None:
    """Rows of supply and of the number of types."""
    from pyomo.core import Constraint

    choices = data.setting.instance.choices
    pools = data.accelerator_pools
    limited = [a for a in pools if a in choices.supply]

    def supply(m: Any, a: str) -> Any:
        accelerators = sum(data.pools[q].server_type.accelerators * m.Servers[q] for q in pools[a])
        return accelerators <= choices.supply[a]

    model.Supply_Limit = Constraint(limited, rule=supply, doc="accelerators of a type that can be had")
    if choices.max_accelerator_types is None:
        return

    def used(m: Any, a: str, q: str) -> Any:
        return m.Servers[q] - data.max_servers[q] * m.TypeUsed[a] <= 0.0

    members = [(a, q) for a, own in pools.items() for q in own]
    model.Type_Used = Constraint(members, rule=used, doc="servers use their type")
    total = sum(model.TypeUsed[a] for a in pools)
    model.Type_Limit = Constraint(expr=total <= choices.max_accelerator_types, doc="accelerator types in the fleet")
