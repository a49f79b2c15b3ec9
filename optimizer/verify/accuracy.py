"""What a scheme keeps of the accuracy and what it costs once, by the checker's own use of docs/method.md section 7."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from optimizer.catalog.rows import MODELS_FOR_QUANTILES, Recovery, RecoveryStep
from optimizer.performance.accuracy import (
    Loss,
    combine_losses,
    loss_at_size,
    probability_meets,
    recovered_loss,
    recovery_quantile,
)
from optimizer.plan import Deployment
from optimizer.units import FLOP_PER_TFLOP, SECONDS_PER_HOUR
from optimizer.verify.facts import Facts
from optimizer.verify.model import BASELINE_SCHEME, NO_STEP

_POINTS: Final = 100.0
_BILLION: Final = 1e9
_BASELINE_CACHE: Final = "kv16"
#: Up to this confidence the expected figures count, above it the conservative ones.
_EXPECTED: Final = 0.5
#: A conservative recovery is a 10 % quantile.
_CONSERVATIVE: Final = 0.9
_CALIBRATION: Final = "ptq-calibration"
_STEP_ROWS: Final = {"qad": "qad", "qat-lora": "lora"}


@dataclass(frozen=True, slots=True)
class Kept:
    """Recovery at the asked confidence (None: too little is known), expected, probability of the floor, models."""

    quantile: float | None
    mean: float
    probability: float | None
    models: int = 0


_UNKNOWN: Final = Kept(None, 0.0, None)


@dataclass(frozen=True, slots=True)
class _Known:
    """Loss of a format; ``low`` is the 10 % quantile of recovery of a row too thin for a distribution."""

    loss: Loss
    low: float | None = None
    certain: bool = False

    @property
    def has_spread(self) -> bool:
        return self.loss.models >= MODELS_FOR_QUANTILES and self.loss.sd_points > 0.0


_NO_LOSS: Final = _Known(Loss(0.0, 0.0, 0), certain=True)


def is_certain(facts: Facts, scheme: str, kv_scheme: str) -> bool:
    """Whether nothing can be lost: the format of the released weights, and a 16-bit cache."""
    return scheme in (BASELINE_SCHEME, facts.model.native_scheme) and kv_scheme == _BASELINE_CACHE


def kept(facts: Facts, scheme: str, kv_scheme: str, recovery: str) -> Kept:
    """Accuracy of a combination, no better than that of a wider scheme of its family in the catalogue (rule 7)."""
    own = _kept_alone(facts, scheme, kv_scheme, recovery)
    if own.quantile is None or is_certain(facts, scheme, kv_scheme):
        return own
    quantile, mean, chances = own.quantile, own.mean, [own.probability]
    for other in facts.catalog.schemes:
        bound = _kept_alone(facts, other, kv_scheme, recovery) if _is_wider(facts, other, scheme) else _UNKNOWN
        if bound.quantile is not None and bound.models >= MODELS_FOR_QUANTILES:
            quantile, mean = min(quantile, bound.quantile), min(mean, bound.mean)
            chances.append(bound.probability)
    known = [chance for chance in chances if chance is not None]
    return Kept(quantile, mean, min(known) if known else None, own.models)


def _is_wider(facts: Facts, wide: str, narrow: str) -> bool:
    more, less = facts.catalog.schemes[wide], facts.catalog.schemes[narrow]
    weights, activations = more.weight_bits - less.weight_bits, more.activation_bits - less.activation_bits
    families = {_family(wide), _family(narrow)} - {""}
    return len(families) < 2 and min(weights, activations) >= 0 and max(weights, activations) > 0


def _family(scheme: str) -> str:
    """Integer or floating point; 16 bits belong to both."""
    return "" if scheme == BASELINE_SCHEME else "integer" if "int" in scheme else "floating point"


def _kept_alone(facts: Facts, scheme: str, kv_scheme: str, recovery: str) -> Kept:
    known = _known(facts, scheme, kv_scheme)
    if known is None:
        return _UNKNOWN
    if known.certain:
        return Kept(1.0, 1.0, 1.0)
    targets = facts.instance.targets
    confidence, floor = targets.accuracy_confidence, targets.accuracy_floor()
    if recovery != NO_STEP:
        step = facts.catalog.recovery_steps[_STEP_ROWS[recovery]]
        expected = confidence <= _EXPECTED
        closure = (step.closure_mean_fraction if expected else step.closure_conservative_fraction) or 0.0
        low = None if known.low is None else 1.0 - (1.0 - min(closure, 1.0)) * (1.0 - known.low)
        known = replace(known, loss=recovered_loss(known.loss, closure), low=low)
    loss = known.loss
    mean = max(0.0, loss.recovery_mean_pct / _POINTS)
    if known.has_spread:
        quantile = recovery_quantile(loss.mean_points, loss.sd_points, loss.models, confidence) / _POINTS
        chance = probability_meets(floor * _POINTS, loss.mean_points, loss.sd_points, loss.models)
        return Kept(quantile, mean, chance, loss.models)
    return Kept(mean if confidence <= _EXPECTED else known.low, mean, None, loss.models)


def _known(facts: Facts, scheme: str, kv_scheme: str) -> _Known | None:
    """Weights and cache together (rule 6); None where nothing is published."""
    native = scheme in (BASELINE_SCHEME, facts.model.native_scheme)
    weights = _NO_LOSS if native else _published(facts, facts.catalog.schemes[scheme].recoveries)
    cache = _NO_LOSS
    if kv_scheme != _BASELINE_CACHE:
        found = _published(facts, facts.catalog.kv_schemes[kv_scheme].recoveries)
        if found is None:
            return None
        cache = found
    if weights is None or cache.certain or weights.certain:
        return cache if weights is _NO_LOSS else weights
    if weights.has_spread and cache.has_spread:
        return _Known(combine_losses(weights.loss, cache.loss))
    lows = [_low(weights), _low(cache)]
    low = None if None in lows else 1.0 - sum(1.0 - one for one in lows if one is not None)
    mean = weights.loss.mean_points + cache.loss.mean_points
    return _Known(Loss(mean, 0.0, min(weights.loss.models, cache.loss.models)), low)


def _low(known: _Known) -> float | None:
    if known.has_spread:
        loss = known.loss
        return recovery_quantile(loss.mean_points, loss.sd_points, loss.models, _CONSERVATIVE) / _POINTS
    return known.low


def _published(facts: Facts, recoveries: tuple[Recovery, ...]) -> _Known | None:
    """Rules 2 to 5 for one format."""
    rows = {row.recovery: row for row in recoveries}
    usable = [rows[kind] for kind in (_CALIBRATION, NO_STEP) if kind in rows]
    founded = [row for row in usable if not row.is_thin]
    row = founded[0] if founded else max(usable, key=lambda one: one.models, default=None)
    if row is None:
        return None
    mean = row.mean_loss_fraction if row.planned_loss_fraction is None else row.planned_loss_fraction
    if mean is None:
        mean = 1.0 - (0.0 if row.row_mean_recovery_fraction is None else row.row_mean_recovery_fraction)
    points = max(0.0, mean * _POINTS)
    if row.has_size_effect and row.loss_slope_per_decade_fraction is not None:
        points = loss_at_size(
            points,
            facts.counts.total / _BILLION,
            slope_points_per_decade=row.loss_slope_per_decade_fraction * _POINTS,
            largest_b=inf if row.largest_parameters is None else row.largest_parameters / _BILLION,
            smallest_b=0.0 if row.smallest_parameters is None else row.smallest_parameters / _BILLION,
        )
    if not row.is_thin:
        return _Known(Loss(points, (row.sd_suite_fraction or 0.0) * _POINTS, row.models))
    low90 = row.recovery_lo90_fraction if row.planned_lo90_fraction is None else row.planned_lo90_fraction
    lows = [one for one in (row.row_p10_recovery_fraction, low90) if one is not None]
    return _Known(Loss(points, 0.0, row.models), min(1.0, *lows) if lows else None)


def preparation_usd(facts: Facts, one: Deployment) -> float:
    """Paid once for a scheme: calibration and verification, and the step with the probability that it is needed."""
    if is_certain(facts, one.scheme, one.kv_scheme):
        return 0.0
    base = facts.catalog.recovery_steps[_CALIBRATION]
    dense = facts.model.architecture.experts == 0
    rate = base.calibration_gpu_hours_per_billion if dense else base.calibration_moe_gpu_hours_per_billion
    hours = rate * facts.counts.total / _BILLION + _verification_hours(facts, base)
    if one.recovery != NO_STEP:
        step = facts.catalog.recovery_steps[_STEP_ROWS[one.recovery]]
        met = _kept_alone(facts, one.scheme, one.kv_scheme, NO_STEP).probability or 0.0
        hours += (1.0 - met) * (_training_hours(facts, step) + _verification_hours(facts, step))
    return hours * min(_hour_prices(facts, base))


def _verification_hours(facts: Facts, step: RecoveryStep) -> float:
    expected = facts.instance.targets.accuracy_confidence <= _EXPECTED
    rate = step.verification_gpu_hours_per_billion
    if not expected:
        rate = step.verification_conservative_gpu_hours_per_billion
    return rate * facts.counts.active / _BILLION


def _training_hours(facts: Facts, step: RecoveryStep) -> float:
    expected = facts.instance.targets.accuracy_confidence <= _EXPECTED
    kind = "dense" if facts.model.architecture.experts == 0 else "moe"
    view = "expected" if expected else "conservative"
    mfu: float = getattr(step, f"mfu_{kind}_{view}_fraction")
    tokens = step.tokens_expected if expected else step.tokens_conservative
    flop = step.flop_per_parameter_token * facts.counts.active * tokens
    peak = facts.catalog.accelerators[step.reference_accelerator].fp16_tflops * FLOP_PER_TFLOP
    return flop / (peak * mfu * SECONDS_PER_HOUR)


def _hour_prices(facts: Facts, step: RecoveryStep) -> Iterator[float]:
    """List prices on demand of an hour of the accelerator that published hours refer to."""
    offers = [
        offer
        for offer in facts.catalog.rental_offers.values()
        if offer.accelerator == step.reference_accelerator and offer.price_class == "list" and offer.is_bookable
    ]
    own_sizes = {offer.accelerators for offer in offers if offer.trust == "user"}
    for offer in offers:
        price = offer.on_demand_usd_per_accelerator_hour
        if price is not None and (offer.trust == "user" or offer.accelerators not in own_sizes):
            yield price
