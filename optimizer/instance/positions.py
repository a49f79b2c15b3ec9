"""Reads JSON with the place of every key and value, without recursion and in linear time.

The standard parser forgets where a value stood, keeps the last of two equal keys in silence, and meets deep nesting
with a RecursionError. An error message for a planner needs the place, so the file is scanned here.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping
from contextlib import suppress
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]  # public since 2.7, missing in the stubs
from types import MappingProxyType
from typing import Any, Final, NamedTuple

#: A place in the file: keys and list indices from the top.
Path = tuple[str | int, ...]

#: Above these no file is an instance. The bounds keep the work on junk below a second.
MAX_NESTING: Final = 64
MAX_VALUES: Final = 100_000
MAX_NUMBER_LENGTH: Final = 64

_TOKEN: Final = re.compile(
    r'[ \t\n\r]*(?:([{}\[\]:,])|(")|(-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?)(?![\w.])'
    r"|(true|false|null)(?!\w)|(-?(?:NaN|Infinity|nan|inf|infinity))(?!\w)|\Z)"
)
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_WORDS: Final[Mapping[str, bool | None]] = MappingProxyType({"true": True, "false": False, "null": None})


class Place(NamedTuple):
    """Line and column, both counted from 1."""

    line: int
    column: int


class Lines:
    """Turns offsets into lines and columns; they are counted when first asked."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: list[int] | None = None

    def place(self, offset: int) -> Place:
        """Line and column of an offset."""
        if self._starts is None:
            self._starts = [0, *(match.end() for match in re.finditer("\n", self._text))]
        line = bisect_right(self._starts, offset)
        return Place(line, offset - self._starts[line - 1] + 1)


class Fault(NamedTuple):
    """What makes a text unusable before its meaning is looked at; ``code`` is one of the E-FILE codes."""

    code: str
    place: Place
    path: Path
    found: str
    allowed: str
    fix: str = ""


class Scanned(NamedTuple):
    """A scanned text: its value, the places, the faults, and how many tokens were looked at."""

    value: Any
    values: Mapping[Path, int]
    keys: Mapping[Path, int]
    faults: tuple[Fault, ...]
    tokens: int
    lines: Lines

    def offset(self, path: Path, *, key: bool = False) -> int:
        """Offset of a value (or of its key), or of the nearest thing around it that is in the file."""
        while path:
            if key and path in self.keys:
                return self.keys[path]
            if path in self.values:
                return self.values[path]
            path = path[:-1]
        return self.values.get((), 0)

    def place(self, path: Path, *, key: bool = False) -> Place:
        """Line and column of :meth:`offset`."""
        return self.lines.place(self.offset(path, key=key))


class _Stop(Exception):  # noqa: N818 - ends the scan, is no error of ours
    """Nothing after this can be understood."""


class _Scanner:
    """One pass over one text; the open brackets are a list, not the call stack."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = Lines(text)
        self.values: dict[Path, int] = {}
        self.keys: dict[Path, int] = {}
        self.faults: list[Fault] = []
        self.tokens = 0
        self.at = 0
        self.path: Path = ()

    def fault(self, code: str, offset: int, found: str, allowed: str, fix: str = "") -> None:
        self.faults.append(Fault(code, self.lines.place(offset), self.path, found, allowed, fix))

    def refuse(self, offset: int, allowed: str) -> _Stop:
        """Say what stands where something else must stand."""
        found, fix = _describe(self.text, offset)
        self.fault("E-FILE-007", offset, found, allowed, fix)
        return _Stop()

    def next(self, allowed: str) -> tuple[int, str, Any]:
        """Give offset, kind and value of the next token.

        The kind is the mark itself for punctuation, ``"`` for a text, ``0`` for any other value, nothing at the end.
        """
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            space = _SPACE.match(self.text, self.at)
            raise self.refuse(space.end() if space else self.at, allowed)
        start = match.start(match.lastindex) if match.lastindex else len(self.text)
        self.tokens += 1
        self.at = match.end()
        mark, quote, number, fraction, exponent, word, unreal = match.groups()
        if mark:
            return start, mark, None
        if quote:
            return start, '"', self._text(start)
        if number:
            return start, "0", self._number(start, number, whole=not fraction and not exponent)
        if word:
            return start, "0", _WORDS[word]
        if unreal:
            self.fault("E-FILE-011", start, unreal, "must be a finite number", "Leave the key out for no limit")
            return start, "0", None
        return start, "", None

    def _text(self, start: int) -> str:
        try:
            value, self.at = scanstring(self.text, start + 1, True)
        except JSONDecodeError as error:
            place = error.pos
            if error.msg.startswith("Unterminated"):
                self.fault("E-FILE-007", start, "a text without its closing quote", 'must end with "')
            else:
                self.fault(
                    "E-FILE-007",
                    place,
                    "a bare control character or a wrong escape in a text",
                    "must be escaped as in JSON",
                )
            raise _Stop from None
        if _SURROGATE.search(value):
            self.fault("E-FILE-013", start, "half of a surrogate pair", "must be whole characters")
        return str(value)

    def _number(self, start: int, number: str, *, whole: bool) -> int | float:
        if len(number) > MAX_NUMBER_LENGTH:
            self.fault(
                "E-FILE-011",
                start,
                f"a number of {len(number)} characters",
                f"must be at most {MAX_NUMBER_LENGTH} characters long",
            )
            return 0
        value = int(number) if whole else float(number)
        if value in (float("inf"), float("-inf")):
            self.fault("E-FILE-011", start, number, "must be a finite number")
            return 0
        return value

    def run(self) -> Any:
        """Scan the whole text and give its value."""
        holders: list[Any] = []
        top: Any = None
        while True:
            # A value is due here.
            offset, kind, value = self.next("must be a value")
            self.values[self.path] = offset
            if len(self.values) > MAX_VALUES:
                self.fault("E-FILE-009", offset, f"more than {MAX_VALUES} values", f"must be at most {MAX_VALUES}")
                raise _Stop
            if kind not in ('"', "0", "{", "["):
                self.at = offset
                raise self.refuse(offset, "must be a value")
            if kind in "{[":
                value = {} if kind == "{" else []
            if holders:
                _put(holders[-1], self.path[-1], value)
            else:
                top = value
            if kind in "{[":
                if len(holders) >= MAX_NESTING:
                    self.fault(
                        "E-FILE-008",
                        offset,
                        f"brackets more than {MAX_NESTING} deep",
                        f"must be at most {MAX_NESTING} deep",
                    )
                    raise _Stop
                holders.append(value)
                if self._open(kind):
                    continue
                holders.pop()
            # A value is complete here: close what ends with it, or go on to the next member.
            while holders:
                if self._more(holders[-1]):
                    break
                holders.pop()
            if not holders:
                break
        offset, kind, _ = self.next("must be the end of the file")
        if kind:
            raise self.refuse(offset, "must be the end of the file")
        return top

    def _open(self, kind: str) -> bool:
        """After an opening bracket: whether a first member follows; if none does, the bracket is closed."""
        if kind == "[":
            if self._closes("]"):
                return False
            self.path = (*self.path, 0)
            return True
        offset, mark, key = self.next('must be a key in double quotes or "}"')
        if mark == "}":
            return False
        if mark != '"':
            raise self.refuse(offset, 'must be a key in double quotes or "}"')
        self._key(offset, key, self.path)
        return True

    def _closes(self, bracket: str) -> bool:
        """Whether the next thing is a closing bracket, which is then taken."""
        space = _SPACE.match(self.text, self.at)
        after = space.end() if space else self.at
        if not self.text.startswith(bracket, after):
            return False
        self.at = after + 1
        return True

    def _more(self, holder: Any) -> bool:
        """After a member of ``holder``: whether another one follows; ``path`` then points at it, else at the holder."""
        parent, last = self.path[:-1], self.path[-1]
        close = "}" if isinstance(holder, dict) else "]"
        offset, mark, _ = self.next(f'must be "," or "{close}"')
        if mark == close:
            self.path = parent
            return False
        if mark != ",":
            raise self.refuse(offset, f'must be "," or "{close}"')
        if isinstance(last, int):
            if self._closes("]"):
                self.fault(
                    "E-FILE-007",
                    offset,
                    "a comma before the closing bracket",
                    "must be a value after a comma",
                    "Remove the comma",
                )
                raise _Stop
            self.path = (*parent, last + 1)
            return True
        key_offset, kind, key = self.next("must be a key in double quotes")
        if kind == "}":
            self.fault(
                "E-FILE-007",
                offset,
                "a comma before the closing brace",
                "must be a key after a comma",
                "Remove the comma",
            )
            raise _Stop
        if kind != '"':
            raise self.refuse(key_offset, "must be a key in double quotes")
        self._key(key_offset, key, parent)
        return True

    def _key(self, offset: int, key: str, parent: Path) -> None:
        self.path = (*parent, key)
        if self.path in self.keys:
            first = self.lines.place(self.keys[self.path]).line
            self.fault("E-FILE-010", offset, f"the key a second time (first in line {first})", "must be written once")
        else:
            self.keys[self.path] = offset
        colon_offset, mark, _ = self.next('must be ":" after a key')
        if mark != ":":
            raise self.refuse(colon_offset, 'must be ":" after a key')


def _put(holder: Any, key: str | int, value: Any) -> None:
    if isinstance(holder, dict):
        holder.setdefault(key, value)
    else:
        holder.append(value)


def _describe(text: str, offset: int) -> tuple[str, str]:
    """What stands at an offset, and the advice that its first character suggests."""
    rest = text[offset : offset + 24]
    if not rest:
        return "the end of the file", "Close every bracket and quote"
    if rest[0] in "'\u2018\u2019\u201c\u201d":
        return f"{rest[0]}", 'JSON quotes with "'
    if rest.startswith(("//", "/*", "#")):
        return "a comment", "JSON has no comments; use the key story"
    word = re.match(r"[\w.+-]+", rest)
    if word is None:
        return rest[0], ""
    if word.group() in ("True", "False", "None"):
        return word.group(), "JSON writes true, false and null"
    return word.group(), "Put texts and keys in double quotes" if not rest[0].isdigit() else ""


def scan(text: str) -> Scanned:
    """Scan a JSON text. The value is usable only if there are no faults."""
    scanner = _Scanner(text)
    value: Any = None
    with suppress(_Stop):
        value = scanner.run()
    return Scanned(
        value,
        MappingProxyType(scanner.values),
        MappingProxyType(scanner.keys),
        tuple(scanner.faults),
        scanner.tokens,
        scanner.lines,
    )
