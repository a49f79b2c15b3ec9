"""Time of matrix work: memory and compute joined, each at its measured share of the peak.

A kernel of few tokens is bound by streaming its weights, one of many by arithmetic; near the knee the two
overlap only partly, which the exponent of the join describes (kernel tables of A100 and H100: 2.0 and above).
"""

import numpy as np
from numpy.typing import NDArray

from optimizer.performance.architecture import Architecture
from optimizer.performance.factors import FloatArray

#: Bytes per stored weight from which a scheme streams like 16-bit, and like 8-bit, weights.
WIDE_WEIGHT_BYTES, _BYTE_WEIGHT_BYTES = 1.5, 0.75
#: No kernel was seen to reach more of the peak of memory or matrix units.
LARGEST_SHARE_OF_PEAK = 0.95
#: Tokens that sparse attention picks for each query (DeepSeek-V3.2 and GLM-5: ``index_topk``).
SPARSE_ATTENTION_TOKENS = 2048.0
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


def pick(table: FloatArray, row: NDArray[np.int64] | int, column: NDArray[np.int64] | int) -> FloatArray:
    """``table[row, column]``; a flat take costs a third of two-dimensional indexing."""
    picked: FloatArray = np.take(table.ravel(), row * table.shape[1] + column)
    return picked


def capped(share: FloatArray | float) -> FloatArray:
    """A share of a peak that no combination of constants may lift above what the best kernels reach."""
    return np.minimum(share, LARGEST_SHARE_OF_PEAK)


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
    seen_pairs, index = full_pairs, 0.0
    if a.index_heads:
        # Sparse attention: the index looks at every pair, the heads at the tokens it picks.
        seen_pairs = min(full_pairs, new_tokens * SPARSE_ATTENTION_TOKENS)
        index = FLOP_PER_PARAMETER * a.full_layers * full_pairs * a.index_heads * a.index_dim
    pairs = a.full_layers * seen_pairs * a.kv_compression + a.sliding_layers * sliding_pairs
    key = a.nope_dim + a.rope_dim if a.has_latent_attention else a.head_dim
    return FLOP_PER_PARAMETER * pairs * a.attention_heads * (key + a.v_head_dim) + index
