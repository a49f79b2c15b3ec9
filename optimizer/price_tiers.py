"""Prices with steps, as exact piecewise-linear parts of the program.

    Tier_Servers[n]  sum_v TierServers[n,v] = sum_q Servers[q]              bought pools of server type n
    Tier_Low/High    first_v TierUsed[n,v] <= TierServers[n,v] <= last_v TierUsed[n,v],   sum_v TierUsed[n,v] <= 1
    Fabric_*         the same for the accelerators that share a fabric, by its switch tiers and the discounts on it;
                     with a discount of all units more may be ordered than is bought (>= in place of =)

One tier of a price holds (multiple choice), which is exact for all-units discounts and, with an offset paid once in
the tier, for incremental ones. The last tier ends at the bound of what an optimal plan can buy.
"""

from typing import Any

from pyomo.core import Binary, Constraint, NonNegativeReals, Var

from optimizer.costs.network import may_order_more
from optimizer.program_data import ProgramData


def add_price_tiers(model: Any, data: ProgramData) -> None:
    """Variables and rows of price tiers: discounts on servers, sizes of fabrics."""
    server_tiers = data.server_tiers
    fabric_tiers = data.fabric_tiers

    def bounds_of(tiers: Any) -> Any:
        return lambda _m, *key: (0.0, tiers[key if len(key) > 1 else key[0]][1])

    # One tier that everything falls into needs no switch: the count of servers or accelerators itself is priced.
    model.TierServers = Var(
        list(server_tiers), domain=NonNegativeReals, bounds=bounds_of(server_tiers), doc="servers bought in a tier"
    )
    switched = [key for key in server_tiers if sum(1 for n, _ in server_tiers if n == key[0]) > 1]
    model.TierUsed = Var(switched, domain=Binary, doc="the tier that the count of servers falls into")
    pools = {n: [q for q in data.bought if data.pools[q].server_type.id == n] for n, _ in server_tiers}

    def tier_sum(m: Any, n: str) -> Any:
        return (
            sum(m.TierServers[key] for key in server_tiers if key[0] == n) - sum(m.Servers[q] for q in pools[n]) == 0.0
        )

    model.Tier_Servers = Constraint(list(pools), rule=tier_sum, doc="bought servers fall into a tier")
    model.Tier_Low = Constraint(
        switched,
        rule=lambda m, *key: m.TierServers[key] - server_tiers[key][0] * m.TierUsed[key] >= 0.0,
        doc="a tier starts here",
    )
    model.Tier_High = Constraint(
        switched,
        rule=lambda m, *key: m.TierServers[key] - server_tiers[key][1] * m.TierUsed[key] <= 0.0,
        doc="a tier ends here",
    )
    model.Tier_One = Constraint(
        sorted({n for n, _ in switched}),
        rule=lambda m, n: sum(m.TierUsed[key] for key in switched if key[0] == n) <= 1,
        doc="one tier holds",
    )

    families: dict[float, list[str]] = {}
    for fabric, (_, _, speed) in fabric_tiers.items():
        families.setdefault(speed, []).append(fabric)
    model.FabricAccelerators = Var(
        list(fabric_tiers),
        domain=NonNegativeReals,
        bounds=lambda _m, f: (0.0, fabric_tiers[f][1]),
        doc="bought accelerators on a fabric of this many switch tiers",
    )
    stepped = [f for members in families.values() if len(members) > 1 for f in members]
    model.FabricUsed = Var(stepped, domain=Binary, doc="the size of a fabric")

    more = may_order_more(data.setting)

    def fabric_sum(m: Any, speed: float) -> Any:
        bought = sum(
            data.pools[q].server_type.accelerators * m.Servers[q]
            for q in data.bought
            if data.pools[q].server_type.accelerator.scale_out_gb_s == speed
        )
        ordered = sum(m.FabricAccelerators[f] for f in families[speed]) - bought
        return ordered >= 0.0 if more else ordered == 0.0

    model.Fabric_Accelerators = Constraint(list(families), rule=fabric_sum, doc="bought accelerators share a fabric")
    model.Fabric_Low = Constraint(
        stepped,
        rule=lambda m, f: m.FabricAccelerators[f] - fabric_tiers[f][0] * m.FabricUsed[f] >= 0.0,
        doc="a size of fabric starts here",
    )
    model.Fabric_High = Constraint(
        stepped,
        rule=lambda m, f: m.FabricAccelerators[f] - fabric_tiers[f][1] * m.FabricUsed[f] <= 0.0,
        doc="a size of fabric ends here",
    )
    model.Fabric_One = Constraint(
        [speed for speed, members in families.items() if len(members) > 1],
        rule=lambda m, speed: sum(m.FabricUsed[f] for f in families[speed]) <= 1,
        doc="one size holds",
    )
