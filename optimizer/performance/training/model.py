"""A model as training sees it: what is multiplied, stored and sent, over all its layers."""

from dataclasses import dataclass
from typing import Final

from optimizer.performance.architecture import Architecture, parameter_counts

#: Aspect of a model of which only the size is known: hidden = 128 layers at the sizes of GPT-3 and Llama 3.1
#: (12288/96, 16384/126), heads of 128, an MLP of 4 h as two matrices, 128K tokens.
_HIDDEN_PER_LAYER: Final = 128.0
_HEAD_DIM: Final = 128
_USUAL_VOCABULARY: Final = 128256
#: Experts that a token meets in most recent mixtures (DeepSeek-V3, Qwen3, Kimi K2).
_USUAL_CHOSEN: Final = 8
#: More experts than the largest published mixtures have are not made up.
_MOST_EXPERTS: Final = 512


@dataclass(frozen=True, slots=True)
class TrainingModel:
    """One model. Parameters are counts over all layers; widths are elements, sums or means as said.

    ``mixed_parameters`` are those that every token multiplies with in the layers (attention, dense MLP, shared
    experts, routers), ``routed_parameters`` all routed experts, of which a token meets ``active_experts`` of
    ``experts`` in each of ``moe_layers``. ``head_parameters`` is vocabulary x hidden, multiplied even where it is
    tied to the embedding. ``score_width`` sums heads x (query/key + value width) over layers that attend to
    everything, ``window_score_width`` the same over those that see ``sliding_window`` tokens. ``key_value_width``
    is elements of keys and values a token in one attention layer. ``mlp_width`` is the mean width of the MLP that
    a token passes in a layer (shared and active experts included), ``attention_width`` that of its queries.
    """

    name: str
    layers: int
    hidden_size: int
    attention_heads: int
    key_value_heads: int
    vocabulary: int
    tied_embeddings: bool
    parameters: float
    active_parameters: float
    mixed_parameters: float
    routed_parameters: float
    head_parameters: float
    score_width: float
    window_score_width: float = 0.0
    sliding_window: int = 0
    key_value_width: float = 0.0
    attention_layers: int = 0
    attention_width: float = 0.0
    mlp_width: float = 0.0
    mlp_matrices: int = 3
    experts: int = 0
    active_experts: int = 0
    moe_layers: int = 0
    expert_width: float = 0.0
    expert_hidden_size: float = 0.0
    linear_layers: int = 0
    linear_width: float = 0.0

    @property
    def signature(self) -> str:
        """What tells one shape from another, whatever its name: calibrated effects of known models hang on it."""
        shape = (self.layers, self.hidden_size, self.attention_heads, self.key_value_heads, self.experts)
        return "-".join(str(one) for one in (*shape, round(self.mlp_width)))

    @property
    def is_dense(self) -> bool:
        """No routed experts."""
        return self.experts == 0

    @property
    def has_narrow_values(self) -> bool:
        """Values are narrower than queries in every layer that attends, as with latent attention."""
        scores = self.score_width + self.window_score_width
        return 0.0 < scores < 1.99 * self.attention_width * self.attention_layers

    @property
    def active_routed_parameters(self) -> float:
        """Routed parameters that one token meets."""
        return self.routed_parameters * self.active_experts / self.experts if self.experts else 0.0

    @classmethod
    def from_architecture(cls, architecture: Architecture, name: str = "") -> "TrainingModel":
        """The same model as the serving side knows it."""
        a, counts = architecture, parameter_counts(architecture)
        key = a.nope_dim + a.rope_dim if a.has_latent_attention else a.head_dim
        score = float(a.attention_heads * (key + a.v_head_dim))
        full = float(a.attention_heads * 2 * a.global_head_dim) if a.global_head_dim else score
        key_values = float(a.kv_heads * (a.head_dim + (0 if a.shared_kv else a.v_head_dim)))
        if a.has_latent_attention:
            key_values = score
        moe_width = a.active_experts * a.moe_ffn_size + a.shared_ffn_size
        mlp = a.dense_layers * a.ffn_size + a.moe_layers * moe_width
        mixed = counts.attention + counts.dense_mlp + counts.router + counts.shared_experts + counts.norms
        return cls(
            name=name,
            layers=a.layers,
            hidden_size=a.hidden_size,
            attention_heads=a.attention_heads,
            key_value_heads=a.attention_heads if a.has_latent_attention else a.kv_heads,
            vocabulary=a.vocabulary,
            tied_embeddings=a.tied_embeddings,
            parameters=float(counts.total),
            active_parameters=float(counts.active),
            mixed_parameters=float(mixed),
            routed_parameters=float(counts.routed_experts),
            head_parameters=float(a.vocabulary * a.hidden_size),
            score_width=a.full_layers * full,
            window_score_width=a.sliding_layers * score,
            sliding_window=a.sliding_window,
            key_value_width=key_values,
            attention_layers=a.attention_layers,
            attention_width=float(a.attention_heads * key),
            mlp_width=mlp / a.layers,
            mlp_matrices=a.mlp_matrices,
            experts=a.experts,
            active_experts=a.active_experts,
            moe_layers=a.moe_layers,
            expert_width=float(a.moe_ffn_size),
            expert_hidden_size=float(a.moe_latent_size or a.hidden_size),
            linear_layers=a.linear_layers,
            # Input, gate and output projection are three matrices of hidden x width in both kinds of such layers.
            linear_width=a.linear_parameters_per_layer / (3.0 * a.hidden_size),
        )

    @classmethod
    def from_shape(
        cls,
        *,
        layers: int,
        hidden_size: int,
        attention_heads: int,
        ffn_size: int,
        vocabulary: int,
        kv_heads: int = 0,
        head_dim: int = 0,
        mlp_matrices: int = 3,
        tied_embeddings: bool = False,
        name: str = "",
    ) -> "TrainingModel":
        """A plain dense transformer; ``kv_heads`` 0: as many as heads, ``head_dim`` 0: hidden / heads."""
        width = head_dim or hidden_size // attention_heads
        shape = Architecture(
            layers=layers,
            hidden_size=hidden_size,
            attention_heads=attention_heads,
            kv_heads=kv_heads or attention_heads,
            head_dim=width,
            v_head_dim=width,
            ffn_size=ffn_size,
            vocabulary=vocabulary,
            mlp_matrices=mlp_matrices,
            tied_embeddings=tied_embeddings,
            dense_layers=layers,
            full_layers=layers,
        )
        return cls.from_architecture(shape, name)

    @classmethod
    def from_parameters(cls, parameters: float, active_parameters: float | None = None) -> "TrainingModel":
        """A usual shape of the given size, for a model of which no more is known.

        Dense: layers = (N / (12 x 128^2))^(1/3), hidden = 128 layers. Mixture: the dense model of the active size,
        whose MLP is split into experts until all parameters are there. ValueError unless 0 < active <= all.
        """
        active = parameters if active_parameters is None else active_parameters
        if not 0 < active <= parameters:
            raise ValueError("parameters must be above 0, and active ones not above all")
        # Vocabulary taken off first: it is a large part of small models.
        layers, hidden = 2, 256
        for _ in range(8):
            body = max(active - 2.0 * _USUAL_VOCABULARY * hidden, active / 3.0)
            layers = max(2, round((body / (12.0 * _HIDDEN_PER_LAYER**2)) ** (1.0 / 3.0)))
            hidden = max(128, round(layers * _HIDDEN_PER_LAYER / _HEAD_DIM) * _HEAD_DIM)
        heads = hidden // _HEAD_DIM
        groups = 8 if heads % 8 == 0 else heads
        name = f"{parameters / 1e9:.4g}B"
        if active >= 0.95 * parameters:
            rest = max(active / layers - (2.0 * hidden + 2.0 * groups * _HEAD_DIM) * hidden, 4.0 * hidden * hidden)
            rest -= 2.0 * _USUAL_VOCABULARY * hidden / layers
            ffn = max(round(rest / (3.0 * hidden) / 256.0), 4) * 256
            return cls.from_shape(
                layers=layers,
                hidden_size=hidden,
                attention_heads=heads,
                kv_heads=groups,
                ffn_size=ffn,
                vocabulary=_USUAL_VOCABULARY,
                name=name,
            )
        fixed = layers * (2.0 * hidden + 2.0 * groups * _HEAD_DIM) * hidden + 2.0 * _USUAL_VOCABULARY * hidden
        met = max(active - fixed, 0.1 * active)
        ratio = max((parameters - fixed) / met, 1.0)
        chosen = min(max(round(_MOST_EXPERTS / ratio), 1), _USUAL_CHOSEN)
        experts = max(round(ratio * chosen), chosen)
        width = max(round(met / layers / chosen / (3.0 * hidden) / 64.0), 1) * 64
        shape = Architecture(
            layers=layers,
            hidden_size=hidden,
            attention_heads=heads,
            kv_heads=groups,
            head_dim=_HEAD_DIM,
            v_head_dim=_HEAD_DIM,
            ffn_size=0,
            vocabulary=_USUAL_VOCABULARY,
            experts=experts,
            active_experts=chosen,
            moe_layers=layers,
            moe_ffn_size=width,
            full_layers=layers,
        )
        return cls.from_architecture(shape, f"{name}-A{active / 1e9:.4g}B")
