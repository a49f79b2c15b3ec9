"""How a field of an instance is declared: meaning, unit, range, default and the source of the default."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from optimizer.instance.rules import RULES, broken_rules


class Frozen(BaseModel):
    """Base of every part of an instance: immutable, unknown keys refused, no NaN and no infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)


class Ruled(Frozen):
    """A part whose fields depend on each other: it obeys the rules of its name in ``rules``."""

    @model_validator(mode="after")
    def _obeys_its_rules(self) -> Self:
        name = type(self).__name__
        read = {field for rule in RULES[name] for field in rule.reads}
        broken = [f"found {one.found}; {one.allowed}" for _, one in broken_rules(name, self.model_dump(include=read))]
        if broken:
            raise ValueError("\n".join(broken))
        return self


#: Marks a field that has no default: the planner must write it.
REQUIRED: Any = ...


def field(default: Any, description: str, *, unit: str = "", default_source: str = "", **constraints: Any) -> Any:
    """Declare a field with its unit and the source of its default.

    ``unit`` and ``default_source`` land in the JSON Schema beside the description, so that editors, docs and
    ``optimize schema`` tell the same story. ``constraints`` are those of :func:`pydantic.Field`.
    """
    extra: JsonDict = {}
    if unit:
        extra["unit"] = unit
    if default_source:
        extra["default_source"] = default_source
    if isinstance(default, (list, dict)):
        raise TypeError("a mutable default: use a tuple or default_factory")
    return Field(default, description=description, json_schema_extra=extra or None, **constraints)
