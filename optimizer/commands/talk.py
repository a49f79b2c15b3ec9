"""Speaking to people: data goes to stdout, everything else to stderr."""

import os
import sys
from collections.abc import Iterable

import click

from optimizer.errors import Problem, printable

WIDTH = 80


class ReaderGone(Exception):  # noqa: N818 - it is no error that nobody reads on
    """Whoever read our output has closed the pipe."""


def survive_any_terminal() -> None:
    """Let a terminal that cannot show a character show an escape instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def width() -> int:
    """Columns to fill: those of the terminal within reason, 80 for pipes and files."""
    import shutil

    return max(60, min(shutil.get_terminal_size((WIDTH, 24)).columns, 120))


def say(text: str) -> None:
    """Say something to the person at the terminal (stderr)."""
    click.echo(text, err=True)


def data(text: str) -> None:
    """Give out data (stdout), ending with one newline.

    Raises:
        ReaderGone: nobody reads any more, as with ``| head``. (Click would end with exit code 1, which means a bug.)
    """
    try:
        click.echo(text if text.endswith("\n") else f"{text}\n", nl=False)
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderGone from None


def error(text: str) -> None:
    """Say what went wrong."""
    first, *rest = text.splitlines() or [""]
    say(f"{_bold_red('error')}: {printable(first)}")
    for line in rest:
        say(f"  {printable(line)}")


def problems(found: Iterable[Problem]) -> None:
    """Say every problem of an input, one line each."""
    for one in found:
        text = str(one)
        head, rest = text[: len("error")], text[len("error") :]
        say(f"{_bold_red(head)}{rest}")


def silence_stdout() -> None:
    """Point stdout at nothing, so that no later flush meets the closed pipe."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return


def _bold_red(text: str) -> str:
    return click.style(text, fg="red", bold=True) if _has_colour() else text


def _has_colour() -> bool:
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
