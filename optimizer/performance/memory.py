"""Memory of one accelerator on the heaviest pipeline stage, item by item, and what it leaves for the cache."""

from dataclasses import dataclass

import numpy as np

from optimizer.performance.architecture import Architecture
from optimizer.performance.deployments import Deployments, Traffic
from optimizer.performance.factors import Factors, FloatArray
from optimizer.performance.sharding import CacheShards, Shards, page_rounded, shard_cache, shard_weights
from optimizer.units import BYTES_PER_GIB


@dataclass(frozen=True, slots=True, eq=False)
class MemoryItems:
    """GiB per accelerator on the heaviest stage (columns of length n), and what one sequence takes of the cache.

    ``weights_gib`` .. ``reserve_gib`` do not depend on the load; ``fixed_gib`` is their sum.
    ``sequence_gib`` is the cache of a request of mean length at its end (input + output): engines must hold the
    whole length when it ends, so this is the safe measure; the mean over time is about input + output / 2.
    ``longest_gib`` is the cache of the longest request, which must fit alone.
    ``pool_gib`` is what the usable memory leaves for the cache; it is negative where the weights do not fit.
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


def weights_gib(shards: Shards, deployments: Deployments, *, tied_embeddings: bool) -> FloatArray:
    """Weights of the heaviest stage: its layers plus the larger of embedding and head.

    With one stage embedding and head lie together, and are one tensor where they are tied.
    """
    layers = (shards.attention_bytes + shards.mlp_bytes + shards.router_bytes) * shards.stage_fraction
    layers = layers + shards.expert_bytes * shards.expert_stage_fraction
    head = 0.0 if tied_embeddings else shards.head_bytes
    single = shards.embedding_bytes + head
    ends = np.where(deployments.pipeline_parallel > 1, np.maximum(shards.embedding_bytes, shards.head_bytes), single)
    return (layers + ends) / BYTES_PER_GIB


def activation_gib(architecture: Architecture, deployments: Deployments, factors: Factors) -> FloatArray:
    """Activations the engine reserves: logits of a full batch, and the routed tokens of an expert layer.

    The logits dominate in dense models and do not shrink with tensor parallelism (measured 1.89 GiB at TP 1, 2
    and 4 of one model); expert layers hold hidden and two expert widths for each expert a token goes to.
    """
    a = architecture
    logits = a.vocabulary * factors.activation_bytes_per_vocabulary_entry
    if not a.moe_layers:
        return np.full(deployments.size, logits / BYTES_PER_GIB)
    group = deployments.tensor_parallel * deployments.attention_data_parallel
    moe_tp = np.maximum(group / deployments.expert_parallel, 1.0)
    width = (a.moe_latent_size or a.hidden_size) + 2 * a.moe_ffn_size / moe_tp
    routed = factors.batched_tokens * a.active_experts * width * factors.activation_bytes_per_token_width
    return np.asarray((logits + routed) / BYTES_PER_GIB, dtype=np.float64)


def memory_items(
    architecture: Architecture,
    deployments: Deployments,
    traffic: Traffic,
    factors: Factors,
    *,
    usable_memory_fraction: FloatArray | float | None = None,
    shards: Shards | None = None,
    cache: CacheShards | None = None,
) -> MemoryItems:
    """Itemised memory. ``usable_memory_fraction`` (0..1) is what the engine may take of the accelerator's memory."""
    d = deployments
    shards = shards or shard_weights(architecture, d)
    cache = cache or shard_cache(architecture, d)
    weights = weights_gib(shards, d, tied_embeddings=architecture.tied_embeddings)
    activation = activation_gib(architecture, d, factors)
    n = np.ones(d.size)
    group = d.tensor_parallel * d.attention_data_parallel
    shared = factors.communication_gib + factors.communication_gib_per_rank * group
    communication = np.where(group > 1, shared, 0.0)
    fixed = weights + activation + communication
    fixed = fixed + (factors.graph_gib + factors.runtime_gib + factors.reserve_gib)
    request = page_rounded(traffic.input_tokens + traffic.output_tokens, factors.kv_page_tokens)
    longest = page_rounded(traffic.longest_tokens, factors.kv_page_tokens)
    usable = factors.usable_memory_fraction if usable_memory_fraction is None else usable_memory_fraction
    per_stage = shards.stage_fraction / BYTES_PER_GIB
    return MemoryItems(
        weights_gib=weights,
        activation_gib=activation,
        graphs_gib=factors.graph_gib * n,
        communication_gib=communication,
        runtime_gib=factors.runtime_gib * n,
        reserve_gib=factors.reserve_gib * n,
        fixed_gib=fixed,
        sequence_gib=cache.sequence_bytes(request) * per_stage,
        longest_gib=cache.sequence_bytes(longest) * per_stage,
        pool_gib=d.memory_gib * usable - fixed,
    )


def kv_tokens_available(items: MemoryItems, deployments: Deployments, traffic: Traffic) -> FloatArray:
    """Tokens of requests of mean length that the cache of one replica holds; 0 where the weights do not fit."""
    tokens = traffic.input_tokens + traffic.output_tokens
    held = np.maximum(items.pool_gib, 0.0) / items.sequence_gib * tokens
    return held * deployments.attention_data_parallel


def max_concurrency(items: MemoryItems, deployments: Deployments) -> FloatArray:
    """Requests of mean length that one replica holds at once, whole numbers; 0 where the longest does not fit."""
    each = np.floor(np.maximum(items.pool_gib, 0.0) / items.sequence_gib)
    return np.where(items.pool_gib >= items.longest_gib, each * deployments.attention_data_parallel, 0.0)
