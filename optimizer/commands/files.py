"""Writing answers: whole or not at all, and never over a file that is something else."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from optimizer.errors import InputError, Problem


def answer_path(instance_path: Path, kind: str) -> Path:
    """Path of the plan or diagnosis beside an instance: ``a.json`` -> ``a.plan.json``."""
    name = instance_path.name
    stem = name.removesuffix(".json") if name != ".json" else name
    return instance_path.with_name(f"{stem}.{kind}.json")


def guard(path: Path, name: str, *, force: bool, kind: str = "plan of this instance", mark: str = "provenance") -> None:
    """Refuse to write over anything but an earlier answer for the instance of this name.

    ``kind`` is what such an answer is called, ``mark`` a key that all of them have.

    Raises:
        InputError: there is such a file and ``force`` is not given, or the folder cannot take a file.
    """
    if not path.parent.is_dir():
        raise _cannot_write(path, f"no folder {path.parent}")
    if path.is_dir():
        raise _cannot_write(path, "a directory")
    if path.exists() and not force and not _is_answer_of(path, name, mark):
        raise InputError(
            (
                Problem(
                    "E-OUTPUT-001",
                    str(path),
                    found=f"a file that is no {kind}",
                    allowed=f"must be free or such {'an' if kind[0] in 'aeiou' else 'a'} {kind.split()[0]}",
                    fix="Choose another path with -o, or pass --force",
                ),
            )
        )


def write(path: Path, text: str) -> None:
    """Write a text file whole or not at all, as ``write_bytes``."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: a reader never sees half of it, and a failure leaves the old one.

    Raises:
        InputError: it cannot be written.
    """
    try:
        # In the same folder, since a rename is atomic within one file system only.
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    except OSError as error:
        raise _cannot_write(path, error.strerror or str(error)) from None
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(_mode(path))
        temporary.replace(path)
    except OSError as error:
        raise _cannot_write(path, error.strerror or str(error)) from None
    finally:
        temporary.unlink(missing_ok=True)


def as_json(shape: Any) -> str:
    """A plan or diagnosis as it is written: the same bytes for the same answer."""
    text: str = shape.model_dump_json(by_alias=True, indent=2)
    return f"{text}\n"


def _mode(path: Path) -> int:
    """Permissions of the file that is replaced, or those of any new file."""
    try:
        return path.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _is_answer_of(path: Path, name: str, mark: str) -> bool:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(value, dict) and mark in value and value.get("name") == name


def _cannot_write(path: Path, reason: str) -> InputError:
    problem = Problem("E-OUTPUT-002", str(path), found=reason, allowed="must be a file that can be written")
    return InputError((problem,))
