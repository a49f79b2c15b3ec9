"""What servers of one pool cost a job: the serving side's cost terms at the quantities of a training cluster.

Each term is USD a year for one unit of a quantity (``optimizer.costs``). A bought server is charged for the days on
which jobs hold it (``economics.charge`` job: yearly cost x days / 365.25) or for the whole horizon (present value of
its yearly cost over it). Energy and rent are paid for the job's days; a committed rent for whole terms.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimizer.costs import SETTING_COMPONENTS
from optimizer.costs.energy import pool_idle_kw
from optimizer.costs.servers import tier_prices
from optimizer.costs.staff import staff_need
from optimizer.costs.term import QuantityKey, Term, capital_recovery_factor
from optimizer.errors import InternalError
from optimizer.instance.model import Instance
from optimizer.performance.factors import FloatArray
from optimizer.setting import Pool, Setting
from optimizer.spares import spares_needed
from optimizer.training.jobs import DAYS_PER_YEAR, HOURS_PER_DAY
from optimizer.training.orders import discount_starts, ordered_network, ordered_plant
from optimizer.training.places import Place
from optimizer.units import HOURS_PER_YEAR

#: Components that are paid for the time in which jobs run, however long the servers are held.
RUNNING: Final = frozenset({"energy", "carbon", "water"})
#: Years that a commitment runs for.
TERM_YEARS: Final[Mapping[str, float]] = {"on_demand": 0.0, "reserved_1yr": 1.0, "reserved_3yr": 3.0}
#: Slack of counts that are rounded, for the last bit of a division.
_ROUNDING: Final = 1e-9

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class PoolPrices:
    """Prices and powers of the servers of one pool at one place."""

    instance: Instance
    place: Place
    pool: Pool
    terms: tuple[Term, ...]
    heat: dict[str, float]
    busy_kw: float
    idle_kw: float

    @property
    def id(self) -> str:
        """Name of the pool in the plan: with its site where there are several, with its hall where that is chosen."""
        if not self.pool.is_bought:
            return self.pool.id
        name = f"{self.place.name}/{self.pool.id}" if self.instance.sites else self.pool.id
        return f"{name}/{self.place.hall}" if self.place.is_choice else name

    @property
    def horizon_share(self) -> float:
        """Yearly cost over present value: the annuity of the horizon."""
        economics = self.instance.economics
        return capital_recovery_factor(economics.discount_rate, economics.horizon_years)

    def spares(self, in_service: ArrayLike) -> IntArray:
        """Spare servers of a bought pool."""
        count = np.asarray(in_service, dtype=np.int64)
        if not self.pool.is_bought:
            return np.zeros_like(count)
        targets = self.instance.targets
        share = np.ceil(targets.spare_fraction * count - _ROUNDING).astype(np.int64)
        found = np.where(count > 0, np.maximum(share, targets.spare_servers), 0)
        if targets.availability_fraction is None:
            return found
        alone, place = np.unique(count, return_inverse=True)
        size = self.pool.server_type.accelerators
        asked = [spares_needed(targets, size, int(one)) if one > 0 else 0 for one in alone]
        return np.asarray(asked, dtype=np.int64)[place].reshape(count.shape)

    def quantity(self, key: QuantityKey, in_service: IntArray, total: IntArray) -> FloatArray:
        """Amount of a term's quantity for so many servers in service, and in all."""
        family, *index = key
        count = total.astype(np.float64)
        size = float(self.pool.server_type.accelerators)
        above_kw = in_service.astype(np.float64) * (self.busy_kw - self.idle_kw)
        if family == "Servers":
            return count
        if family in ("BusyKwh", "LevelKwh", "PeakKw"):
            level = self.place.setting.levels[int(index[1])].hours_per_year if family == "LevelKwh" else HOURS_PER_YEAR
            return above_kw if family == "PeakKw" else above_kw * level
        if family == "SiteUsed":
            return (count > 0).astype(np.float64)
        if family == "Racks":
            return np.ceil(count / self.pool.per_rack - _ROUNDING)
        if family == "SpaceKw":
            return count * self.pool.server_kw
        if family == "Posts":
            need = staff_need(self.place.setting)
            kw = self.pool.server_kw if self.place.hall == "own_build" else 0.0
            return need.posts_of(size * count, kw * count)
        if family == "ManagementServers":
            each = self.instance.economics.services.servers_per_management_server
            return np.ceil(count / (each or 1) - _ROUNDING)
        if family == "PlantKw":
            return count * self.heat[index[0]]
        if family == "PlantBuilt":
            return (count > 0).astype(np.float64)
        if family in ("TierServers", "TierUsed"):
            first = [tier[0] for tier in tier_prices(self.pool.server_type)]
            reached = np.maximum(np.searchsorted(np.array(first), total, side="right") - 1, 0) == int(index[1])
            return np.where(reached & (total > 0), count if family == "TierServers" else 1.0, 0.0)
        if family in ("PlantTierKw", "PlantTierUsed"):
            return ordered_plant(self.place.setting, self.heat[index[0]], key, count)
        if family == "FabricUsed" or (family == "FabricAccelerators" and self.instance.economics.network_discounts):
            return ordered_network(self.place.setting, self.pool, key, count)
        if family == "FabricAccelerators":
            fabrics = self.place.setting.fabrics[self.pool.server_type.accelerator.scale_out_gb_s]
            largest = np.array([fabric.max_accelerators for fabric in fabrics[:-1]], dtype=np.float64)
            tier = np.searchsorted(largest, count * size, side="left")
            own = [one.id for one in fabrics]
            if index[0] not in own:
                return np.zeros(total.shape)
            return np.where(tier == own.index(index[0]), count * size, 0.0)
        raise InternalError(f"the bill of training does not know the quantity {family}")

    def capital_usd(self, total: IntArray) -> FloatArray:
        """Paid at the start for so many servers, spares included."""
        parts = [usd * self.quantity(key, total, total) for key, usd in self._capital_by_quantity.items()]
        return np.sum(parts, axis=0) if parts else np.zeros(total.shape)

    def years(self, days: ArrayLike, component: str) -> FloatArray:
        """Years of yearly cost that a job of so many days is charged for a component of the bill."""
        given = np.asarray(days, dtype=np.float64)
        if component == "rent":
            term = TERM_YEARS[self.pool.sourcing]
            return given / DAYS_PER_YEAR if term == 0.0 else np.ceil(given / DAYS_PER_YEAR / term - _ROUNDING) * term
        if component in RUNNING or self.instance.economics.charge == "job":
            return given / DAYS_PER_YEAR
        return np.full(given.shape, 1.0 / self.horizon_share)

    def it_kwh(self, in_service: int, total: int, days: float) -> float:
        """Energy of the servers themselves over a job: those in service train, spares idle."""
        if not self.pool.is_bought:
            return 0.0
        kw = in_service * self.busy_kw + (total - in_service) * self.idle_kw
        return kw * days * HOURS_PER_DAY

    def energy_kwh(self, in_service: int, total: int, days: float) -> float:
        """The same at the meter."""
        return self.it_kwh(in_service, total, days) * self.pool.pue_mean

    def usd(self, in_service: IntArray, days: FloatArray) -> FloatArray:
        """Cost of a job of so many servers in service and so many days here, spares included."""
        cost = np.zeros(np.broadcast_shapes(in_service.shape, np.shape(days)))
        for component, usd_per_year in self.yearly_usd(in_service).items():
            cost = cost + usd_per_year * self.years(days, component)
        return np.asarray(cost)

    def yearly_usd(self, in_service: IntArray) -> dict[str, FloatArray]:
        """Cost of a year of so many servers in service, spares included, apart by what is charged for (``years``)."""
        total = in_service + self.spares(in_service)
        found: dict[str, FloatArray] = {}
        for (key, component), usd_per_year in self._by_quantity.items():
            usd = usd_per_year * self.quantity(key, in_service, total)
            found[component] = found[component] + usd if component in found else usd
        return found

    @cached_property
    def _by_quantity(self) -> dict[tuple[QuantityKey, str], float]:
        """Yearly cost of one unit of each quantity, apart by what it is charged for."""
        found: dict[tuple[QuantityKey, str], float] = {}
        for term in self.terms:
            charged = term.component if term.component in ("rent", *RUNNING) else "held"
            charged = "energy" if charged in RUNNING else charged
            found[term.quantity, charged] = found.get((term.quantity, charged), 0.0) + term.usd_per_year
        return found

    @cached_property
    def _capital_by_quantity(self) -> dict[QuantityKey, float]:
        """Capital of one unit of each quantity."""
        found: dict[QuantityKey, float] = {}
        for term in self.terms:
            if term.capital_usd:
                found[term.quantity] = found.get(term.quantity, 0.0) + term.capital_usd
        return found

    def power_kw(self, total: ArrayLike) -> FloatArray:
        """Power at the meter in the hottest hour."""
        each = self.pool.server_kw * self.pool.pue_design if self.pool.is_bought else 0.0
        return np.asarray(total, dtype=np.float64) * each

    def tier_ends(self) -> tuple[int, ...]:
        """Servers in service, spares beside them, at which the line of what the fleet costs may bend upwards.

        The last count of each tier of the fabric, and the counts about the start of each step of a discount.
        """
        if not self.pool.is_bought:
            return ()
        size = self.pool.server_type.accelerators
        fabrics = self.place.setting.fabrics[self.pool.server_type.accelerator.scale_out_gb_s]
        ends = {fabric.max_accelerators // size for fabric in fabrics[:-1]}
        for start in discount_starts(self.place.setting, self.pool, self.heat):
            ends |= {math.floor(start), math.ceil(start)}
        return tuple(self._in_service(end) for end in sorted(ends) if end > 0)

    def _in_service(self, total: int) -> int:
        """Most servers in service that stand with their spares within a total."""
        most = math.floor(total / (1.0 + self.instance.targets.spare_fraction) + 1.0)
        while most > 0 and most + int(self.spares(most)) > total:
            most -= 1
        return most

    def most_servers(self) -> float:
        """Servers in service that the place's power and racks leave room for, spares stand beside them."""
        return self._most_servers

    @cached_property
    def _most_servers(self) -> float:
        site = self.place.site
        if not self.pool.is_bought:
            return math.inf
        caps = []
        if site.power_kw is not None:
            caps.append(math.floor(site.power_kw / (self.pool.server_kw * self.pool.pue_design) + _ROUNDING))
        if site.racks is not None:
            caps.append(site.racks * self.pool.per_rack)
        if not caps:
            return math.inf
        return float(self._in_service(min(caps)))


def pool_prices(instance: Instance, places: tuple[Place, ...]) -> dict[tuple[str, str], PoolPrices]:
    """Prices of every pool of whole servers, by (place, pool)."""
    found = {}
    for place in places:
        terms = [term for _, of_setting in SETTING_COMPONENTS for term in of_setting(place.setting)]
        for pool in place.pools:
            row = pool.server_type.accelerator
            # A job over several instances needs their network: whole hosts are let with it, parts are not.
            if pool.server_type.accelerators != row.accelerators_per_server:
                continue
            heat = heat_of(place.setting, pool)
            mine = [term for term in terms if _concerns(term.quantity, pool, heat)]
            curve = place.setting.catalog.power_curves[row.generation]
            busy = pool.loaded_kw(curve.training_fraction * row.server_power_kw)
            idle = pool_idle_kw(place.setting, pool) if pool.is_bought else 0.0
            prices = PoolPrices(instance, place, pool, tuple(mine), heat, busy, idle)
            found[place.name, prices.id] = prices
    return found


def heat_of(setting: Setting, pool: Pool) -> dict[str, float]:
    """Plant -> heat (kW) that one server sends to it: what a liquid option leaves goes to the residual air plant."""
    option = pool.cooling
    if option is None:
        return {}
    share = option.liquid_capture_typical_fraction if option.medium == "liquid" else 1.0
    found = {option.id: pool.server_kw * share}
    if share < 1.0:
        residual = setting.residual.id
        found[residual] = found.get(residual, 0.0) + pool.server_kw * (1.0 - share)
    return found


def _concerns(key: QuantityKey, pool: Pool, heat: Mapping[str, float]) -> bool:
    """Whether a term's quantity belongs to servers of a pool."""
    family, *index = key
    if family in ("SpaceKw", "SiteUsed", "Posts", "ManagementServers"):
        return pool.is_bought
    if family in ("Servers", "Racks", "BusyKwh", "LevelKwh", "PeakKw"):
        return index[0] == pool.id
    if family in ("TierServers", "TierUsed"):
        return pool.is_bought and index[0] == pool.server_type.id
    if family in ("PlantKw", "PlantBuilt", "PlantTierKw", "PlantTierUsed"):
        return index[0] in heat
    if family in ("FabricAccelerators", "FabricUsed"):
        # The fabrics of other link speeds are sorted out by ``quantity``, which knows the place.
        return pool.is_bought
    raise InternalError(f"the bill of training does not know the quantity {family}")
