"""validate and calibrate of training steps on the command line."""

import csv
import json
from pathlib import Path

import pytest

from optimizer.calibration.training.packaged import packaged_text
from tests.commands.test_predictions import run


def steps(folder: Path, rows: int = 30) -> Path:
    path = folder / "steps.csv"
    path.write_text("".join(packaged_text().splitlines(keepends=True)[: rows + 1]), encoding="utf-8")
    return path


def test_validate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out_path = tmp_path / "out.csv"
    given = ("validate", "--kind", "training", str(steps(tmp_path)))
    code, out, err = run(*given, "-o", str(out_path), capsys=capsys)
    assert code == 0
    assert "by stack" in out
    assert "written" in err
    assert max(map(len, out.splitlines())) <= 80
    with out_path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 30
    assert all(row["status"] == "ok" and float(row["predicted_step_s"]) > 0 for row in rows)


def test_the_kind_is_told_by_the_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("validate", str(steps(tmp_path)), "--json", capsys=capsys)
    assert code == 0
    assert json.loads(out)[0]["step_mean_error"] < 0.1
    code, out, _ = run("validate", str(steps(tmp_path)), "-o", "-", capsys=capsys)
    assert out.startswith("row_id,")
    assert len(out.splitlines()) == 31


def test_calibrate_and_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, own = steps(tmp_path, 4), tmp_path / "own.json"
    code, out, _ = run("calibrate", str(path), "-o", str(own), capsys=capsys)
    assert code == 0
    assert "4 training steps used" in out
    code, out, _ = run("validate", str(path), "--calibration", str(own), capsys=capsys)
    assert code == 0
    code, out, _ = run("calibrate", str(path), "--json", capsys=capsys)
    assert json.loads(out)["points"] == 4
    code, out, _ = run("calibrate", str(path), "-o", "-", capsys=capsys)
    assert json.loads(out)["kind"] == "training"


@pytest.mark.parametrize("text", ["", "gpu,seq_len,global_batch\n", "no table"])
def test_tables_without_rows_are_input_errors(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.csv"
    path.write_text(text, encoding="utf-8")
    for verb in ("validate", "calibrate"):
        code, _, err = run(verb, "--kind", "training", str(path), capsys=capsys)
        assert code == 3
        assert "E-TABLE-001" in err


def test_a_serving_calibration_is_none_of_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "own.json"
    for text in ('{"factors": {}}', "[]", "{", '{"kind": "training"}'):
        own.write_text(text, encoding="utf-8")
        code, _, err = run("validate", str(steps(tmp_path)), "--calibration", str(own), capsys=capsys)
        assert code == 3
        assert "E-TABLE-001" in err
