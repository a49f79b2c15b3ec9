"""A field of an instance by its path: found with its unit and range, read, and replaced in a valid instance.

Paths are those of messages and docs: ``targets.tpot_ms``, ``economics.prices.h100-80gb-sxm.server_usd``,
``workload.classes[0].demand.requests_per_s``. An entry of a list that has a name also goes by it
(``workload.classes.chat.request.input_tokens``); a catalogue id also by its alias.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from optimizer.errors import InputError, Problem
from optimizer.instance import known, schema
from optimizer.instance.positions import Path
from optimizer.instance.problems import field_name, nearest, shown

if TYPE_CHECKING:
    from optimizer.instance.model import Instance

Schema = Mapping[str, Any]

#: Fields that describe the file and not the cluster.
_NOT_MOVED: Final = frozenset({"$schema", "format_version", "name", "story"})

_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]|\[\"([^\"]*)\"\]")


class UnknownFieldError(ValueError):
    """A path that no instance has; ``fix`` says what was probably meant."""

    def __init__(self, found: str, allowed: str, fix: str = "") -> None:
        super().__init__(f"{found}; {allowed}")
        self.found, self.allowed, self.fix = found, allowed, fix


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A field: where it is, what it may hold.

    ``kinds`` are JSON types (``number``, ``integer``, ``string``, ``boolean``, ``array``); ``words`` the closed list of
    allowed texts, if there is one; ``item_kind`` the type of a list's members; ``is_optional`` whether it may be
    absent.
    """

    steps: Path
    kinds: frozenset[str]
    item_kind: str
    unit: str
    description: str
    default_source: str
    words: tuple[str, ...]
    is_optional: bool

    @property
    def name(self) -> str:
        """Dotted name, as in messages."""
        return field_name(self.steps)

    @property
    def is_number(self) -> bool:
        """Whether it holds a number."""
        return bool(self.kinds & {"number", "integer"})

    @property
    def is_whole(self) -> bool:
        """Whether it holds whole numbers only."""
        return "integer" in self.kinds and "number" not in self.kinds

    @property
    def is_list(self) -> bool:
        """Whether it holds a list."""
        return "array" in self.kinds


def find_field(instance: "Instance", path: str) -> FieldPath:
    """The field that a path names.

    Raises
    ------
    UnknownFieldError: no instance has it, or it is a section and no field; says the nearest name.
    """
    document = document_of(instance)
    steps: list[str | int] = []
    options: list[Schema] = [schema.committed()]
    unit, description, source = "", "", ""
    is_optional = False
    value: Any = document
    for text in _split(path):
        options = _open(options, value)
        step, chosen = _step(text, options, value, tuple(steps), document)
        steps.append(step)
        value = _inner(value, step)
        unit = str(chosen.get("unit", unit))
        description, source = str(chosen.get("description", "")), str(chosen.get("default_source", ""))
        options = list(_alternatives(chosen))
        is_optional = "default" in chosen or any(one.get("type") == "null" for one in options)
    found = _leaf(tuple(steps), options, unit, description, source, is_optional=is_optional)
    if found is None:
        inside = [name for name in _names_below(options) if name]
        raise UnknownFieldError(
            f"the section {field_name(tuple(steps))}" if steps else "an empty path",
            "must be a field",
            f"It has {', '.join(inside[:12])}" if inside else "",
        )
    return found


def document_of(instance: "Instance") -> dict[str, Any]:
    """An instance as JSON objects and lists, with what the planner stated and no defaults."""
    document: dict[str, Any] = instance.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return document


def stated_value(instance: "Instance", field: FieldPath) -> Any:
    """What an instance holds at a field, its default where the planner wrote nothing; None where it is absent."""
    value: Any = instance
    for step in field.steps:
        if isinstance(value, Mapping):
            value = value.get(str(step))
        elif isinstance(value, tuple | list):
            value = value[int(step)] if int(step) < len(value) else None
        else:
            value = getattr(value, str(step), None)
        if value is None:
            return None
    return value


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


def with_values(instance: "Instance", values: Mapping[FieldPath, Any], *, told_as: str = "") -> "Instance":
    """A valid instance with other values at some fields; None takes a field away, so that its default holds.

    Raises
    ------
    InputError: the instance would not be valid; carries every problem, under the file name ``told_as``.
    """
    document = document_of(instance)
    for field, value in values.items():
        document = replaced(document, field.steps, value)
    return from_document(document, told_as=told_as or instance.name)


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


def known_fields(instance: "Instance | None" = None) -> Iterator[FieldPath]:
    """Every field that can be moved; keyed by catalogue ids where an instance may name any row of the catalogue.

    With an instance, entries of its lists (request classes, own rows) are among them.
    """
    document = document_of(instance) if instance is not None else {}
    yield from _below((), [schema.committed()], document, "", document)


def _below(
    steps: Path, options: list[Schema], value: Any, unit: str, document: Mapping[str, Any]
) -> Iterator[FieldPath]:
    seen = set()
    for option in _open(options, value):
        for key, inner in option.get("properties", {}).items():
            if key in seen or (not steps and key in _NOT_MOVED):
                continue
            seen.add(key)
            yield from _field_or_below((*steps, key), inner, _inner(value, key), unit, document)
        rest = option.get("additionalProperties")
        if isinstance(rest, Mapping):
            for key in known.row_ids(steps, document):
                inner = {**rest, "unit": rest.get("unit", unit)}
                yield from _field_or_below((*steps, key), inner, _inner(value, key), unit, document)
        if isinstance(value, list) and "items" in option:
            for index, member in enumerate(value):
                yield from _field_or_below((*steps, index), option["items"], member, unit, document)


def _field_or_below(
    steps: Path, inner: Schema, value: Any, unit: str, document: Mapping[str, Any]
) -> Iterator[FieldPath]:
    unit = str(inner.get("unit", unit))
    options = list(_alternatives(inner))
    found = _leaf(
        steps,
        options,
        unit,
        str(inner.get("description", "")),
        str(inner.get("default_source", "")),
        is_optional="default" in inner or any(one.get("type") == "null" for one in options),
    )
    if found is not None and (found.kinds != {"string"} or len(found.words) != 1):
        yield found
    if found is None or (found.is_list and isinstance(value, list)):
        yield from _below(steps, options, value, unit, document)


def _split(path: str) -> list[str]:
    """Steps of a path as written; UnknownFieldError where it is none."""
    texts, at = [], 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise UnknownFieldError(shown(path), "must be a path such as targets.tpot_ms")
        texts.append(next(group for group in match.groups() if group is not None))
        at = match.end()
    return texts


def _resolved(option: Schema) -> Schema:
    while "$ref" in option:
        option = schema.committed()["$defs"][str(option["$ref"]).rpartition("/")[2]]
    return option


def _alternatives(option: Schema) -> Iterator[Schema]:
    options = option.get("anyOf") or option.get("oneOf")
    if options:
        for one in options:
            yield from _alternatives(one)
    elif "$ref" in option:
        yield from _alternatives(_resolved(option))
    else:
        yield option


def _open(options: list[Schema], value: Any) -> list[Schema]:
    """Alternatives that have something inside, those that the value at hand does not contradict."""
    inside = [one for one in options if one.get("type") in ("object", "array")]
    if isinstance(value, Mapping):
        fitting = [
            one
            for one in inside
            if all(
                inner.get("const", value[key]) == value[key]
                for key, inner in one.get("properties", {}).items()
                if key in value
            )
        ]
        return fitting or inside
    return inside


def _inner(value: Any, step: str | int) -> Any:
    if isinstance(value, Mapping):
        return value.get(str(step))
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return None


def _step(
    text: str, options: list[Schema], value: Any, above: Path, document: Mapping[str, Any]
) -> tuple[str | int, Schema]:
    """The step that a text means at a place, and the schema of what is there."""
    for option in options:
        properties = option.get("properties", {})
        if text in properties and not (not above and text in _NOT_MOVED):
            return text, properties[text]
        rest = option.get("additionalProperties")
        if isinstance(rest, Mapping):
            written = value if isinstance(value, Mapping) else {}
            key, near = known.row_id(above, text, written, document)
            if not key:
                raise UnknownFieldError(
                    field_name((*above, text)), f"must be {known.kind_at(above)} of the catalogue", near
                )
            return key, rest
        if "items" in option:
            return _index(text, value, above), option["items"]
    names = _names_below(options)
    where = field_name(above)
    home = "" if nearest(text, names) else _home(text)
    near = nearest(text, names)
    fix = f"Did you mean {f'{where}.' if where else ''}{near}?" if near else ""
    if not fix and home:
        fix = f"Did you mean {home}?"
    if not fix and names:
        fix = f"It has {', '.join(names[:12])}{', …' if len(names) > 12 else ''}"
    raise UnknownFieldError(
        field_name((*above, text)), f"must be a field of {where}" if where else "must be a field of an instance", fix
    )


def _index(text: str, value: Any, above: Path) -> int:
    members = value if isinstance(value, list) else []
    names = [str(one["name"]) for one in members if isinstance(one, Mapping) and "name" in one]
    names += [str(one["id"]) for one in members if isinstance(one, Mapping) and "id" in one and "name" not in one]
    if text in names:
        return names.index(text)
    if text.isdigit() and int(text) < len(members):
        return int(text)
    where = field_name(above)
    has = f"It has {len(members)}: {', '.join(names)}" if names else f"It has {len(members)} entries, counted from 0"
    raise UnknownFieldError(f"{where}[{text}]", f"must be an entry of {where}", has if members else "It is empty")


def _names_below(options: list[Schema]) -> list[str]:
    names: dict[str, None] = {}
    for one in options:
        names.update(dict.fromkeys(one.get("properties", {})))
    return [name for name in names if name not in _NOT_MOVED]


def _home(text: str) -> str:
    """A field of this name elsewhere in an instance."""
    for name, inner in schema.committed()["properties"].items():
        for option in _alternatives(inner):
            near = nearest(text, option.get("properties", {}))
            if near:
                return f"{name}.{near}"
    return ""


def _leaf(
    steps: Path, options: list[Schema], unit: str, description: str, source: str, *, is_optional: bool
) -> FieldPath | None:
    """The field at a place, or None where a section is."""
    real = [one for one in options if one.get("type") != "null"]
    kinds = {str(one.get("type", "string")) for one in real if one.get("type") != "object"}
    if not steps or not kinds:
        return None
    item = next((_resolved(one.get("items", {})) for one in real if one.get("type") == "array"), {})
    words: list[str] = []
    for one in (*real, item):
        words += [str(word) for word in one.get("enum", [one["const"]] if "const" in one else [])]
    return FieldPath(
        steps=steps,
        kinds=frozenset(kinds),
        item_kind=str(item.get("type", "")),
        unit=unit,
        description=description,
        default_source=source,
        words=tuple(words),
        is_optional=is_optional,
    )
