"""Every packaged row loads, is sourced and dated, and is plausible beside its neighbours."""

import dataclasses
import datetime as dt
import itertools
import math

import pytest

from optimizer.catalog import Catalog, load_catalog
from optimizer.catalog.rows import Climate, Row, as_of_end

TABLES = tuple(field.name for field in dataclasses.fields(Catalog))
ROWS = {
    "accelerators": 32,
    "rental_offers": 125,
    "models": 88 + 1,
    "cooling": 10,
    "climates": 33,
    "electricity": 105,
    "facility": 59,
    "fabrics": 24,
}
CATALOG = load_catalog()
#: GB of what the driver exposes over GB on the label: GiB labels, less what error correction takes.
LABEL_GB_TO_GIB = (0.92, 1.01)


def rows_of(table: str) -> list[Row]:
    return list(getattr(CATALOG, table).values())


@pytest.mark.parametrize("table", TABLES)
def test_every_row_loads_and_states_source_and_date(table: str) -> None:
    rows = rows_of(table)
    assert rows
    for row in rows:
        assert len(row.source) > 10, row
        assert as_of_end(row.as_of) is not None, row
        assert row.trust != "user", row
        for nested in getattr(row, "recoveries", ()):
            assert nested.source, nested
            assert as_of_end(nested.as_of) is not None, nested


@pytest.mark.parametrize(("table", "count"), ROWS.items())
def test_row_counts(table: str, count: int) -> None:
    assert len(getattr(CATALOG, table)) == count


@pytest.mark.parametrize("table", TABLES)
def test_fields_state_meaning_and_unit(table: str) -> None:
    for name, info in type(rows_of(table)[0]).model_fields.items():
        assert info.description, name
        extra = info.json_schema_extra
        assert isinstance(extra, dict), name
        assert name == "recoveries" or extra["unit"], name
        if name.endswith("_fraction"):
            assert extra["unit"] == "1", name


@pytest.mark.parametrize("table", TABLES)
def test_keys_are_ids(table: str) -> None:
    for key, row in getattr(CATALOG, table).items():
        assert key == getattr(row, "id", None) or key == getattr(row, "accelerator", None)


def test_every_accelerator_that_is_sold_has_a_server_price() -> None:
    for accelerator in CATALOG.accelerators.values():
        sold = accelerator.availability not in ("cloud_only", "past")
        assert (accelerator.id in CATALOG.purchase_prices) is sold, accelerator.id
        if sold:
            price = CATALOG.purchase_prices[accelerator.id]
            assert price.unit == ("rack" if accelerator.accelerators_per_server == 72 else "server")
            assert price.accelerators == accelerator.accelerators_per_server


def test_every_current_accelerator_can_be_bought_or_rented() -> None:
    rented = {offer.accelerator for offer in CATALOG.rental_offers.values() if offer.is_bookable}
    for accelerator in CATALOG.accelerators.values():
        if accelerator.availability == "current":
            assert accelerator.id in CATALOG.purchase_prices or accelerator.id in rented, accelerator.id


def test_derived_server_prices_say_so() -> None:
    for name in ("a100-80gb-pcie", "h100-80gb-pcie", "h100-nvl-94gb"):
        server, card = CATALOG.purchase_prices[name], CATALOG.card_prices[name]
        assert server.typical_usd == 8 * card.typical_usd + 35_000
        assert (server.trust, server.confidence) == ("assumed", "low")
        assert server.source.startswith("derived")


def test_a_server_costs_more_than_its_cards() -> None:
    for name, server in CATALOG.purchase_prices.items():
        if name in CATALOG.card_prices:
            cards = CATALOG.card_prices[name].typical_usd * server.accelerators
            assert server.typical_usd > cards, name


def test_memory_follows_the_label() -> None:
    for row in CATALOG.accelerators.values():
        assert row.memory_label_gb is not None
        assert LABEL_GB_TO_GIB[0] <= row.memory_gib / row.memory_label_gb <= LABEL_GB_TO_GIB[1], row.id


def test_accelerator_units_are_plausible() -> None:
    for row in CATALOG.accelerators.values():
        assert 200 <= row.memory_bandwidth_gb_s <= 10_000, row.id
        assert 50 <= row.fp16_tflops <= 3_000, row.id
        assert row.server_power_kw * 1e3 > row.tdp_w * row.accelerators_per_server, row.id
        for faster, slower in (("fp8_tflops", "fp16_tflops"), ("fp4_tflops", "fp8_tflops")):
            high, low = getattr(row, faster), getattr(row, slower)
            assert high is None or high >= low, row.id
        pair, link = row.scale_up_pair_gb_s, row.scale_up_gb_s
        assert pair is None or (link is not None and pair <= link), row.id


def test_prices_name_known_accelerators() -> None:
    named = {offer.accelerator for offer in CATALOG.rental_offers.values()}
    assert named <= set(CATALOG.accelerators)
    assert set(CATALOG.purchase_prices) <= set(CATALOG.accelerators)


def test_reserved_prices_are_per_accelerator() -> None:
    # One year of the provider's bare metal is published as 5.56 USD per accelerator and hour.
    offer = CATALOG.rental_offers["qubrid/8-gpu-bare-metal-1-year-contract/b300-270gb-sxm"]
    assert offer.on_demand_usd_per_accelerator_hour is None
    assert offer.price_usd_per_accelerator_hour("reserved_1yr") == pytest.approx(5.556, abs=0.001)
    for row in CATALOG.rental_offers.values():
        on_demand = row.price_usd_per_accelerator_hour("on_demand")
        for term in ("reserved_1yr", "reserved_3yr", "spot"):
            price = row.price_usd_per_accelerator_hour(term)
            assert price is None or on_demand is None or price < on_demand, row.id


def test_fabric_families_have_three_tiers_that_do_not_get_cheaper() -> None:
    for accelerator in CATALOG.accelerators.values():
        fabrics = CATALOG.fabric_for(accelerator.scale_out_gb_s)
        assert [fabric.tiers for fabric in fabrics] == [1, 2, 3]
        for small, large in itertools.pairwise(fabrics):
            assert small.max_accelerators < large.max_accelerators
            assert small.typical_usd_per_accelerator <= large.typical_usd_per_accelerator
            assert small.power_w_per_accelerator <= large.power_w_per_accelerator
        if accelerator.availability == "past":
            assert fabrics[0].scale_out_gb_s >= accelerator.scale_out_gb_s
            continue
        assert fabrics[0].scale_out_gb_s == pytest.approx(accelerator.scale_out_gb_s, rel=0.02)


def test_hypothetical_model_counts_600_billion() -> None:
    row = CATALOG.models["Dense-600B"]
    width = row.heads * row.head_dim
    attention = 2 * row.hidden * width + 2 * row.hidden * row.kv_heads * row.head_dim
    layer = attention + 3 * row.hidden * row.ffn + 2 * row.hidden
    total = row.layers * layer + 2 * row.vocabulary * row.hidden + row.hidden
    assert total == row.total_parameters_published
    assert total == pytest.approx(600e9, rel=0.005)
    assert row.heads % 16 == 0
    assert row.ffn % (128 * 16) == 0
    assert row.layers % 4 == 0
    assert row.trust == "assumed"


def test_models_layers_add_up() -> None:
    for row in CATALOG.models.values():
        mixing = row.attention_layers + row.sliding_layers + row.linear_layers
        blocks = mixing + row.dense_layers + row.moe_layers if row.attention == "hybrid_mamba2" else mixing
        assert blocks == row.layers, row.id
        assert row.native_scheme in CATALOG.schemes, row.id


def test_schemes_shrink_weights_and_state_their_losses() -> None:
    for scheme in CATALOG.schemes.values():
        assert scheme.bytes_per_weight == pytest.approx(scheme.weight_bits_effective / 8, rel=0.01), scheme.id
        assert scheme.weight_bits <= scheme.weight_bits_effective
        assert scheme.recoveries, scheme.id
        for recovery in scheme.recoveries:
            assert recovery.scheme == scheme.id
            assert recovery.recovery in CATALOG.recovery_steps
            # The published quantile exists wherever a spread does: nothing is estimated from too few models here.
            assert (recovery.sd_suite_fraction is None) == (recovery.recovery_lo90_fraction is None)
            assert recovery.confidence == "low" or not recovery.is_thin
    assert CATALOG.schemes["w8a8-fp8"].support("ampere") == "weight_only"
    assert CATALOG.schemes["w4a4-nvfp4"].support("hopper") == "none"
    assert CATALOG.schemes["w4a16-int4"].support("hopper") == "weight_only"


def test_native_formats_set_the_block() -> None:
    assert CATALOG.block_width("DeepSeek-V3 / R1 / V3.1", "w8a8-fp8") == 128
    assert CATALOG.block_width("Llama-3.1-70B", "w8a8-fp8") == 1
    assert CATALOG.block_width("Llama-3.1-70B", "w4a16-int4") == 128


def test_only_two_schemes_have_a_size_effect_of_their_own() -> None:
    scaled = {
        (scheme.id, recovery.recovery)
        for scheme in CATALOG.schemes.values()
        for recovery in scheme.recoveries
        if recovery.has_size_effect
    }
    assert scaled == {
        ("w4a16-int4", "ptq-calibration"),
        ("w4a4-nvfp4", "ptq-calibration"),
        ("w4a16-nvfp4", "ptq-calibration"),  # bounded by w4a4-nvfp4
    }


@pytest.mark.parametrize("climate", CATALOG.climates.values(), ids=lambda row: row.id)
def test_bins_hold_a_year(climate: Climate) -> None:
    for hours in (climate.dry_bulb_hours, climate.wet_bulb_hours):
        assert min(abs(sum(hours) - 8760), abs(sum(hours) - 8784)) <= 1.0
    assert list(climate.bin_mid_c) == sorted(climate.bin_mid_c)
    mean = sum(t * h for t, h in zip(climate.bin_mid_c, climate.dry_bulb_hours, strict=True)) / sum(
        climate.dry_bulb_hours
    )
    assert mean == pytest.approx(climate.dry_bulb_mean_c, abs=0.5)  # bins are 2 K wide
    assert climate.electricity_region in CATALOG.electricity
    assert len(climate.dry_bulb_month_c) == len(climate.wet_bulb_month_c) == 12


def test_fractions_of_the_facility_table_are_fractions() -> None:
    for row in CATALOG.facility.values():
        assert "pct" not in row.unit
        if row.unit.startswith("fraction"):
            assert row.high <= 1.0, row.id
    assert CATALOG.facility["cost_of_capital"].typical == 0.08


def test_power_curves_cover_every_generation() -> None:
    assert {row.generation for row in CATALOG.accelerators.values()} <= set(CATALOG.power_curves)
    for row in CATALOG.power_curves.values():
        assert row.f_idle_fraction < row.f0_fraction < row.f1_fraction


@pytest.mark.parametrize(
    ("as_of", "end"),
    [
        ("2026", dt.date(2026, 12, 31)),
        ("2026-H1", dt.date(2026, 6, 30)),
        ("2024-Q1", dt.date(2024, 3, 31)),
        ("2024-02", dt.date(2024, 2, 29)),
        ("2026-09-20", dt.date(2026, 9, 20)),
        ("", None),
    ],
)
def test_a_coarse_date_counts_as_the_end_of_its_period(as_of: str, end: dt.date | None) -> None:
    assert as_of_end(as_of) == end


def test_numbers_are_finite() -> None:
    for table in TABLES:
        for row in rows_of(table):
            for name, value in row.model_dump().items():
                assert not isinstance(value, float) or math.isfinite(value), name
