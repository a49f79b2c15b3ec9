"""Seconds of a step by cause: arithmetic on columns with the measured constants.

Per layer and micro-batch of n = b s / c tokens, on every accelerator (docs/training.md has the formulas with sources):

* matrix products: FLOP / (peak x share of it) + constant x FLOP (1/M + 1/N + 1/K) / memory rate. The second term is
  the traffic of operands and results that is not hidden: a product of M x K by K x N moves (1/M + 1/N + 1/K) bytes a
  FLOP in 16 bits, so that narrow products are slow;
* attention: causal FLOP / (peak x share) (1 + s0/s); early software computes all pairs and writes the scores;
* elementwise kernels, conversions, permutation of tokens, gradient accumulation: passes over memory;
* exposed part of tensor-parallel, context-parallel and expert traffic; a fixed loss; never less than the host needs.

A stage is its layers and perhaps the head; a step is micro-batches x slowest stage + (p - 1)/v of a mean one + what
the data-parallel traffic shows + the optimizer's update + a fixed loss.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from optimizer.performance.factors import FloatArray
from optimizer.performance.training.constants import TrainingFactors
from optimizer.performance.training.work import StepWork

_WORD: Final = 2.0  # bytes of an activation
_FLOP: Final = 6.0  # forward and backward, a multiply and an add, a parameter and token
_HEAD_WIDTH: Final = 128.0  # width of attention heads at which attention is measured
_SHARPNESS: Final = 6.0  # of the larger of host and accelerator time
#: Share of the 16-bit peak that the head reaches at most: its product is wide, its losses are in FP32.
_HEAD_SHARE: Final = 0.7
#: Bytes a parameter: FP32 gradients reduced, 16-bit weights gathered; both passes of FSDP; gradients of early stacks.
_REDUCED, _GATHERED, _SHARDED, _EARLY = 4.0, 2.0, 8.0, 4.0
#: Bytes a parameter that Adam reads and writes with an FP32 master and moments, gradients and the 16-bit copy.
_UPDATE: Final = 30.0
#: Bytes a parameter of reading and writing an FP32 gradient.
_ACCUMULATED: Final = 8.0
_EXPERTS_USUAL: Final = 8.0
_BLACKWELL: Final = 2  # place in ``CALIBRATED``
#: Year of software beside ``MOE_YEAR`` from which grouped products of gated experts are one kernel with activation and
#: MX conversion, in graphs of the whole step (notes of Megatron-Bridge 0.5.1; Transformer Engine, change 2769). Its
#: recipes of models with latent attention (DeepSeek-V3, Kimi K2) have that with a micro-batch of one sequence only.
_FUSED_YEAR: Final = 0.45


@dataclass(frozen=True, slots=True, eq=False)
class StepParts:
    """Columns in seconds of a whole step, which sum to ``step_s`` before effects, and what went over the links (bytes).

    ``host`` is what waiting for the host adds. ``*_bytes`` are one way, an accelerator and step.
    """

    step_s: FloatArray
    matrix: FloatArray
    attention: FloatArray
    elementwise: FloatArray
    head: FloatArray
    tensor: FloatArray
    context: FloatArray
    expert: FloatArray
    overhead: FloatArray
    host: FloatArray
    bubble: FloatArray
    data: FloatArray
    update: FloatArray
    other: FloatArray
    scale_up_bytes: FloatArray
    scale_out_bytes: FloatArray


def _pick(code: FloatArray, *values: float) -> FloatArray:
    return np.array(values)[code.astype(np.int64)]


def step_parts(w: StepWork, f: TrainingFactors) -> StepParts:
    """Seconds and bytes of every row."""
    t, p, c, e = w.tensor, w.pipeline, w.context, w.expert
    early, dense, unfused = w.family == 0, w.experts == 0, w.unfused > 0
    full = w.recompute == 2
    again = np.where(full, 4.0 / 3.0, np.where(w.recompute == 3, 7.0 / 6.0, 1.0))
    attention_again = np.where(full | (unfused & ((w.recompute == 1) | ~early)), 4.0 / 3.0, 1.0)
    tokens = w.micro_batch * w.sequence / c
    rank_tokens = tokens / t
    narrow = np.where(w.sequence_parallel > 0, t, 1.0)
    moe_share = w.moe_layers / w.layers
    fused_experts = (w.moe_year >= _FUSED_YEAR) & (w.generation == _BLACKWELL) & (w.block_scales > 0) & (w.gated > 0)
    fused_experts = fused_experts & ((w.narrow_values == 0) | (w.micro_batch <= 1))
    software = np.exp(-f.expert_software_year * w.moe_year) * np.where(fused_experts, f.expert_fused_factor, 1.0)

    # Shares of the peak.
    clock = w.relative_power**f.power_exponent
    share_16 = _pick(w.generation, f.ampere_matrix_16bit, f.hopper_matrix_16bit, f.blackwell_matrix_16bit)
    share_8 = _pick(w.generation, f.hopper_matrix_8bit, f.hopper_matrix_8bit, f.blackwell_matrix_8bit)
    share = np.where(w.precision == 0, share_16, np.where(w.precision == 1, share_8, f.blackwell_matrix_4bit))
    ultra = np.where(w.precision == 2, f.ultra_matrix_4bit_factor, f.ultra_matrix_factor)
    share = share * np.where(w.ultra > 0, ultra, 1.0)
    peak, peak_16 = w.peak * clock, w.peak_16bit * clock

    # Matrix products of what every token passes, and of routed experts.
    flop = _FLOP * tokens * w.mixed / w.layers / t * again
    streams = 1.0 / tokens + 1.0 / w.hidden + 0.5 * t / w.mlp_width + 0.5 * t / w.attention_width
    matrix = flop * (1.0 / (peak * share) + f.matrix_streaming * streams / w.memory_rate)
    per_expert = rank_tokens * e * w.active_experts / np.maximum(w.experts, 1.0)
    expert_streams = 1.0 / np.maximum(per_expert, 1e-9) + 1.0 / w.expert_hidden + 1.0 / w.expert_width
    expert_flop = _FLOP * rank_tokens * w.active_routed / w.layers * again * f.expert_imbalance
    # Grouped products overlap their streams: the root of the squares, so that wide experts lose nothing to them.
    expert_matrix = expert_flop * np.hypot(
        1.0 / (peak * share * f.expert_matrix_factor), f.expert_streaming * software * expert_streams / w.memory_rate
    )
    matrix = matrix + np.where(dense, 0.0, expert_matrix)

    # Attention.
    pairs = w.score_width * w.sequence * np.where(unfused, 1.0, 0.5)
    pairs = pairs + w.window_score_width * w.window * (1.0 - w.window / (2.0 * w.sequence))
    attention_flop = _FLOP * tokens * pairs / t / w.layers * attention_again
    fused = _pick(w.generation, f.ampere_attention, f.hopper_attention, f.blackwell_attention)
    fused = fused * np.where((w.family == 2) & (w.generation == 1), f.eager_attention_factor, 1.0)
    head_width = np.minimum(w.attention_width / w.heads, _HEAD_WIDTH) / _HEAD_WIDTH
    fused = fused * head_width**f.head_width_exponent
    early_flash = _pick(w.generation, f.ampere_early_flash, f.hopper_early_flash, f.hopper_early_flash)
    fused = np.where(w.early_flash > 0, early_flash, fused)
    attention = attention_flop / (peak_16 * np.where(unfused, f.unfused_attention, fused))
    attention = attention * np.where(unfused, 1.0, 1.0 + f.attention_half_tokens / w.sequence)
    scores = _WORD * tokens * w.heads * w.sequence / t * attention_again
    attention = attention + np.where(unfused, f.softmax_passes * scores / w.memory_rate, 0.0)

    # Passes over memory.
    mlp_part = 0.35 * w.mlp_width / (4.0 * w.hidden)
    passes = 2.0 * f.elementwise_passes * again * (0.3 / narrow + (0.35 + mlp_part) / t)
    elementwise = passes * _WORD * tokens * w.hidden / w.memory_rate
    converted = 2.0 * w.hidden / narrow + (w.attention_width + 1.5 * w.mlp_width) / t
    converted = converted + np.where(dense, 0.0, 2.0 * w.active_experts * w.expert_hidden / t * moe_share)
    scaled = f.quantize_passes * (1.0 + w.block_scales * f.block_scale_factor)
    elementwise = elementwise + np.where(w.precision > 0, scaled * _WORD * tokens * converted / w.memory_rate, 0.0)
    linear = 20.0 * f.linear_passes * _WORD * tokens * w.linear_width / t
    elementwise = elementwise + linear / w.memory_rate * w.linear_layers / w.layers
    gradients = w.mixed / w.layers / t + np.where(dense, 0.0, w.routed / w.layers / e)
    elementwise = elementwise + f.accumulation_passes * _ACCUMULATED * gradients / w.memory_rate
    permuted = rank_tokens * w.active_experts * w.expert_hidden * _WORD * f.permute_passes * software
    permute = np.where(dense, 0.0, permuted / w.memory_rate * moe_share)

    # Traffic inside a layer, one way.
    tensor_bytes = np.where(full, 6.0, 4.0) * (t - 1.0) / t * _WORD * tokens * w.hidden
    tensor_inside = t <= w.domain
    exposed = _pick(
        w.family, f.tensor_exposed_early, f.tensor_exposed_megatron, f.tensor_exposed_eager, f.tensor_exposed_xla
    )
    tensor = exposed * tensor_bytes / np.where(tensor_inside, w.up_rate, w.out_rate)
    context_bytes = 3.0 * (c - 1.0) / c * w.micro_batch * w.sequence * w.key_value_width * _WORD / t
    context_bytes = context_bytes * w.attention_layers / w.layers
    context_inside = t * c <= w.domain
    context = np.where(w.family == 2, f.context_exposed_eager, f.context_exposed) * context_bytes * again
    context = context / np.where(context_inside, w.up_rate, w.out_rate)
    near = np.minimum(e, w.domain)
    groups = np.maximum(e / w.domain, 1.0)
    token_bytes = 4.0 * rank_tokens * w.expert_hidden * _WORD
    expert_in = np.where(dense, 0.0, token_bytes * w.active_experts * (near - 1.0) / near / groups * moe_share)
    remote = (groups - 1.0) * (1.0 - (1.0 - 1.0 / groups) ** w.active_experts)
    expert_out = np.where(dense, 0.0, token_bytes * remote * moe_share)
    overlaps = (p > 1) & (w.virtual > 1)
    outside = f.expert_outside_factor * np.where(overlaps, f.expert_interleaved_factor, 1.0)
    expert = f.expert_exposed * software * (expert_in / w.up_rate + outside * expert_out / w.out_rate)

    # Fixed losses, and the host that launches.
    overhead = _pick(
        w.family,
        f.layer_overhead_early_s,
        f.layer_overhead_megatron_s,
        f.layer_overhead_eager_s,
        f.layer_overhead_xla_s,
    )
    overhead = np.where(w.tuned > 0, f.layer_overhead_tuned_s, overhead) * np.where(full, 4.0 / 3.0, 1.0)
    expert_overhead = f.expert_layer_overhead_s * software * moe_share * w.active_experts / _EXPERTS_USUAL
    overhead = overhead + np.where(dense, 0.0, expert_overhead)
    layer = matrix + attention + elementwise + permute + tensor + context + expert + overhead
    interleaved = (p > 1) & (w.virtual > 1) & (w.grace == 0)
    launch = np.where(w.grace > 0, f.host_moe_grace_s, f.host_moe_s) * software**f.host_year_exponent
    launch = launch * np.where(w.token_drop > 0, f.host_drop_factor, 1.0)
    launch = launch * np.where(interleaved, f.host_interleaved_factor, 1.0)
    launch = moe_share * launch + (1.0 - moe_share) * f.host_dense_s
    ratio = np.minimum(layer, launch) / np.maximum(layer, launch)
    waiting = np.maximum(layer, launch) * (1.0 + ratio**_SHARPNESS) ** (1.0 / _SHARPNESS) - layer

    # Stages: the head stands on the last one, or takes slots that layers leave free.
    head = _FLOP * tokens * w.head / t / (peak_16 * np.minimum(share_16, _HEAD_SHARE))
    head = head + 4.0 * _WORD * tokens * w.vocabulary / t / w.memory_rate
    stage_layers = np.where(p > 1, np.ceil(w.layers / (p * w.virtual)) * w.virtual, w.layers)
    free = np.minimum(p * stage_layers - w.layers, stage_layers)
    timed = layer + waiting
    slowest = np.maximum(stage_layers * timed, (stage_layers - free) * timed + head)
    mean = (w.layers * timed + head) / p
    micro = w.micro_batches
    between = np.where(p > 1, 2.0 * _WORD * tokens * w.hidden / t * w.virtual, 0.0)
    transfer = f.pipeline_exposed * 2.0 * between / w.out_rate
    bubble = (p - 1.0) / w.virtual * mean
    pipe = (slowest + transfer) * micro + bubble

    # Data parallelism: gradients hide behind the last backward pass, weights behind the first forward one.
    copies = w.data * c
    local = (w.mixed / p + w.head * np.where(p > 1, 1.0, 2.0)) / t
    local_routed = w.routed / p / e
    expert_copies = np.maximum(copies * t / e, 1.0)
    moved = local * (copies - 1.0) / copies + local_routed * (expert_copies - 1.0) / expert_copies
    members = np.maximum(np.minimum(copies, w.domain / t), 1.0)
    data_inside = t * copies <= w.domain
    data_rate = np.where(data_inside, w.up_rate, np.minimum(w.up_rate, w.out_rate * members))
    reduce, gather = _REDUCED * moved / data_rate, _GATHERED * moved / data_rate
    # Interleaved stages work on p micro-batches of one chunk before the next: the first chunk's gradients are whole
    # (v - 1)/v of p micro-batches before the step's end, and the last chunk's weights are wanted as much later.
    rounds_apart = np.minimum(micro, p) * (w.virtual - 1.0) / w.virtual
    window = slowest * np.maximum(rounds_apart, 1.0)
    overlapped = np.maximum(reduce - 2.0 / 3.0 * window, 0.0) + np.maximum(gather - window / 3.0, 0.0)
    overlapped = overlapped + f.data_hidden_cost * (reduce + gather)
    # With a pipeline the gathered weights of FSDP stay until the step's end.
    rounds = np.where(p > 1, 1.0, micro)
    sharded = _SHARDED * moved * rounds / data_rate
    both = np.maximum(pipe, sharded) * (1.0 + (np.minimum(pipe, sharded) / np.maximum(pipe, sharded)) ** 4.0) ** 0.25
    fully = both - pipe + f.sharded_hidden_cost * np.minimum(sharded, pipe)
    plain = np.where(early, f.data_exposed_early * _EARLY * moved / data_rate, overlapped)
    data = np.where(w.zero == 3, fully, plain)
    held = np.where(w.zero >= 1, local / copies + local_routed / expert_copies, local + local_routed)
    update = f.optimizer_passes * _UPDATE * held / w.memory_rate
    fixed = np.where(w.family == 2, f.step_overhead_eager_s, f.step_overhead_s)
    fixed = np.where(w.tuned > 0, f.step_overhead_tuned_s, fixed)
    # Losses on the whole: young software, and stragglers that grow with the job.
    accelerators = t * p * w.data * c
    young = 1.0 + f.new_generation_loss * np.exp(-w.software_age_years)
    slower = young * (1.0 + f.scale_loss * np.log(np.maximum(accelerators / 8.0, 1.0)))
    step = (pipe + data + update + fixed) * slower

    count = stage_layers * micro
    inner = [matrix, attention, elementwise + permute, tensor, context, expert, overhead, waiting]
    done = [part * count for part in inner]
    head_time = head * micro / np.where(p > 1, p, 1.0)
    rest = step - sum(done, start=head_time + bubble + data + update)
    layers_sent = w.layers / p * micro
    up = layers_sent * (
        np.where(tensor_inside, tensor_bytes, 0.0) + np.where(context_inside, context_bytes, 0.0) + expert_in
    )
    out = layers_sent * (
        np.where(tensor_inside, 0.0, tensor_bytes) + np.where(context_inside, 0.0, context_bytes) + expert_out
    )
    data_bytes = np.where(w.zero == 3, _SHARDED * rounds, np.where(early, _EARLY, _REDUCED + _GATHERED)) * moved
    up = up + np.where(data_inside, data_bytes, data_bytes * (members - 1.0) / members)
    out = out + np.where(data_inside, 0.0, data_bytes / members)
    stages_inside = t * copies * p <= w.domain
    piped = between * micro
    up, out = up + np.where(stages_inside, piped, 0.0), out + np.where(stages_inside, 0.0, piped)
    return StepParts(
        step_s=step,
        matrix=done[0],
        attention=done[1],
        elementwise=done[2],
        tensor=done[3],
        context=done[4],
        expert=done[5],
        overhead=done[6],
        host=done[7],
        head=head_time,
        bubble=bubble,
        data=data,
        update=update,
        other=rest,
        scale_up_bytes=up,
        scale_out_bytes=out,
    )
