"""What a step, a token, a sequence and a prompt ask of the hardware: bytes, operations, messages, kernels.

Amounts only. No measured constant enters here, so a calibration computes them once and then tries constants on
all its points together; ``prepare`` turns them into milliseconds.
"""

from dataclasses import dataclass, fields
from math import log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimizer.performance.architecture import Architecture, index_elements_per_token
from optimizer.performance.communication import ACTIVATION_BYTES, Messages, messages_of
from optimizer.performance.deployments import Deployments, Traffic
from optimizer.performance.engine_age import engine_age_years
from optimizer.performance.factors import ENGINES, FloatArray
from optimizer.performance.roofline import (
    FLOP_PER_PARAMETER,
    SPARSE_ATTENTION_TOKENS,
    WIDE_WEIGHT_BYTES,
    prefill_attention_flop,
    weight_width_index,
)
from optimizer.performance.sharding import CacheShards, Shards, decode_context_tokens
from optimizer.units import BYTES_PER_GB, FLOP_PER_TFLOP, MS_PER_S

#: Bytes per weight below which weights lie in 4 bits.
_NARROW_WEIGHT_BYTES = 0.75

Amount = FloatArray | float
Code = NDArray[np.int64] | int


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Amounts of one accelerator over all pipeline stages together: columns of length n, or one number for all.

    Weights in bytes (``*_bytes``) are read once a step, operations (``*_flop``) and ``expert_token_bytes``
    are of one token, ``cache_bytes``
    and ``decode_flop`` of one decoding sequence, ``prompt_flop`` (attention) of one prompt of ``new_tokens``. The
    ``*_layers`` count where an engine's kernels between the products cost time. Hardware is in units a ms.
    """

    generation: Code
    precision: Code
    engine: Code
    width: Code
    attention_width: Code
    attention_is_wide: NDArray[np.bool_]
    age_years: Amount
    memory_bytes_per_ms: Amount
    flop_per_ms: Amount
    wide_flop_per_ms: Amount
    attention_bytes: Amount
    mlp_bytes: Amount
    wide_bytes: Amount
    expert_bytes: Amount
    attention_flop: Amount
    mlp_flop: Amount
    wide_flop: Amount
    expert_flop: Amount
    expert_token_bytes: Amount
    active_experts: Amount
    active_share: Amount
    log_miss: Amount
    cache_bytes: Amount
    decode_flop: Amount
    new_tokens: Amount
    prompt_flop: Amount
    tensor_parallel: Amount
    layers: Amount
    expert_layers: Amount
    latent_layers: Amount
    shared_expert_layers: Amount
    linear_layers: Amount
    query_norm_layers: Amount
    block_scale_layers: Amount
    weight_only_layers: Amount
    expert_parallel_layers: Amount
    ranks: Amount
    attention_data_parallel: Amount
    tokens_per_step: Amount
    output_tokens: Amount
    equal_lengths: NDArray[np.bool_] | bool
    messages: Messages


def _uneven_stages(layers: int, deployments: Deployments) -> FloatArray:
    """Stages take turns: the heaviest governs, so all work counts as if every stage were as heavy."""
    pp = deployments.pipeline_parallel
    return pp * np.ceil(layers / pp) / layers


def _decode_attention(
    a: Architecture, d: Deployments, cache: CacheShards, context: float
) -> tuple[FloatArray, FloatArray]:
    """Bytes read and operations done by attention of one decoding sequence over its context, all layers of a rank.

    The cache is read once; fixed state is read and written. Latent attention multiplies every head with the
    whole latent (2 (2 r + rope) operations a head and token of context), which can take longer than reading it.
    Sparse attention reads its index keys over the whole context and the latents of the tokens it picks.
    """
    index_bytes = index_elements_per_token(a)
    attended = min(context, SPARSE_ATTENTION_TOKENS) if a.index_heads else context
    read = (cache.full_bytes_per_token - index_bytes) * attended + index_bytes * context
    read = read + cache.sliding_bytes_per_token * min(context, cache.window_tokens) + 2.0 * cache.state_bytes
    heads = a.attention_heads / d.tensor_parallel
    if a.has_latent_attention:
        flop = a.full_layers * FLOP_PER_PARAMETER * attended * heads * (2 * a.kv_lora_rank + a.rope_dim)
    else:
        span = a.full_layers * attended * a.kv_compression
        span += a.sliding_layers * min(context, float(a.sliding_window))
        flop = FLOP_PER_PARAMETER * span * heads * (a.head_dim + a.v_head_dim)
    if a.index_heads:
        flop = flop + a.full_layers * FLOP_PER_PARAMETER * context * float(a.index_heads * a.index_dim)
    return read, flop


def work_of(a: Architecture, d: Deployments, traffic: Traffic, shards: Shards, cache: CacheShards) -> Work:
    """Amounts of every deployment under this traffic."""
    uneven = _uneven_stages(a.layers, d)
    new = max(traffic.input_tokens * (1.0 - traffic.prefix_hit_fraction), 1.0)
    read, decode_flop = _decode_attention(a, d, cache, decode_context_tokens(traffic))
    narrow = d.weight_bytes < _NARROW_WEIGHT_BYTES
    byte_wide = (d.weight_bytes < WIDE_WEIGHT_BYTES) & ~narrow
    moe = float(a.moe_layers)
    attention_is_wide = (d.attention_weight_bytes >= WIDE_WEIGHT_BYTES) & (d.weight_bytes < WIDE_WEIGHT_BYTES)
    heads_flop = prefill_attention_flop(a, new, traffic.input_tokens - new)
    return Work(
        generation=d.generation_index,
        precision=d.precision_index,
        engine=ENGINES.index(traffic.engine),
        width=weight_width_index(d.weight_bytes),
        attention_width=weight_width_index(d.attention_weight_bytes),
        attention_is_wide=attention_is_wide,
        age_years=engine_age_years(traffic.engine, traffic.engine_version),
        memory_bytes_per_ms=d.memory_bandwidth_gb_s * (BYTES_PER_GB / MS_PER_S),
        flop_per_ms=d.compute_tflops * (FLOP_PER_TFLOP / MS_PER_S),
        wide_flop_per_ms=d.fp16_tflops * (FLOP_PER_TFLOP / MS_PER_S),
        attention_bytes=shards.attention_bytes * uneven,
        mlp_bytes=shards.mlp_bytes * uneven,
        wide_bytes=shards.router_bytes * uneven + shards.head_bytes,
        expert_bytes=shards.expert_bytes * uneven,
        attention_flop=FLOP_PER_PARAMETER * shards.attention_parameters * uneven,
        mlp_flop=FLOP_PER_PARAMETER * shards.quantized_parameters * uneven,
        wide_flop=FLOP_PER_PARAMETER * shards.wide_parameters,
        expert_flop=FLOP_PER_PARAMETER * shards.expert_parameters_per_token * uneven,
        # One copy of a token for each of its experts, on every rank that holds a part of them.
        expert_token_bytes=moe
        * a.active_experts
        * (a.moe_latent_size or a.hidden_size)
        * ACTIVATION_BYTES
        / d.expert_parallel
        * uneven,
        active_experts=float(max(a.active_experts, 1)),
        active_share=a.active_experts / a.experts if a.experts else 1.0,
        log_miss=log1p(-a.active_experts / a.experts) if 0 < a.active_experts < a.experts else -np.inf,
        cache_bytes=read * uneven,
        decode_flop=decode_flop * uneven,
        new_tokens=new,
        prompt_flop=heads_flop / d.tensor_parallel,
        tensor_parallel=d.tensor_parallel,
        layers=float(a.layers),
        expert_layers=moe,
        latent_layers=float(a.full_layers if a.has_latent_attention else 0),
        shared_expert_layers=moe if a.shared_experts else 0.0,
        linear_layers=float(a.linear_layers),
        query_norm_layers=float(a.attention_layers if a.qk_norm else 0),
        block_scale_layers=np.where(byte_wide, moe, 0.0),
        weight_only_layers=np.where(narrow & (d.precision_index == 0), moe, 0.0),
        expert_parallel_layers=np.where(d.expert_parallel > 1, moe, 0.0),
        ranks=d.attention_data_parallel * d.pipeline_parallel,
        attention_data_parallel=d.attention_data_parallel,
        tokens_per_step=1.0 + traffic.speculative_accepted_tokens,
        output_tokens=traffic.output_tokens,
        equal_lengths=traffic.equal_lengths,
        messages=messages_of(a, d),
    )


def joined(parts: list[tuple[Work, int]]) -> Work:
    """Work of several architectures or traffics as columns, one after another, each of the given length."""
    whole: dict[str, Any] = {}
    inner: dict[str, Any] = {}
    for field in fields(Work):
        if field.name != "messages":
            whole[field.name] = _column([(getattr(work, field.name), n) for work, n in parts])
    for field in fields(Messages):
        inner[field.name] = _column([(getattr(work.messages, field.name), n) for work, n in parts])
    return Work(**whole, messages=Messages(**inner))


def _column(values: list[tuple[object, int]]) -> NDArray[np.float64]:
    return np.concatenate([np.broadcast_to(np.asarray(value), (n,)) for value, n in values])
