"""validate, calibrate and estimate as functions; bands; ages."""

import csv
import io
import json
from datetime import date
from functools import cache

import numpy as np
import pytest

from optimizer.calibration import packaged
from optimizer.calibration.calibrate import calibrate
from optimizer.calibration.estimate import Estimate, estimate
from optimizer.calibration.points import read_points, read_table
from optimizer.calibration.tables import online_row
from optimizer.calibration.validation import ADDED, Validation, validate
from optimizer.catalog import load_catalog
from optimizer.performance.bands import EVIDENCE, METRICS, load_bands
from optimizer.performance.engine_age import LARGEST_AGE_YEARS, age_years, engine_age_years, release_day
from optimizer.performance.factors import ENGINES, GENERATIONS, calibrated_document, packaged_document

COLLECTION = """id,gpu,gpus,model,precision,engine,version,tp,pp,ep,dp,isl,osl,load_kind,load,output_tok_s,kind,as_of
a,A100-SXM-80GB,1,Llama-3.1-8B,fp16/fp16,TensorRT-LLM,0.14.0,1,1,,1,128,2048,rate,inf,4000,offline_max,2024-11
b,A100-SXM-80GB,8,Llama-2-70B,fp16/fp16,vLLM 0.6.5,0.6.5,4,1,,1,1024,512,batch,32,900,offline_static,2024
c,MI250,1,Llama-3.1-8B,fp16/fp16,vLLM,0.7.3,1,1,,1,128,128,offline,all,900,offline_max,2025-02
d,MI300X,8,Llama-2-70B,fp8/fp8,vLLM,,8,1,,1,,291,offline,all,900,offline_max,2024-11
"""


@cache
def validated() -> Validation:
    return validate(packaged.packaged_text())


def test_every_measured_row_is_answered() -> None:
    # All of them ran on silicon.
    assert validated().ok.all()
    assert validated().columns[-len(ADDED) :] == list(ADDED)


def test_rows_keep_their_cells_and_bands_hold_their_value() -> None:
    row = validated().rows[0]
    given = read_table(packaged.packaged_text())[1][0]
    assert {name: row[name] for name in given} == given
    for metric in ("tpot", "ttft"):
        low, value, high = (
            float(row[name]) for name in (f"{metric}_low_ms", f"predicted_{metric}_ms", f"{metric}_high_ms")
        )
        assert low < value < high


def test_where_no_rate_is_measured_both_sides_are_derived_alike() -> None:
    seen = validated()
    c, output = (np.array([getattr(p, name) for p in seen.points]) for name in ("concurrency", "nominal_output"))
    by_hand = c * output / (seen.ttft_ms + (output - 1) * seen.tpot_ms) * 1e3
    assert seen.output_tokens_per_s[seen.ok] == pytest.approx(by_hand[seen.ok])


def test_error_table_names_every_kind() -> None:
    table = validated().error_table()
    assert table[0]["rows"] == len(validated().points)
    assert {entry["kind"] for entry in table} == {"all", "accelerator", "model", "engine"}
    assert table[0]["tpot_median_error"] < 0.08


def test_collections_are_read_as_they_are() -> None:
    seen = validate(COLLECTION)
    assert [row["status"] for row in seen.rows] == ["ok", "ok", "unsupported", "unsupported"]
    assert "unknown accelerator" in seen.rows[2]["reason"]
    assert "length" in seen.rows[3]["reason"]
    assert seen.output_tokens_per_s[0] == pytest.approx(4000, rel=0.5)
    # Two copies of four accelerators give twice what one gives.
    two = online_row(read_table(COLLECTION)[1][1])
    assert (two["replicas"], two["engine"], two["measured_on"]) == ("2", "vllm", "2024-01-01")


RATES = """gpu,gpus,model,precision,engine,version,tp,pp,ep,dp,isl,osl,load_kind,load,kind
H100-SXM-80GB,1,Llama-3.1-8B,fp8/fp8,vLLM,0.10.0,1,1,,1,1000,500,rate,{rate},online
"""


def at_rate(rate: float) -> dict[str, str]:
    """The prediction of one H100 to which so many requests come a second."""
    (row,) = validate(RATES.format(rate=rate)).rows
    return row


@pytest.mark.parametrize("rate", [0.5, 2.0, 8.0])
def test_a_rate_is_served_by_as_many_in_flight_as_it_keeps_there(rate: float) -> None:
    """Little's law: the same row at the concurrency rate x latency is predicted alike."""
    found = at_rate(rate)
    assert (found["status"], found["reason"]) == ("ok", "")
    assert float(found["predicted_output_tokens_per_s"]) == pytest.approx(rate * 500, rel=1e-3)
    seconds = (float(found["predicted_ttft_ms"]) + 499 * float(found["predicted_tpot_ms"])) / 1e3
    closed = RATES.format(rate=max(rate * seconds, 1.0)).replace("rate", "concurrency")
    (same,) = validate(closed).rows
    assert float(same["predicted_tpot_ms"]) == pytest.approx(float(found["predicted_tpot_ms"]), rel=1e-3)
    assert float(same["predicted_ttft_ms"]) == pytest.approx(float(found["predicted_ttft_ms"]), rel=1e-3)


def test_more_than_it_serves_is_told_and_gives_no_first_token() -> None:
    calm, overrun = at_rate(1.0), at_rate(1e4)
    assert float(overrun["predicted_tpot_ms"]) > float(calm["predicted_tpot_ms"])
    assert overrun["status"] == "ok"
    assert "more requests arrive" in overrun["reason"]
    assert overrun["predicted_ttft_ms"] == overrun["ttft_high_ms"] == ""
    assert 0 < float(overrun["predicted_output_tokens_per_s"]) < 1e4 * 500


def test_a_rate_without_a_number_is_not_predicted() -> None:
    both = RATES.format(rate=2.0) + RATES.splitlines()[1].format(rate="unknown")
    rows = validate(both).rows
    assert [row["status"] for row in rows] == ["ok", "unsupported"]


def test_a_table_without_a_usable_row_is_refused() -> None:
    with pytest.raises(ValueError, match="no row can be predicted"):
        validate("id,accelerator,model,precision,input_tokens,output_tokens,concurrency\n")


def test_precisions_become_bytes() -> None:
    rows = [
        {
            "id": "1",
            "accelerator": card,
            "model": model,
            "precision": precision,
            "input_tokens": "10",
            "output_tokens": "10",
        }
        for card, model, precision in (
            ("h100_sxm", "meta-llama/Llama-3.1-70B", "unlabelled"),
            ("h100_sxm", "openai/gpt-oss-120b", "fp4"),
            ("b200_sxm", "openai/gpt-oss-120b", "fp4"),
            ("b200_sxm", "moonshotai/Kimi-K2.5", "int4"),
            ("h200_sxm", "deepseek-ai/DeepSeek-V3", "fp8"),
            ("h200_sxm", "deepseek-ai/DeepSeek-V3", "fp3"),
        )
    ]
    points = read_points(rows, load_catalog())
    assert [(p.weights, p.attention, p.compute) for p in points[:5]] == [
        (2.0, 2.0, "fp16"),
        (0.53125, 2.0, "fp16"),
        (0.53125, 2.0, "fp4"),
        (0.53, 2.0, "fp16"),
        (1.0, 1.0, "fp8"),
    ]
    assert "fp3" in points[5].problem


def scaled_table(factor: float, rows: int) -> str:
    columns, table = read_table(packaged.packaged_text())
    chosen = [row for row in table if row["engine"] == "vllm" and row["model"] == "meta-llama/Llama-3.1-70B"][:rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    for row in chosen:
        slower = {name: str(float(row[name]) * factor) for name in ("measured_tpot_ms", "measured_ttft_ms")}
        writer.writerow({**row, **slower})
    return text.getvalue()


def test_own_points_move_the_constants_towards_them() -> None:
    found = calibrate(scaled_table(1.3, 60), name="mine.csv")
    assert found.cross_validated
    assert found.before["tpot_ms"].median > 0.2
    assert found.after["tpot_ms"].median < 0.6 * found.before["tpot_ms"].median
    again = json.loads(json.dumps(found.document))
    laid = calibrated_document(packaged_document(), again)["factors"]
    assert laid["layer_overhead_us"]["trust"] == "fitted"
    assert "mine.csv" in laid["layer_overhead_us"]["source"]
    # What these points do not touch stays.
    packaged_row = packaged_document()["factors"]["layer_overhead_us"]["value"]
    assert laid["layer_overhead_us"]["value"]["sglang"] == packaged_row["sglang"]


def test_calibrating_on_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no row with a measured TPOT"):
        calibrate("id,accelerator,model,precision,input_tokens,output_tokens,concurrency\n")


def llama(**more: object) -> Estimate:
    chosen = {
        "model": "Llama-3.1-70B",
        "accelerator": "h200-141gb-sxm",
        "precision": "fp8",
        "tensor_parallel": 8,
        **more,
    }
    return estimate(**chosen)  # type: ignore[arg-type]


def test_estimate_adds_up() -> None:
    found = llama(concurrency=64, engine="vllm")
    assert found.starts
    assert sum(found.step_ms.values()) == pytest.approx(found.values["tpot_ms"])
    assert sum(found.memory_gib.values()) == pytest.approx(found.memory_total_gib)
    assert found.evidence == "configuration"
    for metric in METRICS:
        low, high = found.bands[metric]
        assert low < found.values[metric] < high
    assert json.loads(json.dumps(found.document()))["tpot_ms"]["value"] == found.values["tpot_ms"]


def test_estimate_says_what_does_not_start() -> None:
    assert not llama(tensor_parallel=6).starts
    assert "not fit" in llama(tensor_parallel=1, precision="bf16", accelerator="l40s").problems[-1]
    assert "do not fit at once" in llama(tensor_parallel=1, concurrency=4000, input_tokens=8000).problems[-1]
    with pytest.raises(ValueError, match="unknown model"):
        llama(model="no such model")


def test_a_raised_memory_fraction_is_told() -> None:
    # DeepSeek-R1 in fp8 ran on four B200 under SGLang 0.5.9: with a raised fraction.
    r1 = {"model": "deepseek-r1", "accelerator": "b200", "engine": "sglang", "concurrency": 16}
    found = llama(**r1, tensor_parallel=4)
    assert not found.starts
    assert "at 0.97" in found.problems[-1]
    assert "at 0.97" not in llama(**r1, tensor_parallel=2).problems[-1]


def test_less_evidence_is_never_a_narrower_band() -> None:
    bands = load_bands()
    codes = np.arange(len(EVIDENCE))
    for metric in METRICS:
        for engine in ENGINES:
            assert np.all(np.diff(bands.multiplier(metric, engine, codes, 0.9)) >= 0)
            assert np.all(np.diff(bands.multiplier(metric, engine, codes, 0.1)) <= 0)
            levels = [float(bands.multiplier(metric, engine, 0, level)) for level in np.linspace(0.02, 0.98, 40)]
            assert np.all(np.diff(levels) >= 0)
    with pytest.raises(ValueError, match="between 0 and 1"):
        bands.multiplier("tpot_ms", "vllm", 0, 1.0)


def test_every_generation_has_its_evidence() -> None:
    codes = load_bands().evidence_of("Llama-3.1-70B", np.arange(len(GENERATIONS)))
    named = dict(zip(GENERATIONS, [EVIDENCE[code] for code in codes], strict=True))
    assert named["hopper"] == named["blackwell"] == "configuration"
    assert named["ampere"] == named["cdna3"] == "accelerator"
    assert named["gaudi3"] == named["volta"] == "none"
    assert EVIDENCE[load_bands().evidence_of(None, [GENERATIONS.index("hopper")])[0]] == "model"


def test_ages() -> None:
    assert engine_age_years("vllm", "") == engine_age_years("vllm", "nightly-5b8c30d") == 0.0
    assert engine_age_years("vllm", "0.19.0") < engine_age_years("vllm", "0.12.0") < engine_age_years("vllm", "0.11.0")
    assert engine_age_years("vllm", "0.6.5") == LARGEST_AGE_YEARS
    assert release_day("trtllm", "1.2.0rc6.post2") == date(2026, 1, 15)
    assert release_day("trtllm", "1.2.0rc2") == date(2025, 11, 10)
    assert release_day("sglang", "0.1") == date(2024, 12, 4)
    assert age_years(date(2030, 1, 1)) == 0.0
