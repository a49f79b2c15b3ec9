"""An electricity tariff: energy by the hour and the season, demand at the peak, fixed charges."""

from typing import Annotated

from pydantic import Field

from optimizer.instance.fields import REQUIRED, Frozen, Ruled, field

_Month = Annotated[int, Field(ge=1, le=12)]
_Weekday = Annotated[int, Field(ge=1, le=7)]
_Hour = Annotated[int, Field(ge=0, le=23)]


class TariffPeriod(Frozen):
    """Hours in which energy has a price of its own; of several periods that hold an hour the last one counts."""

    usd_per_kwh: float = field(REQUIRED, "Energy price in these hours.", unit="USD/kWh", ge=0, le=100)
    months: tuple[_Month, ...] = field(
        (), "Months in which it holds, 1 for January.", unit="months", default_source="every month", max_length=12
    )
    weekdays: tuple[_Weekday, ...] = field(
        (), "Days on which it holds, 1 for Monday.", unit="days", default_source="every day", max_length=7
    )
    hours: tuple[_Hour, ...] = field(
        (),
        "Hours in which it holds, by the hour that they begin with (17 is 17:00 to 18:00).",
        unit="hours",
        default_source="every hour",
        max_length=24,
    )


class Tariff(Ruled):
    """What the utility charges: energy (one price with periods, or a value an hour), peak demand, a fixed sum."""

    energy_usd_per_kwh: float | None = field(None, "Energy price outside every period.", unit="USD/kWh", ge=0, le=100)
    hourly_usd_per_kwh: tuple[Annotated[float, Field(ge=0, le=100)], ...] | None = field(
        None,
        "Energy price of each hour of a day (24 values) or of a week from Monday (168 values), the same all year.",
        unit="USD/kWh",
    )
    periods: tuple[TariffPeriod, ...] = field(
        (), "Hours with another energy price.", default_source="none: one price at every hour", max_length=48
    )
    demand_usd_per_kw_month: float = field(
        0.0,
        "Charge on the highest metered power of the year, paid every month.",
        unit="USD/kW-month",
        default_source="none",
        ge=0,
        le=1e4,
    )
    fixed_usd_per_month: float = field(
        0.0, "Charge for the connection itself.", unit="USD/month", default_source="none", ge=0, le=1e9
    )
