"""Orders of network and plant under quantity discounts: the plan's bill stands, and a wrong order is refused."""

import copy
import json
import math
from functools import cache
from typing import Any

import pytest

from optimizer.api import solve
from optimizer.instance.model import Instance
from optimizer.plan import Plan
from optimizer.report.bom import materials
from optimizer.verify import verify
from tests.verify.plans import BOUGHT, document, read
from tests.verify.test_faults import settle

Raw = dict[str, Any]


@cache
def planned(kind: str) -> Plan:
    """A plan whose network and plant orders are near a step."""
    given: Raw = copy.deepcopy(BOUGHT)
    first = solve(Instance.model_validate_json(json.dumps(given))).plan
    assert first is not None
    count, heat = first.network[0].accelerators, {one.option: one.heat_kw for one in first.plants}
    economics = given["economics"]
    economics["network_discounts"] = [
        {"from_accelerators": count - 8, "discount_fraction": 0.1},
        {"from_accelerators": count + 5, "discount_fraction": 0.4},
    ]
    economics["network_discount_kind"] = kind
    economics["cooling_prices"] = {
        key: {
            "discounts": [
                {"from_kw": 0.5 * kw, "discount_fraction": 0.1},
                {"from_kw": 1.1 * kw, "discount_fraction": 0.5},
            ],
            "discount_kind": kind,
        }
        for key, kw in heat.items()
    }
    plan = solve(Instance.model_validate_json(json.dumps(given))).plan
    assert plan is not None
    return plan


@pytest.mark.parametrize("kind", ["all_units", "incremental"])
def test_orders_stand_and_the_bill_of_materials_adds_up(kind: str) -> None:
    plan = planned(kind)
    assert not verify(plan)
    found = materials(plan)
    assert found.capital_usd == pytest.approx(plan.bill.capital_usd, abs=0.005)
    assert found.usd_per_year == pytest.approx(plan.bill.usd_per_year, abs=0.005)
    ordered = {line.unit: line for line in plan.bill.lines if line.component == "network"}
    bought = plan.network[0].accelerators
    # More is ordered than is bought where the next step makes that cheaper; an incremental step never does.
    assert ordered["accelerators"].quantity == (bought + 5 if kind == "all_units" else bought)
    assert ("tier" in ordered) == (kind == "incremental")
    plant = plan.plants[0]
    kw = next(line for line in plan.bill.lines if line.component == "cooling" and line.unit == "kW of heat")
    assert kw.quantity == pytest.approx(plant.heat_kw * (1.1 if kind == "all_units" else 1.0))


def _exact_network(raw: Raw) -> None:
    """The network for the accelerators alone, dearer than the larger order."""
    for line in raw["bill"]["lines"]:
        if line["unit"] == "accelerators" and line["component"] in ("network", "maintenance", "insurance"):
            line["quantity"] = raw["network"][0]["accelerators"]
    settle(raw)


def _deeper_discount(raw: Raw) -> None:
    """A price of the plant's kW that no step has."""
    for line in raw["bill"]["lines"]:
        if line["unit"] == "kW of heat":
            line["unit_price_usd"] *= 0.5
    settle(raw)


@pytest.mark.parametrize("fault", [_exact_network, _deeper_discount], ids=lambda one: one.__name__)
@pytest.mark.parametrize("kind", ["all_units", "incremental"])
def test_a_wrong_order_is_refused(kind: str, fault: Any) -> None:
    raw = document(planned(kind))
    before = math.fsum(line["usd_per_year"] for line in raw["bill"]["lines"])
    fault(raw)
    if math.fsum(line["usd_per_year"] for line in raw["bill"]["lines"]) == before:
        assert (kind, fault) == ("incremental", _exact_network)
        return
    assert verify(read(raw))


def test_doors_and_conversions_stand_and_wrong_ones_are_refused() -> None:
    given: Raw = copy.deepcopy(BOUGHT)
    given["choices"] |= {
        "accelerators": ["h100-80gb-pcie"],
        "liquid_retrofit": True,
        "cooling": ["d2c_1p"],
        "max_accelerator_types": None,
        "supply": {},
    }
    given["choices"] = {key: value for key, value in given["choices"].items() if value is not None}
    given["site"] = {}
    given["economics"] = {
        "price_level": "high",
        "prices": {"h100-80gb-pcie": {"server_usd": 250_000}},
        "cooling_prices": {"d2c_1p": {"per_rack_usd": 9000}},
    }
    given["targets"] = {"tpot_ms": 200}
    given["choices"]["schemes"], given["choices"]["recovery_steps"] = ["w16a16"], ["none"]
    plan = solve(Instance.model_validate_json(json.dumps(given))).plan
    assert plan is not None
    assert not verify(plan)
    lines = plan.bill.lines
    converted = next(line for line in lines if line.item.endswith("converted to liquid"))
    row = next(one.row for one in plan.catalog_rows if one.table == "accelerators")
    assert converted.unit_price_usd == pytest.approx(3000.0 * float(str(row["server_power_kw"])))
    doors = next(line for line in lines if line.component == "cooling" and line.unit == "racks")
    assert (doors.quantity, doors.unit_price_usd) == (plan.servers[0].racks, 9000.0)
    assert materials(plan).capital_usd == pytest.approx(plan.bill.capital_usd, abs=0.005)
    for chosen in (converted, doors):
        raw = document(plan)
        for line in raw["bill"]["lines"]:
            if line["unit_price_usd"] == chosen.unit_price_usd:
                line["unit_price_usd"] *= 0.9
        settle(raw)
        assert verify(read(raw))
    raw = document(plan)
    raw["instance"]["choices"]["liquid_retrofit"] = False
    assert "V-COOLING" in {one.code for one in verify(read(raw))}
