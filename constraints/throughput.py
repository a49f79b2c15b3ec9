r"""Throughput: replicas carry the demand, and servers carry the replicas.

    Demand[b]        sum_dq capacity_d Replicas[d,q] >= demand_b                      at the peak
    Serve[b,l]       sum_dq weight_d Rate[d,q,l] = fraction_l demand_b              at every level that lasts
    Capacity[d,q,l]  Rate[d,q,l] <= rho requests_per_s_d Replicas[d,q]
    Whole_Servers    share of the most capacity of a class that a pool holds <= InService[q]     (implied, tight)
    Packing[q]       sum_d width_d Replicas[d,q] <= G InService[q]
                     (widths that do not divide G: one integer for each maximal filling of a server)

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
        return sum(data.capacity[d] / data.demand[b] * m.Replicas[d, q] for d, q in by_class[b]) >= 1.0

    model.Demand = Constraint(list(by_class), rule=demand, doc="replicas carry the peak")

    levels = data.billed_levels

    def serve(m: Any, b: int, name: str) -> Any:
        rates = ((data.deployments[d].demand_weight / data.demand[b], m.Rate[d, q, name]) for d, q in by_class[b])
        return sum(weight * rate for weight, rate in rates) == levels[name].fraction

    served = [(b, name) for b in by_class for name, level in levels.items() if level.fraction > 0.0]
    model.Serve = Constraint(served, rule=serve, doc="demand of a level is served")

    def capacity(m: Any, d: str, q: str, name: str) -> Any:
        busy = 1.0 / (data.deployments[d].requests_per_s * data.utilization)
        return busy * m.Rate[d, q, name] - m.Replicas[d, q] <= 0.0

    model.Capacity = Constraint(
        [(d, q, name) for d, q in data.pairs for name in levels], rule=capacity, doc="a replica serves up to its margin"
    )
    _add_packing(model, data)
    _add_whole_servers(model, data, by_class)


def _add_packing(model: Any, data: "ProgramData") -> None:
    from pyomo.core import Constraint, NonNegativeIntegers, Var

    by_pool: dict[str, list[str]] = {q: [] for q in data.pools}
    for d, q in data.pairs:
        by_pool[q].append(d)
    patterns = data.patterns_by_pool

    def chain(m: Any, q: str) -> Any:
        taken = sum(data.deployments[d].servers_per_replica * m.Replicas[d, q] for d in by_pool[q])
        return taken - m.InService[q] <= 0.0

    model.Packing = Constraint([q for q in data.pools if q not in patterns], rule=chain, doc="replicas fit the servers")
    if not patterns:
        return

    model.PatternServers = Var(
        [(q, number) for q, fillings in patterns.items() for number in range(len(fillings))],
        domain=NonNegativeIntegers,
        bounds=lambda _m, q, _number: (0, data.max_servers[q]),
        doc="servers filled with one pattern of replicas",
    )

    def placed(m: Any, q: str, width: int) -> Any:
        slots = sum(filling[width] * m.PatternServers[q, number] for number, filling in enumerate(patterns[q]))
        return sum(m.Replicas[d, q] for d in by_pool[q] if data.deployments[d].width == width) - slots <= 0.0

    model.Pattern_Slots = Constraint(
        [(q, width) for q, fillings in patterns.items() for width in fillings[0]],
        rule=placed,
        doc="replicas of a width fit the slots of the patterns",
    )

    def filled(m: Any, q: str) -> Any:
        narrow = sum(m.PatternServers[q, number] for number in range(len(patterns[q])))
        wide = sum(
            data.deployments[d].servers_per_replica * m.Replicas[d, q]
            for d in by_pool[q]
            if data.deployments[d].width > data.pools[q].server_type.accelerators
        )
        return narrow + wide - m.InService[q] <= 0.0

    model.Pattern_Servers = Constraint(list(patterns), rule=filled, doc="patterns and wide replicas fit the servers")


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
                data.capacity[d] / data.deployments[d].servers_per_replica for d, pool in members if pool == q
            )
            if one_server > most[b]:
                strong.append((b, q))

    def whole(m: Any, b: int, q: str) -> Any:
        share = sum(data.capacity[d] / most[b] * m.Replicas[d, q] for d, pool in by_class[b] if pool == q)
        return share - m.InService[q] <= 0.0

    if strong:
        model.Whole_Servers = Constraint(sorted(strong), rule=whole, doc="a pool in use has a whole server")
