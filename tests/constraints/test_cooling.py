"""Cooling: plants are sized for the heat they get and paid when built; a rack takes what its cooling takes away."""

import pytest

from optimizer.program_data import ProgramData
from optimizer.setting import rack_limit_kw, servers_per_rack
from tests.core.hand import (
    AIR,
    LIQUID,
    accelerator,
    bought,
    cost,
    data_of,
    instance,
    offered,
    option,
    price,
    server_type,
    solve,
)

PLANTS = {"air": (1.0, 0.01), "liquid": (0.5, 0.02)}


def program(replicas: int, *, liquid_usd: float = 1.0) -> ProgramData:
    """Servers of 10 kW; plants cost (built, each kW) as in PLANTS; a quarter of liquid's heat stays in the air."""
    of = server_type()
    pools = [bought("air", of), bought("liquid", of, cooling=LIQUID)]
    terms = [price(("Servers", "air"), 1.0), price(("Servers", "liquid"), liquid_usd)]
    for plant, (built, kw) in PLANTS.items():
        terms += [price(("PlantBuilt", plant), built), price(("PlantKw", plant), kw)]
    return data_of(instance(), pools, [offered("d", of)], terms, demand=(float(replicas),))


def test_air_alone_builds_one_plant() -> None:
    found = solve(program(4))
    assert found is not None
    assert found.usd_per_hour == pytest.approx(4 * 1.0 + 1.0 + 40 * 0.01)
    assert found.values["PlantKw[air]"] == pytest.approx(40.0)
    assert "PlantBuilt[liquid]" not in found.values


def test_liquid_builds_both_plants_and_splits_the_heat() -> None:
    found = solve(program(4, liquid_usd=0.1))
    assert found is not None
    assert found.usd_per_hour == pytest.approx(4 * 0.1 + 1.0 + 10 * 0.01 + 0.5 + 30 * 0.02)
    assert found.values["PlantKw[air]"] == pytest.approx(10.0)
    assert found.values["PlantKw[liquid]"] == pytest.approx(30.0)


@pytest.mark.parametrize(("liquid_usd", "plant"), [(0.7999, "liquid"), (0.8001, "air")])
def test_border_of_building_a_second_plant(liquid_usd: float, plant: str) -> None:
    """By server: air 1.1; liquid x + 0.025 + 0.15. Four servers bear a plant of 0.5 when 4 (0.925 - x) > 0.5."""
    found = solve(program(4, liquid_usd=liquid_usd))
    assert found is not None
    assert found.values[f"Servers[{plant}]"] == 4


def test_full_capture_needs_no_air_plant() -> None:
    of = server_type()
    tank = option("tank", capture=1.0)
    terms = [price(("PlantBuilt", "tank"), 2.0), price(("PlantKw", "tank"), 0.1), price(("PlantBuilt", "air"), 9.0)]
    data = data_of(instance(), [bought("tank", of, cooling=tank)], [offered("d", of)], terms, demand=(2.0,))
    assert cost(data) == pytest.approx(2.0 + 20 * 0.1)
    assert set(data.heat_shares) == {"tank"}


def test_residual_air_goes_to_the_residual_plant_even_where_air_is_not_chosen() -> None:
    of = server_type()
    terms = [price(("PlantBuilt", "air"), 9.0), price(("PlantKw", "air"), 0.1)]
    data = data_of(instance(), [bought("liquid", of, cooling=LIQUID)], [offered("d", of)], terms, demand=(2.0,))
    assert cost(data) == pytest.approx(9.0 + 2 * 2.5 * 0.1)


def test_spares_heat_too() -> None:
    of = server_type()
    terms = [price(("PlantKw", "air"), 0.1)]
    given = instance(targets={"spare_fraction": 0.5})
    data = data_of(given, [bought("air", of)], [offered("d", of)], terms, demand=(2.0,))
    assert cost(data) == pytest.approx(30 * 0.1)


@pytest.mark.parametrize(("server_kw", "servers"), [(10.0, 4), (10.01, 3), (40.0, 1), (40.01, 0)])
def test_rack_border_by_power(server_kw: float, servers: int) -> None:
    assert servers_per_rack(instance(), accelerator(), server_kw, 40.0) == servers


def test_rack_border_by_height() -> None:
    # Servers of 4 U: the 42 U of a rack hold ten, 39 U hold nine.
    assert servers_per_rack(instance(), accelerator(), 1.0, 40.0) == 10
    assert servers_per_rack(instance(site={"rack_units": 40}), accelerator(), 1.0, 40.0) == 10
    assert servers_per_rack(instance(site={"rack_units": 39}), accelerator(), 1.0, 40.0) == 9
    tall = accelerator().model_copy(update={"server_rack_units": 48})
    assert servers_per_rack(instance(), tall, 1.0, 40.0) == 1
    assert servers_per_rack(instance(), tall, 41.0, 40.0) == 0


def test_rack_limit_is_the_smaller_of_option_and_site_and_the_upper_one_for_systems_built_for_liquid() -> None:
    row, required = accelerator(), accelerator().model_copy(update={"liquid_cooling": "required"})
    assert AIR.rack_kw_practical < AIR.rack_kw_upper
    assert rack_limit_kw(instance(), row, AIR) == AIR.rack_kw_practical
    assert rack_limit_kw(instance(), required, LIQUID) == LIQUID.rack_kw_upper
    for site_kw in (1.0, 1000.0):
        given = instance(site={"rack_kw": site_kw})
        assert rack_limit_kw(given, row, AIR) == min(site_kw, AIR.rack_kw_practical)
