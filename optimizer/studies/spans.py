"""A stretch of values that a study moves through: ``PATH=LOW:HIGH`` read into a field, or fields that move together."""

import math
from dataclasses import dataclass
from typing import Any

from optimizer.errors import Problem, UsageProblems
from optimizer.instance.field_paths import FieldPath
from optimizer.instance.model import Instance
from optimizer.studies.current_values import current_value
from optimizer.studies.ranges import Axis, read_axis


@dataclass(frozen=True, slots=True)
class Span:
    """Values from ``low`` to ``high`` of one field, or of several as multiples of what each has now.

    ``low`` and ``high`` are what is told: values of a single field, multiples where several move together.
    """

    label: str
    unit: str
    fields: tuple[FieldPath, ...]
    low: float
    high: float
    ends: tuple[tuple[float, ...], tuple[float, ...]]
    now: float | None

    @property
    def is_whole(self) -> bool:
        """Whether the field holds whole numbers only."""
        return len(self.fields) == 1 and self.fields[0].is_whole

    def values(self, point: float) -> dict[FieldPath, Any]:
        """Value of each field at a point between ``low`` and ``high``."""
        share = (point - self.low) / (self.high - self.low)
        result: dict[FieldPath, Any] = {}
        for field, first, last in zip(self.fields, *self.ends, strict=True):
            value = point if len(self.fields) == 1 else first + share * (last - first)
            result[field] = round(value) if field.is_whole else value
        return result

    def points(self, count: int) -> tuple[float, ...]:
        """``count`` points from end to end, each once; whole where the field is."""
        found = [self.low + (self.high - self.low) * place / (count - 1) for place in range(count)]
        found[-1] = self.high
        return tuple(dict.fromkeys(float(round(one)) if self.is_whole else one for one in found))


def read_span(instance: Instance, text: str, option: str) -> Span:
    """The span of ``PATH=LOW:HIGH``, with the forms of values that ``optimize sweep`` knows; a count is refused.

    Raises
    ------
    UsageProblems: the path or an end is bad, the ends are equal, or the field holds no number.
    """
    path, _, spec = text.partition("=")
    axis = read_axis(instance, f"{path}={spec}:2" if _has_no_count(spec) else text)
    return _span(instance, axis, text, option)


def read_counted_span(instance: Instance, text: str, option: str, count: int) -> tuple[Span, int]:
    """The span of ``PATH=LOW:HIGH[:N]`` and how many points it has, ``count`` where none is stated."""
    path, _, spec = text.partition("=")
    if _has_no_count(spec):
        return read_span(instance, text, option), count
    axis = read_axis(instance, text)
    stated = len(axis)
    return _span(instance, axis, f"{path}={spec}", option), max(2, stated)


def _has_no_count(spec: str) -> bool:
    return len([part for part in spec.replace("..", ":").split(":") if part]) <= 2


def _span(instance: Instance, axis: Axis, text: str, option: str) -> Span:
    def refuse(found: str, allowed: str) -> UsageProblems:
        return UsageProblems((Problem("E-STUDY-401", option, field=axis.label, found=found, allowed=allowed),))

    if not all(field.is_number for field in axis.fields):
        raise refuse("a field that holds no number", "must hold a number")
    first, last = axis.values[0], axis.values[-1]
    if any(isinstance(one, bool) or not isinstance(one, int | float) for one in (*first, *last)):
        raise refuse(text, "must have two numbers as its ends")
    if len(axis.fields) == 1:
        low, high = float(first[0]), float(last[0])
    else:
        now = [float(current_value(instance, field)) for field in axis.fields]
        low, high = float(first[0]) / now[0], float(last[0]) / now[0]
    if not low < high or not math.isfinite(high - low):
        raise refuse(text, "must rise from its first end to its last")
    held = current_value(instance, axis.fields[0]) if len(axis.fields) == 1 else 1.0
    return Span(
        label=axis.label,
        unit=axis.unit if len(axis.fields) == 1 else "times the value now",
        fields=axis.fields,
        low=low,
        high=high,
        ends=(tuple(float(one) for one in first), tuple(float(one) for one in last)),
        now=float(held) if isinstance(held, int | float) and not isinstance(held, bool) else None,
    )
