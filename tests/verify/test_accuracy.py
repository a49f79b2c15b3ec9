"""The checker's use of docs/method.md section 7: figures by hand, and agreement with the program's."""

import json
import math
from typing import Any

import pytest

from optimizer.catalog import load_catalog
from optimizer.instance import Instance
from optimizer.models import served_model
from optimizer.plan import Deployment
from optimizer.schemes import scheme_options
from optimizer.setting import build_setting
from optimizer.verify.accuracy import kept, preparation_usd
from optimizer.verify.facts import gather


def _instance(model: str, targets: dict[str, Any], choices: dict[str, Any]) -> Instance:
    workload = {
        "model": model,
        "request": {"input_tokens": 100, "output_tokens": 100},
        "demand": {"requests_per_s": 1},
    }
    raw = {"name": "accuracy", "workload": workload, "targets": targets, "choices": choices}
    return Instance.model_validate_json(json.dumps(raw))


def _deployment(scheme: str, kv_scheme: str, recovery: str) -> Deployment:
    return Deployment.model_construct(scheme=scheme, kv_scheme=kv_scheme, recovery=recovery)


def test_native_weights_and_a_16_bit_cache_lose_nothing_and_cost_nothing() -> None:
    facts = gather(_instance("deepseek-v3", {}, {}))
    for scheme in ("w16a16", facts.model.native_scheme):
        own = kept(facts, scheme, "kv16", "none")
        assert (own.quantile, own.mean, own.probability) == (1.0, 1.0, 1.0)
        assert preparation_usd(facts, _deployment(scheme, "kv16", "none")) == 0.0


def test_the_mean_counts_at_even_odds_and_a_t_quantile_above() -> None:
    expected = kept(gather(_instance("llama-3.1-70b", {}, {})), "w8a8-fp8", "kv16", "none")
    assert expected.quantile == expected.mean == pytest.approx(0.9963)
    cautious = gather(_instance("llama-3.1-70b", {"accuracy_confidence": 0.9}, {}))
    # 1 - (0.0037 + 0.011 t(0.9; 12) sqrt(1 + 1/13)), t(0.9; 12) = 1.35622.
    assert kept(cautious, "w8a8-fp8", "kv16", "none").quantile == pytest.approx(
        0.9963 - 0.011 * 1.35622 * (14 / 13) ** 0.5
    )


def test_a_step_closes_its_share_of_the_loss_and_costs_what_its_failure_may_cost() -> None:
    facts = gather(_instance("llama-3.1-70b", {"accuracy_floor_fraction": 0.98}, {"recovery_steps": ["none", "qad"]}))
    plain, after = (kept(facts, "w4a4-nvfp4", "kv16", step) for step in ("none", "qad"))
    assert plain.quantile is not None
    assert after.quantile == pytest.approx(1.0 - 0.3 * (1.0 - plain.quantile))
    once, twice = (preparation_usd(facts, _deployment("w4a4-nvfp4", "kv16", step)) for step in ("none", "qad"))
    assert 0.0 < once < twice


def _same(own: float | None, theirs: float | None) -> bool:
    if own is None or theirs is None:
        return own is theirs
    return math.isclose(own, theirs, rel_tol=1e-12)


@pytest.mark.parametrize("schemes", [None, ["w8a8-int8"], ["w8a8-int8", "w8a16-int8", "w4a16-int4"]])
@pytest.mark.parametrize("floor", [0.987, 0.95])
@pytest.mark.parametrize("confidence", [0.5, 0.9])
@pytest.mark.parametrize("model", ["llama-3.1-8b", "llama-3.1-70b", "deepseek-v3"])
def test_program_and_checker_read_the_rules_alike(
    model: str, confidence: float, floor: float, schemes: list[str] | None
) -> None:
    choices: dict[str, Any] = {
        "kv_schemes": ["kv16", "kv8-fp8", "kv8-int8", "kv4-int4"],
        "recovery_steps": ["none", "qad", "qat-lora"],
    }
    if schemes is not None:
        choices["schemes"] = schemes
    targets = {"accuracy_confidence": confidence, "accuracy_floor_fraction": floor}
    instance = _instance(model, targets, choices)
    facts, catalog = gather(instance), load_catalog()
    options = scheme_options(build_setting(instance, catalog), served_model(instance, catalog))
    assert options
    for option in options:
        own = kept(facts, option.scheme.id, option.kv_scheme.id, option.recovery)
        theirs = option.accuracy
        assert _same(own.quantile, theirs.quantile), option.id
        assert _same(own.mean, theirs.mean), option.id
        assert _same(own.probability, theirs.probability), option.id
        usd = preparation_usd(facts, _deployment(option.scheme.id, option.kv_scheme.id, option.recovery))
        assert usd == pytest.approx(option.preparation.usd, rel=1e-12), option.id
