"""The least yearly cost of a small instance, by listing every fleet that could be the cheapest.

A fleet is a count of servers in service in every pool whose servers are paid always. Fleets are looked at in the order
of a bound that no fleet with these servers or more can beat; for each fleet that can carry the demand, every placing of
its spares, every count at which a discount of all units begins, and every filling with replicas is priced. The search
ends when the bound passes the best price found, so nothing cheaper is left out. What servers paid by load level add is
chosen for each level by itself, among every filling of as many of them as supply allows. There is no solver, no array
and no code of the program here.
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import NamedTuple

from optimizer.instance.model import Instance
from tests.oracle import tiers
from tests.oracle.listing import HOURS, RESIDUAL, Column, Listing, Pool, captured, list_instance, new_server_usd
from tests.oracle.packing import maximal_counts
from tests.oracle.power_costs import Level, Load, Part, cheapest
from tests.oracle.site_costs import SiteCosts, annuity, site_costs

#: Relative slack of comparisons between sums of floating-point numbers.
SLACK = 1e-9
#: Plans within this of the least cost count as equally cheap.
TIE = 1e-6


class Choice(NamedTuple):
    """What a plan uses, for comparing plans of equal cost."""

    accelerators: tuple[str, ...]
    schemes: tuple[str, ...]
    cooling: tuple[str, ...]
    sourcing: tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """The least yearly cost (USD), every choice that reaches it within ``TIE``, and how many fleets were looked at.

    ``servers`` (by pool, spares included), accelerators by type, capital, power at the meter, racks, and the carbon (t)
    and water (m3) of idle servers are those of one cheapest fleet.
    """

    usd_per_year: float
    choices: tuple[Choice, ...]
    fleets: int
    servers: dict[str, int]
    accelerators: dict[str, int]
    capital_usd: float
    meter_kw: float
    racks: int
    idle_caused: tuple[float, float]


class TooLarge(Exception):  # noqa: N818 - it reports that the instance is no small one
    """The instance has more fleets than an enumeration should look at."""


#: What replicas carry of a class.
Parts = tuple[Part, ...]


class Filling(NamedTuple):
    """A way to fill the servers of a pool: what it carries of each class, and the schemes it uses."""

    parts: tuple[Parts, ...]
    schemes: frozenset[str]


#: Largest counts of servers paid by level, by pool; several where types exclude each other.
Rooms = tuple[tuple[int, ...], ...]


class Elastic(NamedTuple):
    """Servers paid by level, filled: rent an hour, what they carry of each class, schemes, count by pool."""

    usd_per_hour: float
    parts: tuple[Parts, ...]
    schemes: frozenset[str]
    servers: tuple[int, ...]


@dataclass
class Structure:
    """Cost of servers and all that hangs on their counts, before requests and schemes."""

    usd_per_year: float
    capital_usd: float
    servers: tuple[int, ...]
    accelerators: dict[str, int]
    meter_kw: float
    racks: int
    room: tuple[float, float]
    idle_caused: tuple[float, float]
    rented: dict[tuple[str, str], int]


@dataclass
class Money:
    """Prices of an instance, as plain numbers."""

    listing: Listing
    site: SiteCosts = field(init=False)
    plants: dict[str, tuple[float, float, float]] = field(init=False)

    def __post_init__(self) -> None:
        catalog = self.listing.catalog
        self.site = site_costs(self.listing.instance, catalog)
        self.plants = {}
        for key in sorted({RESIDUAL, *(pool.cooling.id for pool in self.listing.pools if pool.cooling is not None)}):
            fixed, marginal, upkeep = self.plant_parts(key)
            self.plants[key] = (fixed, marginal, self.site.plant_share + upkeep * self.site.plant_upkeep_share)

    def plant_parts(self, key: str) -> tuple[float, float, float]:
        """(fixed USD, USD per kW, yearly upkeep as a share) of a plant."""
        row = self.listing.catalog.cooling[key]
        own = self.listing.instance.economics.cooling_prices.get(key)
        fixed, marginal = row.capex_fixed_usd, row.capex_marginal_usd_per_kw
        upkeep = row.maintenance_typical_fraction
        if own is not None:
            fixed = fixed if own.fixed_usd is None else own.fixed_usd
            marginal = marginal if own.marginal_usd_per_kw is None else own.marginal_usd_per_kw
            upkeep = upkeep if own.maintenance_fraction is None else own.maintenance_fraction
        return fixed, marginal, upkeep

    def plant_usd(self, key: str, heat_kw: float) -> float:
        """Capital of a plant that takes so much heat."""
        fixed, marginal, _ = self.plants[key]
        return fixed + tiers.plant_usd(marginal, self.listing.instance.economics.cooling_prices.get(key), heat_kw)

    def plant_discount(self, key: str) -> float:
        """What is left of a plant's price per kW under its largest discount."""
        own = self.listing.instance.economics.cooling_prices.get(key)
        return tiers.least_share(() if own is None else (one.discount_fraction for one in own.discounts))

    def server_price(self, kind: int, count: int) -> float:
        """Price of ``count`` servers of the type of a pool, quantity discount included."""
        server_type = self.listing.pools[kind].server_type
        price = server_type.server_usd
        assert price is not None
        if not server_type.incremental:
            share = max((off for start, off in server_type.discounts if count >= start), default=0.0)
            return price * (1.0 - share) * count
        steps = [(1, 0.0), *server_type.discounts]
        total = 0.0
        for index, (start, off) in enumerate(steps):
            end = steps[index + 1][0] if index + 1 < len(steps) else count + 1
            total += max(0, min(count + 1, end) - start) * price * (1.0 - off)
        return total

    def owned_usd(self, pool: int) -> float:
        """Yearly upkeep of one owned server, its network and plant, and of what replaces it within the horizon."""
        one, listing = self.listing.pools[pool], self.listing
        economics, catalog, kind = listing.instance.economics, listing.catalog, one.server_type
        assert one.owned is not None
        assert one.cooling is not None
        new = new_server_usd(listing.instance, catalog, kind.accelerator)
        stated = one.owned.upkeep_usd_per_server_year
        if stated is None:
            assert new is not None
            stated = new * economics.server_maintenance_fraction
        usd = stated
        fabric = next(row for row in listing.fabrics[kind.accelerator.scale_out_gb_s] if row.tiers == 2)
        per_accelerator = float(getattr(fabric, f"{economics.price_level}_usd_per_accelerator"))
        usd += kind.size * per_accelerator * economics.network_maintenance_fraction
        share = captured(one.cooling)
        for name, part in ((one.cooling.id, share), (RESIDUAL, 1.0 - share)):
            _, marginal, upkeep = self.plant_parts(name)
            usd += one.server_kw * part * marginal * upkeep
        years, horizon = one.owned.remaining_life_years, economics.horizon_years
        if years < horizon:
            assert new is not None
            later = 1.0 - annuity(economics.discount_rate, horizon) / annuity(economics.discount_rate, years)
            usd += new * annuity(economics.discount_rate, economics.server_life_years) * later
        return usd * self.site.shares.running

    def premium_usd(self, pool: int) -> float:
        """Premium of one new server that is built for liquid and could be had for air."""
        one = self.listing.pools[pool]
        row = one.server_type.accelerator
        if (
            one.cooling is None
            or one.cooling.medium != "liquid"
            or not one.is_bought
            or row.liquid_cooling == "required"
        ):
            return 0.0
        economics = self.listing.instance.economics
        if row.liquid_cooling == "option":
            return economics.liquid_ready_usd_per_kw * row.server_power_kw
        figure = self.listing.catalog.facility["liquid_retrofit"]
        each = {"low": figure.low, "typical": figure.typical, "high": figure.high}[economics.price_level]
        stated = economics.liquid_retrofit_usd_per_kw
        return (each if stated is None else stated) * row.server_power_kw

    def doors_usd(self, pool: int) -> float:
        """Price of what cools one rack of a pool, however full."""
        option = self.listing.pools[pool].cooling
        own = None if option is None else self.listing.instance.economics.cooling_prices.get(option.id)
        return 0.0 if own is None or own.per_rack_usd is None else own.per_rack_usd


def _best_of(several: Sequence[Parts]) -> Parts:
    """One part that carries as much as the largest of several fillings of a pool, at the least power; or none."""
    found = [one for parts in several for one in parts]
    if not found:
        return ()
    capacity = max(sum(one.capacity for one in parts) for parts in several)
    return (min(found, key=lambda one: one.kw)._replace(capacity=capacity),)


def plant_of(pool: Pool) -> str:
    """Cooling option of servers in the hall."""
    assert pool.cooling is not None
    return pool.cooling.id


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Every way to write ``total`` as an ordered sum of ``parts`` counts."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in compositions(total - first, parts - 1):
            yield (first, *rest)


class Enumeration:
    """One instance's fleets."""

    def __init__(self, listing: Listing, most_steps: int) -> None:
        self.listing = listing
        self.instance = listing.instance
        self.pools = listing.pools
        self.money = Money(listing)
        self.most_steps = most_steps
        self.steps = 0
        self.known_elastic: dict[tuple[frozenset[str], tuple[int, ...]], list[Elastic]] = {}
        self.known_fillings: dict[tuple[int, int, frozenset[str]], list[Filling]] = {}
        self.columns: list[list[list[Column]]] = [
            [
                self._undominated([c for c in listing.columns if c.pool == q and c.request_class == b])
                for b in range(len(listing.classes))
            ]
            for q in range(len(self.pools))
        ]
        self.schemes_of = [frozenset(c.scheme for row in by_class for c in row) for by_class in self.columns]
        self.fixed = [q for q, pool in enumerate(self.pools) if not pool.by_level]
        self.elastic = [q for q, pool in enumerate(self.pools) if pool.by_level]
        self.by_type: dict[str, list[int]] = {}
        for q, pool in enumerate(self.pools):
            if pool.in_hall:
                self.by_type.setdefault(pool.server_type.id, []).append(q)
        self.server_capacity = [
            [self._most_capacity(q, b) for b in range(len(listing.classes))] for q in range(len(self.pools))
        ]
        # Weighted demand of a server whose every accelerator carries what each one of the best replica carries.
        self.densest = [
            [
                max((c.capacity / c.width for c in self.columns[q][b]), default=0.0) * self.pools[q].server_type.size
                for b in range(len(listing.classes))
            ]
            for q in range(len(self.pools))
        ]
        self.unit_usd = [self._least_server_usd(q) for q in range(len(self.pools))]
        self.least_requests_usd = sum(
            level.share
            * demand
            * min(
                (listing.power.unit_usd(level, self._part(c, 1)) for row in self.columns for c in row[b]),
                default=math.inf,
            )
            for level in listing.power.levels
            for b, demand in enumerate(listing.demand)
        )

    def _part(self, column: Column, count: int) -> Part:
        """What so many replicas of a column carry; rented ones cost nothing above their rent."""
        pool = self.pools[column.pool]
        return Part(
            count * column.capacity, column.kw_per_unit, pool.pue_mean, pool.pue_design, self._m3_per_kwh(column.pool)
        )

    def _m3_per_kwh(self, q: int) -> float:
        cooling = self.pools[q].cooling
        return 0.0 if cooling is None else cooling.water_typical_l_per_kwh / 1000.0

    def _undominated(self, columns: list[Column]) -> list[Column]:
        """Without columns that replicas of another one replace at no cost, in the accelerators that a replica takes.

        Several replicas of the other fit where one was, together carry at least as much with no more energy a unit,
        and their scheme is the same or costs nothing. Of equals the first by name stays.
        """
        usd = self.listing.scheme_usd

        def replaced(one: Column, other: Column) -> bool:
            times = self._times(one, other)
            free = other.scheme == one.scheme or usd[other.scheme] == 0.0
            return (
                free and times >= 1 and times * other.capacity >= one.capacity and other.kw_per_unit <= one.kw_per_unit
            )

        kept: list[Column] = []
        for one in sorted(columns, key=lambda c: (c.width, c.name)):
            if not any(replaced(one, other) for other in kept):
                kept = [other for other in kept if not replaced(other, one)] + [one]
        return kept

    def _times(self, one: Column, other: Column) -> int:
        """Replicas of ``other`` that fit into the accelerators of a replica of ``one``, server by server."""
        size = self.pools[one.pool].server_type.size
        if one.width <= size or other.width > size:
            return one.width // other.width
        return one.width // size * (size // other.width)

    def _most_capacity(self, q: int, b: int) -> float:
        """Most weighted demand of one class that a server of a pool adds: a share of a replica for wide ones."""
        size = self.pools[q].server_type.size
        best = [0.0] * (size + 1)
        for room in range(1, size + 1):
            best[room] = max(
                [best[room - 1]] + [best[room - c.width] + c.capacity for c in self.columns[q][b] if c.width <= room]
            )
        wide = [c.capacity / (c.width // size) for c in self.columns[q][b] if c.width > size]
        return max([best[size], *wide])

    def _least_server_usd(self, q: int) -> float:
        """What one more server costs at the very least, whatever else stands there."""
        pool = self.pools[q]
        kind = pool.server_type
        if not pool.in_hall:
            # What is paid by level is paid at the peak at least, for what is missing there.
            hours = self.listing.power.levels[0].hours if pool.by_level else HOURS
            rent = pool.rent_usd * kind.size * hours * self.money.site.shares.running
            return rent + kind.size * self.money.site.software_usd
        running = self._idle_usd(q) + kind.size * self.money.site.software_usd
        running += self.money.site.least_server_usd(kind.size, pool.server_kw)
        if not pool.is_bought:
            return running + self.money.owned_usd(q)
        assert kind.server_usd is not None
        least = kind.server_usd * (1.0 - max((off for _, off in kind.discounts), default=0.0))
        usd = (least + self.money.premium_usd(q)) * self.money.site.server_share
        level = f"{self.instance.economics.price_level}_usd_per_accelerator"
        fabric = min(float(getattr(row, level)) for row in self.listing.fabrics[kind.accelerator.scale_out_gb_s])
        fabric *= tiers.least_share(one.discount_fraction for one in self.instance.economics.network_discounts)
        usd += fabric * kind.size * self.money.site.network_share
        usd += running + self.money.site.storage_usd * kind.size
        for plant, share in self._heat(q):
            _, marginal, yearly = self.money.plants[plant]
            usd += pool.server_kw * share * marginal * self.money.plant_discount(plant) * yearly
        doors = self.money.doors_usd(q) * self.money.plants[plant_of(pool)][2]
        return usd + (self.money.site.rack_usd * self.money.site.rack_share + doors) / pool.per_rack

    def _idle_usd(self, q: int) -> float:
        """A year of one idle server."""
        pool = self.pools[q]
        return self.listing.power.server_usd(pool.idle_kw, pool.pue_mean, pool.pue_design, self._m3_per_kwh(q))

    def _heat(self, q: int) -> list[tuple[str, float]]:
        cooling = self.pools[q].cooling
        assert cooling is not None
        share = captured(cooling)
        return [(cooling.id, share)] if share == 1.0 else [(cooling.id, share), (RESIDUAL, 1.0 - share)]

    # -- servers -----------------------------------------------------------------------------------------------

    def structures(self, service: tuple[int, ...]) -> list[Structure]:
        """Every placing of spares and every count worth buying, with its cost, where the limits hold; cheapest first.

        Beyond the servers and spares that are needed only counts at which an all-units discount begins are worth
        buying: everything but the unit price grows with the count.
        """
        targets = self.instance.targets
        choices: list[list[tuple[int, ...]]] = []
        names = list(self.by_type)
        for name in names:
            members = self.by_type[name]
            used = sum(service[q] for q in members)
            # A discount counts new servers alone, whatever else of the type stands there.
            new = sum(service[q] for q in members if self.pools[q].is_bought)
            if used == 0:
                choices.append([(0,) * len(members)])
                continue
            kind = self.pools[members[0]].server_type
            spare = max(math.ceil(targets.spare_fraction * used - SLACK), targets.spare_servers)
            spare = max(spare, tiers.available_spares(targets, kind.size, used))
            extra = [spare]
            if not kind.incremental and any(self.pools[q].is_bought for q in members):
                least = [start - new for start, _ in kind.discounts]
                extra += [begin for begin in least if begin > spare]
            choices.append([one for count in sorted(set(extra)) for one in compositions(count, len(members))])
        result = []
        for spares in product(*choices):
            servers = list(service)
            for name, counts in zip(names, spares, strict=True):
                for q, count in zip(self.by_type[name], counts, strict=True):
                    servers[q] += count
            result += self._price(tuple(servers))
        return sorted(result, key=lambda one: one.usd_per_year)

    def _price(self, servers: tuple[int, ...]) -> list[Structure]:
        """Cost of servers, spares among them, in each hall; none where a limit of site, supply or choice breaks."""
        self.spend()
        money = self.money
        yearly = capital = kw = meter = 0.0
        racks = new_racks = accelerators = new_accelerators = standing = 0
        caused = [0.0, 0.0]
        rented: dict[tuple[str, str], int] = {}
        used_types: dict[str, int] = {}
        fabric: dict[float, int] = {}
        heat: dict[str, float] = {}
        states: dict[str, float] = {}
        for q, (pool, count) in enumerate(zip(self.pools, servers, strict=True)):
            if count == 0:
                continue
            kind = pool.server_type
            if pool.in_hall and states.setdefault(kind.accelerator.id, kind.cap) != kind.cap:
                return []
            used_types[kind.accelerator.id] = used_types.get(kind.accelerator.id, 0) + count * kind.size
            yearly += count * kind.size * money.site.software_usd
            if not pool.in_hall:
                rented[pool.provider, kind.accelerator.id] = (
                    rented.get((pool.provider, kind.accelerator.id), 0) + count * kind.size
                )
                yearly += count * kind.size * HOURS * pool.rent_usd * money.site.shares.running
                continue
            if pool.owned is not None:
                if count > pool.owned.servers:
                    return []
                yearly += count * money.owned_usd(q)
            premium = count * money.premium_usd(q)
            yearly += premium * money.site.server_share
            capital += premium
            yearly += count * self._idle_usd(q)
            each = self.listing.power.caused(pool.idle_kw * HOURS, pool.pue_mean, self._m3_per_kwh(q))
            caused = [total + count * used for total, used in zip(caused, each, strict=True)]
            kw += count * pool.server_kw
            meter += count * pool.server_kw * pool.pue_design
            racks += math.ceil(count / pool.per_rack)
            accelerators += count * kind.size
            standing += count
            if not pool.is_bought:
                continue
            new_racks += math.ceil(count / pool.per_rack)
            doors = math.ceil(count / pool.per_rack) * money.doors_usd(q)
            yearly += doors * money.plants[plant_of(pool)][2]
            capital += doors
            new_accelerators += count * kind.size
            speed = kind.accelerator.scale_out_gb_s
            fabric[speed] = fabric.get(speed, 0) + count * kind.size
            for plant, share in self._heat(q):
                heat[plant] = heat.get(plant, 0.0) + share * count * pool.server_kw
        for members in self.by_type.values():
            new = [q for q in members if self.pools[q].is_bought]
            count = sum(servers[q] for q in new)
            if count:
                usd = money.server_price(new[0], count)
                yearly += usd * money.site.server_share
                capital += usd
        for speed, count in fabric.items():
            usd = tiers.network_usd(self.listing.fabrics[speed], self.instance.economics, count)
            yearly += usd * money.site.network_share
            capital += usd
        for plant, size in heat.items():
            usd = money.plant_usd(plant, size)
            yearly += usd * money.plants[plant][2]
            capital += usd
        yearly += new_racks * money.site.rack_usd * money.site.rack_share
        yearly += self.listing.power.connection_usd if kw else 0.0
        capital += new_racks * money.site.rack_usd
        room = self.listing.power.room((caused[0], caused[1]))
        if min(room) < -SLACK * max(caused):
            return []
        found = []
        for more, paid in (
            money.site.of_fleet(kw, accelerators, standing, new_accelerators) if standing else [(0.0, 0.0)]
        ):
            if self._within(yearly + more, capital + paid, meter, racks, used_types, rented):
                found.append(
                    Structure(
                        yearly + more,
                        capital + paid,
                        servers,
                        used_types,
                        meter,
                        racks,
                        room,
                        (caused[0], caused[1]),
                        rented,
                    )
                )
        return found

    def _within(
        self,
        yearly: float,
        capital: float,
        meter: float,
        racks: int,
        used_types: dict[str, int],
        rented: dict[tuple[str, str], int],
    ) -> bool:
        """Whether a fleet keeps the caps on what stands."""
        site, choices = self.instance.site, self.instance.choices
        within = (
            (meter, site.power_kw),
            (racks, site.racks),
            (racks * site.rack_floor_m2, site.floor_m2),
            (capital, self.instance.economics.budget_capex_usd),
            (yearly, self.instance.economics.budget_usd_per_year),
            (len(used_types), choices.max_accelerator_types),
            *((used_types.get(key, 0), most) for key, most in choices.supply.items()),
            *((rented.get(key, 0), most) for key, most in self.provider_limits().items()),
        )
        return all(most is None or value <= most * (1.0 + SLACK) for value, most in within)

    def provider_limits(self) -> dict[tuple[str, str], int]:
        """Accelerators by provider and type that can be rented."""
        supply = self.instance.choices.provider_supply
        return {(provider, key): most for provider, counts in supply.items() for key, most in counts.items()}

    # -- bounds ------------------------------------------------------------------------------------------------

    def bound(self, service: tuple[int, ...], first: int) -> float:
        """No fleet with these servers, and any more of the pools from ``first`` on, costs less; infinite: none serves.

        Every server costs its least. Two bounds of what is missing: each class alone, were all servers its own; and all
        classes together, a server's accelerators counted for the class where they are worth most.
        """
        demand = self.listing.demand
        later = [q for q in range(first, len(self.pools)) if not self.pools[q].by_level] + self.elastic
        total = sum(usd * count for usd, count in zip(self.unit_usd, service, strict=True))
        alone = 0.0
        worth = []
        for b, needed in enumerate(demand):
            missing = needed - sum(count * self.server_capacity[q][b] for q, count in enumerate(service))
            prices = [self.unit_usd[q] / self.server_capacity[q][b] for q in later if self.server_capacity[q][b] > 0]
            if not prices:
                if missing > needed * SLACK:
                    return math.inf
                worth.append(0.0)
                continue
            alone = max(alone, missing * min(prices))
            worth.append(min(self.unit_usd[q] / self.densest[q][b] for q in later if self.densest[q][b] > 0))
        together = sum(usd * needed for usd, needed in zip(worth, demand, strict=True))
        for q, count in enumerate(service):
            if count:
                together -= count * max(usd * self.densest[q][b] for b, usd in enumerate(worth))
        return (total + max(0.0, alone, together) + self.least_requests_usd) * (1.0 - SLACK)

    def may_carry(self, service: tuple[int, ...]) -> bool:
        """Whether every class alone would be served, with all that servers paid by level may add."""
        return all(
            any(self.columns[q][b] for q in self.elastic)
            or sum(count * self.server_capacity[q][b] for q, count in enumerate(service)) >= demand * (1.0 - SLACK)
            for b, demand in enumerate(self.listing.demand)
        )

    # -- replicas ----------------------------------------------------------------------------------------------

    def requests_usd(self, parts: Sequence[Parts], room: tuple[float, float]) -> float | None:
        """Least yearly cost above idle, given the parts of each class; None where the peak or a cap is not kept.

        Rates are continuous, so the cheapest energy is used first.
        """
        power = self.listing.power
        loads = []
        for b, demand in enumerate(self.listing.demand):
            if sum(one.capacity for one in parts[b]) < demand * (1.0 - SLACK):
                return None
            loads += [self._load(level, parts[b], level.share * demand) for level in power.levels]
        return cheapest(power, loads, room)

    def _load(self, level: Level, parts: Parts, demand: float) -> Load:
        """A class's demand at a level, and what may serve it."""
        power = self.listing.power
        options = tuple(
            (
                one.capacity,
                power.unit_usd(level, one),
                power.caused(one.kw * level.hours, one.pue_mean, one.m3_per_kwh),
            )
            for one in parts
        )
        return Load(demand, options)

    def level_usd(self, level: Level, parts: Sequence[Parts]) -> float | None:
        """Least yearly cost above idle of one level, given the parts of each class; None where they do not carry it."""
        loads = []
        for b, demand in enumerate(self.listing.demand):
            needed = level.share * demand
            if sum(one.capacity for one in parts[b]) < needed * (1.0 - SLACK):
                return None
            loads.append(self._load(level, parts[b], needed))
        return cheapest(self.listing.power, loads, (math.inf, math.inf))

    def fillings(
        self,
        service: tuple[int, ...],
        allowed: frozenset[str],
        most_usd: float,
        caps: tuple[float, float],
        rooms: "Rooms" = (),
    ) -> tuple[float, frozenset[str], tuple[int, ...]] | None:
        """Least yearly energy above idle and rent by level over every filling with replicas of the allowed schemes.

        With it the schemes of that filling, and servers paid by level. Capacity never hurts: only fillings without room
        for a replica count. None where the demand is not met, or only at more than ``most_usd``.
        """
        classes = range(len(self.listing.classes))
        options = [
            found
            for q, count in enumerate(service)
            if count and (found := self._fillings_of(q, count, allowed & self.schemes_of[q]))
        ]
        # For the bound: all a pool may carry of a class, at its cheapest energy.
        most = [[_best_of([one.parts[b] for one in found]) for b in classes] for found in options]
        best: list[tuple[float, frozenset[str], tuple[int, ...]]] = []

        def extend(position: int, chosen: tuple[Parts, ...], schemes: frozenset[str]) -> None:
            self.spend()
            if not self.elastic:
                parts = [chosen[b] + sum((row[b] for row in most[position:]), ()) for b in classes]
                total = self.requests_usd(parts, caps)
                if total is None or total > most_usd or (best and total >= best[0][0]):
                    return
                if position == len(options):
                    best[:] = [(total, schemes, (0,) * len(self.pools))]
                    return
            elif position == len(options):
                for room in rooms:
                    licences = self._licences_usd(room)
                    limit = min(most_usd, best[0][0] if best else math.inf)
                    found = self._levels(chosen, allowed, room, limit - licences)
                    if found is not None and (not best or found[0] + licences < best[0][0]):
                        best[:] = [(found[0] + licences, schemes | found[1], found[2])]
                return
            for one in options[position]:
                extend(position + 1, tuple(chosen[b] + one.parts[b] for b in classes), schemes | one.schemes)

        extend(0, ((),) * len(classes), frozenset())
        return best[0] if best and best[0][0] <= most_usd else None

    def rooms(self, one: Structure) -> "Rooms":
        """Largest counts of servers paid by level that supply, providers and the choice of types leave room for.

        Nothing else limits them, and one that no level uses costs nothing, so counts below the largest are no choice;
        all counts are where software is paid for the most of any level.
        """
        if not self.elastic:
            return ()
        choices, limits = self.instance.choices, self.provider_limits()
        boxes = [range(self._ample(q) + 1) for q in self.elastic]
        if math.prod(len(box) for box in boxes) > self.most_steps:
            raise TooLarge("too many servers paid by level")
        kept: list[tuple[int, ...]] = []
        for counts in sorted(product(*boxes), key=lambda one: (-sum(one), one)):
            smaller = any(all(a <= b for a, b in zip(counts, other, strict=True)) for other in kept)
            if smaller and not self.money.site.software_usd:
                continue
            self.spend()
            used, rented = dict(one.accelerators), dict(one.rented)
            for q, count in zip(self.elastic, counts, strict=True):
                pool = self.pools[q]
                key, size = pool.server_type.accelerator.id, count * pool.server_type.size
                if count:
                    used[key] = used.get(key, 0) + size
                    rented[pool.provider, key] = rented.get((pool.provider, key), 0) + size
            if (
                all(used.get(key, 0) <= most for key, most in choices.supply.items())
                and all(rented.get(key, 0) <= most for key, most in limits.items())
                and (choices.max_accelerator_types is None or len(used) <= choices.max_accelerator_types)
            ):
                kept.append(counts)
        return tuple(kept)

    def _licences_usd(self, counts: tuple[int, ...]) -> float:
        """Software of servers paid by level: for as many as are had at once, all year."""
        sizes = (self.pools[q].server_type.size for q in self.elastic)
        return self.money.site.software_usd * sum(count * size for count, size in zip(counts, sizes, strict=True))

    def _ample(self, q: int) -> int:
        """Servers of a pool that carry everything alone, each class on servers of its own."""
        total = 0
        for b, demand in enumerate(self.listing.demand):
            each = max((self._one_kind(q, c) for c in self.columns[q][b]), default=0.0)
            least = min((self._one_kind(q, c) for c in self.columns[q][b]), default=0.0)
            if each:
                # Filled with the weakest deployment: no level can want more.
                total += math.ceil(demand / least - SLACK)
        return total

    def _one_kind(self, q: int, column: Column) -> float:
        """What a server carries that is filled with one deployment."""
        return column.capacity * (self.pools[q].server_type.size // column.width)

    def _levels(
        self, fixed: tuple[Parts, ...], allowed: frozenset[str], room: tuple[int, ...], most_usd: float
    ) -> tuple[float, frozenset[str], tuple[int, ...]] | None:
        """(USD a year, schemes, servers by pool): each level with the servers paid by level that serve it cheapest."""
        site = self.instance.site
        if site.carbon_tonnes_per_year is not None or site.water_m3_per_year is not None:
            raise TooLarge("caps on carbon and water tie the levels together")
        total, schemes, used = 0.0, frozenset[str](), [0] * len(self.pools)
        for level in self.listing.power.levels:
            best: tuple[float, Elastic] | None = None
            for one in self._elastic_fleets(allowed, room):
                self.spend()
                usd = one.usd_per_hour * level.hours
                if best is not None and usd >= best[0]:
                    break
                parts = [fixed[b] + one.parts[b] for b in range(len(self.listing.classes))]
                energy = self.level_usd(level, parts)
                if energy is not None and (best is None or usd + energy < best[0]):
                    best = usd + energy, one
            if best is None:
                return None
            total += best[0]
            if total > most_usd:
                return None
            schemes |= best[1].schemes
            used = [max(a, b) for a, b in zip(used, best[1].servers, strict=True)]
        return total, schemes, tuple(used)

    def _elastic_fleets(self, allowed: frozenset[str], room: tuple[int, ...]) -> list["Elastic"]:
        """Every count and filling of servers paid by level, by rising rent."""
        key = (allowed, room)
        if key not in self.known_elastic:
            fleets = []
            for counts in product(*(range(most + 1) for most in room)):
                options = [
                    self._fillings_of(q, count, allowed & self.schemes_of[q])
                    for q, count in zip(self.elastic, counts, strict=True)
                    if count
                ]
                servers = [0] * len(self.pools)
                rent = 0.0
                for q, count in zip(self.elastic, counts, strict=True):
                    servers[q] = count
                    each = self.pools[q].rent_usd * self.money.site.shares.running
                    rent += count * self.pools[q].server_type.size * each
                for several in product(*options):
                    self.spend()
                    parts = tuple(
                        tuple(part for one in several for part in one.parts[b])
                        for b in range(len(self.listing.classes))
                    )
                    used = frozenset(name for one in several for name in one.schemes)
                    fleets.append(Elastic(rent, parts, used, tuple(servers)))
            self.known_elastic[key] = sorted(fleets, key=lambda one: (one.usd_per_hour, one.servers))
        return self.known_elastic[key]

    def _fillings_of(self, q: int, count: int, allowed: frozenset[str]) -> list[Filling]:
        """Every filling of ``count`` servers of a pool without room for another replica."""
        key = (q, count, allowed)
        if key not in self.known_fillings:
            columns = [c for row in self.columns[q] for c in row if c.scheme in allowed]
            found: list[Filling] = []
            if columns:
                size = self.pools[q].server_type.size
                for counts in maximal_counts(tuple(c.width for c in columns), count, size):
                    self.spend()
                    found.append(self._filling(columns, counts))
            self.known_fillings[key] = found
        return self.known_fillings[key]

    def _filling(self, columns: list[Column], counts: tuple[int, ...]) -> Filling:
        parts: list[Parts] = [() for _ in self.listing.classes]
        for column, count in zip(columns, counts, strict=True):
            if count:
                parts[column.request_class] += (self._part(column, count),)
        return Filling(tuple(parts), frozenset(c.scheme for c, count in zip(columns, counts, strict=True) if count))

    def spend(self) -> None:
        """Count one step of work; TooLarge when there were too many."""
        self.steps += 1
        if self.steps > self.most_steps:
            raise TooLarge(f"more than {self.most_steps} steps")

    def priced_schemes(self, service: tuple[int, ...]) -> Iterator[tuple[frozenset[str], float]]:
        """Every set of schemes that may be prepared, with its capital; schemes that cost nothing are always there."""
        usd = self.listing.scheme_usd
        used = [q for q, count in enumerate(service) if count or self.pools[q].by_level]
        present = {c.scheme for q in used for row in self.columns[q] for c in row}
        free = frozenset(key for key in present if usd[key] == 0.0)
        paid = sorted(key for key in present if usd[key] > 0.0)
        for size in range(len(paid) + 1):
            for some in combinations(paid, size):
                yield free | frozenset(some), sum(usd[key] for key in some)

    # -- search ------------------------------------------------------------------------------------------------

    def search(self) -> Answer | None:
        """Every fleet in the order of its bound, until the bound passes the best price."""
        if any(all(not self.columns[q][b] for q in range(len(self.pools))) for b in range(len(self.listing.classes))):
            return None
        limits = self.instance.economics
        start = (0,) * len(self.pools)
        queue = [(self.bound(start, 0), start, 0)]
        best = math.inf
        found: dict[Choice, float] = {}
        cheapest: Structure | None = None
        capital_usd = 0.0
        fleets = 0
        while queue:
            bound, service, first = heapq.heappop(queue)
            if bound > best * (1.0 + TIE) or math.isinf(bound):
                break
            fleets += 1
            self.spend()
            structures = self.structures(service)
            if not structures:
                continue
            if self.may_carry(service):
                for allowed, capital in self.priced_schemes(service):
                    once = capital * self.money.site.horizon_share
                    fitting = [
                        one
                        for one in structures
                        if limits.budget_capex_usd is None
                        or one.capital_usd + capital <= limits.budget_capex_usd * (1.0 + SLACK)
                    ]
                    if not fitting or fitting[0].usd_per_year + once > best * (1.0 + TIE):
                        continue
                    known: dict[tuple[tuple[float, float], Rooms], tuple[float, frozenset[str], tuple[int, ...]] | None]
                    known = {}
                    for one in fitting:
                        # Structures rise in cost, so what was left for requests of an earlier one is enough for this.
                        # What servers paid by level may add depends on what else is had of their type.
                        key = one.room, self.rooms(one)
                        if key not in known:
                            left = best * (1.0 + TIE) - one.usd_per_year - once
                            known[key] = self.fillings(service, allowed, left, *key) if left >= 0.0 else None
                        filled = known[key]
                        if filled is None:
                            continue
                        running, schemes, used = filled
                        usd = one.usd_per_year + once + running
                        if limits.budget_usd_per_year is not None and usd > limits.budget_usd_per_year * (1.0 + SLACK):
                            continue
                        if usd <= best * (1.0 + TIE):
                            choice = self._choice(self._with(one, used).servers, schemes)
                            found[choice] = min(usd, found.get(choice, math.inf))
                            if usd < best:
                                best, capital_usd = usd, one.capital_usd + capital
                                cheapest = self._with(one, used)
            least = structures[0].usd_per_year
            for q in self.fixed:
                if q < first or service[q] >= self._most(q):
                    continue
                grown = (*service[:q], service[q] + 1, *service[q + 1 :])
                bound = max(self.bound(grown, q), least * (1.0 - SLACK))
                if bound <= best * (1.0 + TIE) and bound <= (limits.budget_usd_per_year or math.inf) * (1.0 + SLACK):
                    heapq.heappush(queue, (bound, grown, q))
        if cheapest is None:
            return None
        kept = tuple(sorted(choice for choice, usd in found.items() if usd <= best * (1.0 + TIE)))
        servers = {pool.id: count for pool, count in zip(self.pools, cheapest.servers, strict=True) if count}
        return Answer(
            best,
            kept,
            fleets,
            servers,
            cheapest.accelerators,
            capital_usd,
            cheapest.meter_kw,
            cheapest.racks,
            cheapest.idle_caused,
        )

    def _with(self, one: Structure, used: tuple[int, ...]) -> Structure:
        """A structure with the servers that are paid by level."""
        accelerators = dict(one.accelerators)
        for pool, count in zip(self.pools, used, strict=True):
            if count:
                key = pool.server_type.accelerator.id
                accelerators[key] = accelerators.get(key, 0) + count * pool.server_type.size
        servers = tuple(a + b for a, b in zip(one.servers, used, strict=True))
        return replace(one, servers=servers, accelerators=accelerators)

    def _most(self, q: int) -> float:
        owned = self.pools[q].owned
        return math.inf if owned is None else owned.servers

    def _choice(self, servers: tuple[int, ...], schemes: frozenset[str]) -> Choice:
        used = [pool for pool, count in zip(self.pools, servers, strict=True) if count]
        return Choice(
            tuple(sorted({pool.server_type.accelerator.id for pool in used})),
            tuple(sorted(schemes)),
            tuple(sorted({pool.cooling.id for pool in used if pool.cooling is not None})),
            tuple(sorted({pool.sourcing for pool in used})),
        )


def answer(listing: Listing, most_steps: int = 1_000_000) -> Answer | None:
    """The least yearly cost over every fleet of a listing, or None where no fleet holds every limit.

    Of the offers of one server type that are paid alike only those up to the cheapest without a limit of its provider's
    supply are looked at: nothing but price and that limit tells them apart.
    """
    limited = {
        (provider, key) for provider, counts in listing.instance.choices.provider_supply.items() for key in counts
    }

    def rank(pool: Pool) -> tuple[float, str, str]:
        return pool.rent_usd, pool.sourcing, pool.id

    def worth_a_look(pool: Pool) -> bool:
        if pool.in_hall:
            return True
        alike = [
            other
            for other in listing.pools
            if not other.in_hall
            and other.server_type.id == pool.server_type.id
            and (other.by_level, other.availability) == (pool.by_level, pool.availability)
            and (other.provider, other.server_type.accelerator.id) not in limited
        ]
        same = [other for other in listing.pools if other.id == pool.id]
        return rank(pool) == min(rank(other) for other in same) and all(rank(pool) <= rank(other) for other in alike)

    return Enumeration(listing.filtered(worth_a_look, lambda _: True), most_steps).search()


def cheapest_by_enumeration(instance: Instance, most_steps: int = 1_000_000) -> Answer | None:
    """The least yearly cost of an instance (USD) with the choices that reach it, or None where it is infeasible."""
    return answer(list_instance(instance), most_steps)


def without(listing: Listing, kind: str, name: str) -> Listing:
    """The listing without one thing: an ``accelerator``, a ``scheme``, a ``cooling`` option or a ``sourcing``."""

    def pool_stays(pool: Pool) -> bool:
        things = {
            "accelerator": pool.server_type.accelerator.id,
            "cooling": "" if pool.cooling is None else pool.cooling.id,
            "sourcing": pool.sourcing,
        }
        return things.get(kind) != name

    return listing.filtered(pool_stays, lambda column: kind != "scheme" or column.scheme != name)


def without_any(listing: Listing, choice: Choice, most_steps: int = 1_000_000) -> Answer | None:
    """The cheapest plan that does without at least one thing of a choice (docs/method.md section 9)."""
    things = [
        *(("accelerator", one) for one in choice.accelerators),
        *(("scheme", one) for one in choice.schemes),
        *(("cooling", one) for one in choice.cooling),
        *(("sourcing", one) for one in choice.sourcing),
    ]
    answers = [answer(without(listing, kind, name), most_steps) for kind, name in things]
    found = [one for one in answers if one is not None]
    return min(found, key=lambda one: one.usd_per_year) if found else None
