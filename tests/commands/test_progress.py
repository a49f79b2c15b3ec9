"""Progress is shown on a terminal and nowhere else."""

import io
import re

import pytest

from optimizer.commands.progress import shown
from optimizer.studies.standing import Standing


class Terminal(io.StringIO):
    """A text that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


def told(stream: io.StringIO, *, quiet: bool = False, delay_s: float = 0.0) -> str:
    with shown("cases", quiet=quiet, stream=stream, delay_s=delay_s) as tell:
        tell(Standing(400, 1000, "1.2 M USD a year", 1e-6))
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())


def test_a_terminal_is_shown_done_left_best_and_gap() -> None:
    text = told(Terminal())
    for said in ("cases", "400 done, 600 left", "best 1.2 M USD a year", "gap 0.0001 %"):
        assert said in text


def test_nothing_is_shown_where_there_is_no_terminal_or_no_wish() -> None:
    assert told(io.StringIO()) == ""
    assert told(Terminal(), quiet=True) == ""


def test_what_is_quick_shows_no_bar() -> None:
    assert told(Terminal(), delay_s=60.0) == ""
