"""The checker's own lines of hall, staff, insurance and services, and tax: docs/method.md section 8."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from optimizer.plan import Plan
from optimizer.units import MONTHS_PER_YEAR
from optimizer.verify.facts import ORDINARY_AIR, ROUNDING, Facts, Quote
from optimizer.verify.finding import Ledger
from optimizer.verify.fleet import Fleet
from optimizer.verify.lines import Line, escalated, recovery_factor

_KW_PER_MW, _TB_PER_PB, _GBPS_PER_LINK, _SERVER_OF = 1000.0, 1000.0, 100.0, 8.0
_USER: Final = frozenset({("stated by the user", "", "user")})


def _figure(facts: Facts, key: str, own: float | None, divisor: float = 1.0) -> Quote:
    """The planner's figure, else the catalogue's typical one."""
    if own is not None:
        return Quote.user(own)
    row = facts.catalog.facility[key]
    return Quote.of(row.typical / divisor, row)


def _build(facts: Facts) -> Quote:
    """Cost of a hall per kW."""
    own = facts.instance.economics.hall.build_usd_per_kw
    if own is not None:
        return Quote.user(own)
    country = facts.region.iso3
    if country in facts.catalog.build_costs:
        row = facts.catalog.build_costs[country]
        return Quote.of(row.usd_per_kw, row)
    return _figure(facts, "build_capex" if country == "USA" else "build_capex_global", None)


def hall_life(facts: Facts) -> float:
    """Life of an own hall, years."""
    return _figure(facts, "facility_life", facts.instance.economics.hall.life_years).usd


def space_lines(facts: Facts, plan: Plan, fleet: Fleet) -> Iterator[Line]:
    """The hall that the plan says is used, and racks."""
    economics, unit = facts.instance.economics, "kW of IT peak"
    rate = economics.discount_rate
    plant = facts.catalog.cooling[ORDINARY_AIR]
    if plan.facility == "own_build":
        build = _build(facts)
        price = replace(build, usd=max(0.0, build.usd - plant.capex_typical_usd_per_kw))
        yield Line("space", "hall", fleet.it_kw, unit, price, (recovery_factor(rate, hall_life(facts)),), True)
        upkeep = _figure(facts, "facility_maintenance", economics.hall.maintenance_fraction).usd
        yield Line("space", "upkeep", fleet.it_kw, unit, price, (upkeep,))
    else:
        monthly = _figure(facts, "colo_wholesale_1mw_plus", economics.colocation_usd_per_kw_month)
        life = recovery_factor(rate, economics.cooling_life_years)
        contained = plant.capex_typical_usd_per_kw * (life + plant.maintenance_typical_fraction)
        rent = replace(monthly, usd=max(0.0, monthly.usd * MONTHS_PER_YEAR - contained))
        rise = escalated(rate, economics.horizon_years, economics.hall.colocation_escalation_fraction)
        yield Line("space", "colocation", fleet.it_kw, unit, rent, rise)
        once = (recovery_factor(rate, economics.horizon_years),)
        yield Line("space", "fit-out", fleet.it_kw, unit, Quote.user(economics.hall.fit_out_usd_per_kw), once, True)
    rack = _figure(facts, "rack_hardware", economics.rack_usd)
    for one in fleet.groups.values():
        if one.is_bought:
            # Where no rack takes a server, one alone stands in each.
            racks = -(-one.group.servers // max(1, one.per_rack))
            annuity = (recovery_factor(rate, economics.server_life_years),)
            yield Line("space", one.group.pool, float(racks), "racks", rack, annuity, True)


def posts(facts: Facts, plan: Plan, fleet: Fleet) -> float:
    """Staff in whole steps; nobody where nobody is paid or nothing is bought."""
    staff = facts.instance.economics.staff
    accelerators = sum(
        one.group.servers * one.group.accelerators_per_server for one in fleet.groups.values() if one.in_hall
    )
    wage = _figure(facts, "staff_cost_loaded", staff.usd_per_fte_year).usd
    each = _figure(facts, "cluster_admin", staff.fte_per_server).usd
    by_mw = _figure(facts, "facility_staff", staff.fte_per_mw).usd
    least = _figure(facts, "staff_min_24x7", staff.minimum_fte).usd
    if not accelerators or not wage:
        return 0.0
    needed = each * accelerators / _SERVER_OF
    if plan.facility == "own_build":
        needed = max(needed + by_mw * fleet.it_kw / _KW_PER_MW, least)
    return math.ceil(needed / staff.step_fte - ROUNDING) * staff.step_fte


def staff_lines(facts: Facts, plan: Plan, fleet: Fleet) -> Iterator[Line]:
    """Wages."""
    economics = facts.instance.economics
    wage = _figure(facts, "staff_cost_loaded", economics.staff.usd_per_fte_year)
    rise = escalated(economics.discount_rate, economics.horizon_years, economics.staff.escalation_fraction)
    if economics.staff.usd_per_fte_year is None or economics.staff.fte_per_server is None:
        wage = replace(wage, sources=frozenset((where, when, "assumed") for where, when, _ in wage.sources))
    yield Line("staff", "staff", posts(facts, plan, fleet), "posts", wage, rise)


def insurance_lines(
    facts: Facts, servers: Iterable[Line], network: Iterable[Line], cooling: Iterable[Line], space: Iterable[Line]
) -> Iterator[Line]:
    """A share of mean book values of servers and network, of the price of cooling and hall."""
    economics = facts.instance.economics
    share = _figure(facts, "insurance", economics.services.insurance_fraction)
    lives = {"servers": economics.server_life_years, "network": economics.network_life_years}
    for line in (*servers, *network, *cooling, *space):
        if not line.is_capital or (line.component == "space" and line.unit == "racks"):
            continue
        factors = [share.usd]
        if line.component in lives:
            years = lives[line.component]
            # At the start of year k of n years what is left is (n - k + 1) / n of the price.
            book = (years + 1.0) / years / 2.0
            factors += [book] if book != 1.0 else []
        price = line.price
        if share.sources != _USER:
            price = replace(price, sources=frozenset((where, when, "assumed") for where, when, _ in price.sources))
        yield replace(line, component="insurance", price=price, factors=tuple(factors), is_capital=False)


def service_lines(facts: Facts, fleet: Fleet) -> Iterator[Line]:
    """Software, storage, management servers and the connection."""
    economics, services = facts.instance.economics, facts.instance.economics.services
    life = (recovery_factor(economics.discount_rate, economics.server_life_years),)
    kept = (economics.server_maintenance_fraction,)
    tb = _figure(facts, "storage_parallel_fs", services.storage_usd_per_tb, _TB_PER_PB)
    standing = 0
    for one in fleet.groups.values():
        group, servers = one.group, float(one.group.servers)
        licence = Quote.user(services.software_usd_per_accelerator_year)
        yield Line("services", group.pool, servers, "servers", licence, (float(group.accelerators_per_server),))
        standing += group.servers if one.in_hall else 0
        if one.is_bought:
            store = replace(tb, usd=tb.usd * services.storage_tb_per_accelerator * group.accelerators_per_server)
            yield Line("services", group.pool, servers, "servers", store, life, True)
            yield Line("services", group.pool, servers, "servers", store, kept)
    if not standing:
        return
    if services.servers_per_management_server is not None and services.management_server_usd is not None:
        count = float(-(-standing // services.servers_per_management_server))
        price = Quote.user(services.management_server_usd)
        yield Line("services", "management", count, "servers", price, life, True)
        yield Line("services", "management", count, "servers", price, kept)
    link = _figure(facts, "connectivity", services.connectivity_usd_per_gbps_year, _GBPS_PER_LINK)
    yield Line("services", "connectivity", 1.0, "site", link, (services.connectivity_gbps,))


def after_tax(facts: Facts, line: Line) -> Line:
    """The line with tax, a residual value of servers, and later servers at another price."""
    economics = facts.instance.economics
    rate, tax = economics.discount_rate, economics.tax_fraction
    if not line.is_capital:
        return replace(line, factors=(*line.factors, 1.0 - tax)) if tax else line
    lives = {
        "servers": economics.server_life_years,
        "spares": economics.server_life_years,
        "services": economics.server_life_years,
        "network": economics.network_life_years,
        "cooling": economics.cooling_life_years,
        "recovery": economics.horizon_years,
    }
    if line.component == "space":
        lives["space"] = {"hall": hall_life(facts), "fit-out": economics.horizon_years}.get(
            line.subject, economics.server_life_years
        )
    years = lives[line.component]
    resold = line.component in ("servers", "spares")
    left = economics.server_residual_fraction if resold else 0.0
    change = economics.server_price_change_fraction if resold else 0.0
    factors = line.factors
    if tax or left:
        # Of one dollar: what write-offs save in tax, and what the sale brings after tax.
        worth_of_one = 1.0 / recovery_factor(rate, years)
        factors = (*factors, 1.0 - tax * worth_of_one / years - left * (1.0 - tax) * (1.0 + rate) ** -years)
    if change and years < economics.horizon_years:
        factors = (*factors, _generations(rate, economics.horizon_years, years, change))
    return replace(line, factors=factors)


def _generations(rate: float, horizon: float, years: float, change: float) -> float:
    """What purchases at later prices cost an even year, over what they would at the first price."""
    total = begun = 0.0
    until = 0.0
    price = 1.0
    while begun < horizon - 1e-6:
        end = min(begun + years, horizon)
        so_far = 1.0 / recovery_factor(rate, end)
        total += price * (so_far - until)
        until, begun, price = so_far, begun + years, price * (1.0 + change) ** years
    return total / until


def check_site(ledger: Ledger, facts: Facts, plan: Plan, fleet: Fleet) -> None:
    """The hall is one that may be used, and the posts are those that fleet and hall need."""
    allowed = facts.instance.site.facility
    halls: tuple[str | None, ...] = ("colocation", "own_build") if allowed == "cheaper" else (allowed,)
    if not any(one.in_hall for one in fleet.groups.values()):
        halls = (None,)
    # Plans of earlier versions say nothing and stand in colocation.
    known = plan.facility in halls or (plan.facility is None and "colocation" in halls)
    ledger.check(known, "V-OFFER", "facility", plan.facility, halls, "a hall that may be used")
    ledger.number("V-COUNT", "posts", plan.posts, posts(facts, plan, fleet), "staff in whole steps")
