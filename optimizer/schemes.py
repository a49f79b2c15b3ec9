"""Schemes of an instance: number formats, cache format and recovery step together, with accuracy and one-off cost.

The rules are docs/method.md section 7. Everything here is scalar: there are a few dozen schemes, not a million.
"""

from dataclasses import dataclass, replace

from optimizer.catalog import Catalog
from optimizer.catalog.rows import (
    MODELS_FOR_QUANTILES,
    KvScheme,
    QuantizationScheme,
    Recovery,
    RecoveryStep,
    Trust,
)
from optimizer.models import UNQUANTIZED, ServedModel
from optimizer.performance.accuracy import (
    Loss,
    combine_losses,
    loss_at_size,
    probability_meets,
    recovered_loss,
    recovery_quantile,
)
from optimizer.setting import Setting
from optimizer.units import FLOP_PER_TFLOP, SECONDS_PER_HOUR

POINTS = 100.0
UNQUANTIZED_KV = "kv16"
#: Recovery step of an instance -> row of the catalogue that describes it.
STEP_ROWS = {"qad": "qad", "qat-lora": "lora"}
#: Above this the conservative figures count, at or below it the expected ones.
EXPECTED_CONFIDENCE = 0.5
_BILLION = 1e9


@dataclass(frozen=True, slots=True)
class Preparation:
    """What it costs once to serve in a scheme, USD, and where that comes from."""

    usd: float
    source: str
    as_of: str
    trust: Trust


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Recovery of a scheme as fractions of the unquantized model.

    ``quantile`` at the asked confidence (None: too little is published), ``mean`` expected, ``probability`` of
    meeting the floor (None: unknown), ``models`` behind it.
    """

    quantile: float | None
    mean: float
    probability: float | None
    models: int


@dataclass(frozen=True, slots=True)
class SchemeOption:
    """One combination that may be served."""

    id: str
    scheme: QuantizationScheme
    kv_scheme: KvScheme
    recovery: str
    accuracy: Accuracy
    preparation: Preparation


@dataclass(frozen=True, slots=True)
class _Known:
    """Loss of a format for the model at hand: a distribution, or only single figures of a thin row."""

    loss: Loss
    thin_quantile: float | None
    certain: bool


def scheme_options(setting: Setting, model: ServedModel) -> tuple[SchemeOption, ...]:
    """Every combination that the instance allows, in a fixed order, whether or not it keeps the accuracy floor."""
    choices, targets = setting.instance.choices, setting.instance.targets
    catalog = setting.catalog
    keys = sorted(catalog.schemes) if choices.schemes is None else sorted(set(choices.schemes))
    confidence, floor = targets.accuracy_confidence, targets.accuracy_floor()
    options = []
    offered = set(keys)
    hour = reference_hour(catalog)
    for kv_key in sorted(set(choices.kv_schemes)):
        kv_scheme = catalog.kv_schemes[kv_key]
        kv_known = _known(kv_scheme.recoveries, model, certain=kv_key == UNQUANTIZED_KV)
        # Every scheme of the catalogue: those that are not offered still bound what narrower ones are credited.
        for key in sorted(catalog.schemes):
            scheme = catalog.schemes[key]
            native = key in (UNQUANTIZED, model.native_scheme)
            known = _joined(_known(scheme.recoveries, model, certain=native), kv_known)
            plain = _accuracy(known, confidence, floor)
            for step_name in sorted(set(choices.recovery_steps)):
                if step_name != "none" and known.certain:
                    continue  # nothing is lost, so there is nothing to win back
                step = None if step_name == "none" else catalog.recovery_steps[STEP_ROWS[step_name]]
                accuracy = plain if step is None else _accuracy(_after(known, step, confidence), confidence, floor)
                options.append(
                    SchemeOption(
                        id=f"{key}+{kv_key}+{step_name}",
                        scheme=scheme,
                        kv_scheme=kv_scheme,
                        recovery=step_name,
                        accuracy=accuracy,
                        preparation=_preparation(setting, model, known, plain, step, hour),
                    )
                )
    return tuple(option for option in _monotone(options) if option.scheme.id in offered)


def published_row(recoveries: tuple[Recovery, ...]) -> Recovery | None:
    """The row of a format that counts: calibrated where enough models stand behind it, else the better founded one."""
    rows = {row.recovery: row for row in recoveries if row.recovery in ("ptq-calibration", "none")}
    for kind in ("ptq-calibration", "none"):
        if kind in rows and not rows[kind].is_thin:
            return rows[kind]
    return max(rows.values(), key=lambda row: (row.models, row.rows, row.recovery), default=None)


def _known(recoveries: tuple[Recovery, ...], model: ServedModel, *, certain: bool) -> _Known:
    if certain:
        return _Known(Loss(0.0, 0.0, 0), None, certain=True)
    row = published_row(recoveries)
    if row is None:
        return _Known(Loss(POINTS, 0.0, 0), None, certain=False)
    mean = row.planned_loss_fraction if row.planned_loss_fraction is not None else row.mean_loss_fraction
    if mean is None:
        mean = 1.0 - row.row_mean_recovery_fraction if row.row_mean_recovery_fraction is not None else 1.0
    points = max(0.0, mean * POINTS)
    if row.has_size_effect and row.loss_slope_per_decade_fraction is not None:
        points = loss_at_size(
            points,
            model.total_parameters / _BILLION,
            slope_points_per_decade=row.loss_slope_per_decade_fraction * POINTS,
            largest_b=(row.largest_parameters or float("inf")) / _BILLION,
            smallest_b=(row.smallest_parameters or 0.0) / _BILLION,
        )
    if row.is_thin or row.sd_suite_fraction is None:
        planned = row.planned_lo90_fraction if row.planned_lo90_fraction is not None else row.recovery_lo90_fraction
        lows = [value for value in (row.row_p10_recovery_fraction, planned) if value is not None]
        return _Known(Loss(points, 0.0, row.models), min(1.0, *lows) if lows else None, certain=False)
    return _Known(Loss(points, row.sd_suite_fraction * POINTS, row.models), None, certain=False)


def _joined(weights: _Known, kv: _Known) -> _Known:
    """Weights and cache together; the thinner knowledge decides what can be said."""
    if kv.certain:
        return weights
    if weights.certain:
        return kv
    enough = min(weights.loss.models, kv.loss.models) >= MODELS_FOR_QUANTILES
    if enough and weights.thin_quantile is None and kv.thin_quantile is None:
        return _Known(combine_losses(weights.loss, kv.loss), None, certain=False)
    mean = Loss(weights.loss.mean_points + kv.loss.mean_points, 0.0, min(weights.loss.models, kv.loss.models))
    lows = [_low(weights), _low(kv)]
    thin = None if any(low is None for low in lows) else 1.0 - sum(1.0 - low for low in lows if low is not None)
    return _Known(mean, thin, certain=False)


def _low(known: _Known) -> float | None:
    """Conservative recovery (10 % quantile) of one part, where it is known."""
    if known.thin_quantile is not None:
        return known.thin_quantile
    if known.loss.models >= MODELS_FOR_QUANTILES and known.loss.sd_points > 0.0:
        return recovery_quantile(known.loss.mean_points, known.loss.sd_points, known.loss.models, 0.9) / POINTS
    return None


def _accuracy(known: _Known, confidence: float, floor: float) -> Accuracy:
    if known.certain:
        return Accuracy(1.0, 1.0, 1.0, 0)
    loss = known.loss
    mean = max(0.0, 1.0 - loss.mean_points / POINTS)
    if loss.models >= MODELS_FOR_QUANTILES and loss.sd_points > 0.0:
        quantile = recovery_quantile(loss.mean_points, loss.sd_points, loss.models, confidence) / POINTS
        probability = probability_meets(floor * POINTS, loss.mean_points, loss.sd_points, loss.models)
        return Accuracy(min(1.0, quantile), mean, probability, loss.models)
    if loss.models == 0 and known.thin_quantile is None and loss.mean_points >= POINTS:
        return Accuracy(None, 0.0, None, 0)
    if confidence <= EXPECTED_CONFIDENCE:
        return Accuracy(mean, mean, None, loss.models)
    return Accuracy(known.thin_quantile, mean, None, loss.models)


def _after(known: _Known, step: RecoveryStep, confidence: float) -> _Known:
    """Loss after a recovery step: the mean closure at the expected confidence, the conservative one above."""
    closure = step.closure_mean_fraction if confidence <= EXPECTED_CONFIDENCE else step.closure_conservative_fraction
    share = 0.0 if closure is None else closure
    thin = None if known.thin_quantile is None else 1.0 - (1.0 - share) * (1.0 - known.thin_quantile)
    return replace(known, loss=recovered_loss(known.loss, share), thin_quantile=thin)


def _monotone(options: list[SchemeOption]) -> tuple[SchemeOption, ...]:
    """Fewer bits are never credited above more bits of the same family, where enough models say what the latter keep.

    Published suites differ, so a narrower format may look better by chance. Probabilities follow the quantile: where
    it is lowered below the floor, the probability is at most what the wider format has.
    """
    result = []
    for option in options:
        own = option.accuracy
        if own.quantile is not None and own.models > 0:
            for other in (one.accuracy for one in options if _is_wider(one, option)):
                if other.quantile is not None and other.models >= MODELS_FOR_QUANTILES:
                    chances = [chance for chance in (own.probability, other.probability) if chance is not None]
                    own = replace(
                        own,
                        quantile=min(own.quantile or 0.0, other.quantile),
                        mean=min(own.mean, other.mean),
                        probability=min(chances) if chances else None,
                    )
        result.append(replace(option, accuracy=own))
    return tuple(result)


def _is_wider(wide: SchemeOption, narrow: SchemeOption) -> bool:
    """At least as many bits of both kinds and more of one, same family of numbers, same cache and recovery step."""
    more = (wide.scheme.weight_bits, wide.scheme.activation_bits)
    less = (narrow.scheme.weight_bits, narrow.scheme.activation_bits)
    families = {_family(wide.scheme.id), _family(narrow.scheme.id)} - {"any"}
    return (
        wide.recovery == narrow.recovery
        and wide.kv_scheme.id == narrow.kv_scheme.id
        and len(families) <= 1
        and all(a >= b for a, b in zip(more, less, strict=True))
        and more != less
    )


def _family(scheme: str) -> str:
    """Integer or floating-point formats; 16 bits belong to both."""
    return "any" if scheme == UNQUANTIZED else "int" if "int" in scheme else "fp"


def _preparation(
    setting: Setting,
    model: ServedModel,
    known: _Known,
    plain: Accuracy,
    step: RecoveryStep | None,
    hour: tuple[float, str, str],
) -> Preparation:
    """One-off cost: calibration and verification; with a step, ``verification + (1 - P)(recovery + verification)``."""
    if known.certain:
        return Preparation(0.0, "nothing to prepare", "", "measured")
    confidence = setting.instance.targets.accuracy_confidence
    price, source, as_of = hour
    base = setting.catalog.recovery_steps["ptq-calibration"]
    hours = calibration_gpu_hours(base, model) + verification_gpu_hours(base, model, confidence)
    if step is not None:
        failure = 1.0 - (plain.probability if plain.probability is not None else 0.0)
        hours += failure * (
            training_gpu_hours(setting.catalog, step, model, confidence)
            + verification_gpu_hours(step, model, confidence)
        )
    return Preparation(hours * price, f"published GPU-hours ({base.source}) at {source}", as_of, "assumed")


def reference_hour(catalog: Catalog) -> tuple[float, str, str]:
    """(USD, source, date) of an hour of the accelerator that published GPU-hours refer to: its cheapest list price."""
    base = catalog.recovery_steps["ptq-calibration"]
    offers = [
        (offer.price_usd_per_accelerator_hour("on_demand"), offer)
        for (accelerator, _, term), offer in catalog.cheapest_offers().items()
        if accelerator == base.reference_accelerator and term == "on_demand"
    ]
    priced = [(usd, offer.id, offer) for usd, offer in offers if usd is not None]
    usd, _, offer = min(priced, key=lambda item: item[:2])
    return usd, f"{offer.provider} {offer.instance}", offer.as_of


def calibration_gpu_hours(step: RecoveryStep, model: ServedModel) -> float:
    """Calibration: GPU-hours per 1e9 parameters, more for mixtures of experts."""
    rate = step.calibration_gpu_hours_per_billion if model.is_dense else step.calibration_moe_gpu_hours_per_billion
    return rate * model.total_parameters / _BILLION


def verification_gpu_hours(step: RecoveryStep, model: ServedModel, confidence: float) -> float:
    """Running the benchmark suite: GPU-hours per 1e9 active parameters."""
    expected = confidence <= EXPECTED_CONFIDENCE
    rate = step.verification_gpu_hours_per_billion if expected else step.verification_conservative_gpu_hours_per_billion
    return rate * model.active_parameters / _BILLION


def training_gpu_hours(catalog: Catalog, step: RecoveryStep, model: ServedModel, confidence: float) -> float:
    """Fine-tuning: FLOP per active parameter and token over the rate that the reference accelerator reaches."""
    expected = confidence <= EXPECTED_CONFIDENCE
    tokens = step.tokens_expected if expected else step.tokens_conservative
    if model.is_dense:
        mfu = step.mfu_dense_expected_fraction if expected else step.mfu_dense_conservative_fraction
    else:
        mfu = step.mfu_moe_expected_fraction if expected else step.mfu_moe_conservative_fraction
    peak = catalog.accelerators[step.reference_accelerator].fp16_tflops * FLOP_PER_TFLOP
    return step.flop_per_parameter_token * model.active_parameters * tokens / (peak * mfu * SECONDS_PER_HOUR)
