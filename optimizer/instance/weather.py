"""A planner's own weather, in place of that of a packaged site: hours by temperature, or every hour of a year."""

from typing import Annotated

from pydantic import Field

from optimizer.instance.fields import Ruled, field

Temperature = Annotated[float, Field(ge=-90, le=70)]
Hours = Annotated[float, Field(ge=0, le=8784)]


class ClimateBins(Ruled):
    """Weather of a year: ``temperature_c`` with hours by dry and by wet bulb, or both temperatures hour by hour."""

    temperature_c: tuple[Temperature, ...] | None = field(
        None, "Middles of the bins, rising.", unit="degC", min_length=1, max_length=1000
    )
    dry_bulb_hours: tuple[Hours, ...] | None = field(
        None, "Hours of the year with the dry bulb in each bin.", unit="h", max_length=1000
    )
    wet_bulb_hours: tuple[Hours, ...] | None = field(
        None, "Hours of the year with the wet bulb in each bin.", unit="h", max_length=1000
    )
    dry_bulb_c: tuple[Temperature, ...] | None = field(
        None, "Dry bulb of every hour of a year (8,760 or 8,784 values).", unit="degC", max_length=8784
    )
    wet_bulb_c: tuple[Temperature, ...] | None = field(
        None, "Wet bulb of every hour of a year (8,760 or 8,784 values).", unit="degC", max_length=8784
    )
