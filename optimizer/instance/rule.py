"""What a rule between fields is: the field it speaks about, what was found, what is allowed."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

Values = Mapping[str, Any]
#: Keys from the object that the rule speaks about.
Inner = tuple[str | int, ...]


class Broken(NamedTuple):
    """A rule that does not hold: at which field, what was found, what is allowed."""

    field: Inner
    found: str
    allowed: str


class Rule(NamedTuple):
    """A rule of one shape. It is asked only if every field that it reads is sound in itself."""

    code: str
    reads: tuple[str, ...]
    check: Callable[[Values], Iterator[Broken]]


def given(values: Values, *names: str) -> list[str]:
    """Names of those that are written."""
    return [name for name in names if values.get(name) is not None]
