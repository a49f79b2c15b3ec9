"""Which layouts are tried: every usual way to spread a model over accelerators, before replicas are counted."""

from functools import lru_cache
from itertools import product
from typing import Final

import numpy as np

from optimizer.instance.model import Instance
from optimizer.instance.training import TrainingLayouts
from optimizer.performance.training import RECOMPUTE, Layouts, TrainingAccelerator, TrainingModel
from optimizer.training.jobs import Job, training_workload

#: Degrees of published runs (docs/training.md); those that do not suit the model fall away below.
TENSOR: Final = (1, 2, 4, 8, 16, 32, 64)
PIPELINE: Final = (
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    10,
    12,
    14,
    15,
    16,
    18,
    20,
    21,
    24,
    28,
    30,
    32,
    35,
    36,
    40,
    42,
    48,
    56,
    64,
)
VIRTUAL: Final = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12)
CONTEXT: Final = (1, 2, 4, 8, 16, 32)
MOST_EXPERT_PARALLEL: Final = 256
MICRO_BATCH: Final = (1, 2, 4)
#: Fewer tokens of a sequence on one context-parallel rank than this are not worth the exchange (assumed).
_LEAST_CONTEXT_TOKENS: Final = 4096
#: Most idle stages that uneven pipelines may waste, as a share.
_WASTE: Final = 0.1


def base_layouts(instance: Instance, job: Job, accelerator: TrainingAccelerator) -> Layouts:
    """Layouts of one replica that suit the model and the accelerator; ``data_parallel`` is 1 in all of them.

    Tensor parallelism stays inside the scale-up domain (the host's PCIe where there is none), divides the heads;
    pipelines leave no stage empty; interleaving divides the layers; experts divide evenly.
    """
    domain = max(accelerator.scale_up_domain, 1)
    return _grid(job.model, job.sequence_tokens, domain, training_workload(instance).layouts)


@lru_cache(maxsize=64)
def _grid(model: TrainingModel, sequence_tokens: int, domain: int, own: TrainingLayouts) -> Layouts:
    """Every combination of degrees; the same for all accelerators of one domain."""
    tensor = [t for t in own.tensor_parallel or TENSOR if t <= domain and model.attention_heads % t == 0]
    context = [
        c
        for c in own.context_parallel or CONTEXT
        if c == 1 or own.context_parallel or sequence_tokens // c >= _LEAST_CONTEXT_TOKENS
    ]
    usual = _expert_degrees(model.experts)
    experts = [e for e in own.expert_parallel or usual if (model.experts % e == 0 if model.experts else e == 1)]
    pipelines = [
        (p, v)
        for p in own.pipeline_parallel or PIPELINE
        for v in own.virtual_stages or _interleaving(model, p)
        if _suits(model, p, v, strict=own.pipeline_parallel is None)
    ]
    micro = own.micro_batch or MICRO_BATCH
    recompute = [RECOMPUTE.index(name) for name in own.recompute]
    rows = product(tensor, pipelines, context, experts, micro, recompute, own.zero_stages)
    # Weights that are gathered every pass (FSDP) do not go with pipelines in any published stack.
    kept = [(t, p, v, c, e, b, r, z) for t, (p, v), c, e, b, r, z in rows if not (z == 3 and p > 1)]
    grid = np.array(kept, dtype=np.float64).reshape(-1, 8)
    return Layouts.of(
        tensor_parallel=grid[:, 0],
        pipeline_parallel=grid[:, 1],
        virtual_stages=grid[:, 2],
        context_parallel=grid[:, 3],
        expert_parallel=grid[:, 4],
        micro_batch=grid[:, 5],
        recompute=grid[:, 6],
        zero_stage=grid[:, 7],
        sequence_parallel=np.where(grid[:, 0] > 1, 1.0, 0.0),
    )


def _expert_degrees(experts: int) -> tuple[int, ...]:
    """Degrees that share the experts out evenly: the largest divisor below each doubling, and 1."""
    if experts == 0:
        return (1,)
    divisors = [e for e in range(1, min(experts, MOST_EXPERT_PARALLEL) + 1) if experts % e == 0]
    steps = [2**power for power in range(1, 9)]
    return tuple(sorted({1, *(max(e for e in divisors if e <= step) for step in steps)}))


def _interleaving(model: TrainingModel, pipeline: int) -> tuple[int, ...]:
    """No interleaving, a little, and the most: between them nothing is faster, and memory differs little."""
    if pipeline == 1:
        return (1,)
    fitting = [v for v in VIRTUAL if model.layers % (pipeline * v) == 0]
    return tuple(sorted({1, *fitting[1:2], *fitting[-1:]}))


def _suits(model: TrainingModel, p: int, v: int, *, strict: bool) -> bool:
    """Whether a pipeline leaves no stage empty; by default also whether uneven stages waste little."""
    if p == 1:
        return v == 1
    if p * v > model.layers or (v > 1 and model.layers % (p * v) != 0):
        return False
    stage = -(-model.layers // p)
    return (p - 1) * stage < model.layers and (not strict or stage * p <= model.layers * (1.0 + _WASTE))
