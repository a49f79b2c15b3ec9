"""What does not depend on the load: one row per deployment, computed once and then used at any concurrency."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from optimizer.performance.architecture import Architecture
from optimizer.performance.communication import StepCommunication, communication_time
from optimizer.performance.deployments import Deployments, Traffic
from optimizer.performance.factors import Factors, FloatArray
from optimizer.performance.memory import (
    MemoryItems,
    engine_of,
    kv_tokens_available,
    max_concurrency,
    memory_items,
    sequence_slots,
)
from optimizer.performance.roofline import capped, pick, smooth_max
from optimizer.performance.sharding import shard_cache, shard_weights
from optimizer.performance.work import Work, work_of

#: Experts a token goes to in most of the measured models; overheads are quoted at this number.
_USUAL_ACTIVE_EXPERTS = 8.0
_MS_PER_US = 1e-3
#: Rows worked on at a time.
BLOCK_ROWS = 8192


@dataclass(frozen=True, slots=True, eq=False)
class PreparedColumns:
    """Columns of length n that the load multiplies. Times in ms, over all pipeline stages together.

    ``weights_ms`` reads every dense weight once, ``token_ms`` multiplies one token; ``expert_*`` the same for
    routed experts if all are touched, whose tokens are padded by up to ``expert_padding_tokens``.
    ``sequence_ms`` is decode attention of one sequence; ``comm_*`` are the lines of ``StepCommunication``;
    ``fixed_ms`` and ``host_ms`` are overhead a step and a sequence; ``prefill_ms`` is one prompt alone, in
    ``prefill_chunks`` steps, ``prefill_share_ms`` what it adds to a step that runs anyway.
    """

    ranks: FloatArray
    attention_data_parallel: FloatArray
    weights_ms: FloatArray
    token_ms: FloatArray
    expert_weights_ms: FloatArray
    expert_token_ms: FloatArray
    expert_padding_tokens: FloatArray
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
    kv_link_limit_gb_s: FloatArray

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_] | slice) -> "PreparedColumns":
        """The given rows, by index, mask or slice."""
        return PreparedColumns(*(getattr(self, field.name)[rows] for field in fields(self)))


@dataclass(frozen=True, slots=True)
class PreparedScalars:
    """Numbers that all rows share, or columns where rows of several models and traffics are evaluated together.

    ``log_miss`` = s log(1 - k/E): the chance that a token misses an expert, with s below 1 because tokens of one
    text choose alike. ``active_share`` = k/E. ``clump_prompts`` come together with a request's own.
    """

    output_tokens: FloatArray | float
    tokens_per_step: FloatArray | float
    log_miss: FloatArray | float
    active_share: FloatArray | float
    has_experts: bool
    blend_exponent: float
    interference: float
    queue_fraction: FloatArray | float
    clump_prompts: FloatArray | float
    request_ms: FloatArray | float


@dataclass(frozen=True, slots=True, eq=False)
class StepTimes:
    """Work in milliseconds: the columns and scalars of a prediction that do not concern memory."""

    columns: dict[str, FloatArray]
    scalars: PreparedScalars
    communication: StepCommunication


def _overhead_ms(work: Work, factors: Factors) -> tuple[FloatArray, FloatArray]:
    """Kernels between the products and the host, a step; and what each sequence adds."""
    w, e = work, work.engine
    count = (w.active_experts / _USUAL_ACTIVE_EXPERTS) ** factors.expert_count_exponent
    expert_us = factors.moe_layer_overhead_us[e] * count
    layers_us = (
        w.layers * factors.layer_overhead_us[e]
        + w.expert_layers * expert_us
        + w.latent_layers * factors.latent_layer_overhead_us
        + w.shared_expert_layers * factors.shared_expert_overhead_us
        + w.linear_layers * factors.linear_layer_overhead_us
        + w.query_norm_layers * factors.query_norm_overhead_us
        + w.block_scale_layers * factors.block_scale_overhead_us
        + w.weight_only_layers * factors.weight_only_overhead_us
        + w.expert_parallel_layers * factors.expert_parallel_overhead_us
    )
    aged = np.exp(factors.overhead_age_per_year[e] * w.age_years)
    fixed = (factors.step_overhead_ms[e] + layers_us * _MS_PER_US) * aged
    return fixed, factors.sequence_overhead_us[e] * _MS_PER_US * aged


def times_of(work: Work, factors: Factors) -> StepTimes:
    """Amounts to milliseconds with the measured constants."""
    w, e = work, work.engine
    comm = communication_time(w.messages, w.tensor_parallel, factors, factors.engine_allreduce_time[e])
    bandwidth = w.memory_bytes_per_ms
    dense_ms = w.attention_bytes / pick(factors.bandwidth_efficiency, w.generation, w.attention_width)
    dense_ms = dense_ms + w.mlp_bytes / pick(factors.bandwidth_efficiency, w.generation, w.width)
    dense_ms = dense_ms / bandwidth
    weights = dense_ms + w.wide_bytes / (pick(factors.bandwidth_efficiency, w.generation, 0) * bandwidth)
    expert_rate = factors.engine_expert_rate[e]
    stream = capped(np.take(factors.expert_bandwidth_efficiency, w.width) * expert_rate) * bandwidth
    imbalance = np.where(w.expert_parallel_layers > 0, factors.expert_imbalance, 1.0)

    flop = pick(factors.flop_efficiency, w.generation, w.precision)
    wide_flop = pick(factors.flop_efficiency, w.generation, 0)
    narrow_ms, wide_ms = 1.0 / (flop * w.flop_per_ms), 1.0 / (wide_flop * w.wide_flop_per_ms)
    attention_ms = w.attention_flop * np.where(w.attention_is_wide, wide_ms, narrow_ms)
    token = attention_ms + w.mlp_flop * narrow_ms + w.wide_flop * wide_ms
    expert_share = np.minimum(np.take(factors.expert_flop_factor, w.width) * expert_rate, 1.0)
    # Each expert's tokens are padded to the kernel's tile: so many tokens more, if every expert is touched.
    padding = factors.expert_tile_tokens / w.active_share
    # Tokens are copied to their experts' order and back, several passes over the memory.
    moving_ms = factors.expert_token_passes * w.expert_token_bytes / bandwidth
    expert_token = (w.expert_flop * narrow_ms / expert_share + moving_ms) * imbalance

    reading = w.cache_bytes / (
        capped(np.take(factors.kv_bandwidth_efficiency, w.generation) * factors.engine_attention_rate[e]) * bandwidth
    )
    heads_share = np.take(factors.attention_flop_efficiency, w.generation)
    heads = capped(heads_share * factors.engine_attention_rate[e]) * w.wide_flop_per_ms
    sequence = np.maximum(reading, w.decode_flop * w.tokens_per_step / heads)
    fixed, host = _overhead_ms(w, factors)

    # Prompts: the same products in long rows, joined with one reading of the weights in each chunk.
    speed = factors.engine_prefill_rate[e]
    narrow_ms, wide_ms = (
        1.0 / (capped(flop * speed) * w.flop_per_ms),
        1.0 / (capped(wide_flop * speed) * w.wide_flop_per_ms),
    )
    prompt_ms = w.attention_flop * np.where(w.attention_is_wide, wide_ms, narrow_ms) + w.mlp_flop * narrow_ms
    prompt_expert_ms = (w.expert_flop * narrow_ms / expert_share + moving_ms) * imbalance
    chunks = np.maximum(w.new_tokens / factors.prefill_chunk_tokens, 1.0)
    quadratic = w.prompt_flop / (capped(heads_share * speed) * w.wide_flop_per_ms)
    expert_weights = w.expert_bytes / stream * imbalance
    alone = smooth_max(dense_ms * chunks, w.new_tokens * prompt_ms, factors.blend_exponent)
    alone = alone + smooth_max(
        expert_weights * chunks, (w.new_tokens + padding * chunks) * prompt_expert_ms, factors.blend_exponent
    )
    alone = alone + quadratic + comm.milliseconds(w.new_tokens / chunks) * chunks
    # Prompts run without a captured graph: the host launches every kernel, while the device works or waits.
    alone = smooth_max(alone, factors.prompt_launch_multiple[e] * fixed * chunks, factors.blend_exponent)
    full_chunk = comm.milliseconds(factors.prefill_chunk_tokens) / factors.prefill_chunk_tokens
    padded = 1.0 + padding / factors.prefill_chunk_tokens
    share = w.new_tokens * (prompt_ms + padded * prompt_expert_ms + full_chunk) + quadratic
    shape = np.shape(weights)
    amounts: dict[str, FloatArray | float] = {
        "ranks": w.ranks,
        "attention_data_parallel": w.attention_data_parallel,
        "weights_ms": weights,
        "token_ms": token,
        "expert_weights_ms": expert_weights,
        "expert_token_ms": expert_token,
        "expert_padding_tokens": padding / w.attention_data_parallel,
        "sequence_ms": sequence,
        "comm_small_fixed_ms": comm.small_fixed_ms,
        "comm_small_token_ms": comm.small_per_token_ms,
        "comm_large_fixed_ms": comm.large_fixed_ms,
        "comm_large_token_ms": comm.large_per_token_ms,
        "comm_other_fixed_ms": comm.other_fixed_ms,
        "comm_other_token_ms": comm.other_per_token_ms,
        "fixed_ms": fixed,
        "host_ms": host,
        "prefill_ms": alone,
        "prefill_share_ms": share,
        "prefill_chunks": chunks,
    }
    columns: dict[str, FloatArray] = {name: np.broadcast_to(values, shape) for name, values in amounts.items()}
    clump = np.where(w.equal_lengths, factors.clump_prompts_equal_lengths, factors.clump_prompts)
    scalars = PreparedScalars(
        output_tokens=w.output_tokens,
        tokens_per_step=w.tokens_per_step,
        log_miss=w.log_miss * factors.expert_token_spread,
        active_share=w.active_share,
        has_experts=bool(np.any(np.asarray(w.expert_layers) > 0)),
        blend_exponent=factors.blend_exponent,
        interference=factors.prefill_interference,
        queue_fraction=factors.queue_fraction[e],
        clump_prompts=clump if clump.ndim else float(clump),
        request_ms=factors.request_overhead_ms[e],
    )
    return StepTimes(columns, scalars, comm)


def _prepare_block(
    architecture: Architecture,
    deployments: Deployments,
    traffic: Traffic,
    factors: Factors,
    usable_memory_fraction: FloatArray | float | None = None,
) -> tuple[PreparedColumns, PreparedScalars]:
    """A block of rows of ``prepare_columns``."""
    a, d = architecture, deployments
    shards, cache = shard_weights(a, d), shard_cache(a, d)
    memory = memory_items(
        a, d, traffic, factors, usable_memory_fraction=usable_memory_fraction, shards=shards, cache=cache
    )
    work = work_of(a, d, traffic, shards, cache)
    times = times_of(work, factors)
    comm = times.communication
    columns = PreparedColumns(
        **times.columns,
        # All micro-batches pass an accelerator in one step of the replica: c / attention-DP sequences.
        link_bytes_per_sequence=comm.link_bytes_per_token
        * (1.0 + traffic.speculative_accepted_tokens)
        / d.attention_data_parallel,
        prefill_link_gb_s=comm.link_bytes_per_token
        * d.pipeline_parallel
        * work.new_tokens
        / (times.columns["prefill_ms"] * 1e6),
        link_limit_gb_s=comm.links.gb_s,
        width=d.width,
        kv_link_limit_gb_s=d.scale_out_gb_s,
        kv_tokens_capacity=kv_tokens_available(memory, d, traffic),
        largest_concurrency=max_concurrency(memory, d, sequence_slots(d, engine_of(traffic))),
        **_memory_columns(memory),
    )
    return columns, times.scalars


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
