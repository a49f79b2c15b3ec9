"""A looser limit never costs more; every count of replicas tried one by one finds nothing better."""

from typing import Any

import numpy as np
import pytest

from optimizer.training.answer import search
from optimizer.training.options import evaluated
from optimizer.training.replicas import most_replicas, steps_of
from tests.training.small import LAYOUTS, one_job, read


def least(value: dict[str, Any]) -> float:
    found = search(read(value)).choices[0].found
    return found[0].usd if found else float("inf")


def free(**changes: Any) -> dict[str, Any]:
    """Any count of accelerators."""
    value = one_job(**changes)
    del value["workload"]["accelerator_counts"]
    return value


INSTANCES: dict[str, dict[str, Any]] = {
    "dense": {},
    "mixture": {
        "workload__parameters_b": 24,
        "workload__active_parameters_b": 3,
        # 124 experts.
        "workload__layouts": {**LAYOUTS, "expert_parallel": [1, 4, 31], "micro_batch": [1, 2]},
        "choices__accelerators": ["h100-80gb-sxm", "b200-180gb-sxm"],
    },
    "experts in threes": {
        "workload__parameters_b": 48,
        "workload__active_parameters_b": 6,
        # 105 experts, and heads that nothing divides.
        "workload__layouts": {**LAYOUTS, "expert_parallel": [1, 3, 7], "micro_batch": [1, 2]},
        "choices__accelerators": ["h100-80gb-sxm", "b200-180gb-sxm"],
    },
}
LIMITS: dict[str, list[float]] = {
    "targets__deadline_days": np.linspace(10.0, 120.0, 14).tolist(),
    "site__power_kw": np.linspace(40.0, 400.0, 13).tolist(),
    "choices__supply": np.arange(24.0, 440.0, 32.0).tolist(),
}


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("name", ["dense", pytest.param("mixture", marks=pytest.mark.slow)])
def test_a_looser_limit_costs_no_more(name: str, limit: str) -> None:
    costs = []
    for value in LIMITS[limit]:
        given: Any = {"h100-80gb-sxm": int(value)} if limit == "choices__supply" else value
        costs.append(least(free(**{**INSTANCES[name], limit: given})))
    assert np.isfinite(costs).sum() >= 3
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize("days", [17.0, 41.5, 85.5, 90.0, 94.5])
@pytest.mark.parametrize("name", ["dense", "mixture", "experts in threes"])
def test_no_count_of_replicas_is_better_than_those_that_are_tried(name: str, days: float) -> None:
    """Every layout at every count that the batch allows, one by one, without the ranges."""
    found = search(read(free(**INSTANCES[name], targets__deadline_days=days)))
    for options in found.options[0]:
        bases = options.bases
        top = most_replicas(options.job.sequences, bases).astype(int)
        rows = np.repeat(np.arange(bases.size), top)
        every, _ = evaluated(options.evaluator, bases, rows, np.concatenate([np.arange(1.0, n + 1.0) for n in top]))
        ranks = every.layouts.data_parallel * every.layouts.tensor_parallel * every.layouts.context_parallel
        assert np.all(ranks % every.layouts.expert_parallel == 0)
        good = every.passing()
        servers = np.ceil(every.accelerators[good] / options.server_type.accelerators - 1e-9)
        for count, taken in zip(servers, every.days[good], strict=True):
            assert options.rows.days[options.servers <= count].min() <= taken * (1.0 + 1e-12)


def test_ranges_hold_every_count_once() -> None:
    for shares in (1, 2, 7, 976):
        first, last = steps_of(shares)
        assert first[0] == 1.0
        assert last[-1] == shares
        assert np.array_equal(first[1:], last[:-1] + 1.0)
        assert np.array_equal(np.ceil(shares / first), np.ceil(shares / last))
