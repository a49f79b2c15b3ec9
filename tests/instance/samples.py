"""Small sound instances, and ways to spoil them."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

from optimizer.errors import InputError, Problem
from optimizer.instance.model import Instance
from optimizer.instance.reading import read_instance_text


def sound() -> dict[str, Any]:
    """An instance with at least one key in every section, as JSON values."""
    return {
        "$schema": "../optimizer/schema/instance.schema.json",
        "name": "sample",
        "workload": {
            "model": "Llama-3.1-70B",
            "request": {"input_tokens": 1000, "output_tokens": 300},
            "demand": {"requests_per_s": 10},
            "load": {"mean_fraction": 0.5},
            "engine": "vllm",
        },
        "targets": {"tpot_ms": 50, "ttft_ms": 1000, "accuracy_floor_fraction": 0.99},
        "choices": {
            "accelerators": ["h100-80gb-sxm", "l40s"],
            "supply": {"l40s": 64},
            "tensor_parallel": [1, 2, 4, 8],
            "schemes": ["w16a16", "w8a8-fp8"],
            "cooling": ["air_crac"],
            "sourcing": ["buy", "on_demand"],
        },
        "site": {"climate": "us_va_ashburn", "electricity_region": "US-VA", "power_kw": 500},
        "economics": {
            "horizon_years": 4,
            "prices": {
                "l40s": {"server_usd": 90000, "discounts": [{"from_servers": 4, "discount_fraction": 0.05}]},
            },
            "cooling_prices": {"air_crac": {"fixed_usd": 100000}},
        },
        "catalog": {
            "purchase_prices": [
                {"accelerator": "l40s", "accelerators": 8, "low_usd": 1, "typical_usd": 2, "high_usd": 3},
            ],
        },
        "solver": {"gap": 1e-6, "threads": 1},
    }


def several_classes() -> dict[str, Any]:
    """A sound instance with two request classes."""
    value = sound()
    workload = value["workload"]
    one = {"request": workload.pop("request"), "demand": workload.pop("demand")}
    chat, batch = {"name": "chat", **one}, {"name": "batch", **deepcopy(one), "targets": {"latency_ms": 60000}}
    workload["classes"] = [chat, batch]
    return value


def training() -> dict[str, Any]:
    """A sound instance of two training jobs on two sites."""
    value = sound()
    value["workload"] = {
        "kind": "training",
        "model": "Llama-3.1-70B",
        "tokens": 15e12,
        "precisions": ["bf16", "fp8"],
        "layouts": {"tensor_parallel": [4, 8]},
        "reliability": {"restart_s": 300},
        "multi_site": {"methods": ["synchronous"]},
        "jobs": [
            {"name": "main", "deadline_days": 60},
            {"name": "next", "parameters_b": 100, "active_parameters_b": 10, "flop": 1e24, "earliest_start_day": 30},
        ],
    }
    value["targets"] = {"deadline_days": 90, "mfu_floor_fraction": 0.3}
    del value["site"]
    value["sites"] = [{"name": "east", "power_kw": 50000}, {"name": "west", "climate": "us_or_hillsboro"}]
    value["wan_links"] = [{"between": ["east", "west"], "gbit_per_s": 800, "km": 1000}]
    return value


def changed(change: dict[str, Any], value: dict[str, Any] | None = None) -> dict[str, Any]:
    """A sound instance with values set by dotted path; ``...`` removes a key, digits index a list."""
    value = sound() if value is None else value
    for path, new in change.items():
        *steps, last = path.split("/")
        inner: Any = value
        for step in steps:
            inner = inner[int(step)] if isinstance(inner, list) else inner.setdefault(step, {})
        if new is ...:
            del inner[last]
        elif isinstance(inner, list):
            inner[int(last)] = new
        else:
            inner[last] = new
    return value


def read(value: dict[str, Any], folder: Path | None = None) -> Instance:
    """Read JSON values as an instance named my.json."""
    return read_instance_text(json.dumps(value, indent=2), "my.json", folder)


def problems(text: str, folder: Path | None = None) -> tuple[Problem, ...]:
    """Problems of a text; none where it is sound."""
    try:
        read_instance_text(text, "my.json", folder)
    except InputError as error:
        return error.problems
    return ()
