"""The packaged calibration: reproduced from its points, small, and as good as it says on what it has not seen."""

import hashlib
import json
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import pytest

from optimizer.calibration import packaged
from optimizer.calibration.crossvalidation import METRICS, errors_of
from optimizer.calibration.decisions import decide
from optimizer.calibration.fit import Data
from optimizer.calibration.held_out import LEVELS, bands_document, keys_of, log_errors, packaged_held
from optimizer.calibration.inference import packaged_drafts
from optimizer.calibration.parameters import serving_parameters
from optimizer.calibration.throughput import packaged_throughput
from optimizer.calibration.validation import flight_of
from optimizer.catalog import load_catalog
from optimizer.performance.bands import load_bands
from optimizer.performance.factors import AXES, ENGINES, load_factors


@cache
def data() -> Data:
    return packaged.packaged_data(load_catalog())


def document(name: str) -> dict[str, Any]:
    text = resources.files("optimizer.performance").joinpath(f"data/{name}").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.slow
def test_the_packaged_points_give_the_packaged_constants() -> None:
    fitted = packaged.fit_packaged(data(), load_catalog())
    points = packaged.packaged_text() + packaged_throughput()
    again = packaged.calibration_document(fitted, packaged.packaged_parameters(), points)
    assert again == document("calibration.json")


def test_the_hash_covers_constants_and_points() -> None:
    held = document("calibration.json")
    points = packaged.packaged_text() + packaged_throughput()
    assert held["points_sha256"] == hashlib.sha256(points.encode()).hexdigest()
    body = json.dumps(held["factors"], sort_keys=True)
    assert held["sha256"] == hashlib.sha256((body + points).encode()).hexdigest()


def test_constants_are_few_and_of_no_model() -> None:
    for engine in range(1, len(ENGINES)):
        own = [p for p in serving_parameters() if AXES.get(p.factor, ((),))[0] == ENGINES and p.index == (engine,)]
        assert len(own) <= 12
    allowed = {name for axes in AXES.values() for axis in axes for name in axis}
    for value in document("calibration.json")["factors"].values():
        keys = set(value) if isinstance(value, dict) else set()
        assert keys <= allowed


def test_the_generic_engine_lies_between_the_others() -> None:
    factors = load_factors()
    for name, axes in AXES.items():
        if axes == (ENGINES,):
            values = getattr(factors, name)
            assert values[1:].min() * 0.99 <= values[0] <= values[1:].max() * 1.01


@pytest.mark.parametrize(
    ("way", "metric", "median", "mean"),
    [
        ("group", "tpot_ms", 0.08, 0.14),
        ("group", "ttft_ms", 0.25, 1.0),
        ("group", "output_tokens_per_s", 0.08, 0.13),
        ("model", "tpot_ms", 0.12, 1.0),
        ("model", "ttft_ms", 0.35, 1.0),
        ("model", "output_tokens_per_s", 0.12, 1.0),
    ],
)
def test_errors_on_what_was_not_seen(way: str, metric: str, median: float, mean: float) -> None:
    errors = errors_of(data(), packaged_held(data())[way], metric, np.ones(len(data().points), dtype=np.bool_))
    assert errors.points == len(data().points)
    assert errors.median <= median
    assert errors.mean <= mean


@pytest.mark.parametrize(("accelerator", "median"), [("h200-141gb-sxm", 0.10), ("h100-80gb-sxm", 0.15)])
def test_errors_on_an_accelerator_left_out(accelerator: str, median: float) -> None:
    rows = np.array([point.accelerator == accelerator for point in data().points])
    assert errors_of(data(), packaged_held(data())["accelerator"], "tpot_ms", rows).median <= median


@pytest.mark.parametrize("accelerator", ["a100-40gb-sxm", "a100-80gb-sxm", "a100-80gb-pcie", "l40s", "mi300x"])
def test_throughput_of_older_generations_by_card(accelerator: str) -> None:
    """Median error of the whole table of one card, engines that are not modelled included."""
    flight = flight_of(packaged_throughput(), load_catalog(), load_factors())
    mine = np.array([flight.points[row].accelerator == accelerator for row in flight.able])
    error = np.abs(flight.rate(load_factors()) / flight.measured_rate - 1.0)[mine]
    assert error.size >= 40
    assert np.nanmedian(error) <= 0.20


def test_decisions_hold() -> None:
    held, bands = packaged_held(data())["group"], load_bands()
    plain = decide(data(), held)
    assert plain.valid >= 0.82
    assert plain.lost <= 0.09
    sure = [
        np.array([float(bands.multiplier(metric, point.engine, 0, 0.9)) for point in data().points])
        for metric in METRICS[:2]
    ]
    careful = decide(data(), held, *sure)
    assert careful.valid >= 0.93
    assert careful.lost <= 0.20
    assert careful.without_pick <= 0.10


def test_bands_hold_what_they_say_on_groups_that_did_not_make_them() -> None:
    groups = np.array(keys_of(data(), "group"))
    engines = np.array([point.engine for point in data().points])
    half = np.array([int(hashlib.sha256(group.encode()).hexdigest(), 16) % 2 for group in groups])
    for metric in METRICS:
        errors, inside = log_errors(data(), packaged_held(data())["group"], metric), np.zeros(groups.size, dtype=bool)
        for engine in set(engines):
            for part in (0, 1):
                low, high = np.quantile(errors[(half != part) & (engines == engine)], [0.1, 0.9])
                rows = (half == part) & (engines == engine)
                inside[rows] = (errors[rows] >= low) & (errors[rows] <= high)
        assert 0.75 <= inside.mean() <= 0.88


def test_bands_are_those_of_the_held_out_points() -> None:
    made, held = bands_document(data(), packaged_held(data())), document("bands.json")
    for evidence, metrics in held["log_error"].items():
        for metric, engines in metrics.items():
            for engine, values in engines.items():
                # The table keeps four digits of each prediction.
                assert made["log_error"][evidence][metric][engine] == pytest.approx(values, abs=2e-3)
                assert len(values) == len(LEVELS)


def test_drafts_are_told_apart_by_campaign() -> None:
    drafting = [point for point in data().points if point.accepted > 0]
    assert {point.engine for point in drafting} == {"trtllm"}
    assert {(p.engine, p.version, p.measured_on) for p in drafting} == set(packaged_drafts())
