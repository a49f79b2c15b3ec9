"""A way out of "infeasible": each single change, followed, gives a plan; slightly less does not."""

import json
from functools import cache
from typing import Any

import pytest

from optimizer.api import solve
from optimizer.diagnosis import Diagnosis
from optimizer.instance.model import Instance
from optimizer.limits import limit
from tests.core.real import small

BOUGHT: dict[str, Any] = {"sourcing": ["buy"], "accelerators": ["l40s"], "max_concurrency": 64}

#: Instances with one limit too tight, and the field that is to blame.
TIGHT: dict[str, tuple[dict[str, Any], str]] = {
    "tpot": ({"targets": {"tpot_ms": 1.0}}, "targets.tpot_ms"),
    "ttft": ({"targets": {"ttft_ms": 1.0}}, "targets.ttft_ms"),
    "latency": ({"targets": {"latency_ms": 10.0}}, "targets.latency_ms"),
    "vram": ({"targets": {"vram_fraction": 0.05}}, "targets.vram_fraction"),
    "vram cap": ({"targets": {"vram_gib_per_accelerator": 1.0}}, "targets.vram_gib_per_accelerator"),
    "weights": ({"targets": {"weights_gib_per_accelerator": 0.5}}, "targets.weights_gib_per_accelerator"),
    "accuracy": (
        {"targets": {"accuracy_floor_fraction": 0.9999}, "choices": {"schemes": ["w4a16-int4"]}},
        "targets.accuracy_floor_fraction",
    ),
    "power": ({"site": {"power_kw": 1.0}, "choices": BOUGHT}, "site.power_kw"),
    "rack power": ({"site": {"rack_kw": 1.0}, "choices": BOUGHT}, "site.rack_kw"),
    "capital": ({"economics": {"budget_capex_usd": 1000.0}, "choices": BOUGHT}, "economics.budget_capex_usd"),
    "yearly": ({"economics": {"budget_usd_per_year": 100.0}}, "economics.budget_usd_per_year"),
    "supply": (
        {"choices": {**BOUGHT, "supply": {"l40s": 2}}, "workload": {"demand": {"requests_per_s": 300}}},
        "choices.supply.l40s",
    ),
    "racks": (
        {
            "site": {"racks": 1, "rack_kw": 12.0},
            "choices": BOUGHT,
            "workload": {"demand": {"requests_per_s": 1000}},
        },
        "site.racks",
    ),
}


@cache
def diagnosis(name: str) -> Diagnosis:
    """Why there is no plan."""
    found = solve(small(**TIGHT[name][0]))
    assert found.plan is None
    assert found.diagnosis is not None
    assert found.exit_code == 4
    return found.diagnosis


def changed(given: Instance, path: str, value: float) -> Instance:
    """The instance with the field at ``path`` set, read again as a planner would write it."""
    content: dict[str, Any] = given.model_dump(mode="json", by_alias=True, exclude_unset=True)
    *sections, last = path.split(".")
    part = content
    for section in sections:
        part = part[section]
    part[last] = round(value) if path in ("site.racks", "choices.supply.l40s") else value
    return Instance.model_validate_json(json.dumps(content))


@pytest.mark.parametrize("name", TIGHT)
def test_the_limit_to_blame_is_named_and_its_change_suffices(name: str) -> None:
    given, field = TIGHT[name]
    found = diagnosis(name)
    changes = {one.field: one for one in found.changes}
    assert field in changes, found.messages
    for change in found.changes:
        assert f"{change.now:,.6g}" in change.summary
        solved = solve(changed(small(**given), change.field, change.needed))
        assert solved.plan is not None, change.summary
        assert change.usd_per_hour == pytest.approx(solved.plan.bill.usd_per_hour, rel=1e-5)


@pytest.mark.parametrize("name", TIGHT)
def test_slightly_less_of_a_change_does_not_suffice(name: str) -> None:
    given, _ = TIGHT[name]
    for change in diagnosis(name).changes:
        whole = change.field in ("site.racks", "choices.supply.l40s")
        # The search stops within 0.1 % of the value, fractions within 0.001 %.
        step = 1.0 if whole else 0.003 * abs(change.needed)
        less = change.needed - step if change.needed > change.now else change.needed + step
        if (less - change.now) * (change.needed - change.now) <= 0.0 or (less > 1.0 and "fraction" in change.field):
            continue
        assert solve(changed(small(**given), change.field, less)).plan is None, change.summary


@pytest.mark.parametrize("name", TIGHT)
def test_kills_name_limits_and_count(name: str) -> None:
    found = diagnosis(name)
    for kill in found.kills:
        assert limit(kill.limit).field == kill.field
        assert 0 <= kill.alone <= kill.kills <= found.search.candidates
    assert [kill.kills for kill in found.kills] == sorted((kill.kills for kill in found.kills), reverse=True)
    of_deployments = limit(next(iter(found.changes)).limit).scope == "deployment" if found.changes else False
    if found.stage == "no_candidate":
        assert of_deployments or found.search.candidates == 0 or not found.changes
        if found.search.candidates:
            assert found.nearest is not None
            assert found.nearest.misses
    else:
        assert found.nearest is None


def test_two_limits_too_tight_have_no_single_change() -> None:
    found = solve(small(targets={"tpot_ms": 0.001, "weights_gib_per_accelerator": 0.001})).diagnosis
    assert found is not None
    assert found.changes == ()
    assert any("several must move together" in one for one in found.messages)


def test_nothing_starts() -> None:
    found = solve(small(choices={"tensor_parallel": [7]})).diagnosis
    assert found is not None
    assert found.search.candidates == 0
    assert found.search.not_startable
    assert any("no layout" in one for one in found.messages)


def test_a_rack_that_takes_no_server_is_told() -> None:
    assert any("is not offered with" in one for one in diagnosis("rack power").messages)


def test_diagnosis_is_the_same_each_time() -> None:
    again = solve(small(**TIGHT["power"][0])).diagnosis
    assert again is not None
    assert again.model_dump_json() == diagnosis("power").model_dump_json()
