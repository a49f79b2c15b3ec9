"""Which units of two roles are offered: whole ratios, servers filled without a gap, no unit over rented servers."""

from math import gcd
from typing import Any

import numpy as np

from optimizer.api import solve
from optimizer.candidates import Candidates
from optimizer.screen import Screened
from tests.core.real import screened, small

BOTH: dict[str, Any] = {"serving_roles": ["unified", "disaggregated"]}


def candidates(**choices: Any) -> Candidates:
    """Candidates of a small instance with two roles allowed."""
    return screened(small(choices={**BOTH, **choices})).candidates


def test_roles_are_off_unless_asked_for() -> None:
    assert not screened(small()).candidates.prefill_replicas.any()


def test_units_fill_servers_and_have_no_common_divisor() -> None:
    c = candidates(tensor_parallel=[1, 2, 4, 8])
    unit = c.prefill_replicas > 0
    assert unit.any()
    assert (~unit).any()
    size = np.array([one.accelerators for one in c.server_types])[c.server_type_index]
    own = c.tensor_parallel * c.pipeline_parallel * c.attention_data_parallel
    prompts = c.prefill_degrees[:, 0] * c.prefill_degrees[:, 1] * c.prefill_degrees[:, 3]
    assert np.array_equal((c.prefill_replicas * prompts + c.decode_replicas * own)[unit], c.width[unit])
    assert all(gcd(x, y) == 1 for x, y in zip(c.prefill_replicas[unit], c.decode_replicas[unit], strict=True))
    taken = c.servers_per_replica * size
    assert np.array_equal(taken[unit], c.width[unit].astype(float))
    inside = unit & (c.width <= size)
    assert np.all(size[inside] % c.width[inside] == 0)


def test_units_of_several_servers_need_a_network_that_is_bought() -> None:
    c = candidates(sourcing=["on_demand"], tensor_parallel=[1, 2, 4, 8])
    assert (c.prefill_replicas > 0).any()
    assert c.servers_per_replica[c.prefill_replicas > 0].max() <= 1.0


def test_one_kind_alone() -> None:
    only = candidates(serving_roles=["disaggregated"])
    both = candidates()
    assert (only.prefill_replicas > 0).all()
    assert only.size == int((both.prefill_replicas > 0).sum())


def offered(found: Screened) -> dict[str, int]:
    """Largest concurrency of each unit by its shape."""
    c = found.candidates
    rows = np.flatnonzero(c.prefill_replicas)
    shape = (c.server_type_index, c.scheme_index, c.prefill_replicas, c.decode_replicas, c.tensor_parallel)
    return {
        " ".join(str(one[r]) for one in (c.class_index, c.prefill_degrees, c.pipeline_parallel, *shape)): int(
            found.concurrency[r]
        )
        for r in rows
    }


def test_a_full_network_ends_the_concurrency() -> None:
    loose = offered(screened(small(choices=BOTH)))
    tight = offered(screened(small(choices=BOTH, targets={"kv_link_fraction": 0.0005})))
    assert loose.keys() == tight.keys()
    assert all(tight[key] <= value for key, value in loose.items())
    assert sum(tight.values()) < sum(loose.values())


def test_what_roles_add_never_costs_more() -> None:
    """More choices: no dearer plan; a plan of units alone is no cheaper than one of both."""
    request: dict[str, Any] = {
        "workload": {"request": {"input_tokens": 6000, "output_tokens": 100}},
        "targets": {"tpot_ms": 12.0},
    }
    usd = {}
    for name, roles in (("one", ["unified"]), ("two", ["disaggregated"]), ("both", ["unified", "disaggregated"])):
        plan = solve(small(choices={"serving_roles": roles}, **request)).plan
        assert plan is not None
        assert all((one.prefill is None) == (name == "one") or name == "both" for one in plan.deployments)
        usd[name] = plan.bill.usd_per_hour
    assert usd["both"] <= min(usd["one"], usd["two"]) * (1 + 1e-6)
    assert usd["two"] < usd["one"]
