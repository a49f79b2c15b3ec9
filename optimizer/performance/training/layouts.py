"""How a model is spread over accelerators, as columns."""

from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimizer.performance.factors import FloatArray

#: What is computed again in the backward pass; ``Layouts.recompute`` points into this.
RECOMPUTE: Final = ("none", "selective", "full", "operators")


@dataclass(frozen=True, slots=True, eq=False)
class Layouts:
    """Columns of one length n, float64. Build it with ``Layouts.of``, which broadcasts.

    ``accelerators`` = tensor x pipeline x data x context parallel. ``expert_parallel`` divides the experts among
    ranks that are otherwise data, context or tensor parallel. ``virtual_stages`` is model chunks a pipeline stage.
    ``zero_stage`` 0: whole copies; 1: optimizer state divided over data parallel; 2: gradients too; 3: weights
    too (FSDP). ``recompute`` is a code into ``RECOMPUTE``: nothing, attention only, whole layers, or every second
    matrix product (the per-operator policy of torchtitan). ``micro_batch`` is sequences. ``sequence_parallel`` is 1
    where norms and dropout are divided over tensor-parallel ranks.
    """

    tensor_parallel: FloatArray
    pipeline_parallel: FloatArray
    virtual_stages: FloatArray
    data_parallel: FloatArray
    context_parallel: FloatArray
    expert_parallel: FloatArray
    zero_stage: FloatArray
    recompute: FloatArray
    micro_batch: FloatArray
    sequence_parallel: FloatArray

    @classmethod
    def of(
        cls,
        *,
        tensor_parallel: ArrayLike = 1,
        pipeline_parallel: ArrayLike = 1,
        virtual_stages: ArrayLike = 1,
        data_parallel: ArrayLike = 1,
        context_parallel: ArrayLike = 1,
        expert_parallel: ArrayLike = 1,
        zero_stage: ArrayLike = 1,
        recompute: ArrayLike = 0,
        micro_batch: ArrayLike = 1,
        sequence_parallel: ArrayLike = 1,
    ) -> "Layouts":
        """Broadcast scalars and columns to one length. ValueError on a degree below 1 or an unknown code."""
        given = {name: value for name, value in locals().items() if name != "cls"}
        columns = np.broadcast_arrays(*(np.atleast_1d(np.asarray(value)) for value in given.values()))
        values: dict[str, Any] = {
            name: np.ascontiguousarray(column, dtype=np.float64) for name, column in zip(given, columns, strict=True)
        }
        largest = {"zero_stage": 3, "recompute": len(RECOMPUTE) - 1, "sequence_parallel": 1}
        for name, column in values.items():
            low, high = (0.0, largest[name]) if name in largest else (1.0, np.inf)
            if not np.all((column >= low) & (column <= high)):
                raise ValueError(f"{name} must lie in {low:g}..{high:g}")
        return cls(**values)

    @property
    def size(self) -> int:
        """Rows."""
        return int(self.tensor_parallel.size)

    @property
    def accelerators(self) -> FloatArray:
        """Accelerators of each layout."""
        return self.tensor_parallel * self.pipeline_parallel * self.data_parallel * self.context_parallel

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_] | slice) -> "Layouts":
        """The given rows, by index, mask or slice."""
        return Layouts(*(getattr(self, field.name)[rows] for field in fields(self)))
