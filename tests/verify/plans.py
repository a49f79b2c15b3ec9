"""Plans to verify: small instances that together use every part of a plan, solved once."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from optimizer.api import solve
from optimizer.instance import Instance
from optimizer.plan import Plan

_H100: Final = {
    "server_usd": 260_000,
    "discounts": [
        {"from_servers": 3, "discount_fraction": 0.05},
        {"from_servers": 6, "discount_fraction": 0.12},
    ],
}

#: Bought, cooled by liquid, discounts, quantized with a recovery step, a load below its peak, limits on the site.
BOUGHT: Final[dict[str, Any]] = {
    "name": "bought",
    "workload": {
        "model": "llama-3.1-70b",
        "request": {"input_tokens": 1500, "output_tokens": 300, "prefix_hit_fraction": 0.2},
        "demand": {"output_tokens_per_s": 60_000},
        "load": {"mean_fraction": 0.45},
    },
    "targets": {"tpot_ms": 60, "ttft_ms": 3000, "accuracy_floor_fraction": 0.985, "vram_gib_per_accelerator": 78},
    "choices": {
        "accelerators": ["h100-80gb-sxm"],
        "sourcing": ["buy"],
        "cooling": ["d2c_1p"],
        "schemes": ["w4a16-int4"],
        "kv_schemes": ["kv8-fp8"],
        "recovery_steps": ["qad"],
        "supply": {"h100-80gb-sxm": 400},
        "max_accelerator_types": 1,
    },
    "site": {"power_kw": 2000, "racks": 40},
    "economics": {
        "prices": {"h100-80gb-sxm": _H100},
        "budget_capex_usd": 1e8,
        "budget_usd_per_year": 1e8,
    },
}

#: Rented by the hour for a profile of the day.
RENTED: Final[dict[str, Any]] = {
    "name": "rented",
    "workload": {
        "model": "llama-3.1-8b",
        "request": {"input_tokens": 800, "output_tokens": 200},
        "demand": {"requests_per_s": 40},
        "load": {"hourly_fractions": [0.3] * 8 + [1.0] * 8 + [0.6] * 8},
    },
    "targets": {"tpot_ms": 50},
    "choices": {"accelerators": ["l4", "l40s"], "sourcing": ["on_demand"]},
}

#: Two classes, one in users; experts; replicas of several servers; incremental discounts.
CLASSES: Final[dict[str, Any]] = {
    "name": "classes",
    "workload": {
        "model": "deepseek-v3",
        "classes": [
            {
                "name": "chat",
                "request": {"input_tokens": 2000, "output_tokens": 400},
                "demand": {"concurrent_users": 3000, "think_time_s": 20},
            },
            {
                "name": "batch",
                "request": {"input_tokens": 6000, "output_tokens": 800},
                "demand": {"requests_per_s": 3},
                "targets": {"tpot_ms": 200},
            },
        ],
    },
    "targets": {"tpot_ms": 80},
    "choices": {"accelerators": ["h100-80gb-sxm"], "sourcing": ["buy"], "cooling": ["air_containment_econ"]},
    "site": {"rack_kw": 25},
    "economics": {"prices": {"h100-80gb-sxm": {**_H100, "discount_kind": "incremental"}}},
}

#: Units of prefill and decode replicas, some over several servers, at a confidence.
ROLES: Final[dict[str, Any]] = {
    "name": "roles",
    "workload": {
        "model": "llama-3.1-70b",
        "request": {"input_tokens": 6000, "output_tokens": 250},
        "demand": {"requests_per_s": 12},
    },
    "targets": {"tpot_ms": 60, "ttft_ms": 8000, "accuracy_floor_fraction": 0.98, "confidence": 0.8},
    "choices": {
        "accelerators": ["h100-80gb-sxm"],
        "sourcing": ["buy"],
        "cooling": ["air_containment_econ"],
        "schemes": ["w8a8-fp8"],
        "serving_roles": ["disaggregated"],
        "tensor_parallel": [2, 4],
        "pipeline_parallel": [1, 4],
        "unit_replicas": [1, 2, 3],
    },
}

INSTANCES: Final = {one["name"]: one for one in (BOUGHT, RENTED, CLASSES, ROLES)}


@cache
def plan_of(name: str) -> Plan:
    """The plan of one of the instances."""
    plan = solve(Instance.model_validate_json(json.dumps(INSTANCES[name]))).plan
    assert plan is not None
    return plan


def document(plan: Plan) -> dict[str, Any]:
    """A plan as JSON values, to be changed."""
    raw: dict[str, Any] = json.loads(plan.model_dump_json(by_alias=True))
    return raw


def read(raw: dict[str, Any]) -> Plan:
    """A plan from JSON values."""
    return Plan.model_validate_json(json.dumps(raw))


Path = tuple[str | int, ...]


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every single value in JSON values, with its path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from leaves(inner, (*path, place))
    else:
        yield path, value


def numbers(value: Any) -> Iterator[tuple[Path, float]]:
    """Every number in JSON values, with its path."""
    for path, leaf in leaves(value):
        if isinstance(leaf, int | float) and not isinstance(leaf, bool):
            yield path, leaf


def words(value: Any) -> Iterator[tuple[Path, str]]:
    """Every text in JSON values, with its path."""
    for path, leaf in leaves(value):
        if isinstance(leaf, str):
            yield path, leaf


def changed(raw: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """A copy in which the value at ``path`` is another one."""
    copy: Any = json.loads(json.dumps(raw))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    whole: dict[str, Any] = copy
    return whole
