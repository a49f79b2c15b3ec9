"""Results of studies as files: JSON, CSV or SVG by the ending, or on stdout, whole or not at all."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from optimizer.commands import files, talk

#: What makes the text of a file of a result, by its ending.
Writers = Mapping[str, Callable[[Any], str]]

OUTPUT_HELP: Final = "Write the result there by its ending (.json, .csv, .svg); - for JSON on stdout."


def check(output: str | None, writers: Writers, study: str, *, force: bool) -> None:
    """Refuse, before anything is solved, a path that could not be written in the end.

    Raises
    ------
    click.UsageError: the ending is none of those that there are, or another file is there. InputError: no such folder.
    """
    if output is None or output == "-":
        return
    path = Path(output)
    if path.suffix.lower() not in writers:
        raise click.BadParameter(f"the file must end in {' or '.join(writers)}", param_hint="-o")
    files.guard(path, "", force=True)
    if path.exists() and not force and not _is_earlier(path, study):
        raise click.UsageError(f"{path} is there and is no such result; pass --force to overwrite it")


def give(
    result: Any,
    output: str | None,
    writers: Writers,
    screen: Callable[[Any], str],
    *,
    as_json: bool,
    quiet: bool = False,
) -> None:
    """Write the file that was asked for, and show the result on stdout: the screen, or JSON."""
    if output == "-" or as_json:
        talk.data(writers[".json"](result))
    elif not quiet or output is None:
        talk.data(screen(result))
    if output is not None and output != "-":
        path = Path(output)
        files.write(path, writers[path.suffix.lower()](result))
        if not quiet:
            talk.say(f"written     {path}")


def as_json(study: str, content: Mapping[str, Any]) -> str:
    """The JSON text of a study's result."""
    return json.dumps({"study": study, **content}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def as_csv(study: str, header: list[str], rows: list[list[Any]]) -> str:
    """The CSV text of a study's result; the first column says which study a row is of."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["study", *header])
    writer.writerows([[study, *("" if value is None else value for value in row)] for row in rows])
    return text.getvalue()


def _is_earlier(path: Path, study: str) -> bool:
    """Whether a file is an earlier result of the same study."""
    marks = {".json": f'"study": "{study}"', ".csv": f"\n{study},", ".svg": f'id="optimize-{study}"'}
    try:
        with path.open(encoding="utf-8") as file:
            return marks[path.suffix.lower()] in file.read(4096)
    except (OSError, ValueError):
        return False
