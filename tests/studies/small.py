"""Instances that are solved in a moment: one accelerator, few layouts, prices of the planner's own."""

import json
from typing import Any

from optimizer.instance.model import Instance

Json = dict[str, Any]


def small(sourcing: tuple[str, ...] = ("buy", "on_demand"), demand: float = 960.0, **sections: Json) -> Instance:
    """An 8B model on H100 servers that cost 250,000 USD or 3 USD an hour and accelerator."""
    content: Json = {
        "name": "small",
        "workload": {
            "model": "llama-3.1-8b",
            "request": {"input_tokens": 500, "output_tokens": 100},
            "demand": {"requests_per_s": demand},
            "load": {"mean_fraction": 0.5},
        },
        "targets": {"tpot_ms": 60, "spare_fraction": 0.0, "peak_utilization_fraction": 1.0},
        "choices": {
            "accelerators": ["h100-80gb-sxm"],
            "tensor_parallel": [1],
            "pipeline_parallel": [1],
            "schemes": ["w16a16"],
            "cooling": ["air_containment_econ"],
            "sourcing": list(sourcing),
        },
        "economics": {
            "prices": {"h100-80gb-sxm": {"server_usd": 250_000, "on_demand_usd_per_hour": 3.0}},
        },
    }
    for name, section in sections.items():
        content[name] = {**content.get(name, {}), **section}
    return Instance.model_validate_json(json.dumps(content))


def prices(server_usd: float | None = 250_000, usd_per_hour: float | None = 3.0) -> Json:
    """Economics with other prices of the H100."""
    own = {"server_usd": server_usd, "on_demand_usd_per_hour": usd_per_hour}
    return {"prices": {"h100-80gb-sxm": {name: usd for name, usd in own.items() if usd is not None}}}
