"""The scanner: places, faults, and work that stays linear on junk."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.instance.positions import MAX_NESTING, MAX_VALUES, Place, scan

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.sampled_from([None, 0, 2, "\t"]))
def test_reads_what_the_standard_parser_reads(value: Any, indent: Any) -> None:
    text = json.dumps(value, indent=indent)
    scanned = scan(text)
    assert scanned.faults == ()
    assert scanned.value == json.loads(text)


@given(st.text(alphabet='{}[]":,0123456789.eE+-truefalsn \n\\"x', max_size=60))
def test_refuses_what_the_standard_parser_refuses(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        expected = None
        assert scan(text).faults
    else:
        scanned = scan(text)
        # It is stricter in two ways: keys are unique and numbers are finite.
        assert scanned.value == expected or {one.code for one in scanned.faults} & {"E-FILE-010", "E-FILE-011"}


@given(JSON)
def test_every_place_points_at_its_value(value: Any) -> None:
    text = json.dumps(value, indent=1)
    lines = text.split("\n")
    scanned = scan(text)
    for path, offset in scanned.values.items():
        inner = value
        for step in path:
            inner = inner[step]
        place = scanned.place(path)
        assert lines[place.line - 1][place.column - 1] == text[offset]
        assert text[offset:].startswith(json.dumps(inner)[0])
    for path, offset in scanned.keys.items():
        assert text[offset:].startswith(json.dumps(path[-1]))


def test_lines_and_columns_count_from_one() -> None:
    scanned = scan('{\n  "a": [1,\n    {"b": 2}]\n}')
    assert scanned.place(()) == Place(1, 1)
    assert scanned.place(("a",), key=True) == Place(2, 3)
    assert scanned.place(("a", 1, "b")) == Place(3, 11)
    assert scanned.place(("a", 1, "missing", 7)) == Place(3, 5), "the nearest thing around it"


@pytest.mark.parametrize(
    ("text", "code", "place", "found"),
    [
        ("", "E-FILE-007", (1, 1), "the end of the file"),
        ("{", "E-FILE-007", (1, 2), "the end of the file"),
        ('{"a": [1, 2', "E-FILE-007", (1, 12), "the end of the file"),
        ('{"a": "b', "E-FILE-007", (1, 7), "a text without its closing quote"),
        ("[1, 2,]", "E-FILE-007", (1, 6), "a comma before the closing bracket"),
        ('{"a": 1,\n}', "E-FILE-007", (1, 8), "a comma before the closing brace"),
        ("{'a': 1}", "E-FILE-007", (1, 2), "'"),
        ("{a: 1}", "E-FILE-007", (1, 2), "a"),
        ('{"a" 1}', "E-FILE-007", (1, 6), "1"),
        ('{"a": 1 "b": 2}', "E-FILE-007", (1, 9), '"'),
        ('{"a": }', "E-FILE-007", (1, 7), "}"),
        ("[1 2]", "E-FILE-007", (1, 4), "2"),
        ("[1}", "E-FILE-007", (1, 3), "}"),
        ("{} {}", "E-FILE-007", (1, 4), "{"),
        ("{ // why\n}", "E-FILE-007", (1, 3), "a comment"),
        ("[True]", "E-FILE-007", (1, 2), "True"),
        ("[01]", "E-FILE-007", (1, 2), "01"),
        ("[150ms]", "E-FILE-007", (1, 2), "150ms"),
        ('["a\tb"]', "E-FILE-007", (1, 4), "a bare control character or a wrong escape in a text"),
        ('["\\x"]', "E-FILE-007", (1, 3), "a bare control character or a wrong escape in a text"),
        ('{"a": 1,\n "a": 2}', "E-FILE-010", (2, 2), "the key a second time (first in line 1)"),
        ("[NaN]", "E-FILE-011", (1, 2), "NaN"),
        ("[-Infinity]", "E-FILE-011", (1, 2), "-Infinity"),
        ("[1e999]", "E-FILE-011", (1, 2), "1e999"),
        (f"[{'9' * 5000}]", "E-FILE-011", (1, 2), "a number of 5000 characters"),
        ('["\\ud800"]', "E-FILE-013", (1, 2), "half of a surrogate pair"),
    ],
)
def test_fault(text: str, code: str, place: tuple[int, int], found: str) -> None:
    faults = scan(text).faults
    assert [(one.code, one.place, one.found) for one in faults] == [(code, place, found)]


def test_faults_that_leave_the_rest_readable_are_all_told() -> None:
    faults = scan('{"a": NaN, "a": 1, "b": [Infinity, "\\udc00"]}').faults
    assert [one.code for one in faults] == ["E-FILE-011", "E-FILE-010", "E-FILE-011", "E-FILE-013"]


def test_nesting_is_allowed_up_to_the_limit() -> None:
    assert scan("[" * MAX_NESTING + "]" * MAX_NESTING).faults == ()
    deeper = scan("[" * (MAX_NESTING + 1) + "]" * (MAX_NESTING + 1)).faults
    assert [(one.code, one.place.column) for one in deeper] == [("E-FILE-008", MAX_NESTING + 1)]


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":[', "[1,["])
def test_deep_nesting_costs_no_more_than_the_limit(opening: str) -> None:
    scanned = scan(opening * 100_000)
    assert [one.code for one in scanned.faults] == ["E-FILE-008"]
    assert scanned.tokens <= 10 * MAX_NESTING


@pytest.mark.parametrize("junk", ["1,", '"a",', "[],", "{},", '{"a":1},', "\n1,"])
def test_work_on_junk_is_linear_and_bounded(junk: str) -> None:
    short, long = (scan("[" + junk * count) for count in (1_000, 2_000))
    assert long.tokens <= 2 * short.tokens + 2
    scanned = scan("[" + junk * (2 * MAX_VALUES))
    assert [one.code for one in scanned.faults] == ["E-FILE-009"]
    assert scanned.tokens <= 8 * MAX_VALUES


@pytest.mark.parametrize("junk", ["x", " ", "\n", '"', "\\", "9", "-", "\x00", "é", "{", ":", '"\\', "e", "//"])
def test_one_repeated_character_ends_at_the_first_fault(junk: str) -> None:
    scanned = scan(junk * 1_000_000)
    assert len(scanned.faults) == 1 or junk == "9"
    assert scanned.tokens <= MAX_NESTING + 2


def test_numbers_keep_their_kind() -> None:
    value = scan("[1, 1.0, -0, 1e3, 12345678901234567890]").value
    assert [type(one) for one in value] == [int, float, int, float, int]
    assert math.copysign(1, value[2]) == 1
