"""From screened candidates to the data of the program: what is offered, its bounds, its cost terms."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from optimizer.candidates import Candidates, FloatArray, IntArray, is_large_dense
from optimizer.costs import recovery as recovery_costs
from optimizer.costs import setting_terms
from optimizer.costs.energy import pool_idle_kw
from optimizer.costs.servers import tier_prices
from optimizer.costs.term import Term
from optimizer.performance.power import ServerPower, busy_power_kw
from optimizer.pools import undominated_offers, undominated_pools, undominated_schemes
from optimizer.power_states import busy_fraction, idle_air_kw, most_air_kw
from optimizer.program_data import Offered, ProgramData, replicas_needed
from optimizer.prune import prune
from optimizer.screen import Screened, class_demand, demand_weights, not_dominated
from optimizer.setting import Pool, ServerType, Setting
from optimizer.spares import spares_needed


@dataclass(frozen=True, slots=True)
class Without:
    """What a plan must do without: accelerators, schemes, cooling options, ways of sourcing."""

    accelerators: frozenset[str] = frozenset()
    schemes: frozenset[str] = frozenset()
    cooling: frozenset[str] = frozenset()
    sourcing: frozenset[str] = frozenset()

    def allows(self, pool: Pool) -> bool:
        """Whether servers of the pool may be used."""
        return (
            pool.server_type.accelerator.id not in self.accelerators
            and pool.sourcing not in self.sourcing
            and (pool.cooling is None or pool.cooling.id not in self.cooling)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """Admissible deployments with what the program needs of them, one a row of ``screened.rows``."""

    screened: Screened
    requests_per_s: FloatArray
    demand_weight: FloatArray
    busy_air_kw: FloatArray
    kept: IntArray
    demand: tuple[float, ...]
    terms: tuple[Term, ...]
    dominate: bool

    @property
    def setting(self) -> Setting:
        """The setting behind the candidates."""
        return self.screened.candidates.setting


def server_power(setting: Setting, server_type: ServerType, is_large_dense: bool) -> ServerPower:
    """Power law of one server of the type in air."""
    row = server_type.accelerator
    curve = setting.catalog.power_curves[row.generation]
    share = server_type.accelerators / row.accelerators_per_server
    cap = server_type.power_cap_fraction
    liquid = row.liquid_cooling == "required"
    return ServerPower(
        accelerators=float(server_type.accelerators),
        tdp_w=row.tdp_w,
        idle_kw=idle_air_kw(row, curve) * share,
        maximum_kw=most_air_kw(row, curve, cap) * share,
        busy_fraction_low=curve.f0_dense_fraction if is_large_dense else curve.f0_fraction,
        busy_fraction_high=busy_fraction(curve, cap, is_large_dense=is_large_dense),
        load_exponent=curve.c_dense if is_large_dense else curve.c,
        waiting_fraction=curve.f_idle_fraction,
        conversion_loss_fraction=curve.kappa_liquid_fraction if liquid else curve.kappa_fraction,
    )


def busy_power(candidates: Candidates, rows: IntArray) -> tuple[FloatArray, FloatArray]:
    """(busy, above idle): power (kW) of one server in air whose replicas of each row are all busy at their concurrency.

    Accelerators that no replica occupies stay at idle.
    """
    large = is_large_dense(candidates.model)
    full = np.empty(len(candidates.server_types))
    idle = np.empty(len(candidates.server_types))
    sizes = np.empty(len(candidates.server_types))
    for index, server_type in enumerate(candidates.server_types):
        law = server_power(candidates.setting, server_type, large)
        full[index], idle[index], sizes[index] = busy_power_kw(law, 1.0), law.idle_kw, server_type.accelerators
    types = candidates.server_type_index[rows]
    occupied = candidates.width[rows] / candidates.servers_per_replica[rows] / sizes[types]
    above: FloatArray = occupied * (full[types] - idle[types])
    return idle[types] + above, above


def make_offer(screened: Screened, *, dominate: bool = True) -> Offer:
    """Capacities, powers and costs of the admissible rows, and which of them are worth offering."""
    candidates, rows = screened.candidates, screened.rows
    prediction = screened.prediction
    weight = demand_weights(candidates, rows, prediction.latency_ms)
    busy, above_idle = busy_power(candidates, rows)
    capacity = weight * prediction.requests_per_s
    if dominate and rows.size:
        group = (
            candidates.class_index[rows] * len(candidates.server_types) + candidates.server_type_index[rows]
        ) * len(candidates.schemes) + candidates.scheme_index[rows]
        servers = candidates.servers_per_replica[rows]
        kept = np.flatnonzero(
            not_dominated(group, candidates.width[rows], servers, capacity, above_idle * servers / capacity)
        )
    else:
        kept = np.arange(rows.size)
    terms = cost_terms(candidates, rows[kept])
    return Offer(screened, prediction.requests_per_s, weight, busy, kept, class_demand(candidates), terms, dominate)


def cost_terms(candidates: Candidates, rows: IntArray) -> tuple[Term, ...]:
    """Every cost term of the setting, and of preparing the schemes of the given rows."""
    setting = candidates.setting
    used = {int(index) for index in candidates.scheme_index[rows]}
    terms = setting_terms(setting)
    terms += recovery_costs.terms(setting, [candidates.schemes[index] for index in sorted(used)])
    return tuple(terms)


def deployment_id(candidates: Candidates, row: int, concurrency: int) -> str:
    """Stable name of a deployment: class, server type, layout, scheme, concurrency."""
    c = candidates
    experts, attention = c.expert_parallel[row], c.attention_data_parallel[row]
    layout = f"tp{c.tensor_parallel[row]}pp{c.pipeline_parallel[row]}ep{experts}dp{attention}"
    if c.prefill_replicas[row]:
        tp, pp, ep, dp = c.prefill_degrees[row]
        layout = f"{c.prefill_replicas[row]}p-tp{tp}pp{pp}ep{ep}dp{dp}+{c.decode_replicas[row]}d-{layout}"
    name = c.setting.classes[int(c.class_index[row])].name
    server = c.server_types[int(c.server_type_index[row])].id
    return f"{name}/{server}/{layout}/{c.schemes[int(c.scheme_index[row])].id}/c{concurrency}"


def program_data(offer: Offer, without: Without = Without(), *, reduce: bool = True) -> ProgramData | None:
    """Data of the program, leaving out what a plan must do without; None where some class has no deployment left."""
    screened, candidates = offer.screened, offer.screened.candidates
    setting = candidates.setting
    pools = {pool.id: pool for pool in setting.pools if without.allows(pool)}
    if reduce:
        pools = undominated_offers(setting, pools)
    members: dict[str, list[str]] = {}
    for key, pool in pools.items():
        members.setdefault(pool.server_type.id, []).append(key)
    rho = setting.instance.targets.peak_utilization_fraction
    deployments: dict[str, Offered] = {}
    pairs = []
    for position in offer.kept:
        row = int(screened.rows[position])
        scheme = candidates.schemes[int(candidates.scheme_index[row])].id
        server_type = candidates.server_types[int(candidates.server_type_index[row])].id
        if scheme in without.schemes or server_type not in members:
            continue
        key = deployment_id(candidates, row, int(screened.concurrency[row]))
        spans = float(candidates.servers_per_replica[row])
        homes = [q for q in members[server_type] if pools[q].in_hall or spans <= 1.0]
        if not homes:
            continue
        deployments[key] = Offered(
            id=key,
            row=int(position),
            class_index=int(candidates.class_index[row]),
            server_type=server_type,
            scheme=scheme,
            width=int(candidates.width[row]),
            servers_per_replica=spans,
            requests_per_s=float(offer.requests_per_s[position]),
            demand_weight=float(offer.demand_weight[position]),
            busy_air_kw=float(offer.busy_air_kw[position]),
            roles=2 if candidates.prefill_replicas[row] else 1,
        )
        pairs += [(key, q) for q in homes]
    if {one.class_index for one in deployments.values()} != set(range(len(offer.demand))):
        return None
    live = {q for _, q in pairs}
    pools = {key: pool for key, pool in pools.items() if key in live}
    capacity = {key: one.demand_weight * rho * one.requests_per_s for key, one in deployments.items()}
    in_service = _in_service_bounds(deployments, capacity, offer.demand)
    data = ProgramData(
        setting=setting,
        pools=pools,
        deployments=deployments,
        pairs=tuple(pairs),
        demand=offer.demand,
        capacity=capacity,
        terms=(),
        max_replicas=_replica_bounds(deployments, capacity, offer.demand, _least_availability(pools)),
        max_in_service=in_service,
        max_servers=_server_bounds(setting, pools, in_service),
        idle_kw={key: pool_idle_kw(setting, pool) for key, pool in pools.items() if pool.in_hall},
    )
    data = data.with_terms(offer.terms)
    if offer.dominate and reduce:
        data = data.only_pairs(undominated_schemes(data))
    return prune(data.only_pools(undominated_pools(data))) if offer.dominate and reduce else data


def _largest(deployments: Iterable[Offered], capacity: dict[str, float], class_index: int) -> float:
    return max((capacity[one.id] for one in deployments if one.class_index == class_index), default=0.0)


def _replica_bounds(
    deployments: dict[str, Offered], capacity: dict[str, float], demand: tuple[float, ...], availability: float
) -> dict[str, int]:
    """No optimal plan has more replicas of ``d``: capacity beyond demand is less than one largest replica.

    Were it more, some replica could be dropped: the least efficient one in use is needed at no level. Where servers may
    be withdrawn a replica carries the share ``availability`` alone.
    """
    largest = [_largest(deployments.values(), capacity, index) for index in range(len(demand))]
    return {
        key: replicas_needed(demand[one.class_index] + largest[one.class_index], capacity[key] * availability) + 1
        for key, one in deployments.items()
    }


def _least_availability(pools: dict[str, Pool]) -> float:
    """Least share of its capacity that a replica carries in any pool."""
    return min((pool.availability for pool in pools.values()), default=1.0)


def _in_service_bounds(
    deployments: dict[str, Offered], capacity: dict[str, float], demand: tuple[float, ...]
) -> dict[str, int]:
    """No optimal plan needs more servers in service of a type: those of the thirstiest deployments.

    Capacity beyond a class's demand is less than one largest replica (see ``_replica_bounds``). Replicas of one width
    fill servers without a gap but in the last, so each further width adds at most one server.
    """
    largest = [_largest(deployments.values(), capacity, index) for index in range(len(demand))]
    result = {}
    for type_id in {one.server_type for one in deployments.values()}:
        mine = [one for one in deployments.values() if one.server_type == type_id]
        servers = 0.0
        for index, wanted in enumerate(demand):
            worst = max((o.servers_per_replica / capacity[o.id] for o in mine if o.class_index == index), default=0.0)
            servers += worst * (wanted + largest[index])
        narrow = {one.width for one in mine if one.servers_per_replica < 1.0}
        result[type_id] = math.ceil(servers - 1e-9) + max(0, len(narrow) - 1)
    return result


def _server_bounds(setting: Setting, pools: dict[str, Pool], in_service: dict[str, int]) -> dict[str, int]:
    """No optimal plan has more servers of a pool: those in service, spares, the next price step, supply."""
    targets = setting.instance.targets
    result = {}
    for key, pool in pools.items():
        server_type = pool.server_type
        count = in_service[server_type.id]
        if pool.availability < 1.0:
            # Each replica carries less, so more of them are needed.
            count = math.ceil(count / pool.availability - 1e-9) + 1
        if pool.in_hall:
            count += spares_needed(targets, server_type.accelerators, count)
        if pool.is_bought:
            count = max(count, cheaper_step(server_type, count))
        if pool.owned is not None:
            count = min(count, pool.owned.servers)
        supply = setting.instance.choices.supply.get(server_type.accelerator.id)
        result[key] = count if supply is None else min(count, supply // server_type.accelerators)
    return result


def cheaper_step(server_type: ServerType, count: int) -> int:
    """Largest first count of an all-units step where buying up to the step may cost less than ``count`` before it."""
    best = 0
    if server_type.discount_kind == "all_units":
        tiers = tier_prices(server_type)
        dearest = tiers[0][1] if tiers else 0.0
        for first, usd, _ in tiers:
            if first > count and usd * first < dearest * count:
                best = first
    return best
