"""Checks a scanned file against the schema and the rules, and finds every fault in one pass.

The schema is generated from the pydantic shapes, so the ranges are stated once. Reading it here, instead of asking
pydantic, answers a faulty file in a fraction of the time that loading pydantic takes, gives one message a fault where a
union of types gives several, and knows the unit of every field.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from optimizer.instance.positions import Path
from optimizer.instance.problems import (
    field_name,
    nearest,
    number_hint,
    out_of_range,
    percent_hint,
    range_words,
    section,
    shown,
)
from optimizer.instance.rules import RULES, Rule

Schema = Mapping[str, Any]

#: A file with more faults than this is no instance; what is beyond helps nobody.
MAX_FOUND: Final = 200

_TYPE_WORDS: Final = {
    "string": "a text in double quotes",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "object": "an object in braces",
    "array": "a list in brackets",
    "null": "null",
}

#: An object of no more keys is told by all of them.
_FEW_KEYS: Final = 16

#: Words for patterns that no planner should have to read, by key.
_FORMS: Final = {"as_of": "a date such as 2026, 2026-H1, 2026-Q3, 2026-09 or 2026-09-20"}


class Found(NamedTuple):
    """A fault of the meaning, not yet placed: ``at_key`` says that the key is wrong, not the value."""

    code: str
    path: Path
    found: str
    allowed: str
    fix: str = ""
    at_key: bool = False
    name: Path | None = None


class Checker:
    """Collects the faults of one file."""

    def __init__(self, schema: Schema) -> None:
        self._defs: Mapping[str, Schema] = schema["$defs"]
        self._top: Schema = schema
        self.found: list[Found] = []
        #: Paths that must not be looked at again: faulty themselves, or probably meant by a misspelt key.
        self._bad: set[Path] = set()

    def check(self, value: Any, shape: str, section_path: Path = ()) -> tuple[Found, ...]:
        """Every fault of ``value``, which must have the shape named ``shape``."""
        self._prefix = section_path
        self._object(value, self._top if shape == "Instance" else self._defs[shape], shape, ())
        return tuple(self.found)

    def is_sound(self, path: Path) -> bool:
        """Whether nothing at or below a path was found faulty."""
        return not any(bad[: len(path)] == path for bad in self._bad)

    @property
    def is_full(self) -> bool:
        """Whether so much was found that looking on is useless."""
        return len(self.found) >= MAX_FOUND

    def _add(self, number: int, path: Path, found: str, allowed: str, fix: str = "", *, at_key: bool = False) -> None:
        code = f"E-{section(self._prefix + path)}-{number:03d}"
        self.found.append(Found(code, path, found, allowed, fix, at_key))
        self._bad.add(path)

    def _resolved(self, schema: Schema) -> tuple[Schema, str]:
        """Follow a reference; gives the schema and the name of the shape, if it has one."""
        if "$ref" in schema:
            name = str(schema["$ref"]).rpartition("/")[2]
            return self._defs[name], name
        return schema, ""

    def _alternatives(self, schema: Schema) -> Iterator[tuple[Schema, str]]:
        options = schema.get("anyOf") or schema.get("oneOf")
        if options:
            for option in options:
                yield from self._alternatives(option)
        else:
            yield self._resolved(schema)

    def _value(self, value: Any, schema: Schema, path: Path, unit: str) -> None:
        if self.is_full:
            return
        options = list(self._alternatives(schema))
        fitting = [one for one in options if _fits(value, one[0])]
        if not fitting:
            self._wrong_type(value, [option for option, _ in options], path, unit)
        elif isinstance(value, dict) and len(kinds := _kinds(fitting)) > 1:
            self._of_kind(value, kinds, path, unit)
        elif isinstance(value, dict):
            # Of several shapes of an object the one is meant that knows most of the keys.
            option, name = max(fitting, key=lambda one: len(set(value) & set(one[0].get("properties", ()))))
            self._object(value, option, name, path, unit)
        elif isinstance(value, list):
            self._list(value, fitting[0][0], path, unit)
        else:
            self._scalar(value, fitting[0][0], path, unit)

    def _of_kind(
        self, value: Mapping[str, Any], kinds: Mapping[str, tuple[Schema, str]], path: Path, unit: str
    ) -> None:
        """An object of several shapes that are told apart by their ``kind``; the one with a default is understood."""
        usual = next((word for word, (option, _) in kinds.items() if "default" in option["properties"]["kind"]), "")
        written = value.get("kind", usual)
        if not isinstance(written, str) or written not in kinds:
            self._not_a_word(written, {"enum": list(kinds)}, (*path, "kind"))
            return
        option, name = kinds[written]
        self._object(value, option, name, path, unit)

    def _wrong_type(self, value: Any, options: list[Schema], path: Path, unit: str) -> None:
        named = [option for option in options if option.get("type") != "null"]
        if any("enum" in option or "const" in option for option in named):
            self._not_a_word(value, named[0], path)
            return
        allowed = "must be " + " or ".join(dict.fromkeys(_TYPE_WORDS[str(option["type"])] for option in named))
        numeric = next((option for option in named if option.get("type") in ("number", "integer")), None)
        fix = ""
        if numeric is not None:
            bounds = range_words(numeric, unit)
            allowed += f" {bounds}" if bounds else f" of {unit}" if unit else ""
            if isinstance(value, str):
                fix = number_hint(value, unit)
            elif isinstance(value, float) and value.is_integer():
                fix = f"Write {int(value)}"
        elif any(option.get("type") == "array" for option in named) and isinstance(value, str | int | float):
            fix = f"Write [{shown(value)}]"
        elif len(named) == 1 and named[0].get("type") == "object":
            fix = _keys_of(named[0])
        if value is None:
            fix = "Leave the key out to get its default"
        self._add(2, path, shown(value), allowed, fix)

    def _not_a_word(self, value: Any, option: Schema, path: Path) -> None:
        words = option.get("enum") or [option["const"]]
        allowed = f"must be {'one of ' if len(words) > 1 else ''}{', '.join(map(shown, words))}"
        near = nearest(value, [word for word in words if isinstance(word, str)]) if isinstance(value, str) else ""
        self._add(5, path, shown(value), allowed, f'Did you mean "{near}"?' if near else "")

    def _scalar(self, value: Any, schema: Schema, path: Path, unit: str) -> None:
        if ("enum" in schema and value not in schema["enum"]) or ("const" in schema and value != schema["const"]):
            self._not_a_word(value, schema, path)
        elif isinstance(value, str):
            self._text(value, schema, path)
        elif isinstance(value, int | float) and not isinstance(value, bool) and out_of_range(value, schema):
            allowed = f"must be {range_words(schema, unit, value)}"
            self._add(3, path, shown(value), allowed, percent_hint(value, schema))

    def _text(self, value: str, schema: Schema, path: Path) -> None:
        least, most = schema.get("minLength", 0), schema.get("maxLength")
        if len(value) < least:
            allowed = "must not be empty" if least == 1 else f"must have at least {least} characters"
            self._add(6, path, "an empty text" if not value else shown(value), allowed)
        elif most is not None and len(value) > most:
            self._add(6, path, f"a text of {len(value):,} characters", f"must have at most {most:,} characters")
        elif "pattern" in schema:
            import re

            if re.search(schema["pattern"], value) is None:
                form = _FORMS.get(str(path[-1]), f"of the form {schema['pattern']}")
                self._add(9, path, shown(value), f"must be {form}")

    def _list(self, value: list[Any], schema: Schema, path: Path, unit: str) -> None:
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        if len(value) < least:
            found = "an empty list" if not value else shown(value)
            allowed = "must not be empty" if least == 1 else f"must have at least {least} values"
            self._add(6, path, found, allowed, "Leave the key out to get its default")
        elif most is not None and len(value) > most:
            self._add(6, path, shown(value), f"must have at most {most} values")
        items = schema.get("items", {})
        kind = self._resolved(items)[0].get("type")
        seen: dict[Any, int] = {}
        for index, item in enumerate(value):
            where = (*path, index)
            before = len(self.found)
            self._value(item, items, where, unit)
            if self.is_full:
                return
            # Figures may repeat, as in a load profile; names and degrees are choices.
            if kind in ("string", "integer") and isinstance(item, str | int) and len(self.found) == before:
                if item in seen:
                    first = field_name((path[-1], seen[item]))
                    self._add(8, where, f"{shown(item)}, as in {first}", "must be named once")
                else:
                    seen[item] = index

    def _object(self, value: Mapping[str, Any], schema: Schema, shape: str, path: Path, unit: str = "") -> None:
        known: Mapping[str, Schema] = schema.get("properties", {})
        rest = schema.get("additionalProperties", True)
        for key, inner in value.items():
            if self.is_full:
                return
            if key in known:
                self._value(inner, known[key], (*path, key), str(known[key].get("unit", unit)))
            elif isinstance(rest, Mapping):
                self._value(inner, rest, (*path, key), str(rest.get("unit", unit)))
            elif rest is False:
                self._unknown(key, value, known, path)
        for key in schema.get("required", ()):
            if key not in value and (*path, key) not in self._bad:
                meaning = str(known[key].get("description", "")).rstrip(".")
                self._missing(path, key, meaning)
        self._rules(value, shape, path)

    def _missing(self, path: Path, key: str, meaning: str) -> None:
        number = f"E-{section((*self._prefix, *path, key))}-004"
        allowed = f"must be given: {meaning[:1].lower()}{meaning[1:]}" if meaning else "must be given"
        self.found.append(Found(number, path, "no such key", allowed, name=(*path, key)))
        self._bad.add((*path, key))

    def _unknown(self, key: str, value: Mapping[str, Any], known: Mapping[str, Schema], path: Path) -> None:
        near = nearest(key, [one for one in known if one not in value])
        twin = "" if near else nearest(key, [one for one in known if one in value])
        if near:
            fix = f"Did you mean {near}?"
            self._bad.add((*path, near))
        elif twin:
            fix = f"{twin} is there already"
        else:
            home = self._home(key, path)
            fix = f"It belongs to {home}" if home else f"Keys there: {', '.join(known)}" if len(known) <= 16 else ""
        whole = f"a {self._prefix[0]}" if self._prefix else "an instance"
        allowed = f"must be a key of {field_name(path) if path else whole}"
        self._add(1, (*path, key), "an unknown key", allowed, fix, at_key=True)

    def _home(self, key: str, path: Path) -> str:
        """The section that has a key of this name, when it was written into another one."""
        for name, schema in self._top.get("properties", {}).items():
            if name == key and path:
                return "the top level"
            options = self._alternatives(schema) if (name,) != path[:1] else ()
            if any(key in option.get("properties", {}) for option, _ in options):
                return f"{name}"
        return ""

    def _rules(self, value: Mapping[str, Any], shape: str, path: Path) -> None:
        for rule in RULES.get(shape, ()):
            if all(self.is_sound((*path, name)) for name in rule.reads) and not self.is_full:
                self._rule(rule, value, path)

    def _rule(self, rule: Rule, value: Mapping[str, Any], path: Path) -> None:
        for broken in rule.check(value):
            self.found.append(Found(rule.code, (*path, *broken.field), broken.found, broken.allowed))


def _kinds(options: list[tuple[Schema, str]]) -> dict[str, tuple[Schema, str]]:
    """Shapes by the word that their ``kind`` must be, where each has one."""
    words = [option.get("properties", {}).get("kind", {}).get("const") for option, _ in options]
    return {} if None in words else dict(zip(map(str, words), options, strict=True))


def _keys_of(schema: Schema) -> str:
    """What may stand in the braces of an object: every key of a short one, of a long one those it must have."""
    known = [key for key in schema.get("properties", ()) if not key.startswith("$")]
    if 0 < len(known) <= _FEW_KEYS:
        return f"Write {{...}} with keys of {', '.join(known)}"
    must = schema.get("required", ())
    return f"Write {{...}} with at least {', '.join(must)}" if must else ""


def _fits(value: Any, schema: Schema) -> bool:
    """Whether a value has the JSON type of a schema."""
    kind = schema.get("type")
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, str):
        return kind == "string"
    if isinstance(value, int):
        return kind in ("integer", "number")
    if isinstance(value, float):
        return kind == "number"
    if isinstance(value, dict):
        return kind == "object"
    if isinstance(value, list):
        return kind == "array"
    return kind == "null"
