"""Ask the performance model again for every deployment of a plan."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from optimizer.catalog.rows import Compute
from optimizer.performance.bands import METRICS
from optimizer.performance.confidence import at_confidence, band_multipliers, shown_bands
from optimizer.performance.deployments import Deployments, Traffic
from optimizer.performance.factors import GENERATIONS, PRECISIONS, Factors
from optimizer.performance.power import ServerPower, busy_power_kw
from optimizer.performance.serving import ServingPrediction, prepare
from optimizer.plan import Deployment, Plan, PrefillRole
from optimizer.verify.accuracy import kept
from optimizer.verify.facts import Facts
from optimizer.verify.finding import Ledger, close
from optimizer.verify.fleet import servers_per_replica
from optimizer.verify.power_state import NO_CAP, most_kw, slowed
from optimizer.verify.unit import OwnUnit, check_role, own_unit

_ENGINES = {"tensorrt-llm": "trtllm"}
_UNQUANTIZED_BYTES = 2.0
#: Dense models from this size on have power constants of their own.
_LARGE_DENSE_PARAMETERS = 30e9
_ITEMS = ("weights", "kv", "activation", "graphs", "communication", "runtime", "reserve")
_STEPS = ("weights", "kv", "compute", "communication", "overhead", "prefill")


@dataclass(frozen=True, slots=True)
class Predicted:
    """One replica at its concurrency, by names of the plan's prediction."""

    numbers: Mapping[str, float | None]
    items_gib: Mapping[str, float]
    step_ms: Mapping[str, float]
    evidence: str
    bands: Mapping[str, tuple[float, float]]
    unit: OwnUnit | None


def predict(facts: Facts, one: Deployment, factors: Factors) -> Predicted:
    """The performance model's answer for one deployment, its accuracy and its power."""
    request = facts.classes[one.request_class].request
    workload = facts.instance.workload
    traffic = Traffic(
        input_tokens=float(request.input_tokens),
        output_tokens=float(request.output_tokens),
        max_context_tokens=float(workload.longest_context_tokens()),
        prefix_hit_fraction=request.prefix_hit_fraction,
        engine=_ENGINES.get(workload.engine, workload.engine),
        sequence_slots=float(facts.instance.choices.sequence_slots or 0),
    )
    columns, targets = _columns(facts, one), facts.instance.targets
    named = facts.model.catalog_id
    unit = None
    if one.prefill is not None:
        unit = own_unit(facts, one, one.prefill, (_columns(facts, one, one.prefill), columns), traffic, factors)
        seen = dict(unit.seen)
    else:
        prepared = prepare(
            facts.model.architecture, columns, traffic, factors, usable_memory_fraction=targets.vram_fraction
        )
        asked = at_confidence(
            prepared,
            model=named,
            engine=traffic.engine,
            generation_index=columns.generation_index,
            confidence=targets.confidence,
            unmeasured=np.array([one.power_cap_fraction < NO_CAP]),
        ).at(float(one.concurrency))
        seen = {field.name: float(getattr(asked, field.name)[0]) for field in fields(ServingPrediction)}
    roles, capped = one.prefill is not None, one.power_cap_fraction < NO_CAP
    generation = int(columns.generation_index[0])
    band = band_multipliers(named, traffic.engine, generation, two_roles=roles, is_capped=capped)

    def value(name: str) -> float:
        return seen[name]

    accuracy = kept(facts, one.scheme, one.kv_scheme, one.recovery)
    names = ("ttft_ms", "tpot_ms", "latency_ms", "requests_per_s", "output_tokens_per_s", "nvlink_gb_s")
    numbers: dict[str, float | None] = {name: value(name) for name in names}
    numbers["vram_gib"] = value("total_gib")
    numbers["nvlink_link_gb_s"] = value("nvlink_limit_gb_s")
    numbers["accuracy"] = 0.0 if accuracy.quantile is None else accuracy.quantile
    numbers["accuracy_mean"] = accuracy.mean
    numbers["accuracy_probability"] = accuracy.probability
    numbers["busy_kw_per_server"] = busy_kw_per_server(facts, one)
    return Predicted(
        numbers,
        {name: value(f"{name}_gib") for name in _ITEMS},
        {name: value(f"{name}_ms") for name in _STEPS},
        band.evidence,
        shown_bands(band, {name: value(name) for name in METRICS}, targets.confidence),
        unit,
    )


def _columns(facts: Facts, one: Deployment, role: PrefillRole | None = None) -> Deployments:
    """A replica for the performance model: one that does both phases or decodes, or the prefill role's."""
    degrees = one if role is None else role
    row, scheme = facts.catalog.accelerators[one.accelerator], facts.catalog.schemes[one.scheme]
    curve = facts.catalog.power_curves[row.generation]
    row = slowed(row, curve, one.power_cap_fraction, large_dense=_is_large_dense(facts))
    size = int(one.server_type.rpartition(" x")[2])
    compute: Compute = scheme.compute if scheme.support(row.generation) == "native" else "fp16"
    own_format = facts.model.native_experts_only and one.scheme == facts.model.native_scheme
    return Deployments.of(
        generation_index=GENERATIONS.index(row.generation),
        precision_index=PRECISIONS.index(compute),
        memory_gib=row.memory_gib,
        memory_bandwidth_gb_s=row.memory_bandwidth_gb_s,
        compute_tflops=row.matrix_tflops(compute) or row.fp16_tflops,
        fp16_tflops=row.fp16_tflops,
        scale_up_gb_s=row.scale_up_gb_s or 0.0,
        scale_up_pair_gb_s=row.scale_up_pair_gb_s or row.scale_up_gb_s or 0.0,
        scale_up_domain=min(row.scale_up_domain, size),
        scale_out_gb_s=row.scale_out_gb_s,
        pcie_gb_s=row.pcie_gb_s,
        tdp_w=row.tdp_w,
        accelerators_per_host=min(row.accelerators_per_host, size),
        tensor_parallel=degrees.tensor_parallel,
        pipeline_parallel=degrees.pipeline_parallel,
        expert_parallel=degrees.expert_parallel,
        attention_data_parallel=degrees.attention_data_parallel,
        weight_bytes=scheme.bytes_per_weight,
        attention_weight_bytes=_UNQUANTIZED_BYTES if own_format else scheme.bytes_per_weight,
        kv_bytes=facts.catalog.kv_schemes[one.kv_scheme].bytes_per_element,
    )


def _is_large_dense(facts: Facts) -> bool:
    return facts.model.architecture.experts == 0 and facts.counts.active >= _LARGE_DENSE_PARAMETERS


def busy_kw_per_server(facts: Facts, one: Deployment) -> float:
    """Power of one server in air whose replicas are all busy; accelerators without a replica idle."""
    row = facts.catalog.accelerators[one.accelerator]
    curve = facts.catalog.power_curves[row.generation]
    size = int(one.server_type.rpartition(" x")[2])
    large, cap = _is_large_dense(facts), one.power_cap_fraction
    saturated = curve.f1_dense_fraction if large else curve.f1_fraction
    rack_scale = row.accelerators_per_server > row.accelerators_per_host
    whole_kw = row.server_power_kw * size / row.accelerators_per_server
    idle_kw = (curve.idle_rack_scale_fraction if rack_scale else curve.idle_fraction) * whole_kw
    law = ServerPower(
        accelerators=size,
        tdp_w=row.tdp_w,
        idle_kw=idle_kw,
        maximum_kw=most_kw(row, curve, cap) * size / row.accelerators_per_server,
        busy_fraction_low=curve.f0_dense_fraction if large else curve.f0_fraction,
        busy_fraction_high=min(saturated, cap),
        load_exponent=curve.c_dense if large else curve.c,
        waiting_fraction=curve.f_idle_fraction,
        conversion_loss_fraction=(
            curve.kappa_liquid_fraction if row.liquid_cooling == "required" else curve.kappa_fraction
        ),
    )
    occupied = one.accelerators_per_replica / servers_per_replica(one, size) / size
    return idle_kw + occupied * (float(busy_power_kw(law, 1.0)) - idle_kw)


def asked_again(ledger: Ledger, facts: Facts, plan: Plan, factors: Factors) -> Plan:
    """Every number of every prediction must be the performance model's.

    Returns the same choice with the checker's predictions in place of the plan's: what follows believes only these.
    """
    deployments = []
    for place, one in enumerate(plan.deployments):
        own = predict(facts, one, factors)
        _check_prediction(ledger, f"deployments[{place}].prediction", one, own)
        update = {
            **own.numbers,
            "vram_items_gib": dict(own.items_gib),
            "step_ms": dict(own.step_ms),
            "evidence": own.evidence,
            "bands": dict(own.bands),
        }
        changed: dict[str, object] = {"prediction": one.prediction.model_copy(update=update)}
        if one.prefill is not None and own.unit is not None:
            check_role(ledger, f"deployments[{place}].prefill", one.prefill, own.unit)
            changed["prefill"] = one.prefill.model_copy(update=dict(own.unit.role))
        deployments.append(one.model_copy(update=changed))
    return plan.model_copy(update={"deployments": tuple(deployments)})


def _check_prediction(ledger: Ledger, path: str, one: Deployment, own: Predicted) -> None:
    for name, number in own.numbers.items():
        found = getattr(one.prediction, name)
        same = found is number if found is None or number is None else close(found, number)
        ledger.check(same, "V-PREDICT", f"{path}.{name}", found, number, "differs from the performance model")
    given = {key.removesuffix("_gib"): number for key, number in one.prediction.vram_items_gib.items()}
    ledger.numbers("V-PREDICT", f"{path}.vram_items_gib", given, dict(own.items_gib), "memory items")
    given = {key.removesuffix("_ms"): number for key, number in one.prediction.step_ms.items()}
    ledger.numbers("V-PREDICT", f"{path}.step_ms", given, dict(own.step_ms), "parts of a step")
    ledger.same("V-PREDICT", f"{path}.evidence", one.prediction.evidence, own.evidence, "what stands behind it")
    for place, end in enumerate(("low", "high")):
        given = {key: band[place] for key, band in one.prediction.bands.items()}
        wanted = {key: band[place] for key, band in own.bands.items()}
        ledger.numbers("V-PREDICT", f"{path}.bands.{end}", given, wanted, f"{end} end of the band")
