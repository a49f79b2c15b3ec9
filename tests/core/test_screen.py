"""Screening: every limit of one deployment, the largest concurrency that keeps them all, demand in its three units."""

import math
from typing import Any

import numpy as np
import pytest

from optimizer.offer import program_data
from optimizer.screen import Screened, accuracy_column, class_demand, demand_weights, keeps, seen_of
from tests.core.real import offer, screened, small

LIMITED: list[dict[str, Any]] = [
    {},
    {"tpot_ms": 12.0},
    {"ttft_ms": 400.0, "tpot_ms": 40.0},
    {"latency_ms": 3000.0},
    {"vram_gib_per_accelerator": 30.0},
    {"nvlink_gb_s": 5.0},
    {"nvlink_fraction": 0.02, "vram_fraction": 0.7},
]


@pytest.mark.parametrize("targets", LIMITED, ids=lambda one: "+".join(one) or "none")
def test_offered_concurrency_keeps_every_limit_and_one_more_does_not(targets: dict[str, Any]) -> None:
    most = 200
    found = screened(small(targets=targets, choices={"max_concurrency": most}))
    rows, concurrency = found.rows, found.concurrency[found.rows]
    assert rows.size
    accuracy = accuracy_column(found.candidates)[rows]
    bounds = found.bounds.take(rows)
    kept = np.logical_and.reduce(list(keeps(seen_of(found.prediction, accuracy), bounds).values()))
    assert kept.all()
    assert (concurrency >= 1).all()
    assert (concurrency <= most).all()
    below = concurrency < most
    more = keeps(seen_of(found.candidates.at(rows, concurrency + 1), accuracy), bounds)
    assert not np.logical_and.reduce(list(more.values()))[below].any()


@pytest.mark.parametrize("targets", LIMITED, ids=lambda one: "+".join(one) or "none")
def test_what_is_not_offered_breaks_a_limit_alone(targets: dict[str, Any]) -> None:
    found = screened(small(targets=targets))
    alone = np.logical_and.reduce(list(found.passes.values()))
    assert np.array_equal(found.concurrency > 0, alone)
    killed = found.killed_by_limit()
    assert all(count > 0 for count in killed.values())
    for name, count in found.killed_alone().items():
        assert count <= killed.get(name, 0)


def test_a_tighter_limit_never_raises_a_concurrency() -> None:
    loose = screened(small()).concurrency
    for limit, values in (
        ("tpot_ms", (50.0, 20.0, 10.0)),
        ("latency_ms", (9000.0, 3000.0)),
        ("vram_fraction", (0.8, 0.5)),
    ):
        before = loose
        for value in values:
            now = screened(small(targets={limit: value})).concurrency
            assert (now <= before).all()
            before = now


def test_border_of_a_latency_is_where_the_prediction_stands() -> None:
    """The very time that a row reaches is kept; a billionth less is not."""
    choices = {"accelerators": ["l40s"], "schemes": ["w16a16"], "tensor_parallel": [1], "max_concurrency": 32}
    free = screened(small(choices=choices))
    for name in ("tpot_ms", "ttft_ms", "latency_ms"):
        reached = float(getattr(free.prediction, name)[0])
        full = int(free.concurrency[free.rows[0]])
        at = screened(small(choices=choices, targets={name: reached}))
        assert int(at.concurrency[at.rows[0]]) == full
        under = screened(small(choices=choices, targets={name: reached * (1 - 1e-9)}))
        assert int(under.concurrency.max()) < full


def two_classes(**second: Any) -> Screened:
    """A class with its own target beside one without."""
    classes = [
        {
            "name": "quick",
            "request": {"input_tokens": 500, "output_tokens": 100},
            "demand": {"requests_per_s": 50},
            "targets": {"tpot_ms": 12.0},
        },
        {
            "name": "slow",
            "request": {"input_tokens": 500, "output_tokens": 100},
            "demand": {"requests_per_s": 50},
            **second,
        },
    ]
    return screened(small(workload={"classes": classes}, targets={"tpot_ms": 30.0}))


def test_targets_of_a_class_go_before_the_common_ones() -> None:
    found = two_classes()
    first = found.candidates.class_index == 0
    assert set(found.bounds.tpot_ms[first]) == {12.0}
    assert set(found.bounds.tpot_ms[~first]) == {30.0}
    assert (found.concurrency[first] <= found.concurrency[~first]).all()


def test_classes_are_predicted_as_if_each_were_alone() -> None:
    found = two_classes()
    for index, tpot in ((0, 12.0), (1, 30.0)):
        alone = screened(small(targets={"tpot_ms": tpot}, workload={"demand": {"requests_per_s": 50}}))
        assert np.array_equal(found.concurrency[found.candidates.class_index == index], alone.concurrency)
    rows = found.rows
    again = found.candidates.at(rows, found.concurrency[rows])
    assert np.array_equal(again.tpot_ms, found.prediction.tpot_ms)


def test_demand_in_three_units() -> None:
    def demand(**given: float) -> tuple[float, ...]:
        return class_demand(screened(small(workload={"demand": given})).candidates)

    assert demand(requests_per_s=7.0) == (7.0,)
    assert demand(output_tokens_per_s=700.0) == (7.0,)
    assert demand(concurrent_users=7.0, think_time_s=3.0) == (7.0,)


def test_users_wait_then_think() -> None:
    found = screened(small(workload={"demand": {"concurrent_users": 100, "think_time_s": 5.0}}))
    rows = found.rows
    weights = demand_weights(found.candidates, rows, found.prediction.latency_ms)
    assert weights == pytest.approx(5.0 + found.prediction.latency_ms / 1000.0)
    plain = screened(small())
    assert (demand_weights(plain.candidates, plain.rows, plain.prediction.latency_ms) == 1.0).all()


def test_users_that_never_think_are_the_requests_in_flight() -> None:
    """Without thinking a replica at concurrency c carries c users, at its margin."""
    given = small(workload={"demand": {"concurrent_users": 1000}}, targets={"peak_utilization_fraction": 0.5})
    data = program_data(offer(given, dominate=False))
    assert data is not None
    for key, capacity in data.capacity.items():
        concurrency = int(key.rpartition("/c")[2])
        assert capacity == pytest.approx(0.5 * concurrency)


def test_tokens_and_requests_give_the_same_program() -> None:
    both = [
        program_data(offer(small(workload={"demand": demand})))
        for demand in ({"requests_per_s": 100.0}, {"output_tokens_per_s": 10_000.0})
    ]
    assert both[0] is not None
    assert both[1] is not None
    assert both[0].demand == both[1].demand
    assert both[0].capacity == both[1].capacity
    assert both[0].pairs == both[1].pairs


def test_nothing_startable_is_screened_to_nothing() -> None:
    found = screened(small(choices={"tensor_parallel": [7]}))
    assert found.candidates.size == 0
    assert found.rows.size == 0
    assert found.killed_by_limit() == {}
    assert found.killed_alone() == {}
    assert found.candidates.not_startable
    assert program_data(make(found)) is None


def make(found: Screened) -> Any:
    """The offer of a screening."""
    from optimizer.offer import make_offer

    return make_offer(found)


def test_bounds_that_are_not_asked_for_are_infinite() -> None:
    bounds = screened(small()).bounds
    for name in ("tpot_ms", "ttft_ms", "latency_ms"):
        assert np.isinf(getattr(bounds, name)).all()
    assert math.isinf(bounds.vram_gib_per_accelerator)
    assert math.isinf(bounds.nvlink_cap_gb_s)
    assert bounds.accuracy == 0.99


def test_sequence_slots_hold_the_concurrency_of_each_rank() -> None:
    """The engine's own number where it is told one, else its default: 256 on cards below 70 GiB and on A100."""
    wide = {"schemes": ["w8a8-int8"], "tensor_parallel": [8], "max_concurrency": 4096}
    request = {"request": {"input_tokens": 20, "output_tokens": 20}}
    most = {}
    for name in ("l40s", "a100-80gb-sxm", "h100-80gb-sxm"):
        found = screened(small(choices={**wide, "accelerators": [name]}, workload=request))
        most[name] = int((found.concurrency / found.candidates.attention_data_parallel).max())
    assert most == {"l40s": 256, "a100-80gb-sxm": 256, "h100-80gb-sxm": 1024}
    for slots in (1, 7, 3000):
        told = {**wide, "accelerators": ["l40s"], "sequence_slots": slots}
        found = screened(small(choices=told, workload=request))
        assert int(found.concurrency.max()) == min(slots, 4096)
