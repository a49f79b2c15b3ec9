"""What instance and catalogue say, looked up by the checker itself (docs/method.md sections 1, 5 and 6)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from optimizer.catalog import Catalog, load_catalog
from optimizer.catalog.rows import Accelerator, Climate, CoolingOption, ElectricityRegion, RentalOffer, Row, Trust
from optimizer.instance.inventory import OwnedServers
from optimizer.instance.model import Instance
from optimizer.instance.workload import RequestClass
from optimizer.performance.architecture import ParameterCounts, parameter_counts
from optimizer.plan import ServerGroup
from optimizer.units import W_PER_KW
from optimizer.verify.climate import Pue, pue, weather
from optimizer.verify.load import LoadLevel, load_levels
from optimizer.verify.model import Served, served
from optimizer.verify.power_state import most_kw
from optimizer.verify.tariff import weekly_prices

#: Plant that takes what a liquid option leaves in the air; it is also contained in colocation rent.
ORDINARY_AIR: Final = "air_containment_econ"
#: A system this high stands without a rack.
_OWN_RACK_UNITS: Final = 42
#: Slack of a count that is rounded down or up, for the last bit of a division.
ROUNDING: Final = 1e-9
USER_SOURCE: Final = "stated by the user"
_IN_HALL: Final = frozenset({"buy", "owned"})
#: Ways of renting that can be ended by the hour.
_BY_THE_HOUR: Final = frozenset({"on_demand", "spot"})


@dataclass(frozen=True, slots=True)
class Quote:
    """A price and the row it stands in; ``sources`` are all rows that ask this price."""

    usd: float
    sources: frozenset[tuple[str, str, Trust]]

    @classmethod
    def of(cls, usd: float, row: Row) -> "Quote":
        """A price of one catalogue row."""
        return cls(usd, frozenset({(row.source, row.as_of, row.trust)}))

    @classmethod
    def user(cls, usd: float) -> "Quote":
        """A price the planner states."""
        return cls(usd, frozenset({(USER_SOURCE, "", "user")}))


@dataclass(frozen=True, slots=True)
class Facts:
    """Instance and catalogue, the planner's own rows laid over it."""

    instance: Instance
    catalog: Catalog
    model: Served
    classes: Mapping[str, RequestClass]
    levels: tuple[LoadLevel, ...]
    climate: Climate
    counts: ParameterCounts
    accelerators: frozenset[str]
    schemes: frozenset[str]
    cooling: frozenset[str]
    fan_share: float

    @property
    def busy_levels(self) -> tuple[LoadLevel, ...]:
        """Levels that last; the others only size the fleet, but for a peak that the utility charges for."""
        charged = self.demand_usd_per_kw_month > 0
        return tuple(level for place, level in enumerate(self.levels) if level.hours > 0 or (charged and place == 0))

    @property
    def demand_usd_per_kw_month(self) -> float:
        """Charge for the highest metered power."""
        tariff = self.instance.site.tariff
        return 0.0 if tariff is None else tariff.demand_usd_per_kw_month

    @property
    def region(self) -> ElectricityRegion:
        """Region of electricity, carbon and building."""
        return self.catalog.electricity[self.instance.site.electricity_region or self.climate.electricity_region]

    @property
    def tonnes_per_kwh(self) -> float:
        """Carbon dioxide of one kWh at the meter."""
        site, row = self.instance.site, self.region
        grams = row.carbon_g_per_kwh if site.carbon_g_per_kwh is None else site.carbon_g_per_kwh
        return 0.0 if grams is None else grams / 1e6


def gather(instance: Instance) -> Facts:
    """Look everything up. KeyError where the instance names what no catalogue row has."""
    catalog = load_catalog()
    own = instance.catalog
    if isinstance(own, str):
        raise KeyError(own)
    if any((own.accelerators, own.purchase_prices, own.rental_offers, own.cooling)):
        catalog = catalog.with_rows(
            accelerators=own.accelerators,
            purchase_prices=own.purchase_prices,
            rental_offers=own.rental_offers,
            cooling=own.cooling,
        )
    choices, tariff = instance.choices, instance.site.tariff
    climate = catalog.climates[instance.site.climate]
    choice = instance.workload.model
    if instance.workload.kind == "training":
        # No request is served: the shape stands in and is never read (``optimizer.verify.training`` has its own).
        choice = next(iter(catalog.models))
    if choice is None:
        raise KeyError("workload.model")
    model = served(choice, catalog)
    return Facts(
        instance=instance,
        catalog=catalog,
        model=model,
        counts=parameter_counts(model.architecture),
        classes={one.name: one for one in instance.workload.all_classes()},
        levels=load_levels(instance.workload.load, None if tariff is None else weekly_prices(tariff)),
        climate=climate,
        accelerators=frozenset(
            (key for key, row in catalog.accelerators.items() if row.availability == "current")
            if choices.accelerators is None
            else (catalog.resolve_accelerator(name) for name in choices.accelerators)
        ).union(catalog.resolve_accelerator(one.accelerator) for one in instance.inventory),
        schemes=frozenset(catalog.schemes if choices.schemes is None else choices.schemes),
        cooling=frozenset(
            (key for key, row in catalog.cooling.items() if row.offered_by_default)
            if choices.cooling is None
            else choices.cooling
        ),
        fan_share=catalog.facility["server_fan_share_air"].typical,
    )


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """What the checker knows of one group of servers before it looks at counts. Powers are of one server, kW."""

    group: ServerGroup
    row: Accelerator
    option: CoolingOption | None
    fan_factor: float
    network_kw: float
    server_kw: float
    idle_kw: float
    rack_kw: float
    per_rack: int
    pue: Pue

    @property
    def is_bought(self) -> bool:
        """New servers, with their network, racks and plant."""
        return self.group.sourcing == "buy"

    @property
    def in_hall(self) -> bool:
        """Servers in the planner's hall: bought, or owned already."""
        return self.group.sourcing in _IN_HALL

    def loaded_kw(self, air_kw: float) -> float:
        """Power of one server that would draw ``air_kw`` in air without its network."""
        return air_kw * self.fan_factor + self.network_kw


def group_facts(facts: Facts, group: ServerGroup) -> GroupFacts:
    """Power, density and PUE of a group whose accelerator and cooling option are known."""
    row = facts.catalog.accelerators[group.accelerator]
    if group.sourcing not in _IN_HALL or group.cooling is None:
        return GroupFacts(group, row, None, 1.0, 0.0, 0.0, 0.0, math.inf, 0, Pue(1.0, 1.0))
    option = facts.catalog.cooling[group.cooling]
    built_for_liquid = row.liquid_cooling == "required"
    fans = 1.0 if built_for_liquid else 1.0 - facts.fan_share * option.server_fan_saved_typical_fraction
    fabric = next(one for one in facts.catalog.fabric_for(row.scale_out_gb_s) if one.tiers == 2)
    network_kw = group.accelerators_per_server * fabric.power_w_per_accelerator / W_PER_KW
    curve = facts.catalog.power_curves[row.generation]
    server_kw = most_kw(row, curve, group.power_cap_fraction) * fans + network_kw
    rack_scale = row.accelerators_per_server > row.accelerators_per_host
    idle = curve.idle_rack_scale_fraction if rack_scale else curve.idle_fraction
    rack_kw = option.rack_kw_upper if built_for_liquid else option.rack_kw_practical
    if facts.instance.site.rack_kw is not None:
        rack_kw = min(rack_kw, facts.instance.site.rack_kw)
    own_rack = row.server_rack_units >= _OWN_RACK_UNITS
    by_height = 1 if own_rack else facts.instance.site.rack_units // row.server_rack_units
    return GroupFacts(
        group=group,
        row=row,
        option=option,
        fan_factor=fans,
        network_kw=network_kw,
        server_kw=server_kw,
        idle_kw=idle * row.server_power_kw * fans + network_kw,
        rack_kw=rack_kw,
        per_rack=min(math.floor(rack_kw / server_kw + ROUNDING), by_height),
        pue=pue(option, weather(facts.instance.site, facts.climate)),
    )


def server_quote(facts: Facts, accelerator: str) -> Quote | None:
    """Undiscounted price of a whole server or rack; None where nobody sells one."""
    own = facts.instance.economics.prices.get(accelerator)
    if own is not None and own.server_usd is not None:
        return Quote.user(own.server_usd)
    row = facts.catalog.purchase_prices.get(accelerator)
    if row is None:
        return None
    level = facts.instance.economics.price_level
    usd = row.low_usd if level == "low" else row.high_usd if level == "high" else row.typical_usd
    return Quote.of(usd * facts.catalog.accelerators[accelerator].accelerators_per_server / row.accelerators, row)


def owned_servers(facts: Facts, accelerator: str, cooling: str | None) -> OwnedServers | None:
    """The row of the inventory that describes these servers."""
    rows = [
        one
        for one in facts.instance.inventory
        if facts.catalog.resolve_accelerator(one.accelerator) == accelerator
        and facts.catalog.resolve("cooling", one.cooling) == cooling
    ]
    return rows[0] if rows else None


def paid_by_level(facts: Facts, sourcing: str) -> bool:
    """Whether servers are paid in the levels that use them: rented by the hour, and the load is known by the hour."""
    lasting = facts.busy_levels
    return sourcing in _BY_THE_HOUR and len(lasting) > 1 and facts.levels[0].hours > 0


def availability(facts: Facts, sourcing: str) -> float:
    """Share of the paid time in which servers serve."""
    share = facts.instance.choices.spot_availability_fraction
    return share if sourcing == "spot" and share is not None else 1.0


def provider_limit(facts: Facts, provider: str, accelerator: str) -> int | None:
    """Accelerators that a provider rents out at most; None where nothing limits it."""
    for name, counts in facts.instance.choices.provider_supply.items():
        if name.casefold() == provider.casefold():
            for key, most in counts.items():
                if facts.catalog.resolve_accelerator(key) == accelerator:
                    return most
    return None


def rent_quote(facts: Facts, group: ServerGroup) -> Quote | None:
    """Price of one accelerator and hour in a rented group; None where nobody offers it."""
    own = facts.instance.economics.prices.get(group.accelerator)
    row = facts.catalog.accelerators[group.accelerator]
    # A rack-scale system is rented by the tray: instances of one host count as part of the rack.
    tray = row.accelerators_per_host if group.accelerators_per_server == row.accelerators_per_server else None
    sizes = {group.accelerators_per_server, tray}
    stated: float | None = getattr(own, f"{group.sourcing}_usd_per_hour", None)
    offers = [
        offer
        for offer in facts.catalog.rental_offers.values()
        if offer.accelerator == group.accelerator
        and offer.accelerators in sizes
        and offer.price_class in facts.instance.economics.price_classes
        and offer.is_bookable
        and _is_chosen(facts.instance.choices.providers, offer.provider)
        and _is_chosen(facts.instance.choices.regions, offer.region)
    ]
    if stated is not None:
        known = group.accelerators_per_server == row.accelerators_per_server or bool(offers)
        return Quote.user(stated) if known and not group.provider and not group.region else None
    priced = {offer.id: quote for offer in offers if (quote := _term_quote(facts, offer, group.sourcing)) is not None}
    # Where the planner states own offers of a size, only those compete.
    own_sizes = {offer.accelerators for offer in offers if offer.id in priced and offer.trust == "user"}
    quotes = [
        priced[offer.id]
        for offer in offers
        if offer.id in priced
        and (offer.trust == "user" or offer.accelerators not in own_sizes)
        and (offer.provider, offer.region) == (group.provider, group.region)
    ]
    if not quotes:
        return None
    least = min(quote.usd for quote in quotes)
    return Quote(least, frozenset(source for quote in quotes if quote.usd == least for source in quote.sources))


def _is_chosen(names: tuple[str, ...] | None, name: str) -> bool:
    return names is None or name.casefold() in {one.casefold() for one in names}


def _term_quote(facts: Facts, offer: RentalOffer, sourcing: str) -> Quote | None:
    """What an offer asks for a term; where it names no price, the stated share of its price on demand."""
    usd: float | None = getattr(offer, f"{sourcing}_usd_per_accelerator_hour", None)
    if usd is not None:
        return Quote.of(usd, offer)
    share: float | None = getattr(facts.instance.economics.rent_fallbacks, f"{sourcing}_fraction", None)
    base = offer.on_demand_usd_per_accelerator_hour
    if share is None or base is None:
        return None
    return Quote(share * base, frozenset({(offer.source, offer.as_of, "assumed")}))


def electricity_quote(facts: Facts) -> Quote | None:
    """Mean price of one kWh over the year; None where no retail price is known."""
    site = facts.instance.site
    if site.tariff is not None:
        prices = weekly_prices(site.tariff)
        return Quote.user(sum(prices) / len(prices))
    if site.electricity_usd_per_kwh is not None:
        return Quote.user(site.electricity_usd_per_kwh)
    row = facts.catalog.electricity[site.electricity_region or facts.climate.electricity_region]
    return None if row.price_usd_per_kwh is None else Quote.of(row.price_usd_per_kwh, row)
