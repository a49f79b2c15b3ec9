"""The measured constants of the performance model, loaded from the packaged table.

Every constant stands in ``data/factors.json`` with value, unit, source, date and trust, so that a calibration
can replace any of them (``dataclasses.replace``) and a reader can ask where a figure comes from.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import resources
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: Accelerator generations with constants of their own; ``Deployments.generation_index`` points into this.
GENERATIONS: Final = ("volta", "ampere", "ada", "hopper", "blackwell", "cdna3", "cdna4", "gaudi3")
#: Number formats the matrix units multiply in; ``Deployments.precision_index`` points into this.
PRECISIONS: Final = ("fp16", "fp8", "int8", "fp4")
#: Widths in which weights lie in memory, by which the streaming efficiency differs.
WEIGHT_WIDTHS: Final = ("16bit", "8bit", "4bit")
#: Serving engines with overheads of their own; ``generic`` stands for an engine that was not named.
ENGINES: Final = ("generic", "vllm", "sglang", "trtllm")
#: How far a constant can be trusted, best first.
TRUSTS: Final = ("measured", "vendor", "fitted", "assumed")

#: The axes along which a constant's values lie, by field name; constants not named here are single numbers.
AXES: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "bandwidth_efficiency": (GENERATIONS, WEIGHT_WIDTHS),
    "flop_efficiency": (GENERATIONS, PRECISIONS),
    "kv_bandwidth_efficiency": (GENERATIONS,),
    "attention_flop_efficiency": (GENERATIONS,),
    "expert_bandwidth_efficiency": (WEIGHT_WIDTHS,),
    "expert_flop_factor": (WEIGHT_WIDTHS,),
    "step_overhead_ms": (ENGINES,),
    "layer_overhead_us": (ENGINES,),
    "moe_layer_overhead_us": (ENGINES,),
    "sequence_overhead_us": (ENGINES,),
    "request_overhead_ms": (ENGINES,),
    "engine_expert_rate": (ENGINES,),
    "engine_attention_rate": (ENGINES,),
    "engine_allreduce_time": (ENGINES,),
    "engine_prefill_rate": (ENGINES,),
    "prompt_launch_multiple": (ENGINES,),
    "queue_fraction": (ENGINES,),
    "overhead_age_per_year": (ENGINES,),
    "idle_power_fraction": (GENERATIONS,),
    "busy_power_low": (GENERATIONS,),
    "busy_power_high": (GENERATIONS,),
    "busy_power_exponent": (GENERATIONS,),
}


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """Constants of the model; meaning, unit and source of each stand in the packaged table.

    Efficiencies are fractions (0..1] of the accelerator's peak. Arrays are indexed by generation, then by
    weight width or precision, or by engine, in the order of the tuples of this module.
    """

    bandwidth_efficiency: FloatArray
    flop_efficiency: FloatArray
    kv_bandwidth_efficiency: FloatArray
    attention_flop_efficiency: FloatArray
    expert_bandwidth_efficiency: FloatArray
    expert_flop_factor: FloatArray
    expert_tile_tokens: float
    expert_token_passes: float
    expert_imbalance: float
    expert_token_spread: float
    blend_exponent: float
    step_overhead_ms: FloatArray
    layer_overhead_us: FloatArray
    moe_layer_overhead_us: FloatArray
    sequence_overhead_us: FloatArray
    request_overhead_ms: FloatArray
    engine_expert_rate: FloatArray
    engine_attention_rate: FloatArray
    engine_allreduce_time: FloatArray
    engine_prefill_rate: FloatArray
    prompt_launch_multiple: FloatArray
    queue_fraction: FloatArray
    overhead_age_per_year: FloatArray
    latent_layer_overhead_us: float
    shared_expert_overhead_us: float
    linear_layer_overhead_us: float
    query_norm_overhead_us: float
    block_scale_overhead_us: float
    weight_only_overhead_us: float
    expert_parallel_overhead_us: float
    expert_count_exponent: float
    clump_prompts: float
    clump_prompts_equal_lengths: float
    allreduce_small_latency_us: float
    allreduce_small_link_fraction: float
    allreduce_large_latency_us: float
    allreduce_large_latency_per_rank_us: float
    allreduce_large_link_fraction: float
    pcie_latency_us: float
    pcie_latency_per_rank_us: float
    pcie_link_fraction: float
    scale_out_latency_us: float
    scale_out_link_fraction: float
    alltoall_latency_us: float
    alltoall_link_fraction: float
    point_to_point_latency_us: float
    prefill_chunk_tokens: float
    prefill_interference: float
    batched_tokens: float
    activation_bytes_per_vocabulary_entry: float
    activation_bytes_per_token_width: float
    runtime_gib: float
    communication_gib: float
    communication_gib_per_rank: float
    graph_gib: float
    reserve_gib: float
    usable_memory_fraction: float
    kv_page_tokens: float
    idle_power_fraction: FloatArray
    busy_power_low: FloatArray
    busy_power_high: FloatArray
    busy_power_exponent: FloatArray
    waiting_power_fraction: float
    conversion_loss_fraction: float
    decode_power_small_batch: float
    decode_power_large_batch: float
    prefill_power_fraction: float
    server_power_over_tdp: float

    def __post_init__(self) -> None:
        for field in fields(self):
            values = np.asarray(getattr(self, field.name), dtype=np.float64)
            if not np.all(np.isfinite(values)) or np.any(values < 0):
                raise ValueError(f"factor {field.name} must be finite and at least 0, found {values.tolist()}")
            share = field.name.endswith(("_efficiency", "_link_fraction", "_memory_fraction"))
            if share and (np.any(values > 1) or np.any(values == 0)):
                raise ValueError(f"factor {field.name} must lie in (0, 1]: nothing beats the peak")


@dataclass(frozen=True, slots=True)
class FactorSource:
    """Where one constant comes from. ``trust`` is one of ``TRUSTS``; ``as_of`` is the date of the source."""

    name: str
    unit: str
    meaning: str
    source: str
    as_of: str
    trust: str


def _spread(value: object, axes: tuple[tuple[str, ...], ...]) -> Any:
    """A number or nested mapping to nested lists along the axes; ``default`` fills what is not named."""
    if not axes:
        if not isinstance(value, int | float):
            raise ValueError(f"expected a number, found {value!r}")
        return float(value)
    if isinstance(value, Mapping):
        unknown = set(value) - set(axes[0]) - {"default"}
        if unknown:
            raise ValueError(f"unknown key {sorted(unknown)[0]!r}; one of {', '.join(axes[0])}")
        return [_spread(value[name] if name in value else value["default"], axes[1:]) for name in axes[0]]
    return [_spread(value, axes[1:]) for _ in axes[0]]


def factors_from_document(document: Mapping[str, Any]) -> Factors:
    """``Factors`` from the table's form: ``{"factors": {name: {"value": ...}}}``. ValueError on a wrong table."""
    table = document["factors"]
    names = {field.name for field in fields(Factors)}
    missing, unknown = names - set(table), set(table) - names
    if missing or unknown:
        raise ValueError(f"factors missing: {sorted(missing)}; unknown: {sorted(unknown)}")
    values: dict[str, Any] = {}
    for name in names:
        axes = AXES.get(name, ())
        spread = _spread(table[name]["value"], axes)
        values[name] = np.asarray(spread, dtype=np.float64) if axes else spread
    return Factors(**values)


def _resource(name: str) -> dict[str, Any]:
    text = resources.files("optimizer.performance").joinpath(f"data/{name}").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def prior_document() -> dict[str, Any]:
    """The table of constants before calibration: values, units, sources, dates, trust."""
    return _resource("factors.json")


def calibrated_document(prior: Mapping[str, Any], calibration: Mapping[str, Any]) -> dict[str, Any]:
    """The table with a calibration's constants in place of the prior ones; they name the calibration as source."""
    table: dict[str, Any] = dict(prior["factors"])
    unknown = set(calibration["factors"]) - set(table)
    if unknown:
        raise ValueError(f"calibration of unknown factors: {sorted(unknown)}")
    for name, value in calibration["factors"].items():
        row = table[name]
        source = f"{calibration['source']} (before: {row['source']})"
        merged = _merged(row["value"], value, AXES.get(name, ()))
        table[name] = {**row, "value": merged, "source": source, "as_of": calibration["as_of"], "trust": "fitted"}
    return {**prior, "factors": table}


def _merged(before: Any, after: Any, axes: tuple[tuple[str, ...], ...]) -> Any:
    """``after`` laid over ``before``, key by key along the axes."""
    if not isinstance(after, Mapping):
        return after
    names = before if isinstance(before, Mapping) else {"default": before}
    whole = dict(names)
    for key, value in after.items():
        whole[key] = _merged(names.get(key, names.get("default")), value, axes[1:])
    return whole


def packaged_document() -> dict[str, Any]:
    """The packaged table with the packaged calibration: values, units, sources, dates, trust."""
    return calibrated_document(prior_document(), _resource("calibration.json"))


def factors_with(calibration: Mapping[str, Any] | None) -> Factors:
    """The packaged constants with a planner's calibration laid over them; None: as packaged.

    KeyError, TypeError or ValueError where it is no calibration.
    """
    if calibration is None:
        return load_factors()
    return factors_from_document(calibrated_document(packaged_document(), calibration))


def load_factors() -> Factors:
    """The packaged constants."""
    return factors_from_document(packaged_document())


def factor_sources(document: Mapping[str, Any]) -> tuple[FactorSource, ...]:
    """Unit, meaning, source, date and trust of every constant, in the order of the table."""
    return tuple(
        FactorSource(name, row["unit"], row["meaning"], row["source"], row["as_of"], row["trust"])
        for name, row in document["factors"].items()
    )
