"""Tables as CSV text, with money in whole cents whose column sums to the cent."""

import csv
import io
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

_CENT: Final = Decimal("0.01")


def as_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a header line; None is an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([["" if cell is None else cell for cell in row] for row in rows])
    return text.getvalue()


def cents(value: float) -> Decimal:
    """An amount in whole cents."""
    return Decimal(repr(float(value))).quantize(_CENT, ROUND_HALF_EVEN)


def to_cents(values: Sequence[float]) -> list[Decimal]:
    """Amounts in whole cents whose sum is the rounded sum of the amounts.

    Rounding each by itself can leave the column a few cents off its total; the difference goes, a cent at a time, to
    the amounts that rounding moved furthest the other way.
    """
    exact = [Decimal(repr(float(value))) for value in values]
    rounded = [value.quantize(_CENT, ROUND_HALF_EVEN) for value in exact]
    missing = sum(exact, Decimal(0)).quantize(_CENT, ROUND_HALF_EVEN) - sum(rounded, Decimal(0))
    step = _CENT if missing > 0 else -_CENT
    order = sorted(range(len(exact)), key=lambda place: (rounded[place] - exact[place]) * (1 if missing > 0 else -1))
    for place in order[: int(abs(missing) / _CENT)]:
        rounded[place] += step
    return rounded
