"""Memory of one accelerator in training: states, activations, logits.

Activations of a layer and micro-batch, in bytes a token of width h (16-bit values that the backward pass needs,
Korthikanti et al. 2022): inputs and outputs of two norms 8, query, key and value, attention's output 2, the MLP's two
(or, gated, three) widths at 2 each way, dropout masks 2 where there is dropout; 34 for the GPT of that paper. Early
software keeps the scores too: 5 a s / h. Nothing but the layer's input is kept under full recomputation, everything
but the scores under selective. The first of p stages holds p micro-batches of L/p layers: L layers; interleaving adds
the factor 1 + (p - 1)/(p v).

Sources of the bytes of states: Rajbhandari et al. 2020 (ZeRO), Megatron-LM's table of its distributed optimizer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from optimizer.performance.factors import FloatArray
from optimizer.performance.training.layouts import Layouts
from optimizer.performance.training.model import TrainingModel

_GIB: Final = 2.0**30


@dataclass(frozen=True, slots=True)
class StateBytes:
    """Bytes a parameter: the weights that are multiplied with, the gradients, the optimizer's state with its master."""

    weights: float
    gradients: float
    optimizer: float


#: Optimizer-state schemes by name; ``adam`` is Megatron's with FP32 gradients (18 B), ``adam_bf16_gradients`` ZeRO's
#: count and NVIDIA's recipes (16 B), ``adam_two_gradients`` that of fp16 and of DeepSpeed's bf16 in 2022 (20 B),
#: ``adam_bf16_moments`` DeepSeek-V3's (14 B with 16-bit weights), ``adam_8bit`` also what 16-bit moments and masters
#: kept as 16-bit remainders take (Transformer Engine's FusedAdam in NeMo AutoModel).
STATES: Final[Mapping[str, StateBytes]] = MappingProxyType(
    {
        "adam": StateBytes(2.0, 4.0, 12.0),
        "adam_two_gradients": StateBytes(2.0, 6.0, 12.0),
        "adam_bf16_gradients": StateBytes(2.0, 2.0, 12.0),
        "adam_bf16_moments": StateBytes(2.0, 4.0, 8.0),
        "adam_8bit": StateBytes(2.0, 2.0, 6.0),
        "adafactor": StateBytes(2.0, 2.0, 4.1),
        "muon": StateBytes(2.0, 4.0, 8.0),
    }
)
#: Context, libraries and communication buffers beside the sum: what BigScience's measured peaks exceed the sum by.
FIXED_GIB: Final = 3.0
#: What the allocator loses (blocks of other sizes are freed and taken again), with buffers of collectives.
FRAGMENTATION_FACTOR: Final = 1.1
#: Bytes an element of logits: 16-bit ones, their FP32 copy, the gradient, and half of it for the softmax in flight.
_LOGIT_BYTES: Final = 12.0
#: The same with a fused loss, which leaves its FP32 softmax and the gradient in one place beside the 16-bit logits
#: (Megatron-Core's vocab-parallel cross entropy, Transformer Engine's, flash-attention's of LLM Foundry).
_FUSED_LOGIT_BYTES: Final = 6.0
#: Bytes a parameter of 32-bit gradients beside 16-bit ones.
_WHOLE_GRADIENTS: Final = 4.0
#: The least that a run can do with: 16-bit gradients and moments, weights in the format of the products, activations
#: recomputed or sent to the host but for a layer's input, logits in 16 bits and in parts, experts split further.
_LEAN_GRADIENTS, _LEAN_OPTIMIZER = 2.0, 8.0
_LEAN_LOGIT_BYTES: Final = 2.0
_LEAN_FIXED_GIB: Final = 1.5


@dataclass(frozen=True, slots=True, eq=False)
class MemoryUse:
    """Columns in GiB of the fullest accelerator."""

    states_gib: FloatArray
    activations_gib: FloatArray
    logits_gib: FloatArray
    fixed_gib: FloatArray

    @property
    def total_gib(self) -> FloatArray:
        """The peak."""
        return self.states_gib + self.activations_gib + self.logits_gib + self.fixed_gib


def _states(
    model: TrainingModel,
    lay: Layouts,
    state: StateBytes,
    expert_split: FloatArray | float = 1.0,
    whole_gradients: float = _WHOLE_GRADIENTS,
) -> FloatArray:
    t, p = lay.tensor_parallel, lay.pipeline_parallel
    copies = lay.data_parallel * lay.context_parallel
    tied = 1.0 if model.tied_embeddings else 2.0
    dense = model.mixed_parameters / (t * p) + model.head_parameters * np.where(p > 1, 1.0, tied) / t
    routed = model.routed_parameters / (p * lay.expert_parallel * expert_split)
    expert_copies = np.maximum(copies * t / lay.expert_parallel / expert_split, 1.0)
    total = np.zeros(lay.size)
    # With a pipeline, gathered weights and whole gradients (32 bits beside the 16-bit ones) stay until the step's end.
    staged = (lay.zero_stage == 3) & (p > 1)
    for parameters, ranks in ((dense, copies), (routed, expert_copies)):
        # What has one copy is not reduced: its gradient is the whole one.
        whole = np.where(ranks > 1.0, whole_gradients, 0.0)
        held = np.where(staged, state.weights + state.gradients + whole, 0.0)
        for stage, each in ((3, state.weights), (2, state.gradients), (1, state.optimizer)):
            part = np.where(lay.zero_stage >= stage, each / ranks, each)
            held = held + np.where(staged & (stage > 1), 0.0, part)
        total += parameters * held
    layer = (model.mixed_parameters / t + model.routed_parameters / lay.expert_parallel) / model.layers
    # FSDP gathers a layer while the next one comes, and reduces its gradient in full size.
    gathered = np.where((lay.zero_stage == 3) & ~staged, (2.0 * state.weights + state.gradients) * layer, 0.0)
    return np.asarray(total + gathered, dtype=np.float64)


def activation_bytes_per_token(model: TrainingModel, lay: Layouts, scores: FloatArray | float = 0.0) -> FloatArray:
    """Bytes a token and layer that the backward pass needs; ``scores`` is heads x sequence where they are kept."""
    h, t = float(model.hidden_size), lay.tensor_parallel
    spread = np.where(lay.sequence_parallel > 0, t, 1.0)
    share = model.attention_layers / model.layers if model.attention_layers else 1.0
    attention = share * (2.0 * model.attention_width + 2.0 * model.key_value_width + 2.0 * model.attention_width)
    attention += (1.0 - share) * 8.0 * model.linear_width
    widths = 2.0 * model.mlp_matrices * model.mlp_width
    # Tokens that go to experts are copied, before them and after them.
    routed = 4.0 * model.active_experts * model.expert_hidden_size * model.moe_layers / model.layers
    masks = 2.0 * h if model.mlp_matrices == 2 and model.is_dense else 0.0
    kept = np.where(lay.recompute >= 1, 0.0, 5.0 * np.asarray(scores))
    whole = (8.0 * h + masks) / spread + (attention + widths + routed + kept) / t
    again = np.where(lay.recompute == 3, 0.6 * whole, whole)
    return np.where(lay.recompute == 2, 2.0 * h / spread, again)


def memory_use(
    model: TrainingModel,
    layouts: Layouts,
    *,
    sequence_length: float,
    micro_batches: FloatArray,
    optimizer_state: str = "adam_bf16_gradients",
    keeps_scores: bool = False,
    fused_loss: bool = False,
) -> MemoryUse:
    """Memory by what holds it.

    ``keeps_scores``: attention is not fused (software of 2021-22); ``fused_loss``: the loss is one kernel over logits.
    """
    lay = layouts
    states = _states(model, lay, STATES[optimizer_state])
    each = _FUSED_LOGIT_BYTES if fused_loss else _LOGIT_BYTES
    activations, logits = _activations(model, lay, sequence_length, micro_batches, keeps_scores, each)
    return MemoryUse(
        states * FRAGMENTATION_FACTOR / _GIB,
        activations * FRAGMENTATION_FACTOR / _GIB,
        logits * each / _GIB,
        np.full(lay.size, FIXED_GIB),
    )


def _activations(
    model: TrainingModel,
    lay: Layouts,
    sequence_length: float,
    micro_batches: FloatArray,
    keeps_scores: bool,
    logit_bytes: float,
) -> tuple[FloatArray, FloatArray]:
    """Bytes of activations, and elements of logits beyond what the last stage has less than the first."""
    p, v = lay.pipeline_parallel, lay.virtual_stages
    tokens = lay.micro_batch * sequence_length / lay.context_parallel
    scores = float(model.attention_heads) * sequence_length if keeps_scores else 0.0
    layer = tokens * activation_bytes_per_token(model, lay, scores)
    flight = np.minimum(micro_batches, p) / p * np.where(v > 1, 1.0 + (p - 1.0) / (p * v), 1.0)
    # Under full recomputation one layer is computed anew at a time.
    none = Layouts.of(
        tensor_parallel=lay.tensor_parallel, sequence_parallel=lay.sequence_parallel, recompute=np.zeros(lay.size)
    )
    anew = np.where(lay.recompute == 2, tokens * activation_bytes_per_token(model, none, scores), 0.0)
    activations = model.layers * layer * flight + anew
    # The last stage holds one micro-batch in flight where the first holds p: the logits stand in the room between.
    room = model.layers * layer * (flight - 1.0 / p) / logit_bytes
    logits = tokens * model.vocabulary / lay.tensor_parallel
    return activations, np.maximum(logits - np.where(p > 1, room, 0.0), 0.0)


def memory_gib(
    model: TrainingModel,
    layouts: Layouts,
    *,
    sequence_length: float,
    micro_batches: FloatArray,
    optimizer_state: str = "adam_bf16_gradients",
    keeps_scores: bool = False,
    fused_loss: bool = False,
) -> FloatArray:
    """Peak GiB of the fullest accelerator of each layout."""
    return memory_use(
        model,
        layouts,
        sequence_length=sequence_length,
        micro_batches=micro_batches,
        optimizer_state=optimizer_state,
        keeps_scores=keeps_scores,
        fused_loss=fused_loss,
    ).total_gib


def can_fit(
    model: TrainingModel,
    layouts: Layouts,
    memory_gib: float,
    *,
    sequence_length: float,
    micro_batches: FloatArray,
    weight_bytes: float = 2.0,
) -> NDArray[np.bool_]:
    """Whether a layout fits when everything is done to make it fit; False means that nobody can run it.

    Published runs are at the edge of memory with means that tables do not tell (offloading, 16-bit moments, layers
    computed again), so that ``memory_gib`` alone refuses what ran. ``weight_bytes``: 1 with 8-bit or 4-bit products.
    """
    lay = layouts
    lean = StateBytes(weight_bytes, _LEAN_GRADIENTS, _LEAN_OPTIMIZER)
    split = np.minimum(
        lay.tensor_parallel, np.maximum(lay.data_parallel * lay.tensor_parallel / lay.expert_parallel, 1.0)
    )
    states = _states(model, lay, lean, split, 0.0)
    tokens = lay.micro_batch * sequence_length / lay.context_parallel
    flight = np.minimum(micro_batches, lay.pipeline_parallel) / lay.pipeline_parallel
    inputs = 2.0 * tokens * model.hidden_size / lay.tensor_parallel * model.layers * flight
    logits = _LEAN_LOGIT_BYTES * tokens * model.vocabulary / lay.tensor_parallel
    least = (states + np.maximum(inputs, logits)) / _GIB + _LEAN_FIXED_GIB
    return np.asarray(least <= memory_gib, dtype=np.bool_)
