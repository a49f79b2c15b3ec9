"""Space: colocation rent per kW without the air plant it contains, and racks."""

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


def terms(setting: Setting) -> list[Term]:
    """Rent of powered space per kW of IT peak (network and spares included), and rack hardware."""
    economics = setting.instance.economics
    colocation = setting.catalog.facility[COLOCATION_FIGURE]
    own = economics.colocation_usd_per_kw_month
    monthly = colocation.typical if own is None else own
    # A planner who states a rent below the plant's share has a hall without a plant: nothing is taken out below 0.
    yearly = max(0.0, monthly * MONTHS_PER_YEAR - ordinary_plant_usd_per_kw_year(setting))
    result = []
    if yearly > 0.0:
        provenance = (colocation.source, colocation.as_of, colocation.trust)
        result.append(
            Term(
                COMPONENT,
                "colocation without its air plant",
                ("SpaceKw",),
                "kW of IT peak",
                yearly,
                (),
                0.0,
                *(provenance if own is None else ("stated by the user", "", "user")),
            )
        )
    rack = setting.catalog.facility[RACK_FIGURE]
    rack_usd = rack.typical if economics.rack_usd is None else economics.rack_usd
    annuity = ("annuity", capital_recovery_factor(economics.discount_rate, economics.server_life_years))
    provenance = (
        (rack.source, rack.as_of, rack.trust) if economics.rack_usd is None else ("stated by the user", "", "user")
    )
    if rack_usd > 0.0:
        for pool in setting.pools:
            if pool.is_bought:
                item = f"racks for {pool.id}"
                result.append(capital(COMPONENT, item, ("Racks", pool.id), "racks", rack_usd, annuity, provenance))
    return result
