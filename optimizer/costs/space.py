"""Space: colocation rent or an own hall per kW, each without the air plant it contains, and racks."""

from collections.abc import Iterator

from optimizer.costs.figures import USER, build_cost, figure, hall_life_years
from optimizer.costs.over_time import running
from optimizer.costs.term import Term, capital, capital_recovery_factor
from optimizer.setting import Setting
from optimizer.units import MONTHS_PER_YEAR

COMPONENT = "space"
COLOCATION_FIGURE = "colo_wholesale_1mw_plus"
RACK_FIGURE = "rack_hardware"


def ordinary_plant_usd_per_kw_year(setting: Setting) -> float:
    """Yearly cost per kW of the ordinary air plant that colocation rent contains: annuity and maintenance.

    It is taken out of the rent, because the plan's own cooling plant is billed beside it (no double counting).
    """
    economics = setting.instance.economics
    annuity = capital_recovery_factor(economics.discount_rate, economics.cooling_life_years)
    plant = setting.residual
    return plant.capex_typical_usd_per_kw * (annuity + plant.maintenance_typical_fraction)


def space_key(setting: Setting, facility: str) -> tuple[str, ...]:
    """Quantity of the kW in a facility: all of the fleet's where only that one may be used."""
    if setting.instance.site.facility != "cheaper":
        return ("SpaceKw",)
    return ("ColocationKw", "site") if facility == "colocation" else ("HallKw", "site")


def terms(setting: Setting) -> list[Term]:
    """Colocation by the kW of IT peak (network and spares included), or a hall of one's own, and rack hardware."""
    facility = setting.instance.site.facility
    return [
        *(_colocation(setting) if facility != "own_build" else ()),
        *(_hall(setting) if facility != "colocation" else ()),
        *_racks(setting),
    ]


def _colocation(setting: Setting) -> Iterator[Term]:
    economics = setting.instance.economics
    monthly = figure(setting, COLOCATION_FIGURE, economics.colocation_usd_per_kw_month)
    # A planner who states a rent below the plant's share has a hall without a plant: nothing is taken out below 0.
    yearly = max(0.0, monthly.usd * MONTHS_PER_YEAR - ordinary_plant_usd_per_kw_year(setting))
    key, unit = space_key(setting, "colocation"), "kW of IT peak"
    if yearly > 0.0:
        factors = running(economics, economics.hall.colocation_escalation_fraction)
        source = (monthly.source, monthly.as_of, monthly.trust)
        yield Term(COMPONENT, "colocation without its air plant", key, unit, yearly, factors, 0.0, *source)
    if economics.hall.fit_out_usd_per_kw > 0.0:
        annuity = ("annuity", capital_recovery_factor(economics.discount_rate, economics.horizon_years))
        usd = economics.hall.fit_out_usd_per_kw
        yield capital(COMPONENT, "fit-out of colocation", key, unit, usd, annuity, USER)


def _hall(setting: Setting) -> Iterator[Term]:
    """A hall without the ordinary air plant that its price contains, and its upkeep."""
    economics = setting.instance.economics
    build = build_cost(setting)
    usd = max(0.0, build.usd - setting.residual.capex_typical_usd_per_kw)
    key, unit = space_key(setting, "own_build"), "kW of IT peak"
    source = (build.source, build.as_of, build.trust)
    if usd == 0.0:
        return
    annuity = ("annuity", capital_recovery_factor(economics.discount_rate, hall_life_years(setting)))
    yield capital(COMPONENT, "hall without its air plant", key, unit, usd, annuity, source)
    share = figure(setting, "facility_maintenance", economics.hall.maintenance_fraction).usd
    if share > 0.0:
        factors = (("maintenance_fraction", share),)
        yield Term(COMPONENT, "hall without its air plant, upkeep", key, unit, usd, factors, 0.0, *source)


def _racks(setting: Setting) -> Iterator[Term]:
    economics = setting.instance.economics
    rack = figure(setting, RACK_FIGURE, economics.rack_usd)
    annuity = ("annuity", capital_recovery_factor(economics.discount_rate, economics.server_life_years))
    source = (rack.source, rack.as_of, rack.trust)
    if rack.usd > 0.0:
        for pool in setting.pools:
            if pool.is_bought:
                item = f"racks for {pool.id}"
                yield capital(COMPONENT, item, ("Racks", pool.id), "racks", rack.usd, annuity, source)
