"""The group: exit codes, streams, lightness, the default verb."""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from optimizer.commands.app import VERBS, app, module_of
from optimizer.commands.talk import ReaderGone
from optimizer.errors import GateFailed, InternalError, OptimizerError, SolverError, StoppedWithoutPlan
from tests.instance.samples import changed, sound

ROOT = Path(__file__).parent.parent.parent

#: What must not be loaded for a help text or an input error.
HEAVY = ("numpy", "pyomo", "highspy", "rich", "pydantic", "optimizer.catalog.catalog", "jsonschema")


def run(*args: str, **more: str) -> Result:
    """Run the command line in this process."""
    return CliRunner().invoke(app, args, env={"OPTIMIZE_DEBUG": "", **more})


def python(code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a piece of Python in a fresh process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd, env=environment, check=False
    )


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    """A sound instance in a folder of its own."""
    path = tmp_path / "my.json"
    path.write_text(json.dumps(sound(), indent=2), encoding="utf-8")
    return path


def raising(error: BaseException) -> click.Command:
    """A verb that fails in a given way."""

    @click.command()
    @click.argument("rest", nargs=-1)
    def fail(rest: tuple[str, ...]) -> int:
        raise error

    return fail


def test_help_lists_every_verb_with_the_summary_of_its_module() -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    for name, verb in VERBS.items():
        command = getattr(import_module(f"optimizer.commands.{module_of(name)}"), verb.attribute)
        assert isinstance(command, click.Command)
        assert f"\n  {name} " in result.stdout
        page = run(name, "--help")
        assert page.exit_code == 0
        assert max(map(len, page.stdout.splitlines())) <= 80


def test_version() -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith("optimize ")


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("--help",), 0),
        ((), 2),
        (("solve",), 2),
        (("--colour",), 2),
        (("catalog", "gpus"), 2),
        (("chek",), 2),
        (("explain", "E-NO-001"), 2),
        (("explain", "E-TARGETS-003"), 0),
        (("new", "nothing"), 2),
        (("nowhere.json",), 3),
        (("check", "nowhere.json"), 3),
        (("explain", "nowhere.json"), 3),
    ],
)
def test_exit_code(args: tuple[str, ...], code: int) -> None:
    result = run(*args)
    assert result.exit_code == code
    if code:
        assert result.stdout == ""
        assert result.stderr


def test_a_misspelt_verb_is_told() -> None:
    assert "Did you mean `optimize check`?" in run("chek").stderr


def test_instance_needs_no_verb_wherever_options_stand(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text("{")
    for args in ([str(path)], ["--quiet", str(path)], ["solve", str(path)], ["--debug", "-o", "-", str(path)]):
        result = run(*args)
        assert result.exit_code == 3, args
        assert "E-FILE-007" in result.stderr


def test_a_file_named_like_a_verb_is_reached_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("check").write_text("{")
    assert run("check").exit_code == 2
    assert "E-FILE-007" in run("./check").stderr
    assert "E-FILE-007" in run("solve", "check").stderr


def test_every_problem_is_a_line_on_stderr(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(changed({"name": "", "targets/tpot_ms": -5, "solver/gapp": 1})))
    result = run(str(path))
    assert result.exit_code == 3
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 3
    assert all(line.startswith("error[E-") for line in result.stderr.splitlines())


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (SolverError("it went wrong"), 7, "error: it went wrong"),
        (StoppedWithoutPlan("too early"), 6, "error: too early"),
        (SolverError("one\ntwo\x1b"), 7, "error: one\n  two\\x1b\n"),
        (GateFailed("too dear"), 8, "error: too dear"),
        (InternalError("verify disagrees"), 1, "this is our bug"),
        (OptimizerError("something"), 1, "error: something"),
        (ZeroDivisionError("division by zero"), 1, "this is our bug, not yours: ZeroDivisionError: division by zero"),
        (RecursionError("too deep"), 1, "this is our bug"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (click.Abort(), 130, "interrupted"),
        (ReaderGone(), 141, ""),
    ],
)
def test_what_a_failure_becomes(monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, words: str) -> None:
    monkeypatch.setattr("optimizer.commands.solve.solve", raising(error))
    result = run("solve", "x")
    assert result.exit_code == code
    assert words in result.stderr
    assert "Traceback" not in result.output


def test_a_bug_shows_its_traceback_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optimizer.commands.solve.solve", raising(ValueError("oops")))
    silent = run("solve", "x")
    assert "highspy" in silent.stderr, "versions of what the answer depends on"
    assert "Traceback" not in silent.stderr
    assert "Traceback" in run("--debug", "solve", "x").stderr
    assert "Traceback" in run("solve", "x", OPTIMIZE_DEBUG="1").stderr


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["bad.json"], ["nowhere.json"], ["explain", "E-FILE-001"]])
def test_what_needs_no_library_loads_none(args: list[str], tmp_path: Path) -> None:
    bad = changed({"targets/tpot_ms": "150 ms", "choices/tensor_parallel": [], "nmae": 1, "targets/latency_ms": 1})
    (tmp_path / "bad.json").write_text(json.dumps(bad))
    result = python(
        f"import sys\nfrom optimizer.commands.app import app\ntry:\n    app({args})\nexcept SystemExit: pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules])",
        tmp_path,
    )
    assert result.stdout.splitlines()[-1] == "[]", result


def test_importing_the_command_line_loads_almost_nothing(tmp_path: Path) -> None:
    result = python(
        "import sys, optimizer.commands\nprint('click' in sys.modules, 'pydantic' in sys.modules)", tmp_path
    )
    assert result.stdout == "False False\n"


def test_launcher_of_a_checkout(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, str(ROOT / "cli.py"), "nowhere.json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert result.returncode == 3
    assert result.stdout == ""
    assert result.stderr == "error[E-FILE-001] nowhere.json: found no such file; must be a JSON file\n"


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    code = "from optimizer.commands import main; import sys; sys.argv = ['optimize', 'schema']; main()"
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        result = subprocess.run(
            [sys.executable, "-c", code],
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
        )
    assert (result.returncode, result.stderr) == (141, "")


def test_a_terminal_without_unicode_gets_escapes(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({"東京": 1}, ensure_ascii=False), encoding="utf-8")
    result = subprocess.run(
        [sys.executable, str(ROOT / "cli.py"), str(path)],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"},
        check=False,
    )
    assert result.returncode == 3
    assert rb"\u6771\u4eac" in result.stderr


@pytest.mark.parametrize(
    ("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colour_is_for_terminals_that_want_it(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], coloured: bool
) -> None:
    from optimizer.commands import talk

    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert ("\x1b[" in talk._bold_red("error")) is coloured
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    assert talk._bold_red("error") == "error"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_under_the_output_is_not_our_bug(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, str(ROOT / "cli.py"), "catalog", "accelerators"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr.startswith("error[E-OUTPUT-002] standard output:")
    assert "our bug" not in done.stderr
