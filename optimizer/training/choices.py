"""Choices of a job: an option (type, format, count, layout, method) on pools of servers at places, with its cost.

All figures of a choice are known before the program runs, so limits of one job alone are checked here, for all choices
at once. Over two sites every split is tried, over more what ``splits`` says (docs/training-plans.md).
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from optimizer.instance.model import Instance
from optimizer.performance.factors import FloatArray
from optimizer.training.calendar import first_period, last_period, periods_held, undominated
from optimizer.training.fleet_price import horizon_usd
from optimizer.training.jobs import training_workload
from optimizer.training.options import Options
from optimizer.training.prices import IntArray, PoolPrices
from optimizer.training.replicas import expert_group_replicas, width
from optimizer.training.splits import splits

#: Limits of one job's fleet, as ``optimizer.limits`` names them.
FLEET_LIMITS: Final = ("power_kw", "racks", "supply", "budget_capex_usd", "budget_usd")
#: Counts of servers at which the pools of a site are compared before they are combined with those of others.
_SHARES: Final = 64
#: So many pools of a site are combined with those of others without a comparison.
_ALL_POOLS: Final = 3
#: Choices of a job alone on its fleet that are kept, beside the cheapest of each kind.
_KEPT: Final = 100


@dataclass(frozen=True, slots=True)
class Part:
    """Servers of one pool that a job holds: in service and spare."""

    prices: PoolPrices
    in_service: int
    spare: int

    @property
    def total(self) -> int:
        """Servers held."""
        return self.in_service + self.spare


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A way to do a job: row of its options, servers by pool, days it takes, cost when it has its fleet alone."""

    options: Options
    row: int
    parts: tuple[Part, ...]
    days: float
    usd: float

    @property
    def accelerators(self) -> int:
        """Accelerators held, spares included."""
        return sum(part.total for part in self.parts) * self.options.server_type.accelerators

    @property
    def key(self) -> tuple[str, ...]:
        """Names, for an order that does not depend on how choices were found."""
        pools = tuple(part.prices.id for part in self.parts)
        return (self.options.server_type.id, self.options.precision, self.options.method, *pools, str(self.row))


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Choices of one kind as columns: the same options on the same pools, one a row and split."""

    options: Options
    prices: tuple[PoolPrices, ...]
    rows: NDArray[np.int64]
    in_service: IntArray
    usd: FloatArray
    passes: dict[str, NDArray[np.bool_]]

    def choice(self, place: int) -> Choice:
        """One choice of the block."""
        row = int(self.rows[place])
        counts = self.in_service[:, place].tolist()
        parts = tuple(
            Part(prices, count, int(prices.spares(count))) for prices, count in zip(self.prices, counts, strict=True)
        )
        return Choice(self.options, row, parts, float(self.options.rows.days[row]), float(self.usd[place]))


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """Admissible choices of one job by rising cost, and what the others break."""

    found: tuple[Choice, ...]
    considered: int
    admissible: int
    broken: dict[str, int]
    alone: dict[str, int]


def choices_of(
    instance: Instance, options: list[Options], prices: dict[tuple[str, str], PoolPrices], *, alone_here: bool
) -> Choices:
    """The choices of a job that keep every limit when the job is alone, of which some plan of least cost makes one.

    A job alone on its fleet needs the cheapest choice of each kind: its plan is the cheapest choice, and the cheapest
    plan without a type, a format or a pool is the cheapest choice of the kinds that remain. Of jobs that share fleets
    every choice is kept to which no other is at least equal on the calendar (``calendar``).
    """
    blocks = [block for one in options if one.rows.size for block in _blocks(instance, one, prices)]
    broken: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    considered = admissible = 0
    passing = []
    for block in blocks:
        kept = np.ones(block.rows.size, dtype=np.bool_)
        for column in block.passes.values():
            kept &= column
        considered, admissible = considered + int(kept.size), admissible + int(kept.sum())
        for name, column in block.passes.items():
            broken[name] += int((~column).sum())
            others = np.ones(kept.size, dtype=np.bool_)
            for other, inner in block.passes.items():
                if other != name:
                    others &= inner
            alone[name] += int((others & ~column).sum())
        passing.append(np.flatnonzero(kept))
    kept_places = _cheapest(blocks, passing) if alone_here else _worth_sharing(instance, blocks, passing)
    found = sorted((float(blocks[number].usd[place]), number, place) for number, place in kept_places)
    chosen = tuple(blocks[number].choice(place) for _, number, place in found)
    return Choices(chosen, considered, admissible, dict(broken), dict(alone))


def _cheapest(blocks: list[Block], passing: list[NDArray[np.int64]]) -> Iterator[tuple[int, int]]:
    """(block, place) of the cheapest choices of all, and of each kind."""
    found = []
    for number, (block, places) in enumerate(zip(blocks, passing, strict=True)):
        places = places[np.argsort(block.usd[places], kind="stable")[:_KEPT]]
        found += [
            (usd, float(block.options.rows.days[block.rows[place]]), number, int(place), rank == 0)
            for rank, (usd, place) in enumerate(zip(block.usd[places].tolist(), places, strict=True))
        ]
    found.sort()
    yield from ((number, place) for rank, (*_, number, place, first) in enumerate(found) if rank < _KEPT or first)


def _worth_sharing(
    instance: Instance, blocks: list[Block], passing: list[NDArray[np.int64]]
) -> Iterator[tuple[int, int]]:
    """(block, place) of the choices of which none on the same pools is at least equal."""
    period = training_workload(instance).calendar_period_days
    by_pools: dict[tuple[str, ...], list[int]] = {}
    for number, block in enumerate(blocks):
        by_pools.setdefault(tuple(one.id for one in block.prices), []).append(number)
    for numbers in by_pools.values():
        tables, origin = [], []
        for number in numbers:
            block, places = blocks[number], passing[number]
            job, days = block.options.job, block.options.rows.days[block.rows[places]]
            usd = block.usd[places]
            if instance.economics.charge == "horizon":
                for one, count in zip(block.prices, block.in_service[:, places], strict=True):
                    if one.pool.is_bought:
                        usd = usd - horizon_usd(one, count + one.spares(count))
            held = periods_held(days, period)
            latest = last_period(days, job.deadline_day, period)
            startable = latest >= first_period(job.start_day, period)
            columns = [*block.in_service[:, places], held, -latest, usd]
            tables.append(np.stack([column[startable].astype(np.float64) for column in columns], axis=1))
            origin += [(number, place) for place in places[startable].tolist()]
        yield from (origin[row] for row in undominated(np.concatenate(tables)).tolist())


def _blocks(instance: Instance, options: Options, prices: dict[tuple[str, str], PoolPrices]) -> Iterator[Block]:
    mine = [one for one in prices.values() if one.pool.server_type.id == options.server_type.id]
    if options.speedup > 1.0:
        mine = [one for one in mine if one.pool.cooling is not None and one.pool.cooling.medium == "liquid"]
    rows = np.arange(options.rows.size)
    if options.group is None:
        for one in mine:
            yield _block(instance, options, (one,), rows, options.servers[None, :], np.ones(rows.size, dtype=np.bool_))
        return
    by_site = [
        _few([one for one in mine if one.place.name == site and one.pool.is_bought], options)
        for site in options.group.sites
    ]
    unit = _unit_servers(options)
    # Capital and spares of a type differ by split too.
    limited = instance.economics.budget_capex_usd is not None or bool(instance.choices.supply)
    for pools in _together(by_site):
        places, everywhere = splits(pools, options.servers, unit, options.rows.days, every=limited)
        fits = np.ones(places.size, dtype=np.bool_)
        for one, servers in zip(pools, everywhere, strict=True):
            fits &= (servers >= unit[places]) & (servers <= one.most_servers())
        yield _block(instance, options, pools, places, everywhere, fits)


def _together(by_site: list[list[PoolPrices]]) -> Iterator[tuple[PoolPrices, ...]]:
    """Pools of the sites of a group: every combination of two sites; of more the coolest, and the cheapest for many."""
    if len(by_site) <= 2:
        yield from product(*by_site)
    else:
        yield from product(*(pools if len(pools) < 2 else (pools[0], pools[-1]) for pools in by_site))


def _few(pools: list[PoolPrices], options: Options) -> list[PoolPrices]:
    """Of a site's pools the one that draws least, then those that are cheapest at some count, by rising counts."""
    if len(pools) <= _ALL_POOLS:
        return pools
    middle = options.servers.size // 2
    most, days = float(options.servers.max()), options.rows.days[middle : middle + 1]
    counts = np.unique(np.round(np.geomspace(1.0, max(most, 1.0), _SHARES)).astype(np.int64))
    # What the site cannot hold of a pool leaves the count to the others.
    costs = np.array([np.where(counts <= one.most_servers(), one.usd(counts, days), np.inf) for one in pools])
    held = np.isfinite(costs).any(axis=0)
    kept = list(dict.fromkeys(np.argmin(costs[:, held], axis=0).tolist()))
    coolest = min(range(len(pools)), key=lambda place: (float(pools[place].power_kw(1)), pools[place].id))
    return [pools[place] for place in dict.fromkeys((coolest, *kept))]


def _unit_servers(options: Options) -> NDArray[np.int64]:
    """Servers of the smallest whole share of a job: replicas of an expert group, or as many as fill whole servers."""
    lay, size = options.rows.layouts, options.server_type.accelerators
    share = (width(lay) * expert_group_replicas(lay)).astype(np.int64)
    return np.array([math.lcm(int(each), size) // size for each in share.tolist()], dtype=np.int64)


def _block(
    instance: Instance,
    options: Options,
    prices: tuple[PoolPrices, ...],
    rows: NDArray[np.int64],
    servers: IntArray,
    fits: NDArray[np.bool_],
) -> Block:
    days = options.rows.days[rows]
    size = options.server_type.accelerators
    economics = instance.economics
    usd = days * options.job.delay_usd_per_day
    capital, accelerators = np.zeros(rows.size), np.zeros(rows.size)
    power, racks = fits.copy(), np.ones(rows.size, dtype=np.bool_)
    for one, count in zip(prices, servers, strict=True):
        count = np.maximum(count, 0)
        total = count + one.spares(count)
        usd = usd + one.usd(count, days)
        capital = capital + one.capital_usd(total)
        accelerators = accelerators + total * size
        site = one.place.site
        if one.pool.is_bought and site.power_kw is not None:
            power &= one.power_kw(total) <= site.power_kw
        if one.pool.is_bought and site.racks is not None:
            racks &= np.ceil(total / one.pool.per_rack) <= site.racks
    supply = instance.choices.supply.get(options.server_type.accelerator.id, math.inf)
    passes = {
        "power_kw": power,
        "racks": racks,
        "supply": accelerators <= supply,
        "budget_capex_usd": capital <= (economics.budget_capex_usd or math.inf),
        "budget_usd": usd <= (economics.budget_usd or math.inf),
    }
    return Block(options, prices, rows, servers, usd, passes)
