"""Each verb by itself; the solver is a stand-in."""

import csv
import io
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest
from click.testing import CliRunner, Result

from optimizer.commands import answering
from optimizer.commands.app import app
from optimizer.commands.interrupt import interruptible
from optimizer.commands.new import templates
from optimizer.errors import CODES
from optimizer.instance import schema
from optimizer.instance.reading import read_instance
from tests.instance.samples import changed, sound


def run(*args: object) -> Result:
    """Run the command line in this process."""
    return CliRunner().invoke(app, [str(one) for one in args])


def names(folder: Path) -> list[str]:
    """What lies in a folder."""
    return sorted(one.name for one in folder.iterdir())


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    """A sound instance in a folder of its own."""
    path = tmp_path / "my.json"
    path.write_text(json.dumps(sound(), indent=2), encoding="utf-8")
    return path


class Answer(NamedTuple):
    """A plan or diagnosis as far as a verb looks into it."""

    name: str

    def model_dump_json(self, **_how: Any) -> str:
        return json.dumps({"name": self.name, "provenance": {}})


class Solved(NamedTuple):
    """What the stand-in gives."""

    plan: Any = None
    diagnosis: Any = None
    exit_code: int = 0
    timing: dict[str, float] = {}  # noqa: RUF012 - never changed


class TestSolve:
    """Files, streams and options of ``optimize solve``."""

    @pytest.fixture
    def calls(self, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
        """Options that reached the stand-in, whose answer is a proven plan."""
        seen: list[dict[str, Any]] = []

        def solve(wanted: Any, path: Path, **options: Any) -> Solved:
            seen.append({"name": wanted.name, "path": path, **options})
            return Solved(plan=Answer(wanted.name))

        monkeypatch.setattr(answering, "solve", solve)
        monkeypatch.setattr(answering, "screen", lambda _solved: "THE SCREEN")
        return seen

    def answer(self, monkeypatch: pytest.MonkeyPatch, solved: Solved) -> None:
        monkeypatch.setattr(answering, "solve", lambda *_args, **_more: solved)
        monkeypatch.setattr(answering, "screen", lambda _solved: "THE SCREEN")

    @pytest.mark.usefixtures("calls")
    def test_the_screen_is_data_and_the_file_is_talk(self, instance: Path) -> None:
        result = run(instance)
        assert (result.exit_code, result.stdout) == (0, "THE SCREEN\n")
        plan = instance.with_name("my.plan.json")
        assert result.stderr == f"written     {plan}\n"
        assert json.loads(plan.read_text())["name"] == "sample"
        assert run(instance).exit_code == 0, "its own plan may be written again"

    def test_options_reach_the_solver(self, calls: list[dict[str, Any]], instance: Path, tmp_path: Path) -> None:
        lp = tmp_path / "model.lp"
        run(
            instance,
            "--time-limit",
            "5",
            "--gap",
            "0.01",
            "--threads",
            "2",
            "--seed",
            "3",
            "--export",
            lp,
            "--runners-up",
            "4",
            "--distinct",
            "cooling",
        )
        stop = calls[0].pop("stop")
        assert not stop()
        expected = {"time_limit_s": 5.0, "gap": 0.01, "threads": 2, "seed": 3, "export": lp}
        expected |= {"runners_up": 4, "distinct": ("cooling",), "baseline": None, "quiet": False}
        assert calls[0] == {"name": "sample", "path": instance, **expected}

    @pytest.mark.parametrize(
        "options", [["--gap", "-1"], ["--gap", "x"], ["--time-limit", "0"], ["--threads", "0"], ["--export", "a.txt"]]
    )
    def test_wrong_options_are_wrong_usage(
        self, calls: list[dict[str, Any]], instance: Path, options: list[str]
    ) -> None:
        assert run(instance, *options).exit_code == 2
        assert calls == []

    @pytest.mark.usefixtures("calls")
    def test_json(self, instance: Path) -> None:
        result = run(instance, "--json")
        assert json.loads(result.stdout)["name"] == "sample"
        assert result.stdout == instance.with_name("my.plan.json").read_text()

    @pytest.mark.usefixtures("calls")
    def test_output_elsewhere(self, instance: Path, tmp_path: Path) -> None:
        assert run(instance, "-o", tmp_path / "x.json").exit_code == 0
        assert names(tmp_path) == ["my.json", "x.json"]

    @pytest.mark.usefixtures("calls")
    def test_output_to_stdout_writes_no_file(self, instance: Path, tmp_path: Path) -> None:
        result = run(instance, "-o", "-")
        assert json.loads(result.stdout)["name"] == "sample"
        assert (result.stderr, names(tmp_path)) == ("", ["my.json"])

    @pytest.mark.usefixtures("calls")
    def test_quiet(self, instance: Path) -> None:
        result = run(instance, "--quiet", "--json")
        assert (result.exit_code, result.output) == (0, "")
        assert instance.with_name("my.plan.json").exists()

    def test_other_files_are_kept_and_nothing_is_solved(self, calls: list[dict[str, Any]], instance: Path) -> None:
        other = instance.with_name("my.plan.json")
        other.write_text("notes")
        result = run(instance)
        assert result.exit_code == 3
        assert "E-OUTPUT-001" in result.stderr
        assert (other.read_text(), calls) == ("notes", [])
        assert run(instance, "-o", instance).exit_code == 3, "the instance itself is no plan"
        assert run(instance, "--force").exit_code == 0
        assert other.read_text() != "notes"

    def test_infeasible(self, monkeypatch: pytest.MonkeyPatch, instance: Path) -> None:
        old = instance.with_name("my.plan.json")
        old.write_text('{"name": "sample", "provenance": {}}')
        self.answer(monkeypatch, Solved(diagnosis=Answer("sample"), exit_code=4))
        result = run(instance)
        assert (result.exit_code, result.stdout) == (4, "THE SCREEN\n")
        assert instance.with_name("my.diagnosis.json").exists()
        assert f"{old} is from an earlier run" in result.stderr

    def test_stopped_early_with_a_plan(self, monkeypatch: pytest.MonkeyPatch, instance: Path) -> None:
        self.answer(monkeypatch, Solved(plan=Answer("sample"), exit_code=5))
        assert run(instance).exit_code == 5
        assert instance.with_name("my.plan.json").exists()

    def test_stopped_with_nothing(self, monkeypatch: pytest.MonkeyPatch, instance: Path, tmp_path: Path) -> None:
        self.answer(monkeypatch, Solved(exit_code=6))
        result = run(instance)
        assert (result.exit_code, result.stdout) == (6, "")
        assert "no plan" in result.stderr
        assert names(tmp_path) == ["my.json"]

    def test_the_first_interrupt_asks_and_the_second_gives_up(self) -> None:
        before = signal.getsignal(signal.SIGINT)
        with interruptible() as stop:
            assert not stop()
            signal.raise_signal(signal.SIGINT)
            assert stop()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is before

    def test_a_missing_solver_is_told(self, monkeypatch: pytest.MonkeyPatch, instance: Path) -> None:
        def missing(*_args: Any, **_more: Any) -> Any:
            raise ModuleNotFoundError("No module named 'highspy'", name="highspy")

        monkeypatch.setattr("optimizer.api.solve", missing)
        result = run(instance)
        assert result.exit_code == 7
        assert "highspy is not installed" in result.stderr


class TestCheck:
    """What ``optimize check`` says."""

    def test_screen(self, instance: Path) -> None:
        result = run("check", instance)
        assert result.exit_code == 0
        assert "h100-80gb-sxm, l40s" in result.stdout
        assert "targets.vram_fraction" in result.stdout
        assert names(instance.parent) == ["my.json"]

    def test_everything_is_searched_where_nothing_is_chosen(self, tmp_path: Path) -> None:
        path = tmp_path / "my.json"
        path.write_text(json.dumps(changed({"choices": ...})))
        found = json.loads(run("check", path, "--json").stdout)
        assert "h100-80gb-sxm" in found["searched"]["accelerators"]
        assert "v100-32gb-sxm" not in found["searched"]["accelerators"]
        assert "w16a16" in found["searched"]["schemes"]
        assert all(one["source"] for one in found["defaults"])

    @pytest.mark.parametrize("columns", ["60", "80"])
    def test_it_keeps_to_the_width(self, instance: Path, columns: str) -> None:
        result = CliRunner().invoke(app, ["check", str(instance)], env={"COLUMNS": columns})
        long = [line for line in result.stdout.splitlines()[1:] if len(line) > int(columns) and " " in line.strip()]
        assert long == []


class TestExplain:
    """What ``optimize explain`` says."""

    @pytest.mark.parametrize("code", sorted(CODES))
    def test_every_code(self, code: str) -> None:
        result = run("explain", code)
        assert result.exit_code == 0
        assert CODES[code].meaning in result.stdout

    def test_case_does_not_matter(self) -> None:
        assert run("explain", "e-targets-003").stdout == run("explain", "E-TARGETS-003").stdout

    def test_infeasible_instance(self, monkeypatch: pytest.MonkeyPatch, instance: Path) -> None:
        monkeypatch.setattr(answering, "solve", lambda *_, **__: Solved(diagnosis=Answer("x"), exit_code=4))
        monkeypatch.setattr(answering, "screen", lambda _solved: "THE DIAGNOSIS")
        result = run("explain", instance)
        assert (result.exit_code, result.stdout) == (0, "THE DIAGNOSIS\n")
        assert names(instance.parent) == ["my.json"]

    def test_feasible_instance(self, monkeypatch: pytest.MonkeyPatch, instance: Path) -> None:
        monkeypatch.setattr(answering, "solve", lambda *_, **__: Solved(plan=Answer("x")))
        assert "meets every limit" in run("explain", instance).stdout


class TestCatalog:
    """What ``optimize catalog`` shows."""

    @pytest.mark.parametrize("what", ["accelerators", "models", "schemes", "cooling", "prices"])
    def test_tables(self, what: str) -> None:
        screen = run("catalog", what)
        assert screen.exit_code == 0
        assert max(map(len, screen.stdout.splitlines())) <= 80
        rows = list(csv.DictReader(io.StringIO(run("catalog", what, "--csv").stdout)))
        objects = json.loads(run("catalog", what, "--json").stdout)
        assert len(rows) == len(objects) == int(screen.stderr.split()[0])
        assert list(rows[0]) == list(objects[0])
        assert all(one["source"] for one in objects)

    def test_json_and_csv_exclude_each_other(self) -> None:
        assert run("catalog", "models", "--json", "--csv").exit_code == 2


class TestNew:
    """Templates."""

    @pytest.mark.parametrize("name", sorted(templates()))
    def test_a_template_is_sound(self, name: str, tmp_path: Path) -> None:
        path = tmp_path / "my.json"
        path.write_text(run("new", name).stdout)
        assert read_instance(path).name
        jsonschema.validate(json.loads(path.read_text()), schema.committed())

    def test_the_smallest_has_about_ten_lines(self) -> None:
        assert len(run("new", "serving-8b").stdout.splitlines()) <= 10

    def test_list(self) -> None:
        assert [line.split()[0] for line in run("new").stdout.splitlines()] == sorted(templates())

    def test_output(self, tmp_path: Path) -> None:
        path = tmp_path / "my.json"
        assert run("new", "serving-8b", "-o", path).exit_code == 0
        assert run("new", "serving-8b", "-o", path).exit_code == 3
        assert run("new", "serving-8b", "-o", path, "--force").exit_code == 0


class TestSchema:
    """Schemas."""

    def test_instance_is_the_default_and_the_committed_one(self) -> None:
        assert run("schema").stdout == run("schema", "instance").stdout == schema.INSTANCE_SCHEMA.read_text()

    @pytest.mark.parametrize("what", ["plan", "diagnosis"])
    def test_answers(self, what: str) -> None:
        found = json.loads(run("schema", what).stdout)
        jsonschema.Draft202012Validator.check_schema(found)
        assert found["properties"]["provenance"]


class TestDoctor:
    """The installation's own test."""

    def test_healthy(self) -> None:
        result = run("doctor")
        assert "FAILED" not in result.stdout
        assert result.exit_code == 0
        assert "highspy" in result.stdout

    def test_ill(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken() -> None:
            raise ImportError("no such thing")

        tests: tuple[tuple[str, Callable[[], None]], ...] = (("the sun shines", broken),)
        monkeypatch.setattr("optimizer.commands.doctor._TESTS", tests)
        result = run("doctor")
        assert result.exit_code == 7
        assert "FAILED: ImportError: no such thing" in result.stdout

    def test_another_package_named_constraints(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("constraints.OWNER", "somebody else")
        result = run("doctor")
        assert result.exit_code == 7
        assert "another distribution has replaced `constraints`" in result.stdout
