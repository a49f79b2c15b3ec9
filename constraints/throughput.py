r"""Throughput: replicas carry the demand, and servers carry the replicas.

    Demand[b]        sum_dq capacity_d Replicas[d,q] >= demand_b                      at the peak
    Serve[b,l]       sum_dq weight_d Rate[d,q,l] = fraction_l demand_b              at every level that lasts
    Capacity[d,q,l]  Rate[d,q,l] <= rho requests_per_s_d Replicas[d,q]
    Whole_Servers    share of the most capacity of a class that a pool holds <= InService[q]     (implied, tight)
    Packing[q]       sum_d width_d Replicas[d,q] <= G InService[q]
                     (widths that do not divide G: one integer for each maximal filling of a server)

Pools whose servers are paid by load level have replicas ``Running[d,q,l]`` in place of ``Replicas[d,q]`` and servers
``Used[q,l] <= Servers[q]`` in place of those in service, so their rows stand once a level. Spot servers carry
``availability`` of what others do.

``capacity_d = weight_d rho requests_per_s_d``; ``requests_per_s = c / (TTFT + (O - 1) TPOT)`` with c requests in
flight per replica; rho = ``targets.peak_utilization_fraction`` is the queueing margin, not the load profile.
``weight`` is 1 for demand in requests or tokens and think time + latency for demand in users (a closed loop). A
replica wider than a server takes whole servers. Always binds: replicas are bought for it.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from optimizer.program_data import ProgramData

LIMITS: Final = ("throughput_requests_per_s",)


def add(model: Any, data: "ProgramData") -> None:
    """Rows of demand, service, capacity and packing."""
    from pyomo.core import Constraint

    by_class: dict[int, list[tuple[str, str]]] = {index: [] for index in range(len(data.demand))}
    for d, q in data.pairs:
        by_class[data.deployments[d].class_index].append((d, q))

    def demand(m: Any, b: int) -> Any:
        # Divided by the demand, so that the solver's tolerance is a share of the demand.
        replicas = (
            (data.pair_capacity(d, q) / data.demand[b], data.replicas(m, d, q, data.peak_level)) for d, q in by_class[b]
        )
        return sum(capacity * count for capacity, count in replicas) >= 1.0

    model.Demand = Constraint(list(by_class), rule=demand, doc="replicas carry the peak")

    levels = data.billed_levels

    def serve(m: Any, b: int, name: str) -> Any:
        rates = ((data.deployments[d].demand_weight / data.demand[b], m.Rate[d, q, name]) for d, q in by_class[b])
        return sum(weight * rate for weight, rate in rates) == levels[name].fraction

    served = [(b, name) for b in by_class for name, level in levels.items() if level.fraction > 0.0]
    model.Serve = Constraint(served, rule=serve, doc="demand of a level is served")

    def capacity(m: Any, d: str, q: str, name: str) -> Any:
        return m.Rate[d, q, name] / data.served_per_s(d, q) - data.replicas(m, d, q, name) <= 0.0

    model.Capacity = Constraint(
        [(d, q, name) for d, q in data.pairs for name in levels], rule=capacity, doc="a replica serves up to its margin"
    )
    _add_packing(model, data)
    _add_whole_servers(model, data, by_class)


def _add_packing(model: Any, data: "ProgramData") -> None:
    """Replicas fit the servers that run: those in service, at every level, or those paid at one."""
    from pyomo.core import Constraint, NonNegativeIntegers, Var

    by_pool: dict[str, list[str]] = {q: [] for q in data.pools}
    for d, q in data.pairs:
        by_pool[q].append(d)
    patterns = data.patterns_by_pool

    def running(m: Any, q: str, level: str) -> Any:
        return m.Used[q, level] if q in data.elastic else m.InService[q]

    def chain(m: Any, q: str, level: str) -> Any:
        taken = sum(data.deployments[d].servers_per_replica * data.replicas(m, d, q, level) for d in by_pool[q])
        return taken - running(m, q, level) <= 0.0

    plain = [(q, level) for q in data.pools if q not in patterns for level in data.levels_of(q)]
    model.Packing = Constraint(plain, rule=chain, doc="replicas fit the servers")

    # A pool whose servers are paid by level has as many as the level that uses most.
    paid = [(q, level) for q in data.pools if q in data.elastic for level in data.levels_of(q)]
    model.Paid_Servers = Constraint(
        paid, rule=lambda m, q, level: m.Used[q, level] - m.Servers[q] <= 0.0, doc="servers paid at a level are had"
    )
    if not patterns:
        return

    model.PatternServers = Var(
        [
            (q, level, number)
            for q, fillings in patterns.items()
            for level in data.levels_of(q)
            for number in range(len(fillings))
        ],
        domain=NonNegativeIntegers,
        bounds=lambda _m, q, _level, _number: (0, data.max_servers[q]),
        doc="servers filled with one pattern of replicas",
    )

    def placed(m: Any, q: str, level: str, width: int) -> Any:
        slots = sum(filling[width] * m.PatternServers[q, level, number] for number, filling in enumerate(patterns[q]))
        alike = [d for d in by_pool[q] if data.deployments[d].width == width]
        return sum(data.replicas(m, d, q, level) for d in alike) - slots <= 0.0

    model.Pattern_Slots = Constraint(
        [(q, level, width) for q, fillings in patterns.items() for level in data.levels_of(q) for width in fillings[0]],
        rule=placed,
        doc="replicas of a width fit the slots of the patterns",
    )

    def filled(m: Any, q: str, level: str) -> Any:
        narrow = sum(m.PatternServers[q, level, number] for number in range(len(patterns[q])))
        wide = sum(
            data.deployments[d].servers_per_replica * data.replicas(m, d, q, level)
            for d in by_pool[q]
            if data.deployments[d].width > data.pools[q].server_type.accelerators
        )
        return narrow + wide - running(m, q, level) <= 0.0

    model.Pattern_Servers = Constraint(
        [(q, level) for q in patterns for level in data.levels_of(q)],
        rule=filled,
        doc="patterns and wide replicas fit the servers",
    )


def _add_whole_servers(model: Any, data: "ProgramData", by_class: "dict[int, list[tuple[str, str]]]") -> None:
    """A pool in use has a whole server: tight where one server could carry more than a class asks for (racks).

    Implied by whole plans: capacity of a class stays below its demand and one largest replica in any optimal plan, so a
    pool's share of that is at most 1, and at most its servers.
    """
    from pyomo.core import Constraint

    most = data.most_capacity
    strong = []
    for b, members in by_class.items():
        for q in {pool for _, pool in members}:
            one_server = max(
                data.pair_capacity(d, q) / data.deployments[d].servers_per_replica for d, pool in members if pool == q
            )
            if one_server > most[b]:
                strong += [(b, q, level) for level in data.levels_of(q)]

    def whole(m: Any, b: int, q: str, level: str) -> Any:
        mine = [d for d, pool in by_class[b] if pool == q]
        share = sum(data.pair_capacity(d, q) / most[b] * data.replicas(m, d, q, level) for d in mine)
        return share - (m.Used[q, level] if q in data.elastic else m.InService[q]) <= 0.0

    if strong:
        model.Whole_Servers = Constraint(sorted(strong), rule=whole, doc="a pool in use has a whole server")
