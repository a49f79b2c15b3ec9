"""Memory of one accelerator in training: states, activations, logits.

Sources of the byte counts: Rajbhandari et al. 2020 (ZeRO), Korthikanti et al. 2022 (activations, sequence parallelism,
interleaving factor), Megatron-LM's table of its distributed optimizer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

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


#: Optimizer-state schemes by name.
STATES: Final[Mapping[str, StateBytes]] = MappingProxyType(
    {
        "adam": StateBytes(2.0, 4.0, 12.0),
        "adam_bf16_gradients": StateBytes(2.0, 2.0, 12.0),
        "adam_bf16_moments": StateBytes(2.0, 4.0, 8.0),
        "adam_8bit": StateBytes(2.0, 2.0, 6.0),
        "adafactor": StateBytes(2.0, 2.0, 4.1),
        "muon": StateBytes(2.0, 4.0, 8.0),
    }
)
#: Context, libraries and communication buffers beside the sum, and allocator loss on the sum.
FIXED_GIB: Final = 3.0
FRAGMENTATION_FACTOR: Final = 1.05


def memory_gib(
    model: TrainingModel,
    layouts: Layouts,
    *,
    sequence_length: float,
    micro_batches: FloatArray,
    optimizer_state: str = "adam",
) -> FloatArray:
    """Peak GiB of the fullest accelerator of each layout (the first pipeline stage, or the last with its logits)."""
    state, lay = STATES[optimizer_state], layouts
    t, p, c = lay.tensor_parallel, lay.pipeline_parallel, lay.context_parallel
    replicas = lay.data_parallel * c
    dense = model.mixed_parameters / (t * p) + model.head_parameters * np.where(p > 1, 1.0, 2.0) / t
    routed = model.routed_parameters / (p * np.maximum(lay.expert_parallel, 1.0))
    expert_replicas = np.maximum(replicas * t / lay.expert_parallel, 1.0)
    states = np.zeros(lay.size)
    for parameters, copies in ((dense, replicas), (routed, expert_replicas)):
        held = [
            np.where(lay.zero_stage >= stage, each / copies, each)
            for stage, each in ((3, state.weights), (2, state.gradients), (1, state.optimizer))
        ]
        states += parameters * (held[0] + held[1] + held[2])
    tokens = lay.micro_batch * sequence_length / c
    h = float(model.hidden_size)
    spread = np.where(lay.sequence_parallel > 0, t, 1.0)
    layer = tokens * h * (10.0 / spread + 24.0 / t)
    layer = np.where(lay.recompute == 2, 2.0 * tokens * h / spread, layer)
    in_flight = np.where(p > 1, np.minimum(micro_batches, p) / p * (1.0 + (p - 1.0) / (p * lay.virtual_stages)), 1.0)
    working = tokens * h * (10.0 / spread + 24.0 / t)
    activations = model.layers * layer * in_flight + working
    logits = 8.0 * tokens * model.vocabulary / t
    gathered = np.where(lay.zero_stage == 3, 4.0 * (model.mixed_parameters / model.layers) / t, 0.0)
    peak = states + np.maximum(activations, activations * np.minimum(1.0 / p, 1.0) + logits) + gathered
    return np.asarray(peak * FRAGMENTATION_FACTOR / _GIB + FIXED_GIB, dtype=np.float64)
