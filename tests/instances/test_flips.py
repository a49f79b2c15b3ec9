"""Shipped pairs that differ in one input: the plan must turn, or the story told beside them is not true any more."""

import json
from typing import Any

import pytest

from tests.instances import library

PAIRS = (
    ("hall-in-the-cold", "hall-in-the-heat"),
    ("peak-free", "peak-charged"),
    ("racks-of-40-kw", "racks-of-12-kw"),
    ("owned-a100", "owned-a100-worn"),
    ("discount-from-5", "discount-from-9"),
    ("network-break-at-40", "network-break-at-80"),
    ("plant-full", "plant-half"),
    ("hall-of-66-kw", "hall-of-66-kw-capped"),
)


def _document(name: str) -> Any:
    return json.loads(library.path_of(name).read_text(encoding="utf-8"))


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_one_input_turns_the_plan(one: str, other: str) -> None:
    words = (".name", ".story")
    apart = [line for line in library.differences(_document(one), _document(other)) if not line.startswith(words)]
    assert len(apart) == 1
    # What is kept is what solving gives, by the tests of every instance.
    first, second = library.expected(one)["servers"], library.expected(other)["servers"]
    assert set(first) != set(second)


def test_what_is_told_of_owned_servers_and_of_the_discount() -> None:
    assert library.expected("owned-a100")["servers"]["a100-80gb-sxm x8/owned/air_containment_econ"]["servers"] == 2
    assert not any("/owned/" in pool for pool in library.expected("owned-a100-worn")["servers"])
    assert library.expected("discount-from-5")["accelerators"] == {"h200-141gb-sxm": 40}
    assert library.expected("discount-from-9")["accelerators"] == {"b200-180gb-sxm": 24}


def test_what_is_told_of_the_network_the_plant_and_the_power_cap() -> None:
    assert library.expected("network-break-at-40")["accelerators"] == {"h200-141gb-sxm": 40}
    assert library.expected("network-break-at-80")["accelerators"] == {"b200-180gb-sxm": 24}
    cooling = {name: set(library.expected(name)["servers"]) for name in ("plant-full", "plant-half")}
    assert cooling["plant-full"] == {"b200-180gb-sxm x8/buy/air_containment_econ"}
    assert cooling["plant-half"] == {"b200-180gb-sxm x8/buy/dynamic"}
    free, capped = (library.expected(f"hall-of-66-kw{end}") for end in ("", "-capped"))
    assert set(free["servers"]) == {"h100-80gb-sxm x8/buy/d2c_1p"}
    assert set(capped["servers"]) == {"h100-80gb-sxm@70% x8/buy/rdhx_passive"}
