"""The site as a whole: hall, staff, services, insurance; tax, residual value, replacement."""

import math
from typing import Any

import pytest

from optimizer.api import solve
from optimizer.costs import insurance, servers, services, space, staff
from optimizer.costs.finance import capital_recovery_factor, generation_factor, present_value
from optimizer.costs.over_time import timed
from optimizer.costs.staff import StaffNeed
from optimizer.costs.term import Term
from optimizer.plan import Plan
from optimizer.report.cash_flow import flows
from optimizer.setting import Setting
from optimizer.verify import verify
from tests.core.hand import bought, catalog, cost, data_of, instance, offered, price, rented, server_type, setting_of
from tests.core.real import small


def setting(site: dict[str, Any] | None = None, **economics: Any) -> Setting:
    given = instance(site=site or {}, economics=economics)
    return setting_of(given, [bought("pool", server_type())], residual=catalog().cooling["air_containment_econ"])


def only(terms: list[Term], item: str) -> Term:
    (found,) = (term for term in terms if term.item == item)
    return found


# -- prices ---------------------------------------------------------------------------------------------------------


def test_a_hall_is_priced_without_the_air_plant_it_contains() -> None:
    plant = catalog().cooling["air_containment_econ"].capex_typical_usd_per_kw
    found = space.terms(setting({"facility": "own_build"}, hall={"build_usd_per_kw": 10_000}))
    hall = only(found, "hall without its air plant")
    assert hall.capital_usd == pytest.approx(10_000 - plant)
    assert hall.usd_per_year == pytest.approx((10_000 - plant) * capital_recovery_factor(0.08, 15))
    assert only(found, "hall without its air plant, upkeep").usd_per_year == pytest.approx(0.03 * (10_000 - plant))
    assert not any(term.item.startswith("colocation") for term in found)


@pytest.mark.parametrize(("climate", "usd"), [("us_va_ashburn", 11_700.0), ("sg_singapore", None), ("ie_dublin", None)])
def test_building_costs_what_it_does_in_the_country(climate: str, usd: float | None) -> None:
    given = setting({"facility": "own_build", "climate": climate})
    plant = given.residual.capex_typical_usd_per_kw
    found = only(space.terms(given), "hall without its air plant").capital_usd + plant
    region = catalog().electricity[catalog().climates[climate].electricity_region]
    assert found == pytest.approx(catalog().build_costs[region.iso3].usd_per_kw if usd is None else usd)


def test_every_region_of_a_climate_has_a_building_cost_or_is_in_the_united_states() -> None:
    for one in catalog().climates.values():
        country = catalog().electricity[one.electricity_region].iso3
        assert country == "USA" or country in catalog().build_costs, one.id


def test_fit_out_is_paid_once_for_the_plan() -> None:
    found = only(space.terms(setting(hall={"fit_out_usd_per_kw": 750})), "fit-out of colocation")
    assert found.usd_per_year == pytest.approx(750 * capital_recovery_factor(0.08, 5))


def test_staff_come_in_steps() -> None:
    need = StaffNeed(0.05 / 8, 1.25 / 1000, 11.0, 0.25)
    assert need.posts(8, 0.0) == 0.25
    assert need.posts(40, 0.0) == 0.25
    assert need.posts(41, 0.0) == 0.5
    # 512 accelerators: the regression case has 3.2 posts.
    assert need.posts(512, 0.0) == 3.25
    assert need.posts(8, 12.0) == 11.0
    assert need.posts(80_000, 12_000.0) == 515.0


def test_wages_are_those_of_the_catalogue_and_rise() -> None:
    (found,) = staff.terms(setting(staff={}))
    assert found.unit_price_usd == catalog().facility["staff_cost_loaded"].typical
    assert found.factors[0][0] == "levelised"
    assert staff.terms(setting(staff={"usd_per_fte_year": 0})) == []


def test_insurance_is_of_mean_book_values() -> None:
    given = setting(services={"insurance_fraction": 0.01}, server_life_years=4)
    found = [one for one in insurance.terms(given) if one.quantity[0] == "TierServers"]
    # The book value at the start of each of four years is 1, 3/4, 1/2, 1/4 of the price.
    assert math.fsum(one.usd_per_year for one in found) == pytest.approx(100.0 * 0.01 * (1 + 0.75 + 0.5 + 0.25) / 4)


def test_services_that_are_asked_for() -> None:
    given = setting(
        services={
            "insurance_fraction": 0,
            "software_usd_per_accelerator_year": 4500,
            "storage_tb_per_accelerator": 2,
            "servers_per_management_server": 16,
            "management_server_usd": 12_000,
            "connectivity_gbps": 10,
        }
    )
    found = services.terms(given)
    assert only(found, "pool: software").usd_per_year == 8 * 4500
    assert only(found, "pool: storage").capital_usd == pytest.approx(8 * 2 * 250.0)
    assert only(found, "management servers").capital_usd == 12_000
    assert only(found, "connectivity").usd_per_year == pytest.approx(2_400_000 / 10)
    assert services.terms(setting()) == []


# -- time -----------------------------------------------------------------------------------------------------------


def of_server(**economics: Any) -> float:
    given = setting(**economics)
    (term,) = (one for one in servers.terms(given) if one.quantity[0] == "TierServers")
    return timed(term, given.instance.economics).usd_per_year


def test_a_residual_value_is_sold_at_the_end_of_the_life() -> None:
    flow = [100.0, 0.0, 0.0, 0.0, 0.0, -12.5]
    assert of_server(server_residual_fraction=0.125) == pytest.approx(
        present_value(flow, 0.08) * capital_recovery_factor(0.08, 5)
    )


def test_tax_takes_its_share_of_profit() -> None:
    """Running cost and a fifth of the price lower the profit of each year."""
    flow = [100.0, *[-0.3 * 20.0] * 4, -0.3 * 20.0 - 0.7 * 12.5]
    assert of_server(server_residual_fraction=0.125, tax_fraction=0.3) == pytest.approx(
        present_value(flow, 0.08) * capital_recovery_factor(0.08, 5)
    )


@pytest.mark.parametrize(("horizon", "moments"), [(10.0, (0, 4, 8)), (8.0, (0, 4)), (4.0, (0,))])
def test_later_servers_at_later_prices(horizon: float, moments: tuple[int, ...]) -> None:
    yearly = 100.0 * capital_recovery_factor(0.08, 4)
    flow = [yearly * 0.72 ** max(one for one in moments if one < year) for year in range(1, int(horizon) + 1)]
    wanted = present_value([0.0, *flow], 0.08) * capital_recovery_factor(0.08, horizon)
    found = of_server(horizon_years=horizon, server_life_years=4, server_price_change_fraction=-0.28)
    assert found == pytest.approx(wanted)


def test_equal_prices_need_no_factor() -> None:
    assert generation_factor(0.08, 10.0, 4.0, 0.0) == pytest.approx(1.0)
    assert generation_factor(0.0, 10.0, 4.0, 0.0) == pytest.approx(1.0)


# -- in the program -------------------------------------------------------------------------------------------------


def halls(kw: float, minimum: float) -> float:
    """Cost of four servers of ``kw`` kW with a hall at 2 an hour and kW to rent, or 1 to build and staff."""
    of = server_type()
    given = instance(
        site={"facility": "cheaper"},
        economics={"staff": {"usd_per_fte_year": 8766, "fte_per_server": 0, "fte_per_mw": 0, "minimum_fte": minimum}},
    )
    terms = [
        price(("ColocationKw", "site"), 2.0, component="space"),
        price(("HallKw", "site"), 1.0, component="space"),
        price(("Posts", "site"), 1.0, component="staff"),
    ]
    data = data_of(given, [bought("air", of, server_kw=kw)], [offered("d", of, rate=2.5)], terms)
    return cost(data)


def test_a_hall_pays_when_it_is_large_enough_for_its_people() -> None:
    assert halls(10.0, 11.0) == pytest.approx(40.0 + 11.0)
    assert halls(2.0, 11.0) == pytest.approx(16.0)
    assert halls(2.75, 11.0) == pytest.approx(22.0)


def test_one_more_server_may_take_one_more_post() -> None:
    of = server_type()
    given = instance(economics={"staff": {"usd_per_fte_year": 8766, "fte_per_server": 0.25, "step_fte": 1.0}})
    terms = [price(("Servers", "air"), 1.0), price(("Servers", "rent"), 1.5), price(("Posts", "site"), 3.0)]
    pools = [bought("air", of), rented("rent", server_type(rent={"on_demand": 1.5}))]

    def best(demand: float) -> float:
        return cost(data_of(given, pools, [offered("d", of)], terms, demand=(demand,)))

    # A post costs 3 and serves four servers, which save 0.5 each: nothing is bought until wages fall.
    assert best(8.0) == pytest.approx(12.0)
    terms[2] = price(("Posts", "site"), 1.2)
    assert best(4.0) == pytest.approx(4.0 + 1.2)
    # The fifth would need a second post for itself, so it is rented.
    assert best(5.0) == pytest.approx(4.0 + 1.2 + 1.5)
    assert best(8.0) == pytest.approx(8.0 + 2.4)


def test_management_servers_are_whole() -> None:
    of = server_type()
    services_of = {"servers_per_management_server": 4, "management_server_usd": 1.0}
    given = instance(economics={"services": {"insurance_fraction": 0, **services_of}})
    terms = [price(("Servers", "air"), 1.0), price(("ManagementServers", "site"), 0.5)]
    data = data_of(given, [bought("air", of)], [offered("d", of)], terms, demand=(9.0,))
    assert cost(data) == pytest.approx(9.0 + 3 * 0.5)


def test_floor_holds_whole_racks() -> None:
    of = server_type(rent={"on_demand": 3.0})
    terms = [price(("Servers", "air"), 1.0), price(("Servers", "rent"), 3.0)]
    pools = [bought("air", of, per_rack=1), rented("rent", of)]
    for floor, best in ((10.0, 4.0), (9.9, 3.0 + 3.0), (2.4, 12.0)):
        data = data_of(instance(site={"floor_m2": floor}), pools, [offered("d", of, rate=2.5)], terms)
        assert cost(data) == pytest.approx(best)


# -- in a plan ------------------------------------------------------------------------------------------------------

EVERYTHING: dict[str, Any] = {
    "choices": {"sourcing": ["buy"]},
    "site": {
        "facility": "own_build",
        "tariff": {
            "energy_usd_per_kwh": 0.05,
            "periods": [{"usd_per_kwh": 0.2, "hours": [17, 18]}],
            "demand_usd_per_kw_month": 12.0,
            "fixed_usd_per_month": 300.0,
        },
    },
    "economics": {
        "horizon_years": 9.5,
        "server_life_years": 4.0,
        "server_residual_fraction": 0.15,
        "server_price_change_fraction": -0.2,
        "tax_fraction": 0.25,
        "carbon_usd_per_tonne": 80.0,
        "staff": {},
        "hall": {},
        "services": {"software_usd_per_accelerator_year": 100.0, "storage_tb_per_accelerator": 1.0},
    },
}


@pytest.fixture(scope="module")
def everything() -> Plan:
    """A plan with every cost that this page knows."""
    plan = solve(small(**EVERYTHING)).plan
    assert plan is not None
    return plan


def test_a_plan_with_everything_stands_and_its_cash_is_worth_its_bill(everything: Plan) -> None:
    assert verify(everything) == ()
    assert {"staff", "insurance", "services", "carbon", "space"} <= set(everything.bill.usd_per_year_by_component)
    assert everything.facility == "own_build"
    assert everything.posts == 11.0
    found = flows(everything)
    wanted = everything.bill.usd_over_horizon
    assert math.fsum(one.annuity_discounted_usd for one in found) == pytest.approx(wanted, rel=1e-12)
    assert math.fsum(one.discounted_usd for one in found) == pytest.approx(wanted, rel=1e-9)


def test_cash_by_year_is_what_is_paid(everything: Plan) -> None:
    """Servers: bought at 0, 4 and 8, sold and written off in between; wages rise."""
    lines = [one for one in everything.bill.lines if one.component == "servers"]
    capital = math.fsum(one.capital_usd for one in lines)
    cash = {one.year: one.cash_usd for one in flows(everything) if one.component == "servers"}
    assert cash[0] == pytest.approx(capital)
    assert cash[1] == pytest.approx(-0.25 * capital / 4)
    second = capital * 0.8**4
    assert cash[4] == pytest.approx(second - 0.25 * capital / 4 - 0.15 * 0.75 * capital)
    wages = {one.year: one.cash_usd for one in flows(everything) if one.component == "staff"}
    assert wages[1] == pytest.approx(11.0 * 150_000 * 0.75)
    assert wages[5] == pytest.approx(wages[1] * 1.025**4)
    assert wages[10] == pytest.approx(0.5 * wages[1] * 1.025**9)
