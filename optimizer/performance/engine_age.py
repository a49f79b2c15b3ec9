"""How old a version of an engine is: overheads shrink with every release, so age is a quantity of the model."""

import csv
import re
from datetime import date
from functools import cache
from importlib import resources
from typing import Final

#: The end of the measurements: engines of this day are of age 0.
REFERENCE_DAY: Final = date(2026, 4, 20)
#: Beyond the oldest release with measured overheads nothing is known to grow further.
LARGEST_AGE_YEARS: Final = 0.8
_DAYS_PER_YEAR: Final = 365.25

_Key = tuple[int, ...]


def _key(version: str) -> _Key:
    """``"1.2.0rc6.post2"`` to (1, 2, 0, 6): numbers in order, what stands after ``post`` or ``dev`` left out."""
    numbers = re.findall(r"\d+", re.split(r"[.\-+](?:post|dev)", version, maxsplit=1)[0])
    return tuple(int(number) for number in numbers[:4])


@cache
def _releases(engine: str) -> tuple[tuple[_Key, date], ...]:
    text = resources.files("optimizer.performance").joinpath("data/engine_releases.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    found = ((_key(row["version"]), date.fromisoformat(row["released"])) for row in rows if row["engine"] == engine)
    return tuple(sorted(found))


@cache
def release_day(engine: str, version: str) -> date | None:
    """The day of the newest known release not after ``version``; None for a version that is no number."""
    if not re.match(r"v?\d+\.", version):
        return None
    known = [day for key, day in _releases(engine) if key <= _key(version)]
    return known[-1] if known else (_releases(engine)[0][1] if _releases(engine) else None)


def age_years(day: date) -> float:
    """Years from ``day`` to the reference day, within 0 and the largest age that measurements cover."""
    years = (REFERENCE_DAY - day).days / _DAYS_PER_YEAR
    return min(max(years, 0.0), LARGEST_AGE_YEARS)


def engine_age_years(engine: str, version: str) -> float:
    """Age of a version; 0, the newest, where the version is not given or not a number."""
    day = release_day(engine, version)
    return 0.0 if day is None else age_years(day)
