"""Headroom: one row for each limit that is set, what is left, and whether one more would break it."""

from typing import Any

import pytest

from optimizer.api import solve
from optimizer.headroom import row_of
from optimizer.limits import LIMITS, limit
from optimizer.plan import Headroom, Plan
from tests.core.real import small

BOUGHT: dict[str, Any] = {"sourcing": ["buy"], "accelerators": ["l40s"], "max_concurrency": 64}
EVERYTHING: dict[str, Any] = {
    "targets": {
        "tpot_ms": 100.0,
        "ttft_ms": 10_000.0,
        "latency_ms": 60_000.0,
        "vram_gib_per_accelerator": 40.0,
        "weights_gib_per_accelerator": 30.0,
        "nvlink_gb_s": 100.0,
        "spare_servers": 1,
    },
    "choices": {
        **BOUGHT,
        "serving_roles": ["unified", "disaggregated"],
        "supply": {"l40s": 800},
        "max_accelerator_types": 2,
    },
    "site": {
        "power_kw": 1000.0,
        "racks": 100,
        "rack_kw": 20.0,
        "carbon_tonnes_per_year": 5000.0,
        "water_m3_per_year": 9000.0,
        "floor_m2": 500.0,
    },
    "economics": {"budget_capex_usd": 1e8, "budget_usd_per_year": 1e8},
}


#: What only a fleet that is owned and rented has to keep.
SOURCES: dict[str, Any] = {
    "choices": {
        "accelerators": ["l40s"],
        "sourcing": ["on_demand"],
        "providers": ["OCI"],
        "provider_supply": {"OCI": {"l40s": 80}},
    },
    "inventory": [{"accelerator": "l40s", "servers": 1, "cooling": "air_containment_econ", "remaining_life_years": 5}],
    "workload": {"demand": {"requests_per_s": 400}},
    "targets": {"spare_fraction": 0.0},
}


def plan(given: dict[str, Any]) -> Plan:
    """The plan of an instance."""
    found = solve(small(**given)).plan
    assert found is not None
    return found


def rows(given: dict[str, Any]) -> dict[str, Headroom]:
    """Headroom by limit."""
    return {row.limit: row for row in plan(given).headroom}


def test_every_limit_that_is_set_has_its_row() -> None:
    found = rows(SOURCES) | rows(EVERYTHING)
    assert set(found) == {row.name for row in LIMITS if row.family != "training"}
    for name, row in found.items():
        rule = limit(name)
        assert (row.field, row.unit, row.direction, row.label) == (rule.field, rule.unit, rule.direction, rule.label)
        assert row.spare_fraction >= -1e-6
        sign = 1.0 if rule.direction == "<=" else -1.0
        assert row.spare_fraction == pytest.approx(sign * (row.needed - row.reached) / row.needed)


def test_what_is_not_set_has_no_row() -> None:
    found = rows({"choices": {"sourcing": ["on_demand"]}})
    assert {"power_kw", "racks", "rack_kw", "spare_servers", "tpot_ms", "supply", "budget_capex_usd"}.isdisjoint(found)
    assert {"vram_gib", "accuracy", "nvlink_gb_s", "throughput_requests_per_s"} <= set(found)


def test_rows_say_what_the_plan_reaches() -> None:
    one = plan(EVERYTHING)
    found = {row.limit: row for row in one.headroom}
    assert found["power_kw"].reached == pytest.approx(one.power_kw)
    assert found["racks"].reached == sum(group.racks for group in one.servers)
    assert found["budget_capex_usd"].reached == pytest.approx(one.bill.capital_usd)
    assert found["budget_usd_per_year"].reached == pytest.approx(one.bill.usd_per_year)
    assert found["supply"].reached == one.accelerators
    assert found["spare_servers"].reached == sum(group.spare for group in one.servers)
    worst = max(one.deployments, key=lambda row: row.prediction.tpot_ms)
    assert found["tpot_ms"].reached == worst.prediction.tpot_ms
    assert found["tpot_ms"].where == worst.id


@pytest.mark.parametrize(
    ("name", "section", "field"),
    [
        ("power_kw", "site", "power_kw"),
        ("budget_capex_usd", "economics", "budget_capex_usd"),
        ("budget_usd_per_year", "economics", "budget_usd_per_year"),
    ],
)
def test_a_cap_just_above_what_is_reached_binds_and_a_wide_one_does_not(name: str, section: str, field: str) -> None:
    loose = rows(EVERYTHING)[name]
    assert not loose.binding
    sections = {**EVERYTHING, section: {**EVERYTHING[section], field: loose.reached * 1.0001}}
    tight = rows(sections)[name]
    assert tight.binding
    assert tight.reached == pytest.approx(loose.reached)


def test_whole_caps_bind_when_they_are_reached() -> None:
    found = rows(EVERYTHING)
    racks, supply = round(found["racks"].reached), round(found["supply"].reached)
    sections = {
        **EVERYTHING,
        "site": {**EVERYTHING["site"], "racks": racks},
        "choices": {**EVERYTHING["choices"], "supply": {"l40s": supply}, "max_accelerator_types": 1},
    }
    tight = rows(sections)
    assert tight["racks"].binding
    assert tight["supply"].binding
    assert tight["accelerator_types"].binding
    assert not found["accelerator_types"].binding


def test_latency_binds_where_it_holds_the_concurrency_down() -> None:
    free = rows({"choices": BOUGHT})
    assert "tpot_ms" not in free
    many = {**BOUGHT, "max_concurrency": 1024, "schemes": ["w16a16"]}
    held = rows({"choices": many, "targets": {"tpot_ms": 25.0}})
    assert held["tpot_ms"].binding
    wide = rows({"choices": many, "targets": {"tpot_ms": 1e6}})
    assert not wide["tpot_ms"].binding


def test_row_of() -> None:
    below = row_of("tpot_ms", 50.0, 40.0, binding=False)
    assert below.spare_fraction == pytest.approx(0.2)
    above = row_of("accuracy", 0.8, 0.9, binding=True, where="d")
    assert above.spare_fraction == pytest.approx(0.125)
    assert (above.direction, above.where, above.binding) == (">=", "d", True)
    assert row_of("racks", 0.0, 0.0, binding=True).spare_fraction == 0.0


def test_memory_does_not_bind_where_slots_do() -> None:
    """Sequence slots end the concurrency long before the memory does."""
    few = rows({"choices": {**BOUGHT, "max_concurrency": 1024, "sequence_slots": 3}})
    assert not few["vram_gib"].binding
