"""Cooling plants: paid once when built, then for each kW of heat; maintenance every year."""

from optimizer.catalog.rows import CoolingOption, Trust
from optimizer.costs.term import Term, capital, capital_recovery_factor
from optimizer.setting import Pool, Setting

COMPONENT = "cooling"


def plant_options(setting: Setting) -> tuple[CoolingOption, ...]:
    """Options whose plant may be built: those of bought pools, and the air plant for what liquid leaves in the air."""
    options = {pool.cooling.id: pool.cooling for pool in setting.pools if pool.cooling is not None and pool.is_bought}
    if any(option.medium == "liquid" for option in options.values()):
        options[setting.residual.id] = setting.residual
    return tuple(options[key] for key in sorted(options))


def heat_paths(setting: Setting, pool: Pool) -> list[tuple[CoolingOption, float]]:
    """Plants that a pool's heat goes to, with the share of each: the option's own, and the air plant for the rest."""
    option = pool.cooling
    assert option is not None
    share = option.liquid_capture_typical_fraction if option.medium == "liquid" else 1.0
    return [(option, share)] if share == 1.0 else [(option, share), (setting.residual, 1.0 - share)]


def plant_provenance(setting: Setting, option: CoolingOption) -> tuple[str, str, Trust]:
    """Source, date and trust of a plant's prices."""
    if option.id in setting.instance.economics.cooling_prices:
        return "stated by the user", "", "user"
    return option.source, option.as_of, option.trust


def plant_prices(setting: Setting, option: CoolingOption) -> tuple[float, float, float]:
    """(fixed USD, USD per kW, maintenance share per year) of a plant, the planner's own prices first."""
    own = setting.instance.economics.cooling_prices.get(option.id)
    fixed, marginal, share = (
        option.capex_fixed_usd,
        option.capex_marginal_usd_per_kw,
        option.maintenance_typical_fraction,
    )
    if own is not None:
        fixed = fixed if own.fixed_usd is None else own.fixed_usd
        marginal = marginal if own.marginal_usd_per_kw is None else own.marginal_usd_per_kw
        share = share if own.maintenance_fraction is None else own.maintenance_fraction
    return fixed, marginal, share


def terms(setting: Setting) -> list[Term]:
    """Fixed and marginal capital as annuities over the plant's life, and maintenance."""
    economics = setting.instance.economics
    annuity = ("annuity", capital_recovery_factor(economics.discount_rate, economics.cooling_life_years))
    result = []
    for option in plant_options(setting):
        fixed, marginal, share = plant_prices(setting, option)
        provenance = plant_provenance(setting, option)
        for key, unit, usd, what in (
            (("PlantBuilt", option.id), "plant", fixed, "plant"),
            (("PlantKw", option.id), "kW of heat", marginal, "capacity"),
        ):
            if usd == 0.0:
                continue
            item = f"{option.id} {what}"
            result.append(capital(COMPONENT, item, key, unit, usd, annuity, provenance))
            if share:
                factors = (("maintenance_fraction", share),)
                result.append(Term(COMPONENT, f"{item}, maintenance", key, unit, usd, factors, 0.0, *provenance))
    return result
