"""What a language model is made of: its numbers, its parameter counts, its cache per token.

Everything here is arithmetic on shapes. The formulas count the tensors that the model families publish; a
count is exact where the published checkpoint holds exactly those tensors.
"""

from dataclasses import dataclass
from typing import Final

#: Bytes of one element of the recurrent state of linear-attention layers: engines keep it in fp32.
STATE_ELEMENT_BYTES: Final = 4.0
#: Bytes of one element of the short convolution's window beside it, kept in the activation type.
CONVOLUTION_ELEMENT_BYTES: Final = 2.0


@dataclass(frozen=True, slots=True)
class Architecture:
    """The numbers of one text model. Counts are plain integers, widths are elements, 0 means "has none".

    ``layers`` counts blocks as the model's config does. ``full_layers`` attend to the whole context,
    ``sliding_layers`` to the last ``sliding_window`` tokens, ``linear_layers`` keep a fixed state. An MLP
    stands in ``dense_layers + moe_layers`` of them. ``shared_ffn_size`` is the width of all shared experts
    together. ``kv_lora_rank > 0`` says multi-head latent attention: one latent of ``kv_lora_rank + rope_dim``
    elements a token and layer, which no tensor-parallel degree splits. ``qk_norm``: 0 none, 1 one vector a
    head width, 2 one over all heads. ``norm_vectors``: 1 for RMS norm (gain), 2 for layer norm (gain, bias).
    ``global_head_dim`` and ``global_kv_heads`` are set where full layers have other heads than sliding ones.
    ``kv_compression`` is the tokens kept a token of context (below 1 where the cache itself is compressed).
    """

    layers: int
    hidden_size: int
    attention_heads: int
    kv_heads: int
    head_dim: int
    v_head_dim: int
    ffn_size: int
    vocabulary: int
    mlp_matrices: int = 3
    tied_embeddings: bool = False
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: int = 0
    norms_per_layer: int = 2
    norm_vectors: int = 1
    gated_attention: bool = False
    attention_sinks: bool = False
    experts: int = 0
    active_experts: int = 0
    shared_experts: int = 0
    shared_ffn_size: int = 0
    dense_layers: int = 0
    moe_layers: int = 0
    moe_ffn_size: int = 0
    moe_latent_size: int = 0
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    rope_dim: int = 0
    nope_dim: int = 0
    index_heads: int = 0
    index_dim: int = 0
    full_layers: int = 0
    sliding_layers: int = 0
    sliding_window: int = 0
    global_head_dim: int = 0
    global_kv_heads: int = 0
    global_shared_kv: bool = False
    shared_kv: bool = False
    output_groups: int = 0
    output_lora_rank: int = 0
    kv_compression: float = 1.0
    linear_layers: int = 0
    linear_key_heads: int = 0
    linear_value_heads: int = 0
    linear_parameters_per_layer: int = 0
    linear_state_bytes_per_layer: float = 0.0
    position_embeddings: int = 0
    max_context_tokens: int = 0
    native_dtype: str = "bf16"

    @property
    def has_latent_attention(self) -> bool:
        """Whether the cache is one latent vector a token that every tensor-parallel rank must copy (MLA)."""
        return self.kv_lora_rank > 0

    @property
    def attention_layers(self) -> int:
        """Layers with a growing or windowed KV cache."""
        return self.full_layers + self.sliding_layers


@dataclass(frozen=True, slots=True)
class LinearAttention:
    """One linear-attention layer: its parameters, and the bytes of state one sequence keeps in it."""

    key_heads: int
    value_heads: int
    parameters: int
    state_bytes: float


def gated_delta_net(
    hidden_size: int, key_heads: int, value_heads: int, key_dim: int, value_dim: int, convolution: int
) -> LinearAttention:
    """One gated delta-net layer (Qwen3-Next and Qwen3.5).

    Tensors: fused query, key, value and gate projection, beta and decay projection, depthwise convolution
    over query, key and value, decay and step bias a value head, gated norm, output projection. The state is
    one matrix key_dim x value_dim a value head in fp32, plus the convolution's last inputs.
    """
    keys, values = key_heads * key_dim, value_heads * value_dim
    parameters = (
        hidden_size * (2 * keys + 2 * values)
        + hidden_size * 2 * value_heads
        + (2 * keys + values) * convolution
        + 2 * value_heads
        + value_dim
        + values * hidden_size
    )
    state = value_heads * key_dim * value_dim * STATE_ELEMENT_BYTES
    window = (2 * keys + values) * (convolution - 1) * CONVOLUTION_ELEMENT_BYTES
    return LinearAttention(key_heads, value_heads, parameters, state + window)


def mamba2(
    hidden_size: int, heads: int, head_dim: int, state_size: int, groups: int, convolution: int
) -> LinearAttention:
    """One Mamba-2 layer (Nemotron-H): input projection, convolution with bias, decay, skip and step bias a
    head, gated norm, output projection. The state is heads x head_dim x state_size in fp32."""
    inner = heads * head_dim
    convolved = inner + 2 * groups * state_size
    parameters = (
        hidden_size * (inner + convolved + heads)
        + convolved * (convolution + 1)
        + 3 * heads
        + inner
        + inner * hidden_size
    )
    state = inner * state_size * STATE_ELEMENT_BYTES
    window = convolved * (convolution - 1) * CONVOLUTION_ELEMENT_BYTES
    return LinearAttention(groups, heads, parameters, state + window)


@dataclass(frozen=True, slots=True)
class ParameterCounts:
    """Parameters by what becomes of them: which are quantized, sharded, copied or read in a step.

    ``embedding`` includes learned positions. ``lm_head`` is 0 where it is tied to the embedding (it is still
    read in every step). ``attention`` includes linear-attention layers. ``active`` counts what one token
    touches: everything but the routed experts that it is not sent to; the embedding counts in full, as model
    cards count it.
    """

    embedding: int
    lm_head: int
    attention: int
    dense_mlp: int
    router: int
    routed_experts: int
    shared_experts: int
    norms: int
    total: int
    active: int


def _attention_parameters(a: Architecture, heads: int, kv_heads: int, head_dim: int, v_dim: int, shared: bool) -> int:
    """One attention layer without its norms."""
    h = a.hidden_size
    q_width = heads * head_dim
    if a.has_latent_attention:
        width = heads * (a.nope_dim + a.rope_dim)
        query = h * a.q_lora_rank + a.q_lora_rank * (width + 1) if a.q_lora_rank else h * width
        latent = h * (a.kv_lora_rank + a.rope_dim) + a.kv_lora_rank
        expand = a.kv_lora_rank * heads * (a.nope_dim + v_dim)
        total = query + latent + expand + heads * v_dim * h
    else:
        query = h * a.q_lora_rank + a.q_lora_rank * (q_width + 1) if a.q_lora_rank else h * q_width
        if a.gated_attention:
            query *= 2
        kv_width = kv_heads * head_dim + (0 if shared else kv_heads * v_dim)
        if a.output_groups:
            output = heads * v_dim * a.output_lora_rank + a.output_groups * a.output_lora_rank * h
        else:
            output = heads * v_dim * h
        total = query + h * kv_width + output
        if a.qkv_bias:
            total += q_width + kv_width
    if a.output_bias:
        total += h
    if a.attention_sinks:
        total += heads
    if a.index_heads:
        total += (a.q_lora_rank or h) * a.index_heads * a.index_dim + h * a.index_dim
        total += 2 * a.index_dim + h * a.index_heads
    return total


def _mlp_parameters(a: Architecture, hidden: int, width: int) -> int:
    """One MLP of the given width: two or three matrices and, where the family has them, their biases."""
    biases = (a.mlp_matrices - 1) * width + hidden if a.mlp_bias else 0
    return a.mlp_matrices * hidden * width + biases


def _norm_parameters(a: Architecture) -> int:
    """Norms of every layer, of query and key where the family has them, and the last one."""
    per_layer = a.norms_per_layer * a.hidden_size * a.norm_vectors
    if a.qk_norm == 1:
        qk = 2 * a.head_dim
    elif a.qk_norm:
        qk = (a.attention_heads + a.kv_heads) * a.head_dim
    else:
        qk = 0
    return a.layers * per_layer + a.attention_layers * qk + a.hidden_size * a.norm_vectors


def parameter_counts(architecture: Architecture) -> ParameterCounts:
    """Parameters of each kind, as integers.

    Source: the tensor lists of the published checkpoints of each family; checked against the published
    totals of 88 models in the tests and the catalogue.
    """
    a = architecture
    embedding = (a.vocabulary + a.position_embeddings) * a.hidden_size
    lm_head = 0 if a.tied_embeddings else a.vocabulary * a.hidden_size
    local = _attention_parameters(a, a.attention_heads, a.kv_heads, a.head_dim, a.v_head_dim, a.shared_kv)
    full = local
    if a.global_head_dim:
        full = _attention_parameters(
            a, a.attention_heads, a.global_kv_heads, a.global_head_dim, a.global_head_dim, a.global_shared_kv
        )
    attention = a.full_layers * full + a.sliding_layers * local + a.linear_layers * a.linear_parameters_per_layer
    dense_mlp = a.dense_layers * _mlp_parameters(a, a.hidden_size, a.ffn_size)
    expert = _mlp_parameters(a, a.moe_latent_size or a.hidden_size, a.moe_ffn_size)
    routed = a.moe_layers * a.experts * expert
    router = a.moe_layers * a.experts * (a.hidden_size + (1 if a.mlp_bias else 0))
    latent = a.moe_layers * 2 * a.hidden_size * a.moe_latent_size
    shared = a.moe_layers * a.mlp_matrices * a.hidden_size * a.shared_ffn_size + latent
    norms = _norm_parameters(a)
    fixed = embedding + lm_head + attention + dense_mlp + router + shared + norms
    active = fixed + a.moe_layers * a.active_experts * expert
    return ParameterCounts(
        embedding, lm_head, attention, dense_mlp, router, routed, shared, norms, fixed + routed, active
    )


def kv_elements_per_token_full(architecture: Architecture) -> float:
    """KV-cache elements that one token of context adds over all full-attention layers of the whole model."""
    a = architecture
    if a.has_latent_attention:
        return float(a.full_layers * (a.kv_lora_rank + a.rope_dim))
    if a.global_head_dim:
        return float(a.full_layers * a.global_kv_heads * 2 * a.global_head_dim)
    width = a.head_dim + (0 if a.shared_kv else a.v_head_dim)
    return a.full_layers * a.kv_heads * width * a.kv_compression


def kv_elements_per_token_sliding(architecture: Architecture) -> float:
    """KV-cache elements a token adds over all sliding-window layers, until the window is full."""
    a = architecture
    width = a.head_dim + (0 if a.shared_kv else a.v_head_dim)
    return float(a.sliding_layers * a.kv_heads * width)


def index_elements_per_token(architecture: Architecture) -> float:
    """Elements of the indexer's key cache a token (sparse attention of DeepSeek-V3.2 and GLM-5), one byte each."""
    return float(architecture.index_dim * architecture.full_layers if architecture.index_heads else 0)


def state_bytes_per_sequence(architecture: Architecture) -> float:
    """Bytes of fixed state that one sequence keeps over all linear-attention layers, whatever its length."""
    return architecture.linear_layers * architecture.linear_state_bytes_per_layer
