"""Choices made before the scenario is known, by listing every one of a small instance and pricing it in each scenario.

The prices are those of the enumeration (``tests.oracle.enumerate``): no solver and no code of the program.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from optimizer.instance.model import Instance
from tests.oracle.enumerate import SLACK, Enumeration, TooLarge
from tests.oracle.listing import list_instance

Counts = tuple[int, ...]
#: Servers by pool, and schemes that are prepared.
Beforehand = tuple[Counts, frozenset[str]]


@dataclass(frozen=True)
class Table:
    """Cost of every choice in every scenario (USD per year); None where it cannot keep every limit."""

    pools: tuple[str, ...]
    costs: dict[Beforehand, tuple[float | None, ...]]

    def served(self) -> dict[Beforehand, tuple[float, ...]]:
        """Choices that keep every limit of every scenario."""
        return {
            key: tuple(cost for cost in row if cost is not None)
            for key, row in self.costs.items()
            if all(cost is not None for cost in row)
        }

    def best(self) -> tuple[float | None, ...]:
        """Least cost of each scenario by itself."""
        columns = zip(*self.costs.values(), strict=True)
        return tuple(min((one for one in column if one is not None), default=None) for column in columns)


def table(instances: Sequence[Instance], most: int) -> Table:
    """Every choice that could be worth making; TooLarge where there are more than ``most``."""
    every = [Enumeration(list_instance(one), 10**9) for one in instances]
    names = tuple(pool.id for pool in every[0].pools)
    if any(tuple(pool.id for pool in one.pools) != names for one in every):
        raise TooLarge("scenarios know different pools")
    tops = [max(_top(one, q) for one in every) for q in range(len(names))]
    now = [q for q, pool in enumerate(every[0].pools) if pool.sourcing != "on_demand"]
    then = [q for q in range(len(names)) if q not in now]
    priced = sorted(key for key, usd in every[0].listing.scheme_usd.items() if usd > 0.0)
    if math.prod(tops[q] + 1 for q in range(len(names))) * 2 ** len(priced) > most:
        raise TooLarge("too many choices")
    costs: dict[Beforehand, tuple[float | None, ...]] = {}
    schemes = [frozenset(some) for size in range(len(priced) + 1) for some in combinations(priced, size)]
    for bought in product(*(range(tops[q] + 1) for q in now)):
        for prepared in schemes:
            row = []
            for one in every:
                found = math.inf
                for rented in product(*(range(tops[q] + 1) for q in then)):
                    counts = [0] * len(names)
                    for q, count in zip((*now, *then), (*bought, *rented), strict=True):
                        counts[q] = count
                    found = min(found, _cost(one, tuple(counts), prepared))
                row.append(found if math.isfinite(found) else None)
            costs[bought, prepared] = tuple(row)
    return Table(tuple(names[q] for q in now), costs)


def _top(one: Enumeration, q: int) -> int:
    """More servers of a pool than this are never worth it: all the demand, its spares, the next discount."""
    servers = 0.0
    for b, demand in enumerate(one.listing.demand):
        if one.server_capacity[q][b] > 0.0:
            servers += demand / one.server_capacity[q][b]
    count = math.ceil(servers) + len(one.listing.demand) if servers else 0
    if one.pools[q].is_bought and count:
        targets = one.instance.targets
        count += max(math.ceil(targets.spare_fraction * count), targets.spare_servers)
        count = max([count, *(start for start, _ in one.pools[q].server_type.discounts)])
    return count


def _cost(one: Enumeration, servers: Counts, prepared: frozenset[str]) -> float:
    """Least cost of a scenario with these servers; infinite where a limit breaks."""
    structures = one._price(servers)
    if not structures:
        return math.inf
    # The cheaper hall first; scenarios here have one hall.
    structure = min(structures, key=lambda found: found.usd_per_year)
    usd = one.listing.scheme_usd
    capital = sum(usd[key] for key in prepared)
    limits = one.instance.economics
    if limits.budget_capex_usd is not None and structure.capital_usd + capital > limits.budget_capex_usd * (1 + SLACK):
        return math.inf
    allowed = frozenset(key for key, price in usd.items() if price == 0.0) | prepared
    best = math.inf
    for service in _services(one, servers):
        if not one.may_carry(service):
            continue
        filled = one.fillings(service, allowed, math.inf, structure.room)
        if filled is not None:
            best = min(best, structure.usd_per_year + capital * one.money.site.horizon_share + filled[0])
    if limits.budget_usd_per_year is not None and best > limits.budget_usd_per_year * (1 + SLACK):
        return math.inf
    return best


def _services(one: Enumeration, servers: Counts) -> Iterator[Counts]:
    """Every way to have as many servers in service as the spares of each type allow."""
    targets = one.instance.targets
    options: list[list[dict[int, int]]] = []
    for members in one.by_type.values():
        total = sum(servers[q] for q in members)
        if not total:
            continue
        fitting = [
            used
            for used in range(total + 1)
            if total - used >= max(math.ceil(targets.spare_fraction * used - SLACK), targets.spare_servers)
        ]
        if not fitting:
            return
        used = max(fitting)
        splits = product(*(range(servers[q] + 1) for q in members))
        options.append([dict(zip(members, split, strict=True)) for split in splits if sum(split) == used])
    for chosen in product(*options):
        service = [count if not one.pools[q].in_hall else 0 for q, count in enumerate(servers)]
        for part in chosen:
            for q, count in part.items():
                service[q] = count
        yield tuple(service)
