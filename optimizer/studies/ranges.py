"""What a sweep varies: ``PATH=SPEC`` read into an axis, which is a field and the values that it takes.

Specs, for a number:

======================  =======================================================================
``100:300:21``          21 values from 100 to 300, both included
``100:1600:5:log``      the same, evenly spaced in ratio
``-30%..30%:7``         7 changes of the value that holds now (stated, default or catalogue)
``x0.5..x2:7``          7 multiples of it
``10,12.5,x2,+5%``      each of these
``null,500,1000``       null: as if the field were absent (no limit, or its default)
======================  =======================================================================

For a word or a name, ``a,b,c``. For a list, ``a,b+c`` is two cases: the list of ``a``, and that of ``b`` and ``c``.
``[...]`` is read as a JSON list of the values. A ``*`` in the path stands for every catalogue id of the instance's
search that has a value there; all of them move together.
"""

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from optimizer.errors import Problem, UsageProblems
from optimizer.instance.field_paths import (
    FieldPath,
    UnknownFieldError,
    document_of,
    entries_at,
    find_field,
    problems_in,
    replaced,
)
from optimizer.instance.model import Instance
from optimizer.instance.problems import shown
from optimizer.studies.current_values import current_value, ids_in_use

#: Most values of one axis, and most cases of a sweep: beyond, nobody reads them.
MAX_VALUES: Final = 100_000
MAX_CASES: Final = 1_000_000

#: Significant digits of a value between two ends: 110 and not 110.00000000000001.
_DIGITS: Final = 12

_NUMBER: Final = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_END: Final = rf"(?:[x×*]{_NUMBER}|[+-]?{_NUMBER}%?)"
_RANGE: Final = re.compile(rf"\s*({_END})\s*(?:\.\.|:)\s*({_END})\s*(?::\s*(\d+)\s*(?::\s*(log|lin))?)?\s*")

_EXAMPLES: Final = "must be like 100:300:21, -30%..30%:7, x0.5..x2:7 or a,b,c"


class BadSpecError(ValueError):
    """A spec that cannot be read: what was found, what is allowed, what to write."""

    def __init__(self, found: str, allowed: str = _EXAMPLES, fix: str = "", number: int = 303) -> None:
        super().__init__(f"{found}; {allowed}")
        self.found, self.allowed, self.fix, self.number = found, allowed, fix, number


@dataclass(frozen=True, slots=True)
class Axis:
    """Fields that move together and the values they take: ``values[i][k]`` is that of ``fields[k]`` at point ``i``.

    ``label`` is the path as it was written; ``points`` what tells one point from another in tables: the value of a
    single field, the multiple or change where several move together.
    """

    label: str
    fields: tuple[FieldPath, ...]
    values: tuple[tuple[Any, ...], ...]
    points: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.values)

    @property
    def unit(self) -> str:
        """Unit of the points."""
        return self.fields[0].unit if len(self.fields) == 1 else ""

    def applied(self, document: dict[str, Any], point: int) -> dict[str, Any]:
        """A document with the fields at one of their points."""
        for field, value in zip(self.fields, self.values[point], strict=True):
            document = replaced(document, field.steps, value)
        return document


def read_axis(instance: Instance, text: str) -> Axis:
    """The axis of one ``PATH=SPEC``; UsageProblems with everything that is wrong with it."""
    return read_axes(instance, (text,))[0]


def read_axes(instance: Instance, texts: Iterable[str], *, linked: bool = False) -> tuple[Axis, ...]:
    """The axes of every ``PATH=SPEC``.

    Raises
    ------
    UsageProblems: some path, spec or value is bad; carries every problem of all of them.
    """
    problems: list[Problem] = []
    axes: list[Axis] = []
    for text in texts:
        try:
            axis = _axis(instance, text, linked=linked)
        except UnknownFieldError as error:
            problems.append(_problem(302, text, error.found, error.allowed, error.fix))
            continue
        except BadSpecError as error:
            problems.append(_problem(error.number, text, error.found, error.allowed, error.fix))
            continue
        problems += _bad_values(instance, axis)
        axes.append(axis)
    problems += _clashes(axes)
    if linked and len({len(axis) for axis in axes}) > 1:
        found = ", ".join(f"{len(axis)} values of {axis.label}" for axis in axes)
        problems.append(
            Problem("E-SWEEP-305", "--link", found=found, allowed="linked fields must have one count of values")
        )
    if problems:
        raise UsageProblems(tuple(problems))
    return tuple(axes)


def case_count(axes: Sequence[Axis], *, linked: bool = False) -> int:
    """Cases of a sweep: the product of the axes, or their common length where they are linked.

    Raises
    ------
    UsageProblems: there are more than ``MAX_CASES``.
    """
    count = len(axes[0]) if linked else math.prod(len(axis) for axis in axes)
    if count > MAX_CASES:
        allowed = f"must be at most {MAX_CASES:,}"
        raise UsageProblems(
            (Problem("E-SWEEP-306", "--vary", found=f"{count:,} cases", allowed=allowed, fix="Ask for fewer values"),)
        )
    return count


def case_points(axes: Sequence[Axis], number: int, *, linked: bool = False) -> tuple[int, ...]:
    """Which point of each axis a case is at; the last axis moves fastest."""
    if linked:
        return (number,) * len(axes)
    points = []
    for axis in reversed(axes):
        number, point = divmod(number, len(axis))
        points.append(point)
    return tuple(reversed(points))


def case_number(axes: Sequence[Axis], points: Sequence[int]) -> int:
    """The case that is at one point of each axis; the last axis moves fastest."""
    number = 0
    for axis, point in zip(axes, points, strict=True):
        number = number * len(axis) + point
    return number


def _problem(number: int, text: str, found: str, allowed: str, fix: str) -> Problem:
    return Problem(f"E-SWEEP-{number}", "--vary", field=text.partition("=")[0], found=found, allowed=allowed, fix=fix)


def _axis(instance: Instance, text: str, *, linked: bool) -> Axis:
    path, equals, spec = text.partition("=")
    path, spec = path.strip(), spec.strip()
    if not equals or not path or not spec:
        raise BadSpecError(shown(text), "must be PATH=VALUES, as in targets.tpot_ms=100:300:21", number=301)
    fields = _fields(instance, path)
    field = fields[0]
    written = _read(spec, field)
    columns = [tuple(_value(one, each, instance) for each in fields) for one in written]
    if len(fields) == 1:
        points: list[Any] = [row[0] for row in columns]
    else:
        points = [one.text if isinstance(one, _Relative) else one for one in written]
    kept: dict[str, int] = {}
    for place, row in enumerate(columns):
        # Whole numbers of a range may repeat; a case is told once. Linked fields go on step by step all the same.
        kept.setdefault(json.dumps([row, place if linked else None]), place)
    places = kept.values()
    label = path if len(fields) > 1 else field.name
    return Axis(label, fields, tuple(columns[one] for one in places), tuple(points[one] for one in places))


def _fields(instance: Instance, path: str) -> tuple[FieldPath, ...]:
    before, star, after = path.replace("[*]", ".*").partition("*")
    if not star:
        return (find_field(instance, path),)
    if "*" in after:
        raise BadSpecError(shown(path), "must have one * at most", number=302)
    section = before.rstrip(".")
    entries = entries_at(instance, section)
    if entries is None:
        names = tuple(f"{section}.{key}{after}" for key in ids_in_use(instance, section))
        allowed = "must have a value for some accelerator or cooling option of the search"
    else:
        # Of an empty list the error says where the field is instead.
        names = tuple(f"{entry}{after}" for entry in entries) or (path,)
        allowed = f"must have a value for some entry of {section}"
    fields = [find_field(instance, name) for name in names]
    fields = [field for field in fields if current_value(instance, field) is not None]
    if not fields:
        raise BadSpecError(shown(path), allowed, number=302)
    return tuple(fields)


@dataclass(frozen=True, slots=True)
class _Relative:
    """A multiple of what holds now, and how it was written."""

    factor: float
    text: str


def _read(spec: str, field: FieldPath) -> list[Any]:
    """What a spec lists: JSON values, or multiples of the value that holds now."""
    if spec.startswith("["):
        try:
            values = json.loads(spec)
        except json.JSONDecodeError as error:
            raise BadSpecError(f"{shown(spec)}, no JSON ({error.msg})") from None
        except RecursionError:
            raise BadSpecError(f"{shown(spec)}, lists within lists", "must be a list of values") from None
        if not values:
            raise BadSpecError("an empty list", "must list at least one value")
        return [_not_rounded(one, field) for one in values]
    match = _RANGE.fullmatch(spec)
    if match is not None and (field.is_number or field.item_kind in ("number", "integer")):
        return _range(*match.groups())
    items = [one.strip() for one in spec.split(",")]
    if "" in items:
        raise BadSpecError(shown(spec), "must have a value between commas")
    return [_not_rounded(_item(one, field), field) for one in items]


def _not_rounded(value: Any, field: FieldPath) -> Any:
    """A value that was written down; refused where it would be rounded, since that is another value."""
    is_whole = field.item_kind == "integer" if isinstance(value, list) else field.is_whole
    for one in value if isinstance(value, list) else [value]:
        if is_whole and isinstance(one, float) and not one.is_integer():
            raise BadSpecError(f"{one:g}", "must be a whole number")
    return value


def _range(first: str, last: str, count: str | None, spacing: str | None) -> list[Any]:
    text = f"{first}..{last}"
    if count is None:
        raise BadSpecError(text, "must say how many values", f"Write {first}..{last}:5")
    # The sign of the first end tells that both are changes: -30%..30%.
    if last.endswith("%") and last[0] not in "+-" and first.endswith("%") and first[0] in "+-":
        last = f"+{last}"
    ends = [_number(first), _number(last)]
    relative = [isinstance(one, _Relative) for one in ends]
    if relative[0] != relative[1]:
        raise BadSpecError(text, "both ends must be values, or both changes of the present value")
    low, high = (one.factor if isinstance(one, _Relative) else float(one) for one in ends)
    points = int(count)
    if not 1 <= points <= MAX_VALUES or (points == 1 and low != high):
        least = 2 if low != high else 1
        raise BadSpecError(f"{points:,} values", f"must be {least} to {MAX_VALUES:,} values")
    if spacing == "log" and min(low, high) <= 0.0:
        raise BadSpecError(text, "must be above 0 for even ratios")
    values = []
    for place in range(points):
        share = place / (points - 1) if points > 1 else 0.0
        value = low * (high / low) ** share if spacing == "log" else low + (high - low) * share
        value = low if place == 0 else high if place == points - 1 else float(f"{value:.{_DIGITS}g}")
        values.append(value)
    if not relative[0]:
        return values
    if "%" in first:
        return [_Relative(value, f"{_rounded((value - 1.0) * 100.0):+g}%") for value in values]
    return [_Relative(value, f"x{value:g}") for value in values]


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS - 3}g}") + 0.0


def _number(text: str) -> float | _Relative:
    """A number, a change in percent, or a multiple."""
    if text[0] in "x×*":
        return _Relative(float(text[1:]), f"x{text[1:]}")
    if text.endswith("%"):
        change = float(text[:-1])
        if text[0] not in "+-" and change != 0.0:
            # 90% could be the share 0.9 or a rise by 90 %: guessing would give a wrong number.
            is_share = 0.0 < change <= 100.0
            share = f", or {change / 100.0:g} for the share" if is_share else ""
            raise BadSpecError(text, "must have a sign", f"Write +{text} for a rise by it{share}")
        return _Relative(float(f"{1.0 + change / 100.0:.{_DIGITS}g}"), f"{change:+g}%")
    value = float(text)
    if not math.isfinite(value):
        raise BadSpecError(text, "must be a finite number")
    return value


def _item(text: str, field: FieldPath) -> Any:
    """One item between commas: a number, a change, a word, a list joined by +, or null."""
    if text == "null":
        return None
    if field.is_number or field.item_kind in ("number", "integer"):
        parts = [text] if re.fullmatch(_END, text) else text.split("+") if field.is_list else [text]
        if all(re.fullmatch(_END, part) for part in parts):
            if len(parts) == 1:
                value = _number(parts[0])
                return [value] if field.is_list and not isinstance(value, _Relative) else value
            return [_number(part) for part in parts]
    if field.is_list and field.item_kind == "string":
        return [part.strip() for part in text.split("+")]
    if "boolean" in field.kinds and text in ("true", "false"):
        return text == "true"
    if "string" in field.kinds:
        return text
    raise BadSpecError(shown(text), "must be a number" if field.is_number else _EXAMPLES)


def _value(written: Any, field: FieldPath, instance: Instance) -> Any:
    """The JSON value of a field: multiples applied to what holds now, whole numbers made whole."""
    if isinstance(written, _Relative):
        now = current_value(instance, field)
        if now is None:
            raise BadSpecError(
                f"{written.text} of {field.name}, which has no value now",
                "must be a value" + (f" in {field.unit}" if field.unit else ""),
                number=304,
            )
        if isinstance(now, list | tuple):
            return [_whole(one * written.factor, field.item_kind == "integer") for one in now]
        if isinstance(now, bool) or not isinstance(now, int | float):
            raise BadSpecError(f"{written.text} of {shown(now)}", "must be a value: it is no number", number=304)
        return _whole(float(f"{now * written.factor:.{_DIGITS}g}") if written.factor != 1.0 else now, field.is_whole)
    if isinstance(written, list):
        return [_whole(one, field.item_kind == "integer") if isinstance(one, int | float) else one for one in written]
    if isinstance(written, float):
        return _whole(written, field.is_whole)
    return written


def _whole(value: float, is_whole: bool) -> float | int:
    return round(value) if is_whole and not isinstance(value, bool) else value


def _bad_values(instance: Instance, axis: Axis) -> list[Problem]:
    """Problems that the instance would have at each value by itself, each told once."""
    document = document_of(instance)
    found: dict[tuple[str, str, str], Problem] = {}
    for point in range(len(axis)):
        for one in problems_in(axis.applied(document, point), "--vary"):
            found.setdefault((one.code, one.field, one.found), one)
    return list(found.values())


def _clashes(axes: Sequence[Axis]) -> list[Problem]:
    """Fields that two axes move, or one inside a list that another replaces."""
    problems = []
    seen: list[FieldPath] = []
    for axis in axes:
        for field in axis.fields:
            for other in seen:
                shorter = min(len(field.steps), len(other.steps))
                if field.steps[:shorter] == other.steps[:shorter]:
                    problems.append(
                        Problem(
                            "E-SWEEP-307",
                            "--vary",
                            field=field.name,
                            found=f"a field that {other.name} moves too",
                            allowed="must be varied once",
                        )
                    )
        seen += axis.fields
    return problems
