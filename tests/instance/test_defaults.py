"""Defaults in effect: all of them, none that does not matter, in a fixed order."""

from typing import Any

import pytest

from optimizer.instance.defaults import defaults_used
from tests.instance.samples import changed, read, several_classes, sound

SMALL: dict[str, Any] = {
    "name": "small",
    "workload": {
        "model": "Llama-3.1-8B",
        "request": {"input_tokens": 1, "output_tokens": 1},
        "demand": {"requests_per_s": 1},
    },
}


def fields(value: dict[str, Any]) -> list[str]:
    return [one.field for one in defaults_used(read(value))]


def test_the_smallest_instance_defaults_every_section() -> None:
    used = {one.field: one for one in defaults_used(read(SMALL))}
    assert {name.partition(".")[0] for name in used} == {
        "workload",
        "targets",
        "choices",
        "site",
        "economics",
        "inventory",
        "solver",
    }
    assert used["targets.vram_fraction"].value == "0.9"
    assert used["workload.load"].value == "mean_fraction 1"
    assert used["choices.tensor_parallel"].value == "1, 2, 4, 8, 16, 32, 64"
    assert used["economics.horizon_years"].unit == "years"
    assert all(one.source for one in used.values())


def test_what_is_written_is_no_default_even_if_it_is_the_same_value() -> None:
    assert "targets.vram_fraction" in fields(sound())
    assert "targets.vram_fraction" not in fields(changed({"targets/vram_fraction": 0.9}))


@pytest.mark.parametrize("silent", ["$schema", "story", "format_version", "workload.kind", "catalog", "name"])
def test_what_says_nothing_about_the_cluster_is_left_out(silent: str) -> None:
    assert silent not in fields(SMALL)


def test_a_default_that_another_key_replaces_is_left_out() -> None:
    score = {"targets/accuracy_floor_fraction": ..., "targets/accuracy_floor_score": 60}
    assert "targets.accuracy_floor_fraction" in fields(changed({"targets/accuracy_floor_fraction": ...}))
    assert "targets.accuracy_floor_fraction" not in fields(changed({**score, "targets/accuracy_baseline_score": 61}))
    assert "workload.demand.think_time_s" not in fields(sound())
    users = {"workload/demand": {"concurrent_users": 5}}
    assert "workload.demand.think_time_s" in fields(changed(users))


def test_parts_in_lists_and_by_name_are_seen() -> None:
    used = fields(several_classes())
    assert "workload.classes[1].request.prefix_hit_fraction" in used
    assert "economics.prices.l40s.discount_kind" in used


def test_order_is_that_of_the_format_whatever_the_order_of_the_file() -> None:
    turned = dict(reversed(list(sound().items())))
    turned["targets"] = dict(reversed(list(turned["targets"].items())))
    assert fields(turned) == fields(sound())
