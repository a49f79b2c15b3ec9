"""The packaged training calibration: reproduced from its rows, and as good as it says on what it has not seen."""

import hashlib
import json
import sys
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import get_args

import numpy as np
import pytest

from optimizer.calibration.training import packaged
from optimizer.calibration.training.calibrate import refit
from optimizer.calibration.training.document import calibration_document, rounded
from optimizer.calibration.training.fit import StepData, fit, packaged_prior
from optimizer.calibration.training.held_out import groups_of, hold_out, log_step_of
from optimizer.calibration.training.runs import BANDS, in_band, left_out, production_document, read_runs
from optimizer.catalog import load_catalog
from optimizer.instance.training import OptimizerState
from optimizer.performance.training.bands import EVIDENCE, KINDS, load_bands
from optimizer.performance.training.constants import LEVELS, NAMES, load_calibration, resource
from optimizer.performance.training.goodput import production_factor
from optimizer.performance.training.memory import memory_gib
from tests.calibration.training.errors import errors, every, held_out, is_dense, is_fit, is_moe


@cache
def data() -> StepData:
    return packaged.packaged_data(load_catalog())


def test_the_hash_covers_constants_effects_and_rows() -> None:
    held, rows = resource("training_calibration.json"), packaged.packaged_text()
    assert held["rows_sha256"] == hashlib.sha256(rows.encode()).hexdigest()
    body = json.dumps([held["factors"], held["effects"], held["unknown_stack"]], sort_keys=True)
    assert held["sha256"] == hashlib.sha256((body + rows).encode()).hexdigest()


def test_every_constant_has_unit_meaning_and_source() -> None:
    table = resource("training_factors.json")["factors"]
    assert set(table) == set(NAMES)
    for row in table.values():
        assert row["unit"]
        assert row["meaning"]
        assert row["source"]
        assert row["width"] > 0


def test_constants_stay_physical() -> None:
    factors = load_calibration().factors
    for name in NAMES:
        if "_matrix_" in name and "factor" not in name:
            assert 0.3 < getattr(factors, name) < 0.9, name
        if name.endswith(("_attention", "_flash")):
            assert 0.1 < getattr(factors, name) < 0.75, name


def test_the_packaged_rows_hold_figures_and_names_only() -> None:
    header = packaged.packaged_text().partition("\n")[0].split(",")
    assert header == list(packaged.COLUMNS)
    assert {"notes", "evidence"}.isdisjoint(header)


def test_effects_are_those_of_the_rows() -> None:
    calibration = load_calibration()
    assert {key.partition("|")[2] for key in calibration.effects["stack"]} == {row.stack for row in data().rows}
    for level in LEVELS:
        assert all(abs(value) < 0.6 for value in calibration.effects[level].values())


def test_the_bars() -> None:
    """Fit rows at most 5 %; one stack left out at most 10 %, and 8 % after one row of it is known: dense, mixtures."""
    assert errors("in_sample_s", is_fit).mean() <= 0.05
    assert errors("without_stack_s", is_dense).mean() <= 0.10
    assert errors("one_row_error", is_dense).mean() <= 0.08
    assert errors("without_stack_s", is_moe).mean() <= 0.10
    assert errors("one_row_error", is_moe).mean() <= 0.08
    assert errors("without_stack_s", every).mean() <= 0.10
    assert errors("one_row_error", every).mean() <= 0.08


def test_mixtures_are_worse_and_say_so() -> None:
    assert errors("without_stack_s", is_moe).mean() > errors("without_stack_s", is_dense).mean()
    bands = load_bands()
    for evidence in EVIDENCE:
        assert bands.multiplier("moe", evidence, 0.9) > bands.multiplier("dense", evidence, 0.9)


def test_bands_cover_what_they_say() -> None:
    """Four fifths of the held-out rows, a series of one layout counting as its square root, lie in the band."""
    bands, columns = load_bands(), {"stack": "without_stack_and_model_s", "accelerator": "without_stack_s"}
    weights = dict(zip((row.id for row in data().rows), data().weights, strict=True))
    for kind in KINDS:
        for evidence, column in columns.items():
            rows = [row for row in held_out() if row["kind"] == kind]
            low, high = (bands.multiplier(kind, evidence, level) for level in (0.1, 0.9))
            inside = [low <= float(row["step_s"]) / float(row[column]) <= high for row in rows]
            share = np.average(inside, weights=[weights[row["row_id"]] for row in rows])
            assert 0.75 <= share <= 0.9, (kind, evidence)


@pytest.mark.slow
def test_the_packaged_rows_give_the_packaged_calibration() -> None:
    """Up to what other processors round otherwise."""
    found = rounded(fit(data(), packaged_prior()))
    held = resource("training_calibration.json")
    again = calibration_document(found, source=packaged.SOURCE, as_of=packaged.AS_OF, rows=packaged.packaged_text())
    for name in NAMES:
        assert again["factors"][name] == pytest.approx(held["factors"][name], rel=2e-3), name
    for level in LEVELS:
        assert set(again["effects"][level]) == set(held["effects"][level])
        for key, value in again["effects"][level].items():
            assert value == pytest.approx(held["effects"][level][key], abs=2e-3), key


@pytest.mark.slow
def test_held_out_errors_are_those_of_a_refit() -> None:
    """Two stacks of very different kinds, left out again."""
    whole = fit(data(), packaged_prior())
    table = {row["row_id"]: row for row in held_out()}
    for stack in ("Megatron-LM 2022", "MaxText 25.04 (FSDP)"):
        groups = ["out" if row.stack == stack else "in" for row in data().rows]
        inside = np.flatnonzero(np.array(groups) == "out")
        blind = fit(
            data().take(np.flatnonzero(np.array(groups) == "in")), packaged_prior(), start=whole.factors, steps=5
        )
        found = np.exp(log_step_of(data().take(inside), blind))
        expected = [float(table[data().rows[index].id]["without_stack_s"]) for index in inside]
        assert found == pytest.approx(expected, rel=5e-3)
        known = refit(data().take(inside[:1]), blind)
        after = np.abs(np.exp(log_step_of(data().take(inside), known) - data().log_step[inside]) - 1.0)
        before = np.abs(found / np.exp(data().log_step[inside]) - 1.0)
        assert after[0] < max(before[0], 0.02)


def test_groups_hold_out_whole_stacks() -> None:
    few = data().take(np.flatnonzero([row.traits.line == "JAX" for row in data().rows]))
    prior = packaged_prior()
    held = hold_out(few, prior, fit(few, prior, steps=2), groups_of(few.rows, "stack"))
    assert np.all(np.isfinite(held))


def test_published_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Days of published runs by factors and bands of all others: median error at most 20 %, four fifths inside."""
    runs = read_runs(load_catalog(), load_calibration())
    assert len(runs) >= 35
    miss = np.log([run.measured_days for run in runs]) - left_out(runs)
    median = float(np.median(np.abs(np.expm1(-miss))))
    inside = in_band(runs, BANDS)
    both = [*inside["dense"], *inside["moe"]]
    with capsys.disabled():
        told = (
            f"median error of days {100 * median:.1f} %, {100 * float(np.mean(both)):.0f} % in bands made without them"
        )
        sys.stdout.write(f"\n{len(runs)} published runs: {told}\n")
    assert median <= 0.20
    assert len(both) == len(runs)
    assert 0.75 <= float(np.mean(both)) <= 0.9
    for name in ("dense", "moe"):
        assert 0.75 <= float(np.mean(inside[name])) <= 0.9, name
    assert float(np.mean(inside["reported"])) >= 0.75
    table, again = resource("training_production.json"), production_document(runs)
    assert again["log_factor"] == pytest.approx(table["log_factor"], abs=2e-3)
    for name in BANDS:
        assert again["log_error"][name] == pytest.approx(table["log_error"][name], abs=2e-3)


def test_mixtures_have_the_wider_band_of_days() -> None:
    """Five runs of mixtures miss by more than any dense run's band holds: theirs says so."""
    dense, moe = production_factor("dense", "hopper"), production_factor("moe", "hopper")
    assert moe.low < dense.low < 1.0 < dense.high < moe.high


def test_a_calibration_is_frozen() -> None:
    assert isinstance(load_calibration().effects["stack"], MappingProxyType)


def test_the_planners_own_formula_accepts_every_published_layout() -> None:
    """With some recomputation, ZeRO stage and optimizer's state that an instance may choose, and its own degrees.

    One row states no ZeRO (Llama 3 70B on 64 GB300 without a split of the model, which only FSDP can hold).
    """
    refused = []
    for index, (row, layout) in enumerate(zip(data().rows, data().layouts, strict=True)):
        assert row.model is not None
        assert row.accelerator is not None
        micro = data().work.take(np.array([index])).micro_batches
        stages = {float(layout.zero_stage[0])} | ({3.0} if layout.pipeline_parallel[0] == 1 else set())
        least = min(
            memory_gib(
                row.model,
                replace(layout, recompute=np.array([again]), zero_stage=np.array([zero])),
                sequence_length=row.sequence,
                micro_batches=micro,
                optimizer_state=state,
                fused_loss=row.traits.fused_loss,
            )[0]
            for again in (0.0, 1.0, 2.0)
            for zero in stages
            for state in get_args(OptimizerState)
        )
        if least > row.accelerator.memory_gib:
            refused.append(row.id)
    assert refused == []
