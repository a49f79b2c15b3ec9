"""Section 7 of docs/method.md in plain Python: what a scheme keeps of the accuracy, and what it costs once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from optimizer.catalog import Catalog
from optimizer.catalog.precision import KvScheme, QuantizationScheme, Recovery, RecoveryKind, RecoveryStep
from optimizer.performance.architecture import ParameterCounts
from tests.oracle.statistics import t_probability, t_quantile

MODELS_FOR_QUANTILES = 5
#: Scheme of weights and activations, KV scheme, recovery step.
Combination = tuple[str, str, str]


@dataclass(frozen=True)
class Loss:
    """Distribution of the loss of a new model: mean, spread and models; thin rows have a fixed quantile instead."""

    mean: float
    spread: float
    models: int
    thin_low: float | None
    is_thin: bool

    def recovery(self, confidence: float, kept: float = 1.0) -> float | None:
        """Quantile of recovery (rules 5 and 8); ``kept`` is the share of loss that a recovery step leaves."""
        if confidence <= 0.5:
            return min(1.0, 1.0 - self.mean * kept)
        if self.is_thin:
            return None if self.thin_low is None else min(1.0, 1.0 - (1.0 - self.thin_low) * kept)
        if self.spread == 0.0:
            return 1.0 - self.mean * kept
        widened = self.spread * math.sqrt(1.0 + 1.0 / self.models)
        return min(1.0, 1.0 - kept * (self.mean + widened * t_quantile(confidence, self.models - 1)))

    def probability(self, floor: float) -> float:
        """Probability that the floor is met without a recovery step."""
        room = (1.0 - floor) - self.mean
        if self.is_thin:
            return 0.0
        if self.spread == 0.0:
            return 1.0 if room >= 0 else 0.0
        return t_probability(room / (self.spread * math.sqrt(1.0 + 1.0 / self.models)), self.models - 1)


def published_row(scheme: QuantizationScheme | KvScheme) -> Recovery | None:
    """Rule 2: calibration where at least five models stand behind it, else none where they do, else the larger."""
    calibrated, plain = scheme.recovery("ptq-calibration"), scheme.recovery("none")
    for row in (calibrated, plain):
        if row is not None and row.models >= MODELS_FOR_QUANTILES:
            return row
    rows = [row for row in (calibrated, plain) if row is not None]
    return max(rows, key=lambda row: row.models) if rows else None


def row_loss(row: Recovery, parameters: float) -> Loss | None:
    """Rules 3 to 5 for one published row."""
    mean = row.mean_loss_fraction if row.planned_loss_fraction is None else row.planned_loss_fraction
    if mean is None:
        return None
    if row.has_size_effect and row.loss_slope_per_decade_fraction is not None:
        low, high = row.smallest_parameters, row.largest_parameters
        size = min(max(parameters, low or parameters), high or parameters)
        mean += row.loss_slope_per_decade_fraction * (math.log10(size) - math.log10(70e9))
    mean = max(mean, 0.0)
    low90 = row.recovery_lo90_fraction if row.planned_lo90_fraction is None else row.planned_lo90_fraction
    lows = [one for one in (row.row_p10_recovery_fraction, low90) if one is not None]
    thin = row.models < MODELS_FOR_QUANTILES or row.sd_suite_fraction is None
    return Loss(mean, row.sd_suite_fraction or 0.0, row.models, min(lows) if lows else None, thin)


NO_LOSS = Loss(0.0, 0.0, 10**6, 1.0, False)


@dataclass(frozen=True)
class Prepared:
    """A scheme with its KV scheme and recovery step: recovery at the confidence, and what it costs once (USD)."""

    recovery: float
    capital_usd: float


def _joined(weights: Loss, cache: Loss) -> Loss:
    """Rules 6 and 10: means add, spreads in quadrature, the smaller count of models; thin losses add."""
    if cache is NO_LOSS:
        return weights
    if weights is NO_LOSS:
        return cache
    lows = [one.thin_low if one.is_thin else one.recovery(0.9) for one in (weights, cache)]
    known = [low for low in lows if low is not None]
    return Loss(
        weights.mean + cache.mean,
        math.hypot(weights.spread, cache.spread),
        min(weights.models, cache.models),
        sum(known) - 1.0 if len(known) == len(lows) else None,
        weights.is_thin or cache.is_thin,
    )


@dataclass(frozen=True)
class AccuracyQuestion:
    """What accuracy and its price depend on."""

    catalog: Catalog
    counts: ParameterCounts
    is_mixture: bool
    native_scheme: str
    confidence: float
    floor: float
    hour_usd: dict[str, float]

    def loss_of(self, scheme: str) -> Loss | None:
        """Loss of weights and activations; the native format loses nothing (rule 1)."""
        if scheme in ("w16a16", self.native_scheme):
            return NO_LOSS
        row = published_row(self.catalog.schemes[scheme])
        return None if row is None else row_loss(row, self.counts.total)

    def loss_of_cache(self, kv_scheme: str) -> Loss | None:
        """Loss of the cache format (rule 1: 16 bits lose nothing)."""
        if kv_scheme == "kv16":
            return NO_LOSS
        row = published_row(self.catalog.kv_schemes[kv_scheme])
        return None if row is None else row_loss(row, self.counts.total)

    def known(self, scheme: str, kv_scheme: str) -> Loss | None:
        """Loss of weights and cache together (rule 6)."""
        weights, cache = self.loss_of(scheme), self.loss_of_cache(kv_scheme)
        return None if weights is None or cache is None else _joined(weights, cache)

    def kept_loss(self, step: str) -> float:
        """Share of the loss that is left after a recovery step (rule 8)."""
        if step == "none":
            return 1.0
        row = self.catalog.recovery_steps[_step_name(step)]
        closure = row.closure_mean_fraction if self.confidence <= 0.5 else row.closure_conservative_fraction
        return 1.0 - (closure or 0.0)

    def prepared(self, offered: Sequence[Combination]) -> dict[Combination, Prepared]:
        """Recovery and price of every combination that the instance offers and that something is published for."""
        result = {}
        for one in offered:
            value = self._recovery(*one)
            if value is None:
                continue
            if self.known(*one[:2]) is not NO_LOSS:
                for wider in self.catalog.schemes:
                    bound = self._recovery(wider, *one[1:]) if self._is_wider(wider, one) else None
                    value = value if bound is None else min(value, bound)
            result[one] = Prepared(value, self._once(*one))
        return result

    def _recovery(self, scheme: str, kv_scheme: str, step: str) -> float | None:
        """Recovery at the confidence before rule 7; None where too little is published or a step has nothing to do."""
        loss = self.known(scheme, kv_scheme)
        if loss is None or (loss is NO_LOSS and step != "none"):
            return None
        return loss.recovery(self.confidence, self.kept_loss(step))

    def _is_wider(self, wide: str, narrow: Combination) -> bool:
        """Rule 7: at least as many bits of weights and activations, more of one, the same family of numbers.

        And enough models behind it.
        """
        loss = self.known(wide, narrow[1])
        if loss is None or loss.models < MODELS_FOR_QUANTILES:
            return False
        more, less = (self.catalog.schemes[scheme] for scheme in (wide, narrow[0]))
        families = {"int" if "int" in scheme else "float" for scheme in (wide, narrow[0]) if scheme != "w16a16"}
        every = more.weight_bits >= less.weight_bits and more.activation_bits >= less.activation_bits
        some = more.weight_bits > less.weight_bits or more.activation_bits > less.activation_bits
        return len(families) <= 1 and every and some

    def _once(self, scheme: str, kv_scheme: str, step: str) -> float:
        """Capital of preparing a combination (rules 8 and 9), USD."""
        loss = self.known(scheme, kv_scheme)
        assert loss is not None
        if loss is NO_LOSS:
            return 0.0
        base = self.catalog.recovery_steps["ptq-calibration"]
        calibration = (
            base.calibration_moe_gpu_hours_per_billion if self.is_mixture else base.calibration_gpu_hours_per_billion
        )
        hours = calibration * self.counts.total / 1e9 + self._verification_hours(base)
        if step != "none":
            row = self.catalog.recovery_steps[_step_name(step)]
            failure = 1.0 - loss.probability(self.floor)
            hours += failure * (self._training_hours(row) + self._verification_hours(row))
        return hours * self.hour_usd[base.reference_accelerator]

    def _verification_hours(self, row: RecoveryStep) -> float:
        expected = self.confidence <= 0.5
        each = row.verification_gpu_hours_per_billion
        return (each if expected else row.verification_conservative_gpu_hours_per_billion) * self.counts.active / 1e9

    def _training_hours(self, row: RecoveryStep) -> float:
        expected = self.confidence <= 0.5
        mfu = {
            (False, True): row.mfu_dense_expected_fraction,
            (False, False): row.mfu_dense_conservative_fraction,
            (True, True): row.mfu_moe_expected_fraction,
            (True, False): row.mfu_moe_conservative_fraction,
        }[self.is_mixture, expected]
        tokens = row.tokens_expected if expected else row.tokens_conservative
        rate = self.catalog.accelerators[row.reference_accelerator].fp16_tflops * 1e12
        return row.flop_per_parameter_token * self.counts.active * tokens / (rate * mfu * 3600.0)


def _step_name(step: str) -> RecoveryKind:
    """Row of the catalogue that describes a step of an instance."""
    return "qad" if step == "qad" else "lora"
