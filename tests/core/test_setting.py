"""Server types, pools, load levels and prices from an instance and the catalogue."""

import math
from typing import Any

import pytest

from optimizer.costs.servers import liquid_premium
from optimizer.instance.model import Instance
from optimizer.levels import MAX_LEVELS_BELOW_PEAK
from optimizer.setting import (
    FAN_FIGURE,
    LoadLevel,
    Setting,
    build_setting,
    load_levels,
    network_w,
    plant_pue,
    server_fan_factor,
)
from optimizer.units import HOURS_PER_YEAR
from tests.core.hand import catalog, instance


def levels(**load: Any) -> tuple[LoadLevel, ...]:
    """Load levels of a load."""
    return load_levels(instance(workload={"load": load}))


def setting(**sections: Any) -> Setting:
    """Setting of an instance."""
    return build_setting(instance(**sections), catalog())


def test_flat_load_is_one_level() -> None:
    assert levels(mean_fraction=1.0) == (LoadLevel(1.0, HOURS_PER_YEAR),)
    assert load_levels(instance()) == (LoadLevel(1.0, HOURS_PER_YEAR),)


def test_a_mean_is_billed_and_its_peak_only_sizes() -> None:
    assert levels(mean_fraction=0.4) == (LoadLevel(1.0, 0.0), LoadLevel(0.4, HOURS_PER_YEAR))


def test_equal_hours_of_a_profile_are_merged() -> None:
    found = levels(hourly_fractions=[1.0] * 6 + [0.5] * 12 + [0.0] * 6)
    assert [one.fraction for one in found] == [1.0, 0.5, 0.0]
    assert [one.hours_per_year / HOURS_PER_YEAR for one in found] == pytest.approx([0.25, 0.5, 0.25])


def test_a_profile_below_one_is_divided_by_its_maximum() -> None:
    found = levels(hourly_fractions=[0.8] * 12 + [0.2] * 12)
    assert [one.fraction for one in found] == pytest.approx([1.0, 0.25])


@pytest.mark.parametrize("hours", [24, 168])
def test_many_values_are_merged_into_bands_that_keep_the_mean_and_the_year(hours: int) -> None:
    profile = [0.2 + 0.8 * (0.5 - 0.5 * math.cos(2 * math.pi * hour / hours)) ** 1.5 for hour in range(hours)]
    profile[hours // 2] = 1.0
    found = levels(hourly_fractions=profile)
    assert len(found) <= MAX_LEVELS_BELOW_PEAK + 1
    assert found[0].fraction == 1.0
    assert [one.fraction for one in found] == sorted((one.fraction for one in found), reverse=True)
    assert sum(one.hours_per_year for one in found) == pytest.approx(HOURS_PER_YEAR)
    mean = sum(one.fraction * one.hours_per_year for one in found) / HOURS_PER_YEAR
    assert mean == pytest.approx(sum(profile) / hours)
    assert found[0].hours_per_year == pytest.approx(HOURS_PER_YEAR / hours * profile.count(1.0))


def test_every_value_of_a_day_stays_and_more_of_a_week_do_not() -> None:
    day = [1.0, *(place / 100 for place in range(23, 0, -1))]
    assert [one.fraction for one in levels(hourly_fractions=day)] == day
    week = [1.0] * (168 - 24) + [place / 100 for place in range(1, 25)]
    found = [one.fraction for one in levels(hourly_fractions=week)]
    # 23 bands of a hundredth from 0.01 to 0.24; the greatest value joins the last band.
    assert len(found) == 24
    assert found[1] == pytest.approx(0.235)


def test_mean_fraction_of_the_setting() -> None:
    assert setting(workload={"load": {"mean_fraction": 0.4}}).mean_fraction() == pytest.approx(0.4)
    profile = {"hourly_fractions": [1.0] * 12 + [0.5] * 12}
    assert setting(workload={"load": profile}).mean_fraction() == pytest.approx(0.75)


def test_default_choices_are_the_current_accelerators() -> None:
    used = {one.accelerator.id for one in setting().server_types}
    current = {key for key, row in catalog().accelerators.items() if row.availability == "current"}
    assert used <= current
    assert used, "some can be bought or rented"


def test_names_are_resolved_and_repeats_dropped() -> None:
    given = {"accelerators": ["h100-80gb-sxm", "h100-80gb-sxm"], "sourcing": ["buy"]}
    assert next(one.id for one in setting(choices=given).server_types) == "h100-80gb-sxm x8"


def test_pools_by_cooling_and_by_term() -> None:
    given = {"accelerators": ["h100-80gb-sxm"], "cooling": ["d2c_1p", "air_crac"], "sourcing": ["buy", "on_demand"]}
    economics = {"prices": {"h100-80gb-sxm": {"server_usd": 1e5, "on_demand_usd_per_hour": 2.5}}}
    found = setting(choices=given, economics=economics, site={"rack_kw": 100})
    bought = [one for one in found.pools if one.is_bought]
    assert [one.cooling.id for one in bought if one.cooling] == sorted(
        one for one in ("air_crac", "d2c_1p") if not any(refusal.cooling == one for refusal in found.refusals)
    )
    rents = [one for one in found.pools if not one.is_bought]
    assert rents
    for one in rents:
        assert one.server_type.rent["on_demand"].usd == 2.5
        assert one.server_type.rent["on_demand"].trust == "user"
        assert (one.per_rack, one.network_kw, one.server_kw) == (0, 0.0, 0.0)


def test_a_rack_that_takes_no_server_is_refused_with_its_numbers() -> None:
    given = {"accelerators": ["h100-80gb-sxm"], "cooling": ["air_crac"], "sourcing": ["buy"]}
    found = setting(choices=given, site={"rack_kw": 1.0})
    assert not found.pools
    (refusal,) = found.refusals
    assert (refusal.server_type, refusal.cooling, refusal.rack_kw) == ("h100-80gb-sxm x8", "air_crac", 1.0)
    assert refusal.server_kw > 10.0
    assert "1.0 kW" in refusal.reason


def test_liquid_is_for_servers_that_take_it_and_the_only_way_for_those_that_need_it() -> None:
    rows = catalog().accelerators
    needs = next(key for key, row in rows.items() if row.liquid_cooling == "required")
    refuses = next(key for key, row in rows.items() if row.liquid_cooling == "no")
    prices = {key: {"server_usd": 1e5} for key in (needs, refuses)}
    given = {"accelerators": [needs, refuses], "cooling": ["air_containment_econ", "d2c_1p"], "sourcing": ["buy"]}
    found = setting(choices=given, economics={"prices": prices})
    media = {
        key: {one.cooling.medium for one in found.pools if one.cooling and one.server_type.accelerator.id == key}
        for key in (needs, refuses)
    }
    assert media[needs] <= {"liquid"}
    assert media[refuses] <= {"air"}


def test_power_of_a_server_under_a_cooling_option() -> None:
    given = {"accelerators": ["h100-80gb-sxm"], "cooling": ["air_containment_econ", "d2c_1p"], "sourcing": ["buy"]}
    found = setting(choices=given, site={"rack_kw": 1000})
    row = catalog().accelerators["h100-80gb-sxm"]
    fans = catalog().facility[FAN_FIGURE].typical
    network_kw = 8 * network_w(found.fabrics[row.scale_out_gb_s]) / 1000
    for pool in found.pools:
        assert pool.cooling is not None
        saved = pool.cooling.server_fan_saved_typical_fraction
        factor = 1.0 - fans * saved
        assert pool.server_kw == pytest.approx(row.server_power_kw * factor + network_kw)
        assert pool.loaded_kw(5.0) == pytest.approx(5.0 * factor + network_kw)
        assert 1.0 < pool.pue_mean <= pool.pue_design
        assert (pool.pue_mean, pool.pue_design) == plant_pue(
            pool.cooling, catalog().climates[found.instance.site.climate]
        )
    required = row.model_copy(update={"liquid_cooling": "required"})
    assert server_fan_factor(catalog(), required, catalog().cooling["d2c_1p"]) == 1.0


def test_own_price_of_a_server_and_price_level() -> None:
    key = "h100-80gb-sxm"
    own = setting(choices={"accelerators": [key]}, economics={"prices": {key: {"server_usd": 123.0}}})
    (price,) = [one.server_usd for one in own.server_types if one.server_usd is not None]
    assert (price.usd, price.trust) == (123.0, "user")
    by_level = []
    for level in ("low", "typical", "high"):
        found = setting(choices={"accelerators": [key]}, economics={"price_level": level})
        by_level += [one.server_usd.usd for one in found.server_types if one.server_usd is not None]
    assert by_level == sorted(by_level)
    assert len(set(by_level)) > 1


def test_discounts_belong_to_whole_servers() -> None:
    key = "h100-80gb-sxm"
    prices = {key: {"discounts": [{"from_servers": 4, "discount_fraction": 0.1}], "discount_kind": "incremental"}}
    found = setting(choices={"accelerators": [key]}, economics={"prices": prices})
    for one in found.server_types:
        assert one.discounts == (((4, 0.1),) if one.accelerators == 8 else ())


def test_electricity_stated_by_region_or_by_site() -> None:
    stated = setting(site={"electricity_usd_per_kwh": 0.2})
    assert (stated.electricity.usd, stated.electricity.trust) == (0.2, "user")
    by_climate = setting()
    region = catalog().climates[by_climate.instance.site.climate].electricity_region
    assert by_climate.electricity.usd == catalog().electricity[region].price_usd_per_kwh
    assert setting(site={"electricity_region": "DEU"}).electricity.usd == catalog().electricity["DEU"].price_usd_per_kwh


def test_own_rows_are_laid_over_the_catalogue() -> None:
    row = catalog().accelerators["l4"].model_dump(mode="json", exclude={"source", "as_of", "trust"})
    own = {**row, "id": "my-card", "memory_gib": 99.0}
    given: dict[str, Any] = {
        "catalog": {"accelerators": [own]},
        "choices": {"accelerators": ["my-card"]},
        "economics": {"prices": {"my-card": {"server_usd": 5000}}},
    }
    found = setting(**given)
    assert [one.accelerator.memory_gib for one in found.server_types] == [99.0]
    assert "my-card" not in catalog().accelerators


def test_racks_are_bought_whole_and_rented_by_the_tray_or_whole() -> None:
    """Of a rack-scale system rented by the tray, replicas stay in a tray, or span the trays of a rack."""
    racks = [
        key for key, row in catalog().accelerators.items() if row.accelerators_per_server > row.accelerators_per_host
    ]
    assert racks
    for key in racks:
        row = catalog().accelerators[key]
        trays = {offer.accelerators for offer in catalog().rental_offers.values() if offer.accelerator == key}
        found = setting(choices={"accelerators": [key]})
        sizes = {one.accelerators for one in found.server_types if one.rent}
        is_offered = row.accelerators_per_host in trays
        assert sizes == ({row.accelerators_per_host, row.accelerators_per_server} if is_offered else set())
        priced = {one.accelerators for one in found.server_types if one.server_usd is not None}
        assert priced == {row.accelerators_per_server}


def test_setting_of_an_instance_has_its_classes_and_residual_plant() -> None:
    found = setting()
    assert isinstance(found.instance, Instance)
    assert [one.name for one in found.classes] == ["all"]
    assert found.residual.medium == "air"


def test_servers_for_air_are_converted_to_liquid_where_that_is_allowed() -> None:
    rows = catalog().accelerators
    key = next(name for name, row in rows.items() if row.liquid_cooling == "no" and row.availability == "current")
    given = {"accelerators": [key], "cooling": ["air_containment_econ", "d2c_1p"], "sourcing": ["buy"]}
    prices = {key: {"server_usd": 1e5}}
    found = setting(choices={**given, "liquid_retrofit": True}, economics={"prices": prices})
    assert {one.cooling.medium for one in found.pools if one.cooling} == {"air", "liquid"}
    liquid = next(one for one in found.pools if one.cooling and one.cooling.medium == "liquid")
    # Converted servers save what any server with cold plates saves of its fans.
    assert liquid.fan_factor < 1.0
    for level, usd in (("low", 2000.0), ("typical", 2500.0), ("high", 3000.0)):
        economics = {"prices": prices, "price_level": level}
        premium = liquid_premium(setting(choices={**given, "liquid_retrofit": True}, economics=economics), liquid)
        assert premium is not None
        assert premium[1].usd == pytest.approx(usd * rows[key].server_power_kw)
        assert premium[1].trust == "assumed"
    stated = {"prices": prices, "liquid_retrofit_usd_per_kw": 100.0}
    premium = liquid_premium(setting(choices={**given, "liquid_retrofit": True}, economics=stated), liquid)
    assert premium is not None
    assert premium[1].usd == pytest.approx(100.0 * rows[key].server_power_kw)
    assert premium[1].trust == "user"
