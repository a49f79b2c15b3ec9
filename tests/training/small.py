"""Small instances that train, solved in a fraction of a second."""

import json
from typing import Any

from optimizer.instance.model import Instance
from optimizer.instance.reading import read_instance_text

LAYOUTS = {"tensor_parallel": [1, 2], "pipeline_parallel": [1], "micro_batch": [1], "recompute": ["none"]}


def one_job(**changes: Any) -> dict[str, Any]:
    """7 billion parameters on 64 or 128 H100."""
    value: dict[str, Any] = {
        "name": "small run",
        "workload": {
            "kind": "training",
            "parameters_b": 7,
            "tokens": 1e12,
            "global_batch_tokens": 4e6,
            "accelerator_counts": [64, 128],
            "layouts": LAYOUTS,
        },
        "targets": {"deadline_days": 60},
        "choices": {"accelerators": ["h100-80gb-sxm"], "cooling": ["rdhx_passive", "d2c_1p"], "sourcing": ["buy"]},
    }
    for path, new in changes.items():
        *steps, last = path.split("__")
        inner = value
        for step in steps:
            inner = inner.setdefault(step, {})
        inner[last] = new
    return value


def two_jobs(**changes: Any) -> dict[str, Any]:
    """Two jobs, a deadline that both can meet, a calendar of ten days."""
    value = one_job(**changes)
    value["workload"] |= {
        "calendar_period_days": 10,
        "jobs": [
            {"name": "first", "tokens": 4e11},
            {"name": "second", "parameters_b": 3, "tokens": 5e11, "earliest_start_day": 5},
        ],
    }
    return value


def two_sites(**changes: Any) -> dict[str, Any]:
    """Neither site has the power for the job alone."""
    value = one_job(workload__accelerator_counts=[128], **changes)
    value["sites"] = [{"name": "east", "power_kw": 130}, {"name": "west", "power_kw": 130, "climate": "us_or_dalles"}]
    value["wan_links"] = [{"between": ["east", "west"], "gbit_per_s": 800, "km": 500}]
    return value


def read(value: dict[str, Any]) -> Instance:
    """The values as an instance."""
    return read_instance_text(json.dumps(value), "small.json")
