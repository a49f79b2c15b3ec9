"""Planted faults, each refused with its code: count, price, spare, rack, tier, cooling, scheme, rate, sum, unit.

A fault in a price is planted with every sum that follows from it set right, as a consistent mistake would be.
"""

import math
from collections.abc import Callable
from typing import Any

import pytest

from optimizer.verify import CODES, Finding, VerifyError, verify
from tests.verify.plans import INSTANCES, document, plan_of, read

Raw = dict[str, Any]


def codes_of(raw: Raw) -> set[str]:
    """Codes of the findings of a changed plan."""
    return {one.code for one in verify(read(raw))}


def settle(raw: Raw) -> None:
    """Set every product and sum of the bill right after a line was changed."""
    bill, factor = raw["bill"], 1.0
    if bill["usd_per_year"]:
        factor = bill["usd_over_horizon"] / bill["usd_per_year"]
    per_token = bill["usd_per_million_output_tokens"] / bill["usd_per_year"]
    components = dict.fromkeys(bill["usd_per_year_by_component"], 0.0)
    for line in bill["lines"]:
        line["usd_per_year"] = line["quantity"] * line["unit_price_usd"] * math.prod(line["factors"].values())
        if line["capital_usd"]:
            line["capital_usd"] = line["quantity"] * line["unit_price_usd"]
        components[line["component"]] += line["usd_per_year"]
    total = math.fsum(components.values())
    assumed = math.fsum(line["usd_per_year"] for line in bill["lines"] if line["trust"] == "assumed")
    bill.update(
        usd_per_year_by_component=components,
        usd_per_year=total,
        usd_per_hour=total / 8766.0,
        usd_over_horizon=total * factor,
        usd_per_million_output_tokens=total * per_token,
        capital_usd=math.fsum(line["capital_usd"] for line in bill["lines"]),
        assumed_fraction=assumed / total,
    )
    raw["outcome"]["objective_usd_per_hour"] = total / 8766.0


def line_of(raw: Raw, component: str) -> Raw:
    """First line of a component."""
    found: Raw = next(line for line in raw["bill"]["lines"] if line["component"] == component)
    return found


def count(raw: Raw) -> None:
    """One server more than there are."""
    raw["servers"][0]["servers"] += 1


def price(raw: Raw) -> None:
    """Electricity at nine tenths of its price, billed consistently."""
    for line in raw["bill"]["lines"]:
        if line["component"] == "energy":
            line["unit_price_usd"] *= 0.9
    settle(raw)


def spare(raw: Raw) -> None:
    """A spare server is missing."""
    raw["servers"][0]["spare"] -= 1
    raw["servers"][0]["servers"] -= 1


def rack(raw: Raw) -> None:
    """One rack too few."""
    raw["servers"][0]["racks"] -= 1


def tier(raw: Raw) -> None:
    """The price of a discount tier that the count of servers does not reach, billed consistently."""
    for line in raw["bill"]["lines"]:
        if line["component"] in ("servers", "spares") and line["unit_price_usd"] > 1e5:
            line["unit_price_usd"] *= 0.88
    settle(raw)


def network_tier(raw: Raw) -> None:
    """A larger fabric than the accelerators need."""
    raw["network"][0]["fabric"] = raw["network"][0]["fabric"].replace("1tier", "2tier")


def cooling(raw: Raw) -> None:
    """A plant for half the heat."""
    raw["plants"][0]["heat_kw"] *= 0.5


def cooling_option(raw: Raw) -> None:
    """Servers cooled by an option that the instance does not offer."""
    group = raw["servers"][0]
    group["cooling"] = "air_crac"


def scheme(raw: Raw) -> None:
    """A scheme that the instance does not allow."""
    raw["deployments"][0]["scheme"] = "w4a4-nvfp4"


def unprepared(raw: Raw) -> None:
    """A quantized scheme that nobody pays for preparing."""
    raw["bill"]["lines"] = [line for line in raw["bill"]["lines"] if line["component"] != "recovery"]
    settle(raw)


def rate(raw: Raw) -> None:
    """Less is served than is asked for."""
    raw["deployments"][0]["rates_requests_per_s"][0] *= 0.9


def slots(raw: Raw) -> None:
    """More in flight than an engine that is told to schedule fewer has slots for."""
    raw["instance"]["choices"]["sequence_slots"] = raw["deployments"][0]["concurrency"] - 1


def crowded(raw: Raw) -> None:
    """A prefill replica more than the unit has accelerators for."""
    one = raw["deployments"][0]
    one["prefill"]["replicas"] += 1


def hurried(raw: Raw) -> None:
    """A cache that crosses the network in half the time."""
    raw["deployments"][0]["prefill"]["transfer_ms"] *= 0.5


def unified(raw: Raw) -> None:
    """Units where only replicas that do both phases are allowed."""
    raw["instance"]["choices"]["serving_roles"] = ["unified"]


def sums(raw: Raw) -> None:
    """A total that its components do not make."""
    raw["bill"]["usd_per_year"] += 0.02


def unit(raw: Raw) -> None:
    """Another unit in the bill."""
    line_of(raw, "cooling")["unit"] = "kW"


def headroom_unit(raw: Raw) -> None:
    """Another unit beside a limit."""
    raw["headroom"][0]["unit"] = "GB"


FAULTS: list[tuple[str, Callable[[Raw], None], str]] = [
    ("bought", count, "V-COUNT"),
    ("bought", price, "V-PRICE"),
    ("bought", spare, "V-SPARE"),
    ("bought", rack, "V-RACK"),
    ("bought", tier, "V-TIER"),
    ("bought", network_tier, "V-TIER"),
    ("bought", cooling, "V-COOLING"),
    ("bought", cooling_option, "V-COOLING"),
    ("bought", scheme, "V-SCHEME"),
    ("bought", unprepared, "V-SCHEME"),
    ("rented", rate, "V-RATE"),
    ("rented", slots, "V-OFFER"),
    ("roles", crowded, "V-COUNT"),
    ("roles", hurried, "V-PREDICT"),
    ("roles", unified, "V-OFFER"),
    ("classes", sums, "V-SUM"),
    ("bought", unit, "V-UNIT"),
    ("classes", headroom_unit, "V-UNIT"),
]


@pytest.mark.parametrize("name", sorted(INSTANCES))
def test_a_plan_as_it_comes_stands(name: str) -> None:
    assert verify(plan_of(name)) == ()


@pytest.mark.parametrize("name", sorted(INSTANCES))
def test_a_plan_read_back_from_its_file_stands(name: str) -> None:
    assert verify(read(document(plan_of(name)))) == ()


@pytest.mark.parametrize("name", sorted(INSTANCES))
def test_settling_an_unchanged_bill_changes_nothing(name: str) -> None:
    raw = document(plan_of(name))
    settle(raw)
    assert codes_of(raw) == set()


@pytest.mark.parametrize(("name", "fault", "code"), FAULTS, ids=[fault.__name__ for _, fault, _ in FAULTS])
def test_a_planted_fault_is_refused(name: str, fault: Callable[[Raw], None], code: str) -> None:
    raw = document(plan_of(name))
    fault(raw)
    assert code in codes_of(raw)


def test_findings_say_where_and_what() -> None:
    raw = document(plan_of("bought"))
    count(raw)
    (first, *_) = verify(read(raw))
    assert first.path == "servers[0].servers"
    assert int(first.found) == int(first.expected) + 1
    assert str(first).startswith("V-COUNT servers[0].servers: found ")
    assert first.code in CODES


def test_the_error_carries_every_finding() -> None:
    found = (Finding("V-SUM", "bill", "1", "2", "a"), Finding("V-UNIT", "bill", "kW", "W", "b"))
    error = VerifyError(found)
    assert error.findings == found
    assert error.exit_code == 1
    assert str(error).count("\n") == 1
