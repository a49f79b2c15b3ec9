"""The verb ``estimate`` as a function: one deployment under one load, with where the time of a step goes."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from optimizer.calibration.inference import with_drafts
from optimizer.calibration.points import deployments_of, read_points
from optimizer.calibration.validation import HIGH, LOW
from optimizer.catalog import Catalog, load_catalog
from optimizer.models import architecture_from_catalog
from optimizer.performance.bands import EVIDENCE, METRICS, Bands, load_bands
from optimizer.performance.deployments import Traffic
from optimizer.performance.engine_memory import engine_memory
from optimizer.performance.factors import Factors, load_factors
from optimizer.performance.layouts import check_layouts, reasons_of
from optimizer.performance.memory import engine_of
from optimizer.performance.memory import sequence_slots as slots_of
from optimizer.performance.power import saturated_power_kw, server_power
from optimizer.performance.serving import prepare

#: Parts of the time of one token, in the order of ``ServingPrediction``.
PARTS: Final = ("weights", "kv", "compute", "communication", "overhead", "prefill")
MEMORY: Final = ("weights", "kv", "activation", "graphs", "communication", "runtime", "reserve")


@dataclass(frozen=True, slots=True)
class Estimate:
    """One prediction; times in ms, memory in GiB per accelerator, bands from the 10 % to the 90 % quantile.

    ``starts`` says whether the layout starts and the load fits; ``problems`` why not. ``evidence`` is what stands
    behind the prediction (``EVIDENCE``).
    """

    starts: bool
    problems: tuple[str, ...]
    evidence: str
    memory_gib: dict[str, float]
    memory_total_gib: float
    accelerator_memory_gib: float
    largest_concurrency: int
    kv_tokens: int
    values: dict[str, float]
    bands: dict[str, tuple[float, float]]
    step_ms: dict[str, float]
    accelerators: int
    power_kw: float
    nvlink_gb_s: float
    nvlink_limit_gb_s: float

    def document(self) -> dict[str, Any]:
        """The estimate as JSON has it, units in the keys."""
        banded = {
            name: {"value": self.values[name], "low": low, "high": high} for name, (low, high) in self.bands.items()
        }
        return {
            "starts": self.starts,
            "problems": list(self.problems),
            "evidence": self.evidence,
            "accelerators": self.accelerators,
            "memory_gib": {
                **self.memory_gib,
                "total": self.memory_total_gib,
                "accelerator": self.accelerator_memory_gib,
            },
            "largest_concurrency": self.largest_concurrency,
            "kv_tokens": self.kv_tokens,
            **banded,
            "tpot_parts_ms": self.step_ms,
            "power_kw": self.power_kw,
            "nvlink_gb_s": self.nvlink_gb_s,
            "nvlink_limit_gb_s": self.nvlink_limit_gb_s,
        }


def estimate(
    *,
    model: str,
    accelerator: str,
    precision: str = "bf16",
    concurrency: float = 1.0,
    input_tokens: float = 1024.0,
    output_tokens: float = 1024.0,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    expert_parallel: int = 1,
    attention_data_parallel: int = 1,
    engine: str = "generic",
    engine_version: str = "",
    kv_bits: float | None = None,
    prefix_hit_fraction: float = 0.0,
    speculative_acceptance: float = 0.0,
    sequence_slots: int = 0,
    catalog: Catalog | None = None,
    factors: Factors | None = None,
    bands: Bands | None = None,
) -> Estimate:
    """Predict one deployment; catalogue names or aliases, lengths as given. ValueError on an unknown name or code.

    ``sequence_slots`` are those that the engine is told to have on each attention-data-parallel rank; 0: its default.
    """
    catalog, factors, bands = catalog or load_catalog(), factors or load_factors(), bands or load_bands()
    row = {
        "model": model,
        "accelerator": accelerator,
        "precision": precision,
        "engine": engine,
        "engine_version": engine_version,
        "concurrency": str(concurrency),
        "tensor_parallel": str(tensor_parallel),
        "pipeline_parallel": str(pipeline_parallel),
        "expert_parallel": str(expert_parallel),
        "attention_data_parallel": str(attention_data_parallel),
        "kv_bits": "" if kv_bits is None else str(kv_bits),
        "prefix_hit_fraction": str(prefix_hit_fraction),
        "speculative_acceptance": str(speculative_acceptance),
        "load_kind": "exact",
    }
    (point,) = with_drafts(read_points([row], catalog), catalog)
    if point.problem:
        raise ValueError(point.problem)
    card, architecture = catalog.accelerators[point.accelerator], architecture_from_catalog(catalog.models[point.model])
    deployment = deployments_of(point, catalog)
    traffic = Traffic(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        prefix_hit_fraction=prefix_hit_fraction,
        speculative_accepted_tokens=speculative_acceptance,
        engine=engine,
        engine_version=engine_version,
        sequence_slots=float(sequence_slots),
    )
    seen = prepare(architecture, deployment, traffic, factors).at(concurrency)
    mask = check_layouts(
        architecture,
        tensor_parallel=tensor_parallel,
        pipeline_parallel=pipeline_parallel,
        expert_parallel=expert_parallel,
        attention_data_parallel=attention_data_parallel,
        scale_up_domain=card.scale_up_domain,
        accelerators_per_host=card.accelerators_per_host,
    )
    problems = list(reasons_of(int(np.max(mask))))
    largest = int(seen.largest_concurrency[0])
    if largest < 1:
        raised = engine_memory(engine, engine_version).largest_memory_fraction
        fuller = prepare(architecture, deployment, traffic, factors, usable_memory_fraction=raised)
        held = int(fuller.columns.largest_concurrency[0])
        hint = f" at the engine's default memory fraction; at {raised:g} {held} requests do" if held >= 1 else ""
        problems.append(f"the weights and one request do not fit the usable memory{hint}")
    elif concurrency > largest:
        slots = int(slots_of(deployment, engine_of(traffic))[0])
        why = f": the engine has slots for {slots} sequences, --sequence-slots sets others" if largest == slots else ""
        problems.append(f"{concurrency:g} requests do not fit at once; {largest} do{why}")
    evidence = bands.evidence_of(point.model, deployment.generation_index)
    values = {metric: float(getattr(seen, metric)[0]) for metric in METRICS}
    around = {
        metric: (
            values[metric] * float(bands.multiplier(metric, engine, evidence, LOW)[0]),
            values[metric] * float(bands.multiplier(metric, engine, evidence, HIGH)[0]),
        )
        for metric in METRICS
    }
    power = server_power(
        deployment.generation_index, factors, accelerators=card.accelerators_per_host, tdp_w=card.tdp_w
    )
    share = float(seen.prefill_ms[0] / seen.tpot_ms[0])
    host_kw = float(saturated_power_kw(power, concurrency, share, factors)[0])
    return Estimate(
        starts=not problems,
        problems=tuple(problems),
        evidence=EVIDENCE[int(evidence[0])],
        memory_gib={name: float(getattr(seen, f"{name}_gib")[0]) for name in MEMORY},
        memory_total_gib=float(seen.total_gib[0]),
        accelerator_memory_gib=card.memory_gib,
        largest_concurrency=largest,
        kv_tokens=int(seen.kv_tokens_capacity[0]),
        values=values,
        bands=around,
        step_ms={name: float(getattr(seen, f"{name}_ms")[0]) for name in PARTS},
        accelerators=point.accelerators,
        power_kw=host_kw * point.accelerators / card.accelerators_per_host,
        nvlink_gb_s=float(seen.nvlink_gb_s[0]),
        nvlink_limit_gb_s=float(seen.nvlink_limit_gb_s[0]),
    )
