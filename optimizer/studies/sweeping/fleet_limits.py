"""Whether a fleet keeps every limit of the fleet at another case, row by row of ``optimizer.limits``.

A row without a check here refuses: then the case is solved, so that a limit is safe before it is known here.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Final

from optimizer.fleet import fleet_quantities
from optimizer.limits import LIMITS
from optimizer.program_data import ProgramData
from optimizer.setting import Pool, rack_limit_kw
from optimizer.spares import spares_needed
from optimizer.studies.sweeping.solving import Counts, carries, whole_fleet
from optimizer.units import HOURS_PER_YEAR

#: Share of a cap that sums of floats may be over it by rounding.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class Standing:
    """A fleet at a case: the case's data of what it uses, its counts, its yearly cost there."""

    data: ProgramData
    counts: Counts
    usd_per_year: float

    @cached_property
    def hall(self) -> dict[str, int]:
        """Servers of pools in the hall."""
        return {q: count for q, count in self.counts.servers.items() if self.data.pools[q].in_hall}

    @property
    def racks(self) -> int:
        """Racks in the hall."""
        return sum(-(-count // self.data.pools[q].per_rack) for q, count in self.hall.items())

    @cached_property
    def quantities(self) -> dict[tuple[str, ...], float]:
        """Quantities of the cost terms, all replicas running."""
        return fleet_quantities(self.data, whole_fleet(self.data, self.counts))

    def accelerators(self, of: Callable[[Pool], bool]) -> int:
        """Accelerators, spares included, in pools that ``of`` names."""
        pools = self.data.pools
        return sum(n * pools[q].server_type.accelerators for q, n in self.counts.servers.items() if of(pools[q]))


def _throughput(one: Standing) -> bool:
    return carries(one.data, one.counts)


def _power(one: Standing) -> bool:
    most, pools = one.data.setting.instance.site.power_kw, one.data.pools
    used = math.fsum(pools[q].server_kw * pools[q].pue_design * count for q, count in one.hall.items())
    return most is None or used <= most


def _environment(name: str) -> Callable[[Standing], bool]:
    def keeps(one: Standing) -> bool:
        for cap, most, per_kwh in one.data.environment_caps:
            if cap != name:
                continue
            used = math.fsum(
                per_kwh[q] * (one.data.idle_kw[q] * HOURS_PER_YEAR * count + one.quantities["BusyKwh", q])
                for q, count in one.hall.items()
            )
            if used > most * (1.0 + _ROUNDING):
                return False
        return True

    return keeps


def _racks(one: Standing) -> bool:
    most = one.data.setting.instance.site.racks
    return most is None or one.racks <= most


def _floor(one: Standing) -> bool:
    site = one.data.setting.instance.site
    return site.floor_m2 is None or one.racks <= int(site.floor_m2 / site.rack_floor_m2 + _ROUNDING)


def _rack_power(one: Standing) -> bool:
    instance = one.data.setting.instance
    for q, count in one.hall.items():
        pool = one.data.pools[q]
        if pool.cooling is None or pool.per_rack < 1:
            return False
        most = rack_limit_kw(instance, pool.server_type.accelerator, pool.cooling)
        if min(pool.per_rack, count) * pool.server_kw > most * (1.0 + _ROUNDING):
            return False
    return True


def _capital_budget(one: Standing) -> bool:
    most = one.data.setting.instance.economics.budget_capex_usd
    if most is None:
        return True
    return math.fsum(term.capital_usd * one.quantities.get(term.quantity, 0.0) for term in one.data.terms) <= most


def _yearly_budget(one: Standing) -> bool:
    most = one.data.setting.instance.economics.budget_usd_per_year
    return most is None or one.usd_per_year <= most


def _supply(one: Standing) -> bool:
    supply = one.data.setting.instance.choices.supply
    return all(
        one.accelerators(lambda pool, key=key: pool.server_type.accelerator.id == key) <= most  # type: ignore[misc]
        for key, most in supply.items()
    )


def _provider_supply(one: Standing) -> bool:
    rented: dict[tuple[str, str], int] = {}
    for q, count in one.counts.servers.items():
        pool = one.data.pools[q]
        key = (pool.provider.casefold(), pool.server_type.accelerator.id)
        rented[key] = rented.get(key, 0) + count * pool.server_type.accelerators
    return all(rented.get(key, 0) <= most for key, most in one.data.setting.provider_limits.items())


def _inventory(one: Standing) -> bool:
    at_case = {pool.id: pool for pool in one.data.setting.pools}
    for q, count in one.counts.servers.items():
        if one.data.pools[q].owned is None:
            continue
        pool = at_case.get(q)
        if pool is None or pool.owned is None or count > pool.owned.servers:
            return False
    return True


def _types(one: Standing) -> bool:
    most = one.data.setting.instance.choices.max_accelerator_types
    used = {one.data.pools[q].server_type.accelerator.id for q, count in one.counts.servers.items() if count}
    return most is None or len(used) <= most


def _jobs_budget(one: Standing) -> bool:
    # Runs of training have chains of their own; a fleet that serves has no such budget.
    return one.data.setting.instance.economics.budget_usd is None


def _spares(one: Standing) -> bool:
    targets = one.data.setting.instance.targets
    bought: dict[str, int] = {}
    spare: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for q, count in one.hall.items():
        kind = one.data.pools[q].server_type.id
        sizes[kind] = one.data.pools[q].server_type.accelerators
        bought[kind] = bought.get(kind, 0) + count
        spare[kind] = spare.get(kind, 0) + one.counts.spare.get(q, 0)
    return all(
        spare[kind] >= spares_needed(targets, sizes[kind], count - spare[kind]) for kind, count in bought.items()
    )


#: By name of the row.
CHECKS: Final[Mapping[str, Callable[[Standing], bool]]] = MappingProxyType(
    {
        "throughput_requests_per_s": _throughput,
        "power_kw": _power,
        "carbon_tonnes_per_year": _environment("carbon_tonnes_per_year"),
        "water_m3_per_year": _environment("water_m3_per_year"),
        "racks": _racks,
        "floor_m2": _floor,
        "rack_kw": _rack_power,
        "budget_capex_usd": _capital_budget,
        "budget_usd_per_year": _yearly_budget,
        "supply": _supply,
        "provider_supply": _provider_supply,
        "inventory": _inventory,
        "accelerator_types": _types,
        "budget_usd": _jobs_budget,
        "spare_servers": _spares,
    }
)


def within_limits(data: ProgramData, counts: Counts, usd_per_year: float) -> bool:
    """Whether a fleet is known to keep every limit of the fleet at the case of ``data``.

    False where a limit has no check, and where servers are paid by load level: what is had then changes with the case.
    """
    if counts.running or counts.used or data.elastic:
        return False
    one = Standing(data, counts, usd_per_year)
    names = [row.name for row in LIMITS if row.scope == "fleet"]
    return all(name in CHECKS and CHECKS[name](one) for name in names)
