"""What is offered to the program: ids, homes, bounds that cut off no optimal plan, power, the columns of candidates."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from optimizer.candidate_columns import block_width, compute_precision, supported
from optimizer.candidates import SPLIT_GROUP, WIDE_REPLICA
from optimizer.costs.energy import pool_idle_kw
from optimizer.models import served_model
from optimizer.offer import Without, busy_power, program_data, server_power
from optimizer.performance.power import busy_power_kw
from optimizer.program_data import ProgramData
from optimizer.schemes import scheme_options
from optimizer.setting import build_setting
from tests.core.hand import catalog, instance, solve
from tests.core.real import offer, screened, small


def number(value: ArrayLike) -> float:
    """A figure of a power law."""
    return float(np.asarray(value, dtype=np.float64))


def data(**sections: Any) -> ProgramData:
    """Data of a small real instance, nothing left out."""
    found = program_data(offer(small(**sections), dominate=False))
    assert found is not None
    return found


def test_deployments_are_named_by_class_server_layout_scheme_and_concurrency() -> None:
    one = offer(small(), dominate=False)
    found = program_data(one)
    assert found is not None
    rows = one.screened.rows
    for key, deployment in found.deployments.items():
        row = int(rows[deployment.row])
        assert key.startswith(f"all/{deployment.server_type}/tp{one.screened.candidates.tensor_parallel[row]}pp1")
        assert key.endswith(f"/{deployment.scheme}/c{one.screened.concurrency[row]}")
    assert len(found.deployments) == rows.size


def test_each_deployment_may_run_in_every_pool_of_its_server_type() -> None:
    found = data()
    for d, q in found.pairs:
        assert found.pools[q].server_type.id == found.deployments[d].server_type
    assert set(found.pools) == {q for _, q in found.pairs}


@pytest.mark.parametrize(
    "without",
    [
        Without(accelerators=frozenset({"l40s"})),
        Without(schemes=frozenset({"w16a16+kv16+none"})),
        Without(sourcing=frozenset({"buy"})),
        Without(cooling=frozenset({"air_containment_econ"})),
    ],
    ids=["accelerator", "scheme", "sourcing", "cooling"],
)
def test_without_leaves_out_exactly_what_it_names(without: Without) -> None:
    one = offer(small(), dominate=False)
    every, some = program_data(one), program_data(one, without)
    assert every is not None
    assert some is not None
    for q, pool in some.pools.items():
        assert q in every.pools
        assert pool.server_type.accelerator.id not in without.accelerators
        assert pool.sourcing not in without.sourcing
        assert pool.cooling is None or pool.cooling.id not in without.cooling
    kept = {
        (d, q)
        for d, q in every.pairs
        if without.allows(every.pools[q]) and every.deployments[d].scheme not in without.schemes
    }
    assert set(some.pairs) == kept


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"choices": {"sourcing": ["buy"]}},
        {"choices": {"sourcing": ["buy"]}, "targets": {"spare_fraction": 0.3, "spare_servers": 2}},
        {"workload": {"demand": {"requests_per_s": 0.01}}},
        {"choices": {"tensor_parallel": [1, 2, 4], "pipeline_parallel": [1, 3], "sourcing": ["buy"]}},
    ],
    ids=["plain", "bought", "spares", "tiny", "widths"],
)
def test_bounds_are_not_reached_for_want_of_room(sections: dict[str, Any]) -> None:
    """Twice the bounds give the same cost."""
    from dataclasses import replace

    one = data(**sections)
    wide = replace(
        one,
        max_replicas={key: 2 * count + 5 for key, count in one.max_replicas.items()},
        max_servers={key: 2 * count + 5 for key, count in one.max_servers.items()},
        max_in_service={key: 2 * count + 5 for key, count in one.max_in_service.items()},
    )
    tight, loose = solve(one), solve(wide)
    assert tight is not None
    assert loose is not None
    assert tight.usd_per_hour == pytest.approx(loose.usd_per_hour, rel=2e-6)


def test_supply_bounds_the_servers() -> None:
    found = data(choices={"supply": {"l40s": 3}})
    for q, pool in found.pools.items():
        if pool.server_type.accelerator.id == "l40s":
            assert found.max_servers[q] <= 3 // pool.server_type.accelerators


def test_busy_power_lies_between_idle_and_the_maximum_and_counts_idle_accelerators() -> None:
    found = screened(small(choices={"tensor_parallel": [1, 2], "pipeline_parallel": [1, 3]}))
    busy, above = busy_power(found.candidates, found.rows)
    candidates = found.candidates
    for row, kw, more in zip(found.rows, busy, above, strict=True):
        one = candidates.server_types[int(candidates.server_type_index[row])]
        law = server_power(candidates.setting, one, is_large_dense=False)
        idle, most = number(law.idle_kw), number(law.maximum_kw)
        assert idle <= kw <= most * (1 + 1e-9)
        occupied = round(candidates.width[row] / candidates.servers_per_replica[row]) / one.accelerators
        assert more == pytest.approx(occupied * (number(busy_power_kw(law, 1.0)) - idle))
        assert kw == pytest.approx(idle + more)


def test_idle_power_of_pools_and_of_the_power_law_are_one() -> None:
    setting = build_setting(small(), catalog())
    for pool in setting.pools:
        if pool.is_bought:
            law = server_power(setting, pool.server_type, is_large_dense=False)
            assert pool_idle_kw(setting, pool) == pytest.approx(pool.loaded_kw(number(law.idle_kw)))


def test_widths_and_what_a_replica_blocks() -> None:
    choices = {"tensor_parallel": [1, 2, 4, 8], "pipeline_parallel": [1, 2, 3, 4, 6]}
    found = screened(small(choices=choices)).candidates
    width = found.tensor_parallel * found.pipeline_parallel * found.attention_data_parallel
    assert np.array_equal(found.width, width)
    for row in range(found.size):
        size = found.server_types[int(found.server_type_index[row])].accelerators
        group = int(found.tensor_parallel[row] * found.attention_data_parallel[row])
        if width[row] <= size:
            expected = 1.0 / (size // int(width[row]))
        else:
            expected = float(math.ceil(found.pipeline_parallel[row] / (size // group)))
            assert expected >= 2.0
        assert found.servers_per_replica[row] == pytest.approx(expected)


def test_rented_servers_take_no_wider_replicas() -> None:
    given = small(choices={"sourcing": ["on_demand"], "pipeline_parallel": [1, 4], "tensor_parallel": [1, 8]})
    found = screened(given).candidates
    assert found.size
    assert (found.servers_per_replica <= 1.0).all()
    assert found.not_startable.keys() & {WIDE_REPLICA, SPLIT_GROUP}


def test_formats_that_an_accelerator_runs() -> None:
    setting = build_setting(small(), catalog())
    model = served_model(setting.instance, setting.catalog)
    options = {one.id: one for one in scheme_options(build_setting(instance(), catalog()), model)}
    rows = catalog().accelerators
    fp8 = options["w8a8-fp8+kv16+none"]
    assert supported(rows["h100-80gb-sxm"], fp8)
    assert compute_precision(rows["h100-80gb-sxm"], fp8) == "fp8"
    for key, row in rows.items():
        for option in options.values():
            support = option.scheme.support(row.generation)
            if supported(row, option):
                assert support != "none", key
                compute = compute_precision(row, option)
                assert compute == (option.scheme.compute if support == "native" else "fp16")
                assert row.matrix_tflops(compute) is not None
    assert block_width(model, fp8) == fp8.scheme.block_width


def test_every_server_type_without_a_way_to_get_it_is_left_out() -> None:
    found = screened(small(choices={"sourcing": ["buy"]})).candidates
    assert {one.id for one in found.server_types} == {"l40s x8", "h100-80gb-sxm x8"}
    assert all(pool.is_bought for pool in found.setting.pools)


def test_an_offer_keeps_fewer_deployments_with_domination() -> None:
    every, some = offer(small(), dominate=False), offer(small())
    assert some.kept.size < every.kept.size
    assert set(some.kept.tolist()) <= set(every.kept.tolist())
    fewer, more = program_data(some), program_data(every)
    assert fewer is not None
    assert more is not None
    assert set(fewer.pairs) <= set(more.pairs)
