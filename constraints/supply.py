r"""Supply: no more accelerators of a type than can be had, no more types than allowed.

    Supply_Limit[a]  sum_q G_q Servers[q] <= supply_a            owned, bought and rented, spares included
    Provider_Limit[p,a]  sum_q G_q Servers[q] <= provider_supply_pa      pools rented from provider p
    Servers[q] <= inventory_q                                     owned pools, a bound
    State_Used[q]    Servers[q] <= bound_q StateUsed[n],   sum_n StateUsed[n] <= 1   types n: states of one accelerator
    Type_Used[q]     Servers[q] <= bound_q TypeUsed[a],   sum_a TypeUsed[a] <= max_accelerator_types

Servers of one accelerator in the hall run in one power state, so they count together for discounts, spares, inventory.
Binds when lead times or quotas cap a type, or when a planner wants one type to operate.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from optimizer.program_data import ProgramData

LIMITS: Final = ("supply", "provider_supply", "inventory", "accelerator_types")


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
    by_provider: dict[tuple[str, str], list[str]] = {}
    for q, pool in data.pools.items():
        key = (pool.provider.casefold(), pool.server_type.accelerator.id)
        if key in data.setting.provider_limits:
            by_provider.setdefault(key, []).append(q)

    def provided(m: Any, p: str, a: str) -> Any:
        rented = sum(data.pools[q].server_type.accelerators * m.Servers[q] for q in by_provider[p, a])
        return rented <= data.setting.provider_limits[p, a]

    model.Provider_Limit = Constraint(list(by_provider), rule=provided, doc="accelerators that a provider rents out")
    _one_power_state(model, data)
    if choices.max_accelerator_types is None:
        return

    def used(m: Any, a: str, q: str) -> Any:
        return m.Servers[q] - data.max_servers[q] * m.TypeUsed[a] <= 0.0

    members = [(a, q) for a, own in pools.items() for q in own]
    model.Type_Used = Constraint(members, rule=used, doc="servers use their type")
    total = sum(model.TypeUsed[a] for a in pools)
    model.Type_Limit = Constraint(expr=total <= choices.max_accelerator_types, doc="accelerator types in the fleet")


def _one_power_state(model: Any, data: "ProgramData") -> None:
    """All servers of an accelerator in the hall run under the same power cap."""
    from pyomo.core import Binary, Constraint, Var

    states = data.power_states
    if not states:
        return
    members = [(n, q) for several in states.values() for n in several for q in data.server_types[n]]
    members = [(n, q) for n, q in members if data.pools[q].in_hall]
    model.StateUsed = Var(
        [n for several in states.values() for n in several], domain=Binary, doc="a power state of a type is used"
    )

    def used(m: Any, n: str, q: str) -> Any:
        return m.Servers[q] - data.max_servers[q] * m.StateUsed[n] <= 0.0

    def one(m: Any, a: str) -> Any:
        return sum(m.StateUsed[n] for n in states[a]) <= 1

    model.State_Used = Constraint(members, rule=used, doc="servers use their power state")
    model.State_One = Constraint(list(states), rule=one, doc="servers of a type run in one power state")
