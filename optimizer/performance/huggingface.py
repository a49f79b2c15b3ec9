"""From a Hugging Face ``config.json`` to an ``Architecture``.

Families differ in the names of the same numbers and in what they leave unsaid; both are written here once.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from optimizer.performance.architecture import Architecture, LinearAttention, gated_delta_net, mamba2


class UnsupportedConfigError(ValueError):
    """A config.json that cannot be turned into an architecture; says which keys are missing or what is unknown."""


#: Families whose layers are gated MLPs with RMS norms unless the config says otherwise.
_LLAMA_LIKE: Final = frozenset(
    {"llama", "llama4_text", "mistral", "mixtral", "phi3", "gpt_oss", "glm4_moe", "minimax_m2"}
    | {"qwen2", "qwen3", "qwen2_moe", "qwen3_moe", "qwen3_next", "gemma", "gemma2", "gemma3", "gemma3_text"}
    | {"deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2"}
)
_OTHERS: Final = frozenset(
    {"falcon", "gpt2", "opt", "bloom", "phi", "cohere", "cohere2", "nemotron", "nemotron_h", "gemma4"}
    | {"olmo2", "starcoder2", "gpt_neox", "stablelm"}
)
#: Types whose text part has the shape of another: multimodal shells, renamed and minor versions.
_SAME_SHAPE: Final = {
    **dict.fromkeys(("qwen2_vl", "qwen2_5_vl", "qwen2_vl_text", "qwen2_5_vl_text"), "qwen2"),
    **dict.fromkeys(("qwen3_vl", "qwen3_vl_text"), "qwen3"),
    **dict.fromkeys(("qwen3_vl_moe", "qwen3_vl_moe_text"), "qwen3_moe"),
    **dict.fromkeys(("qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"), "qwen3_next"),
    **dict.fromkeys(("mistral3", "ministral3", "pixtral"), "mistral"),
    **dict.fromkeys(("kimi_k25", "glm4_moe_lite"), "deepseek_v3"),
    **dict.fromkeys(("glm4v_moe", "glm4v_moe_text"), "glm4_moe"),
    **dict.fromkeys(("granite", "smollm3", "seed_oss", "internlm2", "internlm3", "ernie4_5", "yi"), "llama"),
    "glm_moe_dsa": "deepseek_v32",
    "gemma4_text": "gemma4",
}
SUPPORTED_MODEL_TYPES: Final = _LLAMA_LIKE | _OTHERS | frozenset(_SAME_SHAPE)

#: Names of one number in different families, the usual one first.
_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head", "num_heads"),
    "ffn": ("intermediate_size", "ffn_dim", "ffn_hidden_size", "n_inner"),
    "vocabulary": ("vocab_size",),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts"),
    "active": ("num_experts_per_tok", "experts_per_token", "top_k_experts"),
    "moe_ffn": ("moe_intermediate_size",),
    "shared": ("n_shared_experts", "num_shared_experts"),
    "context": ("max_position_embeddings", "n_positions", "seq_length"),
}
#: Families that tie embedding and head when the config does not say.
_TIED: Final = frozenset(
    {"gemma", "gemma2", "gemma3", "gemma3_text", "gemma4", "gpt2", "opt", "bloom", "cohere", "cohere2", "starcoder2"}
)
_LAYER_NORM: Final = frozenset(
    {"falcon", "gpt2", "opt", "bloom", "phi", "nemotron", "starcoder2", "gpt_neox", "stablelm"}
)
_TWO_MATRICES: Final = frozenset(
    {"falcon", "gpt2", "opt", "bloom", "phi", "nemotron", "nemotron_h", "starcoder2", "gpt_neox"}
)
_FULL_BIAS: Final = frozenset({"gpt2", "opt", "bloom", "phi", "gpt_neox"})
_FOUR_NORMS: Final = frozenset({"gemma2", "gemma3", "gemma3_text", "gemma4"})
_QKV_BIAS: Final = frozenset({"qwen2", "qwen2_moe", "gpt_oss"})
_QK_NORM: Final = frozenset({"qwen3", "qwen3_moe", "qwen3_next", "gemma3", "gemma3_text", "gemma4"})
#: Where a multimodal config keeps its language model.
_TEXT_PARTS: Final = ("text_config", "llm_config", "language_config")


def _text_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The language model of a multimodal config, with the outer type where the inner one has none."""
    inner = next((config[part] for part in _TEXT_PARTS if isinstance(config.get(part), Mapping)), None)
    return config if inner is None else {"model_type": config.get("model_type"), **inner}


def _number(config: Mapping[str, Any], key: str, default: int | None = None) -> int | None:
    for name in _NAMES.get(key, (key,)):
        value = config.get(name)
        if value is not None:
            # A list (one value a layer) is taken at its largest: the heaviest layer must fit.
            chosen = max(value) if isinstance(value, list) and value else value
            if isinstance(chosen, bool) or not isinstance(chosen, int | float) or chosen < 0:
                raise UnsupportedConfigError(f"config.json: {name} must be a number of at least 0, found {value!r}")
            return int(chosen)
    return default


def _layer_kinds(config: Mapping[str, Any], kind: str, layers: int) -> tuple[int, int, int, int]:
    """Full, sliding and linear layers, and the window."""
    if kind == "nemotron_h":
        blocks = str(config.get("hybrid_override_pattern") or "")
        return blocks.count("*"), 0, blocks.count("M"), 0
    window = _number(config, "sliding_window", 0) or 0
    types = config.get("layer_types")
    if isinstance(types, list) and types:
        sliding = sum("sliding" in str(t) or "chunked" in str(t) for t in types)
        linear = sum("linear" in str(t) for t in types)
        return layers - sliding - linear, sliding, linear, window or _number(config, "attention_chunk_size", 0) or 0
    if kind == "qwen3_next":
        full = layers // (_number(config, "full_attention_interval", 4) or 4)
        return full, 0, layers - full, 0
    if kind == "cohere2" and window:
        full = layers // (_number(config, "sliding_window_pattern", 4) or 4)
        return full, layers - full, 0, window
    if kind in ("gemma2", "gpt_oss") and window:
        return layers // 2, layers - layers // 2, 0, window
    pattern = _number(config, "sliding_window_pattern", 6 if kind.startswith(("gemma3", "gemma4")) else 0) or 0
    if window and pattern:
        return layers // pattern, layers - layers // pattern, 0, window
    if window and kind == "mistral":
        return 0, layers, 0, window
    # Other families name a window that is switched off (use_sliding_window) or longer than the context.
    return layers, 0, 0, 0


def _expert_layers(config: Mapping[str, Any], layers: int) -> tuple[int, int]:
    """Layers with a dense MLP and with experts."""
    if config.get("model_type") == "nemotron_h":
        blocks = str(config.get("hybrid_override_pattern") or "")
        return blocks.count("-"), blocks.count("E")
    first = _number(config, "first_k_dense_replace", 0) or 0
    step = _number(config, "decoder_sparse_step") or _number(config, "interleave_moe_layer_step") or 1
    only = config.get("mlp_only_layers")
    named = len(only) if isinstance(only, list) else 0
    moe = (layers - first) // step - named
    return layers - moe, moe


def _unknown(kind: str) -> UnsupportedConfigError:
    known = ", ".join(sorted(SUPPORTED_MODEL_TYPES))
    near = get_close_matches(kind, SUPPORTED_MODEL_TYPES, n=1)
    hint = f"; nearest: {near[0]}" if near else ""
    return UnsupportedConfigError(f"config.json: model_type {kind or 'missing'!r} is not known{hint}; known: {known}")


def _linear_attention(text: Mapping[str, Any], kind: str, hidden: int) -> LinearAttention:
    """The linear-attention layer of a hybrid; UnsupportedConfigError names the keys that it lacks."""
    names: tuple[str, ...] = (
        "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim",
    )  # fmt: skip
    if kind == "nemotron_h":
        names = ("mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups")
    lacks = [name for name in names if not _number(text, name)]
    if lacks:
        raise UnsupportedConfigError(f"config.json of model_type {kind!r} lacks: {', '.join(lacks)}")
    one, two, three, four = (_number(text, name) or 0 for name in names)
    if kind == "nemotron_h":
        return mamba2(hidden, one, two, three, four, _number(text, "conv_kernel", 4) or 4)
    return gated_delta_net(hidden, one, two, three, four, _number(text, "linear_conv_kernel_dim", 4) or 4)


def from_hf_config(config: Mapping[str, Any]) -> Architecture:
    """The ``Architecture`` that a config.json describes (its text part, for multimodal models).

    Raises ``UnsupportedConfigError`` (a ValueError) that names every missing key, or the ``model_type`` that is
    not known, with the nearest and all known ones.
    """
    text = _text_part(config)
    named = str(text.get("model_type") or "")
    if named not in SUPPORTED_MODEL_TYPES:
        raise _unknown(named)
    kind = _SAME_SHAPE.get(named, named)
    needed = ("layers", "hidden", "heads", "vocabulary")
    found = {key: _number(text, key) for key in needed}
    missing = [_NAMES[key][0] for key in needed if not found[key]]
    hidden, heads, layers = found["hidden"] or 0, found["heads"] or 0, found["layers"] or 0
    experts = _number(text, "experts", 0) or 0
    if kind == "nemotron_h":
        pattern = text.get("hybrid_override_pattern")
        if not isinstance(pattern, str) or not pattern:
            missing.append("hybrid_override_pattern")
        elif "E" not in pattern:
            experts = 0
    if kind == "gemma4" and not text.get("enable_moe_block", bool(experts)):
        experts = 0
    ffn = _number(text, "ffn")
    if ffn is None and kind in ("falcon", "gpt2", "bloom"):
        ffn = 4 * hidden  # these families leave the width out: it is four times the hidden size
    if ffn is None and not experts:
        missing.append("intermediate_size")
    if experts and not _number(text, "active"):
        missing.append("num_experts_per_tok")
    if missing:
        raise UnsupportedConfigError(f"config.json of model_type {named!r} lacks: {', '.join(missing)}")
    dense_layers, moe_layers = (layers, 0)
    if experts or kind == "nemotron_h":
        dense_layers, moe_layers = _expert_layers({**text, "model_type": kind}, layers)
    full, sliding, linear_layers, window = _layer_kinds(text, kind, layers)
    head_dim = _number(text, "head_dim") or hidden // heads
    latent = _number(text, "kv_lora_rank", 0) or 0
    nope, rope = _number(text, "qk_nope_head_dim", 0) or 0, _number(text, "qk_rope_head_dim", 0) or 0
    if latent and not (nope and rope):
        raise UnsupportedConfigError(f"config.json of model_type {named!r} lacks: qk_nope_head_dim, qk_rope_head_dim")
    v_dim = _number(text, "v_head_dim", 0) or head_dim if latent else head_dim
    linear = _linear_attention(text, kind, hidden) if linear_layers else None
    bias = kind in _FULL_BIAS
    moe_ffn = _number(text, "moe_ffn") or (ffn or 0)
    shared = _number(text, "shared", 0) or 0
    if kind == "llama4_text":
        # This family calls the experts' width intermediate_size, and has one shared expert without saying so.
        ffn, shared = _number(text, "intermediate_size_mlp") or ffn, 1
    shared_ffn = _number(text, "shared_expert_intermediate_size") or shared * moe_ffn
    if kind == "nemotron_h":
        shared_ffn = _number(text, "moe_shared_expert_intermediate_size") or shared_ffn
    if kind == "gemma4" and experts:
        shared_ffn = ffn or 0  # its dense MLP works beside the experts in every layer
    positions = {"gpt2": 0, "opt": 2}  # OPT keeps two extra positions
    return Architecture(
        layers=layers,
        hidden_size=hidden,
        attention_heads=heads,
        kv_heads=1 if latent else _kv_heads(text, kind, heads),
        head_dim=nope + rope if latent else head_dim,
        v_head_dim=v_dim,
        ffn_size=ffn or 0,
        vocabulary=found["vocabulary"] or 0,
        mlp_matrices=2 if kind in _TWO_MATRICES else 3,
        tied_embeddings=bool(text.get("tie_word_embeddings", config.get("tie_word_embeddings", kind in _TIED))),
        qkv_bias=bias
        or bool(text.get("attention_bias", text.get("use_qkv_bias", kind in _QKV_BIAS)))
        or _uses_bias(text, kind),
        output_bias=bias
        or _uses_bias(text, kind)
        or (kind != "glm4_moe" and bool(text.get("attention_out_bias", text.get("attention_bias", kind == "gpt_oss")))),
        mlp_bias=bias or kind == "gpt_oss" or bool(text.get("mlp_bias", False)) or _uses_bias(text, kind),
        qk_norm=_qk_norm(text, kind),
        norms_per_layer=_norms(text, kind),
        norm_vectors=2 if kind in _LAYER_NORM else 1,
        gated_attention=kind == "qwen3_next",
        attention_sinks=kind == "gpt_oss",
        experts=experts,
        active_experts=_number(text, "active", 0) or 0,
        shared_experts=shared or (1 if shared_ffn else 0),
        shared_ffn_size=shared_ffn if experts else 0,
        dense_layers=dense_layers,
        moe_layers=moe_layers,
        moe_ffn_size=moe_ffn if experts else 0,
        q_lora_rank=_number(text, "q_lora_rank", 0) or 0,
        kv_lora_rank=latent,
        rope_dim=rope,
        nope_dim=nope,
        index_heads=_number(text, "index_n_heads", 0) or 0,
        index_dim=_number(text, "index_head_dim", 0) or 0,
        full_layers=full,
        sliding_layers=sliding,
        sliding_window=window,
        global_head_dim=_number(text, "global_head_dim", 0) or 0 if kind == "gemma4" else 0,
        global_kv_heads=_global_kv_heads(text, heads) if kind == "gemma4" else 0,
        global_shared_kv=kind == "gemma4" and bool(text.get("attention_k_eq_v", False)),
        linear_layers=linear_layers,
        linear_key_heads=linear.key_heads if linear else 0,
        linear_value_heads=linear.value_heads if linear else 0,
        linear_parameters_per_layer=linear.parameters if linear else 0,
        linear_state_bytes_per_layer=linear.state_bytes if linear else 0.0,
        position_embeddings=(_number(text, "context", 0) or 0) + positions[kind] if kind in positions else 0,
        max_context_tokens=_number(text, "context", 0) or 0,
        native_dtype=_native_dtype(config, text),
    )


def _kv_heads(config: Mapping[str, Any], kind: str, heads: int) -> int:
    if kind == "falcon" and config.get("multi_query") and not config.get("new_decoder_architecture"):
        return 1
    return _number(config, "num_key_value_heads") or _number(config, "num_kv_heads") or heads


def _global_kv_heads(text: Mapping[str, Any], heads: int) -> int:
    """KV heads of Gemma 4's full-attention layers, where they have a head width of their own."""
    if not _number(text, "global_head_dim"):
        return 0
    return _number(text, "num_global_key_value_heads") or _kv_heads(text, "gemma4", heads)


def _uses_bias(config: Mapping[str, Any], kind: str) -> bool:
    """StarCoder 2 and ERNIE say it in one key for all projections."""
    return bool(config.get("use_bias", kind == "starcoder2"))


def _qk_norm(config: Mapping[str, Any], kind: str) -> int:
    if kind == "olmo2":
        return 2
    if kind == "minimax_m2":
        return 2 if config.get("use_qk_norm", True) else 0
    return int(bool(config.get("use_qk_norm", kind in _QK_NORM)))


def _norms(config: Mapping[str, Any], kind: str) -> int:
    if kind in _FOUR_NORMS:
        return 4
    parallel = kind in ("phi", "cohere", "cohere2", "nemotron_h") or (
        kind == "falcon" and not config.get("new_decoder_architecture", False)
    )
    return 1 if parallel else 2


def _native_dtype(config: Mapping[str, Any], text: Mapping[str, Any]) -> str:
    """The quantization of the checkpoint where it has one: ``torch_dtype`` alone names the wrong type then."""
    quantization = config.get("quantization_config") or text.get("quantization_config")
    if isinstance(quantization, Mapping) and quantization.get("quant_method"):
        return str(quantization["quant_method"])
    dtype = text.get("torch_dtype") or text.get("dtype") or config.get("torch_dtype") or "bfloat16"
    return {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}.get(str(dtype), str(dtype))
