"""How a field of an instance is declared: meaning, unit, range, default and the source of the default."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Frozen(BaseModel):
    """Base of every part of an instance: immutable, unknown keys refused, no NaN and no infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)


#: Marks a field that has no default: the planner must write it.
REQUIRED: Any = ...


def field(
    default: Any, description: str, *, unit: str = "", default_source: str = "", **constraints: Any
) -> Any:
    """Declare a field with its unit and the source of its default.

    ``unit`` and ``default_source`` land in the JSON Schema beside the description, so that editors, docs and
    ``optimize schema`` tell the same story. ``constraints`` are those of :func:`pydantic.Field`.
    """
    extra: dict[str, str] = {}
    if unit:
        extra["unit"] = unit
    if default_source:
        extra["default_source"] = default_source
    if isinstance(default, (list, dict)):
        raise TypeError("a mutable default: use a tuple or default_factory")
    return Field(default, description=description, json_schema_extra=extra or None, **constraints)
