"""Hall, staff, insurance, services, tax and time in plain Python: docs/method.md section 8."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from optimizer.catalog import Catalog
from optimizer.instance.model import Instance
from tests.oracle.power_costs import levelised

RESIDUAL = "air_containment_econ"


def annuity(rate: float, years: float) -> float:
    """Capital recovery factor."""
    return 1.0 / years if rate == 0 else rate / (1.0 - (1.0 + rate) ** -years)


@dataclass(frozen=True)
class Shares:
    """What one dollar costs a year: paid every year, or once for something that lasts."""

    rate: float
    tax: float
    horizon: float

    @property
    def running(self) -> float:
        """A dollar of every year, after tax."""
        return 1.0 - self.tax

    def once(self, years: float, left: float = 0.0, change: float = 0.0) -> float:
        """A dollar now and after each life; ``left`` of it comes back, later ones cost ``change`` a year more."""
        # One life in present dollars: the price, less what writing it off and selling it bring.
        life = 1.0
        whole = int(years)
        for year in range(1, whole + 1):
            life -= self.tax / years * (1.0 + self.rate) ** -year
        if years > whole:
            rest = years - whole
            worth = rest if self.rate == 0 else (1.0 - (1.0 + self.rate) ** -rest) / self.rate
            life -= self.tax / years * worth * (1.0 + self.rate) ** -whole
        life -= left * (1.0 - self.tax) * (1.0 + self.rate) ** -years
        yearly: float = life * annuity(self.rate, years)
        if change == 0.0 or years >= self.horizon:
            return yearly
        paid = start = 0.0
        while start < self.horizon - 1e-9:
            span = min(years, self.horizon - start)
            paid += (1.0 + change) ** start * (1.0 + self.rate) ** -start / annuity(self.rate, span)
            start += years
        later: float = yearly * paid * annuity(self.rate, self.horizon)
        return later


@dataclass(frozen=True)
class Hall:
    """One hall that may be used: what a kW costs a year and at the start, posts by the kW and at least."""

    usd_per_kw: float
    capital_per_kw: float
    posts_per_kw: float
    least_posts: float


@dataclass(frozen=True)
class SiteCosts:
    """Everything of a site, as plain numbers."""

    shares: Shares
    server_share: float
    network_share: float
    horizon_share: float
    plant_upkeep_share: float
    plant_share: float
    rack_usd: float
    rack_share: float
    halls: tuple[Hall, ...]
    posts_per_accelerator: float
    step: float
    post_usd: float
    storage_usd: float
    storage_capital: float
    management_each: int | None
    management_usd: float
    management_capital: float
    link_usd: float
    software_usd: float

    def least_server_usd(self, accelerators: int, kw: float) -> float:
        """What one more server takes of hall, staff and services at the very least: steps shared out."""
        usd = min(hall.usd_per_kw for hall in self.halls) * kw
        usd += self.post_usd * self.posts_per_accelerator * accelerators
        return usd + (self.management_usd / self.management_each if self.management_each else 0.0)

    def of_fleet(
        self, kw: float, accelerators: int, servers: int, bought_accelerators: int
    ) -> Iterable[tuple[float, float]]:
        """(USD a year, capital) of hall, staff and services of servers that stand there, for each hall."""
        for hall in self.halls:
            yearly, capital = kw * hall.usd_per_kw, kw * hall.capital_per_kw
            if self.post_usd:
                needed = self.posts_per_accelerator * accelerators + hall.posts_per_kw * kw
                steps = math.ceil(max(needed, hall.least_posts) / self.step - 1e-9)
                yearly += steps * self.step * self.post_usd
            yearly += self.storage_usd * bought_accelerators + self.link_usd
            capital += self.storage_capital * bought_accelerators
            if self.management_each:
                count = math.ceil(servers / self.management_each)
                yearly += count * self.management_usd
                capital += count * self.management_capital
            yield yearly, capital


def site_costs(instance: Instance, catalog: Catalog) -> SiteCosts:
    """Prices of an instance's site."""
    economics, site = instance.economics, instance.site
    hall, staff, services = economics.hall, economics.staff, economics.services
    shares = Shares(economics.discount_rate, economics.tax_fraction, economics.horizon_years)
    run = shares.running

    def stated(own: float | None, key: str) -> float:
        return catalog.facility[key].typical if own is None else own

    insured = stated(services.insurance_fraction, "insurance") * run

    def book(years: float) -> float:
        return (years + 1.0) / (2.0 * years)

    def bought(years: float, upkeep: float) -> float:
        return upkeep * run + insured * book(years)

    plant = catalog.cooling[RESIDUAL]
    halls = []
    if site.facility != "own_build":
        rent = stated(economics.colocation_usd_per_kw_month, "colo_wholesale_1mw_plus")
        cooling = annuity(economics.discount_rate, economics.cooling_life_years) + plant.maintenance_typical_fraction
        net = max(0.0, 12.0 * rent - plant.capex_typical_usd_per_kw * cooling)
        rise = levelised(economics, hall.colocation_escalation_fraction)
        once = hall.fit_out_usd_per_kw
        usd = net * rise * run + once * (shares.once(economics.horizon_years) + insured)
        halls.append(Hall(usd, once, 0.0, 0.0))
    if site.facility != "colocation":
        region = catalog.electricity[site.electricity_region or catalog.climates[site.climate].electricity_region]
        build = hall.build_usd_per_kw
        if build is None and region.iso3 in catalog.build_costs:
            build = catalog.build_costs[region.iso3].usd_per_kw
        build = stated(build, "build_capex" if region.iso3 == "USA" else "build_capex_global")
        net = max(0.0, build - plant.capex_typical_usd_per_kw)
        upkeep = stated(hall.maintenance_fraction, "facility_maintenance") * run
        usd = net * (shares.once(stated(hall.life_years, "facility_life")) + upkeep + insured)
        by_kw = stated(staff.fte_per_mw, "facility_staff") / 1000.0
        halls.append(Hall(usd, net, by_kw, stated(staff.minimum_fte, "staff_min_24x7")))
    servers = shares.once(
        economics.server_life_years, economics.server_residual_fraction, economics.server_price_change_fraction
    )
    plain = shares.once(economics.server_life_years)
    kept = economics.server_maintenance_fraction * run
    store = services.storage_usd_per_tb
    store = catalog.facility["storage_parallel_fs"].typical / 1000.0 if store is None else store
    store *= services.storage_tb_per_accelerator
    link = services.connectivity_usd_per_gbps_year
    link = catalog.facility["connectivity"].typical / 100.0 if link is None else link
    managed = services.management_server_usd or 0.0
    return SiteCosts(
        shares=shares,
        server_share=servers + bought(economics.server_life_years, economics.server_maintenance_fraction),
        network_share=shares.once(economics.network_life_years)
        + bought(economics.network_life_years, economics.network_maintenance_fraction),
        horizon_share=shares.once(economics.horizon_years),
        plant_upkeep_share=run,
        plant_share=shares.once(economics.cooling_life_years) + insured,
        rack_usd=stated(economics.rack_usd, "rack_hardware"),
        rack_share=plain,
        halls=tuple(halls),
        posts_per_accelerator=stated(staff.fte_per_server, "cluster_admin") / 8.0,
        step=staff.step_fte,
        post_usd=stated(staff.usd_per_fte_year, "staff_cost_loaded")
        * levelised(economics, staff.escalation_fraction)
        * run,
        storage_usd=store * (plain + kept),
        storage_capital=store,
        management_each=services.servers_per_management_server,
        management_usd=managed * (plain + kept),
        management_capital=managed,
        link_usd=link * services.connectivity_gbps * run,
        software_usd=services.software_usd_per_accelerator_year * run,
    )
