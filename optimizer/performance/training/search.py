"""Every layout of a number of accelerators that divides the model and the batch as it must."""

from collections.abc import Sequence
from itertools import product
from typing import Final

import numpy as np

from optimizer.performance.training.layouts import Layouts
from optimizer.performance.training.model import TrainingModel

#: Degrees that are tried: what published recipes use.
TENSOR: Final = (1, 2, 4, 8)
PIPELINE: Final = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)
VIRTUAL: Final = (1, 2, 3, 4, 5, 6, 8, 12)
CONTEXT: Final = (1, 2, 4, 8, 16, 32)
EXPERT: Final = (1, 2, 4, 8, 16, 32, 64, 128)
MICRO_BATCH: Final = (1, 2, 4, 8, 16)
ZERO: Final = (1, 3)
#: Tokens of a sequence that one accelerator should have at least when it is divided by context parallelism.
_LEAST_TOKENS: Final = 2048


def _uneven(layers: int, pipeline: int, virtual: int) -> bool:
    """Whether virtual stages do not divide a stage's layers, or some would be empty."""
    return virtual > 1 and (pipeline == 1 or bool(-(-layers // pipeline) % virtual) or pipeline * virtual > layers)


def enumerate_layouts(
    model: TrainingModel,
    accelerators: int,
    *,
    sequence_length: int,
    sequences: int,
    scale_up_domain: int = 8,
    tensor: Sequence[int] = TENSOR,
    pipeline: Sequence[int] = PIPELINE,
    virtual: Sequence[int] = VIRTUAL,
    context: Sequence[int] = CONTEXT,
    expert: Sequence[int] = EXPERT,
    zero: Sequence[int] = ZERO,
    recompute: Sequence[int] = (0, 1, 2),
    micro_batch: Sequence[int] = MICRO_BATCH,
) -> Layouts | None:
    """Layouts of exactly so many accelerators; None where there is none.

    Tensor parallelism stays within the scale-up domain, divides the heads and always comes with sequence parallelism;
    virtual stages need a pipeline and divide its layers; FSDP comes without a pipeline; experts divide evenly.
    """
    rows = []
    for t, p, c in product(tensor, pipeline, context):
        if t > max(scale_up_domain, 1) or model.attention_heads % t or p > model.layers or accelerators % (t * p * c):
            continue
        if c > 1 and sequence_length < c * _LEAST_TOKENS:
            continue
        data = accelerators // (t * p * c)
        for e, v, z, b in product(expert, virtual, zero, micro_batch):
            if sequences % (data * b) or (e > 1 and model.is_dense) or (model.experts or 1) % e:
                continue
            if (data * c * t) % e or _uneven(model.layers, p, v) or (z == 3 and p > 1):
                continue
            rows += [(t, p, v, data, c, e, z, r, b) for r in recompute]
    if not rows:
        return None
    columns = np.array(rows, dtype=np.float64).T
    return Layouts.of(
        tensor_parallel=columns[0],
        pipeline_parallel=columns[1],
        virtual_stages=columns[2],
        data_parallel=columns[3],
        context_parallel=columns[4],
        expert_parallel=columns[5],
        zero_stage=columns[6],
        recompute=columns[7],
        micro_batch=columns[8],
        sequence_parallel=1,
    )
