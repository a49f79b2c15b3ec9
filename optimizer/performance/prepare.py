"""What does not depend on the load: one row per deployment, computed once and then used at any concurrency."""

from dataclasses import dataclass, fields
from math import log1p

import numpy as np
from numpy.typing import NDArray

from optimizer.performance.architecture import Architecture
from optimizer.performance.communication import step_communication
from optimizer.performance.deployments import Deployments, Traffic
from optimizer.performance.factors import ENGINES, Factors, FloatArray
from optimizer.performance.memory import MemoryItems, kv_tokens_available, max_concurrency, memory_items
from optimizer.performance.roofline import (
    FLOP_PER_PARAMETER,
    WIDE_WEIGHT_BYTES,
    attention_ms_per_flop,
    compute_ms_per_flop,
    decode_attention_ms,
    prefill_attention_flop,
    smooth_max,
    stream_ms_per_byte,
    wide_compute_ms_per_flop,
)
from optimizer.performance.sharding import Shards, decode_context_tokens, shard_cache, shard_weights

_MS_PER_US = 1e-3
#: Rows worked on at a time.
BLOCK_ROWS = 8192


@dataclass(frozen=True, slots=True, eq=False)
class PreparedColumns:
    """Columns of length n that the load multiplies. Times in ms, over all pipeline stages together.

    ``weights_ms`` reads every dense weight once, ``token_ms`` multiplies one token; ``expert_*`` the same for
    routed experts if all are touched; ``sequence_ms`` is decode attention of one sequence; ``comm_*`` are the
    lines of ``StepCommunication``; ``fixed_ms`` and ``host_ms`` are overhead a step and a sequence;
    ``prefill_ms`` is one prompt alone, in ``prefill_chunks`` steps, ``prefill_share_ms`` what it adds to a step
    that runs anyway.
    """

    ranks: FloatArray
    attention_data_parallel: FloatArray
    weights_ms: FloatArray
    token_ms: FloatArray
    expert_weights_ms: FloatArray
    expert_token_ms: FloatArray
    sequence_ms: FloatArray
    comm_small_fixed_ms: FloatArray
    comm_small_token_ms: FloatArray
    comm_large_fixed_ms: FloatArray
    comm_large_token_ms: FloatArray
    comm_other_fixed_ms: FloatArray
    comm_other_token_ms: FloatArray
    fixed_ms: FloatArray
    host_ms: FloatArray
    prefill_ms: FloatArray
    prefill_share_ms: FloatArray
    prefill_chunks: FloatArray
    link_bytes_per_sequence: FloatArray
    prefill_link_gb_s: FloatArray
    link_limit_gb_s: FloatArray
    width: FloatArray
    weights_gib: FloatArray
    activation_gib: FloatArray
    graphs_gib: FloatArray
    communication_gib: FloatArray
    runtime_gib: FloatArray
    reserve_gib: FloatArray
    fixed_gib: FloatArray
    sequence_gib: FloatArray
    longest_gib: FloatArray
    pool_gib: FloatArray
    kv_tokens_capacity: FloatArray
    largest_concurrency: FloatArray

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_] | slice) -> "PreparedColumns":
        """The given rows, by index, mask or slice."""
        return PreparedColumns(*(getattr(self, field.name)[rows] for field in fields(self)))


@dataclass(frozen=True, slots=True)
class PreparedScalars:
    """Numbers that all rows share. ``log_miss`` = log(1 - k/E): the chance that a token misses an expert."""

    output_tokens: float
    tokens_per_sequence: float
    tokens_per_step: float
    log_miss: float
    has_experts: bool
    blend_exponent: float
    interference: float
    queue_fraction: float
    request_ms: float


def _uneven_stages(layers: int, deployments: Deployments) -> FloatArray:
    """Stages take turns: the heaviest governs, so all work counts as if every stage were as heavy."""
    pp = deployments.pipeline_parallel
    return pp * np.ceil(layers / pp) / layers


def _dense_times(
    d: Deployments, shards: Shards, factors: Factors, uneven: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Reading all dense weights, one token through them with the head, and one without it (prompts), in ms."""
    attention_stream = stream_ms_per_byte(d, d.attention_weight_bytes, factors)
    mlp_stream = stream_ms_per_byte(d, d.weight_bytes, factors)
    wide_stream = stream_ms_per_byte(d, d.wide_bytes, factors)
    layers_ms = shards.attention_bytes * attention_stream + shards.mlp_bytes * mlp_stream
    layers_ms = layers_ms + shards.router_bytes * wide_stream
    weights = layers_ms * uneven + shards.head_bytes * wide_stream
    flop, wide_flop = compute_ms_per_flop(d, factors), wide_compute_ms_per_flop(d, factors)
    wide_attention = (d.attention_weight_bytes >= WIDE_WEIGHT_BYTES) & (d.weight_bytes < WIDE_WEIGHT_BYTES)
    attention = shards.attention_parameters * np.where(wide_attention, wide_flop, flop)
    layers_token = FLOP_PER_PARAMETER * (shards.quantized_parameters * flop + attention) * uneven
    head = FLOP_PER_PARAMETER * shards.wide_parameters * wide_flop
    return weights, layers_token + head, layers_token


def _prepare_block(
    architecture: Architecture,
    deployments: Deployments,
    traffic: Traffic,
    factors: Factors,
    usable_memory_fraction: FloatArray | float | None = None,
) -> tuple[PreparedColumns, PreparedScalars]:
    """A block of rows of ``prepare_columns``."""
    a, d = architecture, deployments
    engine = ENGINES.index(traffic.engine)
    shards, cache = shard_weights(a, d), shard_cache(a, d)
    comm = step_communication(a, d, factors)
    memory = memory_items(
        a, d, traffic, factors, usable_memory_fraction=usable_memory_fraction, shards=shards, cache=cache
    )
    uneven = _uneven_stages(a.layers, d)
    weights, token, prompt_token = _dense_times(d, shards, factors, uneven)
    expert_weights = expert_token = np.zeros(d.size)
    if a.moe_layers:
        imbalance = np.where(d.expert_parallel > 1, factors.expert_imbalance, 1.0)
        stream = stream_ms_per_byte(d, d.weight_bytes, factors) / factors.expert_bandwidth_factor
        flop = compute_ms_per_flop(d, factors) / factors.expert_flop_factor
        expert_weights = shards.expert_bytes * stream * uneven * imbalance
        expert_token = FLOP_PER_PARAMETER * shards.expert_parameters_per_token * flop * uneven * imbalance
    layer_us = a.layers * factors.layer_overhead_us[engine] + a.moe_layers * factors.moe_layer_overhead_us[engine]
    fixed = factors.step_overhead_ms[engine] + layer_us * _MS_PER_US + np.zeros(d.size)
    host = factors.sequence_overhead_us[engine] * _MS_PER_US + np.zeros(d.size)

    new = max(traffic.input_tokens * (1.0 - traffic.prefix_hit_fraction), 1.0)
    cached = traffic.input_tokens - new
    chunks = max(new / factors.prefill_chunk_tokens, 1.0)
    quadratic = prefill_attention_flop(a, new, cached) / d.tensor_parallel * attention_ms_per_flop(d, factors)
    work = new * (prompt_token + expert_token)
    transfer = comm.milliseconds(new / chunks) * chunks
    joined = smooth_max(weights * chunks, new * prompt_token, factors.blend_exponent)
    if a.moe_layers:
        joined = joined + smooth_max(expert_weights * chunks, new * expert_token, factors.blend_exponent)
    prefill = joined + quadratic + transfer + fixed * chunks
    per_token = np.minimum(comm.small_per_token_ms, comm.large_per_token_ms) + comm.other_per_token_ms
    share = work + quadratic + new * per_token
    ranks = d.attention_data_parallel * d.pipeline_parallel
    columns = PreparedColumns(
        ranks=ranks,
        attention_data_parallel=d.attention_data_parallel,
        weights_ms=weights,
        token_ms=token,
        expert_weights_ms=expert_weights,
        expert_token_ms=expert_token,
        sequence_ms=decode_attention_ms(a, d, cache, decode_context_tokens(traffic), factors) * uneven,
        comm_small_fixed_ms=comm.small_fixed_ms,
        comm_small_token_ms=comm.small_per_token_ms,
        comm_large_fixed_ms=comm.large_fixed_ms,
        comm_large_token_ms=comm.large_per_token_ms,
        comm_other_fixed_ms=comm.other_fixed_ms,
        comm_other_token_ms=comm.other_per_token_ms,
        fixed_ms=fixed,
        host_ms=host,
        prefill_ms=prefill,
        prefill_share_ms=share,
        prefill_chunks=chunks + np.zeros(d.size),
        # All micro-batches pass an accelerator in one step of the replica: c / attention-DP sequences.
        link_bytes_per_sequence=comm.link_bytes_per_token
        * (1.0 + traffic.speculative_accepted_tokens)
        / d.attention_data_parallel,
        prefill_link_gb_s=comm.link_bytes_per_token * d.pipeline_parallel * new / (prefill * 1e6),
        link_limit_gb_s=comm.links.gb_s,
        width=d.width,
        kv_tokens_capacity=kv_tokens_available(memory, d, traffic),
        largest_concurrency=max_concurrency(memory, d),
        **_memory_columns(memory),
    )
    scalars = PreparedScalars(
        output_tokens=traffic.output_tokens,
        tokens_per_sequence=1.0 + traffic.speculative_accepted_tokens,
        tokens_per_step=1.0 + traffic.speculative_accepted_tokens,
        log_miss=log1p(-a.active_experts / a.experts) if 0 < a.active_experts < a.experts else -np.inf,
        has_experts=a.moe_layers > 0,
        blend_exponent=factors.blend_exponent,
        interference=factors.prefill_interference,
        queue_fraction=factors.queue_fraction,
        request_ms=float(factors.request_overhead_ms[engine]),
    )
    return columns, scalars


def _memory_columns(memory: MemoryItems) -> dict[str, FloatArray]:
    return {field.name: getattr(memory, field.name) for field in fields(memory)}


def prepare_columns(
    architecture: Architecture,
    deployments: Deployments,
    traffic: Traffic,
    factors: Factors,
    usable_memory_fraction: FloatArray | float | None = None,
) -> tuple[PreparedColumns, PreparedScalars]:
    """Everything about deployments and traffic that the load does not change, columns of length n.

    Works in blocks of rows whose temporaries stay in the processor's cache.
    """
    n = deployments.size
    if n <= BLOCK_ROWS:
        return _prepare_block(architecture, deployments, traffic, factors, usable_memory_fraction)
    usable = usable_memory_fraction
    out = {field.name: np.empty(n) for field in fields(PreparedColumns)}
    for start in range(0, n, BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        part = usable[block] if isinstance(usable, np.ndarray) and usable.ndim else usable
        columns, scalars = _prepare_block(architecture, deployments.take(block), traffic, factors, part)
        for name, values in out.items():
            values[block] = getattr(columns, name)
    return PreparedColumns(**out), scalars
