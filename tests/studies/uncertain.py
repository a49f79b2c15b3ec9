"""Small random instances under uncertainty: one or two own accelerators, bought, committed or rented on demand."""

import json
from random import Random
from typing import Any

from optimizer.instance.model import Instance
from tests.oracle.listing import list_instance
from tests.oracle.random_instances import _own_accelerator, _prices

#: Demand, electricity price and server price of each scenario, as multiples or in USD/kWh.
Scenario = tuple[float, float, float]


def _document(random: Random, seed: int) -> dict[str, Any]:
    names = ["card-a", "card-b"][: random.choice((1, 2, 2))]
    rows = [_own_accelerator(random, name) for name in names]
    prices = {row["id"]: _prices(random, row) for row in rows}
    for own in prices.values():
        own.setdefault("reserved_1yr_usd_per_hour", round(own["on_demand_usd_per_hour"] * random.uniform(0.5, 0.9), 4))
        own.pop("reserved_3yr_usd_per_hour", None)
    sourcing = random.choice(
        (["buy", "on_demand"], ["buy", "reserved_1yr", "on_demand"], ["buy"], ["reserved_1yr", "on_demand"])
    )
    schemes = random.choice((["w16a16"], ["w16a16", "w8a8-int8"], ["w8a8-int8"]))
    return {
        "name": f"uncertain {seed}",
        "workload": {
            "model": random.choice(("Llama-3.1-8B", "Llama-3.2-1B")),
            "request": {"input_tokens": random.choice((128, 500)), "output_tokens": random.choice((50, 200))},
            "demand": {"requests_per_s": 1.0},
            "load": {"mean_fraction": random.choice((0.4, 1.0))},
        },
        "targets": {
            "spare_fraction": random.choice((0.0, 0.05, 0.5)),
            "spare_servers": random.choice((0, 0, 1)),
            "accuracy_floor_fraction": 0.9,
        },
        "choices": {
            "accelerators": names,
            "tensor_parallel": random.choice(([1], [2], [1, 2])),
            "pipeline_parallel": [1],
            "schemes": schemes,
            "sourcing": sourcing,
            "cooling": ["air_containment_econ"],
            "max_concurrency": random.choice((32, 128)),
        },
        "site": {"electricity_usd_per_kwh": 0.1},
        "economics": {
            "prices": prices,
            "cooling_prices": {"air_containment_econ": {"fixed_usd": random.choice((0.0, 5000.0))}},
            "rack_usd": 2000.0,
        },
        "catalog": {"accelerators": rows},
    }


def drawn(seed: int, *, by_the_hour: bool = False) -> tuple[Instance, tuple[Instance, ...]] | None:
    """An instance with demand of about two servers, and what it is in four scenarios; None where nothing starts.

    ``by_the_hour``: its load has several levels, in which servers on demand are paid by the hours that use them.
    """
    random = Random(seed)
    document = _document(random, seed)
    if by_the_hour:
        low, hours = random.choice((0.2, 0.5)), random.choice((4, 12))
        document["workload"]["load"] = {"hourly_fractions": [1.0] * hours + [low] * (24 - hours)}
    listing = list_instance(Instance.model_validate_json(json.dumps(document)))
    worth = [
        column.capacity * (listing.pools[column.pool].server_type.size // column.width)
        for column in listing.columns
        if column.width <= listing.pools[column.pool].server_type.size
    ]
    if not worth:
        return None
    demand = float(f"{max(worth) * random.uniform(0.8, 1.8):.4g}")
    power = random.choice((None, None, 30.0))
    spread = random.choice((0.15, 0.4))
    result = []
    for share, usd_per_kwh, dearer in (
        (1.0, 0.1, 1.0),
        (1.0 - spread, 0.05, 1.4),
        (1.0 + spread, 0.3, 1.0),
        (1.0, 0.2, 0.7),
    ):
        changed = json.loads(json.dumps(document))
        changed["workload"]["demand"]["requests_per_s"] = demand * share
        changed["site"]["electricity_usd_per_kwh"] = usd_per_kwh
        if power is not None:
            changed["site"]["power_kw"] = power
        for own in changed["economics"]["prices"].values():
            own["server_usd"] = own["server_usd"] * dearer
        result.append(Instance.model_validate_json(json.dumps(changed)))
    return result[0], tuple(result)
