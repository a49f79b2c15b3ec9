"""What a plan says of a training job, asked of the step-time model again and carried to days by own arithmetic."""

import math
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import Final

from optimizer.catalog import Catalog
from optimizer.instance.model import Instance
from optimizer.instance.training import TrainingJob, TrainingWorkload
from optimizer.performance.training import (
    CONVENTIONS,
    RECOMPUTE,
    Layouts,
    TrainingAccelerator,
    TrainingModel,
    flop_per_token,
    goodput,
    mtbf_hours,
    predict_step,
    production_factor,
)
from optimizer.plan_training import TrainedJob, TrainingLayout
from optimizer.verify.finding import Ledger
from optimizer.verify.model import served

_S_A_DAY: Final = 86400.0
#: Share of a step behind which gradients cross between sites, loss beside it a km, light in fibre one way (s a km):
#: docs/training.md, several sites.
_HIDDEN: Final = 0.5
_LOSS_A_KM: Final = 4e-5
_S_A_KM: Final = 5e-6


@dataclass(frozen=True, slots=True)
class OwnJob:
    """A job of the instance as the checker reads it."""

    given: TrainingJob
    model: TrainingModel
    tokens: float
    flop: dict[str, float]
    sequence: int
    batch: float
    start_day: float
    deadline_day: float


def own_job(instance: Instance, workload: TrainingWorkload, given: TrainingJob, catalog: Catalog) -> OwnJob:
    """Model, tokens and window of a job."""
    assert given.sequence_tokens is not None
    assert given.global_batch_tokens is not None
    if given.parameters_b is not None:
        active = None if given.active_parameters_b is None else given.active_parameters_b * 1e9
        model = TrainingModel.from_parameters(given.parameters_b * 1e9, active)
    else:
        assert given.model is not None
        model = TrainingModel.from_architecture(served(given.model, catalog).architecture)
    flop = {name: flop_per_token(model, float(given.sequence_tokens), name) for name in CONVENTIONS}
    if given.parameters_b is not None:
        met = (given.active_parameters_b or given.parameters_b) * 1e9
        flop["6nd"], flop["8nd"] = 6.0 * met, 8.0 * met
    tokens = given.tokens if given.tokens is not None else (given.flop or 0.0) / flop[workload.flop_convention]
    deadline = given.deadline_days if given.deadline_days is not None else instance.targets.deadline_days
    return OwnJob(
        given=given,
        model=model,
        tokens=tokens,
        flop={name: each * tokens for name, each in flop.items()},
        sequence=given.sequence_tokens,
        batch=min(given.global_batch_tokens, max(tokens, float(given.sequence_tokens))),
        start_day=given.earliest_start_day,
        deadline_day=instance.economics.horizon_years * 365.25 if deadline is None else deadline,
    )


def columns(layout: TrainingLayout) -> Layouts:
    """The layout as the step-time model takes it."""
    return Layouts.of(
        tensor_parallel=layout.tensor_parallel,
        pipeline_parallel=layout.pipeline_parallel,
        virtual_stages=layout.virtual_stages,
        data_parallel=layout.data_parallel,
        context_parallel=layout.context_parallel,
        expert_parallel=layout.expert_parallel,
        zero_stage=layout.zero_stage,
        recompute=RECOMPUTE.index(layout.recompute),
        micro_batch=layout.micro_batch,
        sequence_parallel=1 if layout.tensor_parallel > 1 else 0,
    )


def card(catalog: Catalog, name: str) -> TrainingAccelerator:
    """The accelerator as the step-time model takes it."""
    row = catalog.accelerators[name]
    return TrainingAccelerator(
        id=row.id,
        generation=row.generation,
        memory_gib=row.memory_gib,
        memory_bandwidth_gb_s=row.memory_bandwidth_gb_s,
        fp16_tflops=row.fp16_tflops,
        fp8_tflops=row.fp8_tflops or 0.0,
        fp4_tflops=row.fp4_tflops or 0.0,
        scale_up_gb_s=row.scale_up_gb_s or 0.0,
        scale_up_domain=row.scale_up_domain,
        scale_out_gb_s=row.scale_out_gb_s,
        pcie_gb_s=row.pcie_gb_s,
    )


def link(instance: Instance, sites: list[str]) -> tuple[float, float] | None:
    """(Gb/s, km) of the worst link between any two of the sites; None where two have none."""
    found = []
    for pair in combinations(sites, 2):
        mine = [one for one in instance.wan_links if set(one.between) == set(pair)]
        if not mine:
            return None
        found.append(mine[-1])
    return min(one.gbit_per_s for one in found), max(one.km for one in found)


def check_prediction(
    ledger: Ledger,
    path: str,
    instance: Instance,
    workload: TrainingWorkload,
    own: OwnJob,
    one: TrainedJob,
    catalog: Catalog,
) -> None:
    """Every predicted figure of a job, and the days that follow."""
    layouts = columns(one.layout)
    accelerator = card(catalog, one.accelerator)
    found = predict_step(
        own.model,
        layouts,
        accelerator,
        sequence_length=own.sequence,
        global_batch_tokens=own.batch,
        precision=one.precision,
        stack=workload.stack,
        optimizer_state=workload.optimizer_state,
        calibration=workload.calibration_document(),
    )
    recipe = float(found.step_s[0])
    step, gigabits = recipe, 0.0
    sites = list(dict.fromkeys(part.site for part in one.parts))
    if len(sites) > 1:
        wire = link(instance, sites)
        if wire is None:
            ledger.add("V-OFFER", f"{path}.parts", ", ".join(sites), "linked sites", "no link joins these sites")
            return
        pipe = recipe - float(found.parts["data"][0]) - float(found.parts["update"][0])
        step, gigabits = _over(workload, own, one, recipe, pipe, len(sites), wire)
    step /= one.liquid_speedup
    slower = step / recipe
    low, high = float(found.low_s[0]) * slower, float(found.high_s[0]) * slower
    relies, generation = workload.reliability, catalog.accelerators[one.accelerator].generation
    factor, band = relies.production_factor, (low / step, high / step)
    if factor is None:
        seen = production_factor("moe" if own.model.experts else "dense", generation)
        factor, band = seen.factor, (seen.low, seen.high)
    beyond = 0.0
    if instance.targets.confidence != 0.5:
        beyond = NormalDist().inv_cdf(instance.targets.confidence) / NormalDist().inv_cdf(0.9)
    good = goodput(
        one.accelerators_used,
        mtbf_accelerator_hours=relies.mtbf_accelerator_hours or mtbf_hours(one.accelerator, generation),
        checkpoint_blocking_s=relies.checkpoint_blocking_s,
        checkpoint_interval_s=relies.checkpoint_interval_s,
        restart_s=relies.restart_s,
        fault_tolerant_replicas=relies.fault_tolerant_replicas,
    )
    share = float(good.goodput_fraction[0])
    penalty = workload.multi_site.token_penalty_fraction if one.method == "low_communication" else 0.0
    tokens = own.tokens * (1.0 + penalty)
    steps = math.ceil(tokens / (max(round(own.batch / own.sequence), 1) * own.sequence))
    expected_days = step * steps * factor / max(share, 1e-9) / _S_A_DAY
    days = expected_days * band[1] ** beyond
    in_service = one.accelerator_hours / (one.days * 24.0) if one.days else math.inf
    seconds = in_service * days * _S_A_DAY
    peak = catalog.accelerators[one.accelerator].fp16_tflops * 1e12
    expected = {
        "parameters": own.model.parameters,
        "active_parameters": own.model.active_parameters,
        "tokens": tokens,
        "expected_step_s": step,
        "step_s": step * (high / step) ** beyond,
        "days": days,
        "end_day": one.start_day + days,
        "production_factor": factor,
        "goodput_fraction": share,
        "mtbf_h": float(good.mtbf_s[0]) / 3600.0,
        "checkpoint_interval_s": float(good.checkpoint_interval_s[0]),
        "mfu_fraction": float(found.mfu_fraction[0]) / slower,
        "tflops_per_accelerator": float(found.tflops_per_accelerator[0]) / slower,
        "run_mfu_fraction": own.flop["6nd"] / seconds / peak,
        "run_tflops_per_accelerator": own.flop["6nd"] / seconds / 1e12,
        "memory_gib": float(found.memory_gib[0]),
        "scale_up_gb_s": float(found.scale_up_gb_s[0]) / slower,
        "scale_up_fraction": float(found.scale_up_fraction[0]) / slower,
        "scale_out_gb_s": float(found.scale_out_gb_s[0]) / slower,
        "scale_out_fraction": float(found.scale_out_fraction[0]) / slower,
        "wan_gbit_per_s": gigabits / step,
    }
    for name, value in expected.items():
        ledger.number(
            "V-PREDICT", f"{path}.{name}", getattr(one, name), value, f"{name} by the model and own arithmetic"
        )
    ledger.numbers("V-PREDICT", f"{path}.flop_by_convention", one.flop_by_convention, own.flop, "FLOP of the run")
    bands = {"step_band_s": (low, high), "days_band": (expected_days * band[0], expected_days * band[1])}
    for name, bounds in bands.items():
        for place, value in enumerate(bounds):
            ledger.number("V-PREDICT", f"{path}.{name}[{place}]", getattr(one, name)[place], value, "80 % band")
    ledger.same("V-PREDICT", f"{path}.evidence", one.evidence, found.evidence, "what stands behind the prediction")


def _over(
    workload: TrainingWorkload,
    own: OwnJob,
    one: TrainedJob,
    recipe: float,
    pipe: float,
    sites: int,
    wire: tuple[float, float],
) -> tuple[float, float]:
    """(seconds of a step over several sites, gigabits each site sends a step)."""
    several, (rate, km) = workload.multi_site, wire
    # A ring all-reduce sends 2 (S - 1) / S of the gradients from each site, in 2 (S - 1) rounds there and back.
    sent = 2.0 * (sites - 1) / sites * own.model.parameters
    light = 4.0 * (sites - 1) * km * _S_A_KM
    if one.method == "low_communication":
        gigabits = sent * several.exchange_bits / 1e9
        return recipe + (gigabits / rate + light) / several.inner_steps, gigabits / several.inner_steps
    gigabits = sent * several.gradient_bytes * 8.0 / 1e9
    return max(recipe, (1.0 - _HIDDEN) * pipe + gigabits / rate + light) / (1.0 - _LOSS_A_KM * km), gigabits
