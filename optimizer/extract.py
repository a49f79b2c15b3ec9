"""From a solution of the program to a plan: whole counts, exact rates, packing, bill, headroom."""

import math
from collections.abc import Mapping
from typing import Literal

from optimizer.candidates import ENGINE_NAMES
from optimizer.climate import site_climate
from optimizer.costs import BILL_COMPONENTS
from optimizer.costs.bill import assumed_fraction, bill_lines, by_component, oldest_price
from optimizer.costs.environment import water_m3_per_kwh
from optimizer.costs.network import network_order
from optimizer.costs.staff import POSTS
from optimizer.costs.term import QuantityKey, capital_recovery_factor
from optimizer.costs.tokens import usd_per_million_tokens_of_year
from optimizer.costs.unit_costs import with_unit_costs
from optimizer.fleet import Fleet, at_peak, fleet_quantities, linked_accelerators
from optimizer.headroom import headroom_rows
from optimizer.instance.model import Instance
from optimizer.offer import Offer
from optimizer.packing import pack
from optimizer.performance.bands import METRICS
from optimizer.performance.confidence import band_multipliers, shown_bands
from optimizer.performance.factors import GENERATIONS
from optimizer.plan import (
    Bill,
    CoolingPlant,
    Deployment,
    Level,
    NetworkTier,
    Plan,
    Prediction,
    PrefillRole,
    ServerGroup,
    StopReason,
)
from optimizer.plant_load import load_fractions, load_messages, own_load
from optimizer.power_states import UNCAPPED
from optimizer.program_data import Offered, Pair, ProgramData
from optimizer.setting import Pool
from optimizer.solver import Options, Outcome, Reason
from optimizer.sources import catalog_rows, defaulted, messages, provenance, search_count
from optimizer.units import HOURS_PER_YEAR, SECONDS_PER_HOUR

#: Plans within this share of the least cost count as equal.
TIE = 1e-6


def make_plan(
    offer: Offer,
    data: ProgramData,
    fleet: Fleet,
    outcome: Outcome,
    options: Options,
    solver: str,
    beside: Plan | None = None,
) -> Plan:
    """The plan of a fleet. Runners-up are added by the caller.

    ``beside`` is another plan of the same offer: what it was made from (defaults, hashes, counts) is not made again.
    """
    setting, screened = data.setting, offer.screened
    instance = setting.instance
    quantities = fleet_quantities(data, fleet)
    spare_share: dict[str, float] = {}
    for type_id, members in data.server_types.items():
        bought = [q for q in members if data.pools[q].is_bought]
        total = sum(fleet.servers.get(q, 0) for q in bought)
        spare = sum(fleet.spare.get(q, 0) for q in bought)
        if total:
            spare_share[type_id] = spare / total
    spare_share.update({q: fleet.spare.get(q, 0) / count for q, count in fleet.servers.items()})
    lines = bill_lines(data.terms, quantities, spare_share)
    yearly = math.fsum(line.usd_per_year for line in lines)
    tokens = tokens_per_year(data, fleet)
    bill = Bill(
        lines=lines,
        usd_per_year_by_component=by_component(lines, BILL_COMPONENTS),
        usd_per_year=yearly,
        usd_per_hour=yearly / HOURS_PER_YEAR,
        usd_over_horizon=yearly
        / capital_recovery_factor(instance.economics.discount_rate, instance.economics.horizon_years),
        usd_per_million_output_tokens=usd_per_million_tokens_of_year(yearly, tokens),
        capital_usd=math.fsum(line.capital_usd for line in lines),
        assumed_fraction=assumed_fraction(lines),
        oldest_price=oldest_price(lines),
    )
    deployments = tuple(deployment_row(offer, data, fleet, pair) for pair in fleet.replicas)
    groups = tuple(server_row(data, fleet, q) for q in fleet.servers)
    # Nothing has a negative cost, so 0 is a bound even before the solver knows one.
    bound = min(max(outcome.bound, 0.0), yearly / HOURS_PER_YEAR)
    gap = max(0.0, 1.0 - bound / (yearly / HOURS_PER_YEAR)) if yearly else 0.0
    # Ties are broken among plans up to TIE dearer than the least cost.
    proven = outcome.reason is Reason.OPTIMAL and gap <= options.gap + TIE
    hall = {q: count for q, count in fleet.servers.items() if data.pools[q].in_hall}
    busy = {q: quantities["BusyKwh", q] for q in hall}
    it_kwh = {q: data.idle_kw[q] * HOURS_PER_YEAR * count + busy[q] for q, count in hall.items()}
    energy = math.fsum(kwh * data.pools[q].pue_mean for q, kwh in it_kwh.items())
    loads = load_fractions(data, fleet.servers, it_kwh)
    plan = Plan(
        name=instance.name,
        outcome=StopReason(
            reason=outcome.reason.value,
            holds="proven" if proven else "feasible",
            objective_usd_per_hour=yearly / HOURS_PER_YEAR,
            bound_usd_per_hour=bound,
            gap=gap,
            requested_gap=options.gap,
            solver=solver,
        ),
        deployments=deployments,
        servers=groups,
        packing=pack(data, fleet),
        plants=plant_rows(data, quantities),
        network=tuple(
            NetworkTier(fabric=network_order(setting, speed, count)[0].fabric.id, accelerators=count)
            for speed, count in linked_accelerators(data, fleet).items()
        ),
        levels=tuple(
            Level(fraction=one.fraction, hours_per_year=one.hours_per_year, usd_per_kwh=one.usd_per_kwh)
            for one in setting.levels
        ),
        accelerators=sum(data.pools[q].server_type.accelerators * count for q, count in fleet.servers.items()),
        power_kw=math.fsum(data.pools[q].server_kw * data.pools[q].pue_design * count for q, count in hall.items()),
        energy_kwh_per_year=energy,
        plant_load_fractions=loads,
        facility=used_facility(instance, quantities) if hall else None,
        posts=quantities.get(POSTS, 0.0),
        carbon_tonnes_per_year=energy * setting.tonnes_per_kwh(),
        water_m3_per_year=math.fsum(it_kwh[q] * water_m3_per_kwh(data.pools[q]) for q in hall),
        bill=bill,
        headroom=headroom_rows(offer, data, at_peak(data, fleet), fleet.servers, fleet.spare, busy, bill),
        runners_up=(),
        search=beside.search if beside else search_count(screened, int(offer.kept.size)),
        messages=(*messages(data, fleet), *load_messages(data, own_load(data, loads, quantities), yearly)),
        defaults=beside.defaults if beside else defaulted(instance),
        instance=instance,
        catalog_rows=catalog_rows(data, screened, fleet, quantities),
        provenance=beside.provenance if beside else provenance(instance, options, solver),
    )
    return with_unit_costs(plan)


def used_facility(instance: Instance, quantities: Mapping[QuantityKey, float]) -> Literal["colocation", "own_build"]:
    """Hall that bought servers stand in."""
    facility = instance.site.facility
    if facility != "cheaper":
        return facility
    return "own_build" if ("HallKw", "site") in quantities else "colocation"


def tokens_per_year(data: ProgramData, fleet: Fleet) -> float:
    """Output tokens served in a year."""
    hours = [level.hours_per_year for level in data.billed_levels.values()]
    return sum(
        sum(h * r for h, r in zip(hours, rates, strict=True))
        * SECONDS_PER_HOUR
        * data.setting.classes[data.deployments[d].class_index].request.output_tokens
        for (d, _), rates in fleet.rates.items()
    )


def deployment_row(offer: Offer, data: ProgramData, fleet: Fleet, pair: Pair) -> Deployment:
    """One deployment of the plan with its prediction."""
    d, q = pair
    one, pool = data.deployments[d], data.pools[q]
    screened, candidates = offer.screened, offer.screened.candidates
    position = one.row
    row = int(screened.rows[position])
    seen = screened.prediction
    scheme = candidates.schemes[int(candidates.scheme_index[row])]

    def at(name: str) -> float:
        return float(getattr(seen, name)[position])

    accuracy = scheme.accuracy
    confidence = data.setting.instance.targets.confidence
    band = band_multipliers(
        candidates.model.catalog_id,
        ENGINE_NAMES[data.setting.instance.workload.engine],
        GENERATIONS.index(pool.server_type.accelerator.generation),
        two_roles=bool(candidates.prefill_replicas[row]),
        is_capped=pool.server_type.power_cap_fraction < UNCAPPED,
    )
    return Deployment(
        id=d,
        request_class=data.setting.classes[one.class_index].name,
        accelerator=pool.server_type.accelerator.id,
        server_type=one.server_type,
        power_cap_fraction=pool.server_type.power_cap_fraction,
        pool=q,
        tensor_parallel=int(candidates.tensor_parallel[row]),
        pipeline_parallel=int(candidates.pipeline_parallel[row]),
        expert_parallel=int(candidates.expert_parallel[row]),
        attention_data_parallel=int(candidates.attention_data_parallel[row]),
        accelerators_per_replica=one.width,
        prefill=prefill_role(offer, one),
        decode_replicas=int(candidates.decode_replicas[row]),
        scheme=scheme.scheme.id,
        kv_scheme=scheme.kv_scheme.id,
        recovery=scheme.recovery,
        concurrency=int(screened.concurrency[row]),
        replicas=fleet.replicas[pair],
        rates_requests_per_s=fleet.rates[pair],
        replicas_by_level=fleet.running.get(pair, ()),
        prediction=Prediction(
            ttft_ms=at("ttft_ms"),
            tpot_ms=at("tpot_ms"),
            latency_ms=at("latency_ms"),
            requests_per_s=at("requests_per_s"),
            output_tokens_per_s=at("output_tokens_per_s"),
            vram_gib=at("total_gib"),
            vram_items_gib={
                name: at(f"{name}_gib")
                for name in ("weights", "kv", "activation", "graphs", "communication", "runtime", "reserve")
            },
            nvlink_gb_s=at("nvlink_gb_s"),
            nvlink_link_gb_s=at("nvlink_limit_gb_s"),
            accuracy=accuracy.quantile if accuracy.quantile is not None else 0.0,
            accuracy_mean=accuracy.mean,
            accuracy_probability=accuracy.probability,
            busy_kw_per_server=one.busy_air_kw,
            evidence=band.evidence,
            bands=shown_bands(band, {name: at(name) for name in METRICS}, confidence),
            step_ms={
                name: at(f"{name}_ms") for name in ("weights", "kv", "compute", "communication", "overhead", "prefill")
            },
        ),
    )


def prefill_role(offer: Offer, one: Offered) -> PrefillRole | None:
    """The prefill role of a unit; None where replicas do both phases."""
    screened, candidates = offer.screened, offer.screened.candidates
    row = int(screened.rows[one.row])
    unit = candidates.unit(row)
    if unit is None:
        return None
    tensor, pipeline, experts, data = (int(degree) for degree in candidates.prefill_degrees[row])
    replicas = int(candidates.prefill_replicas[row])
    full = replicas * float(unit.prefill_requests_per_s[0])
    busy = candidates.setting.instance.targets.peak_utilization_fraction * one.requests_per_s / full
    return PrefillRole(
        replicas=replicas,
        tensor_parallel=tensor,
        pipeline_parallel=pipeline,
        expert_parallel=experts,
        attention_data_parallel=data,
        requests_per_s=full,
        busy_fraction=busy,
        vram_gib=float(unit.prefill_gib[0]),
        transfer_ms=float(unit.transfer_ms[0]),
        transfer_gb=float(unit.transfer_gb[0]),
        link_gb_s=float(screened.prediction.kv_link_gb_s[one.row]),
        link_limit_gb_s=float(screened.prediction.kv_link_limit_gb_s[one.row]),
    )


def server_row(data: ProgramData, fleet: Fleet, q: str) -> ServerGroup:
    """The servers of one pool."""
    pool: Pool = data.pools[q]
    count, spare = fleet.servers[q], fleet.spare.get(q, 0)
    return ServerGroup(
        pool=q,
        server_type=pool.server_type.id,
        accelerator=pool.server_type.accelerator.id,
        accelerators_per_server=pool.server_type.accelerators,
        power_cap_fraction=pool.server_type.power_cap_fraction,
        sourcing=pool.sourcing,
        provider=pool.provider,
        region=pool.region,
        cooling=pool.cooling.id if pool.cooling is not None else None,
        servers=count,
        servers_by_level=fleet.used.get(q, ()),
        in_service=count - spare,
        spare=spare,
        racks=-(-count // pool.per_rack) if pool.in_hall else 0,
        servers_per_rack=pool.per_rack,
        server_kw=pool.server_kw,
        idle_kw=data.idle_kw.get(q, 0.0),
    )


def plant_rows(data: ProgramData, quantities: Mapping[QuantityKey, float]) -> tuple[CoolingPlant, ...]:
    """Plants that are built."""
    from optimizer.costs.cooling import plant_options
    from optimizer.setting import plant_pue

    site = data.setting.instance.site
    climate = site_climate(site, data.setting.catalog)
    rows = []
    for option in plant_options(data.setting):
        heat = quantities.get(("PlantKw", option.id), 0.0)
        if heat:
            mean, design = plant_pue(option, climate, site.plant_load_fraction)
            rows.append(CoolingPlant(option=option.id, heat_kw=heat, pue_mean=mean, pue_design=design))
    return tuple(rows)
