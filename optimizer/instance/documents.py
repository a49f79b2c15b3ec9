"""An instance as a JSON document: made, changed at a path, read back with every problem told."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from optimizer.errors import InputError, Problem
from optimizer.instance import known, schema
from optimizer.instance.positions import Path
from optimizer.instance.problems import field_name

if TYPE_CHECKING:
    from optimizer.instance.model import Instance


def document_of(instance: "Instance") -> dict[str, Any]:
    """An instance as JSON objects and lists, with what the planner stated and no defaults."""
    document: dict[str, Any] = instance.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return document


def replaced(document: dict[str, Any], steps: Path, value: Any) -> dict[str, Any]:
    """A copy of a document with another value at a path; None takes the key away. Nothing that is shared is changed."""
    copied: dict[str, Any] = _replaced(document, steps, value)
    return copied


def _replaced(document: Any, steps: Path, value: Any) -> Any:
    copy: Any = list(document) if isinstance(document, list) else dict(document)
    first, *rest = steps
    if rest:
        inner = copy[first] if (isinstance(first, int) or first in copy) else {}
        copy[first] = _replaced(inner if isinstance(inner, dict | list) else {}, tuple(rest), value)
    elif value is None and isinstance(copy, dict):
        copy.pop(first, None)
    else:
        copy[first] = value
    return copy


def from_document(document: dict[str, Any], *, told_as: str) -> "Instance":
    """The instance of a document; InputError with every problem where it is none."""
    import json

    from pydantic import ValidationError

    from optimizer.instance.model import Instance

    try:
        return Instance.model_validate_json(json.dumps(document))
    except ValidationError as error:
        found = problems_in(document, told_as)
        if not found:
            text = "; ".join(str(one["msg"]).removeprefix("Value error, ") for one in error.errors())
            found = (Problem("E-INSTANCE-020", told_as, found="values that do not go together", allowed=text),)
        raise InputError(found) from None


def problems_in(document: dict[str, Any], told_as: str) -> tuple[Problem, ...]:
    """Every fault of a document that could be told from the file itself: types, ranges, rules, unknown names."""
    from optimizer.instance.checking import Checker

    checker = Checker(schema.committed())
    found = list(checker.check(document, "Instance"))
    rows = document.get("catalog")
    found += known.unknown_names(document, rows if isinstance(rows, Mapping) else {}, checker.is_sound)
    return tuple(
        Problem(
            one.code,
            told_as,
            field=field_name(one.name or one.path),
            found=one.found,
            allowed=one.allowed,
            fix=one.fix,
        )
        for one in found
    )
