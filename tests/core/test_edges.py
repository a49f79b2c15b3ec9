"""Legal instances at the edge, as an adversary found them: each gets an answer, never an exception."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optimizer import api
from optimizer.instance.model import Instance
from optimizer.packing import _nested
from optimizer.report.screen import render, render_diagnosis

BASE = json.loads((Path(__file__).parents[2] / "instances" / "small-8b.json").read_text(encoding="utf-8"))
Change = Callable[[dict[str, Any]], None]


def answered(change: Change) -> api.Solved:
    content = copy.deepcopy(BASE)
    change(content)
    return api.solve(Instance.model_validate_json(json.dumps(content)))


def test_a_context_beyond_the_model_is_not_sold() -> None:
    def change(content: dict[str, Any]) -> None:
        content["workload"]["request"] = {"input_tokens": 400_000, "output_tokens": 100}
        content["targets"] = {"latency_ms": 1e6}

    found = answered(change)
    assert found.diagnosis is not None
    assert "longer than the model's context" in render_diagnosis(found.diagnosis)


@pytest.mark.parametrize(("sourcing", "price"), [("buy", "server_usd"), ("on_demand", "on_demand_usd_per_hour")])
def test_what_is_owned_costs_nothing(sourcing: str, price: str) -> None:
    def change(content: dict[str, Any]) -> None:
        content["economics"] = {"prices": {"l4": {price: 0}}}
        content["choices"] = {"accelerators": ["l4"], "sourcing": [sourcing]}

    found = answered(change)
    assert found.plan is not None
    assert render(found.plan)
    assert all(line.usd_per_year > 0.0 for line in found.plan.bill.lines)


@pytest.mark.parametrize(
    "demand",
    [{"requests_per_s": 1e-8}, {"output_tokens_per_s": 1e-9}, {"concurrent_users": 0.001, "think_time_s": 1e6}],
)
def test_the_least_demand_needs_one_replica(demand: dict[str, float]) -> None:
    found = answered(lambda content: content["workload"].update(demand=demand))
    assert found.plan is not None
    assert sum(one.replicas for one in found.plan.deployments) == 1


def test_no_server_is_told_from_no_layout() -> None:
    def hall(content: dict[str, Any]) -> None:
        content["choices"] = {"cooling": ["air_crac"], "sourcing": ["buy"], "accelerators": ["h200-141gb-sxm"]}

    found = answered(hall)
    assert found.diagnosis is not None
    assert found.diagnosis.messages[0].startswith("no server can be had")
    assert any("air_crac" in message for message in found.diagnosis.messages)

    def degrees(content: dict[str, Any]) -> None:
        content["choices"] = {"tensor_parallel": [3, 5, 7], "pipeline_parallel": [5, 7]}

    found = answered(degrees)
    assert found.diagnosis is not None
    assert "heads" in found.diagnosis.messages[0]


def test_users_are_called_users() -> None:
    found = answered(lambda content: content["workload"].update(demand={"concurrent_users": 200, "think_time_s": 20}))
    assert found.plan is not None
    assert "throughput, users" in render(found.plan)


def test_a_plan_without_a_bound_is_still_json() -> None:
    calls = iter(range(10_000))

    def stop() -> bool:
        return next(calls) > 0

    content = copy.deepcopy(BASE)
    found = api.solve(Instance.model_validate_json(json.dumps(content)), stop=stop, time_limit_s=60)
    assert found.plan is not None
    text = found.plan.model_dump_json()
    assert "Infinity" not in text
    assert "NaN" not in text


def test_nested_widths_waste_nothing_and_large_fleets_pack_at_once() -> None:
    held = _nested([(8, "a", 5), (4, "b", 1_000_001), (2, "c", 3), (1, "d", 2)], 8)
    assert sum(times for _, times in held) == 5 + 500_001 + 1
    assert {d: sum(one.get(d, 0) * times for one, times in held) for d in "abcd"} == {
        "a": 5,
        "b": 1_000_001,
        "c": 3,
        "d": 2,
    }
    widths = {"a": 8, "b": 4, "c": 2, "d": 1}
    assert all(sum(widths[d] * n for d, n in one.items()) <= 8 for one, _ in held)
