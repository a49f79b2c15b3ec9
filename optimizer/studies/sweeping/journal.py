"""The journal of a sweep: pieces that are done, so that a sweep that was interrupted goes on where it was.

One JSON line a piece, the first line says which sweep it is. A line that was cut off by a crash is left out.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from optimizer.errors import InputError, Problem, UsageProblems
from optimizer.studies.sweeping.layout import Piece
from optimizer.studies.sweeping.rows import Row


class Journal:
    """Rows of pieces on disk, added as they are done; each is on the disk before the next one is."""

    def __init__(self, path: Path, digest: str, *, force: bool = False) -> None:
        """Open the journal of a sweep, or begin one.

        Raises
        ------
        UsageProblems: another sweep's journal is there and ``force`` is not given. InputError: it cannot be written.
        """
        self.path = path
        self.done: dict[int, list[Row]] = {}
        try:
            self._file = self._opened(digest, force=force)
        except OSError as error:
            raise _cannot(path, error) from None

    def _opened(self, digest: str, *, force: bool) -> IO[str]:
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        head = _parsed(lines[0]) if lines else None
        if lines and not force and (not isinstance(head, dict) or head.get("sweep") != digest):
            raise UsageProblems(
                (
                    Problem(
                        "E-SWEEP-309",
                        str(self.path),
                        found="what another sweep has done so far",
                        allowed="must be free or of this sweep",
                        fix="Finish that one with its own command, or pass --force to begin anew",
                    ),
                )
            )
        if isinstance(head, dict) and head.get("sweep") == digest:
            self.done = dict(_pieces(lines[1:]))
        # Written anew, so that a line that was cut off does not run into the next one.
        with self.path.open("w", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps({"sweep": digest}) + "\n")
            file.writelines(_line(number, rows) for number, rows in self.done.items())
        return self.path.open("a", encoding="utf-8", newline="\n")

    def add(self, piece: Piece, rows: list[Row]) -> None:
        """Write a piece that is done."""
        self.done[piece.number] = rows
        try:
            self._file.write(_line(piece.number, rows))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise _cannot(self.path, error) from None

    def close(self) -> None:
        """Close it; it stays on the disk."""
        self._file.close()


def _line(number: int, rows: list[Row]) -> str:
    return json.dumps({"piece": number, "rows": [asdict(row) for row in rows]}) + "\n"


def _pieces(lines: list[str]) -> Iterator[tuple[int, list[Row]]]:
    for line in lines:
        content = _parsed(line)
        if isinstance(content, dict) and "piece" in content:
            yield int(content["piece"]), [_row(one) for one in content["rows"]]


def _row(content: dict[str, Any]) -> Row:
    names = ("values", "schemes", "binding", "forbidden_by")
    return Row(**{**content, **{name: tuple(content[name]) for name in names}})


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _cannot(path: Path, error: OSError) -> InputError:
    found, allowed = error.strerror or str(error), "must be a file that can be written"
    return InputError((Problem("E-OUTPUT-002", str(path), found=found, allowed=allowed),))
