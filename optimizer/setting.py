"""The setting of an instance: server types, pools of servers, load levels, demand.

What the planner wrote and the catalogue are brought together once; candidates, costs and the program read it.
"""

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache

from optimizer.catalog import Catalog
from optimizer.catalog.rows import Accelerator, Climate, CoolingOption, Fabric, PurchasePrice
from optimizer.climate import site_climate
from optimizer.instance.model import Instance
from optimizer.instance.workload import RequestClass
from optimizer.levels import LoadLevel as LoadLevel
from optimizer.levels import load_levels as load_levels
from optimizer.levels import mean_price
from optimizer.performance.cooling import CoolingPhysics, HeatPath, annual_pue, at_load, design_pue
from optimizer.pool import Owned
from optimizer.pool import Pool as Pool
from optimizer.pool import Price as Price
from optimizer.pool import ServerType as ServerType
from optimizer.pool import Sourcing as Sourcing
from optimizer.power_states import UNCAPPED, most_air_kw, server_type_id
from optimizer.rental import Offered, provider_limits, rental_offers, rented_pools
from optimizer.units import G_PER_TONNE, HOURS_PER_YEAR, W_PER_KW

#: Share of a server's power that its fans take in air; facility figure ``server_fan_share_air``.
FAN_FIGURE = "server_fan_share_air"
#: Plant that takes the heat a liquid option leaves in the air.
RESIDUAL_AIR_OPTION = "air_containment_econ"
#: Prices that differ by less are one price: sums of hours round.
SAME_PRICE = 1e-9
#: A system this high is a rack of its own.
WHOLE_RACK_UNITS = 42


@dataclass(frozen=True, slots=True)
class RackRefusal:
    """Why a cooling option is not offered for a server type."""

    server_type: str
    cooling: str
    rack_kw: float
    server_kw: float
    reason: str


@dataclass(frozen=True, slots=True)
class Setting:
    """Everything the instance and the catalogue say, before any prediction."""

    instance: Instance
    catalog: Catalog
    server_types: tuple[ServerType, ...]
    pools: tuple[Pool, ...]
    refusals: tuple[RackRefusal, ...]
    fabrics: dict[float, tuple[Fabric, ...]]
    levels: tuple[LoadLevel, ...]
    classes: tuple[RequestClass, ...]
    electricity: Price
    residual: CoolingOption
    provider_limits: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def follows_load(self) -> bool:
        """Whether the load below the peak is known by the hour, so that servers may be paid in the hours that use them.

        A mean alone does not say how long the peak lasts: servers for it would look free.
        """
        lasting = [level for level in self.levels if level.hours_per_year > 0.0]
        return len(lasting) > 1 and self.levels[0].hours_per_year > 0.0

    def is_elastic(self, pool: Pool) -> bool:
        """Whether servers of a pool are paid by load level, in the levels that use them only."""
        return pool.is_hourly and self.follows_load

    @property
    def has_hourly_prices(self) -> bool:
        """Whether energy is dearer at some levels than at others."""
        mean = self.electricity.usd
        return any(
            one.usd_per_kwh is not None and abs(one.usd_per_kwh - mean) > SAME_PRICE * mean for one in self.levels
        )

    @property
    def demand_usd_per_kw_month(self) -> float:
        """What the utility charges for the highest metered power; 0 without such a charge."""
        tariff = self.instance.site.tariff
        return 0.0 if tariff is None else tariff.demand_usd_per_kw_month

    def tonnes_per_kwh(self) -> float:
        """Carbon dioxide of one kWh at the meter, tonnes."""
        return carbon_g_per_kwh(self.instance, self.catalog) / G_PER_TONNE

    def mean_fraction(self) -> float:
        """Hour-weighted mean load as a share of the peak."""
        return sum(level.fraction * level.hours_per_year for level in self.levels) / HOURS_PER_YEAR


def chosen_accelerators(instance: Instance, catalog: Catalog) -> tuple[str, ...]:
    """Ids the search may use, sorted: those asked for, or the current ones of the catalogue."""
    if instance.choices.accelerators is not None:
        return tuple(sorted({catalog.resolve_accelerator(name) for name in instance.choices.accelerators}))
    return tuple(sorted(key for key, row in catalog.accelerators.items() if row.availability == "current"))


def instance_catalog(instance: Instance, catalog: Catalog) -> Catalog:
    """The packaged catalogue with the planner's own rows in it."""
    own = instance.catalog
    if isinstance(own, str) or not any((own.accelerators, own.purchase_prices, own.rental_offers, own.cooling)):
        return catalog
    return catalog.with_rows(
        accelerators=own.accelerators,
        purchase_prices=own.purchase_prices,
        rental_offers=own.rental_offers,
        cooling=own.cooling,
    )


def build_setting(instance: Instance, catalog: Catalog) -> Setting:
    """Bring instance and catalogue together (docs/method.md sections 1, 4 and 5)."""
    catalog = instance_catalog(instance, catalog)
    offers = rental_offers(instance, catalog)
    limits = provider_limits(instance, catalog)
    owned = {catalog.resolve_accelerator(one.accelerator) for one in instance.inventory}
    chosen = chosen_accelerators(instance, catalog)
    # What is owned and not chosen is kept or not, and never had anew.
    offers = {key: several for key, several in offers.items() if key in chosen}
    server_types = tuple(_server_types(instance, catalog, offers, owned))
    fabrics = {
        speed: catalog.fabric_for(speed)
        for speed in sorted(
            {
                one.accelerator.scale_out_gb_s
                for one in server_types
                if one.server_usd is not None or one.accelerator.id in owned
            }
        )
    }
    pools: list[Pool] = []
    refusals: list[RackRefusal] = []
    for server_type in server_types:
        _owned_pools(instance, catalog, server_type, fabrics, pools, refusals)
        if server_type.server_usd is not None and "buy" in instance.choices.sourcing:
            _bought_pools(instance, catalog, server_type, fabrics, pools, refusals)
        if server_type.power_cap_fraction == UNCAPPED:
            pools += rented_pools(instance, server_type, offers.get(server_type.accelerator.id, ()), limits)
    return Setting(
        instance=instance,
        catalog=catalog,
        server_types=server_types,
        pools=tuple(pools),
        refusals=tuple(refusals),
        fabrics=fabrics,
        levels=load_levels(instance),
        classes=instance.workload.all_classes(),
        electricity=_electricity(instance, catalog),
        residual=catalog.cooling[RESIDUAL_AIR_OPTION],
        provider_limits=limits,
    )


def _server_types(
    instance: Instance, catalog: Catalog, offers: dict[str, tuple[Offered, ...]], owned: set[str]
) -> list[ServerType]:
    """Server types that can be had; those that are only owned can be had in no other way."""
    result = []
    chosen = chosen_accelerators(instance, catalog)
    for key in sorted({*chosen, *owned}):
        row = catalog.accelerators[key]
        own = instance.economics.prices.get(key)
        rents: dict[int, dict[Sourcing, Price]] = {}
        for offer in offers.get(key, ()):
            if offer.term != "spot" or "spot" in instance.choices.sourcing:
                # Cheapest first.
                rents.setdefault(offer.accelerators, {}).setdefault(offer.term, offer.price)
        for unit in sorted({row.accelerators_per_server, *rents}, reverse=True):
            whole = unit == row.accelerators_per_server
            server_usd = server_price(instance, catalog, key) if whole and key in chosen else None
            if server_usd is None and not rents.get(unit) and not (whole and key in owned):
                continue
            result.append(
                ServerType(
                    id=server_type_id(key, unit),
                    accelerator=row,
                    accelerators=unit,
                    server_usd=server_usd,
                    discounts=tuple((d.from_servers, d.discount_fraction) for d in own.discounts)
                    if own and whole
                    else (),
                    discount_kind=own.discount_kind if own else "all_units",
                    rent=rents.get(unit, {}),
                )
            )
            if whole and (server_usd is not None or key in owned):
                result[-1:] = _power_states(instance, result[-1])
    return result


def _power_states(instance: Instance, server_type: ServerType) -> list[ServerType]:
    """The type in every power state that the planner allows in the hall; rented servers run as they are."""
    caps = sorted(set(instance.choices.power_cap_fractions), reverse=True)
    states = [
        replace(
            server_type,
            id=server_type_id(server_type.accelerator.id, server_type.accelerators, cap),
            rent={},
            power_cap_fraction=cap,
        )
        for cap in caps
        if cap < UNCAPPED
    ]
    if UNCAPPED in caps:
        return [server_type, *states]
    return [replace(server_type, server_usd=None), *states] if server_type.rent else states


def server_price(instance: Instance, catalog: Catalog, key: str) -> Price | None:
    own = instance.economics.prices.get(key)
    if own is not None and own.server_usd is not None:
        return Price(own.server_usd, "stated by the user", "", "user")
    row: PurchasePrice | None = catalog.purchase_prices.get(key)
    if row is None:
        return None
    usd = {"low": row.low_usd, "typical": row.typical_usd, "high": row.high_usd}[instance.economics.price_level]
    scale = catalog.accelerators[key].accelerators_per_server / row.accelerators
    return Price(usd * scale, row.source, row.as_of, row.trust)


def _owned_pools(
    instance: Instance,
    catalog: Catalog,
    server_type: ServerType,
    fabrics: dict[float, tuple[Fabric, ...]],
    pools: list[Pool],
    refusals: list[RackRefusal],
) -> None:
    """Pools of the inventory: whole servers in the cooling that they stand in."""
    row = server_type.accelerator
    allowed = server_type.power_cap_fraction in instance.choices.power_cap_fractions
    if server_type.accelerators != row.accelerators_per_server or not allowed:
        return
    for one in instance.inventory:
        if catalog.resolve_accelerator(one.accelerator) == row.id:
            owned = Owned(
                servers=one.servers,
                remaining_life_years=one.remaining_life_years,
                upkeep_usd_per_year=one.upkeep_usd_per_server_year,
                book_value_usd=one.book_value_usd,
                new_server=server_price(instance, catalog, row.id),
            )
            option = catalog.cooling[catalog.resolve("cooling", one.cooling)]
            pool = bought_pool(instance, catalog, server_type, fabrics, option, owned)
            _placed(instance, pool, option, pools, refusals)


def _bought_pools(
    instance: Instance,
    catalog: Catalog,
    server_type: ServerType,
    fabrics: dict[float, tuple[Fabric, ...]],
    pools: list[Pool],
    refusals: list[RackRefusal],
) -> None:
    row = server_type.accelerator
    for option in chosen_cooling(instance, catalog):
        if not can_cool(row, option, retrofit=instance.choices.liquid_retrofit):
            continue
        pool = bought_pool(instance, catalog, server_type, fabrics, option)
        _placed(instance, pool, option, pools, refusals)


def _placed(
    instance: Instance, pool: Pool, option: CoolingOption, pools: list[Pool], refusals: list[RackRefusal]
) -> None:
    """Add a pool, or the reason why no rack takes it."""
    if pool.per_rack:
        pools.append(pool)
        return
    rack_kw = rack_limit_kw(instance, pool.server_type.accelerator, option)
    reason = f"one server takes {pool.server_kw:.1f} kW, a rack {rack_kw:.1f} kW"
    refusals.append(RackRefusal(pool.server_type.id, option.id, rack_kw, pool.server_kw, reason))


def can_cool(row: Accelerator, option: CoolingOption, *, retrofit: bool) -> bool:
    """Whether servers of an accelerator can be had for a cooling option; with ``retrofit`` converted ones, too."""
    if row.liquid_cooling == "no":
        return option.medium == "air" or retrofit
    return row.liquid_cooling == "option" or option.medium == "liquid"


def takes_both_media(instance: Instance, row: Accelerator) -> bool:
    """Whether servers of an accelerator can be had for air and for liquid."""
    return row.liquid_cooling == "option" or (row.liquid_cooling == "no" and instance.choices.liquid_retrofit)


def bought_pool(
    instance: Instance,
    catalog: Catalog,
    server_type: ServerType,
    fabrics: dict[float, tuple[Fabric, ...]],
    option: CoolingOption,
    owned: Owned | None = None,
) -> Pool:
    """Servers of one type in the hall under one cooling option; ``per_rack`` is 0 where a rack takes none.

    New ones, or those of the inventory.
    """
    row = server_type.accelerator
    network_kw = row.accelerators_per_server * network_w(fabrics[row.scale_out_gb_s]) / W_PER_KW
    fan_factor = server_fan_factor(catalog, row, option)
    most_kw = most_air_kw(row, catalog.power_curves[row.generation], server_type.power_cap_fraction)
    server_kw = most_kw * fan_factor + network_kw
    pue_mean, pue_design = plant_pue(option, site_climate(instance.site, catalog), instance.site.plant_load_fraction)
    sourcing: Sourcing = "buy" if owned is None else "owned"
    return Pool(
        id=f"{server_type.id}/{sourcing}/{option.id}",
        server_type=server_type,
        sourcing=sourcing,
        cooling=option,
        per_rack=servers_per_rack(instance, row, server_kw, rack_limit_kw(instance, row, option)),
        fan_factor=fan_factor,
        network_kw=network_kw,
        server_kw=server_kw,
        pue_mean=pue_mean,
        pue_design=pue_design,
        owned=owned,
    )


def chosen_cooling(instance: Instance, catalog: Catalog) -> tuple[CoolingOption, ...]:
    """Cooling options of the search, by id: those asked for, or every option that is offered by default."""
    if instance.choices.cooling is not None:
        return tuple(catalog.cooling[key] for key in sorted(set(instance.choices.cooling)))
    return tuple(option for _, option in sorted(catalog.cooling.items()) if option.offered_by_default)


def server_fan_factor(catalog: Catalog, row: Accelerator, option: CoolingOption) -> float:
    """Power of a server under ``option`` relative to air; 1 where the catalogue's figure already is the liquid one."""
    if row.liquid_cooling == "required":
        return 1.0
    return 1.0 - catalog.facility[FAN_FIGURE].typical * option.server_fan_saved_typical_fraction


def rack_limit_kw(instance: Instance, row: Accelerator, option: CoolingOption) -> float:
    """Most power of a rack: the practical limit; the upper one for systems built for liquid (qualified racks)."""
    own = option.rack_kw_upper if row.liquid_cooling == "required" else option.rack_kw_practical
    return own if instance.site.rack_kw is None else min(own, instance.site.rack_kw)


def servers_per_rack(instance: Instance, row: Accelerator, server_kw: float, rack_kw: float) -> int:
    """Servers that one rack holds by power and height; 0: not allowed. A system of 42 U or more is its own rack."""
    by_power = math.floor(rack_kw / server_kw + 1e-9)
    by_height = 1 if row.server_rack_units >= WHOLE_RACK_UNITS else instance.site.rack_units // row.server_rack_units
    return min(by_power, by_height)


def cooling_physics(option: CoolingOption) -> CoolingPhysics:
    """The PUE formula's parameters of a catalogue row."""
    main = HeatPath(
        distribution_fraction=option.distribution_fraction,
        rejection_fraction=option.rejection_fraction,
        full_free_c=option.t_full_c,
        no_free_c=option.t_start_c,
        cop_reference=option.cop_ref,
        cop_reference_c=option.cop_ref_c,
        cop_slope_per_k=option.cop_slope_per_k,
    )
    residual = None
    if option.medium == "liquid" and option.residual_air_cop_ref is not None:
        residual = HeatPath(
            distribution_fraction=option.residual_air_distribution_fraction or 0.0,
            rejection_fraction=option.residual_air_rejection_fraction or 0.0,
            full_free_c=option.residual_air_t_full_c,
            no_free_c=option.residual_air_t_start_c,
            cop_reference=option.residual_air_cop_ref,
            cop_reference_c=option.cop_ref_c,
            cop_slope_per_k=option.residual_air_cop_slope_per_k or 0.0,
        )
    captured = option.liquid_capture_typical_fraction if residual is not None else 1.0
    return CoolingPhysics(option.electrical_loss_fraction, main, captured, residual)


@lru_cache(maxsize=256)  # the same few options in the same weather, for every server type and every case of a sweep
def plant_pue(option: CoolingOption, climate: Climate, load: float = 1.0) -> tuple[float, float]:
    """(annual mean, hottest bin) PUE of an option in the site's weather.

    The mean at the share ``load`` of the plant's size; the hottest bin, which power is sized for, at full load.
    """
    hours = climate.dry_bulb_hours if option.heat_rejection_driver == "dry_bulb" else climate.wet_bulb_hours
    full = cooling_physics(option)
    physics = full if load == 1.0 else at_load(full, load, variable_speed=option.fan_speed == "variable")
    return annual_pue(physics, climate.bin_mid_c, hours), design_pue(full, climate.bin_mid_c, hours)


def network_w(fabrics: tuple[Fabric, ...]) -> float:
    """Power of the network per accelerator: its two-tier figure at every size, so power does not depend on size."""
    return next(fabric.power_w_per_accelerator for fabric in fabrics if fabric.tiers == 2)


def electricity_region(instance: Instance, catalog: Catalog) -> str:
    """Region of the electricity price and of the grid's carbon."""
    return instance.site.electricity_region or catalog.climates[instance.site.climate].electricity_region


def carbon_g_per_kwh(instance: Instance, catalog: Catalog) -> float:
    """Carbon dioxide (g) of one kWh from the grid: the planner's own figure, else the region's."""
    if instance.site.carbon_g_per_kwh is not None:
        return instance.site.carbon_g_per_kwh
    region = electricity_region(instance, catalog)
    grams = catalog.electricity[region].carbon_g_per_kwh
    if grams is None:
        raise ValueError(f"no carbon figure is known for {region}")
    return grams


def _electricity(instance: Instance, catalog: Catalog) -> Price:
    """Mean price of energy over the year."""
    if instance.site.tariff is not None:
        return Price(mean_price(instance.site.tariff), "stated by the user", "", "user")
    if instance.site.electricity_usd_per_kwh is not None:
        return Price(instance.site.electricity_usd_per_kwh, "stated by the user", "", "user")
    region = electricity_region(instance, catalog)
    row = catalog.electricity[region]
    usd = row.price_usd_per_kwh
    if usd is None:
        raise ValueError(f"no retail electricity price is known for {region}")
    return Price(usd, row.source, row.as_of, row.trust)
