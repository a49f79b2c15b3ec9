"""The value that a field has now: what the planner stated, else its default, else what the catalogue says.

A change in percent or a multiple is one of this value. Fields whose absence means "no limit" have none.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from optimizer.catalog import Catalog, load_catalog
from optimizer.costs.space import COLOCATION_FIGURE, RACK_FIGURE
from optimizer.instance.field_paths import FieldPath, stated_value
from optimizer.instance.model import Instance
from optimizer.instance.positions import Path

#: What an absent field stands for: from the instance, the catalogue and the steps of its path.
Resolver = Callable[[Instance, Catalog, Path], float | None]


def current_value(instance: Instance, field: FieldPath) -> Any:
    """The value in force at a field; None where there is none (no limit is set, or nothing is published)."""
    stated = stated_value(instance, field)
    if stated is not None:
        return stated
    for pattern, resolver in ABSENT.items():
        if len(pattern) == len(field.steps) and all(
            asked in ("*", step) for asked, step in zip(pattern, field.steps, strict=True)
        ):
            return resolver(instance, _catalog(instance), field.steps)
    return None


def ids_in_use(instance: Instance, section: str) -> tuple[str, ...]:
    """Keys that ``*`` stands for under a section: catalogue ids that the instance's search may use."""
    from optimizer.setting import chosen_accelerators, chosen_cooling

    catalog = _catalog(instance)
    if section == "economics.cooling_prices":
        return tuple(option.id for option in chosen_cooling(instance, catalog))
    return chosen_accelerators(instance, catalog)


def _catalog(instance: Instance) -> Catalog:
    from optimizer.setting import instance_catalog

    return instance_catalog(instance, load_catalog())


def _server_usd(instance: Instance, catalog: Catalog, steps: Path) -> float | None:
    from optimizer.setting import server_price

    price = server_price(instance, catalog, str(steps[2]))
    return None if price is None else price.usd


def _rent(instance: Instance, catalog: Catalog, steps: Path) -> float | None:
    """The cheapest published rent of one accelerator for the term, over all sizes of instance."""
    term = str(steps[3]).removesuffix("_usd_per_hour")
    offers = catalog.cheapest_offers(price_classes=instance.economics.price_classes)
    found = [
        float(getattr(offer, f"{offered}_usd_per_accelerator_hour"))
        for (accelerator, _, offered), offer in offers.items()
        if accelerator == steps[2] and offered == term
    ]
    return min(found, default=None)


def _cooling(column: str) -> Resolver:
    def resolve(_: Instance, catalog: Catalog, steps: Path) -> float | None:
        return float(getattr(catalog.cooling[str(steps[2])], column)) if steps[2] in catalog.cooling else None

    return resolve


def _electricity(instance: Instance, catalog: Catalog, _: Path) -> float | None:
    region = instance.site.electricity_region or catalog.climates[instance.site.climate].electricity_region
    return catalog.electricity[region].price_usd_per_kwh


def _facility(figure: str) -> Resolver:
    def resolve(_: Instance, catalog: Catalog, __: Path) -> float | None:
        return float(catalog.facility[figure].typical)

    return resolve


def _accuracy_floor(instance: Instance, _: Catalog, __: Path) -> float | None:
    return instance.targets.accuracy_floor()


def _longest_context(instance: Instance, _: Catalog, __: Path) -> float | None:
    return float(instance.workload.longest_context_tokens())


def _class_target(instance: Instance, _: Catalog, steps: Path) -> float | None:
    value: float | None = getattr(instance.targets, str(steps[-1]))
    return value


#: Fields that stand for something when they are absent.
ABSENT: Final[Mapping[Path, Resolver]] = MappingProxyType(
    {
        ("economics", "prices", "*", "server_usd"): _server_usd,
        ("economics", "prices", "*", "on_demand_usd_per_hour"): _rent,
        ("economics", "prices", "*", "reserved_1yr_usd_per_hour"): _rent,
        ("economics", "prices", "*", "reserved_3yr_usd_per_hour"): _rent,
        ("economics", "cooling_prices", "*", "fixed_usd"): _cooling("capex_fixed_usd"),
        ("economics", "cooling_prices", "*", "marginal_usd_per_kw"): _cooling("capex_marginal_usd_per_kw"),
        ("economics", "cooling_prices", "*", "maintenance_fraction"): _cooling("maintenance_typical_fraction"),
        ("economics", "colocation_usd_per_kw_month"): _facility(COLOCATION_FIGURE),
        ("economics", "rack_usd"): _facility(RACK_FIGURE),
        ("site", "electricity_usd_per_kwh"): _electricity,
        ("targets", "accuracy_floor_fraction"): _accuracy_floor,
        ("workload", "max_context_tokens"): _longest_context,
        ("workload", "classes", "*", "targets", "tpot_ms"): _class_target,
        ("workload", "classes", "*", "targets", "ttft_ms"): _class_target,
        ("workload", "classes", "*", "targets", "latency_ms"): _class_target,
    }
)
