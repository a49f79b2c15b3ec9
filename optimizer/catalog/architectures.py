"""Shapes of the models one may serve or train: the text part, as published in their configurations."""

from typing import Literal, Self

from pydantic import model_validator

from optimizer.catalog.base import Row, quantity, text


class ModelArchitecture(Row):
    """One model. Sizes count elements; a blank column of a kind the model does not have is 0."""

    id: str = text("catalogue name")
    family: str = text("model family", "")
    attention: Literal["mha", "mqa", "gqa", "mla", "hybrid_gdn", "hybrid_mamba2", "dsv4"] = text(
        "attention kind; hybrid: few layers with a growing cache among layers with a fixed state", "gqa"
    )
    layers: int = quantity("layers, or blocks where a block is attention, MLP or state alone", "layers", ge=1)
    hidden: int = quantity("width of the residual stream", "elements", ge=1)
    heads: int = quantity("query heads", "heads", ge=1)
    kv_heads: int = quantity("key/value heads; 1 for a latent cache", "heads", ge=1)
    head_dim: int = quantity("width of a query/key head", "elements", ge=1)
    v_head_dim: int = quantity("width of a value head", "elements", ge=1)
    ffn: int = quantity("width of a dense MLP; 0: no dense MLP", "elements", 0, ge=0)
    mlp_matrices: int = quantity("matrices of an MLP: 3 gated, 2 plain", "matrices", 3, ge=2, le=3)
    vocabulary: int = quantity("rows of the embedding", "tokens", ge=1)
    tied_embeddings: bool = text("the head shares the embedding's weights", False)
    qkv_bias: bool = text("query, key and value projections have a bias", False)
    output_bias: bool = text("the attention output projection has a bias", False)
    mlp_bias: bool = text("MLP matrices have a bias", False)
    norm: Literal["rms", "ln"] = text("rms (one weight vector) or ln (weight and bias)", "rms")
    norms_per_layer: int = quantity("norms in a layer", "norms", 2, ge=0)
    qk_norm: int = quantity("0: none, 1: one vector a head width, 2: over all heads", "kind", 0, ge=0, le=2)
    experts: int = quantity("routed experts in a mixture layer; 0: dense", "experts", 0, ge=0)
    active_experts: int = quantity("routed experts that a token visits", "experts", 0, ge=0)
    shared_experts: int = quantity("1: each mixture layer has always-on experts, of width shared_ffn", "flag", 0, ge=0)
    shared_ffn: int = quantity("width of the always-on experts together", "elements", 0, ge=0)
    dense_layers: int = quantity("layers with a dense MLP", "layers", 0, ge=0)
    moe_layers: int = quantity("layers with experts", "layers", 0, ge=0)
    moe_ffn: int = quantity("width of one routed expert", "elements", 0, ge=0)
    moe_latent: int = quantity("width of the latent space in which experts work; 0: hidden", "elements", 0, ge=0)
    q_lora: int = quantity("rank of the query compression (MLA)", "elements", 0, ge=0)
    kv_lora: int = quantity("rank of the cached latent (MLA)", "elements", 0, ge=0)
    rope_dim: int = quantity("rotary part of an MLA head", "elements", 0, ge=0)
    nope_dim: int = quantity("non-rotary part of an MLA head", "elements", 0, ge=0)
    index_heads: int = quantity("heads of the sparse-attention indexer", "heads", 0, ge=0)
    index_dim: int = quantity("width of an indexer head", "elements", 0, ge=0)
    attention_layers: int = quantity("layers with full attention", "layers", 0, ge=0)
    sliding_layers: int = quantity("layers with windowed attention", "layers", 0, ge=0)
    sliding_window: int = quantity("tokens in the window", "tokens", 0, ge=0)
    layer_pattern: str = text("order of the layer kinds, for readers", "")
    gated_query: bool = text("the query projection carries an output gate and is twice as wide", False)
    attention_sinks: bool = text("one learnt sink per head", False)
    global_head_dim: int = quantity(
        "head width of full-attention layers where it differs; 0: head_dim", "elements", 0, ge=0
    )
    global_kv_heads: int = quantity(
        "kv heads of full-attention layers where they differ; 0: kv_heads", "heads", 0, ge=0
    )
    shared_kv_projection: bool = text("full-attention layers use one projection for key and value", False)
    linear_layers: int = quantity("layers with a fixed-size state", "layers", 0, ge=0)
    linear_kind: Literal["", "gdn", "mamba2"] = text("gated delta net or Mamba 2; empty: none", "")
    linear_key_heads: int = quantity("key heads (gdn) or groups (mamba2)", "heads", 0, ge=0)
    linear_value_heads: int = quantity("value heads (gdn) or heads (mamba2)", "heads", 0, ge=0)
    linear_key_dim: int = quantity("key width (gdn) or state size (mamba2)", "elements", 0, ge=0)
    linear_value_dim: int = quantity("value width (gdn) or head width (mamba2)", "elements", 0, ge=0)
    linear_convolution: int = quantity("taps of the short convolution", "tokens", 0, ge=0)
    output_groups: int = quantity("groups of the compressed output projection (dsv4)", "groups", 0, ge=0)
    output_lora: int = quantity("rank of the compressed output projection (dsv4)", "elements", 0, ge=0)
    compression_ratios: str = text("alternating cache compression ratios (dsv4), space separated", "")
    position_embeddings: int = quantity("learnt positions", "positions", 0, ge=0)
    total_parameters_published: int | None = quantity("published count", "parameters", None, ge=1)
    total_kind: Literal["exact", "headline"] = text(
        "exact: tensor count, a right formula is within 0.1 %; headline: rounded, within 3 %", "headline"
    )
    active_parameters_published: int | None = quantity("published count that a token visits", "parameters", None, ge=1)
    native_dtype: str = text("format of the released weights", "bf16")
    native_scheme: str = text("quantization scheme of the released weights: its accuracy is the baseline", "w16a16")
    native_scope: Literal["all", "experts"] = text("which matrices the native scheme covers", "all")
    native_block_width: int = quantity(
        "shards must be multiples of this block in native format; 1: none", "elements", 1, ge=1
    )
    max_context_tokens: int = quantity("longest context of the configuration", "tokens", ge=1)
    kv_elements_per_token_full: int | None = quantity(
        "cached elements a token over all full-attention layers; none: see kv_note", "elements", None, ge=0
    )
    kv_elements_per_token_sliding: int | None = quantity(
        "cached elements a token over all windowed layers; none: see kv_note", "elements", None, ge=0
    )
    kv_note: str = text("what is special about the cache", "")
    architecture_basis: Literal["config_copy", "code_copy", "recalled", "user"] = text("how the shape was read", "user")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.experts and not (self.active_experts and self.moe_layers and self.moe_ffn):
            raise ValueError("a model with experts needs active_experts, moe_layers and moe_ffn")
        if self.active_experts > self.experts:
            raise ValueError("active_experts must not exceed experts")
        if self.sliding_layers and not self.sliding_window:
            raise ValueError("windowed layers need sliding_window")
        return self
