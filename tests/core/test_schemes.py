"""Accuracy and one-off cost of schemes: the rules of the method, with numbers worked out by hand."""

import math
from dataclasses import replace
from typing import Any

import pytest

from optimizer.catalog.rows import QuantizationScheme, Recovery
from optimizer.models import ServedModel, served_model
from optimizer.performance.student_t import student_t_cdf, student_t_quantile
from optimizer.schemes import (
    Accuracy,
    Preparation,
    SchemeOption,
    _accuracy,
    _after,
    _joined,
    _known,
    _monotone,
    calibration_gpu_hours,
    published_row,
    reference_hour,
    scheme_options,
    training_gpu_hours,
    verification_gpu_hours,
)
from optimizer.setting import build_setting
from tests.core.hand import catalog, instance

FREE = Preparation(0.0, "", "", "measured")


def model(**changes: Any) -> ServedModel:
    """A model of 70e9 parameters, all of them active, released in 16 bits."""
    one = served_model(instance(), catalog())
    return replace(one, total_parameters=70e9, active_parameters=70e9, **changes)


def row(kind: str = "ptq-calibration", **figures: Any) -> Recovery:
    """A published row of ten models: two points lost, spread of one."""
    given = {"mean_loss_fraction": 0.02, "sd_suite_fraction": 0.01, "models": 10, "rows": 40}
    return Recovery.model_validate({"scheme": "made", "recovery": kind, **given, **figures})


def accuracy(*rows: Recovery, confidence: float = 0.5, floor: float = 0.98, **changes: Any) -> Accuracy:
    """Accuracy of a scheme with these published rows."""
    return _accuracy(_known(rows, model(**changes), certain=False), confidence, floor)


def quantile(mean: float, sd: float, models: int, confidence: float) -> float:
    """Rule 5, in fractions."""
    return 1.0 - (mean + sd * student_t_quantile(confidence, models - 1) * math.sqrt(1.0 + 1.0 / models))


# Rule 1: nothing is lost with certainty.
def test_what_is_certain_loses_nothing() -> None:
    found = _accuracy(_known((), model(), certain=True), 0.99, 0.9999)
    assert found == Accuracy(1.0, 1.0, 1.0, 0)


def test_native_scheme_and_sixteen_bits_are_certain() -> None:
    given = instance(workload={"model": "deepseek-v3"}, choices={"schemes": ["w16a16", "w8a8-fp8"]})
    setting = build_setting(given, catalog())
    served = served_model(given, setting.catalog)
    assert served.native_scheme != "w16a16"
    for option in scheme_options(setting, served):
        if option.scheme.id in ("w16a16", served.native_scheme):
            assert option.accuracy.quantile == 1.0
            assert option.preparation.usd == 0.0


# Rule 2: which row counts.
def test_calibrated_row_where_enough_models_stand_behind_it() -> None:
    calibrated, plain = row(), row("none", mean_loss_fraction=0.5, models=50)
    assert published_row((plain, calibrated)) is calibrated
    thin = row(models=4)
    assert published_row((plain, thin)) is plain
    assert published_row((row("none", models=3), thin)) is thin
    assert published_row((row("none", models=4, rows=41), thin)).rows == 41  # type: ignore[union-attr]
    assert published_row(()) is None


@pytest.mark.parametrize("kind", ["qat", "qad", "lora"])
def test_training_rows_are_not_used(kind: str) -> None:
    assert published_row((row(kind),)) is None


@pytest.mark.parametrize(("models", "thin"), [(4, True), (5, False)])
def test_five_models_make_a_quantile(models: int, thin: bool) -> None:
    found = accuracy(row(models=models), confidence=0.9)
    assert (found.quantile is None) == thin
    if not thin:
        assert found.quantile == pytest.approx(quantile(0.02, 0.01, 5, 0.9))


# Rule 3: figures to plan with replace published ones; gains are not credited.
def test_planned_loss_replaces_the_published_mean() -> None:
    assert accuracy(row(planned_loss_fraction=0.03)).mean == pytest.approx(0.97)


def test_a_negative_loss_counts_as_none() -> None:
    found = accuracy(row(mean_loss_fraction=-0.05), confidence=0.9)
    assert found.mean == 1.0
    assert found.quantile == pytest.approx(quantile(0.0, 0.01, 10, 0.9))


def test_mean_of_single_benchmarks_where_no_suite_is_published() -> None:
    found = accuracy(row(mean_loss_fraction=None, sd_suite_fraction=None, row_mean_recovery_fraction=0.96))
    assert found.quantile == pytest.approx(0.96)


# Rule 4: size.
@pytest.mark.parametrize(
    ("parameters", "loss"),
    [(70e9, 0.02), (7e9, 0.03), (700e9, 0.01), (7e12, 0.01), (0.7e9, 0.035)],
)
def test_size_effect_between_the_measured_sizes(parameters: float, loss: float) -> None:
    """One point a decade, measured from 2.2e9 (a decade and a half below 70e9) to 700e9."""
    sized = row(
        has_size_effect=True,
        loss_slope_per_decade_fraction=-0.01,
        smallest_parameters=70e9 / 10**1.5,
        largest_parameters=700e9,
    )
    known = _known((sized,), replace(model(), total_parameters=parameters), certain=False)
    assert known.loss.mean_points / 100 == pytest.approx(loss)


def test_no_size_effect_where_the_data_show_none_and_never_a_gain() -> None:
    small = replace(model(), total_parameters=7e9)
    slope: dict[str, Any] = {
        "loss_slope_per_decade_fraction": -0.01,
        "smallest_parameters": 1e9,
        "largest_parameters": 1e15,
    }
    assert _known((row(**slope),), small, certain=False).loss.mean_points == pytest.approx(2.0)
    huge = replace(model(), total_parameters=70e13)
    assert _known((row(has_size_effect=True, **slope),), huge, certain=False).loss.mean_points == 0.0


# Rule 5: quantiles and probabilities.
@pytest.mark.parametrize("confidence", [0.5, 0.6, 0.75, 0.9, 0.95, 0.99])
def test_quantile_by_confidence(confidence: float) -> None:
    found = accuracy(row(), confidence=confidence)
    assert found.quantile == pytest.approx(quantile(0.02, 0.01, 10, confidence))
    assert found.mean == pytest.approx(0.98)
    assert found.models == 10


def test_hand_numbers_of_a_quantile() -> None:
    """t(0.9; 9) = 1.383: 2 + 1.383 x 1 x sqrt(1.1) = 3.4505 points."""
    assert accuracy(row(), confidence=0.9).quantile == pytest.approx(0.965495, abs=2e-6)
    assert accuracy(row(), confidence=0.5).quantile == pytest.approx(0.98)


def test_probability_of_meeting_the_floor() -> None:
    assert accuracy(row(), floor=0.98).probability == pytest.approx(0.5)
    assert accuracy(row(), floor=0.97).probability == pytest.approx(student_t_cdf(1.0 / 1.1**0.5, 9))
    # The floor is kept at a confidence exactly when the probability is at least that.
    for floor in (0.95, 0.96, 0.965, 0.97, 0.98, 0.985):
        for confidence in (0.5, 0.8, 0.9):
            found = accuracy(row(), confidence=confidence, floor=floor)
            assert found.quantile is not None
            assert found.probability is not None
            assert (found.quantile >= floor) == (found.probability >= confidence - 1e-12)


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({"row_p10_recovery_fraction": 0.95}, 0.95),
        ({"recovery_lo90_fraction": 0.94}, 0.94),
        ({"row_p10_recovery_fraction": 0.95, "recovery_lo90_fraction": 0.94}, 0.94),
        ({"row_p10_recovery_fraction": 0.93, "recovery_lo90_fraction": 0.94}, 0.93),
        ({"recovery_lo90_fraction": 0.94, "planned_lo90_fraction": 0.92}, 0.92),
        ({"row_p10_recovery_fraction": 1.02}, 1.0),
        ({}, None),
    ],
)
def test_thin_rows(figures: dict[str, Any], expected: float | None) -> None:
    thin = row(models=3, **figures)
    assert accuracy(thin, confidence=0.5).quantile == pytest.approx(0.98)
    assert accuracy(thin, confidence=0.51).quantile == expected
    assert accuracy(thin, confidence=0.9).probability is None


def test_nothing_published_is_never_offered() -> None:
    for confidence in (0.5, 0.9):
        assert accuracy(confidence=confidence) == Accuracy(None, 0.0, None, 0)


# Rules 6 and 10: weights and cache.
def test_losses_of_weights_and_cache_add_and_spreads_join() -> None:
    weights = _known((row(),), model(), certain=False)
    cache = _known((row("none", mean_loss_fraction=0.005, sd_suite_fraction=0.0075, models=6),), model(), certain=False)
    joined = _joined(weights, cache)
    assert joined.loss.mean_points == pytest.approx(2.5)
    assert joined.loss.sd_points == pytest.approx((1.0**2 + 0.75**2) ** 0.5)
    assert joined.loss.models == 6
    assert _accuracy(joined, 0.9, 0.98).quantile == pytest.approx(quantile(0.025, 0.0125, 6, 0.9))


def test_a_certain_part_changes_nothing() -> None:
    certain = _known((), model(), certain=True)
    weights = _known((row(),), model(), certain=False)
    assert _joined(weights, certain) is weights
    assert _joined(certain, weights) is weights
    assert _joined(certain, certain).certain


def test_weights_and_cache_where_one_is_thin() -> None:
    weights = _known((row(),), model(), certain=False)
    thin = _known((row(models=3, mean_loss_fraction=0.01, row_p10_recovery_fraction=0.97),), model(), certain=False)
    joined = _joined(weights, thin)
    assert _accuracy(joined, 0.5, 0.9).quantile == pytest.approx(1.0 - 0.02 - 0.01)
    # The part with a spread counts at 0.9 whatever the confidence.
    expected = quantile(0.02, 0.01, 10, 0.9) - 0.03
    for confidence in (0.6, 0.9, 0.95):
        assert _accuracy(joined, confidence, 0.9).quantile == pytest.approx(expected)


def test_weights_and_cache_where_one_is_unknown_above_the_middle() -> None:
    weights = _known((row(),), model(), certain=False)
    unknown = _known((row(models=3, mean_loss_fraction=0.01),), model(), certain=False)
    for one in (_joined(weights, unknown), _joined(unknown, weights)):
        assert _accuracy(one, 0.5, 0.9).quantile == pytest.approx(0.97)
        assert _accuracy(one, 0.9, 0.9).quantile is None


# Rule 7: fewer bits are never credited above more bits.
def option(key: str, bits: tuple[float, float], found: Accuracy, **other: str) -> SchemeOption:
    """An option of made-up formats."""
    scheme = QuantizationScheme(
        id=key,
        weight_bits=bits[0],
        activation_bits=bits[1],
        weight_bits_effective=bits[0],
        bytes_per_weight=bits[0] / 8,
        compute="fp16",
    )
    kv = catalog().kv_schemes[other.get("kv", "kv16")]
    return SchemeOption(f"{key}+{kv.id}+x", scheme, kv, other.get("recovery", "none"), found, FREE)


GOOD, BAD = Accuracy(0.99, 0.995, 0.95, 10), Accuracy(0.98, 0.99, 0.6, 10)


def lowered(*options: SchemeOption) -> Accuracy:
    """Accuracy of the first option after the rule."""
    return _monotone(list(options))[0].accuracy


def test_a_narrower_format_takes_the_wider_ones_figures_where_it_has_better() -> None:
    assert lowered(option("w4-int", (4, 16), GOOD), option("w8-int", (8, 16), BAD)) == BAD
    assert lowered(option("w4-int", (4, 16), BAD), option("w8-int", (8, 16), GOOD)) == BAD
    mixed = Accuracy(0.97, 0.999, 0.7, 10)
    assert lowered(option("w4-int", (4, 16), mixed), option("w8-int", (8, 16), BAD)) == Accuracy(0.97, 0.99, 0.6, 10)


@pytest.mark.parametrize(
    "other",
    [
        option("w8-fp", (8, 16), BAD),  # another family
        option("w4-int8", (4, 16), BAD),  # as many bits
        option("w8a8-int", (8, 8), BAD),  # fewer bits of activations
        option("w8-int", (8, 16), BAD, recovery="qad"),
        option("w8-int", (8, 16), BAD, kv="kv8-fp8"),
        option("w8-int", (8, 16), replace(BAD, models=4)),  # too few models
        option("w8-int", (8, 16), replace(BAD, quantile=None)),
    ],
    ids=["family", "same bits", "activations", "recovery", "cache", "thin", "unknown"],
)
def test_who_does_not_bound(other: SchemeOption) -> None:
    assert lowered(option("w4-int", (4, 16), GOOD), other) == GOOD


def test_chains_of_formats() -> None:
    worst = Accuracy(0.9, 0.91, 0.1, 10)
    found = _monotone(
        [
            option("w4-int", (4, 16), GOOD),
            option("w8-int", (8, 16), BAD),
            option("w12-int", (12, 16), worst),
        ]
    )
    assert [one.accuracy.quantile for one in found] == [0.9, 0.9, 0.9]


def test_what_is_certain_is_not_lowered() -> None:
    certain = Accuracy(1.0, 1.0, 1.0, 0)
    assert lowered(option("w8-fp", (8, 8), certain), option("w16-fp", (16, 16), BAD)) == certain


def test_schemes_that_are_not_offered_still_bound() -> None:
    wide = build_setting(instance(), catalog())
    alone = build_setting(instance(choices={"schemes": ["w4a16-int4"]}), catalog())
    served = served_model(wide.instance, wide.catalog)
    among = {one.id: one.accuracy for one in scheme_options(wide, served)}
    for one in scheme_options(alone, served):
        assert one.scheme.id == "w4a16-int4"
        assert among[one.id] == one.accuracy


# Rule 8: recovery steps.
@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_a_step_closes_its_share_of_mean_and_spread(confidence: float) -> None:
    step = (
        catalog()
        .recovery_steps["qad"]
        .model_copy(update={"closure_mean_fraction": 0.5, "closure_conservative_fraction": 0.25})
    )
    known = _known((row(),), model(), certain=False)
    after = _after(known, step, confidence)
    left = 0.5 if confidence == 0.5 else 0.75
    assert after.loss.mean_points == pytest.approx(2.0 * left)
    assert after.loss.sd_points == pytest.approx(1.0 * left)
    assert _accuracy(after, confidence, 0.9).quantile == pytest.approx(
        quantile(0.02 * left, 0.01 * left, 10, confidence)
    )


def test_a_step_closes_its_share_of_a_thin_rows_quantile_and_never_all_and_more() -> None:
    steps = catalog().recovery_steps["qad"]
    step = steps.model_copy(update={"closure_mean_fraction": 0.9, "closure_conservative_fraction": 0.5})
    thin = _known((row(models=3, row_p10_recovery_fraction=0.9),), model(), certain=False)
    assert _accuracy(_after(thin, step, 0.9), 0.9, 0.9).quantile == pytest.approx(0.95)
    full = steps.model_copy(update={"closure_mean_fraction": 1.0})
    assert _accuracy(_after(thin, full, 0.5), 0.5, 0.9).quantile == pytest.approx(1.0)
    harm = steps.model_copy(update={"closure_mean_fraction": -1.0})
    assert _accuracy(_after(thin, harm, 0.5), 0.5, 0.9).quantile == pytest.approx(0.96)
    silent = steps.model_copy(update={"closure_mean_fraction": None})
    assert _after(thin, silent, 0.5) == thin


# Rules 8 and 9: what it costs once.
@pytest.mark.parametrize("confidence", [0.5, 0.9])
@pytest.mark.parametrize("floor", [0.5, 0.98, 0.9999])
def test_cost_of_a_step(confidence: float, floor: float) -> None:
    """Once: calibration and verification; with a step also (1 - P) times fine-tuning and verifying again."""
    targets = {"accuracy_confidence": confidence, "accuracy_floor_fraction": floor}
    choices = {"schemes": ["w8a16-int8"], "recovery_steps": ["none", "qad"]}
    given = build_setting(instance(targets=targets, choices=choices), catalog())
    one = served_model(given.instance, given.catalog)
    plain, after = scheme_options(given, one)
    steps = catalog().recovery_steps
    usd, _, _ = reference_hour(catalog())
    base, step = steps["ptq-calibration"], steps["qad"]
    once = calibration_gpu_hours(base, one) + verification_gpu_hours(base, one, confidence)
    assert plain.preparation.usd == pytest.approx(once * usd)
    again = training_gpu_hours(catalog(), step, one, confidence) + verification_gpu_hours(step, one, confidence)
    assert plain.accuracy.probability is not None
    failure = 1.0 - plain.accuracy.probability
    assert after.preparation.usd == pytest.approx((once + failure * again) * usd)
    assert plain.preparation.trust == "assumed"


def test_hours_by_hand() -> None:
    one = model()
    step = (
        catalog()
        .recovery_steps["qad"]
        .model_copy(
            update={
                "tokens_expected": 1e9,
                "tokens_conservative": 3e9,
                "flop_per_parameter_token": 8.0,
                "mfu_dense_expected_fraction": 0.2,
                "mfu_dense_conservative_fraction": 0.1,
                "mfu_moe_expected_fraction": 0.05,
                "mfu_moe_conservative_fraction": 0.025,
                "calibration_gpu_hours_per_billion": 0.5,
                "calibration_moe_gpu_hours_per_billion": 1.5,
                "verification_gpu_hours_per_billion": 0.1,
                "verification_conservative_gpu_hours_per_billion": 0.3,
            }
        )
    )
    peak = catalog().accelerators[step.reference_accelerator].fp16_tflops * 1e12
    assert training_gpu_hours(catalog(), step, one, 0.5) == pytest.approx(8 * 70e9 * 1e9 / (peak * 0.2 * 3600))
    assert training_gpu_hours(catalog(), step, one, 0.9) == pytest.approx(8 * 70e9 * 3e9 / (peak * 0.1 * 3600))
    assert calibration_gpu_hours(step, one) == pytest.approx(35.0)
    assert verification_gpu_hours(step, one, 0.5) == pytest.approx(7.0)
    assert verification_gpu_hours(step, one, 0.9) == pytest.approx(21.0)
    experts = served_model(instance(workload={"model": "mixtral-8x7b"}), catalog())
    assert not experts.is_dense
    billions = experts.total_parameters / 1e9
    assert calibration_gpu_hours(step, experts) == pytest.approx(1.5 * billions)
    active = experts.active_parameters
    assert training_gpu_hours(catalog(), step, experts, 0.5) == pytest.approx(8 * active * 1e9 / (peak * 0.05 * 3600))
    assert verification_gpu_hours(step, experts, 0.5) == pytest.approx(0.1 * active / 1e9)


def test_reference_hour_is_the_cheapest_list_price_on_demand() -> None:
    usd, source, as_of = reference_hour(catalog())
    key = catalog().recovery_steps["ptq-calibration"].reference_accelerator
    prices = [
        one.on_demand_usd_per_accelerator_hour
        for one in catalog().rental_offers.values()
        if one.accelerator == key and one.price_class == "list" and one.is_bookable
    ]
    assert usd == min(price for price in prices if price is not None)
    assert source
    assert as_of


def test_every_combination_is_there_in_a_fixed_order_and_steps_only_where_something_is_lost() -> None:
    choices = {
        "schemes": ["w8a8-fp8", "w16a16", "w16a16"],
        "kv_schemes": ["kv8-fp8", "kv16"],
        "recovery_steps": ["qat-lora", "none", "qad"],
    }
    given = build_setting(instance(choices=choices), catalog())
    found = [one.id for one in scheme_options(given, served_model(given.instance, given.catalog))]
    assert found == [
        "w16a16+kv16+none",
        "w8a8-fp8+kv16+none",
        "w8a8-fp8+kv16+qad",
        "w8a8-fp8+kv16+qat-lora",
        "w16a16+kv8-fp8+none",
        "w16a16+kv8-fp8+qad",
        "w16a16+kv8-fp8+qat-lora",
        "w8a8-fp8+kv8-fp8+none",
        "w8a8-fp8+kv8-fp8+qad",
        "w8a8-fp8+kv8-fp8+qat-lora",
    ]
