"""The checker's own arithmetic, piece by piece, against figures worked by hand and against the performance model."""

import math

import pytest

from optimizer.catalog import load_catalog
from optimizer.instance.economics import AcceleratorPrices, Discount
from optimizer.instance.workload import Demand, Load, RequestClass, RequestShape
from optimizer.performance.cooling import CoolingPhysics, HeatPath, annual_pue, design_pue
from optimizer.units import HOURS_PER_YEAR
from optimizer.verify.bill import recovery_factor, tier_price
from optimizer.verify.climate import captured_fraction, pue
from optimizer.verify.load import class_demand, load_levels

CATALOG = load_catalog()


def test_a_flat_load_is_one_level() -> None:
    assert [(one.fraction, one.hours) for one in load_levels(Load())] == [(1.0, HOURS_PER_YEAR)]


def test_a_mean_load_keeps_the_peak_without_hours() -> None:
    levels = load_levels(Load(mean_fraction=0.4))
    assert [(one.fraction, one.hours) for one in levels] == [(1.0, 0.0), (0.4, HOURS_PER_YEAR)]


def test_a_profile_merges_equal_hours_and_is_relative_to_its_peak() -> None:
    levels = load_levels(Load(hourly_fractions=(0.8, *(0.4,) * 11, *(0.2,) * 12)))
    assert [one.fraction for one in levels] == [1.0, 0.5, 0.25]
    assert [one.hours for one in levels] == pytest.approx([365.25, 11 * 365.25, 12 * 365.25])


def test_a_day_keeps_every_value_and_a_week_its_mean_in_bands() -> None:
    day = tuple(0.3 + 0.7 * hour / 23 for hour in range(24))
    assert [one.fraction for one in load_levels(Load(hourly_fractions=day))] == sorted(day, reverse=True)
    shares = tuple(0.3 + 0.7 * hour / 167 for hour in range(168))
    levels = load_levels(Load(hourly_fractions=shares))
    assert len(levels) == 24
    mean = sum(one.fraction * one.hours for one in levels) / HOURS_PER_YEAR
    assert mean == pytest.approx(sum(shares) / 168)
    assert sum(one.hours for one in levels) == pytest.approx(HOURS_PER_YEAR)
    assert [one.fraction for one in levels] == sorted((one.fraction for one in levels), reverse=True)


def _class(**demand: float) -> RequestClass:
    return RequestClass(name="b", request=RequestShape(input_tokens=10, output_tokens=200), demand=Demand(**demand))


@pytest.mark.parametrize(
    ("demand", "needed", "weight"),
    [
        ({"output_tokens_per_s": 1000.0}, 5.0, 1.0),
        ({"requests_per_s": 3.0}, 3.0, 1.0),
        ({"concurrent_users": 60.0, "think_time_s": 8.0}, 60.0, 10.0),
    ],
)
def test_demand_in_three_units(demand: dict[str, float], needed: float, weight: float) -> None:
    one = class_demand(_class(**demand))
    assert one.needed == needed
    assert one.weight(latency_ms=2000.0) == weight


@pytest.mark.parametrize(
    ("rate", "years", "factor"), [(0.0, 5.0, 0.2), (0.08, 5.0, 0.2504564545668364), (1.0, 1.0, 2.0)]
)
def test_recovery_factor(rate: float, years: float, factor: float) -> None:
    assert recovery_factor(rate, years) == pytest.approx(factor, rel=1e-12)


_STEPS = (Discount(from_servers=10, discount_fraction=0.1), Discount(from_servers=20, discount_fraction=0.25))


@pytest.mark.parametrize(("count", "usd"), [(9, 900.0), (10, 900.0), (19, 1710.0), (20, 1500.0)])
def test_all_units_discounts_reprice_every_server(count: int, usd: float) -> None:
    price, dearer = tier_price(100.0, count, AcceleratorPrices(discounts=_STEPS))
    assert dearer == 0.0
    assert price * count == pytest.approx(usd)


@pytest.mark.parametrize(("count", "usd"), [(9, 900.0), (10, 990.0), (19, 1800.0), (20, 1875.0), (30, 2625.0)])
def test_incremental_discounts_price_what_lies_beyond_the_step(count: int, usd: float) -> None:
    own = AcceleratorPrices(discounts=_STEPS, discount_kind="incremental")
    price, dearer = tier_price(100.0, count, own)
    assert price * count + dearer == pytest.approx(usd)


@pytest.mark.parametrize("option", sorted(CATALOG.cooling))
@pytest.mark.parametrize("site", ["us_va_ashburn", "sg_singapore", "de_frankfurt"])
def test_pue_agrees_with_the_performance_model(option: str, site: str) -> None:
    row, climate = CATALOG.cooling[option], CATALOG.climates[site]
    main = HeatPath(
        row.distribution_fraction,
        row.rejection_fraction,
        row.t_full_c,
        row.t_start_c,
        row.cop_ref,
        row.cop_ref_c,
        row.cop_slope_per_k,
    )
    residual = None
    if captured_fraction(row) < 1.0:
        residual = HeatPath(
            row.residual_air_distribution_fraction or 0.0,
            row.residual_air_rejection_fraction or 0.0,
            row.residual_air_t_full_c,
            row.residual_air_t_start_c,
            row.residual_air_cop_ref or 0.0,
            row.cop_ref_c,
            row.residual_air_cop_slope_per_k or 0.0,
        )
    physics = CoolingPhysics(row.electrical_loss_fraction, main, captured_fraction(row), residual)
    hours = climate.dry_bulb_hours if row.heat_rejection_driver == "dry_bulb" else climate.wet_bulb_hours
    own = pue(row, climate)
    assert own.mean == pytest.approx(annual_pue(physics, climate.bin_mid_c, hours), rel=1e-12)
    assert own.design == pytest.approx(design_pue(physics, climate.bin_mid_c, hours), rel=1e-12)
    assert 1.0 < own.mean <= own.design < 2.0


@pytest.mark.parametrize(
    ("option", "site", "published"),
    [
        ("air_containment_econ", "us_va_ashburn", 1.1298),
        ("d2c_1p", "us_va_ashburn", 1.1137),
        ("dynamic", "sg_singapore", 1.2466),
        ("imm_1p", "ie_dublin", 1.0865),
    ],
)
def test_pue_reproduces_the_tables_of_the_facility_study(option: str, site: str, published: float) -> None:
    own = pue(CATALOG.cooling[option], CATALOG.climates[site])
    assert math.isclose(own.mean, published, abs_tol=0.006)
