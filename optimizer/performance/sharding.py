"""How parameters and cache divide over the accelerators of a replica.

Shared by memory (what lies on the heaviest stage) and time (what a step reads), so that the two agree.
"""

from dataclasses import dataclass

import numpy as np

from optimizer.performance.architecture import (
    Architecture,
    index_elements_per_token,
    kv_elements_per_token_full,
    kv_elements_per_token_sliding,
    parameter_counts,
    state_bytes_per_sequence,
)
from optimizer.performance.deployments import Deployments, Traffic
from optimizer.performance.factors import FloatArray

#: Share of leading dense layers up to which all later stages consist of expert layers only: DeepSeek's three
#: of 61 do, Maverick's every second does not.
_LEADING_DENSE_SHARE = 1 / 8


@dataclass(frozen=True, slots=True, eq=False)
class Shards:
    """Bytes and parameters of one accelerator, over all pipeline stages together (columns of length n).

    ``attention_bytes``, ``mlp_bytes`` (dense and shared), ``router_bytes`` (with norms), ``head_bytes`` and
    ``expert_bytes`` are the weights that the accelerators of one tensor-parallel rank hold over all stages.
    ``*_parameters`` are what one token multiplies with on one rank. ``stage_fraction`` is the heaviest stage's
    share of the layers, ``expert_stage_fraction`` its share of the expert layers.
    """

    attention_bytes: FloatArray
    mlp_bytes: FloatArray
    router_bytes: FloatArray
    head_bytes: FloatArray
    embedding_bytes: FloatArray
    expert_bytes: FloatArray
    quantized_parameters: FloatArray
    wide_parameters: FloatArray
    attention_parameters: FloatArray
    expert_parameters_per_token: FloatArray
    stage_fraction: FloatArray
    expert_stage_fraction: FloatArray


def shard_weights(architecture: Architecture, deployments: Deployments) -> Shards:
    """Weights of one rank. Attention is cut by TP and copied by attention-DP; experts are cut by both.

    Key and value projections are copied where TP exceeds the KV heads, latent down-projections and indexers always.
    """
    a, d = architecture, deployments
    counts = parameter_counts(a)
    tp, pp = d.tensor_parallel, d.pipeline_parallel
    group = tp * d.attention_data_parallel
    if a.has_latent_attention:
        copied = float(a.full_layers * a.hidden_size * (a.q_lora_rank + a.kv_lora_rank + a.rope_dim))
        # Every rank runs the whole indexer of sparse attention.
        index = (a.q_lora_rank or a.hidden_size) * a.index_dim * a.index_heads + a.hidden_size * a.index_dim
        copied += float(a.full_layers * (index + a.hidden_size * a.index_heads)) if a.index_heads else 0.0
        key_value = 0.0
    else:
        copied = 0.0
        width = a.head_dim + (0 if a.shared_kv else a.v_head_dim)
        key_value = float(a.attention_layers * a.hidden_size * a.kv_heads * width)
    cut = counts.attention - copied - key_value
    attention = cut / tp + copied + key_value / np.minimum(tp, max(a.kv_heads, 1))
    mlp = (counts.dense_mlp + counts.shared_experts) / tp
    small = float(counts.router + counts.norms) + 0.0 * tp
    head = a.vocabulary * a.hidden_size / tp
    experts = counts.routed_experts / group
    share = a.active_experts / a.experts if a.experts else 0.0
    stage = np.ceil(a.layers / pp) / a.layers
    leading = a.dense_layers <= a.layers * _LEADING_DENSE_SHARE and a.moe_layers > 0
    if a.moe_layers and leading and a.moe_layers + a.dense_layers == a.layers:
        expert_stage = np.minimum(np.ceil(a.layers / pp) / a.moe_layers, 1.0)
    elif a.moe_layers:
        expert_stage = np.ceil(a.moe_layers / pp) / a.moe_layers
    else:
        expert_stage = stage
    return Shards(
        attention_bytes=attention * d.attention_weight_bytes,
        mlp_bytes=mlp * d.weight_bytes,
        router_bytes=small * d.wide_bytes,
        head_bytes=head * d.wide_bytes,
        embedding_bytes=counts.embedding / tp * d.wide_bytes,
        expert_bytes=experts * d.weight_bytes,
        quantized_parameters=mlp,
        wide_parameters=head + small,
        attention_parameters=attention,
        # A rank's own tokens bring experts' work of k experts each; over the group that is 1/tp a rank.
        expert_parameters_per_token=counts.routed_experts * share / tp,
        stage_fraction=stage,
        expert_stage_fraction=expert_stage,
    )


@dataclass(frozen=True, slots=True, eq=False)
class CacheShards:
    """The KV cache of one rank over all stages: bytes per token of full and sliding layers, fixed state."""

    full_bytes_per_token: FloatArray
    sliding_bytes_per_token: FloatArray
    state_bytes: FloatArray
    window_tokens: float

    def sequence_bytes(self, tokens: float, ahead_tokens: FloatArray | float = 0.0) -> FloatArray:
        """Bytes of one sequence of the given length on one rank, all stages together.

        Windowed layers hold their window and ``ahead_tokens`` beyond it: the tokens of a step, while it runs.
        """
        return (
            self.full_bytes_per_token * tokens
            + self.sliding_bytes_per_token * np.minimum(tokens, self.window_tokens + ahead_tokens)
            + self.state_bytes
        )


def shard_cache(
    architecture: Architecture, deployments: Deployments, *, window_cache: bool = True, latent_cache: bool = True
) -> CacheShards:
    """The cache of one rank: a latent is copied to every rank, KV heads are divided among ranks and copied
    where there are more ranks than heads.

    Without ``window_cache`` windowed layers keep the whole context, without ``latent_cache`` latent attention
    keeps the expanded keys and values of its heads, as old engines did.
    """
    a, d = architecture, deployments
    tp = d.tensor_parallel
    heads = max(a.global_kv_heads or a.kv_heads, 1)
    if not a.has_latent_attention:
        full = kv_elements_per_token_full(a) / np.minimum(tp, heads) * d.kv_bytes
    elif latent_cache:
        full = kv_elements_per_token_full(a) * d.kv_bytes
    else:
        expanded = a.full_layers * a.attention_heads * (a.nope_dim + a.rope_dim + a.v_head_dim)
        full = expanded / np.minimum(tp, a.attention_heads) * d.kv_bytes
    # The indexer's keys are kept in one byte and copied like the latent.
    full = full + index_elements_per_token(a)
    sliding = kv_elements_per_token_sliding(a) / np.minimum(tp, max(a.kv_heads, 1)) * d.kv_bytes
    state = state_bytes_per_sequence(a) / np.minimum(tp, max(a.linear_value_heads, 1))
    return CacheShards(full, sliding, state, float(a.sliding_window) if window_cache else np.inf)


def stage_layers(layers: int, pipeline_parallel: int) -> tuple[int, ...]:
    """Layers of each pipeline stage, as even as can be; the first ones take what is left over."""
    least, more = divmod(layers, pipeline_parallel)
    return tuple(least + (stage < more) for stage in range(pipeline_parallel))


def page_rounded(tokens: float, page_tokens: float) -> float:
    """Tokens rounded up to whole cache pages."""
    return float(np.ceil(tokens / page_tokens) * page_tokens) if page_tokens > 0 else tokens


def decode_context_tokens(traffic: Traffic) -> float:
    """Mean context that a decoding request attends to: the input and half of the output."""
    return traffic.input_tokens + traffic.output_tokens / 2
