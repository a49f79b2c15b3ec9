"""Time, rates, memory and traffic of one training step of many layouts at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimizer.performance.factors import FloatArray
from optimizer.performance.training.bands import HIGH, LOW, load_bands
from optimizer.performance.training.constants import TrainingCalibration, calibration_with
from optimizer.performance.training.effects import effect_of, evidence_of
from optimizer.performance.training.flops import flop_per_token
from optimizer.performance.training.hardware import TrainingAccelerator, precision_of
from optimizer.performance.training.kernel import StepParts, step_parts
from optimizer.performance.training.layouts import Layouts
from optimizer.performance.training.memory import can_fit, memory_gib
from optimizer.performance.training.model import TrainingModel
from optimizer.performance.training.stacks import stack_traits
from optimizer.performance.training.work import StepWork, work_of

_TERA, _GIGA = 1e12, 1e9
#: Rows worked on at a time: columns of a block stay in the cache.
_BLOCK: Final = 8192
#: Parts of the step, in the order they are told.
PARTS: Final = (
    "matrix",
    "attention",
    "elementwise",
    "head",
    "tensor",
    "context",
    "expert",
    "overhead",
    "host",
    "bubble",
    "data",
    "update",
    "other",
)


@dataclass(frozen=True, slots=True, eq=False)
class StepPrediction:
    """Columns of length n.

    ``step_s``: seconds of a step; ``low_s`` and ``high_s`` its 10 % and 90 % quantile by ``evidence`` (``stack``,
    ``accelerator`` or ``none``). ``tflops_per_accelerator``: model FLOP (causal attention, head, no recomputation) a
    second; ``mfu_fraction`` the same over the peak of the format; ``tokens_per_s`` of the whole job. ``memory_gib`` is
    the fullest accelerator's peak by the stated formula, ``fits`` compares it; ``can_run`` says whether the layout fits
    when everything is done to make it fit. ``divides``: the layout divides layers, heads, experts and batch as it must.
    ``scale_up_gb_s`` and ``scale_out_gb_s``: mean traffic one way of an accelerator during a step; ``..._fraction`` its
    share of the link. ``parts`` is the step's time by cause, which sums to ``step_s``.
    """

    step_s: FloatArray
    low_s: FloatArray
    high_s: FloatArray
    tokens_per_s: FloatArray
    tflops_per_accelerator: FloatArray
    mfu_fraction: FloatArray
    memory_gib: FloatArray
    fits: NDArray[np.bool_]
    can_run: NDArray[np.bool_]
    divides: NDArray[np.bool_]
    micro_batches: FloatArray
    scale_up_gb_s: FloatArray
    scale_up_fraction: FloatArray
    scale_out_gb_s: FloatArray
    scale_out_fraction: FloatArray
    parts: dict[str, FloatArray]
    evidence: str


def predict_step(
    model: TrainingModel,
    layouts: Layouts,
    accelerator: TrainingAccelerator,
    *,
    sequence_length: int,
    global_batch_tokens: float,
    precision: str = "bf16",
    stack: str = "",
    optimizer_state: str = "adam_bf16_gradients",
    calibration: Mapping[str, Any] | TrainingCalibration | None = None,
) -> StepPrediction:
    """Step time, rates, memory and traffic of every layout.

    ``global_batch_tokens`` is rounded to whole sequences. ``stack`` names the software (empty: a mean over stacks,
    with the overheads of NVIDIA's line); ``calibration`` is what ``optimize calibrate`` wrote, or a calibration as
    loaded. ValueError where the accelerator has no such format.
    """
    known = calibration if isinstance(calibration, TrainingCalibration) else calibration_with(calibration)
    traits = stack_traits(stack, accelerator.generation)
    sequences = float(max(round(global_batch_tokens / sequence_length), 1))
    work = work_of(
        model,
        layouts,
        accelerator,
        traits,
        sequence_length=sequence_length,
        sequences=sequences,
        precision=precision,
    )
    effect = float(np.exp(effect_of(known, traits, model, accelerator.id, precision)))
    parts = _in_blocks(work, known, layouts.size)
    step = parts["step_s"] * effect
    micro = work.micro_batches
    whole = sequences / (layouts.data_parallel * layouts.micro_batch)
    e, t = layouts.expert_parallel, layouts.tensor_parallel
    ranks = layouts.data_parallel * layouts.context_parallel * t
    divides = (
        (whole == micro)
        & (model.attention_heads % t == 0)
        & (layouts.pipeline_parallel * layouts.virtual_stages <= model.layers)
        & (np.asarray(model.experts or 1) % e == 0)
        & (ranks % e == 0)
    )
    evidence = evidence_of(known, traits, model, accelerator.id, precision)
    bands, kind = load_bands(), "dense" if model.is_dense else "moe"
    rate = sequences * sequence_length / step
    tflops = rate * flop_per_token(model, sequence_length, "causal") / layouts.accelerators / _TERA
    shape: dict[str, Any] = {"sequence_length": sequence_length, "micro_batches": micro}
    used = memory_gib(model, layouts, optimizer_state=optimizer_state, fused_loss=traits.fused_loss, **shape)
    weight = 2.0 if precision_of(precision) == "bf16" else 1.0
    up, out = parts["scale_up_bytes"] / step / _GIGA, parts["scale_out_bytes"] / step / _GIGA
    return StepPrediction(
        step_s=step,
        low_s=step * bands.multiplier(kind, evidence, LOW),
        high_s=step * bands.multiplier(kind, evidence, HIGH),
        tokens_per_s=rate,
        tflops_per_accelerator=tflops,
        mfu_fraction=tflops * _TERA / work.peak,
        memory_gib=used,
        fits=np.asarray(used <= accelerator.memory_gib, dtype=np.bool_),
        can_run=can_fit(model, layouts, accelerator.memory_gib, weight_bytes=weight, **shape),
        divides=np.asarray(divides, dtype=np.bool_),
        micro_batches=micro,
        scale_up_gb_s=up,
        scale_up_fraction=up * _GIGA / work.up_rate,
        scale_out_gb_s=out,
        scale_out_fraction=out * _GIGA / work.out_rate,
        parts={name: parts[name] * effect for name in PARTS},
        evidence=evidence,
    )


def _in_blocks(work: StepWork, known: TrainingCalibration, size: int) -> dict[str, FloatArray]:
    """``step_parts`` block by block, as columns by name."""
    names = ("step_s", *PARTS, "scale_up_bytes", "scale_out_bytes")
    blocks = [
        step_parts(work.rows(slice(start, start + _BLOCK), size), known.factors)
        for start in range(0, max(size, 1), _BLOCK)
    ]
    return {name: np.concatenate([_column(block, name) for block in blocks]) for name in names}


def _column(parts: StepParts, name: str) -> FloatArray:
    found: FloatArray = getattr(parts, name)
    return np.broadcast_to(found, parts.step_s.shape)
