"""The largest admissible concurrency against trying every one."""

from typing import Any

import numpy as np
import pytest

from optimizer.performance.deployments import Traffic
from optimizer.performance.factors import load_factors
from optimizer.performance.search import highest_admissible_concurrency
from optimizer.performance.serving import prepare
from tests.performance import builders as b
from tests.performance.test_serving import random_deployments


@pytest.mark.parametrize(
    "limits",
    [
        {"tpot_ms": 30.0},
        {"ttft_ms": 400.0},
        {"latency_ms": 20_000.0},
        {"memory_gib": 60.0},
        {"nvlink_gb_s": 60.0},
        {"tpot_ms": 40.0, "ttft_ms": 800.0, "memory_gib": 100.0, "nvlink_gb_s": 200.0},
        {},
    ],
)
def test_equals_trying_every_concurrency(limits: dict[str, Any]) -> None:
    n, most = 200, 64
    prepared = prepare(b.QWEN_235B, random_deployments(np.random.default_rng(3), n), Traffic(500, 300), load_factors())
    found = highest_admissible_concurrency(prepared, **limits, max_concurrency=most)
    table = prepared.at(np.broadcast_to(np.arange(1.0, most + 1), (n, most)))
    names = {"memory_gib": "total_gib"}
    keeps = np.arange(1.0, most + 1)[None, :] <= table.largest_concurrency
    for name, bound in limits.items():
        keeps &= getattr(table, names.get(name, name)) <= bound
    assert np.array_equal(found, keeps.sum(axis=1))


def test_bounds_may_differ_by_row() -> None:
    prepared = prepare(b.LLAMA_8B, b.deploy(b.H100, tensor_parallel=[1, 1, 1]), Traffic(500, 300), load_factors())
    found = highest_admissible_concurrency(prepared, tpot_ms=np.array([1.0, 8.0, np.inf]), max_concurrency=100)
    assert found[0] == 0
    assert 0 < found[1] < 100
    assert found[2] == 100
