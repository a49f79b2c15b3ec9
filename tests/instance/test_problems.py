"""The words of messages."""

import pytest

from optimizer.errors import CODES, InputError, Problem, SolverError, printable
from optimizer.instance.problems import field_name, figure, nearest, number_hint, percent_hint, range_words, shown


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ((), ""),
        (("targets", "tpot_ms"), "targets.tpot_ms"),
        (("choices", "accelerators", 2), "choices.accelerators[2]"),
        (("economics", "prices", "h100-80gb-sxm", "server_usd"), "economics.prices.h100-80gb-sxm.server_usd"),
        (("economics", "prices", "a.b"), 'economics.prices["a.b"]'),
        (("$schema",), "$schema"),
        (("", "\x1b"), '[""]["\\x1b"]'),
    ],
)
def test_field_name(path: tuple[str | int, ...], name: str) -> None:
    assert field_name(path) == name


def test_a_long_name_is_cut() -> None:
    assert len(field_name(("x" * 50, "y" * 5000))) < 120


@pytest.mark.parametrize(
    ("text", "unit", "hint"),
    [
        ("150 ms", "ms", "Write 150"),
        ("150", "ms", "Write 150"),
        ("150ms", "ms", "Write 150"),
        ("1.5 s", "ms", "Write 1500"),
        ("20,000", "tokens/s", "Write 20000"),
        ("20000 tokens/s", "tokens/s", "Write 20000"),
        ("20k", "USD", "Write 20000"),
        ("1.5M", "USD/server", "Write 1500000"),
        ("98.7 %", "fraction", "Write 0.987"),
        ("98.7%", "probability", "Write 0.987"),
        ("0.5 MW", "kW", "Write 500"),
        ("12 months", "years", "Write 1"),
        ("5 years", "years", "Write 5"),
        ("1e3", "ms", "Write 1000"),
        ("-5 ms", "ms", "Write -5"),
        ("3 parsecs", "ms", "Write the number alone, without quotes"),
        ("fast", "ms", "Write the number alone, without quotes"),
        ("", "ms", "Write the number alone, without quotes"),
        ("9" * 5000, "ms", "Write the number alone, without quotes"),
        ("1" + " 1" * 3000 + "x", "ms", "Write the number alone, without quotes"),
    ],
)
def test_number_hint(text: str, unit: str, hint: str) -> None:
    assert number_hint(text, unit) == hint


def test_a_gigabyte_is_converted_to_gibibytes() -> None:
    assert number_hint("80 GB", "GiB") == "Write 74.5058059692"
    assert number_hint("80 GiB", "GiB") == "Write 80"


def test_percent_hint() -> None:
    share = {"exclusiveMinimum": 0, "maximum": 1}
    assert percent_hint(98.7, share) == "Write 0.987 for 98.7 %"
    assert percent_hint(101, share) == ""
    assert percent_hint(-3, share) == ""
    assert percent_hint(98.7, {"exclusiveMinimum": 0}) == ""
    assert percent_hint(60, {"minimum": 0.5, "exclusiveMaximum": 1}) == "Write 0.6 for 60 %"
    assert percent_hint(40, {"minimum": 0.5, "exclusiveMaximum": 1}) == ""


def test_range_words() -> None:
    assert range_words({"exclusiveMinimum": 0, "maximum": 1e9}, "ms") == "> 0 ms"
    assert range_words({"exclusiveMinimum": 0, "maximum": 1e9}, "ms", 2e9) == "> 0 and <= 1,000,000,000 ms"
    assert range_words({"minimum": 0, "exclusiveMaximum": 1}, "fraction") == ">= 0 and < 1"
    assert range_words({}, "ms") == ""


def test_shown() -> None:
    values = [None, True, "a\nb", "x" * 99, {"a": 1}, [1, 2], 1.5, 10**60]
    assert [shown(one) for one in values] == [
        "null",
        "true",
        '"a\\nb"',
        f'"{"x" * 40}…"',
        "an object of 1 key",
        "a list of 2 values",
        "1.5",
        f"1{'0' * 39}…",
    ]
    assert figure(1e7) == "10,000,000"
    assert figure(0.25) == "0.25"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("tpot", "tpot_ms"),
        ("TPOT_MS", "tpot_ms"),
        ("tpotMs", "tpot_ms"),
        ("tpot_msec", "tpot_ms"),
        ("ttft_mss", "ttft_ms"),
        ("colour", ""),
        ("", ""),
        ("é" * 10_000, ""),
    ],
)
def test_nearest(name: str, found: str) -> None:
    assert nearest(name, ["tpot_ms", "ttft_ms", "latency_ms"]) == found


def test_a_problem_without_a_place() -> None:
    one = Problem("E-FILE-001", "my.json", found="no such file", allowed="must be a JSON file")
    assert str(one) == "error[E-FILE-001] my.json: found no such file; must be a JSON file"


def test_one_problem_is_one_line_whatever_the_file_holds() -> None:
    one = Problem("E-FILE-001", "a\nb\x1b[2J\ud800.json", 1, 2, "x\ry", "z\u2028", "w", "v")
    assert len(str(one).splitlines()) == 1
    assert str(one).isprintable()
    assert printable("é 东") == "é 东"


def test_codes_are_well_formed_and_say_something() -> None:
    for name, code in CODES.items():
        section, number = name.removeprefix("E-").rsplit("-", 1)
        assert section.isupper()
        assert len(number) == 3
        assert code.meaning.endswith(".")
        assert code.remedy.rstrip("`").endswith(".") or code.remedy.endswith("`.")


def test_errors_carry_their_exit_codes() -> None:
    problems = (Problem("E-FILE-001", "a"), Problem("E-FILE-002", "b"))
    assert InputError(problems).exit_code == 3
    assert len(str(InputError(problems)).splitlines()) == 2
    assert SolverError("x").exit_code == 7
