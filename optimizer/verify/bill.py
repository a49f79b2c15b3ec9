"""The checker's own bill: scalar, line by line, from counts and the catalogue (docs/method.md section 8)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from optimizer.catalog.rows import CoolingOption, Trust
from optimizer.instance.economics import AcceleratorPrices
from optimizer.instance.inventory import OwnedServers
from optimizer.plan import Plan
from optimizer.units import HOURS_PER_YEAR
from optimizer.verify.accuracy import preparation_usd
from optimizer.verify.climate import captured_fraction
from optimizer.verify.facts import (
    ORDINARY_AIR,
    Facts,
    GroupFacts,
    Quote,
    owned_servers,
    paid_by_level,
    rent_quote,
    server_quote,
)
from optimizer.verify.fleet import Fleet, linked
from optimizer.verify.lines import Line as Line
from optimizer.verify.lines import recovery_factor as recovery_factor
from optimizer.verify.orders import network_order, plant_order, priced
from optimizer.verify.running import carbon_lines, energy_lines, water_lines
from optimizer.verify.site import after_tax, insurance_lines, service_lines, space_lines, staff_lines

#: Prices that stand in no catalogue row: defaults of the instance, marked as assumed.
_ASSUMED: Final[frozenset[tuple[str, str, Trust]]] = frozenset({("", "", "assumed"), ("", "", "user")})


def own_lines(facts: Facts, plan: Plan, fleet: Fleet) -> list[Line]:
    """Every line with a cost."""
    servers, network = list(_server_lines(facts, fleet)), list(_network_lines(facts, fleet))
    cooling, space = list(_cooling_lines(facts, fleet)), list(space_lines(facts, plan, fleet))
    lines = [
        *(part for line in servers for part in _split(fleet, line)),
        *network,
        *cooling,
        *space,
        *staff_lines(facts, plan, fleet),
        *insurance_lines(facts, servers, network, cooling, space),
        *service_lines(facts, fleet),
        *energy_lines(facts, fleet),
        *carbon_lines(facts, fleet),
        *water_lines(facts, fleet),
        *(_maintenance(facts, line) for line in (*servers, *network)),
        *_rent_lines(facts, fleet),
        *_recovery_lines(facts, plan),
        *(part for line in _replacements(facts, fleet) for part in _split(fleet, line)),
        *_standing_lines(facts, fleet),
    ]
    return [line for one in lines if (line := after_tax(facts, one)).usd_per_year != 0.0]


def tier_price(list_usd: float, count: int, own: AcceleratorPrices | None) -> tuple[float, float]:
    """(price of each of ``count`` servers, what all of them cost beyond that) with the planner's quantity discounts."""
    if own is None:
        return list_usd, 0.0
    steps = [(float(step.from_servers), step.discount_fraction) for step in own.discounts]
    order = priced(list_usd, count, steps, own.discount_kind, counted=True)
    return order.usd, order.dearer_usd


def _bought(fleet: Fleet) -> list[GroupFacts]:
    return [one for one in fleet.groups.values() if one.is_bought]


def _server_lines(facts: Facts, fleet: Fleet) -> Iterator[Line]:
    """Servers with their spares; ``_split`` parts the two."""
    economics = facts.instance.economics
    annuity = (recovery_factor(economics.discount_rate, economics.server_life_years),)
    counts, names = Counter[str](), dict[str, str]()
    for one in _bought(fleet):
        counts[one.group.server_type] += one.group.servers
        names[one.group.server_type] = one.group.accelerator
    for server_type, accelerator in names.items():
        quote = server_quote(facts, accelerator)
        if quote is None:
            continue
        own = economics.prices.get(accelerator)
        usd, dearer = tier_price(quote.usd, counts[server_type], own)
        code = "V-TIER" if own is not None and own.discounts else "V-PRICE"
        for quantity, unit, price in ((float(counts[server_type]), "servers", usd), (1.0, "tier", dearer)):
            yield Line("servers", server_type, quantity, unit, replace(quote, usd=price), annuity, True, code)
    for one in _bought(fleet):
        assert one.option is not None
        if one.option.medium == "liquid" and one.row.liquid_cooling != "required":
            premium = _premium(facts, one)
            servers = float(one.group.servers)
            yield Line(
                "servers", one.group.server_type, servers, "servers", premium, annuity, True, pool=one.group.pool
            )


def _premium(facts: Facts, one: GroupFacts) -> Quote:
    """What a server for air costs more with cold plates: sold so, or converted."""
    economics, kw = facts.instance.economics, one.row.server_power_kw
    if one.row.liquid_cooling == "option":
        return Quote(economics.liquid_ready_usd_per_kw * kw, _ASSUMED)
    if economics.liquid_retrofit_usd_per_kw is not None:
        return Quote.user(economics.liquid_retrofit_usd_per_kw * kw)
    row = facts.catalog.facility["liquid_retrofit"]
    usd: float = getattr(row, economics.price_level)
    return Quote.of(usd * kw, row)


def _split(fleet: Fleet, line: Line) -> Iterator[Line]:
    """A line of servers in service and one of spares, at the average price paid."""
    alike = _bought(fleet) if not line.pool else list(fleet.groups.values())
    mine = [
        one.group
        for one in alike
        if line.pool == one.group.pool or (not line.pool and one.group.server_type == line.subject)
    ]
    share = sum(group.spare for group in mine) / sum(group.servers for group in mine)
    yield replace(line, quantity=line.quantity * (1.0 - share))
    yield replace(line, component="spares", quantity=line.quantity * share)


def _network_lines(facts: Facts, fleet: Fleet) -> Iterator[Line]:
    """What is ordered, and what the ones below a step of a discount cost beyond its price."""
    economics = facts.instance.economics
    annuity = (recovery_factor(economics.discount_rate, economics.network_life_years),)
    for speed, count in linked(_bought(fleet)).items():
        row, order = network_order(facts, speed, count)
        for quantity, unit, usd in ((order.amount, "accelerators", order.usd), (1.0, "tier", order.dearer_usd)):
            yield Line("network", row.name, quantity, unit, Quote.of(usd, row), annuity, True, "V-TIER")


def _plant_prices(facts: Facts, option: CoolingOption) -> tuple[Quote, Quote, float]:
    """Fixed price, price of one kW, maintenance share: the planner's own first."""
    own = facts.instance.economics.cooling_prices.get(option.id)
    fixed, marginal = Quote.of(option.capex_fixed_usd, option), Quote.of(option.capex_marginal_usd_per_kw, option)
    share = option.maintenance_typical_fraction
    if own is not None:
        fixed = Quote.user(fixed.usd if own.fixed_usd is None else own.fixed_usd)
        marginal = Quote.user(marginal.usd if own.marginal_usd_per_kw is None else own.marginal_usd_per_kw)
        share = share if own.maintenance_fraction is None else own.maintenance_fraction
    return fixed, marginal, share


def _cooling_lines(facts: Facts, fleet: Fleet) -> Iterator[Line]:
    economics = facts.instance.economics
    annuity = recovery_factor(economics.discount_rate, economics.cooling_life_years)
    for name, heat in fleet.heat_kw.items():
        fixed, marginal, share = _plant_prices(facts, facts.catalog.cooling[name])
        order = plant_order(facts, facts.catalog.cooling[name], marginal.usd, heat)
        each, dearer = replace(marginal, usd=order.usd), replace(marginal, usd=order.dearer_usd)
        parts = ((1.0, "plant", fixed), (order.amount, "kW of heat", each), (1.0, "tier", dearer))
        for quantity, unit, price in parts:
            yield Line("cooling", name, quantity, unit, price, (annuity,), True)
            yield Line("cooling", name, quantity, unit, price, (share,))
    for one in _bought(fleet):
        assert one.option is not None
        own, (_, _, share) = economics.cooling_prices.get(one.option.id), _plant_prices(facts, one.option)
        if own is not None and own.per_rack_usd is not None:
            racks, price = float(-(-one.group.servers // one.per_rack)), Quote.user(own.per_rack_usd)
            yield Line("cooling", one.option.id, racks, "racks", price, (annuity,), True)
            yield Line("cooling", one.option.id, racks, "racks", price, (share,))


def _maintenance(facts: Facts, line: Line) -> Line:
    """A share of what servers, spares and network cost, every year; the share is nobody's price."""
    economics = facts.instance.economics
    network = line.component == "network"
    share = economics.network_maintenance_fraction if network else economics.server_maintenance_fraction
    price = replace(line.price, sources=_as_assumed(line.price))
    return replace(line, component="maintenance", price=price, factors=(share,), is_capital=False)


def _rent_lines(facts: Facts, fleet: Fleet) -> Iterator[Line]:
    for one in fleet.groups.values():
        quote = None if one.in_hall else rent_quote(facts, one.group)
        if quote is None:
            continue
        size, pool = float(one.group.accelerators_per_server), one.group.pool
        if paid_by_level(facts, one.group.sourcing):
            used = zip(facts.busy_levels, one.group.servers_by_level, strict=True)
            hours = sum(level.hours * count for level, count in used)
            yield Line("rent", pool, hours, "server-hours/year", quote, (size,))
        else:
            yield Line("rent", pool, float(one.group.servers), "servers", quote, (size, HOURS_PER_YEAR))


def _owned(facts: Facts, fleet: Fleet) -> Iterator[tuple[GroupFacts, OwnedServers]]:
    for one in fleet.groups.values():
        row = owned_servers(facts, one.group.accelerator, one.group.cooling)
        if one.group.sourcing == "owned" and row is not None:
            yield one, row


def _replacements(facts: Facts, fleet: Fleet) -> Iterator[Line]:
    """New servers once the life of owned ones has ended: the annuity's years after that, as a share of the horizon."""
    economics = facts.instance.economics
    rate, horizon = economics.discount_rate, economics.horizon_years
    for one, row in _owned(facts, fleet):
        left = min(row.remaining_life_years, horizon)
        share = 1.0 - _worth_of_years(rate, left) / _worth_of_years(rate, horizon)
        quote = server_quote(facts, one.group.accelerator)
        if left < horizon and quote is not None:
            factors = (recovery_factor(rate, economics.server_life_years), share)
            servers, pool = float(one.group.servers), one.group.pool
            yield Line("servers", pool, servers, "servers", quote, factors, pool=pool)


def _worth_of_years(rate: float, years: float) -> float:
    """Worth today of one dollar at the end of each of ``years`` years."""
    return years if rate == 0.0 else (1.0 - (1.0 + rate) ** -years) / rate


def _standing_lines(facts: Facts, fleet: Fleet) -> Iterator[Line]:
    """Upkeep of owned servers, and of the network and the plants that stand for them."""
    economics = facts.instance.economics
    for one, row in _owned(facts, fleet):
        servers, pool = float(one.group.servers), one.group.pool
        quote = server_quote(facts, one.group.accelerator)
        if row.upkeep_usd_per_server_year is not None:
            yield Line("maintenance", pool, servers, "servers", Quote.user(row.upkeep_usd_per_server_year), ())
        elif quote is not None:
            price = Quote(quote.usd, _as_assumed(quote))
            yield Line("maintenance", pool, servers, "servers", price, (economics.server_maintenance_fraction,))
        fabric = next(two for two in facts.catalog.fabric_for(one.row.scale_out_gb_s) if two.tiers == 2)
        usd: float = getattr(fabric, f"{economics.price_level}_usd_per_accelerator")
        network = Quote(usd, _as_assumed(Quote.of(usd, fabric)))
        factors = (float(one.group.accelerators_per_server), economics.network_maintenance_fraction)
        yield Line("maintenance", pool, servers, "servers", network, factors)
        assert one.option is not None
        share = captured_fraction(one.option)
        for name, part in ((one.option.id, share), (ORDINARY_AIR, 1.0 - share)):
            _, marginal, upkeep = _plant_prices(facts, facts.catalog.cooling[name])
            if part > 0.0:
                yield Line("cooling", pool, servers, "servers", marginal, (one.server_kw * part, upkeep))


def _as_assumed(quote: Quote) -> frozenset[tuple[str, str, Trust]]:
    return frozenset((source, as_of, "assumed") for source, as_of, _ in quote.sources)


def _recovery_lines(facts: Facts, plan: Plan) -> Iterator[Line]:
    economics = facts.instance.economics
    annuity = (recovery_factor(economics.discount_rate, economics.horizon_years),)
    used = {(one.scheme, one.kv_scheme, one.recovery): one for one in plan.deployments}
    for names, one in used.items():
        price = Quote(preparation_usd(facts, one), _ASSUMED)
        yield Line("recovery", "+".join(names), 1.0, "scheme", price, annuity, True)
