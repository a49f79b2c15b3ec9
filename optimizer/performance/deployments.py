"""The inputs of a prediction: deployments as columns, and the traffic they serve."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimizer.performance.factors import ENGINES, GENERATIONS, PRECISIONS, FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Deployments:
    """Deployments of one model as columns; every column is a float64 or int64 array of one length n.

    Build it with ``Deployments.of``, which broadcasts. ``compute_tflops`` is the dense peak of the format that
    the quantized layers multiply in (``precision_index`` into ``PRECISIONS``), ``fp16_tflops`` the 16-bit one,
    used by attention and by what stays in 16 bits. ``weight_bytes`` is bytes per quantized parameter with its
    scales, ``attention_weight_bytes`` the same for attention where a scheme leaves it wider, ``wide_bytes``
    that of embeddings, head, router and norms. ``kv_bytes`` is bytes per cache element. Link rates are GB/s
    one way per accelerator; ``scale_up_gb_s`` is 0 where there is no link; ``scale_up_domain`` counts the
    accelerators it joins.
    """

    generation_index: NDArray[np.int64]
    precision_index: NDArray[np.int64]
    memory_gib: FloatArray
    memory_bandwidth_gb_s: FloatArray
    compute_tflops: FloatArray
    fp16_tflops: FloatArray
    scale_up_gb_s: FloatArray
    scale_up_pair_gb_s: FloatArray
    scale_up_domain: FloatArray
    scale_out_gb_s: FloatArray
    pcie_gb_s: FloatArray
    tdp_w: FloatArray
    accelerators_per_host: FloatArray
    tensor_parallel: FloatArray
    pipeline_parallel: FloatArray
    expert_parallel: FloatArray
    attention_data_parallel: FloatArray
    weight_bytes: FloatArray
    attention_weight_bytes: FloatArray
    wide_bytes: FloatArray
    kv_bytes: FloatArray

    @classmethod
    def of(
        cls,
        *,
        generation_index: ArrayLike,
        precision_index: ArrayLike,
        memory_gib: ArrayLike,
        memory_bandwidth_gb_s: ArrayLike,
        compute_tflops: ArrayLike,
        fp16_tflops: ArrayLike,
        scale_up_gb_s: ArrayLike,
        scale_up_pair_gb_s: ArrayLike,
        scale_up_domain: ArrayLike,
        scale_out_gb_s: ArrayLike,
        pcie_gb_s: ArrayLike,
        tdp_w: ArrayLike,
        accelerators_per_host: ArrayLike,
        tensor_parallel: ArrayLike,
        pipeline_parallel: ArrayLike = 1,
        expert_parallel: ArrayLike = 1,
        attention_data_parallel: ArrayLike = 1,
        weight_bytes: ArrayLike = 2.0,
        attention_weight_bytes: ArrayLike | None = None,
        wide_bytes: ArrayLike = 2.0,
        kv_bytes: ArrayLike = 2.0,
    ) -> "Deployments":
        """Broadcast scalars and columns to one length and check codes. ValueError on an unknown code."""
        given = dict(locals())
        given.pop("cls")
        if attention_weight_bytes is None:
            given["attention_weight_bytes"] = weight_bytes
        names = [field.name for field in fields(cls)]
        columns = np.broadcast_arrays(*(np.atleast_1d(np.asarray(given[name])) for name in names))
        values: dict[str, Any] = {
            name: np.ascontiguousarray(column, dtype=np.int64 if name.endswith("_index") else np.float64)
            for name, column in zip(names, columns, strict=True)
        }
        for name, codes in (("generation_index", GENERATIONS), ("precision_index", PRECISIONS)):
            if np.any(values[name] < 0) or np.any(values[name] >= len(codes)):
                raise ValueError(f"{name} must lie in 0..{len(codes) - 1}")
        return cls(**values)

    @property
    def size(self) -> int:
        """Rows."""
        return int(self.generation_index.size)

    @property
    def width(self) -> FloatArray:
        """Accelerators of one replica: tensor x pipeline x attention-data parallel."""
        return self.tensor_parallel * self.pipeline_parallel * self.attention_data_parallel

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_] | slice) -> "Deployments":
        """The given rows, by index, mask or slice."""
        return Deployments(*(getattr(self, field.name)[rows] for field in fields(self)))


@dataclass(frozen=True, slots=True)
class Traffic:
    """One request class: mean lengths in tokens, the longest request, and what shortens the work.

    ``prefix_hit_fraction`` of the input is found in the prefix cache. ``speculative_accepted_tokens`` extra
    tokens a step are accepted on average (0 without speculation). ``engine`` is one of ``ENGINES``;
    ``engine_version`` picks its memory constants and its age, empty for the newest known. ``equal_lengths`` says
    that every request is as long as every other, as some benchmarks send them: they stay in step and queue more.
    ``sequence_slots`` are the sequences that the engine was told to schedule at once on each attention-data-parallel
    rank (vLLM's ``max_num_seqs``); 0 for its default.
    """

    input_tokens: float
    output_tokens: float
    max_context_tokens: float = 0.0
    prefix_hit_fraction: float = 0.0
    speculative_accepted_tokens: float = 0.0
    engine: str = "generic"
    engine_version: str = ""
    equal_lengths: bool = False
    sequence_slots: float = 0.0

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise ValueError(f"unknown engine {self.engine!r}; one of {', '.join(ENGINES)}")
        if self.input_tokens < 1 or self.output_tokens < 1:
            raise ValueError("input_tokens and output_tokens must be at least 1")
        if not 0.0 <= self.prefix_hit_fraction <= 1.0:
            raise ValueError("prefix_hit_fraction must lie in 0..1")
        if self.speculative_accepted_tokens < 0.0:
            raise ValueError("speculative_accepted_tokens must be at least 0")
        if self.sequence_slots < 0.0:
            raise ValueError("sequence_slots must be at least 0")

    @property
    def longest_tokens(self) -> float:
        """Tokens of the longest request that must fit: never less than a mean one."""
        return max(self.max_context_tokens, self.input_tokens + self.output_tokens)
