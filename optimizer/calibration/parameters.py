"""Which constants a calibration may move, from where, and how far: a prior of mean and width for each.

Efficiencies move on a logistic scale, so that none passes the peak; times and multiples on a logarithmic one;
exponents as they are. The width says how far a constant may go before the points must insist.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from optimizer.performance.factors import ENGINES, GENERATIONS, PRECISIONS, WEIGHT_WIDTHS, Factors, FloatArray

Scale = Literal["log", "logit", "plain"]
#: The engine whose constants are the means of the others.
GENERIC: Final = "generic"
MEASURED_ENGINES: Final = tuple(engine for engine in ENGINES if engine != GENERIC)
#: Generations that the packaged online points cover.
MEASURED_GENERATIONS: Final = ("hopper", "blackwell")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One constant that moves: the factor, its place in the factor's array (empty for a number), scale and width."""

    factor: str
    index: tuple[int, ...]
    scale: Scale
    width: float

    @property
    def name(self) -> str:
        """Factor and place in words."""
        return self.factor + "".join(f"[{at}]" for at in self.index)


_ENGINE_WIDTHS: Final[Mapping[str, tuple[Scale, float]]] = {
    "step_overhead_ms": ("log", 0.35),
    "layer_overhead_us": ("log", 0.28),
    "moe_layer_overhead_us": ("log", 0.35),
    "sequence_overhead_us": ("log", 0.42),
    "request_overhead_ms": ("log", 0.35),
    "engine_expert_rate": ("log", 0.14),
    "engine_attention_rate": ("log", 0.175),
    "engine_allreduce_time": ("log", 0.21),
    "engine_prefill_rate": ("log", 0.21),
    "prompt_launch_multiple": ("log", 0.5),
    "queue_fraction": ("log", 0.35),
    "overhead_age_per_year": ("log", 0.5),
}
_SHARED_WIDTHS: Final[Mapping[str, tuple[Scale, float]]] = {
    "expert_tile_tokens": ("log", 0.4),
    "expert_token_passes": ("log", 0.5),
    "expert_token_spread": ("log", 0.14),
    "allreduce_small_latency_us": ("log", 0.28),
    "allreduce_small_link_fraction": ("logit", 0.32),
    "allreduce_large_link_fraction": ("logit", 0.3),
    "alltoall_latency_us": ("log", 0.35),
    "alltoall_link_fraction": ("logit", 0.47),
    "latent_layer_overhead_us": ("log", 0.21),
    "shared_expert_overhead_us": ("log", 0.28),
    "linear_layer_overhead_us": ("log", 0.42),
    "query_norm_overhead_us": ("log", 0.35),
    "block_scale_overhead_us": ("log", 0.49),
    "weight_only_overhead_us": ("log", 0.49),
    "expert_parallel_overhead_us": ("log", 0.49),
    "expert_count_exponent": ("plain", 0.105),
    "clump_prompts": ("log", 0.49),
    "clump_prompts_equal_lengths": ("log", 0.49),
}


def serving_parameters() -> tuple[Parameter, ...]:
    """All constants that online serving points can identify: shared ones, and twelve an engine."""
    found: list[Parameter] = []
    for generation in MEASURED_GENERATIONS:
        g = GENERATIONS.index(generation)
        found += [Parameter("bandwidth_efficiency", (g, w), "logit", 0.35) for w in range(len(WEIGHT_WIDTHS))]
        formats = [PRECISIONS.index(name) for name in ("fp16", "fp8", "fp4")]
        found += [Parameter("flop_efficiency", (g, p), "logit", 0.35) for p in formats]
        found += [Parameter("kv_bandwidth_efficiency", (g,), "logit", 0.35)]
        found += [Parameter("attention_flop_efficiency", (g,), "logit", 0.28)]
    found += [Parameter("expert_bandwidth_efficiency", (w,), "logit", 0.42) for w in range(len(WEIGHT_WIDTHS))]
    found += [Parameter("expert_flop_factor", (w,), "logit", 0.5) for w in range(len(WEIGHT_WIDTHS))]
    found += [Parameter(name, (), scale, width) for name, (scale, width) in _SHARED_WIDTHS.items()]
    for name, (scale, width) in _ENGINE_WIDTHS.items():
        found += [Parameter(name, (ENGINES.index(engine),), scale, width) for engine in MEASURED_ENGINES]
    return tuple(found)


def value_of(factors: Factors, parameter: Parameter) -> float:
    """A constant's present value."""
    held = getattr(factors, parameter.factor)
    return float(held[parameter.index] if parameter.index else held)


def to_scale(values: FloatArray, parameters: tuple[Parameter, ...]) -> FloatArray:
    """Values to the scales they move on."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs, logits = np.log(values), np.log(values / (1.0 - values))
    kinds = np.array([p.scale for p in parameters])
    return np.where(kinds == "plain", values, np.where(kinds == "log", logs, logits))


def from_scale(places: FloatArray, parameters: tuple[Parameter, ...]) -> FloatArray:
    """The inverse of ``to_scale``."""
    kinds = np.array([p.scale for p in parameters])
    bounded = np.clip(places, -30.0, 30.0)
    logistic = 1.0 / (1.0 + np.exp(-bounded))
    return np.where(kinds == "plain", places, np.where(kinds == "log", np.exp(bounded), logistic))


def with_values(factors: Factors, parameters: tuple[Parameter, ...], values: FloatArray) -> Factors:
    """Factors with the constants replaced; a constant that the engines own also renews the generic engine."""
    changed: dict[str, Any] = {}
    for parameter, value in zip(parameters, values, strict=True):
        if parameter.index:
            array = changed.setdefault(parameter.factor, np.array(getattr(factors, parameter.factor)))
            array[parameter.index] = value
        else:
            changed[parameter.factor] = float(value)
    for name, array in changed.items():
        if name in _ENGINE_WIDTHS:
            own = array[[ENGINES.index(engine) for engine in MEASURED_ENGINES]]
            plain = _ENGINE_WIDTHS[name][0] == "plain"
            array[ENGINES.index(GENERIC)] = np.mean(own) if plain else np.exp(np.mean(np.log(own)))
    return replace(factors, **changed)
