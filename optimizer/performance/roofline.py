"""Time of matrix work: memory and compute joined, each at its measured share of the peak.

A kernel of few tokens is bound by streaming its weights, one of many by arithmetic; near the knee the two
overlap only partly, which the exponent of the join describes (kernel tables of A100 and H100: 2.0 and above).
"""

import numpy as np
from numpy.typing import NDArray

from optimizer.performance.architecture import Architecture
from optimizer.performance.deployments import Deployments
from optimizer.performance.factors import Factors, FloatArray
from optimizer.performance.sharding import CacheShards
from optimizer.units import BYTES_PER_GB, FLOP_PER_TFLOP, MS_PER_S

#: Bytes per stored weight from which a scheme streams like 16-bit, and like 8-bit, weights.
WIDE_WEIGHT_BYTES, _BYTE_WEIGHT_BYTES = 1.5, 0.75
#: A multiply and an add.
FLOP_PER_PARAMETER = 2.0


def smooth_max(first: FloatArray, second: FloatArray, exponent: float) -> FloatArray:
    """(first^p + second^p)^(1/p), at least the larger of two non-negative times; p = 2 without powers."""
    if exponent == 2.0:
        return np.sqrt(first * first + second * second)
    larger, smaller = np.maximum(first, second), np.minimum(first, second)
    ratio = np.divide(smaller, larger, out=np.zeros_like(larger), where=larger > 0)
    return np.asarray(larger * (1.0 + ratio**exponent) ** (1.0 / exponent), dtype=np.float64)


def weight_width_index(weight_bytes: FloatArray) -> NDArray[np.int64]:
    """Index into ``WEIGHT_WIDTHS`` of weights of the given bytes."""
    index: NDArray[np.int64] = (weight_bytes < WIDE_WEIGHT_BYTES).astype(np.int64)
    index += weight_bytes < _BYTE_WEIGHT_BYTES
    return index


def _pick(table: FloatArray, row: NDArray[np.int64], column: NDArray[np.int64] | int) -> FloatArray:
    """``table[row, column]``; a flat take costs a third of two-dimensional indexing."""
    picked: FloatArray = np.take(table.ravel(), row * table.shape[1] + column)
    return picked


def stream_ms_per_byte(deployments: Deployments, weight_bytes: FloatArray, factors: Factors) -> FloatArray:
    """Milliseconds to read one byte of weights of the given width."""
    width = weight_width_index(weight_bytes)
    efficiency = _pick(factors.bandwidth_efficiency, deployments.generation_index, width)
    return MS_PER_S / (efficiency * deployments.memory_bandwidth_gb_s * BYTES_PER_GB)


def compute_ms_per_flop(deployments: Deployments, factors: Factors) -> FloatArray:
    """Milliseconds of one operation of the scheme's format in a large matrix product."""
    efficiency = _pick(factors.flop_efficiency, deployments.generation_index, deployments.precision_index)
    return MS_PER_S / (efficiency * deployments.compute_tflops * FLOP_PER_TFLOP)


def wide_compute_ms_per_flop(deployments: Deployments, factors: Factors) -> FloatArray:
    """The same for layers that stay in 16 bits."""
    efficiency = _pick(factors.flop_efficiency, deployments.generation_index, 0)
    return MS_PER_S / (efficiency * deployments.fp16_tflops * FLOP_PER_TFLOP)


def attention_ms_per_flop(deployments: Deployments, factors: Factors) -> FloatArray:
    """The same for attention over the context, which runs in 16 bits."""
    efficiency = np.take(factors.attention_flop_efficiency, deployments.generation_index)
    return MS_PER_S / (efficiency * deployments.fp16_tflops * FLOP_PER_TFLOP)


def decode_attention_ms(
    architecture: Architecture, deployments: Deployments, cache: CacheShards, context_tokens: float, factors: Factors
) -> FloatArray:
    """Attention of one decoding sequence over its context, all layers of one rank, ms.

    The cache is read once; fixed state is read and written. Latent attention also multiplies every head with
    the whole latent (2 (2 r + rope) operations a head and token of context), which can take longer than
    reading it.
    """
    a, d = architecture, deployments
    efficiency = np.take(factors.kv_bandwidth_efficiency, d.generation_index)
    read = cache.sequence_bytes(context_tokens) + cache.state_bytes
    reading = read * MS_PER_S / (efficiency * d.memory_bandwidth_gb_s * BYTES_PER_GB)
    heads = a.attention_heads / d.tensor_parallel
    if a.has_latent_attention:
        flop = a.full_layers * FLOP_PER_PARAMETER * context_tokens * heads * (2 * a.kv_lora_rank + a.rope_dim)
    else:
        width = a.head_dim + a.v_head_dim
        span = a.full_layers * context_tokens * a.kv_compression
        span += a.sliding_layers * min(context_tokens, float(a.sliding_window))
        flop = FLOP_PER_PARAMETER * span * heads * width
    return np.maximum(reading, flop * attention_ms_per_flop(d, factors))


def prefill_attention_flop(architecture: Architecture, new_tokens: float, cached_tokens: float) -> float:
    """Operations of causal attention of a prompt, all heads and layers of the model.

    A token attends to all before it: (N^2 - C^2) / 2 pairs in a full layer when C of N tokens are cached, at
    most the window a token in a sliding one; each pair costs 2 operations a key and a value element.
    """
    a = architecture
    total = new_tokens + cached_tokens
    full_pairs = (total * total - cached_tokens * cached_tokens) / 2
    window = float(a.sliding_window)
    sliding_pairs = full_pairs if total <= window else min(full_pairs, new_tokens * window)
    pairs = a.full_layers * full_pairs * a.kv_compression + a.sliding_layers * sliding_pairs
    key = a.nope_dim + a.rope_dim if a.has_latent_attention else a.head_dim
    return FLOP_PER_PARAMETER * pairs * a.attention_heads * (key + a.v_head_dim)
