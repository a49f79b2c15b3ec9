"""How full a plan's own plants run: by hand, and the bill at that load against solving with it stated."""

import json
import re
from typing import Any

import pytest

from optimizer.api import solve
from optimizer.instance.reading import read_instance_text
from optimizer.plan import Plan
from optimizer.units import HOURS_PER_YEAR
from optimizer.verify import verify

HALL: dict[str, Any] = {
    "name": "hall",
    "workload": {
        "model": "Llama-3.1-70B",
        "request": {"input_tokens": 1024, "output_tokens": 256},
        "demand": {"output_tokens_per_s": 30000},
        "load": {"mean_fraction": 0.5},
    },
    "targets": {"tpot_ms": 60},
    "choices": {
        "accelerators": ["h200-141gb-sxm"],
        "schemes": ["w8a8-fp8"],
        "sourcing": ["buy"],
        "cooling": ["rdhx_passive"],
    },
    "site": {"climate": "us_az_phoenix"},
}


def plan(load: float | None = None, **economics: float) -> Plan:
    document = json.loads(json.dumps(HALL))
    document["economics"] = economics
    if load is not None:
        document["site"]["plant_load_fraction"] = load
    found = solve(read_instance_text(json.dumps(document), "hall.json")).plan
    assert found is not None
    assert not verify(found)
    return found


def told(found: Plan) -> str | None:
    return next((one for one in found.messages if "site.plant_load_fraction" in one), None)


def test_load_of_a_plan_by_hand() -> None:
    found = plan()
    (group,) = found.servers
    (plant,) = found.plants
    it_kw = found.energy_kwh_per_year / plant.pue_mean / HOURS_PER_YEAR
    assert found.plant_load_fractions is not None
    assert list(found.plant_load_fractions) == ["rdhx_passive"]
    load = it_kw / (group.servers * group.server_kw)
    assert found.plant_load_fractions["rdhx_passive"] == pytest.approx(load)
    # Passive doors take all heat, so the plant is sized for what its servers draw at most.
    assert plant.heat_kw == pytest.approx(group.servers * group.server_kw)


@pytest.mark.parametrize("carbon_usd_per_tonne", [0.0, 500.0])
def test_the_bill_at_its_own_load_is_what_solving_with_it_gives(carbon_usd_per_tonne: float) -> None:
    """One cooling option and one accelerator: the fleet stays, so the bills differ by what was said, to the dollar."""
    free = plan(carbon_usd_per_tonne=carbon_usd_per_tonne)
    assert free.plant_load_fractions is not None
    load = free.plant_load_fractions["rdhx_passive"]
    again = plan(load, carbon_usd_per_tonne=carbon_usd_per_tonne)
    assert [one.servers for one in again.servers] == [one.servers for one in free.servers]
    said = re.search(r"([+-][\d,]+) USD a year", told(free) or "")
    assert said is not None
    more = again.bill.usd_per_year - free.bill.usd_per_year
    assert more > 0.0
    assert float(said[1].replace(",", "")) == pytest.approx(more, abs=0.51)
    assert f"{load:.0%} of its size" in (told(free) or "")
    assert told(again) is None


def test_the_checker_does_not_believe_a_load() -> None:
    found = plan()
    wrong = found.model_copy(update={"plant_load_fractions": {"rdhx_passive": 0.9}})
    assert any("plant_load_fractions" in str(one) for one in verify(wrong))
