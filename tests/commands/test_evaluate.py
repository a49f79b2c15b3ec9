"""``optimize evaluate`` and ``--baseline``: exit codes, files, what is printed where."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from optimizer.commands.app import app
from tests.core.real import small
from tests.training.small import one_job


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An instance and two proposals, one of which is too small."""
    (tmp_path / "my.json").write_text(small().model_dump_json(by_alias=True, exclude_unset=True), encoding="utf-8")
    group = {"accelerator": "h100-80gb-sxm", "servers": 3, "tensor_parallel": 1}
    (tmp_path / "fine.json").write_text(json.dumps({"name": "fine", **group}), encoding="utf-8")
    (tmp_path / "none.json").write_text(json.dumps({**group, "accelerator": "h1000"}), encoding="utf-8")
    short = {**group, "replicas": 1, "concurrency": 1}
    (tmp_path / "short.json").write_text(json.dumps({"name": "short", **short}), encoding="utf-8")
    return tmp_path


def run(*arguments: Any) -> Result:
    """Run the command line."""
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_exit_codes_tell_whether_limits_hold(folder: Path) -> None:
    assert run("evaluate", folder / "my.json", folder / "fine.json").exit_code == 0
    broken = run("evaluate", folder / "my.json", folder / "short.json", "--no-optimum")
    assert broken.exit_code == 8
    assert "broken" in broken.stdout
    assert run("evaluate", folder / "my.json", folder / "none.json").exit_code == 3
    assert run("evaluate", folder / "my.json").exit_code == 2


def test_json_obeys_its_schema_and_is_written_whole(folder: Path) -> None:
    target = folder / "out.json"
    result = run("evaluate", folder / "my.json", folder / "fine.json", "--json", "-o", target)
    assert result.exit_code == 0
    schema = json.loads(run("schema", "evaluation").stdout)
    jsonschema.validate(json.loads(result.stdout), schema)
    assert json.loads(target.read_text(encoding="utf-8")) == json.loads(result.stdout)
    again = run("evaluate", folder / "my.json", folder / "short.json", "--no-optimum", "-q", "-o", target)
    assert (again.exit_code, again.stdout) == (8, "")
    other = folder / "precious.json"
    other.write_text("{}", encoding="utf-8")
    assert run("evaluate", folder / "my.json", folder / "fine.json", "-o", other).exit_code == 3
    assert other.read_text(encoding="utf-8") == "{}"


def test_a_written_plan_is_a_proposal_and_a_baseline(folder: Path) -> None:
    assert run(folder / "my.json", "-q").exit_code == 0
    plan = folder / "my.plan.json"
    found = run("evaluate", folder / "my.json", plan, "--json")
    assert found.exit_code == 0
    assert json.loads(found.stdout)["optimum"]["extra_fraction"] == pytest.approx(0.0, abs=2e-6)
    held = json.loads(run(folder / "my.json", "--json", "--baseline", plan).stdout)["baseline"]
    assert held["saving_usd_per_year"] == pytest.approx(0.0, abs=1e-3)


def test_baselines_are_shown_and_refused(folder: Path) -> None:
    naive = run(folder / "my.json", "--baseline", "naive")
    assert naive.exit_code == 0
    assert "Baseline  naive" in naive.stdout
    assert run(folder / "my.json", "--baseline", folder / "missing.json").exit_code == 3


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """An instance that trains and two proposals, one of which is late."""
    (tmp_path / "run.json").write_text(json.dumps(one_job()), encoding="utf-8")
    job = {"accelerator": "h100-80gb-sxm", "cooling": "d2c_1p"}
    (tmp_path / "fine.json").write_text(json.dumps({"name": "fine", "count": 128, **job}), encoding="utf-8")
    (tmp_path / "late.json").write_text(json.dumps({"jobs": [{"count": 8, **job}]}), encoding="utf-8")
    (tmp_path / "serving.json").write_text(json.dumps({"count": 128, "scheme": "w16a16", **job}), encoding="utf-8")
    return tmp_path


def test_a_run_is_evaluated_by_the_same_verb(run_folder: Path) -> None:
    fine = run("evaluate", run_folder / "run.json", run_folder / "fine.json", "--json", "-o", run_folder / "out.json")
    assert fine.exit_code == 0
    jsonschema.validate(json.loads(fine.stdout), json.loads(run("schema", "evaluation").stdout))
    late = run("evaluate", run_folder / "run.json", run_folder / "late.json")
    assert late.exit_code == 8
    assert "deadline, days" in late.stdout
    refused = run("evaluate", run_folder / "run.json", run_folder / "serving.json")
    assert refused.exit_code == 3
    assert "scheme" in refused.stderr
    schema = json.loads(run("schema", "proposal").stdout)
    for name in ("fine", "late"):
        jsonschema.validate(json.loads((run_folder / f"{name}.json").read_text(encoding="utf-8")), schema)


def test_a_proposal_for_a_run_answers_why_not(run_folder: Path) -> None:
    found = run("explain", run_folder / "run.json", "--not", run_folder / "late.json")
    assert found.exit_code == 0
    assert "deadline, days" in found.stdout
