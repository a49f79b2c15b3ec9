"""Goodput and whole runs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.performance.training import checkpoint_write_s, goodput, mtbf_hours, production_factor, run_days


def test_the_worked_example_of_llama_3() -> None:
    """3.8 failures per 1,000 nodes of 8 and day, 10 min to restart, 1 min blocked every 19 min: 0.84."""
    found = goodput(
        16384,
        mtbf_accelerator_hours=8 * 24 / 3.8e-3,
        checkpoint_blocking_s=60,
        checkpoint_interval_s=19 * 60,
        restart_s=600,
    )
    assert found.goodput_fraction[0] == pytest.approx(0.84, abs=0.005)
    assert found.mtbf_s[0] / 3600 == pytest.approx(3.1, abs=0.05)


def test_defaults_give_what_the_report_says() -> None:
    assert goodput(16384).goodput_fraction[0] == pytest.approx(0.90, abs=0.01)


@settings(max_examples=40, deadline=None)
@given(st.integers(8, 100_000), st.floats(0.5, 600.0), st.floats(0.2, 5.0))
def test_the_interval_of_young_is_best(accelerators: int, blocking: float, factor: float) -> None:
    best = goodput(accelerators, checkpoint_blocking_s=blocking)
    other = goodput(
        accelerators,
        checkpoint_blocking_s=blocking,
        checkpoint_interval_s=factor * best.checkpoint_interval_s,
    )
    assert other.goodput_fraction[0] <= best.goodput_fraction[0] + 1e-12


def test_more_accelerators_lose_more_and_replicas_save() -> None:
    plain = goodput([1024, 8192, 65536]).goodput_fraction
    assert np.all(np.diff(plain) < 0)
    assert goodput(65536, fault_tolerant_replicas=8).goodput_fraction[0] > plain[-1]


def test_spares() -> None:
    """Against the Poisson probability that more nodes are out than there are spares."""
    few = [goodput(4096, spare_nodes=spares).goodput_fraction[0] for spares in (0, 1, 2, 10)]
    assert np.all(np.diff(few) > 0)
    assert few[-1] == pytest.approx(goodput(4096).goodput_fraction[0], abs=1e-6)
    mean = 0.37 * 24.0 / (50677.0 / 4096)
    lost = goodput(4096).goodput_fraction[0] - few[0]
    assert lost == pytest.approx(1 - np.exp(-mean), rel=1e-9)


def test_shares_sum_to_one() -> None:
    found = goodput([1000, 20000])
    total = found.goodput_fraction + found.checkpoint_fraction + found.lost_work_fraction + found.restart_fraction
    assert np.allclose(total, 1.0)


def test_days_by_hand() -> None:
    found = run_days(
        8.0, tokens=1e12, global_batch_tokens=4e6, accelerators=6144, goodput_fraction=0.8, production_factor=1.25
    )
    assert found.days[0] == pytest.approx(250_000 * 8.0 * 1.25 / 0.8 / 86400)
    assert found.accelerator_hours[0] == pytest.approx(found.days[0] * 24 * 6144)
    assert found.low_days[0] < found.days[0] < found.high_days[0]


def test_checkpoints_of_published_runs() -> None:
    """BLOOM: 2.3 TB in 40 s."""
    assert checkpoint_write_s(176e9, 58.0) == pytest.approx(40.0, rel=0.05)
    with pytest.raises(ValueError):
        checkpoint_write_s(1e9, 0.0)


def test_failures_by_accelerator() -> None:
    assert mtbf_hours("h100-80gb-sxm", "hopper") == pytest.approx(16384 * 54 * 24 / 419, rel=0.001)
    assert mtbf_hours("h200-141gb-sxm", "hopper") < mtbf_hours("h100-80gb-sxm", "hopper")
    assert mtbf_hours("mi300x", "cdna3") == mtbf_hours("h100-80gb-sxm", "hopper")


def test_runs_take_longer_than_recipes() -> None:
    for kind in ("dense", "moe"):
        for generation in ("ampere", "hopper", "blackwell"):
            found = production_factor(kind, generation)
            assert 1.0 <= found.factor < 2.5
            assert found.low < 1.0 < found.high
    assert production_factor("dense", "hopper", measured=True).factor < production_factor("dense", "hopper").factor
