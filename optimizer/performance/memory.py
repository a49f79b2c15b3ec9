"""Memory of one accelerator, item by item as engines compute it, and what it leaves for the cache.

    pool = fraction x card - weights - activation - graphs - collectives - runtime - reserve
    activation = the larger of the forward pass and, where the head stands, the sampler; plus buffers of routed tokens
    sampler    = sequences x vocabulary x (logit + copies) + tokens x hidden + base
    forward    = tokens x (2 hidden + 3 widths of the MLP on the rank) + base

Constants differ by engine and version (``engine_memory``). The stage that binds is the last one, which holds the
head and samples; ``stage="first"`` gives the one that holds the embedding.
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from optimizer.performance.architecture import Architecture, parameter_counts
from optimizer.performance.deployments import Deployments, Traffic
from optimizer.performance.engine_memory import (
    LARGE_CARD_GIB,
    EngineMemory,
    driver_shares,
    engine_memory,
    with_slots,
)
from optimizer.performance.factors import GENERATIONS, Factors, FloatArray
from optimizer.performance.sharding import CacheShards, Shards, page_rounded, shard_cache, shard_weights
from optimizer.units import BYTES_PER_GIB

BoolArray = NDArray[np.bool_]
Stage = Literal["last", "first"]

#: Weights above this share of the usable memory leave too little for service, though the engine may start.
TIGHT_WEIGHTS_SHARE: Final = 0.88
#: Formats of at most this many bytes a weight run in kernels that pad experts to whole tiles.
_FOUR_BIT_BYTES: Final = 0.63
_AMPERE: Final = GENERATIONS.index("ampere")
_MIB_PER_GIB: Final = 1024.0
#: Bytes of fp16 and bf16.
_HALF_BYTES: Final = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class MemoryItems:
    """GiB per accelerator on the heaviest stage (columns of length n), and what one sequence takes of the cache.

    ``weights_gib`` .. ``reserve_gib`` do not depend on the load; ``fixed_gib`` is their sum.
    ``sequence_gib`` is the cache of a request of mean length at its end (input + output): engines must hold the
    whole length when it ends, so this is the safe measure; the mean over time is about input + output / 2.
    ``longest_gib`` is the cache of the longest request, which must fit alone; windowed layers hold their window
    and the tokens of one step then, as engines reserve it at start. ``graphs_gib`` is 0 where the engine
    captures graphs outside its fraction. ``reserve_gib`` holds what the driver keeps of the card, as far as the
    fraction covers it. ``pool_gib`` is what the usable memory leaves for the cache; it is
    negative where the weights do not fit.
    """

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


@dataclass(frozen=True, slots=True, eq=False)
class MemoryReport:
    """``MemoryItems`` with what a reader asks next, per accelerator (columns of length n).

    ``usable_gib`` is what all items and the cache share; ``late_graphs_gib`` lies outside it.
    ``cache_gib_per_token`` is what one token of context adds on the heaviest stage (windowed layers left out),
    ``state_gib_per_sequence`` what a sequence takes whatever its length. ``kv_tokens`` counts tokens of requests
    of mean length over the replica, ``longest_kv_tokens`` those of the longest, as engines print it.
    ``sequence_slots`` are the engine's, ``largest_concurrency`` the smaller of slots and memory. ``starts``
    says that the longest request fits; ``tight`` that weights leave under 12 % of the usable memory.
    """

    items: MemoryItems
    usable_gib: FloatArray
    late_graphs_gib: FloatArray
    cache_gib_per_token: FloatArray
    state_gib_per_sequence: FloatArray
    kv_tokens: FloatArray
    longest_kv_tokens: FloatArray
    sequence_slots: FloatArray
    largest_concurrency: FloatArray
    starts: BoolArray
    tight: BoolArray


def _large_cards(deployments: Deployments) -> BoolArray | bool:
    """Which cards get an engine's defaults for large ones; a plain answer where all rows agree."""
    d = deployments
    large = (d.memory_gib >= LARGE_CARD_GIB) & (d.generation_index != _AMPERE)
    if large.all():
        return True
    return large if large.any() else False


def _by_card(large: BoolArray | bool, pair: tuple[float, float]) -> FloatArray | float:
    """The first of a pair for large cards, the second for others; a number where one holds for all."""
    if isinstance(large, bool):
        return pair[0] if large else pair[1]
    return pair[0] if pair[0] == pair[1] else np.where(large, *pair)


def engine_of(traffic: Traffic) -> EngineMemory:
    """Memory constants of the traffic's engine and version, with the sequence slots that it was given."""
    return with_slots(engine_memory(traffic.engine, traffic.engine_version), traffic.sequence_slots)


def driver_gib(deployments: Deployments) -> FloatArray:
    """Memory that the driver leaves to an engine, of the card's."""
    return deployments.memory_gib * driver_shares()[deployments.generation_index]


def weights_gib(
    shards: Shards,
    deployments: Deployments,
    *,
    tied_embeddings: bool,
    expert_padding: FloatArray | float = 1.0,
    stage: Stage = "last",
) -> FloatArray:
    """Weights of the heaviest stage: its layers, and embedding or head.

    With one stage embedding and head lie together, and are one tensor where they are tied.
    """
    layers = (shards.attention_bytes + shards.mlp_bytes + shards.router_bytes) * shards.stage_fraction
    layers = layers + shards.expert_bytes * shards.expert_stage_fraction * expert_padding
    head = 0.0 if tied_embeddings else shards.head_bytes
    single = shards.embedding_bytes + head
    end = np.maximum(shards.embedding_bytes, shards.head_bytes) if stage == "last" else shards.embedding_bytes
    ends = np.where(deployments.pipeline_parallel > 1, end, single)
    return (layers + ends) / BYTES_PER_GIB


def expert_padding(architecture: Architecture, deployments: Deployments, engine: EngineMemory) -> FloatArray | float:
    """Growth of expert weights in memory where 4-bit kernels pad the hidden width to whole tiles (gpt-oss: 1/15)."""
    hidden, tile = architecture.moe_latent_size or architecture.hidden_size, engine.expert_tile
    if not architecture.moe_layers or tile <= 1 or hidden % tile == 0:
        return 1.0
    padded = np.ceil(hidden / tile) * tile / hidden
    return np.where(deployments.weight_bytes <= _FOUR_BIT_BYTES, padded, 1.0)


def activation_gib(
    architecture: Architecture, deployments: Deployments, engine: EngineMemory, *, stage: Stage = "last"
) -> FloatArray:
    """Working memory that the engine finds when it profiles a full step at start.

    The sampler dominates where it runs; it works on the whole vocabulary whatever the tensor-parallel degree
    (measured 1.89 GiB at 2 and 4 of one model). Expert layers hold hidden and two expert widths for each expert
    that a token goes to.
    """
    a, d = architecture, deployments
    large = _large_cards(d)
    element = _HALF_BYTES if np.all(d.wide_bytes <= _HALF_BYTES) else np.maximum(d.wide_bytes, _HALF_BYTES)
    tokens, sequences = _by_card(large, engine.batched_tokens), _by_card(large, engine.sampled_sequences)
    step_bytes = tokens * element
    mlp = max(a.ffn_size if a.dense_layers else 0, a.shared_ffn_size)
    widths = 2.0 * a.hidden_size + float(a.mlp_matrices * mlp) / d.tensor_parallel
    forward = step_bytes * widths + engine.forward_base_gib * BYTES_PER_GIB
    routed: FloatArray | float = 0.0
    if a.moe_layers:
        hidden = a.moe_latent_size or a.hidden_size
        group = d.tensor_parallel * d.attention_data_parallel
        moe_tp = np.maximum(group / d.expert_parallel, 1.0)
        routed = step_bytes * a.active_experts * (hidden + 2 * a.moe_ffn_size / moe_tp)
        forward = forward + routed
    first = forward / BYTES_PER_GIB
    if stage == "first":
        samples = d.pipeline_parallel == 1
        if not samples.any():
            return first
    sampler = sequences * a.vocabulary * (element + engine.sampler_bytes_per_entry)
    sampler = sampler + step_bytes * a.hidden_size + engine.sampler_base_gib * BYTES_PER_GIB
    if engine.expert_workspace:
        sampler = sampler + routed * engine.expert_workspace
    last = np.maximum(forward, sampler) / BYTES_PER_GIB
    return last if stage == "last" else np.where(samples, last, first)


def _default_fraction(deployments: Deployments, engine: EngineMemory) -> FloatArray | float:
    """The engine's own memory fraction.

    SGLang keeps, in MiB, 512 + 1.5 a token of a step + 2 a captured batch + 128 a rank, + 4.5 a captured batch
    and attention-data-parallel rank, and never less than 10 GiB on large cards (its server_args).
    """
    if engine.memory_fraction:
        return engine.memory_fraction
    d = deployments
    memory = d.memory_gib
    step = np.select([memory < 35, memory < 60, memory < 160], [2048.0, 4096.0, 8192.0], 16384.0)
    wide = d.tensor_parallel * d.attention_data_parallel >= 4
    batch = np.select(
        [memory < 35, memory < 60, memory < 160],
        [np.where(wide, 80.0, 24.0), np.where(wide, 160.0, 32.0), np.where(wide, 512.0, 256.0)],
        512.0,
    )
    kept = 512.0 + 1.5 * step + 2.0 * batch + 128.0 * d.width
    data = d.attention_data_parallel
    kept = kept + np.where(data > 1, batch * data * np.where(batch > 300, 4.5, 3.0), 0.0)
    kept = np.where(memory > 60, np.maximum(kept, 10.0 * _MIB_PER_GIB), kept)
    return np.maximum(1.0 - kept / _MIB_PER_GIB / memory, 0.0)


def memory_items(
    architecture: Architecture,
    deployments: Deployments,
    traffic: Traffic,
    factors: Factors,
    *,
    usable_memory_fraction: FloatArray | float | None = None,
    shards: Shards | None = None,
    cache: CacheShards | None = None,
    engine: EngineMemory | None = None,
    extra_weights_gib: FloatArray | float = 0.0,
    stage: Stage = "last",
) -> MemoryItems:
    """Itemised memory.

    ``usable_memory_fraction`` (0..1) is what all items together may take of the memory that the driver leaves
    (late graphs apart); without it the engine's own default holds, in the engine's own sense. ``engine``
    defaults to the family of the traffic's engine and version. ``extra_weights_gib`` is what stands beside the
    text model on each accelerator: vision tower, adapters, draft model.
    """
    d = deployments
    kind = engine or engine_of(traffic)
    shards = shards or shard_weights(architecture, d)
    if cache is None or not (kind.window_cache and kind.latent_cache):
        cache = shard_cache(architecture, d, window_cache=bool(kind.window_cache), latent_cache=bool(kind.latent_cache))
    weights = extra_weights_gib + weights_gib(
        shards,
        d,
        tied_embeddings=architecture.tied_embeddings,
        expert_padding=expert_padding(architecture, d, kind),
        stage=stage,
    )
    activation = activation_gib(architecture, d, kind, stage=stage)
    group = d.tensor_parallel * d.attention_data_parallel
    alone = group == 1
    communication = np.where(alone, 0.0, kind.communication_gib + kind.communication_gib_per_rank * group)
    staged = alone & (d.pipeline_parallel > 1)
    runtime = np.where(staged, kind.runtime_pipeline_gib, kind.runtime_gib)
    inside = kind.graph_gib if kind.graphs_inside else 0.0
    late = kind.graph_gib - inside
    taken = weights + activation + communication + runtime + (inside + factors.reserve_gib)
    driver = driver_gib(d)
    pool = _pool(d, kind, driver, usable_memory_fraction, weights, communication + runtime, taken)
    if late:
        # Late graphs take what the fraction leaves free, and the cache's memory where that is too little.
        pool = np.minimum(pool, driver - taken - late)
    # The fraction is of what the driver leaves; its share of the rest is reserved, so that all items and the
    # whole pool come to the fraction of the card.
    kept = d.memory_gib - driver
    reserve = factors.reserve_gib + (kept if usable_memory_fraction is None else kept * usable_memory_fraction)
    fixed = taken + (reserve - factors.reserve_gib)
    request = page_rounded(traffic.input_tokens + traffic.output_tokens, kind.page_tokens)
    longest = page_rounded(traffic.longest_tokens, kind.page_tokens)
    per_stage = shards.stage_fraction / BYTES_PER_GIB
    ahead = _by_card(_large_cards(d), kind.batched_tokens) - 1.0 if architecture.sliding_layers else 0.0
    reserved = cache.sequence_bytes(longest, ahead)
    ones = np.ones(d.size)
    return MemoryItems(
        weights_gib=weights,
        activation_gib=activation,
        graphs_gib=inside * ones,
        communication_gib=communication,
        runtime_gib=runtime,
        reserve_gib=reserve,
        fixed_gib=fixed,
        sequence_gib=cache.sequence_bytes(request) * per_stage,
        longest_gib=reserved * per_stage,
        pool_gib=pool,
    )


def _pool(
    deployments: Deployments,
    engine: EngineMemory,
    driver: FloatArray,
    fraction: FloatArray | float | None,
    weights: FloatArray,
    overhead: FloatArray,
    taken: FloatArray,
) -> FloatArray:
    """Cache memory: by the fraction that was asked for, or by the engine's default in its own sense."""
    if fraction is not None:
        return np.asarray(driver * fraction - taken, dtype=np.float64)
    own = _default_fraction(deployments, engine)
    if engine.budget == "static":
        # What is left of the reserve is the engine's; activations and graphs may not outgrow the card.
        return np.asarray(np.minimum((driver - overhead) * own - weights, driver - taken), dtype=np.float64)
    if engine.budget == "free":
        free = driver - taken
        return np.asarray(np.where(free > 0, free * own, free), dtype=np.float64)
    return np.asarray(driver * own - taken, dtype=np.float64)


def kv_tokens_available(items: MemoryItems, deployments: Deployments, traffic: Traffic) -> FloatArray:
    """Tokens of requests of mean length that the cache of one replica holds; 0 where the weights do not fit."""
    tokens = traffic.input_tokens + traffic.output_tokens
    held = np.maximum(items.pool_gib, 0.0) / items.sequence_gib * tokens
    return held * deployments.attention_data_parallel


def sequence_slots(deployments: Deployments, engine: EngineMemory) -> FloatArray:
    """Sequences in flight that the engine schedules at most on one replica: its default, for each rank."""
    return _by_card(_large_cards(deployments), engine.sequence_slots) * deployments.attention_data_parallel


def max_concurrency(items: MemoryItems, deployments: Deployments, slots: FloatArray | float = np.inf) -> FloatArray:
    """Requests of mean length that one replica holds at once, whole numbers; 0 where the longest does not fit.

    ``slots`` bounds them where the engine has fewer (``sequence_slots``).
    """
    each = np.floor(np.maximum(items.pool_gib, 0.0) / items.sequence_gib)
    fits = np.minimum(each * deployments.attention_data_parallel, slots)
    return np.where(items.pool_gib >= items.longest_gib, fits, 0.0)


def memory_report(
    architecture: Architecture,
    deployments: Deployments,
    traffic: Traffic,
    factors: Factors,
    *,
    usable_memory_fraction: FloatArray | float | None = None,
    engine: EngineMemory | None = None,
    extra_weights_gib: FloatArray | float = 0.0,
    stage: Stage = "last",
) -> MemoryReport:
    """Items and what follows from them; arguments as of ``memory_items``."""
    d = deployments
    kind = engine or engine_of(traffic)
    shards = shard_weights(architecture, d)
    cache = shard_cache(architecture, d, window_cache=bool(kind.window_cache), latent_cache=bool(kind.latent_cache))
    items = memory_items(
        architecture,
        d,
        traffic,
        factors,
        usable_memory_fraction=usable_memory_fraction,
        shards=shards,
        cache=cache,
        engine=kind,
        extra_weights_gib=extra_weights_gib,
        stage=stage,
    )
    per_stage = shards.stage_fraction / BYTES_PER_GIB
    slots = sequence_slots(d, kind)
    return MemoryReport(
        items=items,
        usable_gib=items.fixed_gib + items.pool_gib,
        late_graphs_gib=np.full(d.size, 0.0 if kind.graphs_inside else kind.graph_gib),
        cache_gib_per_token=cache.full_bytes_per_token * per_stage,
        state_gib_per_sequence=cache.state_bytes * per_stage,
        kv_tokens=kv_tokens_available(items, d, traffic),
        longest_kv_tokens=cache_tokens(items, items.pool_gib, traffic.longest_tokens) * d.attention_data_parallel,
        sequence_slots=slots,
        largest_concurrency=max_concurrency(items, d, slots),
        starts=items.pool_gib >= items.longest_gib,
        tight=items.weights_gib > TIGHT_WEIGHTS_SHARE * driver_gib(d),
    )


def cache_tokens(items: MemoryItems, pool_gib: FloatArray | float, longest_tokens: float) -> FloatArray:
    """Tokens of a pool on one rank as engines print them: its longest requests times their length."""
    return np.maximum(pool_gib, 0.0) / items.longest_gib * longest_tokens


def cache_blocks(cache: CacheShards, pool_gib: FloatArray | float, block_tokens: float) -> FloatArray:
    """Whole blocks of a pool on one rank that holds every stage; windows and fixed states left out."""
    return np.floor(pool_gib * BYTES_PER_GIB / (cache.full_bytes_per_token * block_tokens))


def checkpoint_gib(
    architecture: Architecture,
    *,
    weight_bytes: float = 2.0,
    attention_bytes: float | None = None,
    wide_bytes: float = 2.0,
) -> float:
    """Size of the weights as they are stored, before kernels pad and ranks copy them.

    ``attention_bytes`` (default: as the rest) also covers shared experts where only routed ones are quantized;
    ``wide_bytes`` covers embeddings, head, router and norms.
    """
    counts = parameter_counts(architecture)
    wide = counts.embedding + counts.lm_head + counts.router + counts.norms
    rest = counts.attention + counts.dense_mlp + counts.shared_experts
    other = weight_bytes if attention_bytes is None else attention_bytes
    return (counts.routed_experts * weight_bytes + rest * other + wide * wide_bytes) / BYTES_PER_GIB


def adapters_gib(
    architecture: Architecture,
    *,
    slots: int,
    rank: int,
    modules: tuple[str, ...] = ("q", "k", "v", "o"),
    element_bytes: float = _HALF_BYTES,
    tensor_parallel: int = 1,
) -> float:
    """Memory that low-rank adapters reserve: slots x layers x rank x (input + output) of every adapted matrix.

    ``modules`` of q, k, v, o, gate, up, down. ValueError for another name.
    """
    a = architecture
    hidden, query, key = a.hidden_size, a.attention_heads * a.head_dim, a.kv_heads * a.head_dim
    value = a.kv_heads * a.v_head_dim
    widths = {"q": (hidden, query), "k": (hidden, key), "v": (hidden, value), "o": (query, hidden)}
    widths |= dict.fromkeys(("gate", "up"), (hidden, a.ffn_size)) | {"down": (a.ffn_size, hidden)}
    unknown = [name for name in modules if name not in widths]
    if unknown:
        raise ValueError(f"unknown adapted matrix {unknown[0]!r}; one of {', '.join(widths)}")
    elements = sum(sum(widths[name]) for name in modules)
    return slots * a.layers * rank * elements * element_bytes / tensor_parallel / BYTES_PER_GIB
