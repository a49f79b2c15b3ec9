"""The README is one screen, its commands are those that are tested, its output is real."""

import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from optimizer.commands.app import VERBS
from optimizer.commands.new import templates

ROOT = Path(__file__).parent.parent.parent
README = ROOT / "README.md"


def blocks(kind: str) -> list[str]:
    """Fenced blocks of a kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_it_is_one_screen() -> None:
    prose = re.sub(r"^```text\n.*?^```$", "", README.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert len(prose.splitlines()) <= 45


def test_ci_runs_the_second_command() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert f"\n{blocks('sh')[1]}" in script


def test_commands_name_things_that_exist() -> None:
    for line in "".join(blocks("sh")).splitlines():
        for command in line.split("#")[0].split("&&"):
            words = shlex.split(command.split(">")[0])
            if words[0] == ".venv/bin/optimize":
                assert words[1] in VERBS or words[1] == "my.json" or (ROOT / words[1]).is_file(), line
                if words[1] == "new":
                    assert words[2] in templates()


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README.read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), target


def scrubbed(text: str) -> str:
    """Output without what differs from run to run: seconds."""
    return re.sub(r"\b\d+(?:\.\d+)? (?:s|ms)\b(?= ?(?:·|$|\())", "… s", text, flags=re.MULTILINE).strip()


@pytest.mark.skipif(find_spec("optimizer.api") is None, reason="the solver is not there yet")
def test_output_is_what_the_first_command_prints(tmp_path: Path, update_goldens: bool) -> None:
    instance = shlex.split(blocks("sh")[0])[-1]
    result = subprocess.run(
        [sys.executable, str(ROOT / "cli.py"), instance, "-o", str(tmp_path / "answer.json")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    text = README.read_text(encoding="utf-8")
    if update_goldens:
        new = re.sub(
            r"^```text\n.*?^```$", lambda _: f"```text\n{result.stdout}```", text, flags=re.DOTALL | re.MULTILINE
        )
        README.write_text(new, encoding="utf-8")
    (shown,) = blocks("text")
    assert scrubbed(shown) == scrubbed(result.stdout), "run: pytest tests/docs --update"
