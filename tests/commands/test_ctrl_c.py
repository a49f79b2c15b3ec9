"""Ctrl-C in the middle of long verbs, as a terminal sends it: real processes on a pseudo-terminal.

What was done is left whole and valid, the exit code says that it is not all, and what can be resumed ends in the same
bytes.
"""

import csv
import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optimizer import api
from optimizer.instance.field_paths import document_of
from tests.studies.small import small
from tests.studies.test_sweep import BUY, DEMAND

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo-terminals here")]

ROOT = Path(__file__).parent.parent.parent
#: Exit code of what was stopped and left a part.
STOPPED = 5
#: Seconds within which a verb says that it is under way, or ends: patience, not a bound on speed.
PATIENCE_S = 300.0

UNCERTAIN = {
    "fields": [
        {"field": DEMAND, "distribution": "uniform", "low": 600, "high": 1200},
        {"field": BUY, "distribution": "uniform", "low": 0.8, "high": 1.3, "is_multiple": True},
    ],
    "scenarios": 400,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    document = document_of(small(choices={"accelerators": ["h100-80gb-sxm", "l40s"]}))
    document["uncertainty"] = UNCERTAIN
    (tmp_path / "small.json").write_text(json.dumps(document), encoding="utf-8")
    return tmp_path


def command(*args: str) -> list[str]:
    return [sys.executable, str(ROOT / "cli.py"), *args]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "200", "NO_COLOR": "1"}


def interrupted(folder: Path, args: list[str], is_under_way: Callable[[str], bool]) -> tuple[int, str]:
    """(exit code, what stood on the terminal) of a verb that gets a Ctrl-C as soon as it is under way."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        command(*args),
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    said, began, asked = "", time.monotonic(), False
    try:
        while process.poll() is None:
            assert time.monotonic() - began < PATIENCE_S, said
            ready, _, _ = select.select([ours], [], [], 0.02)
            if ready:
                said += _read(ours)
            if not asked and is_under_way(said):
                os.killpg(process.pid, signal.SIGINT)
                asked = True
        said += _read(ours)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(ours)
    assert asked, f"ended before it could be stopped:\n{said}"
    return process.returncode, said


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, 65536).decode(errors="replace")
    except OSError:  # the other end is closed
        return ""


def shows(words: str) -> Callable[[str], bool]:
    """Whether the line of progress stands on the terminal and says so."""
    return lambda said: re.search(words, said) is not None


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_sweep_goes_on_to_the_same_bytes(folder: Path, jobs: str) -> None:
    vary = ["--vary", f"{DEMAND}=600:1200:20", "--vary", "targets.spare_servers=0,1,2", "--no-reuse", "--jobs", jobs]
    part = folder / "a.csv.part"

    def is_under_way(_: str) -> bool:
        return part.exists() and len(part.read_text(encoding="utf-8").splitlines()) > 1

    code, said = interrupted(folder, ["sweep", "small.json", *vary, "-o", "a.csv"], is_under_way)
    assert code == STOPPED, said
    assert "stopping" in said
    assert "Traceback" not in said
    rows = list(csv.DictReader(io.StringIO((folder / "a.csv").read_text(encoding="utf-8"))))
    assert 0 < len(rows) < 60
    assert {row["status"] for row in rows} == {"optimal"}
    assert part.exists()
    for name in ("a.csv", "whole.csv"):
        again = command("sweep", "small.json", *vary, "-o", name, "--quiet", "--force")
        subprocess.run(again, cwd=folder, env=environment(), check=True, stdin=subprocess.DEVNULL)
    assert (folder / "a.csv").read_bytes() == (folder / "whole.csv").read_bytes()
    assert not part.exists()


CASES: list[tuple[list[str], str]] = [
    (["frontier", "small.json", "--trade", "cost,targets.tpot_ms,site.power_kw", "--step", "0"], r"[1-9]\d* done"),
    (["tornado", "small.json"], r"[1-9]\d* done"),
    (["tipping", "small.json", "--vary", f"{DEMAND}=600:1200", "--resolution", "1"], r"[1-9]\d* done"),
    (["map", "small.json", "--vary", f"{DEMAND}=600:1200:30", "--vary", f"{BUY}=x0.5..x2:30"], r"[1-9]\d* done"),
    (["robust", "small.json"], r"program over"),
]


@pytest.mark.parametrize(("args", "words"), CASES, ids=[args[0] for args, _ in CASES])
def test_what_was_done_is_left_whole(folder: Path, args: list[str], words: str) -> None:
    code, said = interrupted(folder, [*args, "-o", "a.json"], shows(words))
    assert code == STOPPED, said
    assert "stopping" in said
    assert "Traceback" not in said
    told: dict[str, Any] = json.loads((folder / "a.json").read_text(encoding="utf-8"))
    assert told.get("is_complete", told.get("moved", 0) == told.get("total")) is False
    assert sorted(path.name for path in folder.iterdir()) == ["a.json", "small.json"]


INSTANCES = ROOT / "instances"
SOLVING: list[tuple[list[str], int]] = [
    (["explain", "hard.json", "--not", "accelerator=gaudi3"], 0),
    (["evaluate", "hard.json", str(INSTANCES / "proposals" / "a100-2000.json")], 8),
    (["hard.json", "--runners-up", "20", "-o", "plan.json"], STOPPED),
]


@pytest.mark.parametrize(("args", "code"), SOLVING, ids=["explain", "evaluate", "solve"])
def test_searches_are_shown_and_stopped(folder: Path, args: list[str], code: int) -> None:
    """What is known when it is stopped is told, under the exit code of what is told."""
    document = document_of(api.load(INSTANCES / "dense-600b-open.json"))
    # Just enough power for any plan: mixed fleets compete, and a search takes seconds.
    document["site"] = {**document.get("site", {}), "power_kw": 430.0}
    (folder / "hard.json").write_text(json.dumps(document), encoding="utf-8")
    found, said = interrupted(folder, args, shows(r"searches.*\d+ done"))
    assert "Traceback" not in said
    assert "stopping" in said
    if code == STOPPED:
        # The search may prove the plan before it sees the signal; plan and exit code must say the same of it.
        plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
        code = 0 if plan["outcome"]["holds"] == "proven" else STOPPED
    assert found == code, said
