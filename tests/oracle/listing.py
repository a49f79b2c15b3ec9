"""Server types, pools and deployments of an instance, listed from docs/method.md sections 1 to 7 in plain Python."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

from optimizer.catalog import Catalog, load_catalog
from optimizer.catalog.architectures import ModelArchitecture
from optimizer.catalog.hardware import Accelerator, Fabric, Term
from optimizer.catalog.place import Climate, CoolingOption
from optimizer.catalog.precision import QuantizationScheme
from optimizer.instance.inventory import OwnedServers
from optimizer.instance.model import Instance, OwnRows
from optimizer.instance.site import Site
from optimizer.instance.workload import RequestClass
from optimizer.performance.architecture import (
    Architecture,
    ParameterCounts,
    gated_delta_net,
    mamba2,
    parameter_counts,
)
from optimizer.performance.deployments import Deployments, Traffic
from optimizer.performance.factors import GENERATIONS, PRECISIONS, Factors, load_factors
from optimizer.performance.layouts import check_layouts
from optimizer.performance.serving import ServingPrediction, predict_serving
from tests.oracle.accuracy import AccuracyQuestion, Prepared
from tests.oracle.power_costs import PowerCosts, power_costs

HOURS = 8766.0
TERMS: tuple[Term, ...] = ("on_demand", "reserved_1yr", "reserved_3yr", "spot")
RESIDUAL = "air_containment_econ"
ROOM = 1e-9


@dataclass(frozen=True)
class ServerType:
    """An accelerator and how many of it one server holds."""

    id: str
    accelerator: Accelerator
    size: int
    server_usd: float | None
    discounts: tuple[tuple[int, float], ...]
    incremental: bool
    cap: float = 1.0


@dataclass(frozen=True)
class Pool:
    """Servers of one type got and cooled in one way; powers in kW of one server, network included."""

    id: str
    server_type: ServerType
    sourcing: str
    cooling: CoolingOption | None
    per_rack: int
    server_kw: float
    idle_kw: float
    fan_factor: float
    network_kw: float
    pue_mean: float
    pue_design: float
    provider: str = ""
    rent_usd: float = 0.0
    availability: float = 1.0
    by_level: bool = False
    owned: OwnedServers | None = None

    @property
    def is_bought(self) -> bool:
        """New servers, with all that is bought with them."""
        return self.sourcing == "buy"

    @property
    def in_hall(self) -> bool:
        """Stands in the planner's own hall."""
        return self.sourcing in ("buy", "owned")


@dataclass(frozen=True)
class Column:
    """A deployment in a pool.

    ``width`` is accelerators of a replica, all those of its whole servers where it is wider than one. ``capacity`` is
    weighted demand that one replica carries at the allowed utilization; ``kw_per_unit`` the IT power above idle for
    one unit of weighted demand, before PUE.
    """

    request_class: int
    pool: int
    name: str
    width: int
    scheme: str
    concurrency: int
    capacity: float
    kw_per_unit: float


@dataclass(frozen=True)
class Listing:
    """Everything that the enumeration of fleets needs."""

    instance: Instance
    catalog: Catalog
    classes: tuple[RequestClass, ...]
    demand: tuple[float, ...]
    power: PowerCosts
    pools: tuple[Pool, ...]
    columns: tuple[Column, ...]
    scheme_usd: dict[str, float]
    fabrics: dict[float, tuple[Fabric, ...]]

    def under(self, instance: Instance) -> "Listing":
        """The same for an instance that differs in demand and in limits of the fleet only."""
        classes = instance.workload.all_classes()
        return replace(
            self,
            instance=instance,
            classes=classes,
            demand=tuple(demand_of(one) for one in classes),
            power=power_costs(instance, self.catalog),
        )

    def filtered(self, pool_stays: Callable[[Pool], bool], column_stays: Callable[[Column], bool]) -> "Listing":
        """The same with fewer pools and deployments; pools that no deployment runs on go."""
        columns = [one for one in self.columns if pool_stays(self.pools[one.pool]) and column_stays(one)]
        kept = sorted({one.pool for one in columns})
        place = {old: new for new, old in enumerate(kept)}
        return replace(
            self,
            pools=tuple(self.pools[q] for q in kept),
            columns=tuple(replace(one, pool=place[one.pool]) for one in columns),
        )


def oracle_catalog(instance: Instance) -> Catalog:
    """The packaged catalogue with the rows of the instance."""
    own = instance.catalog
    if not isinstance(own, OwnRows):
        raise TypeError("the oracle reads own rows from the instance itself")
    return load_catalog().with_rows(
        accelerators=own.accelerators,
        purchase_prices=own.purchase_prices,
        rental_offers=own.rental_offers,
        cooling=own.cooling,
    )


@dataclass(frozen=True)
class Rented:
    """A size and term that somebody rents out."""

    size: int
    term: str
    provider: str
    region: str
    usd: float


def rents_of(instance: Instance, catalog: Catalog, row: Accelerator) -> list[Rented]:
    """Section 2: every offer of an accelerator that may be taken, at its price per accelerator and hour."""
    own = instance.economics.prices.get(row.id)
    chosen, economics = instance.choices, instance.economics
    bookable = [
        offer
        for offer in catalog.rental_offers.values()
        if offer.accelerator == row.id
        and offer.is_bookable
        and offer.price_class in economics.price_classes
        and (chosen.providers is None or offer.provider in chosen.providers)
        and (chosen.regions is None or offer.region in chosen.regions)
    ]
    sizes = {row.accelerators_per_server}
    found = []
    for offer in bookable:
        size = offer.accelerators
        if row.accelerators_per_server > row.accelerators_per_host == size:
            size = row.accelerators_per_server
        if size > row.accelerators_per_server:
            continue
        sizes.add(size)
        for term in TERMS:
            share = getattr(economics.rent_fallbacks, f"{term}_fraction", None)
            usd, base = offer.price_usd_per_accelerator_hour(term), offer.on_demand_usd_per_accelerator_hour
            if usd is None and share is not None and base is not None:
                usd = share * base
            if usd is not None and (own is None or getattr(own, f"{term}_usd_per_hour") is None):
                found.append(Rented(size, term, offer.provider, offer.region, usd))
    for term in TERMS:
        usd = None if own is None else getattr(own, f"{term}_usd_per_hour")
        if usd is not None:
            found += [Rented(size, term, "", "", usd) for size in sizes]
    return found


def server_types(instance: Instance, catalog: Catalog) -> list[ServerType]:
    """Section 1: what can be bought, what is owned, and every size that can be rented."""
    chosen = instance.choices.accelerators
    if chosen is None:
        names = [key for key, row in catalog.accelerators.items() if row.availability == "current"]
    else:
        names = [catalog.resolve_accelerator(name) for name in chosen]
    owned = [catalog.resolve_accelerator(one.accelerator) for one in instance.inventory]
    result = []
    for name in sorted({*names, *owned}):
        row = catalog.accelerators[name]
        own = instance.economics.prices.get(name)
        sizes = {row.accelerators_per_server, *(one.size for one in rents_of(instance, catalog, row))}
        for size in sorted(sizes):
            whole = size == row.accelerators_per_server
            price = new_server_usd(instance, catalog, row) if whole and name in names else None
            steps = own.discounts if own is not None and whole else ()
            result.append(
                ServerType(
                    f"{name} x{size}",
                    row,
                    size,
                    price,
                    tuple((step.from_servers, step.discount_fraction) for step in steps),
                    own is not None and own.discount_kind == "incremental",
                )
            )
            if whole:
                result += capped_types(instance, result.pop(), is_owned=name in owned)
    return result


def capped_types(instance: Instance, kind: ServerType, *, is_owned: bool) -> list[ServerType]:
    """Section 6: a server type in each power state; a cap is for servers in the hall, rented ones run without."""
    if kind.server_usd is None and not is_owned:
        return [kind]
    states = [kind if 1.0 in instance.choices.power_cap_fractions else replace(kind, server_usd=None)]
    for cap in sorted(set(instance.choices.power_cap_fractions) - {1.0}):
        name = f"{kind.accelerator.id}@{round(100 * cap, 6):g}% x{kind.size}"
        states.append(replace(kind, id=name, cap=cap))
    return states


#: Section 6: speed under a cap by cap over draw: what memory bounds, and what arithmetic bounds.
SPEEDS = {
    "memory": {0.593: 0.658, 0.683: 0.952, 1.0: 1.0},
    "arithmetic": {0.593: 0.658, 0.718: 0.813, 0.848: 0.951, 1.0: 1.0},
}


def speed(kind: str, share: float) -> float:
    """Speed at a cap that is ``share`` of the draw, on the line between the points around it."""
    if share >= 1.0:
        return 1.0
    known = SPEEDS[kind]
    left = max(one for one in known if one <= share)
    right = min(one for one in known if one > share)
    return known[left] + (share - left) / (right - left) * (known[right] - known[left])


def capped_row(row: Accelerator, catalog: Catalog, cap: float, *, is_large_dense: bool) -> Accelerator:
    """The accelerator as it runs under a cap."""
    if cap == 1.0:
        return row
    curve = catalog.power_curves[row.generation]
    memory = speed("memory", cap / (curve.f1_dense_fraction if is_large_dense else curve.f1_fraction))
    matrix = speed("arithmetic", cap / curve.prefill_fraction)
    changed = {"memory_bandwidth_gb_s": row.memory_bandwidth_gb_s * memory}
    for name in ("fp16_tflops", "fp8_tflops", "int8_tops", "fp4_tflops", "int4_tops"):
        if getattr(row, name) is not None:
            changed[name] = getattr(row, name) * matrix
    return row.model_copy(update=changed)


def most_kw(row: Accelerator, catalog: Catalog, cap: float) -> float:
    """Most power of a server in air under a cap."""
    curve = catalog.power_curves[row.generation]
    loss = curve.kappa_liquid_fraction if row.liquid_cooling == "required" else curve.kappa_fraction
    idle = curve.idle_fraction
    if row.accelerators_per_server > row.accelerators_per_host:
        idle = curve.idle_rack_scale_fraction
    less = row.accelerators_per_server * row.tdp_w * (1.0 - cap) * (1.0 + loss) / 1000.0
    return max(row.server_power_kw - less, idle * row.server_power_kw)


def new_server_usd(instance: Instance, catalog: Catalog, row: Accelerator) -> float | None:
    """Price of a whole server, undiscounted."""
    own = instance.economics.prices.get(row.id)
    listed = catalog.purchase_prices.get(row.id)
    if own is not None and own.server_usd is not None:
        return own.server_usd
    if listed is None:
        return None
    usd: float = getattr(listed, f"{instance.economics.price_level}_usd")
    return usd * row.accelerators_per_server / listed.accelerators


def plant_overhead(option: CoolingOption, temperature: float, *, residual: bool) -> float:
    """c(T) of docs/method.md section 6: cooling power per IT power at an outside temperature."""
    if residual:
        phi, rho = option.residual_air_distribution_fraction, option.residual_air_rejection_fraction
        full, start = option.residual_air_t_full_c, option.residual_air_t_start_c
        reference, slope = option.residual_air_cop_ref, option.residual_air_cop_slope_per_k
        if phi is None or rho is None or reference is None:
            raise ValueError(f"{option.id} leaves heat to air but states no residual air plant")
        slope = option.cop_slope_per_k if slope is None else slope
    else:
        phi, rho = option.distribution_fraction, option.rejection_fraction
        full, start = option.t_full_c, option.t_start_c
        reference, slope = option.cop_ref, option.cop_slope_per_k
    free = 0.0
    if full is not None and start is not None:
        free = min(max((start - temperature) / (start - full), 0.0), 1.0)
    performance = min(max(reference - slope * (temperature - option.cop_ref_c), 2.5), 8.0)
    return phi + rho + (1.0 - free) * (1.0 + option.electrical_loss_fraction) / performance


def captured(option: CoolingOption) -> float:
    """Share of the heat that goes to the option's own plant."""
    return option.liquid_capture_typical_fraction if option.medium == "liquid" else 1.0


def pue(option: CoolingOption, climate: Climate, site: Site) -> tuple[float, float]:
    """Annual mean at the plant's load, and hottest hours at full load."""
    dry = option.heat_rejection_driver == "dry_bulb"
    own = site.climate_bins
    if own is None:
        pairs = list(zip(climate.bin_mid_c, climate.dry_bulb_hours if dry else climate.wet_bulb_hours, strict=True))
    elif own.dry_bulb_c is not None:
        pairs = [(hour, 1.0) for hour in (own.dry_bulb_c if dry else own.wet_bulb_c) or ()]
    else:
        pairs = list(
            zip(own.temperature_c or (), (own.dry_bulb_hours if dry else own.wet_bulb_hours) or (), strict=True)
        )
    load = site.plant_load_fraction

    def at(one: CoolingOption, temperature: float) -> float:
        value = captured(one) * plant_overhead(one, temperature, residual=False)
        if captured(one) < 1.0:
            value += (1.0 - captured(one)) * plant_overhead(one, temperature, residual=True)
        return 1.0 + one.electrical_loss_fraction + value

    fans = 1.0 / load if option.fan_speed == "fixed" else max(load, 0.25) ** 2.75 / load
    changed = {"distribution_fraction": option.distribution_fraction * fans}
    changed["electrical_loss_fraction"] = option.electrical_loss_fraction * (0.4 / load + 0.3 + 0.3 * load)
    if option.residual_air_distribution_fraction is not None:
        changed["residual_air_distribution_fraction"] = option.residual_air_distribution_fraction * fans
    slowed = option.model_copy(update=changed)
    hours = sum(count for _, count in pairs)
    mean = sum(at(slowed, temperature) * count for temperature, count in pairs if count > 0) / hours
    return mean, at(option, max(temperature for temperature, count in pairs if count > 0))


def hall_pool(
    instance: Instance, catalog: Catalog, kind: ServerType, option: CoolingOption, tiers: tuple[Fabric, ...]
) -> Pool | None:
    """Sections 5 and 6: servers of one type in the hall under one option; None where a rack takes none."""
    row = kind.accelerator
    curve = catalog.power_curves[row.generation]
    rack_scale = row.accelerators_per_server > row.accelerators_per_host
    idle_share = curve.idle_rack_scale_fraction if rack_scale else curve.idle_fraction
    network_kw = kind.size * next(t.power_w_per_accelerator for t in tiers if t.tiers == 2) / 1000.0
    required = row.liquid_cooling == "required"
    fan_share = catalog.facility["server_fan_share_air"].typical
    factor = 1.0 if required else 1.0 - fan_share * option.server_fan_saved_typical_fraction
    server_kw = most_kw(row, catalog, kind.cap) * factor + network_kw
    rack_kw = option.rack_kw_upper if required else option.rack_kw_practical
    if instance.site.rack_kw is not None:
        rack_kw = min(rack_kw, instance.site.rack_kw)
    by_height = 1 if row.server_rack_units >= 42 else instance.site.rack_units // row.server_rack_units
    per_rack = min(math.floor(rack_kw / server_kw + ROOM), by_height)
    if per_rack < 1:
        return None
    mean, design = pue(option, catalog.climates[instance.site.climate], instance.site)
    idle_kw = idle_share * row.server_power_kw * factor + network_kw
    name = f"{kind.id}/buy/{option.id}"
    return Pool(name, kind, "buy", option, per_rack, server_kw, idle_kw, factor, network_kw, mean, design)


def list_pools(instance: Instance, catalog: Catalog, fabrics: dict[float, tuple[Fabric, ...]]) -> list[Pool]:
    """Section 1 and 5: owned and bought pools by cooling option, rented pools by term, provider and region."""
    names = instance.choices.cooling
    options = [
        row
        for key, row in sorted(catalog.cooling.items())
        if (row.offered_by_default if names is None else key in names)
    ]
    chosen = instance.choices
    allowed = None if chosen.accelerators is None else {catalog.resolve_accelerator(a) for a in chosen.accelerators}
    hourly = instance.workload.load.hourly_fractions
    by_the_hour = hourly is not None and min(hourly) < max(hourly)
    pools: list[Pool] = []
    for kind in server_types(instance, catalog):
        row = kind.accelerator
        tiers = fabrics.setdefault(row.scale_out_gb_s, catalog.fabric_for(row.scale_out_gb_s))
        whole = kind.size == row.accelerators_per_server
        hall = kind.cap in instance.choices.power_cap_fractions
        for one in instance.inventory if whole and hall else ():
            if catalog.resolve_accelerator(one.accelerator) == row.id:
                pool = hall_pool(instance, catalog, kind, catalog.cooling[one.cooling], tiers)
                if pool is not None:
                    name = f"{kind.id}/owned/{one.cooling}"
                    pools.append(replace(pool, id=name, sourcing="owned", owned=one))
        if kind.server_usd is not None and "buy" in chosen.sourcing:
            for option in options:
                if (option.medium == "liquid" and row.liquid_cooling == "no" and not chosen.liquid_retrofit) or (
                    option.medium == "air" and row.liquid_cooling == "required"
                ):
                    continue
                pool = hall_pool(instance, catalog, kind, option, tiers)
                if pool is not None:
                    pools.append(pool)
        if (allowed is not None and row.id not in allowed) or kind.cap < 1.0:
            continue
        for offer in rents_of(instance, catalog, row):
            if offer.size == kind.size and offer.term in chosen.sourcing:
                availability = chosen.spot_availability_fraction if offer.term == "spot" else 1.0
                assert availability is not None
                place = "/".join(one for one in (offer.term, offer.provider, offer.region) if one)
                pools.append(
                    Pool(
                        f"{kind.id}/{place}",
                        kind,
                        offer.term,
                        None,
                        0,
                        0.0,
                        0.0,
                        1.0,
                        0.0,
                        1.0,
                        1.0,
                        offer.provider,
                        offer.usd,
                        availability,
                        by_the_hour and offer.term in ("on_demand", "spot"),
                    )
                )
    return pools


def to_architecture(row: ModelArchitecture) -> Architecture:
    """A catalogue row as the performance model takes it."""
    linear = None
    if row.linear_kind == "gdn":
        linear = gated_delta_net(
            row.hidden,
            row.linear_key_heads,
            row.linear_value_heads,
            row.linear_key_dim,
            row.linear_value_dim,
            row.linear_convolution,
        )
    elif row.linear_kind == "mamba2":
        linear = mamba2(
            row.hidden,
            row.linear_value_heads,
            row.linear_value_dim,
            row.linear_key_dim,
            row.linear_key_heads,
            row.linear_convolution,
        )
    if row.attention == "dsv4":
        raise NotImplementedError("compressed caches are outside the oracle")
    return Architecture(
        layers=row.layers,
        hidden_size=row.hidden,
        attention_heads=row.heads,
        kv_heads=row.kv_heads,
        head_dim=row.head_dim,
        v_head_dim=row.v_head_dim,
        ffn_size=row.ffn,
        vocabulary=row.vocabulary,
        mlp_matrices=row.mlp_matrices,
        tied_embeddings=row.tied_embeddings,
        qkv_bias=row.qkv_bias,
        output_bias=row.output_bias,
        mlp_bias=row.mlp_bias,
        qk_norm=row.qk_norm,
        norms_per_layer=row.norms_per_layer,
        norm_vectors=2 if row.norm == "ln" else 1,
        gated_attention=row.gated_query,
        attention_sinks=row.attention_sinks,
        experts=row.experts,
        active_experts=row.active_experts,
        shared_experts=row.shared_experts,
        shared_ffn_size=row.shared_ffn,
        dense_layers=row.dense_layers,
        moe_layers=row.moe_layers,
        moe_ffn_size=row.moe_ffn,
        moe_latent_size=row.moe_latent,
        q_lora_rank=row.q_lora,
        kv_lora_rank=row.kv_lora,
        rope_dim=row.rope_dim,
        nope_dim=row.nope_dim,
        index_heads=row.index_heads,
        index_dim=row.index_dim,
        full_layers=row.attention_layers,
        sliding_layers=row.sliding_layers,
        sliding_window=row.sliding_window,
        global_head_dim=row.global_head_dim,
        global_kv_heads=row.global_kv_heads,
        global_shared_kv=row.shared_kv_projection,
        linear_layers=row.linear_layers,
        linear_key_heads=linear.key_heads if linear else 0,
        linear_value_heads=linear.value_heads if linear else 0,
        linear_parameters_per_layer=linear.parameters if linear else 0,
        linear_state_bytes_per_layer=linear.state_bytes if linear else 0.0,
        position_embeddings=row.position_embeddings,
        max_context_tokens=row.max_context_tokens,
        native_dtype=row.native_dtype,
    )


@dataclass(frozen=True)
class Layout:
    """Degrees of one replica."""

    tensor: int
    pipeline: int
    expert: int
    data: int

    @property
    def width(self) -> int:
        """Accelerators of one replica."""
        return self.tensor * self.pipeline * self.data


def layouts(instance: Instance, is_mixture: bool) -> list[Layout]:
    """Every combination of the allowed degrees."""
    chosen = instance.choices
    result = []
    degrees_of = (chosen.tensor_parallel, chosen.pipeline_parallel, chosen.attention_data_parallel)
    for tensor, pipeline, data in product(*(sorted(set(one)) for one in degrees_of)):
        experts = chosen.expert_parallel
        degrees = {1, tensor * data} if experts is None and is_mixture else {1} if experts is None else set(experts)
        result += [Layout(tensor, pipeline, expert, data) for expert in sorted(degrees)]
    return result


class DeploymentLister:
    """Predicts one deployment after the other at every concurrency and keeps the largest admissible one."""

    def __init__(self, instance: Instance, catalog: Catalog, factors: Factors) -> None:
        self.instance = instance
        self.catalog = catalog
        self.factors = factors
        model = instance.workload.model
        row = catalog.models[catalog.resolve_model(model)] if isinstance(model, str) else model
        if not isinstance(row, ModelArchitecture):
            raise TypeError("the oracle knows models by name and inline rows")
        self.row = row
        self.architecture = to_architecture(self.row)
        self.counts: ParameterCounts = parameter_counts(self.architecture)
        self.is_mixture = self.row.experts > 0
        self.is_large_dense = not self.is_mixture and self.counts.active >= 30e9
        hours: dict[str, float] = {}
        for (accelerator, _, term), offer in catalog.cheapest_offers(("list",)).items():
            usd = offer.price_usd_per_accelerator_hour("on_demand")
            if term == "on_demand" and usd is not None:
                hours[accelerator] = min(usd, hours.get(accelerator, math.inf))
        self.accuracy = AccuracyQuestion(
            catalog,
            self.counts,
            self.is_mixture,
            self.row.native_scheme,
            instance.targets.accuracy_confidence,
            instance.targets.accuracy_floor(),
            hours,
        )

    def schemes(self) -> dict[tuple[str, str, str], Prepared]:
        """Schemes that hold the accuracy floor, with what they cost once."""
        chosen = self.instance.choices
        names = sorted(self.catalog.schemes) if chosen.schemes is None else chosen.schemes
        steps: tuple[str, ...] = chosen.recovery_steps
        prepared = self.accuracy.prepared(list(product(names, chosen.kv_schemes, steps)))
        floor = self.instance.targets.accuracy_floor()
        return {key: one for key, one in prepared.items() if one.recovery >= floor}

    def deployments(
        self, row: Accelerator, size: int, layout: Layout, scheme: str, kv_scheme: str
    ) -> Deployments | None:
        """One column for the performance model; None where the accelerator has no use for the format."""
        weights: QuantizationScheme = self.catalog.schemes[scheme]
        cache = self.catalog.kv_schemes[kv_scheme]
        support = weights.support(row.generation)
        if support == "none" or cache.support(row.generation) == "none":
            return None
        compute = weights.compute if support == "native" else "fp16"
        rate = row.matrix_tflops(compute)
        if rate is None or compute not in PRECISIONS:
            return None
        block = max(self.row.native_block_width if self.row.native_scheme == scheme else 1, weights.block_width)
        mask = check_layouts(
            self.architecture,
            tensor_parallel=layout.tensor,
            pipeline_parallel=layout.pipeline,
            expert_parallel=layout.expert,
            attention_data_parallel=layout.data,
            scale_up_domain=min(row.scale_up_domain, size),
            accelerators_per_host=min(row.accelerators_per_host, size),
            quantization_block=block,
            context_tokens=self.instance.workload.longest_context_tokens(),
        )
        if int(mask) != 0:
            return None
        return Deployments.of(
            generation_index=GENERATIONS.index(row.generation),
            precision_index=PRECISIONS.index(compute),
            memory_gib=row.memory_gib,
            memory_bandwidth_gb_s=row.memory_bandwidth_gb_s,
            compute_tflops=rate,
            fp16_tflops=row.fp16_tflops,
            scale_up_gb_s=row.scale_up_gb_s or 0.0,
            scale_up_pair_gb_s=row.scale_up_pair_gb_s or row.scale_up_gb_s or 0.0,
            scale_up_domain=row.scale_up_domain,
            scale_out_gb_s=row.scale_out_gb_s,
            pcie_gb_s=row.pcie_gb_s,
            tdp_w=row.tdp_w,
            accelerators_per_host=row.accelerators_per_host,
            tensor_parallel=layout.tensor,
            pipeline_parallel=layout.pipeline,
            expert_parallel=layout.expert,
            attention_data_parallel=layout.data,
            weight_bytes=weights.bytes_per_weight,
            attention_weight_bytes=2.0
            if self.row.native_scope == "experts" and self.row.native_scheme == scheme
            else weights.bytes_per_weight,
            kv_bytes=cache.bytes_per_element,
        )

    def traffic(self, request_class: RequestClass) -> Traffic:
        """The class as the performance model takes it."""
        engine = self.instance.workload.engine
        return Traffic(
            input_tokens=request_class.request.input_tokens,
            output_tokens=request_class.request.output_tokens,
            max_context_tokens=self.instance.workload.longest_context_tokens(),
            prefix_hit_fraction=request_class.request.prefix_hit_fraction,
            engine="trtllm" if engine == "tensorrt-llm" else engine,
            sequence_slots=self.instance.choices.sequence_slots or 0,
        )

    def slots(self, row: Accelerator) -> int:
        """Sequences that one rank of the engine schedules: as told, else 1,024 (256 on small cards and on A100).

        SGLang and TensorRT-LLM have 2,048 everywhere.
        """
        if self.instance.choices.sequence_slots is not None:
            return self.instance.choices.sequence_slots
        if self.instance.workload.engine in ("sglang", "tensorrt-llm"):
            return 2048
        return 256 if row.memory_gib < 70 or row.generation == "ampere" else 1024

    def largest(
        self, row: Accelerator, found: Deployments, request_class: RequestClass
    ) -> tuple[int, ServingPrediction] | None:
        """Largest concurrency at which no limit breaks, by looking at every one of them, and the prediction there.

        The engine holds ``largest_concurrency`` at most: its pool of memory and its slots.
        """
        targets, own = self.instance.targets, request_class.targets
        top = self.instance.choices.max_concurrency * int(found.attention_data_parallel[0])
        seen = predict_serving(
            self.architecture,
            found.take([0] * top),  # type: ignore[arg-type]
            self.traffic(request_class),
            list(range(1, top + 1)),
            self.factors,
            usable_memory_fraction=targets.vram_fraction,
        )
        bounds = {
            "total_gib": [targets.vram_fraction * row.memory_gib, targets.vram_gib_per_accelerator],
            "weights_gib": [targets.weights_gib_per_accelerator],
            "tpot_ms": [own.tpot_ms if own.tpot_ms is not None else targets.tpot_ms],
            "ttft_ms": [own.ttft_ms if own.ttft_ms is not None else targets.ttft_ms],
            "latency_ms": [own.latency_ms if own.latency_ms is not None else targets.latency_ms],
            "nvlink_gb_s": [targets.nvlink_fraction * float(seen.nvlink_limit_gb_s[0]), targets.nvlink_gb_s],
        }
        held = min(int(float(seen.largest_concurrency[0])), self.slots(row) * int(found.attention_data_parallel[0]))
        for index in range(min(top, held) - 1, -1, -1):
            if all(
                float(getattr(seen, name)[index]) <= bound
                for name, several in bounds.items()
                for bound in several
                if bound is not None
            ):
                at = index + 1
                single = predict_serving(
                    self.architecture,
                    found,
                    self.traffic(request_class),
                    at,
                    self.factors,
                    usable_memory_fraction=targets.vram_fraction,
                )
                return at, single
        return None


def busy_air_kw(
    row: Accelerator, catalog: Catalog, occupied: float, cap: float = 1.0, *, is_large_dense: bool
) -> float:
    """Section 6: power of one server in air, ``occupied`` accelerators busy at load 1, the others idle."""
    curve = catalog.power_curves[row.generation]
    size = row.accelerators_per_server
    rack_scale = size > row.accelerators_per_host
    idle = row.server_power_kw * (curve.idle_rack_scale_fraction if rack_scale else curve.idle_fraction)
    share = min(cap, curve.f1_dense_fraction if is_large_dense else curve.f1_fraction)
    loss = curve.kappa_liquid_fraction if row.liquid_cooling == "required" else curve.kappa_fraction
    full = idle + size * row.tdp_w / 1000.0 * max(share - curve.f_idle_fraction, 0.0) * (1.0 + loss)
    return float(idle + occupied / size * (min(most_kw(row, catalog, cap), full) - idle))


def weight_of(request_class: RequestClass, latency_ms: float) -> float:
    """Section 4: what one request per second counts for in the unit of the demand."""
    if request_class.demand.concurrent_users is None:
        return 1.0
    return request_class.demand.think_time_s + latency_ms / 1000.0


def demand_of(request_class: RequestClass) -> float:
    """Section 4: right-hand side of a class at the peak."""
    demand = request_class.demand
    if demand.requests_per_s is not None:
        return demand.requests_per_s
    if demand.output_tokens_per_s is not None:
        return demand.output_tokens_per_s / request_class.request.output_tokens
    assert demand.concurrent_users is not None
    return demand.concurrent_users


def _replicas(lister: DeploymentLister, pools: list[Pool], classes: tuple[RequestClass, ...]) -> list[Column]:
    """Replicas that do both phases, in every pool."""
    instance, schemes = lister.instance, lister.schemes()
    columns: list[Column] = []
    known: dict[tuple[str, int, float, Layout, str, str, int], tuple[int, ServingPrediction] | None] = {}
    for q, pool in enumerate(pools):
        size, cap = pool.server_type.size, pool.server_type.cap
        row = capped_row(pool.server_type.accelerator, lister.catalog, cap, is_large_dense=lister.is_large_dense)
        for layout, (scheme, kv_scheme, step), (b, request_class) in product(
            layouts(instance, lister.is_mixture), schemes, list(zip(range(len(classes)), classes, strict=True))
        ):
            group = layout.tensor * layout.data
            if group > size or (layout.width > size and not pool.in_hall):
                continue
            key = (row.id, size, cap, layout, scheme, kv_scheme, b)
            if key not in known:
                found = lister.deployments(row, size, layout, scheme, kv_scheme)
                known[key] = None if found is None else lister.largest(row, found, request_class)
            best = known[key]
            if best is None:
                continue
            concurrency, seen = best
            if layout.width <= size:
                slots = size // layout.width
                blocks, occupied, width = 1.0 / slots, float(slots * layout.width), layout.width
            else:
                whole = math.ceil(layout.pipeline / (size // group))
                blocks, occupied, width = float(whole), layout.width / whole, whole * size
            rate, latency = float(seen.requests_per_s[0]), float(seen.latency_ms[0])
            name = f"{layout} {scheme} {kv_scheme} {step}"
            column = _column(lister, pool, request_class, name, (width, blocks, occupied), concurrency, rate, latency)
            columns.append(replace(column, request_class=b, pool=q, scheme=f"{scheme}+{kv_scheme}+{step}"))
    return columns


def _column(
    lister: DeploymentLister,
    pool: Pool,
    request_class: RequestClass,
    name: str,
    room: tuple[int, float, float],
    concurrency: int,
    rate: float,
    latency_ms: float,
) -> Column:
    """What a replica or unit carries and draws; ``room``: accelerators, servers blocked, accelerators busy in one."""
    width, blocks, occupied = room
    weight, kw = weight_of(request_class, latency_ms), 0.0
    if pool.in_hall:
        row = pool.server_type.accelerator
        cap = pool.server_type.cap
        busy = busy_air_kw(row, lister.catalog, occupied, cap, is_large_dense=lister.is_large_dense)
        above = busy * pool.fan_factor + pool.network_kw - pool.idle_kw
        kw = above * blocks / rate / weight
    capacity = weight * lister.instance.targets.peak_utilization_fraction * rate * pool.availability
    return Column(0, 0, name, width, "", concurrency, capacity, kw)


def _units(lister: DeploymentLister, pools: list[Pool], classes: tuple[RequestClass, ...]) -> list[Column]:
    """Units of two roles, in every pool that they fit."""
    from tests.oracle.units import Unit, units

    instance = lister.instance
    columns: list[Column] = []
    known: dict[tuple[str, int, float, str, str, int], list[Unit]] = {}
    for q, pool in enumerate(pools):
        size, cap = pool.server_type.size, pool.server_type.cap
        row = capped_row(pool.server_type.accelerator, lister.catalog, cap, is_large_dense=lister.is_large_dense)
        for (scheme, kv_scheme, step), (b, one) in product(lister.schemes(), list(enumerate(classes))):
            key = (row.id, size, cap, scheme, kv_scheme, b)
            if key not in known:
                parts = {}
                for layout in layouts(instance, lister.is_mixture):
                    found = None
                    if layout.tensor * layout.data <= size:
                        found = lister.deployments(row, size, layout, scheme, kv_scheme)
                    if found is not None:
                        parts[layout] = found
                known[key] = list(units(lister, row, size, one, parts))
            for unit in known[key]:
                if unit.servers and not pool.in_hall:
                    continue
                if unit.servers:
                    room = (unit.servers * size, float(unit.servers), unit.width / unit.servers)
                else:
                    slots = size // unit.width
                    room = (unit.width, 1.0 / slots, float(slots * unit.width))
                name = f"{unit.name} {scheme} {kv_scheme} {step}"
                column = _column(lister, pool, one, name, room, unit.concurrency, unit.requests_per_s, unit.latency_ms)
                columns.append(replace(column, request_class=b, pool=q, scheme=f"{scheme}+{kv_scheme}+{step}"))
    return columns


def list_instance(instance: Instance) -> Listing:
    """List everything of an instance, deployments predicted one by one."""
    catalog = oracle_catalog(instance)
    fabrics: dict[float, tuple[Fabric, ...]] = {}
    pools = list_pools(instance, catalog, fabrics)
    lister = DeploymentLister(instance, catalog, load_factors())
    classes = instance.workload.all_classes()
    schemes = lister.schemes()
    columns: list[Column] = []
    if "unified" in instance.choices.serving_roles:
        columns += _replicas(lister, pools, classes)
    if "disaggregated" in instance.choices.serving_roles:
        columns += _units(lister, pools, classes)
    region = instance.site.electricity_region or catalog.climates[instance.site.climate].electricity_region
    price = instance.site.electricity_usd_per_kwh
    listed = catalog.electricity[region].price_usd_per_kwh if price is None else price
    assert listed is not None
    return Listing(
        instance,
        catalog,
        classes,
        tuple(demand_of(one) for one in classes),
        power_costs(instance, catalog),
        tuple(pools),
        tuple(columns),
        {"+".join(key): prepared.capital_usd for key, prepared in schemes.items()},
        fabrics,
    )
