"""The bill of materials of plans with owned servers, servers paid by load level, spot, several providers, trays."""

import csv
import io
import json
import math
from decimal import Decimal
from functools import cache
from typing import Any

import pytest

from optimizer import api
from optimizer.instance.model import Instance
from optimizer.plan import Plan
from optimizer.report.bom import Item, bom_csv, bom_text, materials
from optimizer.report.cash_flow import bill_csv, flows
from optimizer.report.csv_tables import cents
from optimizer.units import HOURS_PER_YEAR
from tests.instances import library

CARD = "h100-80gb-sxm"
#: Two sellers of spot with few servers each, and one of terms; regions whose names begin alike.
OFFERS = [
    {"provider": "Alpha", "region": "r", "spot_usd_per_accelerator_hour": 1.0},
    {"provider": "Alpha", "region": "r1", "spot_usd_per_accelerator_hour": 1.05},
    {"provider": "Beta", "region": "r1", "spot_usd_per_accelerator_hour": 1.1},
    {
        "provider": "Gamma",
        "region": "r1",
        "on_demand_usd_per_accelerator_hour": 2.6,
        "reserved_1yr_usd_per_accelerator_hour": 1.6,
    },
]


def solved(given: dict[str, Any]) -> Plan:
    found = api.solve(Instance.model_validate_json(json.dumps(given))).plan
    assert found is not None
    return found


@cache
def mixed(lasting: bool = False) -> Plan:
    """Three owned servers with four years left, or all, spot of two sellers, a commitment, and the peak on demand."""
    offers = [
        {**one, "id": f"{one['provider']}/{one['region']}", "accelerator": CARD, "accelerators": 8} for one in OFFERS
    ]
    return solved(
        {
            "name": "every way to get servers",
            "workload": {
                "model": "Llama-3.1-70B",
                "request": {"input_tokens": 1024, "output_tokens": 256},
                "demand": {"requests_per_s": 200},
                "load": {"hourly_fractions": [0.3] * 8 + [1.0] * 8 + [0.6] * 8},
            },
            "targets": {"tpot_ms": 60, "accuracy_floor_fraction": 0.98},
            "catalog": {"rental_offers": offers},
            "choices": {
                "accelerators": [CARD],
                "sourcing": ["on_demand", "spot", "reserved_1yr"],
                "spot_availability_fraction": 0.9,
                "schemes": ["w8a8-fp8"],
                "tensor_parallel": [4, 8],
                "providers": ["Alpha", "Beta", "Gamma"],
                "provider_supply": {"Alpha": {CARD: 8}, "Beta": {CARD: 8}},
            },
            "inventory": [
                {
                    "accelerator": CARD,
                    "servers": 3,
                    "cooling": "air_containment_econ",
                    "remaining_life_years": 5 if lasting else 4,
                }
            ],
            "economics": {"staff": {"usd_per_fte_year": 0}},
        }
    )


@cache
def rack(sourcing: str, model: str = "llama-3.1-8b") -> Plan:
    """A few requests on an NVL72, rented or bought."""
    return solved(
        {
            "name": f"nvl72 {sourcing}",
            "workload": {
                "model": model,
                "request": {"input_tokens": 512, "output_tokens": 128},
                "demand": {"requests_per_s": 2},
            },
            "choices": {"accelerators": ["gb200-nvl72"], "sourcing": [sourcing], "schemes": ["w16a16", "w8a8-fp8"]},
        }
    )


def plan_named(name: str) -> Plan:
    if name == "mixed":
        return mixed()
    if name.startswith("nvl72 "):
        return rack(name.removeprefix("nvl72 "))
    plan = library.solved(name).plan
    assert plan is not None
    return plan


@pytest.fixture(
    params=("mixed", "nvl72 on_demand", "nvl72 buy", "owned-a100", "owned-a100-worn", "dense-600b-4bit-recovery-median")
)
def plan(request: pytest.FixtureRequest) -> Plan:
    return plan_named(request.param)


def rows(plan: Plan, kind: str, group: str | None = None) -> list[Item]:
    return [one for one in materials(plan).items if one.kind == kind and group in (None, one.group)]


def test_totals_are_the_plans_to_the_cent(plan: Plan) -> None:
    found = materials(plan)
    assert cents(found.capital_usd) == cents(plan.bill.capital_usd)
    assert cents(found.usd_per_year) == cents(plan.bill.usd_per_year)
    *lines, total = csv.DictReader(io.StringIO(bom_csv(found)))
    for column, wanted in (("capital_usd", plan.bill.capital_usd), ("usd_per_year", plan.bill.usd_per_year)):
        assert sum(Decimal(one[column]) for one in lines) == Decimal(total[column]) == cents(wanted)
    assert max(map(len, bom_text(found, 80).splitlines())) <= 80


def test_each_component_keeps_its_cost(plan: Plan) -> None:
    for component in ("servers", "spares", "network", "energy", "recovery", "rent"):
        group = "rented servers" if component == "rent" else component
        yearly = math.fsum(one.usd_per_year for one in materials(plan).items if one.group == group)
        assert yearly == pytest.approx(plan.bill.usd_per_year_by_component.get(component, 0.0), rel=1e-12)


def test_the_bill_by_year_is_the_present_value_to_the_cent(plan: Plan) -> None:
    wanted = plan.bill.usd_over_horizon
    assert cents(math.fsum(one.annuity_discounted_usd for one in flows(plan))) == cents(wanted)
    assert math.fsum(one.discounted_usd for one in flows(plan)) == pytest.approx(wanted, rel=1e-9)
    *_, total = csv.DictReader(io.StringIO(bill_csv(plan)))
    assert Decimal(total["annuity_discounted_usd"]) == cents(wanted)


def test_every_way_stands_in_its_own_row() -> None:
    plan = mixed()
    assert {one.sourcing for one in plan.servers} == {"owned", "spot", "on_demand", "reserved_1yr"}
    assert {one.provider for one in plan.servers} == {"", "Alpha", "Beta", "Gamma"}
    rented = {one.pool: one for one in rows(plan, "rent", "rented servers")}
    for group in plan.servers:
        if group.sourcing == "owned":
            continue
        row = rented.pop(group.pool)
        assert group.provider in row.item
        assert row.price_unit == "USD/accelerator-hour"
        offer = next(one for one in OFFERS if (one["provider"], one["region"]) == (group.provider, group.region))
        assert row.unit_price_usd == offer[f"{group.sourcing}_usd_per_accelerator_hour"]
        hours = row.quantity if group.servers_by_level else row.quantity * HOURS_PER_YEAR
        assert row.usd_per_year == pytest.approx(hours * group.accelerators_per_server * row.unit_price_usd, rel=1e-12)
    assert not rented


def test_servers_paid_by_load_level_are_billed_in_the_hours_that_use_them() -> None:
    plan = mixed()
    spans = [level.hours_per_year for level in plan.levels if level.hours_per_year > 0.0]
    hourly = [one for one in plan.servers if one.servers_by_level]
    assert {one.sourcing for one in hourly} == {"spot", "on_demand"}
    for group in hourly:
        (row,) = (one for one in rows(plan, "rent") if one.pool == group.pool)
        assert row.unit == "server-hours/year"
        used = math.fsum(count * span for count, span in zip(group.servers_by_level, spans, strict=True))
        assert row.quantity == pytest.approx(used, rel=1e-12)
        assert f"to {group.servers} servers" in row.item
    assert any(min(one.servers_by_level) < one.servers for one in hourly)


def test_owned_servers_are_kept_not_ordered_and_followed_when_their_life_ends() -> None:
    plan = mixed()
    (kept,) = rows(plan, "keep")
    owned = next(one for one in plan.servers if one.sourcing == "owned")
    assert (kept.quantity, kept.capital_usd, kept.usd_per_year) == (owned.servers, 0.0, 0.0)
    assert not rows(plan, "order", "servers")
    later = rows(plan, "later")
    assert sum(one.quantity for one in later) == owned.servers
    price = {one.unit_price_usd for one in later}
    assert price == {one.unit_price_usd for one in plan.bill.lines if "annuity_later" in one.factors}
    # Four of five years are owned: what follows costs less than new servers would from the start.
    crf = 0.08 / (1.0 - 1.08**-5)
    assert 0.0 < math.fsum(one.usd_per_year for one in later) < owned.servers * price.pop() * crf * 1.0 / 5.0


def test_owned_servers_that_last_the_horizon_have_no_later_order() -> None:
    for plan in (mixed(True), rack("buy")):
        kept = {one.pool for one in rows(plan, "keep")}
        assert kept == {one.pool for one in plan.servers if one.sourcing == "owned"}
        assert not rows(plan, "later")
    assert rows(mixed(True), "keep")


def test_preparation_of_weights_is_ordered_once_for_each_scheme() -> None:
    plan = plan_named("dense-600b-4bit-recovery-median")
    schemes = {(one.scheme, one.kv_scheme, one.recovery) for one in plan.deployments}
    found = rows(plan, "order", "recovery")
    assert {tuple(one.item.removeprefix("prepare ").split("+")) for one in found} == schemes
    assert all(one.quantity == 1.0 and one.capital_usd > 0.0 for one in found)
    assert any(recovery != "none" for _, _, recovery in schemes)


def test_a_rack_is_bought_whole_and_rented_by_the_tray() -> None:
    (rented,) = rows(rack("on_demand"), "rent", "rented servers")
    assert rented.item.startswith("gb200-nvl72 x4,")
    assert rented.quantity == 1.0
    assert rented.usd_per_year == pytest.approx(4 * rented.unit_price_usd * HOURS_PER_YEAR)
    (bought,) = rows(rack("buy"), "order", "servers")
    assert (bought.item.split(",")[0], bought.quantity, bought.unit_price_usd) == ("gb200-nvl72 x72", 1.0, 3.4e6)


def test_replicas_wider_than_a_tray_rent_the_trays_of_a_rack() -> None:
    # 1.3 TB of weights in 16 bits, or half of it in 8, do not fit into four accelerators of 185 GiB with their cache.
    plan = rack("on_demand", "Kimi-K2")
    (rented,) = rows(plan, "rent", "rented servers")
    assert all(one.accelerators_per_replica > 4 for one in plan.deployments)
    assert rented.item.startswith("gb200-nvl72 x72,")
    assert rented.usd_per_year == pytest.approx(rented.quantity * 72 * rented.unit_price_usd * HOURS_PER_YEAR)


def test_a_quantity_of_a_year_has_a_price_of_its_unit() -> None:
    plan = solved(
        {
            "name": "carbon and water paid",
            "workload": {
                "model": "Llama-3.1-8B",
                "request": {"input_tokens": 1000, "output_tokens": 300},
                "demand": {"requests_per_s": 4},
                "load": {"mean_fraction": 0.5},
            },
            "targets": {"tpot_ms": 60},
            "choices": {"accelerators": [CARD], "tensor_parallel": [1], "schemes": ["w16a16"], "sourcing": ["buy"]},
            "economics": {"carbon_usd_per_tonne": 80, "water_usd_per_m3": 4},
        }
    )
    found = materials(plan).items
    used = [one for one in found if one.unit == "kWh/year"]
    assert {one.group for one in used} == {"energy", "carbon", "water"}
    assert {one.price_unit for one in used} == {"USD/kWh"}
    assert {one.price_unit for one in found if one.group == "staff"} == {"USD/post-year"}
    for one in used:
        assert one.quantity * one.unit_price_usd == pytest.approx(one.usd_per_year, rel=1e-9)
