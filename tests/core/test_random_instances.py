"""Random real instances: domination and pruning change neither the cost nor whether there is a plan."""

from random import Random
from typing import Any

import pytest

from optimizer.answer import answer
from optimizer.offer import Without
from optimizer.solver import Reason
from tests.core.hand import EXACT, Json, instance
from tests.core.real import offer

SEEDS = (*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 80)))
CARDS = ("l4", "l40s", "h100-80gb-sxm", "h200-141gb-sxm", "mi300x", "a100-80gb-sxm", "gaudi3", "rtx-pro-6000-server")
COOLING = ("air_containment_econ", "dynamic", "rdhx_active", "d2c_1p", "imm_1p")


def draw(seed: int) -> Json:
    """Sections of an instance."""
    random = Random(seed)
    cards = random.sample(CARDS, random.choice((1, 2, 3)))
    choices: Json = {
        "accelerators": cards,
        "tensor_parallel": random.choice(([1, 2], [1, 2, 4], [2, 4, 8])),
        "pipeline_parallel": random.choice(([1], [1, 3], [1, 2, 3, 6])),
        "schemes": random.choice((["w16a16"], ["w16a16", "w8a8-fp8"], ["w8a16-int8", "w4a16-int4"])),
        "cooling": random.sample(COOLING, random.choice((1, 2, 3))),
        "sourcing": random.choice((["buy"], ["buy"], ["buy", "on_demand"], ["on_demand", "reserved_1yr"])),
        "max_concurrency": random.choice((16, 64, 256)),
    }
    if random.random() < 0.2:
        choices["max_accelerator_types"] = 1
    users = {"concurrent_users": random.randint(50, 3000), "think_time_s": 4}
    profile = {"hourly_fractions": [1.0] * 8 + [0.3] * 16}
    workload: Json = {
        "model": random.choice(("llama-3.1-8b", "qwen2.5-7b", "llama-3.1-70b", "mixtral-8x7b")),
        "request": {"input_tokens": random.choice((200, 2000)), "output_tokens": random.choice((50, 400))},
        "demand": random.choice(({"requests_per_s": random.uniform(5, 200)}, users)),
        "load": random.choice(({"mean_fraction": 0.5}, {"mean_fraction": 1}, profile)),
    }
    targets: Json = {
        "accuracy_floor_fraction": 0.9,
        "spare_fraction": random.choice((0.0, 0.05, 0.2)),
        "spare_servers": random.choice((0, 1)),
        "peak_utilization_fraction": 0.9,
    }
    if random.random() < 0.5:
        targets["tpot_ms"] = random.choice((15.0, 40.0))
    discounts = [{"from_servers": 3, "discount_fraction": 0.1}, {"from_servers": 10, "discount_fraction": 0.25}]
    prices: dict[str, Any] = {
        card: {"discounts": discounts, "discount_kind": random.choice(("all_units", "incremental"))}
        for card in cards
        if random.random() < 0.5
    }
    economics: Json = {"prices": prices}
    site: Json = {}
    if random.random() < 0.3:
        site["power_kw"] = random.uniform(30, 300)
    if random.random() < 0.3:
        site["racks"] = random.randint(1, 8)
    return {"choices": choices, "workload": workload, "targets": targets, "economics": economics, "site": site}


@pytest.mark.parametrize("seed", SEEDS)
def test_least_cost_with_and_without_leaving_out(seed: int) -> None:
    given = instance(**draw(seed))
    every, some = (answer(offer(given, dominate=dominate), EXACT, Without()) for dominate in (False, True))
    assert (every.fleet is None) == (some.fleet is None)
    if every.fleet is not None:
        assert every.outcome.reason is Reason.OPTIMAL
        assert some.outcome.objective == pytest.approx(every.outcome.objective, rel=2e-6)
