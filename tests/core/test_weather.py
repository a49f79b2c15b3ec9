"""Own weather and plants at part load."""

import json
from typing import Any

import pytest

from optimizer.api import solve
from optimizer.catalog import load_catalog
from optimizer.climate import site_climate
from optimizer.instance.model import Instance
from optimizer.plan import Plan
from optimizer.setting import plant_pue
from optimizer.verify import verify
from optimizer.verify.climate import pue, weather

CATALOG = load_catalog()


def given(**site: Any) -> Instance:
    """A small instance of bought servers at a site."""
    content = {
        "name": "weather",
        "workload": {
            "model": "llama-3.1-8b",
            "request": {"input_tokens": 500, "output_tokens": 100},
            "demand": {"requests_per_s": 150},
            "load": {"mean_fraction": 0.7},
        },
        "targets": {"tpot_ms": 60},
        "choices": {
            "accelerators": ["l40s"],
            "sourcing": ["buy"],
            "cooling": ["air_containment_econ", "dynamic"],
            "schemes": ["w16a16"],
        },
        "site": {"electricity_usd_per_kwh": 0.05, **site},
        # The fixed part of either would decide a small fleet alone, and so would the rent of the kW that fans take.
        "economics": {
            "cooling_prices": {key: {"fixed_usd": 0} for key in ("air_containment_econ", "dynamic")},
            "colocation_usd_per_kw_month": 0,
        },
    }
    return Instance.model_validate_json(json.dumps(content))


def solved(**site: Any) -> Plan:
    plan = solve(given(**site)).plan
    assert plan is not None
    assert not verify(plan)
    return plan


def bins(*rows: tuple[float, float, float]) -> dict[str, list[float]]:
    """Own weather from (temperature, hours of the dry bulb, of the wet bulb)."""
    names = ("temperature_c", "dry_bulb_hours", "wet_bulb_hours")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


@pytest.mark.parametrize("option", sorted(CATALOG.cooling))
@pytest.mark.parametrize("load", [1.0, 0.6, 0.2])
def test_own_bins_of_a_packaged_site_are_that_site(option: str, load: float) -> None:
    base = CATALOG.climates["ie_dublin"]
    own = bins(*zip(base.bin_mid_c, base.dry_bulb_hours, base.wet_bulb_hours, strict=True))
    site = given(climate="sg_singapore", climate_bins=own, plant_load_fraction=load).site
    row = CATALOG.cooling[option]
    found = plant_pue(row, site_climate(site, CATALOG), load)
    assert found == pytest.approx(plant_pue(row, base, load))
    checked = pue(row, weather(site, CATALOG.climates["sg_singapore"]))
    assert (checked.mean, checked.design) == pytest.approx(found)


def test_hours_of_a_year_are_their_own_bins() -> None:
    dry = [20.0] * 4000 + [10.0] * 4000 + [30.0] * 760
    wet = [15.0] * 4000 + [10.0] * 4000 + [24.0] * 760
    site = given(climate_bins={"dry_bulb_c": dry, "wet_bulb_c": wet}).site
    row = CATALOG.cooling["air_containment_econ"]
    seen = site_climate(site, CATALOG)
    assert dict(zip(seen.bin_mid_c, seen.wet_bulb_hours, strict=True))[15.0] == 4000
    # Full free cooling up to 18 degrees wet bulb, none from 24 on: 1.1 then 1.1 + 1.045 / 4.2.
    assert plant_pue(row, seen) == pytest.approx(((8000 * 1.1 + 760 * (1.1 + 1.045 / 4.2)) / 8760, 1.1 + 1.045 / 4.2))


def test_a_plant_of_fixed_speed_loses_at_half_load_what_the_cost_models_say() -> None:
    """e = 0.075, phi = 0.12: about 0.14 more at half load; variable speed stays nearly flat down to 0.3."""
    climate = CATALOG.climates["us_va_ashburn"]
    crac, dynamic = CATALOG.cooling["air_crac"], CATALOG.cooling["dynamic"]
    lost = plant_pue(crac, climate, 0.5)[0] - plant_pue(crac, climate)[0]
    assert lost == pytest.approx(0.14, abs=0.01)
    assert plant_pue(dynamic, climate, 0.3)[0] - plant_pue(dynamic, climate)[0] < 0.04
    # What power is sized for is the plant at full load.
    assert plant_pue(crac, climate, 0.5)[1] == plant_pue(crac, climate)[1]


def test_dynamic_cooling_wins_at_part_load_and_loses_at_full_load_in_steady_weather() -> None:
    """Steady 10 degrees: both cool freely, so what is left is the power of fans against a dearer kW.

    At full load dynamic saves 0.025 of PUE, and 0.65 % of the servers' power; at 0.3 of it 0.16 of PUE.
    """
    steady = bins((10.0, 8760.0, 8760.0))
    full, part = (solved(climate_bins=steady, plant_load_fraction=load) for load in (1.0, 0.3))
    assert {one.cooling for one in full.servers} == {"air_containment_econ"}
    assert {one.cooling for one in part.servers} == {"dynamic"}
