"""Published examples: inputs and answers, how near an answer must come, and sums by the terms that a solve uses."""

import csv
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from optimizer.costs import energy, rent
from optimizer.performance.cooling import CoolingPhysics, HeatPath, pue_at
from optimizer.setting import Pool, Price
from optimizer.units import HOURS_PER_YEAR
from tests.core.hand import USER, bought, instance, rented, server_type, setting_of

DATA: Final = Path(__file__).parent / "data"

#: How near an answer must come where its source states nothing.
TOLERANCE: Final = 0.001


@cache
def examples() -> dict[str, Any]:
    """Examples by id."""
    content: dict[str, Any] = json.loads((DATA / "published.json").read_text(encoding="utf-8"))
    return content


def table(name: str) -> list[dict[str, str]]:
    """Rows of a table of an example."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def near(found: float, published: float, tolerance: float = TOLERANCE) -> bool:
    """Whether an answer is within a share of the published one."""
    return abs(found - published) <= tolerance * abs(published)


def near_printed(found: float, published: float, printed_to: float) -> bool:
    """Whether an answer rounds to the published one, which is printed in steps of ``printed_to``."""
    return abs(found - published) <= printed_to / 2.0


def check(key: str, answers: dict[str, float]) -> None:
    """Compare every published answer of an example: its own tolerance, its printed step, else 0.1 %."""
    example = examples()[key]
    assert set(answers) == set(example["published"]), "every published answer is computed, and no other"
    for name, published in example["published"].items():
        step = example.get("printed_to", {}).get(name)
        found = answers[name]
        if step is None:
            assert near(found, published, example.get("tolerance", {}).get(name, TOLERANCE)), (name, found, published)
        else:
            assert near_printed(found, published, step), (name, found, published)


def billed_energy_usd(kwh: float, usd_per_kwh: float, pue: float = 1.0) -> float:
    """Cost of ``kwh`` of IT energy by the energy terms of the bill."""
    given = setting_of(instance(), [bought("pool", server_type(), pue=pue)])
    given = replace(given, electricity=Price(usd_per_kwh, *USER))
    (busy,) = (term for term in energy.terms(given) if term.quantity == ("BusyKwh", "pool"))
    return busy.usd_per_year * kwh


def billed_rent_usd(accelerators: int, usd_per_hour: float, hours: float) -> float:
    """Rent of so many accelerators for some hours by the rent terms of the bill."""
    pool: Pool = rented("pool", server_type(per_server=accelerators, usd=None, rent={"on_demand": usd_per_hour}))
    (term,) = rent.terms(setting_of(instance(), [pool]))
    return term.usd_per_year / HOURS_PER_YEAR * hours


def linear_pue(base: float, slope_per_k: float, reference_c: float, temperature_c: float) -> float:
    """``base + slope max(0, T - reference)`` by the PUE formula of a solve.

    A plant without electrical loss whose compressors keep a COP of 2.5: between free and no free cooling its PUE is
    that straight line.
    """
    cop = 2.5
    path = HeatPath(base - 1.0, 0.0, reference_c, reference_c + 1.0 / (cop * slope_per_k), cop, reference_c, 0.0)
    return float(pue_at(CoolingPhysics(0.0, path), temperature_c))
