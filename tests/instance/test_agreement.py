"""The checker and the pydantic shapes agree, and no mutation of a file ends in anything but words."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from optimizer.errors import CODES, InputError
from optimizer.instance import Instance, schema
from optimizer.instance.checking import Checker
from optimizer.instance.reading import read_instance_text
from optimizer.instance.rules import RULES
from tests.instance.corpus import spoilt
from tests.instance.samples import changed, read, several_classes, sound, training

#: Values that have caused trouble in readers of JSON.
NASTY: list[Any] = [
    None, True, False, 0, -0.0, 1, -1, 2, 0.5, 1.5, 99, 1e308, -1e308, 5e-324, 10**19, 10**60, "", " ", "1", "150 ms",
    "h100", "é", "\u202e", "\x00", "x" * 300, [], {}, [[]], [None], [0], ["a", "a"], {"": 0}, {"a": {"b": []}},
    {"id": "x"}, {"config": {}}, {"name": "m", "config": {"a": [1, None]}}, "../x.json", "/", "~", "~nobody/x", ".",
    [0.5] * 24, [{"name": "a"}], [{"from_servers": 2, "discount_fraction": 0.1}] * 2,
]  # fmt: skip


def paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every path of a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] + [found for key, one in inner for found in paths(one, (*path, key))]


KEYS = sorted({name for inner in schema.committed()["$defs"].values() for name in inner.get("properties", ())})


@st.composite
def mutations(draw: st.DrawFn) -> dict[str, Any]:
    """A sound instance with some values replaced, removed, added or moved."""
    value: dict[str, Any] = draw(st.sampled_from([sound, several_classes, training]))()
    for _ in range(draw(st.integers(1, 4))):
        path = draw(st.sampled_from([one for one in paths(value) if one]))
        inner: Any = value
        for step in path[:-1]:
            inner = inner[step]
        kind = draw(st.sampled_from(["replace", "remove", "add", "rename"]))
        new = draw(st.sampled_from(NASTY) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8))
        new = deepcopy(new)  # a later step may change what this one puts there
        if kind == "replace" or not isinstance(inner, dict):
            inner[path[-1]] = new
        elif kind == "remove":
            del inner[path[-1]]
        elif kind == "add":
            inner[draw(st.sampled_from(KEYS) | st.text(max_size=8))] = new
        else:
            inner[draw(st.sampled_from(KEYS))] = inner.pop(path[-1])
    return value


def outcome(text: str) -> Instance | InputError:
    """What reading a text gives."""
    try:
        return read_instance_text(text, "my.json")
    except InputError as error:
        return error


def shapes_refuse(text: str) -> list[tuple[str, str]]:
    """Section and kind of what the shapes alone refuse."""
    try:
        Instance.model_validate_json(text)
    except ValidationError as error:
        return [(str(one["loc"][0]), one["type"]) for one in error.errors()]
    return []


@settings(max_examples=400, deadline=None)
@given(mutations())
def test_a_mutation_is_an_instance_or_words(value: dict[str, Any]) -> None:
    text = json.dumps(value, indent=1)
    instance = outcome(text)
    if isinstance(instance, Instance):
        assert read_instance_text(text, "my.json") == instance
        return
    assert instance.problems
    for one in instance.problems:
        assert one.code in CODES
        assert one.code != "E-INSTANCE-020"
        assert str(one).isprintable()


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 3000), st.text(max_size=3), st.integers(0, 40))
def test_a_damaged_text_is_an_instance_or_words(at: int, new: str, cut: int) -> None:
    text = json.dumps(sound(), indent=1)
    at %= len(text)
    instance = outcome(text[:at] + new + text[at + cut :])
    assert isinstance(instance, Instance) or instance.problems


@settings(max_examples=300, deadline=None)
@given(mutations())
def test_what_the_checker_passes_the_shapes_pass(value: dict[str, Any]) -> None:
    """Own rows and inline models have checks of their own that the schema cannot say; those may still refuse."""
    if not Checker(schema.committed()).check(value, "Instance"):
        refused = shapes_refuse(json.dumps(value))
        assert {where for where, _ in refused} <= {"catalog", "workload"}
        assert not refused or "value_error" in {kind for _, kind in refused}


@pytest.mark.parametrize("name", sorted(spoilt()))
def test_what_the_shapes_refuse_the_reader_refuses(name: str) -> None:
    value = spoilt()[name]
    try:
        Instance.model_validate(value, strict=False)
    except ValidationError:
        with pytest.raises(InputError):
            read(value)


def test_rules_hold_for_instances_built_in_python() -> None:
    broken: dict[str, dict[str, Any]] = {
        "E-WORKLOAD-020": {"workload/demand/concurrent_users": 5.0},
        "E-WORKLOAD-021": {"workload/demand/think_time_s": 5.0},
        "E-WORKLOAD-022": {"workload/load/hourly_fractions": [0.5] * 24},
        "E-WORKLOAD-023": {"workload/load": {"hourly_fractions": [0.5] * 23}},
        "E-WORKLOAD-024": {"workload/load": {"hourly_fractions": [0.0] * 24}},
        "E-WORKLOAD-025": {"workload/request": ...},
        "E-WORKLOAD-026": {"workload/max_context_tokens": 10},
        "E-TARGETS-020": {"targets/accuracy_baseline_score": 60},
        "E-TARGETS-021": {"targets/accuracy_baseline_score": 60, "targets/accuracy_floor_score": 50},
        "E-TARGETS-023": {"targets/latency_ms": 10},
        "E-TARGETS-024": {"targets/weights_gib_per_accelerator": 9, "targets/vram_gib_per_accelerator": 8},
    }
    for code, change in broken.items():
        with pytest.raises(ValidationError, match="found"):
            Instance.model_validate_json(json.dumps(changed(change)))
        with pytest.raises(InputError, match=code):
            read(changed(change))


def test_rules_read_fields_that_exist() -> None:
    defs = {**schema.committed()["$defs"], "Instance": schema.committed()}
    for shape, rules in RULES.items():
        for rule in rules:
            assert set(rule.reads) <= set(defs[shape]["properties"])
            assert rule.code in CODES
