"""Cooling plants: paid once when built, then for each kW of heat; maintenance every year."""

from collections.abc import Iterator

from optimizer.catalog.rows import CoolingOption, Trust
from optimizer.costs.price_steps import PriceStep, cheapest_order, price_steps, reached_step
from optimizer.costs.term import QuantityKey, Term, capital, capital_recovery_factor
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


def plant_steps(setting: Setting, option: CoolingOption) -> tuple[PriceStep, ...]:
    """Steps of a plant's price by its size (kW of heat); one where there is no quantity discount."""
    own = setting.instance.economics.cooling_prices.get(option.id)
    _, marginal, _ = plant_prices(setting, option)
    discounts = () if own is None else tuple((one.from_kw, one.discount_fraction) for one in own.discounts)
    kind = "all_units" if own is None else own.discount_kind
    return price_steps(marginal, discounts, kind, start=0.0, counted=False)


def may_order_more(setting: Setting, option: CoolingOption) -> bool:
    """Whether a larger plant than the heat needs may be ordered, to reach a discount of all units."""
    own = setting.instance.economics.cooling_prices.get(option.id)
    return own is not None and bool(own.discounts) and own.discount_kind == "all_units"


def plant_order(setting: Setting, option: CoolingOption, heat_kw: float) -> tuple[int, float]:
    """(step, kW ordered) of the cheapest plant that takes the heat."""
    steps = plant_steps(setting, option)
    if may_order_more(setting, option):
        return cheapest_order(steps, heat_kw)
    return reached_step(steps, heat_kw), heat_kw


def plant_quantities(setting: Setting, option: CoolingOption, heat_kw: float) -> dict[QuantityKey, float]:
    """Quantities of the cost terms of a plant that takes the heat."""
    found: dict[QuantityKey, float] = {("PlantKw", option.id): heat_kw, ("PlantBuilt", option.id): 1.0}
    if len(plant_steps(setting, option)) > 1:
        step, ordered = plant_order(setting, option, heat_kw)
        found["PlantTierKw", option.id, str(step)] = ordered
        found["PlantTierUsed", option.id, str(step)] = 1.0
    return found


def _priced(setting: Setting, option: CoolingOption) -> Iterator[tuple[QuantityKey, str, float, str]]:
    """(quantity, unit, USD of one unit, what it is) of all that a plant's capital is made of."""
    fixed, _, _ = plant_prices(setting, option)
    yield ("PlantBuilt", option.id), "plant", fixed, "plant"
    steps = plant_steps(setting, option)
    if len(steps) == 1:
        yield ("PlantKw", option.id), "kW of heat", steps[0].usd, "capacity"
        return
    for number, one in enumerate(steps):
        what = f"capacity, ordered from {one.first:g} kW" if number else "capacity"
        yield ("PlantTierKw", option.id, str(number)), "kW of heat", one.usd, what
        yield ("PlantTierUsed", option.id, str(number)), "tier", one.offset_usd, f"{what}: dearer kW below the step"


def rack_usd(setting: Setting, option: CoolingOption) -> float:
    """USD for each rack that an option cools, however full; only the planner can state it."""
    own = setting.instance.economics.cooling_prices.get(option.id)
    return 0.0 if own is None or own.per_rack_usd is None else own.per_rack_usd


def _rack_terms(setting: Setting, annuity: tuple[str, float]) -> Iterator[Term]:
    """Doors and coolers that come by the rack, with their maintenance."""
    for pool in setting.pools:
        usd = rack_usd(setting, pool.cooling) if pool.is_bought and pool.cooling is not None else 0.0
        if usd and pool.cooling is not None:
            provenance = plant_provenance(setting, pool.cooling)
            item, key = f"{pool.cooling.id} of racks of {pool.server_type.id}", ("Racks", pool.id)
            yield capital(COMPONENT, item, key, "racks", usd, annuity, provenance)
            _, _, share = plant_prices(setting, pool.cooling)
            if share:
                factors = (("maintenance_fraction", share),)
                yield Term(COMPONENT, f"{item}, maintenance", key, "racks", usd, factors, 0.0, *provenance)


def terms(setting: Setting) -> list[Term]:
    """Fixed, marginal and by-the-rack capital as annuities over the plant's life, and maintenance."""
    economics = setting.instance.economics
    annuity = ("annuity", capital_recovery_factor(economics.discount_rate, economics.cooling_life_years))
    result = []
    for option in plant_options(setting):
        _, _, share = plant_prices(setting, option)
        provenance = plant_provenance(setting, option)
        for key, unit, usd, what in _priced(setting, option):
            if usd == 0.0:
                continue
            item = f"{option.id} {what}"
            result.append(capital(COMPONENT, item, key, unit, usd, annuity, provenance))
            if share:
                factors = (("maintenance_fraction", share),)
                result.append(Term(COMPONENT, f"{item}, maintenance", key, unit, usd, factors, 0.0, *provenance))
    return [*result, *_rack_terms(setting, annuity)]
