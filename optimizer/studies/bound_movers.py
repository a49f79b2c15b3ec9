"""Bounds and assumptions of an instance, each with its plausible range and the instance that has another value."""

from collections.abc import Iterator

from pydantic import BaseModel

from optimizer.errors import InputError
from optimizer.instance.defaults import matters
from optimizer.instance.field_paths import FieldPath, known_fields, stated_value, with_values
from optimizer.instance.model import Instance
from optimizer.studies.current_values import current_value
from optimizer.studies.movers import Mover, Neighbour
from optimizer.studies.plausible_ranges import PlausibleRange, plausible_range

#: An end that the rules of an instance refuse is drawn towards the value now, so many times by half.
_HALVINGS = 6


def bounds_and_assumptions(instance: Instance) -> Iterator[Mover]:
    """Every number that limits the plan or is taken for granted, by its plausible range.

    A limit that is not set cannot be moved. What is the same for every value (ends that the rules of an instance do
    not allow) is left out.
    """
    for field in known_fields(instance):
        found = plausible_range(field.steps)
        if found is None or not field.is_number or not _is_read(instance, field):
            continue
        # A class's own target falls back on the common one, which is moved by itself.
        now = stated_value(instance, field) if "classes" in field.steps else current_value(instance, field)
        if isinstance(now, bool) or not isinstance(now, int | float):
            continue
        mover = _mover(instance, field, found, float(now))
        if mover is not None:
            yield mover


def _mover(instance: Instance, field: FieldPath, found: PlausibleRange, now: float) -> Mover | None:
    low, high = (_allowed(instance, field, now, _whole(end, field)) for end in found.ends(now))
    if low == high:
        return None

    def at(value: float) -> Neighbour:
        return with_values(instance, {field: _whole(value, field)}), None

    stated = stated_value(instance, field) is not None and _is_written(instance, field)
    return Mover(
        field.name, field.name, field.unit, now, low, high, found.basis, "user" if stated else "assumed", "", at,
        found.kind,
    )  # fmt: skip


def _part_of(instance: Instance, field: FieldPath) -> object:
    """What holds the field."""
    part: object = instance
    for step in field.steps[:-1]:
        part = part[step] if isinstance(part, tuple | dict) else getattr(part, str(step))  # type: ignore[index]
    return part


def _is_read(instance: Instance, field: FieldPath) -> bool:
    part = _part_of(instance, field)
    return not isinstance(part, BaseModel) or matters(part, str(field.steps[-1]))


def _is_written(instance: Instance, field: FieldPath) -> bool:
    """Whether the planner wrote the field, rather than left it to its default."""
    part = _part_of(instance, field)
    written = getattr(part, "model_fields_set", None)
    return written is None or str(field.steps[-1]) in written


def _whole(value: float, field: FieldPath) -> float:
    return round(value) if field.is_whole else value


def _allowed(instance: Instance, field: FieldPath, now: float, end: float) -> float:
    """The end, or the nearest value towards ``now`` that the instance's rules allow, by halving."""
    value = end
    for _ in range(_HALVINGS):
        try:
            with_values(instance, {field: int(value) if field.is_whole else value})
        except InputError:
            value = _whole((value + now) / 2.0, field)
        else:
            return value
    return now
