"""A figure that the planner states, or the catalogue's typical one, with where it comes from."""

from optimizer.catalog.rows import Trust
from optimizer.setting import Price, Setting, electricity_region

USER: tuple[str, str, Trust] = ("stated by the user", "", "user")


def figure(setting: Setting, key: str, own: float | None, scale: float = 1.0) -> Price:
    """The planner's own figure, else ``scale`` times the catalogue's typical one."""
    if own is not None:
        return Price(own, *USER)
    row = setting.catalog.facility[key]
    return Price(row.typical * scale, row.source, row.as_of, row.trust)


def build_cost(setting: Setting) -> Price:
    """What a hall costs per kW: the planner's figure, that of the United States, of the country, else of the world."""
    own = setting.instance.economics.hall.build_usd_per_kw
    if own is not None:
        return Price(own, *USER)
    region = setting.catalog.electricity[electricity_region(setting.instance, setting.catalog)]
    row = setting.catalog.build_costs.get(region.iso3)
    if row is not None:
        return Price(row.usd_per_kw, row.source, row.as_of, row.trust)
    return figure(setting, "build_capex" if region.iso3 == "USA" else "build_capex_global", None)


def hall_life_years(setting: Setting) -> float:
    """Life of a hall that is built."""
    return figure(setting, "facility_life", setting.instance.economics.hall.life_years).usd


def insured_fraction(setting: Setting) -> Price:
    """Insurance a year as a share of what is insured."""
    return figure(setting, "insurance", setting.instance.economics.services.insurance_fraction)


def mean_book_fraction(life_years: float) -> float:
    """Mean of the book values at the start of each year of a life, over the price: ``(n + 1) / (2 n)``."""
    return (life_years + 1.0) / (2.0 * life_years)
