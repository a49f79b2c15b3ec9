"""Which degrees of parallelism an engine can start, and why not the others.

Each rule is one bit of an integer mask, so that a million layouts are judged without a Python loop and every
refusal keeps its reasons.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimizer.performance.architecture import Architecture

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LayoutRule:
    """One rule of the engines: the bit that says it is broken, its name and its sentence."""

    bit: int
    name: str
    sentence: str


RULES: Final = (
    LayoutRule(1, "heads", "the attention heads do not divide by the tensor-parallel degree"),
    LayoutRule(2, "kv_heads", "the KV heads neither divide by the tensor-parallel degree nor it by them"),
    LayoutRule(4, "layers", "more pipeline stages than layers"),
    LayoutRule(8, "experts", "the experts do not divide by the expert-parallel degree"),
    LayoutRule(16, "expert_group", "expert parallelism must divide tensor-parallel x attention-data-parallel"),
    LayoutRule(32, "ffn_block", "the MLP width per rank is not a whole number of quantization blocks"),
    LayoutRule(64, "expert_block", "the expert width per rank is not a whole number of quantization blocks"),
    LayoutRule(128, "scale_up_domain", "the group that exchanges in every layer leaves the scale-up domain and host"),
    LayoutRule(256, "attention_data", "attention-data parallelism needs latent attention or experts"),
    LayoutRule(512, "no_experts", "expert parallelism without experts"),
    LayoutRule(1024, "linear_heads", "the linear-attention heads do not divide by the tensor-parallel degree"),
    LayoutRule(2048, "degrees", "a degree below 1"),
    LayoutRule(4096, "attention_block", "the attention width per rank is not a whole number of quantization blocks"),
    LayoutRule(8192, "vision_heads", "the vision tower's heads do not divide by the tensor-parallel degree"),
    LayoutRule(16384, "context", "the longest request is longer than the model's context"),
)

_BITS: Final = {rule.name: rule.bit for rule in RULES}


def reasons_of(mask: int) -> tuple[str, ...]:
    """The sentences of the rules that a mask says are broken; empty for a layout that starts."""
    return tuple(rule.sentence for rule in RULES if mask & rule.bit)


def check_layouts(
    architecture: Architecture,
    *,
    tensor_parallel: ArrayLike,
    pipeline_parallel: ArrayLike,
    expert_parallel: ArrayLike,
    attention_data_parallel: ArrayLike,
    scale_up_domain: ArrayLike,
    accelerators_per_host: ArrayLike,
    quantization_block: ArrayLike = 1,
    expert_quantization_block: ArrayLike | None = None,
    across_nodes: bool = False,
    vision_heads: int = 0,
    context_tokens: ArrayLike = 0,
) -> IntArray:
    """A bit mask of broken rules for each row; 0 means the engine starts.

    All arguments broadcast. ``quantization_block`` is the width of a weight block that shares a scale and may
    not be cut (128 for block-scaled FP8; 1 where the engine pads); ``expert_quantization_block`` is the same for
    routed experts (default: the same), 1 for engines that pad them or keep each expert whole. KV heads are
    copied where the tensor-parallel degree is a multiple of them. Stages may be uneven. The vocabulary is padded.
    Tensor parallelism times attention-data parallelism must stay within the scale-up domain, or within one host for
    cards on PCIe, unless ``across_nodes``; pipeline stages may always lie on other nodes. ``vision_heads`` are
    those of a vision tower that is cut like the text model (0: none, or copied). ``context_tokens`` is the
    longest request; a model that does not say its context takes any.

    Source of the rules: the start-up checks of vLLM and SGLang as users met them (vllm issues 5003, 4232, 414,
    25292, 17569, 52997; sglang issue 3345 and pull 8243; GLM-V issue 111).
    """
    a = architecture
    experts_as_dense = expert_quantization_block is None
    tp, pp, ep, dp, domain, host, block, expert_block = (
        np.asarray(value, dtype=np.int64)
        for value in (
            tensor_parallel,
            pipeline_parallel,
            expert_parallel,
            attention_data_parallel,
            scale_up_domain,
            accelerators_per_host,
            quantization_block,
            quantization_block if experts_as_dense else expert_quantization_block,
        )
    )
    low = (tp < 1) | (pp < 1) | (ep < 1) | (dp < 1)
    # Degrees below 1 have their own bit; here they must only not divide by zero.
    tp, pp, ep, dp = (np.maximum(value, 1) for value in (tp, pp, ep, dp))
    block, expert_block = np.maximum(block, 1), np.maximum(expert_block, 1)
    group = tp * dp
    # Attention data parallelism copies attention, so only the tensor-parallel degree cuts heads.
    kv_heads = np.int64(max(a.global_kv_heads or a.kv_heads, 1))
    kv_bad = (kv_heads % tp != 0) & (tp % kv_heads != 0)
    if a.global_kv_heads:
        kv_bad = kv_bad | ((a.kv_heads % tp != 0) & (tp % a.kv_heads != 0))
    if a.has_latent_attention or a.attention_layers == 0:
        kv_bad = np.zeros_like(kv_bad)
    mlp_cut = _cuts_block(a.ffn_size if a.dense_layers else 0, tp, block)
    if a.moe_layers:
        mlp_cut = mlp_cut | _cuts_block(a.shared_ffn_size, tp, block)
    query_width = a.attention_heads * (a.v_head_dim if a.has_latent_attention else a.head_dim)
    too_long = (np.asarray(context_tokens) > a.max_context_tokens) & (a.max_context_tokens > 0)
    moe_tp = np.maximum(group // ep, 1)
    broken = (
        ("heads", a.attention_heads % tp != 0),
        ("kv_heads", kv_bad),
        ("layers", pp > a.layers),
        ("experts", (a.experts % ep != 0) if a.moe_layers else np.zeros_like(low)),
        ("expert_group", (group % ep != 0) & (ep > 1)),
        ("ffn_block", mlp_cut),
        ("expert_block", _cuts_block(a.moe_ffn_size if a.moe_layers else 0, moe_tp, expert_block)),
        ("scale_up_domain", (group > np.maximum(domain, host)) & (not across_nodes)),
        ("attention_data", (dp > 1) & (not (a.has_latent_attention or a.moe_layers))),
        ("no_experts", (ep > 1) & (a.moe_layers == 0)),
        ("linear_heads", _uneven(a.linear_value_heads, tp) | _uneven(a.linear_key_heads, tp)),
        ("degrees", low),
        ("attention_block", _cuts_block(query_width if a.attention_layers else 0, tp, block)),
        ("vision_heads", (vision_heads % tp != 0) if vision_heads else np.zeros_like(low)),
        ("context", too_long),
    )
    mask = np.zeros(np.broadcast_shapes(*(np.shape(test) for _, test in broken)), dtype=np.int64)
    for name, test in broken:
        mask |= np.where(test, _BITS[name], 0)
    return mask


def _cuts_block(width: int, ranks: IntArray, block: IntArray) -> NDArray[np.bool_]:
    """Whether cutting ``width`` among ``ranks`` leaves a part that is not whole blocks (or not whole at all)."""
    if width == 0:
        return np.zeros(np.broadcast_shapes(ranks.shape, block.shape), dtype=np.bool_)
    # Without blocks engines pad; with blocks neither an uneven cut nor a part of a block can be loaded.
    cut: NDArray[np.bool_] = (block > 1) & (ranks > 1) & ((width % ranks != 0) | ((width // ranks) % block != 0))
    return cut


def _uneven(heads: int, ranks: IntArray) -> NDArray[np.bool_]:
    """Heads that can neither be divided among the ranks nor copied to them."""
    if heads == 0:
        return np.zeros_like(ranks, dtype=np.bool_)
    uneven: NDArray[np.bool_] = (heads % ranks != 0) & (ranks % heads != 0)
    return uneven


@dataclass(frozen=True, slots=True, eq=False)
class Layouts:
    """Layouts as columns, with the mask of broken rules (0 = starts) and the accelerators of one replica."""

    tensor_parallel: IntArray
    pipeline_parallel: IntArray
    expert_parallel: IntArray
    attention_data_parallel: IntArray
    width: IntArray
    mask: IntArray


def enumerate_layouts(
    architecture: Architecture,
    *,
    scale_up_domain: int,
    accelerators_per_host: int,
    tensor_parallel: tuple[int, ...] = (1, 2, 4, 8),
    pipeline_parallel: tuple[int, ...] = (1,),
    expert_parallel: tuple[int, ...] = (1,),
    attention_data_parallel: tuple[int, ...] = (1,),
    quantization_block: int = 1,
    expert_quantization_block: int | None = None,
    across_nodes: bool = False,
) -> Layouts:
    """Every combination of the allowed degrees for one accelerator type, each with its mask of broken rules.

    Rows are in the order of the given degrees, the last varying fastest. ``width`` = TP x PP x attention DP.
    """
    degrees = [
        np.asarray(values, dtype=np.int64)
        for values in (tensor_parallel, pipeline_parallel, expert_parallel, attention_data_parallel)
    ]
    tp, pp, ep, dp = (grid.ravel() for grid in np.meshgrid(*degrees, indexing="ij"))
    mask = check_layouts(
        architecture,
        tensor_parallel=tp,
        pipeline_parallel=pp,
        expert_parallel=ep,
        attention_data_parallel=dp,
        scale_up_domain=scale_up_domain,
        accelerators_per_host=accelerators_per_host,
        quantization_block=quantization_block,
        expert_quantization_block=expert_quantization_block,
        across_nodes=across_nodes,
    )
    return Layouts(tp, pp, ep, dp, tp * pp * dp, np.broadcast_to(mask, tp.shape).copy())
