"""Numbers as people read them."""

import pytest

from optimizer.report.words import counted, percent, signed_percent, significant, usd, wrapped


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.01234, "0.0123"),
        (1.0, "1.00"),
        (9.996, "10.0"),
        (12.34, "12.3"),
        (999.6, "1,000"),
        (1234.0, "1,230"),
        (-5.678, "-5.68"),
    ],
)
def test_three_significant_digits(value: float, text: str) -> None:
    assert significant(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.231, "$0.231"),
        (357.2, "$357"),
        (9_999.0, "$10.0 k"),
        (34_960.0, "$35.0 k"),
        (3_131_000.0, "$3.13 M"),
        (1_204_000_000.0, "$1.20 B"),
    ],
)
def test_money(value: float, text: str) -> None:
    assert usd(value) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(0.0, "0 %"), (0.000001, "0 %"), (0.004, "0.4 %"), (0.0994, "9.9 %"), (0.12, "12 %"), (1.05, "105 %")],
)
def test_percent(fraction: float, text: str) -> None:
    assert percent(fraction) == text


def test_changes_carry_their_sign() -> None:
    assert signed_percent(0.021) == "+2.1 %"
    assert signed_percent(-0.14) == "-14 %"


def test_counts() -> None:
    assert counted(1, "rack") == "1 rack"
    assert counted(1300, "rack") == "1,300 racks"


def test_wrapping_keeps_every_word_and_the_width() -> None:
    parts = ["a b c", "one much longer part that has to be broken somewhere in its middle", "end"]
    lines = wrapped("Label", parts, 30)
    assert max(len(line) for line in lines) <= 30
    words = " ".join(lines).replace("·", " ").split()
    assert words == ["Label", *" ".join(parts).split()]
