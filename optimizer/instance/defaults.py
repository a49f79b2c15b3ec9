"""What the planner left open and the program filled in, with where each default comes from."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import BaseModel

from optimizer.instance.fields import Frozen

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from optimizer.instance.model import Instance

#: Keys that say nothing about the cluster.
_SILENT: Final = frozenset({"schema_url", "story", "format_version", "kind"})

#: A default that does not matter once another key of the same object is given: field -> that key.
_REPLACED_BY: Final[Mapping[str, str]] = {
    "accuracy_floor_fraction": "accuracy_floor_score",
    "classes": "request",
    "electricity_region": "electricity_usd_per_kwh",
    "periods": "hourly_usd_per_kwh",
}

#: A default that matters only if another key of the same object is given.
_NEEDS: Final[Mapping[str, str]] = {
    "think_time_s": "concurrent_users",
    "discount_kind": "discounts",
    "network_discount_kind": "network_discounts",
    "rack_floor_m2": "floor_m2",
    "failures_per_accelerator_year": "availability_fraction",
    "repair_days": "availability_fraction",
}


#: What only one kind of work reads, by its dotted name or the beginning of it.
_OF_SERVING: Final = (
    "targets.accuracy_",
    "targets.vram_fraction",
    "targets.peak_utilization_fraction",
    "choices.tensor_parallel",
    "choices.pipeline_parallel",
    "choices.expert_parallel",
    "choices.attention_data_parallel",
    "choices.max_concurrency",
    "choices.schemes",
    "choices.kv_schemes",
    "choices.recovery_steps",
)
_OF_TRAINING: Final = ("economics.charge",)


class DefaultUsed(NamedTuple):
    """A default that a plan rests on: dotted field, value in words, unit, source."""

    field: str
    value: str
    unit: str
    source: str


def defaults_used(instance: "Instance") -> tuple[DefaultUsed, ...]:
    """Every default in effect, in the order of the format.

    A field that is absent and has no stated default (a limit that is not set, a price that the catalogue gives) is no
    default: nothing was filled in.
    """
    unread = _OF_SERVING if instance.workload.kind == "training" else _OF_TRAINING
    if instance.workload.kind == "training" and instance.sites:
        unread = (*unread, "site.")
    return tuple(one for one in _of_part(instance, "") if not one.field.startswith(unread))


def _of_part(part: BaseModel, prefix: str) -> Iterator[DefaultUsed]:
    for name, info in type(part).model_fields.items():
        value = getattr(part, name)
        field = f"{prefix}{name}"
        extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
        source = str(extra.get("default_source", ""))
        if name in _SILENT:
            continue
        if name in part.model_fields_set or not source:
            yield from _of_value(value, field)
        elif matters(part, name):
            yield DefaultUsed(field, _words(value), _unit(info), source)


def matters(part: BaseModel, name: str) -> bool:
    """Whether a field is read at all: some are replaced by another one, some need one that is not given."""
    if getattr(part, _REPLACED_BY.get(name, ""), None):
        return False
    return name not in _NEEDS or bool(getattr(part, _NEEDS[name], None))


def _of_value(value: Any, field: str) -> Iterator[DefaultUsed]:
    """Defaults inside a value: in a part, in each of several parts, in parts by name."""
    if isinstance(value, Frozen):
        yield from _of_part(value, f"{field}.")
    elif isinstance(value, tuple):
        for index, one in enumerate(value):
            yield from _of_value(one, f"{field}[{index}]")
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _of_value(one, f"{field}.{key}")


def _unit(info: "FieldInfo") -> str:
    extra = info.json_schema_extra
    return str(extra.get("unit", "")) if isinstance(extra, dict) else ""


def _words(value: Any) -> str:
    if value is None:
        return "not given"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, Frozen):
        given = {name: inner for name, inner in value if inner is not None}
        return ", ".join(f"{name} {_words(inner)}" for name, inner in given.items())
    if isinstance(value, tuple | dict):
        return ", ".join(_words(one) for one in value) or "none"
    return str(value)
