"""The work of a step as columns: model, layout, accelerator and software together, before any constant."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np

from optimizer.performance.factors import FloatArray
from optimizer.performance.training.hardware import PRECISIONS, TrainingAccelerator, precision_of
from optimizer.performance.training.layouts import Layouts
from optimizer.performance.training.model import TrainingModel
from optimizer.performance.training.stacks import FAMILIES, StackTraits, unfuses_narrow_values

_TERA, _GIGA = 1e12, 1e9
#: Generations with constants of their own; others take those of the one that resembles them most.
CALIBRATED: Final = ("ampere", "hopper", "blackwell")
_LIKE: Final = {
    "volta": "ampere",
    "ampere": "ampere",
    "ada": "hopper",
    "hopper": "hopper",
    "blackwell": "blackwell",
    "cdna3": "hopper",
    "cdna4": "blackwell",
    "gaudi3": "hopper",
}
#: Board power over 16-bit peak, W per TFLOP/s, at which a generation's constants were measured: A100, H100, GB200.
_REFERENCE_W_PER_TFLOPS: Final = (400.0 / 312.0, 700.0 / 989.4, 1200.0 / 2500.0)
#: Years when software for a generation began: first volume shipments.
_FIRST_YEAR: Final = (2020.5, 2022.9, 2025.0)
#: Age of software whose date is not known, in years after that.
_USUAL_AGE: Final = 1.5
#: Matrices of an MLP whose activation is gated (SwiGLU).
_GATED_MATRICES: Final = 3
#: Software year of mixtures at which their constants stand.
MOE_YEAR: Final = 2026.0
#: Years before that to which the yearly gain of mixtures reaches back.
_EARLIEST_MOE: Final = -1.2


@dataclass(frozen=True, slots=True, eq=False)
class StepWork:
    """Columns of length n or 1. Counts of parameters over the whole model; rates in FLOP/s and byte/s.

    ``software_age_years`` is since the first software of the accelerator's generation, ``moe_year`` the year of the
    software's mixtures beside ``MOE_YEAR``. Codes: ``generation`` into ``CALIBRATED``, ``precision`` into
    ``PRECISIONS``, ``family`` into ``FAMILIES``.
    """

    layers: FloatArray
    hidden: FloatArray
    heads: FloatArray
    vocabulary: FloatArray
    mixed: FloatArray
    routed: FloatArray
    active_routed: FloatArray
    head: FloatArray
    score_width: FloatArray
    window_score_width: FloatArray
    window: FloatArray
    key_value_width: FloatArray
    unfused: FloatArray
    narrow_values: FloatArray
    attention_layers: FloatArray
    attention_width: FloatArray
    mlp_width: FloatArray
    experts: FloatArray
    active_experts: FloatArray
    moe_layers: FloatArray
    expert_width: FloatArray
    expert_hidden: FloatArray
    linear_layers: FloatArray
    linear_width: FloatArray
    gated: FloatArray
    peak: FloatArray
    peak_16bit: FloatArray
    memory_rate: FloatArray
    up_rate: FloatArray
    domain: FloatArray
    out_rate: FloatArray
    relative_power: FloatArray
    ultra: FloatArray
    grace: FloatArray
    generation: FloatArray
    precision: FloatArray
    block_scales: FloatArray
    family: FloatArray
    early_flash: FloatArray
    tuned: FloatArray
    software_age_years: FloatArray
    moe_year: FloatArray
    token_drop: FloatArray
    sequence: FloatArray
    sequences: FloatArray
    tensor: FloatArray
    pipeline: FloatArray
    virtual: FloatArray
    data: FloatArray
    context: FloatArray
    expert: FloatArray
    zero: FloatArray
    recompute: FloatArray
    micro_batch: FloatArray
    sequence_parallel: FloatArray

    @property
    def micro_batches(self) -> FloatArray:
        """Micro-batches a step; a part of one takes a whole one's time."""
        return np.maximum(np.ceil(self.sequences / (self.data * self.micro_batch) - 1e-9), 1.0)

    def take(self, rows: Any) -> "StepWork":
        """The given rows of columns that all have length n, as ``joined`` makes them."""
        return StepWork(*(getattr(self, field.name)[rows] for field in fields(self)))

    def rows(self, chosen: slice, size: int) -> "StepWork":
        """The given rows of ``size``; columns of one value stay so."""
        if size <= chosen.stop and chosen.start == 0:
            return self
        columns = (getattr(self, field.name) for field in fields(self))
        return StepWork(*(column[chosen] if column.size == size else column for column in columns))


def work_of(
    model: TrainingModel,
    layouts: Layouts,
    accelerator: TrainingAccelerator,
    traits: StackTraits,
    *,
    sequence_length: float,
    sequences: float,
    precision: str,
    token_drop: bool = False,
) -> StepWork:
    """Work of every layout. ValueError where the accelerator does not multiply in the format."""
    form = precision_of(precision)
    peak = accelerator.peak_tflops(form)
    if peak <= 0:
        raise ValueError(f"{accelerator.id} has no matrix units for {precision}")
    generation = CALIBRATED.index(_LIKE.get(accelerator.generation, "hopper"))
    power = 1.0
    if accelerator.tdp_w > 0:
        power = accelerator.tdp_w / accelerator.fp16_tflops / _REFERENCE_W_PER_TFLOPS[generation]
    link = accelerator.scale_up_gb_s if accelerator.scale_up_domain > 1 else 0.0
    age = traits.year - _FIRST_YEAR[generation]
    m = model
    narrow = CALIBRATED[generation] == "blackwell" and unfuses_narrow_values(traits)
    scalars = {
        "layers": m.layers,
        "hidden": m.hidden_size,
        "heads": m.attention_heads,
        "vocabulary": m.vocabulary,
        "mixed": m.mixed_parameters,
        "routed": m.routed_parameters,
        "active_routed": m.active_routed_parameters,
        "head": m.head_parameters,
        "score_width": m.score_width,
        "window_score_width": m.window_score_width,
        "window": min(float(m.sliding_window), sequence_length),
        "key_value_width": m.key_value_width,
        "unfused": traits.family == "early" or (narrow and m.has_narrow_values),
        "narrow_values": m.has_narrow_values,
        "attention_layers": m.attention_layers,
        "attention_width": max(m.attention_width, 1.0),
        "mlp_width": max(m.mlp_width, 1.0),
        "experts": m.experts,
        "active_experts": max(m.active_experts, 1),
        "moe_layers": m.moe_layers,
        "expert_width": max(m.expert_width, 1.0),
        "expert_hidden": max(m.expert_hidden_size, 1.0),
        "linear_layers": m.linear_layers,
        "linear_width": m.linear_width,
        "gated": m.mlp_matrices == _GATED_MATRICES,
        "peak": peak * _TERA,
        "peak_16bit": accelerator.fp16_tflops * _TERA,
        "memory_rate": accelerator.memory_bandwidth_gb_s * _GIGA,
        "up_rate": max(link, accelerator.pcie_gb_s if link <= 0 else 0.0) * _GIGA,
        "domain": max(accelerator.scale_up_domain, 1),
        "out_rate": accelerator.scale_out_gb_s * _GIGA,
        "relative_power": min(power, 1.25),
        "ultra": "b300" in accelerator.id,
        "grace": accelerator.id.startswith("gb"),
        "generation": generation,
        "precision": PRECISIONS.index(form),
        "block_scales": "mx" in precision.lower(),
        "family": FAMILIES.index(traits.family),
        "early_flash": traits.early_flash,
        "tuned": traits.tuned,
        "software_age_years": max(age if np.isfinite(age) else _USUAL_AGE, 0.0),
        "moe_year": np.clip((traits.year if np.isfinite(traits.year) else MOE_YEAR) - MOE_YEAR, _EARLIEST_MOE, 0.5),
        "token_drop": token_drop,
        "sequence": sequence_length,
        "sequences": sequences,
    }
    columns: dict[str, FloatArray] = {name: np.array([float(value)]) for name, value in scalars.items()}
    columns |= {
        "tensor": layouts.tensor_parallel,
        "pipeline": layouts.pipeline_parallel,
        "virtual": layouts.virtual_stages,
        "data": layouts.data_parallel,
        "context": layouts.context_parallel,
        "expert": layouts.expert_parallel,
        "zero": layouts.zero_stage,
        "recompute": layouts.recompute,
        "micro_batch": layouts.micro_batch,
        "sequence_parallel": layouts.sequence_parallel,
    }
    return StepWork(**columns)


def joined(works: Sequence[StepWork]) -> StepWork:
    """One work of the rows of several, every column of full length."""
    sizes = [work.tensor.size for work in works]
    return StepWork(
        *(
            np.concatenate(
                [np.broadcast_to(getattr(work, field.name), size) for work, size in zip(works, sizes, strict=True)]
            )
            for field in fields(StepWork)
        )
    )
