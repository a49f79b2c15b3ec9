"""The measured constants of the training model, loaded from the packaged table.

Every constant stands in ``data/training_factors.json`` with its value before calibration, how far it may move, unit,
meaning, source, date and trust; ``data/training_calibration.json`` holds what the packaged steps made of them, and the
effects of stacks, models and configurations that were measured.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Final

#: Levels of effects, from the widest: a line of software, one stack, one model, one model on one accelerator in one
#: format, and that under one stack.
LEVELS: Final = ("line", "stack", "model", "configuration", "run")


@dataclass(frozen=True, slots=True)
class TrainingFactors:
    """Constants; meaning, unit and source of each stand in the packaged table. All are above 0."""

    ampere_matrix_16bit: float
    hopper_matrix_16bit: float
    hopper_matrix_8bit: float
    blackwell_matrix_16bit: float
    blackwell_matrix_8bit: float
    blackwell_matrix_4bit: float
    ultra_matrix_factor: float
    ultra_matrix_4bit_factor: float
    power_exponent: float
    matrix_streaming: float
    ampere_attention: float
    hopper_attention: float
    blackwell_attention: float
    ampere_early_flash: float
    hopper_early_flash: float
    eager_attention_factor: float
    unfused_attention: float
    attention_half_tokens: float
    head_width_exponent: float
    softmax_passes: float
    elementwise_passes: float
    quantize_passes: float
    block_scale_factor: float
    linear_passes: float
    accumulation_passes: float
    layer_overhead_early_s: float
    layer_overhead_megatron_s: float
    layer_overhead_eager_s: float
    layer_overhead_xla_s: float
    layer_overhead_tuned_s: float
    host_dense_s: float
    host_moe_s: float
    host_moe_grace_s: float
    host_drop_factor: float
    host_interleaved_factor: float
    host_year_exponent: float
    tensor_exposed_early: float
    tensor_exposed_megatron: float
    tensor_exposed_eager: float
    tensor_exposed_xla: float
    context_exposed: float
    context_exposed_eager: float
    pipeline_exposed: float
    data_hidden_cost: float
    data_exposed_early: float
    sharded_hidden_cost: float
    expert_exposed: float
    expert_outside_factor: float
    expert_interleaved_factor: float
    permute_passes: float
    expert_matrix_factor: float
    expert_streaming: float
    expert_layer_overhead_s: float
    expert_imbalance: float
    expert_software_year: float
    expert_fused_factor: float
    optimizer_passes: float
    step_overhead_s: float
    step_overhead_eager_s: float
    step_overhead_tuned_s: float
    new_generation_loss: float
    scale_loss: float

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0.0 < value < float("inf"):
                raise ValueError(f"training factor {field.name} must be finite and above 0, found {value}")


NAMES: Final = tuple(field.name for field in fields(TrainingFactors))


@dataclass(frozen=True, slots=True)
class TrainingCalibration:
    """Constants and effects. An effect is a logarithm of step time by level and key; unknown keys have none.

    ``unknown_stack`` is added where neither stack nor line is known: how much slower a stack that nobody measured has
    proved to be than the mean of those that were.
    """

    factors: TrainingFactors
    effects: Mapping[str, Mapping[str, float]]
    unknown_stack: Mapping[str, float]

    def effect(self, level: str, key: str) -> float:
        """The effect of a key, 0 where it is not known."""
        return self.effects[level].get(key, 0.0)


def resource(name: str) -> dict[str, Any]:
    """A packaged table of the training model."""
    text = resources.files("optimizer.performance").joinpath(f"data/{name}").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def prior_factors() -> TrainingFactors:
    """The constants before any calibration."""
    table = resource("training_factors.json")["factors"]
    return TrainingFactors(**{name: float(table[name]["value"]) for name in NAMES})


def calibration_from_document(
    document: Mapping[str, Any], base: TrainingCalibration | None = None
) -> TrainingCalibration:
    """A calibration laid over ``base`` (None: the constants before calibration).

    KeyError, TypeError or ValueError where the document is none of a training calibration.
    """
    if document.get("kind") != "training":
        raise ValueError("no calibration of training steps")
    unknown = set(document["factors"]) - set(NAMES)
    if unknown:
        raise ValueError(f"calibration of unknown training factors: {', '.join(sorted(unknown))}")
    before = prior_factors() if base is None else base.factors
    values = {name: float(document["factors"].get(name, getattr(before, name))) for name in NAMES}
    effects = {}
    for level in LEVELS:
        known = dict(base.effects[level]) if base is not None else {}
        given = document["effects"].get(level, {})
        effects[level] = MappingProxyType({**known, **{str(key): float(value) for key, value in given.items()}})
    unknown_stack = dict(base.unknown_stack) if base is not None else {"dense": 0.0, "moe": 0.0}
    unknown_stack.update({str(key): float(value) for key, value in document.get("unknown_stack", {}).items()})
    return TrainingCalibration(TrainingFactors(**values), MappingProxyType(effects), MappingProxyType(unknown_stack))


@cache
def load_calibration() -> TrainingCalibration:
    """The packaged calibration."""
    return calibration_from_document(resource("training_calibration.json"))


def calibration_with(document: Mapping[str, Any] | None) -> TrainingCalibration:
    """The packaged calibration with a planner's own laid over it; None: as packaged.

    KeyError, TypeError or ValueError where it is no training calibration.
    """
    packaged = load_calibration()
    if document is None:
        return packaged
    return calibration_from_document(document, packaged)
