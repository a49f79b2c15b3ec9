"""estimate, validate and calibrate on the command line."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from optimizer.calibration.packaged import packaged_text
from optimizer.calibration.validation import ADDED
from optimizer.commands.app import app


def run(*args: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        app.main(list(args))
    seen = capsys.readouterr()
    return int(left.value.code or 0), seen.out, seen.err


def some_points(folder: Path, rows: int = 40) -> Path:
    path = folder / "points.csv"
    path.write_text("".join(packaged_text().splitlines(keepends=True)[: rows + 1]), encoding="utf-8")
    return path


LLAMA = ("estimate", "--model", "meta-llama/Llama-3.1-70B", "--accelerator", "H200 SXM", "--precision", "fp8")


def test_estimate(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(*LLAMA, "--tensor-parallel", "8", "--concurrency", "64", "--engine", "vllm", capsys=capsys)
    assert code == 0
    assert "Starts      yes" in out
    assert "Time per token, ms" in out
    assert max(map(len, out.splitlines())) <= 80


def test_estimate_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(*LLAMA, "--tensor-parallel", "6", "--json", capsys=capsys)
    found: dict[str, Any] = json.loads(out)
    assert code == 0
    assert not found["starts"]
    assert found["tpot_ms"]["low"] < found["tpot_ms"]["value"] < found["tpot_ms"]["high"]


def test_unknown_names_are_input_errors(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run("estimate", "--model", "nobody/nothing", "--accelerator", "h200_sxm", capsys=capsys)
    assert code == 3
    assert "E-TABLE-001" in err
    code, _, err = run("validate", "no such file.csv", capsys=capsys)
    assert code == 3


def test_validate_writes_the_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, out_path = some_points(tmp_path), tmp_path / "predictions.csv"
    code, out, _ = run("validate", str(table), "-o", str(out_path), capsys=capsys)
    assert code == 0
    assert "tokens/s" in out
    with out_path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 40
    assert set(ADDED) <= set(rows[0])
    code, out, _ = run("validate", str(table), "--json", capsys=capsys)
    assert json.loads(out)[0]["rows"] == 40


def test_calibrate_and_use_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, mine = some_points(tmp_path), tmp_path / "mine.json"
    code, out, _ = run("calibrate", str(table), "-o", str(mine), capsys=capsys)
    assert code == 0
    assert "before" in out
    code, _, _ = run("validate", str(table), "--calibration", str(mine), "--json", capsys=capsys)
    assert code == 0
    mine.write_text('{"factors": {"nonsense": 1}}', encoding="utf-8")
    code, _, err = run("validate", str(table), "--calibration", str(mine), capsys=capsys)
    assert code == 3
    assert "optimize calibrate" in err


@pytest.mark.parametrize("option", ["--concurrency", "--input-tokens", "--output-tokens"])
@pytest.mark.parametrize("value", ["nan", "inf", "0", "1e300"])
def test_numbers_that_mean_nothing_are_wrong_usage(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, error = run(*LLAMA, option, value, capsys=capsys)
    assert (code, out) == (2, "")
    assert option in error
