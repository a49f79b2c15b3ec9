"""Reads an instance file: gives a valid ``Instance``, or every fault of the file with its line and column."""

import errno
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from optimizer.errors import CODES, InputError, Problem
from optimizer.instance import known, schema
from optimizer.instance.checking import MAX_FOUND, Checker, Found
from optimizer.instance.positions import Scanned, scan
from optimizer.instance.problems import field_name, nearest, section, shown

if TYPE_CHECKING:
    from optimizer.instance.model import Instance

__all__ = [
    "MAX_BYTES",
    "Source",
    "json_object",
    "placed",
    "read_instance",
    "read_instance_text",
    "read_json_text",
    "resolve_model_path",
]

#: No instance is near this size, nor a catalogue of a planner's own rows.
MAX_BYTES: Final = 4 * 2**20


class Source(NamedTuple):
    """A scanned file that passed for JSON, and the name it goes by in messages."""

    file: str
    text: str
    scanned: Scanned


def read_instance(path: Path) -> "Instance":
    """Read an instance file.

    Raises:
        InputError: the file, or one that it names, is bad or missing; carries every problem.
    """
    return read_instance_text(read_json_text(path, str(path)), str(path), path.parent)


def read_instance_text(text: str, file_name: str, folder: Path | None = None) -> "Instance":
    """Read an instance from its text.

    Args:
        text: The JSON text.
        file_name: Its name in messages.
        folder: Folder that paths inside the instance are relative to; the working directory when None.

    Raises:
        InputError: the text, or a file that it names, is bad or missing; carries every problem.
    """
    folder = folder or Path()
    source = json_object(text, file_name)
    checker = Checker(schema.committed())
    value = source.scanned.value
    found = list(checker.check(value, "Instance"))
    problems: list[Problem] = []
    rows_source: Source | None = None
    if isinstance(value.get("catalog"), str):
        rows_source, rows_problems = _own_rows(
            value["catalog"], folder, _problem(source, Found("E-CATALOG-002", ("catalog",), "", ""))
        )
        problems += rows_problems
    rows = rows_source.scanned.value if rows_source else value.get("catalog")
    found += known.unknown_names(value, rows if isinstance(rows, dict) else {}, checker.is_sound)
    found += _model_file(value, folder, checker)
    problems = placed(source, found) + problems
    if problems:
        raise InputError(tuple(problems))
    return _validated(source, rows_source)


def resolve_model_path(instance: "Instance", folder: Path) -> Path | None:
    """Path of the model's config.json, or None where the model is a catalogue name or written inline.

    Args:
        instance: The instance.
        folder: Folder of the instance file, which a path in it is relative to.
    """
    model = instance.workload.model
    return known.model_path(model, folder) if isinstance(model, str) else None


def read_json_text(path: Path, shown: str) -> str:
    """Text of a file of a bearable size in UTF-8; ``shown`` names it in messages."""

    def refuse(code: str, found: str, allowed: str = "", fix: str = "") -> InputError:
        return InputError((Problem(code, shown, found=found, allowed=allowed, fix=fix),))

    try:
        if path.is_dir():
            raise refuse("E-FILE-002", "a directory", "must be a JSON file")
        if path.exists() and not path.is_file():
            raise refuse("E-FILE-002", "something that is no file", "must be a JSON file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise refuse("E-FILE-001", "no such file", "must be a JSON file", _similar_file(path)) from None
    except (OSError, ValueError) as error:
        code = "E-FILE-001" if getattr(error, "errno", None) == errno.ENAMETOOLONG else "E-FILE-003"
        reason = getattr(error, "strerror", None) or str(error)
        raise refuse(code, f"a file that cannot be opened ({reason})", "must be readable") from None
    if len(data) > MAX_BYTES:
        raise refuse("E-FILE-004", f"more than {MAX_BYTES:,} bytes", f"must be at most {MAX_BYTES:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", "replace")
        line = before.count("\n") + 1
        column = len(before) - before.rfind("\n")
        byte = f"the byte 0x{data[error.start]:02x}"
        problem = Problem("E-FILE-005", shown, line, column, found=byte, allowed="must be UTF-8 text")
        raise InputError((problem,)) from None


def _similar_file(path: Path) -> str:
    """Name of a file beside the one that is missing, when one looks like it."""
    try:
        names = [one.name for one in path.parent.iterdir() if one.suffix == ".json"]
    except OSError:
        return ""
    near = nearest(path.name, names[:1000])
    return f"Did you mean {path.parent / near}?" if near else ""


def json_object(text: str, file: str) -> Source:
    """Scan a text that must be one JSON object."""
    if not text.strip():
        problem = Problem("E-FILE-006", file, found="an empty file", allowed="must be a JSON object")
        raise InputError((problem,))
    scanned = scan(text)
    if scanned.faults:
        raise InputError(
            tuple(
                Problem(
                    one.code,
                    file,
                    one.place.line,
                    one.place.column,
                    field_name(one.path),
                    one.found,
                    one.allowed,
                    one.fix,
                )
                for one in sorted(scanned.faults, key=lambda one: (one.place.line, one.place.column))
            )
        )
    if not isinstance(scanned.value, dict):
        place = scanned.place(())
        raise InputError(
            (
                Problem(
                    "E-FILE-012",
                    file,
                    place.line,
                    place.column,
                    "",
                    shown(scanned.value),
                    "must be an object in braces",
                ),
            )
        )
    return Source(file, text, scanned)


def _problem(source: Source, found: Found) -> Problem:
    place = source.scanned.place(found.path, key=found.at_key)
    name = field_name(found.name or found.path)
    return Problem(found.code, source.file, place.line, place.column, name, found.found, found.allowed, found.fix)


def placed(source: Source, found: Iterable[Found]) -> list[Problem]:
    """Problems in the order of the file; what is beyond the bound is counted in the last line's place."""
    ordered = sorted(found, key=lambda one: (source.scanned.offset(one.path, key=one.at_key), one.code))
    return [_problem(source, one) for one in ordered[:MAX_FOUND]]


def _own_rows(name: str, folder: Path, at: Problem) -> tuple[Source | None, list[Problem]]:
    """Read the file of the planner's own rows; its problems carry its own name and places."""
    path = folder / name
    try:
        source = json_object(read_json_text(path, str(path)), str(path))
    except InputError as error:
        first = error.problems[0]
        if first.line:
            return None, list(error.problems)
        # The file as a whole is at fault: the instance names it, so that is the place to look.
        found = f"{name}: {first.found}"
        return None, [Problem(first.code, at.file, at.line, at.column, at.field, found, first.allowed, first.fix)]
    checker = Checker(schema.committed())
    faults = list(checker.check(source.scanned.value, "OwnRows", ("catalog",)))
    faults += known.unknown_in_file(source.scanned.value, checker.is_sound)
    return source, placed(source, faults)


def _model_file(value: dict[str, Any], folder: Path, checker: Checker) -> list[Found]:
    """Whether each model's config.json, where one is named, is there and is JSON."""
    workload = value.get("workload")
    workload = workload if isinstance(workload, dict) else {}
    jobs = workload.get("jobs")
    places: list[tuple[tuple[str | int, ...], Any]] = [(("workload", "model"), workload.get("model"))]
    for index, job in enumerate(jobs if isinstance(jobs, list) else ()):
        places.append((("workload", "jobs", index, "model"), job.get("model") if isinstance(job, dict) else None))
    found = []
    for where, model in places:
        path = known.model_path(model, folder) if isinstance(model, str) and checker.is_sound(where) else None
        if path is None:
            continue
        try:
            json_object(read_json_text(path, str(path)), str(path))
        except InputError as error:
            first = error.problems[0]
            code = "E-WORKLOAD-030" if first.code == "E-FILE-001" else "E-WORKLOAD-031"
            place = f" in line {first.line}" if first.line else ""
            text = f'"{model}": {first.found}{place}'
            found.append(Found(code, where, text, "must be a model's config.json", first.fix))
    return found


def _validated(source: Source, rows_source: Source | None) -> "Instance":
    """Build the frozen shapes. What they refuse after the checker passed it is a row that contradicts itself."""
    from pydantic import ValidationError

    from optimizer.instance.model import Instance, OwnRows

    problems: list[Problem] = []
    rows: OwnRows | None = None
    if rows_source is not None:
        try:
            rows = OwnRows.model_validate_json(rows_source.text)
        except ValidationError as error:
            problems += _refused(rows_source, error, ("catalog",))
    try:
        instance = Instance.model_validate_json(source.text)
    except ValidationError as error:
        problems = _refused(source, error, ()) + problems
    if problems:
        raise InputError(tuple(problems))
    if rows is not None:
        instance = instance.model_copy(update={"catalog": rows})
    rows = instance.own_rows()
    late = [
        *known.no_electricity_price(instance),
        *known.none_priced(instance, rows),
        *known.owned_faults(instance, rows),
    ]
    if instance.uncertainty is not None:
        from optimizer.instance.uncertain_paths import bad_paths

        late += bad_paths(instance)
    if late:
        raise InputError(tuple(placed(source, late)))
    return instance


def _refused(source: Source, error: Any, prefix: tuple[str, ...]) -> list[Problem]:
    found = []
    every = error.errors(include_url=False, include_context=False)
    # The checker has seen to the types: what is said of a type now comes from the other branch of a union.
    for one in [one for one in every if not str(one["type"]).endswith("_type")] or every:
        path = _in_file(tuple(one["loc"]), source.scanned)
        text = str(one["msg"]).removeprefix("Value error, ")
        code = f"E-{section(prefix + path)}-009"
        found.append(Found(code if code in CODES else "E-INSTANCE-020", path, "values that do not go together", text))
    return placed(source, found)


def _in_file(location: tuple[Any, ...], scanned: Scanned) -> tuple[Any, ...]:
    """Steps of pydantic's location that the file has: it puts names of a union's branches between them."""
    path: tuple[Any, ...] = ()
    for step in location:
        if (*path, step) in scanned.values:
            path = (*path, step)
    return path
