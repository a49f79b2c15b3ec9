"""Rules of a planner's own weather; plain values, for the reader of files (``rules``)."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from optimizer.instance.rule import Broken, Values, given

BINNED: Final = ("temperature_c", "dry_bulb_hours", "wet_bulb_hours")
HOURLY: Final = ("dry_bulb_c", "wet_bulb_c")
#: Hours of a year, of a leap year.
YEARS: Final = (8760, 8784)


def one_weather(values: Values) -> Iterator[Broken]:
    """Bins or hours, each complete."""
    binned, hourly = given(values, *BINNED), given(values, *HOURLY)
    if (len(binned), len(hourly)) not in ((len(BINNED), 0), (0, len(HOURLY))):
        found = " and ".join([*binned, *hourly]) or "no weather"
        where = ((*binned, *hourly)[-1],) if binned or hourly else ()
        yield Broken(where, found, f"must be {', '.join(BINNED)}, or {' and '.join(HOURLY)}")


def sound_weather(values: Values) -> Iterator[Broken]:
    """Bins rise and have as many hours as there are bins; hours are those of a year, no wet bulb above its dry one."""
    middles = values.get("temperature_c")
    for name in BINNED[1:] if middles is not None else ():
        hours = values.get(name)
        if hours is not None and len(hours) != len(middles or ()):
            yield Broken((name,), f"{len(hours)} values", f"must be {len(middles or ())}, one for each bin")
        elif hours is not None and sum(hours) <= 0:
            yield Broken((name,), "no hour", "must have hours in at least one bin")
    for index, (low, high) in enumerate(pairwise(middles or ()), 1):
        if high <= low:
            yield Broken(("temperature_c", index), f"{high:g}", f"must be > {low:g} degC, the bin before")
    for name in HOURLY:
        hours = values.get(name)
        if hours is not None and len(hours) not in YEARS:
            yield Broken((name,), f"{len(hours)} values", "must be 8760 or 8784, the hours of a year")
    dry, wet = (values.get(name) for name in HOURLY)
    if dry is not None and wet is not None:
        if len(dry) != len(wet):
            yield Broken(("wet_bulb_c",), f"{len(wet)} values", f"must be {len(dry)}, as many as dry_bulb_c")
        # Instruments round: half a degree is no contradiction.
        above = [hour for hour, (one, other) in enumerate(zip(dry, wet, strict=False)) if other > one + 0.5]
        if above:
            allowed = f"must be <= {dry[above[0]]:g} degC, the dry bulb of the hour"
            yield Broken(("wet_bulb_c", above[0]), f"{wet[above[0]]:g}", allowed)
