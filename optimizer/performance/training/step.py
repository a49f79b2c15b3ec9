"""Time of one training step of many layouts at once."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimizer.performance.factors import FloatArray
from optimizer.performance.training.flops import flop_per_token
from optimizer.performance.training.hardware import TrainingAccelerator, precision_of
from optimizer.performance.training.layouts import Layouts
from optimizer.performance.training.memory import memory_gib
from optimizer.performance.training.model import TrainingModel

_TERA, _GIGA, _MS = 1e12, 1e9, 1e-3
#: Share of the peak that matrix units reach in layers, by format, and attention at most.
_EFFICIENCY: Final = {"bf16": 0.60, "fp8": 0.55, "fp4": 0.45}
_ATTENTION_EFFICIENCY: Final = 0.5
#: Passes over 16-bit activations of elementwise kernels, forward and backward.
_PASSES: Final = 8.0
_LAYER_OVERHEAD_S: Final = 0.97e-3
_EXPOSED_TENSOR: Final = 0.7
_EXPOSED_EXPERT: Final = 0.7


@dataclass(frozen=True, slots=True, eq=False)
class StepPrediction:
    """Columns of length n.

    ``step_s``: seconds of a step; ``low_s`` and ``high_s`` its 10 % and 90 % quantile. ``tflops_per_accelerator``:
    model FLOP (causal attention, head, no recomputation) a second; ``mfu_fraction`` the same over the peak of the
    format; ``tokens_per_s`` of the whole job. ``memory_gib`` is the fullest accelerator's peak; ``fits`` compares it.
    ``divides``: the layout divides layers, heads, experts and batch as it must. ``scale_up_gb_s`` and
    ``scale_out_gb_s``: mean traffic one way of an accelerator during a step; ``..._fraction`` its share of the link.
    ``parts`` is the step's time by cause, which sums to ``step_s``.
    """

    step_s: FloatArray
    low_s: FloatArray
    high_s: FloatArray
    tokens_per_s: FloatArray
    tflops_per_accelerator: FloatArray
    mfu_fraction: FloatArray
    memory_gib: FloatArray
    fits: NDArray[np.bool_]
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
    optimizer_state: str = "adam",
    calibration: dict[str, Any] | None = None,
) -> StepPrediction:
    """Step time, rates, memory and traffic of every layout.

    ``global_batch_tokens`` is rounded to whole sequences. ``stack`` names the software (empty: a mean over stacks);
    ``calibration`` is what ``optimize calibrate`` wrote. ValueError where the accelerator has no such format.
    """
    del stack, calibration
    form = precision_of(precision)
    peak, peak16 = accelerator.peak_tflops(form) * _TERA, accelerator.fp16_tflops * _TERA
    if peak <= 0:
        raise ValueError(f"{accelerator.id} has no matrix units for {precision}")
    lay, s, h = layouts, float(sequence_length), float(model.hidden_size)
    t, p, v, d, c, e = (
        lay.tensor_parallel,
        lay.pipeline_parallel,
        lay.virtual_stages,
        lay.data_parallel,
        lay.context_parallel,
        lay.expert_parallel,
    )
    sequences = max(round(global_batch_tokens / s), 1)
    whole = sequences / (d * lay.micro_batch)
    micro = np.maximum(np.ceil(whole - 1e-9), 1.0)
    tokens = lay.micro_batch * s / c
    share = np.ceil(model.layers / p) / model.layers
    again = np.where(lay.recompute == 2, 4.0 / 3.0, 1.0)
    attention_again = np.where(lay.recompute >= 1, 4.0 / 3.0, 1.0)
    link = accelerator.scale_up_gb_s * _GIGA if accelerator.scale_up_gb_s else accelerator.pcie_gb_s * _GIGA
    out = accelerator.scale_out_gb_s * _GIGA
    fast, slow = max(link, out), out
    linear = 6.0 * tokens * (model.mixed_parameters + model.active_routed_parameters) / t * share
    attention = 6.0 * tokens * (model.score_width * s / 2.0 + model.window_score_width * min(model.sliding_window, s))
    attention = attention / t * share
    memory_rate = accelerator.memory_bandwidth_gb_s * _GIGA
    spread = np.where(lay.sequence_parallel > 0, t, 1.0)
    layers = model.layers * share
    elementwise = layers * tokens * h * _PASSES * (10.0 / spread + 24.0 / t) / memory_rate * again
    efficiency = _EFFICIENCY[form] * (0.75 if model.experts else 1.0)
    matrix = linear / (peak * efficiency) * again + attention / (peak16 * _ATTENTION_EFFICIENCY) * attention_again
    head = 6.0 * tokens * model.head_parameters / t / (peak16 * _ATTENTION_EFFICIENCY)
    tensor_bytes = layers * np.where(lay.recompute == 2, 6.0, 4.0) * 2.0 * (t - 1.0) / t * 2.0 * tokens * h
    tensor = _EXPOSED_TENSOR * tensor_bytes / np.where(t <= accelerator.scale_up_domain, fast, slow)
    context_bytes = 3.0 * (c - 1.0) / c * 4.0 * lay.micro_batch * s * model.key_value_width / 2.0 / t * layers
    context = 0.3 * context_bytes / np.where(t * c <= accelerator.scale_up_domain, fast, slow)
    moe_layers = model.moe_layers * share
    expert_bytes = moe_layers * 4.0 * tokens * model.active_experts * h * 2.0 * (e - 1.0) / e / t
    expert_rate = np.where(e <= accelerator.scale_up_domain, fast, slow)
    expert = _EXPOSED_EXPERT * expert_bytes / expert_rate
    overhead = layers * _LAYER_OVERHEAD_S
    stage = matrix + elementwise + tensor + context + expert + overhead + head
    pipe = stage * (micro + (p - 1.0) / v)
    copies = d * c
    local = model.mixed_parameters / (t * p) + model.head_parameters / t
    local_routed = model.routed_parameters / (p * e)
    expert_copies = np.maximum(copies * t / e, 1.0)
    gradient_bytes = 6.0 * (local * (copies - 1.0) / copies + local_routed * (expert_copies - 1.0) / expert_copies)
    data_rate = np.where(t * copies <= accelerator.scale_up_domain, fast, slow)
    fsdp_bytes = 8.0 / 6.0 * gradient_bytes * micro
    data_bytes = np.where(lay.zero_stage == 3, fsdp_bytes, gradient_bytes)
    data_time = data_bytes / data_rate
    window = np.where(lay.zero_stage == 3, pipe, stage)
    data = np.maximum(data_time - window, 0.0) + 0.1 * np.minimum(data_time, window)
    update = 30.0 * (local / np.where(lay.zero_stage >= 1, copies, 1.0)) / memory_rate
    step = pipe + data + update
    per_token = flop_per_token(model, s, "causal")
    rate = sequences * s / step
    tflops = rate * per_token / lay.accelerators / _TERA
    used = memory_gib(model, lay, sequence_length=s, micro_batches=micro, optimizer_state=optimizer_state)
    inside = np.where(t <= accelerator.scale_up_domain, tensor_bytes, 0.0) * micro
    outside = np.where(t <= accelerator.scale_up_domain, 0.0, tensor_bytes) * micro
    routed_inside = e <= accelerator.scale_up_domain
    inside = inside + np.where(routed_inside, expert_bytes, 0.0) * micro
    outside = outside + np.where(routed_inside, 0.0, expert_bytes) * micro
    data_inside = t * copies <= accelerator.scale_up_domain
    inside = inside + np.where(data_inside, data_bytes, 0.0)
    outside = outside + np.where(data_inside, 0.0, data_bytes)
    up, down = inside / step / _GIGA, outside / step / _GIGA
    parts = {
        "matrix": (matrix + head) * micro,
        "elementwise": elementwise * micro,
        "tensor": tensor * micro,
        "context": context * micro,
        "expert": expert * micro,
        "overhead": overhead * micro,
        "bubble": pipe - stage * micro,
        "data": data,
        "optimizer": update + 0.0 * step,
    }
    divides = (
        (whole == micro)
        & (model.attention_heads % t == 0)
        & (p * v <= model.layers)
        & (np.asarray(model.experts or 1) % e == 0)
    )
    return StepPrediction(
        step_s=step,
        low_s=step * 0.85,
        high_s=step * 1.2,
        tokens_per_s=rate,
        tflops_per_accelerator=tflops,
        mfu_fraction=tflops * _TERA / peak,
        memory_gib=used,
        fits=used <= accelerator.memory_gib,
        divides=np.asarray(divides, dtype=np.bool_),
        micro_batches=micro,
        scale_up_gb_s=up,
        scale_up_fraction=up * _GIGA / fast,
        scale_out_gb_s=down,
        scale_out_fraction=down * _GIGA / slow,
        parts=parts,
        evidence="none",
    )
