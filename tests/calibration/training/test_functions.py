"""validate and calibrate of training steps, as functions."""

import csv
import io

import numpy as np
import pytest

from optimizer.calibration.training.calibrate import calibrate_training
from optimizer.calibration.training.packaged import packaged_text
from optimizer.calibration.training.rows import convention_of, is_training_table, read_row
from optimizer.calibration.training.validation import ADDED, validate_training
from optimizer.catalog import load_catalog
from optimizer.performance.training import Layouts, predict_step
from optimizer.performance.training.constants import calibration_with
from tests.performance.training.cases import H100, LLAMA_70B

LLAMA = {
    "row_id": "1",
    "stack": "NeMo 25.04",
    "model": "Llama 3.1 70B",
    "params_b": "70.6",
    "layers": "80",
    "hidden": "8192",
    "heads": "64",
    "kv_heads": "8",
    "ffn": "28672",
    "ffn_mats": "3",
    "vocab": "128256",
    "seq_len": "8192",
    "global_batch": "128",
    "micro_batch": "1",
    "gpu": "H100-SXM-80GB",
    "gpus": "64",
    "tp": "4",
    "pp": "4",
    "vpp": "5",
    "dp": "2",
    "cp": "2",
    "zero": "1",
    "recompute": "none",
    "seq_parallel": "yes",
    "precision": "bf16",
    "step_s": "14.66",
}


def table(*rows: dict[str, str]) -> str:
    out = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(out, names, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def only(**changes: str) -> dict[str, str]:
    """The single answered row of the table's row with changes."""
    return validate_training(table({**LLAMA, **changes})).rows[0]


def test_every_packaged_row_is_answered() -> None:
    found = validate_training(packaged_text())
    assert [row["status"] for row in found.rows] == ["ok"] * len(found.rows)
    whole = found.error_table()
    assert whole[0]["step_mean_error"] < 0.06
    assert {"dense", "moe"} == {entry["value"] for entry in whole if entry["kind"] == "kind"}


def test_the_row_and_predict_step_agree() -> None:
    layout = Layouts.of(tensor_parallel=4, pipeline_parallel=4, virtual_stages=5, data_parallel=2, context_parallel=2)
    found = predict_step(
        LLAMA_70B,
        layout,
        H100,
        sequence_length=8192,
        global_batch_tokens=128 * 8192,
        stack="NeMo 25.04",
    )
    assert float(only()["predicted_step_s"]) == pytest.approx(found.step_s[0], rel=1e-5)
    assert float(only()["predicted_step_s"]) == pytest.approx(14.66, rel=0.1)


def test_the_rate_is_in_the_rows_own_convention() -> None:
    full, causal, hardware = (
        float(only(flops_convention=words)["predicted_tflops_per_gpu"])
        for words in ("model FLOP, full attention", "model FLOP, causal attention", "hardware FLOP")
    )
    assert causal < full < hardware
    step = float(only()["predicted_step_s"])
    assert full * step == pytest.approx(538.1 * 14.66, rel=0.01)


@pytest.mark.parametrize(
    ("words", "convention"),
    [
        ("hardware FLOP: 96BsLh^2(1+s/6h+V/16Lh), counts full recompute", "hardware_full"),
        ("model FLOP, causal attention (26.x dense rows check out)", "causal"),
        ("model FLOP; forced balanced routing", "causal"),
        ("step time is primary; source MFU counts full attention", "full"),
        ("6ND", "6nd"),
        ("8ND", "8nd"),
        ("", "full"),
    ],
)
def test_conventions(words: str, convention: str) -> None:
    assert convention_of(words) == convention
    assert convention_of(convention) == convention


def test_what_is_not_stated_is_assumed_and_told() -> None:
    missing = only(micro_batch="", vpp="", zero="", recompute="")
    assert missing["status"] == "ok"
    for word in ("micro_batch", "vpp", "zero", "recompute"):
        assert f"{word} not stated" in missing["reason"]
    free = only(tp="", pp="", vpp="", dp="", cp="", micro_batch="")
    assert free["status"] == "ok"
    assert "layout not stated" in free["reason"]
    assert float(free["predicted_step_s"]) < 1.3 * float(only()["predicted_step_s"])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"gpu": "abacus"}, "unknown"),
        ({"gpu": ""}, "gpu must be stated"),
        ({"precision": "fp7"}, "unknown training precision"),
        ({"precision": "nvfp4"}, "no matrix units"),
        ({"dp": "3"}, "tp x pp x cp x dp is 96"),
        ({"global_batch": "3", "micro_batch": "2", "dp": "2"}, "below dp x micro_batch"),
        ({"tp": "x"}, "no number"),
        ({"tp": "2.5"}, "must be whole"),
        ({"step_s": "-1"}, "no number"),
        ({"model": "nobody's", "params_b": "", "layers": ""}, "not known"),
        ({"params_b": "1", "active_params_b": "2", "layers": "", "model": "nobody's"}, "not above all"),
    ],
)
def test_what_cannot_be_predicted_says_why(changes: dict[str, str], reason: str) -> None:
    found = only(**changes)
    assert found["status"] == "unsupported"
    assert reason in found["reason"]
    assert found["predicted_step_s"] == ""


def test_what_nobody_can_run_does_not_fit() -> None:
    found = only(tp="1", pp="1", vpp="1", dp="64", cp="1", zero="0", global_batch="128")
    assert found["status"] == "does_not_fit"
    assert "GiB" in found["reason"]


def test_unknown_columns_pass_through_and_measured_ones_may_be_empty() -> None:
    found = validate_training(table({**LLAMA, "step_s": "", "color": "green"}))
    assert found.rows[0]["color"] == "green"
    assert found.rows[0]["status"] == "ok"
    assert found.columns[-len(ADDED) :] == list(ADDED)
    assert found.error_table()[0]["step_mean_error"] is None
    with pytest.raises(ValueError, match="empty"):
        validate_training("gpu,gpus\n")


def test_measured_rates_stand_for_the_step() -> None:
    catalog = load_catalog()
    step = read_row(LLAMA, catalog).step_s
    tokens = read_row({**LLAMA, "step_s": "", "tokens_s_per_gpu": str(128 * 8192 / 64 / 14.66)}, catalog).step_s
    flop = read_row({**LLAMA, "step_s": "", "tflops_per_gpu": "538.1"}, catalog).step_s
    assert tokens == pytest.approx(step)
    assert flop == pytest.approx(step, rel=0.01)


def test_tables_are_told_apart() -> None:
    assert is_training_table(["gpu", "seq_len", "global_batch"])
    assert not is_training_table(["id", "accelerator", "input_tokens", "concurrency"])


def test_one_row_of_a_new_stack_moves_its_others() -> None:
    """A stack a quarter slower than known ones: after one row the others are off by less than half as much."""
    slower = [
        {**LLAMA, "row_id": str(n), "stack": "own 1", "gpus": str(32 * n), "dp": str(n), "global_batch": str(64 * n)}
        for n in (2, 4, 8)
    ]
    plain = validate_training(table(*({**row, "step_s": ""} for row in slower)))
    for row, answer in zip(slower, plain.answers, strict=True):
        row["step_s"] = f"{1.25 * answer.step_s:.6g}"
    found = calibrate_training(table(slower[0]))
    assert (found.points, found.cross_validated) == (1, False)
    after = validate_training(table(*slower[1:]), calibration=found.document)
    error = [answer.step_s / row.step_s - 1.0 for answer, row in zip(after.answers, after.read, strict=True)]
    assert np.all(np.abs(error) < 0.1)
    assert found.after.mean < found.before.mean
    # What has nothing to do with the stack hardly moves.
    other = {**LLAMA, "stack": "Megatron-LM 2022", "gpu": "A100-SXM-80GB", "precision": "fp16"}
    before, now = (validate_training(table(other), calibration=one).answers[0].step_s for one in (None, found.document))
    assert now == pytest.approx(before, rel=0.02)


def test_a_calibration_names_its_rows_and_can_be_read() -> None:
    found = calibrate_training(table(LLAMA, {**LLAMA, "row_id": "2", "gpu": "abacus"}), name="mine.csv")
    assert found.left_out == 1
    assert "mine.csv" in found.document["source"]
    assert calibration_with(found.document).factors == found.calibration.factors
    with pytest.raises(ValueError, match="no row"):
        calibrate_training(table({**LLAMA, "step_s": ""}))
    for wrong in ({"kind": "serving"}, {**found.document, "factors": {"nothing": 1.0}}):
        with pytest.raises(ValueError):
            calibration_with(wrong)
