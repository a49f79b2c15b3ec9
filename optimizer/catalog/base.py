"""What every catalogue row shares: where the figure comes from, how old it is, and how far to trust it."""

import datetime as dt
import re
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

Trust = Literal["measured", "vendor", "fitted", "assumed", "user"]
Confidence = Literal["high", "medium", "low"]
Generation = Literal["volta", "ampere", "ada", "hopper", "blackwell", "cdna3", "cdna4", "gaudi3"]

#: ``2026``, ``2026-H1``, ``2026-Q3``, ``2026-09``, ``2026-09-20``; empty: a user's figure without a date.
AS_OF_PATTERN: Final = r"^$|^\d{4}(-H[12]|-Q[1-4]|-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?$"


def quantity(description: str, unit: str, default: Any = ..., **limits: Any) -> Any:
    """A field that states its meaning and its unit; ``limits`` are pydantic's (``gt``, ``ge``, ``le`` ...)."""
    info: FieldInfo = Field(default, description=description, json_schema_extra={"unit": unit}, **limits)
    return info


def fraction(description: str, default: Any = ..., low: float = 0.0, high: float = 1.0) -> Any:
    """A share between ``low`` and ``high``."""
    return quantity(description, "1", default, ge=low, le=high)


def text(description: str, default: Any = ...) -> Any:
    """A field of words."""
    return quantity(description, "text", default)


class Row(BaseModel):
    """One row of a catalogue table.

    A row that a planner writes states nothing about trust and counts as the planner's own word (``user``).
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        # A planner's "80" for 80 is a mistake to be told; only the packaged text tables are read leniently.
        strict=True,
        allow_inf_nan=False,
        # Classes that a command does not touch are never compiled: half of the loading time otherwise.
        defer_build=True,
    )

    source: str = text("where the figures come from", "stated by the user")
    as_of: Annotated[str, Field(pattern=AS_OF_PATTERN)] = text(
        "date of the figures; a coarse date counts as the end of its period; empty: not stated", ""
    )
    trust: Trust = text("measured, vendor, fitted, assumed or user", "user")
    confidence: Confidence = text("how sure the figures are", "medium")
    remarks: str = text("what a reader should know before using the row", "")


def as_of_end(as_of: str) -> dt.date | None:
    """Last day of the period that ``as_of`` names, or None where no date is stated.

    A coarse date counts as the end of its period, so that a price is never called older than it may be.
    """
    match = re.fullmatch(r"(\d{4})(?:-(?:H([12])|Q([1-4])|(\d\d)(?:-(\d\d))?))?", as_of)
    if match is None:
        return None
    year, half, quarter, month, day = match.groups()
    if day is not None:
        return dt.date(int(year), int(month), int(day))
    last_month = int(month) if month else 6 * int(half) if half else 3 * int(quarter) if quarter else 12
    first_of_next = dt.date(int(year) + last_month // 12, last_month % 12 + 1, 1)
    return first_of_next - dt.timedelta(days=1)
