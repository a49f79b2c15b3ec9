"""Training by enumeration in plain Python: every layout, count, format, pool, site and split; the cheapest that holds.

Shares the step-time model, weather arithmetic and catalogue with the program, and nothing else: costs are added up
here again from docs/method.md section 8, one server count at a time. Splits over sites are tried one by one.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

from optimizer.catalog import load_catalog
from optimizer.instance.model import Instance
from optimizer.instance.site import Site
from optimizer.performance.training import (
    RECOMPUTE,
    Layouts,
    TrainingAccelerator,
    TrainingModel,
    goodput,
    mtbf_hours,
    predict_step,
    production_factor,
)
from tests.oracle import tiers
from tests.oracle.listing import captured, pue
from tests.oracle.power_costs import levelised
from tests.oracle.site_costs import site_costs

AIR = "air_containment_econ"


@dataclass(frozen=True)
class Way:
    """A way to do one job: days, servers by (site, accelerator, cooling or term, hall), and what each is charged."""

    days: float
    usd: float
    held: tuple[tuple[tuple[str, str, str, str], int], ...]
    capital: float
    power_kw: dict[str, float]
    racks: dict[str, int]
    precision: str = ""


#: Own weather by the hour is long, and every split of a job asks for it again.
_pue = cache(pue)


def crf(rate: float, years: float) -> float:
    return 1.0 / years if rate == 0.0 else rate / (1.0 - (1.0 + rate) ** -years)


def cheapest(instance: Instance) -> float | None:
    """Least cost of the one job of an instance, or None where no way keeps every limit."""
    return min((way.usd for way in ways(instance, instance.workload.all_jobs()[0])), default=None)  # type: ignore[union-attr]


def sites_of(instance: Instance) -> dict[str, Site]:
    return {one.name: one for one in instance.sites} if instance.sites else {"site": instance.site}


def ways(instance: Instance, job: Any) -> Iterator[Way]:
    """Every way to do a job alone that keeps every limit."""
    workload: Any = instance.workload
    targets, catalog = instance.targets, load_catalog()
    active = None if job.active_parameters_b is None else job.active_parameters_b * 1e9
    model = TrainingModel.from_parameters(job.parameters_b * 1e9, active)
    deadline = job.deadline_days if job.deadline_days is not None else targets.deadline_days
    window = (instance.economics.horizon_years * 365.25 if deadline is None else deadline) - job.earliest_start_day
    for name in instance.choices.accelerators or ():
        row = catalog.accelerators[name]
        card = TrainingAccelerator(
            row.id, row.generation, row.memory_gib, row.memory_bandwidth_gb_s, row.fp16_tflops, row.fp8_tflops or 0.0,
            row.fp4_tflops or 0.0, row.scale_up_gb_s or 0.0, row.scale_up_domain, row.scale_out_gb_s, row.pcie_gb_s,
        )  # fmt: skip
        for precision in job.precisions:
            if card.peak_tflops(precision) <= 0.0:
                continue
            for layout, paid in layouts(instance, job, model, card.scale_up_domain):
                found = predict_step(
                    model, layout, card, sequence_length=job.sequence_tokens,
                    global_batch_tokens=job.global_batch_tokens, precision=precision,
                    optimizer_state=workload.optimizer_state,
                )  # fmt: skip
                used = float(layout.accelerators[0])
                if found.memory_gib[0] > row.memory_gib or used > (workload.most_accelerators or math.inf):
                    continue
                if found.mfu_fraction[0] < (targets.mfu_floor_fraction or 0.0):
                    continue
                if found.scale_up_fraction[0] > targets.nvlink_fraction:
                    continue
                if found.scale_out_fraction[0] > (targets.scale_out_fraction or math.inf):
                    continue
                width = round(used / float(layout.data_parallel[0]))
                # Over sites go whole groups of ranks that hold every expert once.
                experts, ranks = int(layout.expert_parallel[0]), int(layout.tensor_parallel[0])
                width *= experts // math.gcd(experts, ranks)
                servers = -(-paid // row.accelerators_per_server)
                days = whole_run(workload, job, row, model, float(found.step_s[0]), used)
                if days <= window:
                    for way in placed(instance, job, row, days, servers):
                        yield replace(way, precision=precision)
                if found.mfu_fraction[0] >= (targets.mfu_floor_fraction or 0.0):
                    for way in spread(instance, job, model, row, found, used, width, servers, window):
                        yield replace(way, precision=precision)


def layouts(instance: Instance, job: Any, model: TrainingModel, domain: int) -> Iterator[tuple[Layouts, int]]:
    """One-row layouts with the accelerators that are paid."""
    given: Any = instance.workload.layouts  # type: ignore[union-attr]
    sequences = max(round(job.global_batch_tokens / job.sequence_tokens), 1)
    for t, p, b, r, z in product(
        given.tensor_parallel, given.pipeline_parallel, given.micro_batch, given.recompute, given.zero_stages
    ):
        stage = -(-model.layers // p)
        if t > domain or model.attention_heads % t or (p > 1 and (p - 1) * stage >= model.layers) or (z == 3 and p > 1):
            continue
        for e in given.expert_parallel or (1,):
            for count in job.accelerator_counts:
                replicas = min(count // (t * p), max(sequences // b, 1))
                while replicas * t % e:
                    replicas -= 1
                if replicas < 1 or (model.experts or 1) % e or (e > 1 and not model.experts):
                    continue
                yield Layouts.of(
                    tensor_parallel=t, pipeline_parallel=p, data_parallel=replicas, expert_parallel=e, micro_batch=b,
                    recompute=RECOMPUTE.index(r), zero_stage=z, sequence_parallel=1 if t > 1 else 0,
                ), count  # fmt: skip


def whole_run(workload: Any, job: Any, row: Any, model: TrainingModel, step_s: float, used: float) -> float:
    """Days of a run: steps, production factor, goodput."""
    relies = workload.reliability
    share = float(
        goodput(
            used, mtbf_accelerator_hours=relies.mtbf_accelerator_hours or mtbf_hours(row.id, row.generation),
            checkpoint_blocking_s=relies.checkpoint_blocking_s, checkpoint_interval_s=relies.checkpoint_interval_s,
            restart_s=relies.restart_s, fault_tolerant_replicas=relies.fault_tolerant_replicas,
        ).goodput_fraction[0]
    )  # fmt: skip
    kind = "moe" if model.experts else "dense"
    factor = relies.production_factor or production_factor(kind, row.generation).factor
    batch = max(round(job.global_batch_tokens / job.sequence_tokens), 1) * job.sequence_tokens
    return float(math.ceil(job.tokens / batch) * step_s * factor / share / 86400.0)


def placed(instance: Instance, job: Any, row: Any, days: float, servers: int) -> Iterator[Way]:
    """The job on each pool of one site, and rented."""
    for site in sites_of(instance):
        for cooling in instance.choices.cooling or ():
            for part in bought(instance, site, row, cooling, servers, days):
                yield from kept(instance, job, row, days, [part])
    for term in instance.choices.sourcing:
        let = rented(instance, row, term, servers, days)
        if let is not None:
            yield from kept(instance, job, row, days, [let])


def spread(
    instance: Instance, job: Any, model: Any, row: Any, found: Any, used: float, width: int, servers: int, window: float
) -> Iterator[Way]:
    """The job over two linked sites, synchronous, at every split in whole replicas and servers."""
    several, size = instance.workload.multi_site, row.accelerators_per_server  # type: ignore[union-attr]
    for one in instance.wan_links:
        bits = 2.0 * 0.5 * model.parameters * several.gradient_bytes * 8.0
        step = float(found.step_s[0])
        pipe = step - float(found.parts["data"][0]) - float(found.parts["update"][0])
        light = 4.0 * one.km * 5e-6
        longer = max(step, 0.5 * pipe + bits / (one.gbit_per_s * 1e9) + light) / (1.0 - 4e-5 * one.km)
        if float(found.mfu_fraction[0]) * step / longer < (instance.targets.mfu_floor_fraction or 0.0):
            continue
        days = whole_run(instance.workload, job, row, model, longer, used)
        if days > window or used / width < 2:
            continue
        unit = math.lcm(width, size) // size
        units, idle = servers // unit, servers % unit
        first, second = one.between
        pools = [(a, b) for a in instance.choices.cooling or () for b in instance.choices.cooling or ()]
        for here in range(1, units):
            for spare_at in (0, 1) if idle else (0,):
                counts = (here * unit + idle * (spare_at == 0), (units - here) * unit + idle * (spare_at == 1))
                for a, b in pools:
                    for parts in product(
                        bought(instance, first, row, a, counts[0], days),
                        bought(instance, second, row, b, counts[1], days),
                    ):
                        yield from kept(instance, job, row, days, list(parts))


def kept(instance: Instance, job: Any, row: Any, days: float, parts: list[dict[str, Any]]) -> Iterator[Way]:
    """A way, where sites, supply and budgets allow it."""
    economics = instance.economics
    power: dict[str, float] = {}
    racks: dict[str, int] = {}
    for part in parts:
        power[part["site"]] = power.get(part["site"], 0.0) + part["kw"]
        racks[part["site"]] = racks.get(part["site"], 0) + part["racks"]
    for name, site in sites_of(instance).items():
        if power.get(name, 0.0) > (site.power_kw or math.inf) or racks.get(name, 0) > (
            math.inf if site.racks is None else site.racks
        ):
            return
    supply = instance.choices.supply.get(row.id, math.inf)
    usd = sum(part["usd"] for part in parts) + days * (job.delay_usd_per_day or 0.0)
    capital = sum(part["capital"] for part in parts)
    if sum(part["servers"] for part in parts) * row.accelerators_per_server > supply:
        return
    if usd > (economics.budget_usd or math.inf) or capital > (economics.budget_capex_usd or math.inf):
        return
    held = tuple(((part["site"], row.id, part["pool"], part["hall"]), part["servers"]) for part in parts)
    yield Way(days, usd, held, capital, power, racks)


def rented(instance: Instance, row: Any, term: str, servers: int, days: float) -> dict[str, Any] | None:
    if term == "buy":
        return None
    catalog = load_catalog()
    sizes = {row.accelerators_per_server, row.accelerators_per_host}
    prices = [
        price
        for one in catalog.rental_offers.values()
        if one.accelerator == row.id and one.accelerators in sizes and one.is_bookable and one.price_class == "list"
        and (price := one.price_usd_per_accelerator_hour(term)) is not None  # type: ignore[arg-type]
    ]  # fmt: skip
    if not prices:
        return None
    years = days / 365.25
    committed = {"on_demand": 0.0, "reserved_1yr": 1.0, "reserved_3yr": 3.0}[term]
    paid = years if committed == 0.0 else math.ceil(years / committed) * committed
    usd = servers * row.accelerators_per_server * min(prices) * 8766.0 * paid
    return {
        "site": "rented",
        "pool": term,
        "hall": "",
        "servers": servers,
        "usd": usd,
        "capital": 0.0,
        "kw": 0.0,
        "racks": 0,
    }


def bought(
    instance: Instance, site_name: str, row: Any, cooling: str, in_service: int, days: float
) -> list[dict[str, Any]]:
    """Cost of bought servers at a site over a job, spares beside them, in each hall that may be used."""
    catalog, site, economics, targets = (
        load_catalog(),
        sites_of(instance)[site_name],
        instance.economics,
        instance.targets,
    )
    price = catalog.purchase_prices.get(row.id)
    option, climate = catalog.cooling[cooling], catalog.climates[site.climate]
    refused = {"required": "air", "no": "liquid"}.get(row.liquid_cooling)
    if "buy" not in instance.choices.sourcing or price is None or option.medium == refused:
        return []
    fans = 1.0
    if row.liquid_cooling != "required":
        fans -= catalog.facility["server_fan_share_air"].typical * option.server_fan_saved_typical_fraction
    fabrics = catalog.fabric_for(row.scale_out_gb_s)
    size = row.accelerators_per_server
    wires_kw = size * next(one for one in fabrics if one.tiers == 2).power_w_per_accelerator / 1e3
    kw = row.server_power_kw * fans + wires_kw
    limit = option.rack_kw_upper if row.liquid_cooling == "required" else option.rack_kw_practical
    limit = min(limit, site.rack_kw or math.inf)
    height = 1 if row.server_rack_units >= 42 else site.rack_units // row.server_rack_units
    per_rack = min(math.floor(limit / kw + 1e-9), height)
    if per_rack < 1:
        return []
    asked = tiers.available_spares(targets, size, in_service)
    spare = max(math.ceil(targets.spare_fraction * in_service - 1e-9), targets.spare_servers, asked)
    total = in_service + spare
    racks = -(-total // per_rack)
    rate = economics.discount_rate
    server_usd = price.typical_usd * size / price.accelerators
    if option.medium == "liquid" and row.liquid_cooling == "option":
        server_usd += economics.liquid_ready_usd_per_kw * row.server_power_kw
    wire_usd = tiers.network_usd(fabrics, economics, total * size)
    rack_usd = racks * (catalog.facility["rack_hardware"].typical if economics.rack_usd is None else economics.rack_usd)
    share = captured(option)
    plants = {cooling: share * kw * total}
    if share < 1.0:
        plants[AIR] = plants.get(AIR, 0.0) + (1.0 - share) * kw * total
    life = crf(rate, economics.cooling_life_years)
    plant_usd = {
        key: catalog.cooling[key].capex_fixed_usd
        + tiers.plant_usd(catalog.cooling[key].capex_marginal_usd_per_kw, economics.cooling_prices.get(key), heat)
        for key, heat in plants.items()
    }
    own = economics.cooling_prices.get(cooling)
    doors_usd = 0.0 if own is None or own.per_rack_usd is None else own.per_rack_usd * racks
    plant_usd[cooling] = plant_usd.get(cooling, 0.0) + doors_usd
    # The mean book value over a life of n years that is written off evenly is (n + 1) / 2n of the price.
    insured = catalog.facility["insurance"].typical * (
        server_usd * total * (economics.server_life_years + 1.0) / (2.0 * economics.server_life_years)
        + wire_usd * (economics.network_life_years + 1.0) / (2.0 * economics.network_life_years)
        + sum(plant_usd.values())
    )
    yearly = (
        server_usd * total * (crf(rate, economics.server_life_years) + economics.server_maintenance_fraction)
        + wire_usd * (crf(rate, economics.network_life_years) + economics.network_maintenance_fraction)
        + rack_usd * crf(rate, economics.server_life_years)
        + insured
        + sum(usd * (life + catalog.cooling[key].maintenance_typical_fraction) for key, usd in plant_usd.items())
    )
    years = days / 365.25 if economics.charge == "job" else 1.0 / crf(rate, economics.horizon_years)
    curve = catalog.power_curves[row.generation]
    rack_scale = row.accelerators_per_server > row.accelerators_per_host
    idle_kw = (curve.idle_rack_scale_fraction if rack_scale else curve.idle_fraction) * row.server_power_kw * fans
    busy_kw = curve.training_fraction * row.server_power_kw * fans
    mean, design = _pue(option, climate, site)
    kwh = (in_service * busy_kw + spare * idle_kw + total * wires_kw) * mean * days * 24.0
    region = catalog.electricity[climate.electricity_region]
    cents = site.electricity_usd_per_kwh if site.electricity_usd_per_kwh is not None else region.price_usd_per_kwh
    kwh *= levelised(economics, economics.energy_escalation_fraction)
    capital = server_usd * total + wire_usd + rack_usd + sum(plant_usd.values())
    names = ("colocation", "own_build") if site.facility == "cheaper" else (site.facility,)
    halls = site_costs(instance.model_copy(update={"site": site}), catalog).of_fleet(kw * total, total * size, total, 0)
    return [
        {
            "site": site_name, "pool": cooling, "hall": hall, "servers": total,
            "usd": (yearly + hall_usd) * years + kwh * (cents or 0.0), "capital": capital + hall_capital,
            "yearly": yearly + hall_usd,
            "kw": kw * total * design, "racks": racks,
        }
        for hall, (hall_usd, hall_capital) in zip(names, halls, strict=True)
    ]  # fmt: skip
