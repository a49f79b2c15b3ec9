"""Cost terms by hand numbers, and the bill made of them."""

from typing import Any

import pytest

from optimizer.costs import (
    BILL_COMPONENTS,
    COST_COMPONENTS,
    cooling,
    energy,
    maintenance,
    network,
    rent,
    servers,
    space,
)
from optimizer.costs.bill import assumed_fraction, bill_lines, by_component, oldest_price
from optimizer.costs.term import Term, capital, capital_recovery_factor, total_usd_per_year
from optimizer.setting import Setting, build_setting
from tests.core.hand import AIR, LIQUID, bought, catalog, instance, option, price, rented, server_type, setting_of
from tests.core.steps import fabrics

YEAR = 8766.0


def crf(years: float, rate: float = 0.08) -> float:
    """Annuity as a sum: what K at the start is worth as equal payments at the end of each year."""
    return 1.0 / sum((1.0 + rate) ** -year for year in range(1, round(years) + 1))


def hand_setting(**economics: Any) -> Setting:
    """Air, liquid and rented servers of one type at 1000 a server."""
    of = server_type(usd=1000.0, rent={"on_demand": 2.0})
    pools = [bought("air", of), bought("liquid", of, cooling=LIQUID), rented("rent", of)]
    return setting_of(instance(economics=economics), pools, fabrics=fabrics())


def yearly(terms: list[Term]) -> dict[tuple[str, ...], float]:
    """USD a year for one unit of each quantity."""
    result: dict[tuple[str, ...], float] = {}
    for one in terms:
        result[one.quantity] = result.get(one.quantity, 0.0) + one.usd_per_year
    return result


@pytest.mark.parametrize("years", [1, 3, 5, 15])
def test_annuity_is_the_sum_of_discounted_payments(years: int) -> None:
    assert capital_recovery_factor(0.08, years) == pytest.approx(crf(years))
    assert capital_recovery_factor(0.0, years) == pytest.approx(1.0 / years)
    assert capital_recovery_factor(1e-9, years) == pytest.approx(1.0 / years, rel=1e-7)


def test_a_term_is_price_times_factors() -> None:
    one = Term("c", "i", ("Q",), "u", 10.0, (("a", 0.5), ("b", 3.0)), 0.0, "s", "2026", "assumed")
    assert one.usd_per_year == pytest.approx(15.0)
    assert total_usd_per_year([one, one], {("Q",): 2.0}) == pytest.approx(60.0)
    assert total_usd_per_year([one], {}) == 0.0
    bought_once = capital("c", "i", ("Q",), "u", 100.0, ("annuity", 0.25), ("s", "2026", "user"))
    assert (bought_once.usd_per_year, bought_once.capital_usd) == (25.0, 100.0)


def test_servers_and_premium_of_liquid() -> None:
    found = yearly(servers.terms(hand_setting()))
    # 450 USD for each of the 10 kW of a server that could also be had for air.
    assert found == {
        ("TierServers", "a8", "0"): pytest.approx(1000.0 * crf(5)),
        ("Servers", "liquid"): pytest.approx(4500.0 * crf(5)),
    }
    assert ("Servers", "liquid") not in yearly(servers.terms(hand_setting(liquid_ready_usd_per_kw=0.0)))


def test_maintenance_is_a_share_of_every_server_and_network_price() -> None:
    given = hand_setting(server_maintenance_fraction=0.1, network_maintenance_fraction=0.2)
    found = yearly(maintenance.terms(given))
    assert found[("TierServers", "a8", "0")] == pytest.approx(100.0)
    assert found[("Servers", "liquid")] == pytest.approx(450.0)
    assert found[("FabricAccelerators", "tier2")] == pytest.approx(0.4)
    assert all(one.capital_usd == 0.0 for one in maintenance.terms(given))
    assert maintenance.terms(hand_setting(server_maintenance_fraction=0.0, network_maintenance_fraction=0.0)) == []


def test_network_by_size_and_price_level() -> None:
    found = yearly(network.terms(hand_setting(network_life_years=3.0)))
    assert found == {("FabricAccelerators", f"tier{tiers}"): pytest.approx(tiers * crf(3)) for tiers in (1, 2, 3)}


def test_rent_is_paid_for_every_hour() -> None:
    assert yearly(rent.terms(hand_setting())) == {("Servers", "rent"): pytest.approx(2.0 * 8 * YEAR)}


def test_plants_cost_once_and_by_the_kilowatt_with_maintenance() -> None:
    of = server_type()
    air = option("air", fixed=1000.0, marginal=50.0)
    pools = [bought("air", of, cooling=air), bought("liquid", of, cooling=LIQUID)]
    given = setting_of(instance(economics={"cooling_life_years": 15}), pools, residual=air)
    share = air.maintenance_typical_fraction
    found = yearly(cooling.terms(given))
    assert found[("PlantBuilt", "air")] == pytest.approx(1000.0 * (crf(15) + share))
    assert found[("PlantKw", "air")] == pytest.approx(50.0 * (crf(15) + share))
    assert ("PlantBuilt", "liquid") not in found


def test_own_prices_of_a_plant() -> None:
    own = {"air_crac": {"fixed_usd": 10.0, "marginal_usd_per_kw": 2.0, "maintenance_fraction": 0.5}}
    row = catalog().cooling["air_crac"]
    given = setting_of(instance(economics={"cooling_prices": own}), [bought("p", server_type(), cooling=row)])
    found = cooling.terms(given)
    assert yearly(found)[("PlantBuilt", "air_crac")] == pytest.approx(10.0 * (crf(15) + 0.5))
    assert yearly(found)[("PlantKw", "air_crac")] == pytest.approx(2.0 * (crf(15) + 0.5))
    assert {one.trust for one in found} == {"user"}


def test_the_residual_plant_is_priced_with_liquid_and_not_without() -> None:
    of = server_type()
    alone = setting_of(instance(), [bought("liquid", of, cooling=LIQUID)])
    assert {one.id for one in cooling.plant_options(alone)} == {"liquid", "air"}
    door = setting_of(instance(), [bought("p", of, cooling=option("door"))])
    assert {one.id for one in cooling.plant_options(door)} == {"door"}


def test_space_is_rent_without_the_plant_it_contains_and_racks() -> None:
    given = hand_setting(colocation_usd_per_kw_month=100.0, rack_usd=500.0)
    plant = given.residual.capex_typical_usd_per_kw * (crf(15) + given.residual.maintenance_typical_fraction)
    found = yearly(space.terms(given))
    assert found[("SpaceKw",)] == pytest.approx(max(0.0, 1200.0 - plant))
    assert found[("Racks", "air")] == pytest.approx(500.0 * crf(5))
    assert ("Racks", "rent") not in found
    # A hall without a plant: nothing is taken out below nought.
    assert ("SpaceKw",) not in yearly(space.terms(hand_setting(colocation_usd_per_kw_month=1.0)))
    assert ("Racks", "air") not in yearly(space.terms(hand_setting(rack_usd=0.0)))


def test_energy_is_idle_by_server_and_busy_by_kilowatt_hour_times_pue() -> None:
    given = hand_setting()
    pool = given.pools[0]
    curve = given.catalog.power_curves["hopper"]
    idle_kw = energy.pool_idle_kw(given, pool)
    assert idle_kw == pytest.approx(curve.idle_fraction * 10.0)
    found = yearly(energy.terms(given))
    # 0.1 USD/kWh at a PUE of 1.25.
    assert found[("Servers", "air")] == pytest.approx(0.1 * 1.25 * idle_kw * YEAR)
    assert found[("BusyKwh", "air")] == pytest.approx(0.1 * 1.25)
    assert ("BusyKwh", "rent") not in found


def test_components_have_names_in_one_order() -> None:
    assert ("servers", "spares", *COST_COMPONENTS[1:]) == BILL_COMPONENTS
    given = build_setting(instance(choices={"accelerators": ["h100-80gb-sxm"]}), catalog())
    from optimizer.costs import SETTING_COMPONENTS

    for name, terms in SETTING_COMPONENTS:
        assert {one.component for one in terms(given)} <= {name}


def test_bill_splits_spares_off_the_servers_alone() -> None:
    terms = [
        price(("TierServers", "a8", "0"), 1.0, component="servers", capital=100.0),
        price(("Servers", "air"), 0.5, component="energy"),
        price(("Racks", "air"), 0.25, component="space"),
    ]
    quantities = {("TierServers", "a8", "0"): 4.0, ("Servers", "air"): 4.0}
    lines = bill_lines(terms, quantities, {"a8": 0.25, "air": 0.25})
    assert [(line.component, line.quantity) for line in lines] == [("servers", 3.0), ("spares", 1.0), ("energy", 4.0)]
    assert sum(line.usd_per_year for line in lines) == pytest.approx(total_usd_per_year(terms, quantities))
    assert [line.capital_usd for line in lines] == [300.0, 100.0, 0.0]
    assert by_component(lines, BILL_COMPONENTS) == pytest.approx(
        {"servers": 3.0 * YEAR, "spares": 1.0 * YEAR, "energy": 2.0 * YEAR}
    )
    only_spares = bill_lines(terms, quantities, {"a8": 1.0})
    assert [line.component for line in only_spares] == ["spares", "energy"]


def test_assumed_share_and_oldest_price() -> None:
    def line(usd: float, trust: str, as_of: str) -> Any:
        one = Term("rent", "i", ("Q",), "u", usd, (), 0.0, "s", as_of, trust)  # type: ignore[arg-type]
        return bill_lines([one], {("Q",): 1.0}, {})[0]

    lines = [line(1.0, "assumed", "2026"), line(3.0, "vendor", "2026-03"), line(0.5, "user", "")]
    assert assumed_fraction(lines) == pytest.approx(1.0 / 4.5)
    # A coarse date counts as the end of its period.
    assert oldest_price(lines) == "2026-03"
    assert assumed_fraction([]) == 0.0
    assert oldest_price([]) == ""


def test_air_and_liquid_of_the_hand_made_options() -> None:
    assert (AIR.medium, LIQUID.medium, LIQUID.liquid_capture_typical_fraction) == ("air", "liquid", 0.75)
