"""A field of an instance by its path: found with its unit and range, read, and replaced in a valid instance.

Paths are those of messages and docs: ``targets.tpot_ms``, ``economics.prices.h100-80gb-sxm.server_usd``,
``workload.classes[0].demand.requests_per_s``. An entry of a list that has a name also goes by it
(``workload.classes.chat.request.input_tokens``, ``workload.classes[chat]...``); a catalogue id also by its alias.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from optimizer.instance import known, schema
from optimizer.instance.documents import document_of as document_of
from optimizer.instance.documents import from_document as from_document
from optimizer.instance.documents import problems_in as problems_in
from optimizer.instance.documents import replaced as replaced
from optimizer.instance.list_entries import entry_index, entry_paths, meant_entry
from optimizer.instance.positions import Path
from optimizer.instance.problems import field_name, nearest, shown

if TYPE_CHECKING:
    from optimizer.instance.model import Instance

Schema = Mapping[str, Any]

#: Fields that describe the file and not the cluster.
_NOT_MOVED: Final = frozenset({"$schema", "format_version", "name", "story"})

#: A name after a dot, or in brackets a number, a text in quotes, or a plain name.
_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[\"([^\"]*)\"\]|\[([^\[\]\"]+)\]")


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
    place = _place(instance, path)
    found = _leaf(
        place.steps, place.options, place.unit, place.description, place.source, is_optional=place.is_optional
    )
    if found is None:
        inside = [name for name in _names_below(place.options) if name]
        raise UnknownFieldError(
            f"the section {field_name(place.steps)}" if place.steps else "an empty path",
            "must be a field",
            f"It has {', '.join(inside[:12])}" if inside else "",
        )
    return found


def entries_at(instance: "Instance", path: str) -> tuple[str, ...] | None:
    """Paths of the entries of a list; None where a path names a section that is keyed by rows of the catalogue.

    Raises
    ------
    UnknownFieldError: it names neither, so that ``*`` stands for nothing below it.
    """
    place = _place(instance, path)
    if any("items" in one for one in _open(place.options, place.value)):
        return tuple(entry_paths(place.steps, place.value if isinstance(place.value, list) else []))
    if any(isinstance(one.get("additionalProperties"), Mapping) for one in place.options):
        return None
    allowed = "must stand for entries of a list or rows of the catalogue, as in economics.prices.*"
    inside = _names_below(place.options)
    raise UnknownFieldError(f"{path}.*", allowed, f"{path} has {', '.join(inside[:12])}" if inside else "")


@dataclass(frozen=True, slots=True)
class _Place:
    """What stands at a path: its steps, the schemas of what may be there, the value at hand."""

    steps: Path
    options: list[Schema]
    value: Any
    unit: str = ""
    description: str = ""
    source: str = ""
    is_optional: bool = False


def _place(instance: "Instance", path: str) -> _Place:
    document = document_of(instance)
    place = _Place((), [schema.committed()], document)
    texts = _split(path)
    for number, text in enumerate(texts):
        options, rest = _open(place.options, place.value), texts[number + 1 :]
        step, chosen = _step(text, options, place.value, place.steps, document, rest)
        inner = list(_alternatives(chosen))
        place = _Place(
            steps=(*place.steps, step),
            options=inner,
            value=_inner(place.value, step),
            unit=str(chosen.get("unit", place.unit)),
            description=str(chosen.get("description", "")),
            source=str(chosen.get("default_source", "")),
            is_optional="default" in chosen or any(one.get("type") == "null" for one in inner),
        )
    return place


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
    text: str, options: list[Schema], value: Any, above: Path, document: Mapping[str, Any], after: list[str]
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
            return _index(text, value, above, option["items"], after), option["items"]
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


def _index(text: str, value: Any, above: Path, item: Schema, after: list[str]) -> int:
    members = value if isinstance(value, list) else []
    index = entry_index(text, members)
    if index is not None:
        return index
    where, inside = field_name(above), _names_below(list(_alternatives(item)))
    # A word that is a field of an entry means that the entry was left out.
    after = [text, *after] if text in inside else after
    fix = meant_entry(text, members, above, inside, after) if members else _without_list(above, after)
    allowed = f"must be an entry of {where}" if members else f"must be an entry of {where}, of which there is none"
    raise UnknownFieldError(f"{where}[{text}]", allowed, fix)


def _without_list(above: Path, after: list[str]) -> str:
    """The same field where no list has it: beside the list, or in a section of the instance."""
    for home in (above[:-1], ()):
        options: list[Schema] = [schema.committed()]
        for step in (*home, *after):
            known_here = [one.get("properties", {}) for one in _open(options, None)]
            options = [inner for one in known_here if step in one for inner in _alternatives(one[str(step)])]
        if after and options:
            return f"Did you mean {field_name((*home, *after))}?"
    return ""


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
