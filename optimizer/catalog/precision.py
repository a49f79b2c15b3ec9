"""Number formats of weights, activations and cache: size, hardware support, accuracy, and the cost of recovery."""

from typing import Final, Literal

from optimizer.catalog.base import Generation, Row, fraction, quantity, text
from optimizer.catalog.hardware import Compute

Support = Literal["native", "weight_only", "none"]
RecoveryKind = Literal["none", "ptq-calibration", "qat", "qad", "lora"]

#: Fewer models than this behind a fit and no quantile may be formed: the published row is "thin".
MODELS_FOR_QUANTILES: Final = 5


class Recovery(Row):
    """Published accuracy of one scheme after one way of preparing it, over many models.

    Loss is 1 - (quantized score / baseline score) of a suite of at least four benchmarks. A new model's suite loss is
    ``mean_loss_fraction`` (+ slope * (log10 P - log10 70e9) where ``has_size_effect``), spread ``sd_suite_fraction``.
    """

    scheme: str = text("scheme or KV scheme id")
    recovery: RecoveryKind = text("preparation: none, ptq-calibration, qat, qad or lora")
    mean_loss_fraction: float | None = fraction("mean suite loss; negative: better than the baseline", None, low=-1.0)
    sd_suite_fraction: float | None = fraction("spread of a new model's suite: between models and within suites", None)
    models: int = quantity("models in the fit", "models", 0, ge=0)
    suites: int = quantity("suites", "suites", 0, ge=0)
    rows: int = quantity("single benchmark results", "results", 0, ge=0)
    recovery_lo90_fraction: float | None = fraction("published 10 % quantile for a new model's suite", None, high=1.5)
    row_mean_recovery_fraction: float | None = fraction("mean over single benchmarks", None, high=1.5)
    row_p10_recovery_fraction: float | None = fraction("10 % quantile of single benchmarks", None, high=1.5)
    share_meeting_987_fraction: float | None = fraction("share of suites that kept 98.7 % of the baseline", None)
    share_meeting_987_wilson90_fraction: float | None = fraction("its one-sided 90 % lower limit (Wilson)", None)
    probability_meeting_987_fraction: float | None = fraction("same share by the fitted distribution", None)
    loss_slope_per_decade_fraction: float | None = fraction("loss per tenfold parameters", None, low=-1.0)
    loss_slope_se_fraction: float | None = fraction("standard error of the slope", None)
    loss_at_8b_fraction: float | None = fraction("fitted loss at 8e9 parameters", None, low=-1.0)
    loss_at_70b_fraction: float | None = fraction("fitted loss at 70e9 parameters", None, low=-1.0)
    loss_at_400b_fraction: float | None = fraction("fitted loss at 400e9 parameters", None, low=-1.0)
    has_size_effect: bool = text("the data shows that loss falls with size: the slope may be used", False)
    smallest_parameters: float | None = quantity("smallest measured model", "parameters", None, gt=0)
    largest_parameters: float | None = quantity(
        "largest measured model: no size effect beyond it", "parameters", None, gt=0
    )
    planned_loss_fraction: float | None = fraction(
        "loss to plan with where the published mean must not be credited", None
    )
    planned_lo90_fraction: float | None = fraction("quantile to plan with where the published one must not be", None)

    @property
    def is_thin(self) -> bool:
        """Too few models for a quantile; a spread of nought (the baseline itself) needs none."""
        if self.sd_suite_fraction is None:
            return True
        return self.sd_suite_fraction > 0.0 and self.models < MODELS_FOR_QUANTILES


class QuantizationScheme(Row):
    """Format of weights and activations that an inference engine serves."""

    id: str = text("scheme id")
    weight_bits: float = quantity("nominal bits of a weight", "bits", gt=0)
    activation_bits: float = quantity("bits of an activation in matrix products", "bits", gt=0)
    weight_bits_effective: float = quantity("bits of a weight with its scales", "bits", gt=0)
    bytes_per_weight: float = quantity("bytes of a weight with its scales", "bytes", gt=0)
    compute: Compute = text("precision of the matrix units")
    block_width: int = quantity("shards of a matrix must be multiples of this block; 1: none", "elements", 1, ge=1)
    support_volta: Support = text("Volta", "none")
    support_ampere: Support = text("Ampere", "none")
    support_ada: Support = text("Ada", "none")
    support_hopper: Support = text("Hopper", "none")
    support_blackwell: Support = text("Blackwell", "none")
    support_cdna3: Support = text("CDNA 3 (MI300X, MI325X)", "none")
    support_cdna4: Support = text("CDNA 4 (MI355X)", "none")
    support_gaudi3: Support = text("Gaudi 3", "none")
    recoveries: tuple[Recovery, ...] = text("published accuracy by preparation", ())

    def support(self, generation: Generation) -> Support:
        """Whether ``generation`` computes in the format, only stores weights in it, or neither."""
        support: Support = getattr(self, f"support_{generation}")
        return support

    def recovery(self, kind: RecoveryKind) -> Recovery | None:
        """Accuracy after ``kind``, None where nothing is published."""
        return next((row for row in self.recoveries if row.recovery == kind), None)


class KvScheme(Row):
    """Format of the KV cache; weights are untouched."""

    id: str = text("KV scheme id")
    kv_bits: float = quantity("nominal bits of a cached element", "bits", gt=0)
    kv_bits_effective: float = quantity("bits of a cached element with its scales", "bits", gt=0)
    support_volta: Support = text("Volta", "none")
    support_ampere: Support = text("Ampere", "none")
    support_ada: Support = text("Ada", "none")
    support_hopper: Support = text("Hopper", "none")
    support_blackwell: Support = text("Blackwell", "none")
    support_cdna3: Support = text("CDNA 3 (MI300X, MI325X)", "none")
    support_cdna4: Support = text("CDNA 4 (MI355X)", "none")
    support_gaudi3: Support = text("Gaudi 3", "none")
    recoveries: tuple[Recovery, ...] = text("published accuracy", ())

    @property
    def bytes_per_element(self) -> float:
        """Bytes of a cached element with its scales."""
        return self.kv_bits_effective / 8.0

    def support(self, generation: Generation) -> Support:
        """Whether an engine keeps the cache in this format on ``generation``."""
        support: Support = getattr(self, f"support_{generation}")
        return support

    def recovery(self, kind: RecoveryKind) -> Recovery | None:
        """Accuracy after ``kind``, None where nothing is published."""
        return next((row for row in self.recoveries if row.recovery == kind), None)


class RecoveryStep(Row):
    """What it takes to win accuracy back: loss after the step is (1 - closure) times the loss before it."""

    id: RecoveryKind = text("step")
    closure_mean_fraction: float | None = fraction("share of the loss closed, mean", None, low=-5.0)
    closure_conservative_fraction: float | None = fraction("share closed to plan with", None, low=-5.0)
    failure_weight_fraction: float = fraction("weight of the outcome that nothing is closed", 0.0)
    pairs: int = quantity("paired runs behind the closure", "pairs", 0, ge=0)
    models: int = quantity("models behind the closure", "models", 0, ge=0)
    allowed_for_rl_trained: bool = text("false: it damages models trained by reinforcement", True)
    tokens_expected: float = quantity("training tokens", "tokens", 0.0, ge=0)
    tokens_conservative: float = quantity("training tokens to plan with", "tokens", 0.0, ge=0)
    flop_per_parameter_token: float = quantity("FLOP per active parameter and token, with overheads", "FLOP", 0.0, ge=0)
    mfu_dense_expected_fraction: float = fraction("share of peak FP16 rate reached, dense models", 0.10)
    mfu_dense_conservative_fraction: float = fraction("same, to plan with", 0.05)
    mfu_moe_expected_fraction: float = fraction("share of peak FP16 rate reached, mixtures of experts", 0.08)
    mfu_moe_conservative_fraction: float = fraction("same, to plan with", 0.04)
    bytes_per_parameter: float = quantity("training state per parameter, without the teacher", "bytes", 0.0, ge=0)
    calibration_gpu_hours_per_billion: float = quantity("calibration per 1e9 parameters, dense", "h", 0.0, ge=0)
    calibration_moe_gpu_hours_per_billion: float = quantity("calibration per 1e9 parameters, mixtures", "h", 0.0, ge=0)
    verification_gpu_hours_per_billion: float = quantity("full MMLU-Pro per 1e9 active parameters", "h", 0.0, ge=0)
    verification_conservative_gpu_hours_per_billion: float = quantity("same, unoptimised run", "h", 0.0, ge=0)
    reference_accelerator: str = text("accelerator that the hours refer to", "h100-80gb-sxm")
