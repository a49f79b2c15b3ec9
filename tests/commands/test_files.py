"""Writing answers: whole or not at all, over nothing else."""

import os
import stat
from pathlib import Path

import pytest

from optimizer.commands import files
from optimizer.errors import InputError

PLAN = '{"name": "sample", "provenance": {}}'


@pytest.mark.parametrize(
    ("instance", "answer"),
    [("a.json", "a.plan.json"), ("x/a.b.json", "x/a.b.plan.json"), ("a", "a.plan.json"), (".json", ".json.plan.json")],
)
def test_answer_stands_beside_the_instance(instance: str, answer: str) -> None:
    assert files.answer_path(Path(instance), "plan") == Path(answer)
    assert files.answer_path(Path("a.json"), "diagnosis") == Path("a.diagnosis.json")


def refused(path: Path, name: str = "sample", *, force: bool = False) -> str:
    """Code with which writing to a path is refused, or nothing."""
    try:
        files.guard(path, name, force=force)
    except InputError as error:
        return error.problems[0].code
    return ""


def test_a_free_path_and_an_earlier_answer_may_be_written(tmp_path: Path) -> None:
    path = tmp_path / "a.plan.json"
    assert refused(path) == ""
    path.write_text(PLAN)
    assert refused(path) == ""


@pytest.mark.parametrize(
    "text", ["", "notes", "[]", "{}", '{"name": "sample"}', PLAN.replace("sample", "other"), "[" * 10**5]
)
def test_anything_else_is_kept_unless_forced(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.plan.json"
    path.write_text(text)
    assert refused(path) == "E-OUTPUT-001"
    assert refused(path, force=True) == ""
    assert path.read_text() == text


def test_folders_are_no_targets(tmp_path: Path) -> None:
    assert refused(tmp_path, force=True) == "E-OUTPUT-002"
    assert refused(tmp_path / "no" / "a.json", force=True) == "E-OUTPUT-002"


def test_write_replaces_whole_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")
    path.chmod(0o640)
    files.write(path, "new é\n")
    assert path.read_text(encoding="utf-8") == "new é\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"]


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    files.write(path, "x")
    other = tmp_path / "b.json"
    other.write_text("x")
    assert path.stat().st_mode == other.stat().st_mode


def test_a_failure_keeps_the_old_file_and_cleans_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left"):
        files.write(path, "new")
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"]


def test_a_folder_that_takes_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="E-OUTPUT-002"):
        files.write(tmp_path / "no" / "a.json", "x")
