"""Prices around the servers of a plan: cooling, network, preparation of weights, energy, space, maintenance."""

from collections.abc import Iterator
from typing import Any, Final

from optimizer.catalog import load_catalog
from optimizer.instance.economics import CoolingPrices
from optimizer.instance.model import Instance
from optimizer.plan import Plan
from optimizer.studies.movers import Mover, Neighbour, economics_mover, ends_of, lines_of, row_of, with_economics

#: What the GPU-hours of a recovery step are in proportion to.
_GPU_HOURS: Final = (
    "calibration_gpu_hours_per_billion",
    "calibration_moe_gpu_hours_per_billion",
    "verification_gpu_hours_per_billion",
    "verification_conservative_gpu_hours_per_billion",
    "flop_per_parameter_token",
)


def cooling(instance: Instance, plan: Plan) -> Iterator[Mover]:
    """Capital of each cooling plant, fixed and marginal part together."""
    for plant in plan.plants:
        key = plant.option
        row = row_of(plan, "cooling", key)
        own = instance.economics.cooling_prices.get(key, CoolingPrices())
        fixed = row.get("capex_fixed_usd", 0.0) if own.fixed_usd is None else own.fixed_usd
        per_kw = own.marginal_usd_per_kw
        marginal = row.get("capex_marginal_usd_per_kw", 0.0) if per_kw is None else per_kw
        line = next(lines_of(plan, "cooling", key), None)
        if line is None:
            continue
        capital = fixed + marginal * plant.heat_kw
        is_own = own.fixed_usd is not None or own.marginal_usd_per_kw is not None
        ends = ends_of(capital, {} if is_own else row, "capex_{}_usd_per_kw", "typical")

        def at(
            value: float,
            key: str = key,
            own: CoolingPrices = own,
            parts: tuple[float, float, float] = (fixed, marginal, capital),
        ) -> Neighbour:
            share = value / parts[2]
            moved = own.model_copy(update={"fixed_usd": parts[0] * share, "marginal_usd_per_kw": parts[1] * share})
            prices = {**instance.economics.cooling_prices, key: moved}
            return with_economics(instance, cooling_prices=prices), None

        yield Mover(
            f"capital of the {key} plant",
            f"economics.cooling_prices.{key}",
            "USD",
            capital,
            *ends,
            line.trust,
            line.as_of,
            at,
        )


def network(instance: Instance, plan: Plan) -> Iterator[Mover]:
    """Price of each fabric per accelerator: a row of the catalogue, which an instance cannot state itself."""
    level = instance.economics.price_level
    packaged = load_catalog()
    for tier in plan.network:
        if tier.fabric not in packaged.fabrics:
            continue
        fabric = packaged.fabrics[tier.fabric]
        row = fabric.model_dump()
        now = float(row[f"{level}_usd_per_accelerator"])

        def at(value: float, fabric: Any = fabric) -> Neighbour:
            names = [f"{name}_usd_per_accelerator" for name in ("low", "typical", "high")]
            moved = fabric.model_copy(update=dict.fromkeys(names, value))
            return instance, packaged.with_rows(fabrics=[moved])

        yield Mover(
            f"network, {fabric.name or fabric.id}",
            f"fabrics.{fabric.id}",
            "USD/accelerator",
            now,
            *ends_of(now, row, "{}_usd_per_accelerator", level),
            fabric.trust,
            fabric.as_of,
            at,
        )


def recovery(instance: Instance, plan: Plan) -> Iterator[Mover]:
    """Preparation of quantized weights: the published GPU-hours, which an instance cannot state itself."""
    lines = [line for line in plan.bill.lines if line.component == "recovery"]
    now = sum(line.capital_usd for line in lines)
    if now == 0.0:
        return
    packaged = load_catalog()

    def at(value: float) -> Neighbour:
        share = value / now
        moved = [
            step.model_copy(update={name: getattr(step, name) * share for name in _GPU_HOURS})
            for step in packaged.recovery_steps.values()
        ]
        return instance, packaged.with_rows(recovery_steps=moved)

    low, high, basis = ends_of(now, {}, "{}", "typical")
    name = "preparation of quantized weights"
    yield Mover(name, "recovery_steps", "USD", now, low, high, basis, lines[0].trust, lines[0].as_of, at)


def site(instance: Instance, plan: Plan) -> Iterator[Mover]:
    """Electricity, colocation, racks, and the premium of servers built for liquid."""
    energy = next(lines_of(plan, "energy", ""), None)
    # A tariff is the utility's own word, and has no one price to move.
    if energy is not None and instance.site.tariff is None:

        def electricity(value: float) -> Neighbour:
            site = instance.site.model_copy(update={"electricity_usd_per_kwh": value})
            return instance.model_copy(update={"site": site}), None

        now = energy.unit_price_usd
        yield Mover(
            "electricity",
            "site.electricity_usd_per_kwh",
            "USD/kWh",
            now,
            *ends_of(now, {}, "{}", "typical"),
            energy.trust,
            energy.as_of,
            electricity,
        )
    facility = (
        ("colocation rent", "colocation_usd_per_kw_month", "USD/kW-month", "colo_wholesale_1mw_plus", "colocation"),
        ("rack hardware", "rack_usd", "USD/rack", "rack_hardware", "racks"),
    )
    for name, field, unit, figure, item in facility:
        line = next(lines_of(plan, "space", item), None)
        own = getattr(instance.economics, field)
        row = row_of(plan, "facility", figure)
        if line is not None and (own is not None or row):
            yield economics_mover(
                instance, name, field, unit, float(row["typical"]) if own is None else own, line, row, own
            )
    premium = next((one for one in plan.bill.lines if one.item.endswith("built for liquid")), None)
    if premium is not None:
        now = instance.economics.liquid_ready_usd_per_kw
        name = "premium of servers for liquid"
        yield economics_mover(instance, name, "liquid_ready_usd_per_kw", "USD/kW", now, premium, {}, now)
    converted = next((one for one in plan.bill.lines if one.item.endswith("converted to liquid")), None)
    if converted is not None:
        own, row = instance.economics.liquid_retrofit_usd_per_kw, row_of(plan, "facility", "liquid_retrofit")
        now = float(row[instance.economics.price_level]) if own is None else own
        name = "conversion of servers to liquid"
        yield economics_mover(instance, name, "liquid_retrofit_usd_per_kw", "USD/kW", now, converted, row, own)


def people_and_hall(instance: Instance, plan: Plan) -> Iterator[Mover]:
    """Wages, insurance, and what an own hall costs."""
    wanted = (
        ("wages", "staff", "usd_per_fte_year", "USD/year", "staff_cost_loaded", "staff", "staff"),
        ("insurance", "services", "insurance_fraction", "1/year", "insurance", "insurance", ""),
        ("cost of the hall", "hall", "build_usd_per_kw", "USD/kW", "build_capex", "space", "hall"),
    )
    for name, section, field, unit, figure, component, item in wanted:
        line = next(lines_of(plan, component, item), None)
        own = getattr(getattr(instance.economics, section), field)
        row = row_of(plan, "facility", figure)
        if line is None or (own is None and not row):
            continue
        now = float(row["typical"]) if own is None else own

        def at(value: float, section: str = section, field: str = field) -> Neighbour:
            part = getattr(instance.economics, section).model_copy(update={field: value})
            economics = instance.economics.model_copy(update={section: part})
            return instance.model_copy(update={"economics": economics}), None

        ends = ends_of(now, row if own is None else {}, "{}", "typical")
        yield Mover(name, f"economics.{section}.{field}", unit, now, *ends, line.trust, line.as_of, at)


def shares(instance: Instance, plan: Plan) -> Iterator[Mover]:
    """Maintenance per year as a share of price."""
    line = next(lines_of(plan, "maintenance", ""), None)
    if line is not None:
        for name, field in (
            ("maintenance of servers", "server_maintenance_fraction"),
            ("maintenance of the network", "network_maintenance_fraction"),
        ):
            now = getattr(instance.economics, field)
            yield economics_mover(instance, name, field, "1/year", now, line, {}, now)
