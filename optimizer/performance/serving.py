"""Latency, throughput, memory and link traffic of deployments that serve one request class.

A step of a replica with c requests in flight gives each of them a token. Its time is the dense layers and the
experts (each memory joined with compute), attention over every sequence's cache, communication and overhead;
prompts of other requests are worked on in the same steps (continuous batching), so they lengthen the time per
output token by c / O prompts a step.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimizer.performance.architecture import Architecture
from optimizer.performance.deployments import Deployments, Traffic
from optimizer.performance.factors import Factors, FloatArray
from optimizer.performance.prepare import BLOCK_ROWS, PreparedColumns, PreparedScalars, prepare_columns
from optimizer.performance.roofline import smooth_max
from optimizer.units import MS_PER_S

_MS_GB_PER_BYTE_S = 1e-6
#: Other requests in flight from which on a clump of prompts is complete.
_CLUMP_COMPANIONS = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class ServingPrediction:
    """What a deployment does at a concurrency; arrays of the shape of the concurrency.

    ``tpot_ms`` = ``weights_ms + kv_ms + compute_ms + communication_ms + overhead_ms + prefill_ms``: reading
    weights, attention over the cache, arithmetic beyond what hides behind the reading, links, engine, and
    other requests' prompts. ``ttft_ms`` is the first token, ``latency_ms`` = TTFT + (O - 1) TPOT,
    ``requests_per_s`` = c / latency and ``output_tokens_per_s`` per replica. ``nvlink_gb_s`` is what one
    accelerator sends one way, the worse of decode and prefill. ``total_gib`` is per accelerator, on the
    heaviest stage, at this concurrency. ``kv_link_gb_s`` is what one accelerator sends or takes of prompts' caches over
    the network (``kv_link_limit_gb_s``) between prefill and decode: 0 where one replica does both.
    """

    tpot_ms: FloatArray
    ttft_ms: FloatArray
    latency_ms: FloatArray
    requests_per_s: FloatArray
    output_tokens_per_s: FloatArray
    weights_ms: FloatArray
    kv_ms: FloatArray
    compute_ms: FloatArray
    communication_ms: FloatArray
    overhead_ms: FloatArray
    prefill_ms: FloatArray
    kv_gib: FloatArray
    total_gib: FloatArray
    nvlink_gb_s: FloatArray
    nvlink_limit_gb_s: FloatArray
    weights_gib: FloatArray
    activation_gib: FloatArray
    graphs_gib: FloatArray
    communication_gib: FloatArray
    runtime_gib: FloatArray
    reserve_gib: FloatArray
    kv_tokens_capacity: FloatArray
    largest_concurrency: FloatArray
    kv_link_gb_s: FloatArray
    kv_link_limit_gb_s: FloatArray


#: What the load does not change, straight from the columns.
_FROM_COLUMNS = (
    "weights_gib",
    "activation_gib",
    "graphs_gib",
    "communication_gib",
    "runtime_gib",
    "reserve_gib",
    "kv_tokens_capacity",
    "largest_concurrency",
    "kv_link_limit_gb_s",
)


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Deployments with everything hoisted that the load does not change; ``at`` evaluates a load."""

    columns: PreparedColumns
    scalars: PreparedScalars

    @property
    def size(self) -> int:
        """Rows."""
        return int(self.columns.ranks.size)

    @property
    def largest_concurrency(self) -> FloatArray:
        """Requests that each row holds at once: its cache and its engine's slots."""
        return self.columns.largest_concurrency

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> "Prepared":
        """The given rows, by index (may repeat) or mask."""
        return Prepared(self.columns.take(rows), self.scalars)

    def at(self, concurrency: ArrayLike) -> ServingPrediction:
        """Predict at requests in flight per replica: a scalar, one value a row (n,), or a table (n, k).

        Results have shape (n,) or (n, k). Concurrency must be at least 1.
        """
        load = np.asarray(concurrency, dtype=np.float64)
        shape = load.shape if load.ndim == 2 else (self.size,)
        load = np.broadcast_to(load, shape)
        if load.size and not np.min(load) >= 1.0:
            raise ValueError("concurrency must be at least 1")
        rows_per_block = max(1, BLOCK_ROWS // (shape[1] if load.ndim == 2 else 1))
        if shape[0] <= rows_per_block:
            return ServingPrediction(**_evaluate(self.columns, self.scalars, load))
        out = _constants(self.columns, shape)
        moving = {field.name: np.empty(shape) for field in fields(ServingPrediction) if field.name not in out}
        for start in range(0, shape[0], rows_per_block):
            block = slice(start, start + rows_per_block)
            seen = _evaluate(self.columns.take(block), self.scalars, load[block])
            for name, values in moving.items():
                values[block] = seen[name]
        return ServingPrediction(**out, **moving)


class _ByName:
    """Columns of a prepared block under their names, without copying them into a mapping."""

    __slots__ = ("_columns",)

    def __init__(self, columns: PreparedColumns) -> None:
        self._columns = columns

    def __getitem__(self, name: str) -> FloatArray:
        values: FloatArray = getattr(self._columns, name)
        return values


def _constants(columns: PreparedColumns, shape: tuple[int, ...]) -> dict[str, FloatArray]:
    """Columns that the load does not change, as views of the shape of the load."""
    out: dict[str, FloatArray] = {
        "nvlink_limit_gb_s": columns.link_limit_gb_s,
        "kv_link_gb_s": np.broadcast_to(0.0, (shape[0],)),
    }
    out.update((name, getattr(columns, name)) for name in _FROM_COLUMNS)
    if len(shape) == 1:
        return out
    return {name: np.broadcast_to(values[:, None], shape) for name, values in out.items()}


def step_times(
    columns: "Mapping[str, FloatArray] | _ByName", scalars: PreparedScalars, load: FloatArray
) -> tuple[dict[str, FloatArray], FloatArray]:
    """Times and rates at a load from the columns of ``StepTimes`` by name, and the time of a whole step.

    TTFT of a request: its own prompt, in steps that also decode the others; half a step of waiting; the prompts
    that came with it (a clump that ``others`` must be there to form); and its part of the queue of all others,
    which every new wave of requests forms.
    """
    s = scalars

    def column(name: str) -> FloatArray:
        values = columns[name]
        return values[:, None] if load.ndim == 2 else values

    ranks, data_parallel = column("ranks"), column("attention_data_parallel")
    # Sequences of one micro-batch in one rank; a rank with fewer than one still runs the step.
    sequences = np.maximum(load / ranks, 1.0)
    tokens = sequences * s.tokens_per_step
    weights = column("weights_ms")
    dense = smooth_max(weights, tokens * column("token_ms"), s.blend_exponent)
    if s.has_experts:
        touched = np.maximum(-np.expm1(tokens * data_parallel * s.log_miss), s.active_share)
        expert_weights = column("expert_weights_ms") * touched
        padded = tokens + column("expert_padding_tokens") * touched
        experts = smooth_max(expert_weights, padded * column("expert_token_ms"), s.blend_exponent)
        weights = weights + expert_weights
        dense = dense + experts
    elif weights.shape != load.shape:
        weights = np.broadcast_to(weights, load.shape)
    kv = sequences * column("sequence_ms")
    small = column("comm_small_fixed_ms") + column("comm_small_token_ms") * tokens
    large = column("comm_large_fixed_ms") + column("comm_large_token_ms") * tokens
    communication = np.minimum(small, large)
    communication += column("comm_other_fixed_ms") + column("comm_other_token_ms") * tokens
    overhead = column("fixed_ms") + column("host_ms") * sequences
    step = dense + kv + communication + overhead

    share = column("prefill_share_ms")
    # Prompts of the other requests of the rank: each comes once in the O tokens of a request.
    others = sequences - 1.0
    per_step = 1.0 / s.tokens_per_step
    interference = others * share * (s.interference / s.output_tokens)
    tpot = step * per_step + interference
    queued = others * s.queue_fraction + np.minimum(others * (1.0 / _CLUMP_COMPANIONS), 1.0) * s.clump_prompts
    ttft = column("prefill_ms") + column("prefill_chunks") * kv + 0.5 * step + queued * share + s.request_ms
    latency = ttft + (s.output_tokens - 1.0) * tpot
    requests = load * (MS_PER_S / latency)
    return {
        "tpot_ms": tpot,
        "ttft_ms": ttft,
        "latency_ms": latency,
        "requests_per_s": requests,
        "output_tokens_per_s": requests * s.output_tokens,
        "weights_ms": weights * per_step,
        "kv_ms": kv * per_step,
        "compute_ms": (dense - weights) * per_step,
        "communication_ms": communication * per_step,
        "overhead_ms": overhead * per_step,
        "prefill_ms": interference,
    }, step


def _evaluate(columns: PreparedColumns, scalars: PreparedScalars, load: FloatArray) -> dict[str, FloatArray]:
    """All predictions of a block of rows."""

    def column(name: str) -> FloatArray:
        values: FloatArray = getattr(columns, name)
        return values[:, None] if load.ndim == 2 else values

    out, step = step_times(_ByName(columns), scalars, load)
    kv_gib = np.ceil(load / column("attention_data_parallel")) * column("sequence_gib")
    kv_gib = np.maximum(kv_gib, column("longest_gib"))
    link = np.maximum(column("link_bytes_per_sequence") * load * _MS_GB_PER_BYTE_S / step, column("prefill_link_gb_s"))
    out.update(kv_gib=kv_gib, total_gib=column("fixed_gib") + kv_gib, nvlink_gb_s=link)
    out.update(_constants(columns, load.shape))
    return out


def prepare(
    architecture: Architecture,
    deployments: Deployments,
    traffic: Traffic,
    factors: Factors,
    *,
    usable_memory_fraction: FloatArray | float | None = None,
) -> Prepared:
    """Hoist what the load does not change. ``usable_memory_fraction`` defaults to the packaged engine default."""
    columns, scalars = prepare_columns(architecture, deployments, traffic, factors, usable_memory_fraction)
    return Prepared(columns, scalars)


def predict_serving(
    architecture: Architecture,
    deployments: Deployments,
    traffic: Traffic,
    concurrency: ArrayLike,
    factors: Factors,
    *,
    usable_memory_fraction: FloatArray | float | None = None,
) -> ServingPrediction:
    """Predict every deployment at its concurrency: ``prepare(...).at(concurrency)`` in one call."""
    n = deployments.size
    load = np.asarray(concurrency, dtype=np.float64)
    if n <= BLOCK_ROWS or load.ndim == 2:
        prepared = prepare(architecture, deployments, traffic, factors, usable_memory_fraction=usable_memory_fraction)
        return prepared.at(load)
    # Block by block, the hoisted columns never leave the processor's cache.
    load = np.broadcast_to(load, (n,))
    usable = usable_memory_fraction
    out = {field.name: np.empty(n) for field in fields(ServingPrediction)}
    for start in range(0, n, BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        part = usable[block] if isinstance(usable, np.ndarray) and usable.ndim else usable
        prepared = prepare(architecture, deployments.take(block), traffic, factors, usable_memory_fraction=part)
        seen = prepared.at(load[block])
        for name, values in out.items():
            values[block] = getattr(seen, name)
    return ServingPrediction(**out)
