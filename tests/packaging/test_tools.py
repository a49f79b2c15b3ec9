"""The project's own rules, as tests, so that one command runs all of them."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

_IMPORTS = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"

#: Tool -> its module, and how it is called.
TOOLS: dict[str, tuple[str, list[str]]] = {
    "ruff check": ("ruff", ["-m", "ruff", "check", "--no-cache", "."]),
    "ruff format": ("ruff", ["-m", "ruff", "format", "--no-cache", "--check", "."]),
    "mypy": ("mypy", ["-m", "mypy"]),
    "import-linter": ("importlinter", ["-c", _IMPORTS]),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_tool_has_no_complaint(tool: str) -> None:
    module, arguments = TOOLS[tool]
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed: pip install -e '.[test]'")
    result = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
