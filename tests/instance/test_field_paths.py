"""A field by its path: found, read, replaced; what is misspelt is told with the nearest name."""

import json
from typing import Any

import pytest

from optimizer.errors import InputError
from optimizer.instance.field_paths import (
    UnknownFieldError,
    document_of,
    find_field,
    known_fields,
    replaced,
    stated_value,
    with_values,
)
from optimizer.instance.list_entries import entry_index, entry_names, entry_paths, spelled
from optimizer.instance.model import Instance
from tests.studies.small import small

CONTENT: dict[str, Any] = {
    "name": "two classes",
    "workload": {
        "model": "llama-3.1-8b",
        "classes": [
            {
                "name": name,
                "request": {"input_tokens": 500, "output_tokens": 100},
                "demand": {"requests_per_s": 5.0},
            }
            for name in ("chat", "batch")
        ],
        "load": {"hourly_fractions": [0.5] * 23 + [1.0]},
    },
    "targets": {"tpot_ms": 60},
    "economics": {"prices": {"h100-80gb-sxm": {"server_usd": 250_000}}},
    "choices": {"supply": {"l4": 16}},
}


@pytest.fixture
def instance() -> Instance:
    return Instance.model_validate_json(json.dumps(CONTENT))


@pytest.mark.parametrize(
    ("path", "name", "unit", "value"),
    [
        ("targets.tpot_ms", "targets.tpot_ms", "ms", 60),
        ("targets.spare_fraction", "targets.spare_fraction", "fraction", 0.05),
        ("economics.prices.h100-80gb-sxm.server_usd", "economics.prices.h100-80gb-sxm.server_usd", "USD/server", 250e3),
        ("economics.prices.l4.server_usd", "economics.prices.l4.server_usd", "USD/server", None),
        ("choices.supply.l4", "choices.supply.l4", "accelerators", 16),
        ("workload.classes[1].demand.requests_per_s", "workload.classes[1].demand.requests_per_s", "requests/s", 5.0),
        ("workload.classes.batch.request.input_tokens", "workload.classes[1].request.input_tokens", "tokens", 500),
        ("workload.load.hourly_fractions[23]", "workload.load.hourly_fractions[23]", "fraction of peak", 1.0),
        ("economics.prices.A100 SXM 80GB.server_usd", "economics.prices.a100-80gb-sxm.server_usd", "USD/server", None),
    ],
)
def test_field_is_found(instance: Instance, path: str, name: str, unit: str, value: Any) -> None:
    field = find_field(instance, path)
    assert (field.name, field.unit, stated_value(instance, field)) == (name, unit, value)


@pytest.mark.parametrize(
    ("path", "fix"),
    [
        ("targets.tpot", "Did you mean targets.tpot_ms?"),
        ("target.tpot_ms", "Did you mean targets?"),
        ("tpot_ms", "Did you mean targets.tpot_ms?"),
        ("economics.prices.h100-80gb-smx.server_usd", "Did you mean h100-80gb-sxm?"),
        ("workload.classes.chatt.request.input_tokens", "Did you mean workload.classes.chat.request.input_tokens?"),
        (
            "workload.classes[2].request.input_tokens",
            "It has workload.classes.chat, workload.classes.batch; workload.classes.* stands for all of them",
        ),
        (
            "workload.classes.request.input_tokens",
            "Name the entry: workload.classes.chat.request.input_tokens, or all of them: workload.classes.*.request",
        ),
        ("targets", "It has tpot_ms"),
        ("name", "It has workload"),
        ("", "It has workload"),
        ("targets..tpot_ms[", ""),
        ("targets.tpot_ms.more", ""),
    ],
)
def test_path_that_is_none_is_told_with_the_nearest(instance: Instance, path: str, fix: str) -> None:
    with pytest.raises(UnknownFieldError) as told:
        find_field(instance, path)
    assert told.value.fix.startswith(fix)


@pytest.mark.parametrize(
    ("path", "fix"),
    [
        ("workload.classes.chat.demand.requests_per_s", "Did you mean workload.demand.requests_per_s?"),
        ("workload.classes[0].request.input_tokens", "Did you mean workload.request.input_tokens?"),
        ("workload.classes.demand.requests_per_s", "Did you mean workload.demand.requests_per_s?"),
        ("workload.classes.chat.targets.tpot_ms", "Did you mean targets.tpot_ms?"),
        ("workload.classes.chat.nothing", ""),
    ],
)
def test_an_entry_of_a_list_that_is_not_written_is_told_with_the_field_beside_it(path: str, fix: str) -> None:
    with pytest.raises(UnknownFieldError) as told:
        find_field(small(), path)
    assert told.value.allowed == "must be an entry of workload.classes, of which there is none"
    assert told.value.fix == fix


def test_entries_go_by_number_or_name_in_brackets_or_after_a_dot(instance: Instance) -> None:
    paths = [
        f"workload.classes{step}.demand.requests_per_s" for step in ("[1]", ".1", ".batch", "[batch]", '["batch"]')
    ]
    assert {find_field(instance, path).steps for path in paths} == {
        ("workload", "classes", 1, "demand", "requests_per_s")
    }


def test_every_known_field_is_found_as_a_planner_writes_it(instance: Instance) -> None:
    document = document_of(instance)
    for field in known_fields(instance):
        assert find_field(instance, spelled(field.steps, document)) == field


def test_entries_without_a_name_of_their_own_go_by_number() -> None:
    members: list[Any] = [{"name": "a"}, {"name": "a"}, {}, {"id": "x.y"}, 3]
    above = ("catalog", "accelerators")
    assert entry_names(members) == ["a", "a", "", "x.y", ""]
    assert entry_paths(above, members)[:3] == [f"catalog.accelerators[{at}]" for at in range(3)]
    assert entry_paths(above, members)[3] == 'catalog.accelerators["x.y"]'
    assert [entry_index(text, members) for text in ("a", "1", "x.y", "4", "5", "")] == [0, 1, 3, 4, None, None]


def test_every_known_field_is_found_by_its_own_name(instance: Instance) -> None:
    fields = list(known_fields(instance))
    assert len(fields) > 200
    for field in fields:
        assert find_field(instance, field.name) == field


def test_another_value_changes_that_field_alone(instance: Instance) -> None:
    field = find_field(instance, "workload.classes.batch.demand.requests_per_s")
    changed = with_values(instance, {field: 7.5})
    assert stated_value(changed, field) == 7.5
    assert with_values(changed, {field: 5.0}) == instance
    assert document_of(instance) == CONTENT


def test_a_field_that_is_taken_away_has_its_default_again(instance: Instance) -> None:
    field = find_field(instance, "targets.tpot_ms")
    assert stated_value(with_values(instance, {field: None}), field) is None


def test_a_section_that_is_not_there_is_made(instance: Instance) -> None:
    field = find_field(instance, "site.power_kw")
    assert with_values(instance, {field: 400.0}).site.power_kw == 400.0


def test_replacing_leaves_the_document_as_it_was() -> None:
    before: dict[str, Any] = {"a": [{"b": 1}, {"b": 2}], "c": {"d": 3}}
    assert replaced(before, ("a", 1, "b"), 5) == {"a": [{"b": 1}, {"b": 5}], "c": {"d": 3}}
    assert replaced(before, ("c", "d"), None) == {"a": [{"b": 1}, {"b": 2}], "c": {}}
    assert before == {"a": [{"b": 1}, {"b": 2}], "c": {"d": 3}}


def test_values_that_no_instance_may_hold_are_told_all_at_once(instance: Instance) -> None:
    values = {find_field(instance, "targets.tpot_ms"): -5.0, find_field(instance, "economics.discount_rate"): 8.0}
    with pytest.raises(InputError) as told:
        with_values(instance, values, told_as="asked")
    assert [(one.code, one.file, one.field) for one in told.value.problems] == [
        ("E-TARGETS-003", "asked", "targets.tpot_ms"),
        ("E-ECONOMICS-003", "asked", "economics.discount_rate"),
    ]


def test_values_that_break_a_rule_together_are_told(instance: Instance) -> None:
    values = {find_field(instance, "targets.ttft_ms"): 5000.0, find_field(instance, "targets.latency_ms"): 1000.0}
    with pytest.raises(InputError, match="E-TARGETS-023"):
        with_values(instance, values)
