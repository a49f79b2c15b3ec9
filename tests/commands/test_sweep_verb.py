"""``optimize sweep``: what it says first, what it writes, how it refuses, how it goes on."""

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete

from optimizer.commands.app import app
from optimizer.commands.field_completion import complete_vary
from optimizer.instance.field_paths import document_of
from tests.studies.small import small

DEMAND = "workload.demand.requests_per_s"


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "small.json").write_text(json.dumps(document_of(small())), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return "small.json"


def run(*args: str) -> int:
    with pytest.raises(SystemExit) as left:
        app.main(["sweep", *args])
    return int(left.value.code or 0)


def test_cases_are_counted_first_and_written(instance: str, capsys: pytest.CaptureFixture[str]) -> None:
    vary = ["--vary", f"{DEMAND}=900,950,1000", "--vary", "targets.tpot_ms=0.1,60"]
    assert run(instance, *vary, "-o", "a.csv", "--jobs", "1") == 0
    out, err = capsys.readouterr()
    assert err.startswith(f"6 cases: 3 of {DEMAND} x 2 of targets.tpot_ms\n")
    assert "nothing fits: targets.tpot_ms" in out
    assert all(len(line) <= 80 for line in out.splitlines())
    rows = list(csv.DictReader(io.StringIO(Path("a.csv").read_text(encoding="utf-8"))))
    assert [row["status"] for row in rows] == ["infeasible", "optimal"] * 3
    assert rows[1]["winner"] == "2 x h100-80gb-sxm x8 (bought, air_containment_econ)"
    assert not Path("a.csv.part").exists()
    assert run(instance, *vary, "-o", "a.json", "--jobs", "1", "-q") == 0
    told = json.loads(Path("a.json").read_text(encoding="utf-8"))
    assert told["rows"][3]["values"] == {DEMAND: 950, "targets.tpot_ms": 60}
    assert capsys.readouterr() == ("", "")


def test_parquet_holds_the_same_rows(instance: str) -> None:
    from pyarrow import parquet

    assert run(instance, "--vary", "site.power_kw=null,1", "-o", "a.parquet", "-q") == 0
    assert run(instance, "--vary", "site.power_kw=null,1", "-o", "a.csv", "-q") == 0
    table = parquet.read_table("a.parquet").to_pylist()
    rows = list(csv.DictReader(io.StringIO(Path("a.csv").read_text(encoding="utf-8"))))
    assert [row["usd_per_year"] for row in table] == [float(row["usd_per_year"]) for row in rows]


def test_parquet_without_its_package_is_told(
    instance: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run(instance, "--vary", "site.power_kw=null,1", "-o", "a.parquet") == 2
    assert "E-SWEEP-310" in capsys.readouterr().err


def test_everything_that_is_bad_is_told_at_once(instance: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(instance, "--vary", "targets.tpot=1", "--vary", "site.power_kw=-5", "--vary", "site.racks=a") == 2
    err = capsys.readouterr().err
    codes = [line.partition("[")[2].partition("]")[0] for line in err.splitlines()]
    assert codes == ["E-SWEEP-302", "E-SITE-003", "E-SWEEP-303"]
    assert "Did you mean targets.tpot_ms?" in err
    assert run(instance) == 2
    assert run(instance, "--vary", "site.racks=1", "-o", "a.txt") == 2


def test_what_was_interrupted_goes_on(
    instance: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from optimizer.studies.sweeping import runners

    vary = ["--vary", "targets.tpot_ms=50,60", "--vary", f"{DEMAND}=900,950", "--vary", "targets.spare_servers=0,1"]
    once = runners.here

    def only_two(job: Any, pieces: Any, stop: Any, tell: Any = None) -> Any:
        yield from once(job, pieces[:2], stop, tell)

    with monkeypatch.context() as patched:
        patched.setattr(runners, "here", only_two)
        assert run(instance, *vary, "-o", "a.csv", "--jobs", "1") == 5
    part = Path("a.csv").read_text(encoding="utf-8")
    assert "goes on from a.csv.part" in capsys.readouterr().err
    assert 1 < len(part.splitlines()) < 9
    assert run(instance, *vary, "-o", "a.csv", "--jobs", "1") == 0
    whole = Path("a.csv").read_bytes()
    assert set(part.splitlines()) < set(whole.decode().splitlines())
    assert run(instance, *vary, "-o", "b.csv", "--jobs", "1") == 0
    assert Path("b.csv").read_bytes() == whole


def test_paths_and_words_are_completed(instance: str) -> None:
    import click

    ctx = click.Context(click.Command("sweep"))
    ctx.params["instance"] = instance
    parameter = click.Option(["--vary"])
    names = [one.value for one in complete_vary(ctx, parameter, "targets.tp")]
    assert names == ["targets.tpot_ms="]
    words = [one.value for one in complete_vary(ctx, parameter, "workload.engine=vllm,s")]
    assert words == ["workload.engine=vllm,sglang"]


def completed(*typed: str) -> list[str]:
    """What the shell offers for the last word typed after ``optimize sweep``."""
    *before, incomplete = typed
    found = ShellComplete(app, {}, "optimize", "_OPTIMIZE_COMPLETE").get_completions(["sweep", *before], incomplete)
    return [one.value for one in found]


def test_the_shell_completes_fields_of_the_instance_at_hand(tmp_path: Path) -> None:
    request = {"input_tokens": 500, "output_tokens": 100}
    classes = [{"name": name, "request": request, "demand": {"requests_per_s": 9.0}} for name in ("chat", "batch")]
    document = document_of(small())
    document["workload"] = {"model": "llama-3.1-8b", "classes": classes}
    path = tmp_path / "two.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    for begun in ("workload.classes.batch.", "workload.classes[1].", "workload.classes.*."):
        assert completed(str(path), "--vary", f"{begun}demand.req") == [f"{begun}demand.requests_per_s="]
    assert completed(str(path), "--jobs", "1", "--vary", "economics.prices.*.ser") == ["economics.prices.*.server_usd="]
    assert "workload.classes.chat.request.input_tokens=" in completed(str(path), "--vary", "workload.cl")
    assert completed(str(path), "--vary", "workload.engine=s") == ["workload.engine=sglang"]
    assert completed("nowhere.json", "--vary", "targets.tp") == ["targets.tpot_ms="]
    assert completed("--vary", "targets.*") == []
