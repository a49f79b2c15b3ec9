"""What the program is built from: pools, offered deployments, demand, cost terms and tight bounds."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Final

from optimizer.catalog.rows import CoolingOption
from optimizer.costs.cooling import heat_paths
from optimizer.costs.environment import water_m3_per_kwh
from optimizer.costs.reach import network_reach, plant_reach
from optimizer.costs.servers import tier_prices
from optimizer.costs.services import MANAGEMENT
from optimizer.costs.staff import POSTS, StaffNeed, staff_need
from optimizer.costs.term import QuantityKey, Term
from optimizer.server_fillings import fillings, widths_form_chain
from optimizer.setting import LoadLevel, Pool, Setting
from optimizer.spares import spare_steps
from optimizer.units import HOURS_PER_YEAR

Pair = tuple[str, str]
#: Stands for every level, where servers are paid at all of them.
ALWAYS = "always"

#: Name of the load level at the peak.
PEAK: Final = "0"
#: Key of what is paid once as soon as any server is bought.
SITE_USED: Final = ("SiteUsed", "site")
#: Quantities of the site as a whole.
SITE_FAMILIES: Final = ("SiteUsed", "ColocationKw", "HallKw", "Posts", "ManagementServers")


@dataclass(frozen=True, slots=True)
class Offered:
    """A deployment that breaks no limit, at its largest admissible concurrency.

    ``row`` points into the candidates. ``servers_per_replica`` is what one replica blocks of a server (a half, or
    several whole servers). ``demand_weight`` turns requests/s into the unit of the class's demand. ``busy_air_kw`` is
    the power of one server in air whose replicas of it are all busy. ``roles`` is 2 for a unit of prefill and decode
    replicas, 1 for a replica that does both.
    """

    id: str
    row: int
    class_index: int
    server_type: str
    scheme: str
    width: int
    servers_per_replica: float
    requests_per_s: float
    demand_weight: float
    busy_air_kw: float
    roles: int = 1


@dataclass(frozen=True)
class ProgramData:
    """Everything the program needs, pyomo-free.

    Attributes
    ----------
    pools, deployments: by id, in the order of the program.
    pairs: (deployment, pool) where the deployment may run.
    demand: right-hand side of each class at the peak, in the unit of ``demand_weight x requests/s``.
    capacity: of one replica of a deployment, same unit, at the allowed utilization.
    terms: cost terms of what may be used.
    max_replicas, max_servers: bounds that no optimal plan exceeds.
    max_in_service: servers in service of a type that no optimal plan exceeds; more can only be spares.
    idle_kw: of one server, by pool.
    start: a plan to start from, as values of variables that are not 0, or None.
    """

    setting: Setting
    pools: Mapping[str, Pool]
    deployments: Mapping[str, Offered]
    pairs: tuple[Pair, ...]
    demand: tuple[float, ...]
    capacity: Mapping[str, float]
    terms: tuple[Term, ...]
    max_replicas: Mapping[str, int]
    max_in_service: Mapping[str, int]
    max_servers: Mapping[str, int]
    idle_kw: Mapping[str, float]
    start: Mapping[tuple[str, ...], float] | None = None

    @property
    def utilization(self) -> float:
        """Share of its capacity that a replica may carry."""
        return self.setting.instance.targets.peak_utilization_fraction

    @cached_property
    def billed_levels(self) -> dict[str, LoadLevel]:
        """Load levels that something is paid for, by name.

        The peak of a mean load lasts 0 hours and only sizes, unless the utility charges for the peak itself.
        """
        demand = self.setting.demand_usd_per_kw_month > 0.0
        return {
            str(i): level
            for i, level in enumerate(self.setting.levels)
            if level.hours_per_year > 0.0 or (i == 0 and demand)
        }

    @cached_property
    def bought(self) -> tuple[str, ...]:
        """Ids of bought pools."""
        return tuple(key for key, pool in self.pools.items() if pool.is_bought)

    @cached_property
    def hall(self) -> tuple[str, ...]:
        """Ids of pools in the planner's hall: bought and owned."""
        return tuple(key for key, pool in self.pools.items() if pool.in_hall)

    @cached_property
    def elastic(self) -> frozenset[str]:
        """Ids of pools whose servers are paid by load level."""
        return frozenset(key for key, pool in self.pools.items() if self.setting.is_elastic(pool))

    @cached_property
    def peak_level(self) -> str:
        """Name of the peak among the levels that last; asked only where servers are paid by level."""
        return next(iter(self.billed_levels))

    def pair_capacity(self, d: str, q: str) -> float:
        """Capacity of one replica of a deployment in a pool, less what is lost where servers may be withdrawn."""
        return self.capacity[d] * self.pools[q].availability

    def served_per_s(self, d: str, q: str) -> float:
        """Requests/s that one replica of a deployment may serve in a pool."""
        return self.deployments[d].requests_per_s * self.utilization * self.pools[q].availability

    def levels_of(self, q: str) -> tuple[str, ...]:
        """Levels at which a pool's replicas are counted apart; ``always`` where they run at every level."""
        return tuple(self.billed_levels) if q in self.elastic else (ALWAYS,)

    def replicas(self, model: Any, d: str, q: str, level: str) -> Any:
        """The program's replicas of a deployment in a pool that run at a level."""
        return model.Running[d, q, level] if q in self.elastic else model.Replicas[d, q]

    @cached_property
    def server_types(self) -> dict[str, tuple[str, ...]]:
        """Pools by server type."""
        result: dict[str, list[str]] = {}
        for key, pool in self.pools.items():
            result.setdefault(pool.server_type.id, []).append(key)
        return {key: tuple(members) for key, members in result.items()}

    @cached_property
    def power_states(self) -> dict[str, tuple[str, ...]]:
        """Server types of the hall by accelerator, of accelerators that have several power states there."""
        found: dict[str, list[str]] = {}
        for key, members in self.server_types.items():
            if any(self.pools[q].in_hall for q in members):
                found.setdefault(self.pools[members[0]].server_type.accelerator.id, []).append(key)
        caps = {pool.server_type.id: pool.server_type.power_cap_fraction for pool in self.pools.values()}
        return {a: tuple(several) for a, several in found.items() if len({caps[n] for n in several}) > 1}

    @cached_property
    def accelerator_pools(self) -> dict[str, tuple[str, ...]]:
        """Pools by accelerator id."""
        result: dict[str, list[str]] = {}
        for key, pool in self.pools.items():
            result.setdefault(pool.server_type.accelerator.id, []).append(key)
        return {key: tuple(members) for key, members in result.items()}

    @cached_property
    def heat_shares(self) -> dict[str, dict[str, float]]:
        """Plant id -> pool id -> heat (kW) that one server of the pool sends to the plant.

        A liquid option captures a share of the heat; the rest stays in the air and goes to the residual air plant.
        Air options, rear doors included, take all of it. Owned servers' plants stand.
        """
        result: dict[str, dict[str, float]] = {}
        for key in self.bought:
            pool = self.pools[key]
            for option, share in heat_paths(self.setting, pool):
                plant = result.setdefault(option.id, {})
                plant[key] = plant.get(key, 0.0) + pool.server_kw * share
        return result

    @cached_property
    def most_capacity(self) -> tuple[float, ...]:
        """Capacity of a class that no optimal plan exceeds: its demand and one largest replica.

        Were it more, one replica could be dropped: the least efficient one in use is needed at no level.
        """
        members: list[list[float]] = [[] for _ in self.demand]
        # Where servers may be withdrawn a replica carries less: this bounds it too.
        for key, one in self.deployments.items():
            members[one.class_index].append(self.capacity[key])
        return tuple(demand + max(own, default=0.0) for demand, own in zip(self.demand, members, strict=True))

    def has_spares(self) -> bool:
        """Whether any spare server is asked for."""
        targets = self.setting.instance.targets
        asked = targets.availability_fraction is not None
        return targets.spare_fraction > 0.0 or targets.spare_servers > 0 or asked

    def spare_steps(self, server_type: str) -> tuple[int, ...]:
        """Largest counts in service that 0, 1, 2 ... spares keep available; empty where nothing is asked for."""
        members = [q for q in self.server_types[server_type] if self.pools[q].in_hall]
        most = sum(self.max_servers[q] for q in members)
        return spare_steps(self.setting.instance.targets, self.pools[members[0]].server_type.accelerators, most)

    @cached_property
    def usd_per_busy_kw(self) -> dict[str, dict[str, float]]:
        """Pool -> level -> USD a year for 1 kW above idle at that level: energy, and at the peak its charge."""
        yearly = self.yearly_by_quantity
        return {
            q: {
                name: level.hours_per_year * (yearly.get(("BusyKwh", q), 0.0) + yearly.get(("LevelKwh", q, name), 0.0))
                + (yearly.get(("PeakKw", q), 0.0) if name == PEAK else 0.0)
                for name, level in self.billed_levels.items()
            }
            for q in self.hall
        }

    def carbon_t_per_kwh(self, pool: Pool) -> float:
        """Carbon dioxide (t) of 1 kWh of IT energy of a bought pool."""
        return self.setting.tonnes_per_kwh() * pool.pue_mean

    def it_kwh(self, model: Any, q: str) -> Any:
        """IT energy of a bought pool in a year as an expression of the program, kWh before PUE."""
        return self.idle_kw[q] * HOURS_PER_YEAR * model.Servers[q] + model.BusyKwh[q]

    @cached_property
    def environment_caps(self) -> tuple[tuple[str, float, dict[str, float]], ...]:
        """Caps on what energy brings with it: limit, most in a year, and what 1 kWh of IT energy of each pool takes."""
        site = self.setting.instance.site
        caps = (
            ("carbon_tonnes_per_year", site.carbon_tonnes_per_year, self.carbon_t_per_kwh),
            ("water_m3_per_year", site.water_m3_per_year, water_m3_per_kwh),
        )
        return tuple(
            (name, most, {q: per_kwh(self.pools[q]) for q in self.hall})
            for name, most, per_kwh in caps
            if most is not None
        )

    def busy_kwh_per_request_rate(self, deployment: Offered, pool: Pool) -> float:
        """kW above idle of one server of the pool per busy replica, times what a replica blocks, per request/s."""
        above_idle = pool.loaded_kw(deployment.busy_air_kw) - self.idle_kw[pool.id]
        return above_idle * deployment.servers_per_replica / deployment.requests_per_s

    @cached_property
    def patterns_by_pool(self) -> dict[str, tuple[dict[int, int], ...]]:
        """Pools whose replica widths do not nest, each with every maximal filling of one server (width -> replicas)."""
        result = {}
        widths: dict[str, set[int]] = {}
        for d, q in self.pairs:
            widths.setdefault(q, set()).add(self.deployments[d].width)
        for q, found in widths.items():
            accelerators = self.pools[q].server_type.accelerators
            if not widths_form_chain(found, accelerators):
                narrow = tuple(sorted((width for width in found if width <= accelerators), reverse=True))
                result[q] = tuple(dict(zip(narrow, counts, strict=True)) for counts in fillings(narrow, accelerators))
        return result

    @cached_property
    def server_tiers(self) -> dict[tuple[str, str], tuple[int, int]]:
        """(server type, tier) -> (first count, last count) of what can be reached, for types that may be bought."""
        result = {}
        for type_id, members in self.server_types.items():
            own = [q for q in members if self.pools[q].is_bought]
            if not own:
                continue
            most = sum(self.max_servers[q] for q in own)
            starts = [first for first, _, _ in tier_prices(self.pools[own[0]].server_type)]
            for number, first in enumerate(starts):
                last = min(most, starts[number + 1] - 1) if number + 1 < len(starts) else most
                if first <= most or number == 0:
                    result[type_id, str(number)] = (first if len(starts) > 1 else 0, last)
        return result

    @cached_property
    def fabric_tiers(self) -> dict[str, tuple[int, int, float]]:
        """Segment of the network's price -> (first accelerator, last, link speed) of what may be ordered."""
        result: dict[str, tuple[int, int, float]] = {}
        for speed in self.setting.fabrics:
            own = [q for q in self.bought if self.pools[q].server_type.accelerator.scale_out_gb_s == speed]
            most = sum(self.max_servers[q] * self.pools[q].server_type.accelerators for q in own)
            if own:
                result |= {key: (*ends, speed) for key, ends in network_reach(self.setting, speed, most).items()}
        return result

    @cached_property
    def plants(self) -> dict[str, CoolingOption]:
        """Plants that may be built, by id."""
        return {one.id: one for q in self.bought for one, _ in heat_paths(self.setting, self.pools[q])}

    @cached_property
    def plant_tiers(self) -> dict[tuple[str, str], tuple[float, float]]:
        """(plant, step of its price) -> (least, most kW) that may be ordered; of plants with a quantity discount."""
        result: dict[tuple[str, str], tuple[float, float]] = {}
        for plant, members in self.heat_shares.items():
            most = sum(kw * self.max_servers[q] for q, kw in members.items())
            reach = plant_reach(self.setting, self.plants[plant], most)
            result |= {(plant, str(step)): ends for step, ends in reach.items()}
        return result

    def with_terms(self, terms: Iterable[Term]) -> "ProgramData":
        """The same data with those cost terms whose quantity can differ from 0."""
        plants, tiers, fabrics = set(self.heat_shares), set(self.server_tiers), set(self.fabric_tiers)
        plant_tiers = set(self.plant_tiers)
        schemes = {one.scheme for one in self.deployments.values()}
        allowed = {
            "Servers": set(self.pools),
            "BusyKwh": set(self.hall),
            "LevelKwh": set(self.hall),
            "PeakKw": set(self.hall),
            "Racks": set(self.hall),
            "ServerHours": set(self.elastic),
            "PlantKw": plants,
            "PlantBuilt": plants,
            "FabricAccelerators": fabrics,
            "FabricUsed": fabrics,
            "SchemePrepared": schemes,
        }

        def counts(term: Term) -> bool:
            family, *index = term.quantity
            if family in ("SpaceKw", *SITE_FAMILIES):
                return bool(self.hall)
            if family in ("TierServers", "TierUsed"):
                return tuple(index) in tiers
            if family in ("PlantTierKw", "PlantTierUsed"):
                return tuple(index) in plant_tiers
            return index[0] in allowed[family]

        return replace(self, terms=tuple(term for term in terms if counts(term)))

    def only_pools(self, kept: Iterable[str]) -> "ProgramData":
        """The same data with fewer pools."""
        pools = {key: self.pools[key] for key in kept}
        pairs = tuple(pair for pair in self.pairs if pair[1] in pools)
        return replace(self, pools=pools, pairs=pairs).with_terms(self.terms)

    def only_pairs(self, kept: Iterable[Pair]) -> "ProgramData":
        """The same data with fewer pairs, and without pools, deployments and costs that none of them needs."""
        pairs = tuple(kept)
        homes, needed = {q for _, q in pairs}, {d for d, _ in pairs}
        # Spares may stand in any pool of the hall of a type that has servers in service.
        spared = {self.pools[q].server_type.id for q in homes if self.pools[q].in_hall and self.has_spares()}
        pools = {q: p for q, p in self.pools.items() if q in homes or (p.in_hall and p.server_type.id in spared)}
        deployments = {d: one for d, one in self.deployments.items() if d in needed}
        return replace(self, pools=pools, pairs=pairs, deployments=deployments).with_terms(self.terms)

    def least_spare_share(self, server_type: str) -> float:
        """Least spares per server in service of a bought type."""
        fraction = self.setting.instance.targets.spare_fraction
        return least_spare_share(fraction, self.max_in_service[server_type])

    def quantity(self, model: Any, key: QuantityKey) -> Any:
        """The variable or expression of the program that a cost term's key names."""
        family, *index = key
        if family == "SpaceKw":
            return model.SpaceKw
        if family == "Posts":
            return self.setting.instance.economics.staff.step_fte * model.StaffSteps["site"]
        if family == "Racks" and index[0] not in model.Racks:
            # One server a rack: racks and servers are the same count.
            return model.Servers[index[0]]
        return getattr(model, family)[tuple(index) if len(index) > 1 else index[0]]

    @cached_property
    def staff(self) -> StaffNeed | None:
        """Posts by what they depend on; None where nobody is paid."""
        return staff_need(self.setting) if POSTS in self.yearly_by_quantity else None

    def whole_posts(self, posts: float) -> float:
        """Posts rounded up to whole steps."""
        step = self.setting.instance.economics.staff.step_fte
        return math.ceil(posts / step - 1e-9) * step

    def most_posts(self) -> float:
        """Posts that no optimal plan exceeds."""
        assert self.staff is not None
        servers = [(self.pools[q], self.max_servers[q]) for q in self.hall]
        kw = sum(pool.server_kw * count for pool, count in servers)
        owns = self.setting.instance.site.facility != "colocation"
        return self.staff.posts(
            sum(pool.server_type.accelerators * count for pool, count in servers), max(kw, 1e-9) if owns else 0.0
        )

    @cached_property
    def servers_per_management_server(self) -> int | None:
        """Bought servers that one server without accelerators manages; None where none is paid for."""
        if MANAGEMENT not in self.yearly_by_quantity:
            return None
        return self.setting.instance.economics.services.servers_per_management_server

    @cached_property
    def chooses_hall(self) -> bool:
        """Whether the hall is rented or built, whichever costs less."""
        return bool(self.hall) and self.setting.instance.site.facility == "cheaper"

    @cached_property
    def needs_site(self) -> bool:
        """Whether something is paid once as soon as any server is bought."""
        own = self.setting.instance.site.facility == "own_build"
        minimum = own and self.staff is not None and self.staff.hall_minimum > 0.0
        return minimum or self.yearly_by_quantity.get(SITE_USED, 0.0) > 0.0

    @cached_property
    def space_usd_per_kw(self) -> tuple[float, ...]:
        """USD a year for 1 kW of IT peak in each hall that may be used."""
        yearly = self.yearly_by_quantity
        shared = yearly.get(("SpaceKw",), 0.0)
        if not self.chooses_hall:
            return (shared,)
        return tuple(shared + yearly.get((family, "site"), 0.0) for family in ("ColocationKw", "HallKw"))

    @cached_property
    def capital_by_quantity(self) -> dict[QuantityKey, float]:
        """USD paid at the start for one unit of each quantity."""
        result: dict[QuantityKey, float] = {}
        for term in self.terms:
            if term.capital_usd:
                result[term.quantity] = result.get(term.quantity, 0.0) + term.capital_usd
        return result

    @cached_property
    def yearly_by_quantity(self) -> dict[QuantityKey, float]:
        """USD per year for one unit of each quantity."""
        result: dict[QuantityKey, float] = {}
        for term in self.terms:
            result[term.quantity] = result.get(term.quantity, 0.0) + term.usd_per_year
        return result


@cache
def least_spare_share(fraction: float, most: int) -> float:
    """Least of ceil(fraction x count) / count over whole counts up to ``most``: the fewest spares per server.

    It cuts off nothing whole (spares are whole, and ``ceil(fraction x count) >= least x count``), but fractional
    plans that spread one spare over few servers, which matters for racks that are bought as servers.
    """
    if fraction == 0.0:
        return 0.0
    shares = (math.ceil(fraction * count - 1e-9) / count for count in range(1, max(most, 1) + 1))
    return max(fraction, min(shares))


def replicas_needed(demand: float, capacity: float) -> int:
    """Replicas of one deployment that carry a demand alone; the least demand needs one."""
    return max(1, math.ceil(demand / capacity - 1e-9)) if demand > 0.0 else 0
