"""Units of prefill and decode replicas: the physics of two pools, balanced, at any concurrency."""

import numpy as np
import pytest

from optimizer.performance.confidence import ConfidentPrepared, at_confidence, band_multipliers
from optimizer.performance.deployments import Traffic
from optimizer.performance.factors import GENERATIONS, load_factors
from optimizer.performance.joined import Joined
from optimizer.performance.roles import MOST_BUSY_FRACTION, UnitPrepared, prepare_prompts, prepare_units
from optimizer.performance.search import highest_admissible_concurrency
from optimizer.performance.serving import prepare
from optimizer.performance.two_pools import two_pools
from tests.performance import builders as b

FACTORS = load_factors()
TRAFFIC = Traffic(4096, 512, engine="vllm")
LAYOUTS = b.deploy(b.H100, tensor_parallel=[2, 4, 8])


def units(utilization: float = 0.9, **counts: int) -> UnitPrepared:
    """Prefill on each of the layouts, decode on tensor parallel 4."""
    return prepare_units(
        b.LLAMA_70B,
        LAYOUTS,
        TRAFFIC,
        FACTORS,
        plain=prepare(b.LLAMA_70B, LAYOUTS, TRAFFIC, FACTORS),
        prompts=prepare_prompts(b.LLAMA_70B, LAYOUTS, TRAFFIC, FACTORS, None),
        prefill_rows=np.array([0, 1, 2]),
        decode_rows=np.array([1, 1, 1]),
        prefill_replicas=np.full(3, counts.get("prefill", 1)),
        decode_replicas=np.full(3, counts.get("decode", 1)),
        utilization=utilization,
    )


@pytest.mark.parametrize("load", [1.0, 16.0, 128.0])
def test_a_unit_is_a_pair_of_pools(load: float) -> None:
    """TTFT, TPOT and transfer are those of ``two_pools`` at the busy share that the unit's own rate gives."""
    unit = units(prefill=2, decode=3)
    seen = unit.at(load)
    full = 2 * unit.prefill_requests_per_s
    pair = two_pools(
        b.LLAMA_70B,
        TRAFFIC,
        FACTORS,
        prefill=prepare(b.LLAMA_70B, LAYOUTS, TRAFFIC, FACTORS),
        decode=prepare(b.LLAMA_70B, LAYOUTS.take(np.array([1, 1, 1])), TRAFFIC, FACTORS),
        decode_deployments=LAYOUTS.take(np.array([1, 1, 1])),
        prefill_deployments=LAYOUTS,
        concurrency=load,
        prefill_busy_fraction=0.9 * seen.requests_per_s / full,
    )
    assert seen.ttft_ms == pytest.approx(pair.ttft_ms, rel=1e-12)
    assert seen.tpot_ms == pytest.approx(pair.tpot_ms, rel=1e-12)
    assert unit.transfer_ms == pytest.approx(pair.transfer_ms, rel=1e-12)
    assert np.all(seen.requests_per_s <= 3 * pair.decode_requests_per_s * (1 + 1e-12))


def test_both_roles_carry_what_the_unit_carries() -> None:
    for utilization in (0.5, 0.9, 1.0):
        unit = units(utilization)
        for load in (1.0, 8.0, 64.0, 512.0):
            busy = utilization * unit.at(load).requests_per_s / unit.prefill_requests_per_s
            assert np.all(busy <= MOST_BUSY_FRACTION + 1e-12)
    assert np.all(units(prefill=4).at(512.0).requests_per_s >= units(prefill=1).at(512.0).requests_per_s)
    assert np.all(units(decode=4).at(1.0).requests_per_s > units(decode=1).at(1.0).requests_per_s)


def test_more_load_is_never_faster_and_never_carries_less() -> None:
    unit = units()
    seen = [unit.at(load) for load in (1.0, 4.0, 16.0, 64.0, 256.0)]
    for name in ("ttft_ms", "tpot_ms", "latency_ms", "requests_per_s", "total_gib", "kv_link_gb_s"):
        assert np.all(np.diff([getattr(one, name) for one in seen], axis=0) >= -1e-12), name


def test_the_link_carries_every_prompt_once() -> None:
    unit = units(prefill=2, decode=1)
    seen = unit.at(64.0)
    sent = seen.requests_per_s * 80 * 2 * 8 * 128 * 2 * 4096 / 1e9
    ends = np.minimum(2 * np.array([2, 4, 8]), 4)
    assert seen.kv_link_gb_s == pytest.approx(sent / ends, rel=1e-12)
    assert np.all(prepare(b.LLAMA_70B, LAYOUTS, TRAFFIC, FACTORS).at(64.0).kv_link_gb_s == 0.0)


def test_no_unit_where_prompts_do_not_fit() -> None:
    """The weights of a prefill replica on one accelerator leave no room: no concurrency is admissible."""
    narrow = b.deploy(b.H100, tensor_parallel=[1, 8])
    rows = {"prefill_rows": np.array([0, 1]), "decode_rows": np.array([1, 1])}
    ones = np.ones(2, dtype=np.int64)
    unit = prepare_units(
        b.LLAMA_70B,
        narrow,
        TRAFFIC,
        FACTORS,
        plain=prepare(b.LLAMA_70B, narrow, TRAFFIC, FACTORS),
        prompts=prepare_prompts(b.LLAMA_70B, narrow, TRAFFIC, FACTORS, None),
        **rows,
        prefill_replicas=ones,
        decode_replicas=ones,
        utilization=0.9,
    )
    found = highest_admissible_concurrency(unit, tpot_ms=50.0)
    assert found[0] == 0
    assert found[1] > 0


def test_joined_rows_are_those_of_their_parts() -> None:
    plain = prepare(b.LLAMA_70B, LAYOUTS, TRAFFIC, FACTORS)
    both = Joined.of(plain, units())
    rows, loads = np.array([4, 0, 2, 3]), np.array([8.0, 2.0, 4.0, 16.0])
    seen = both.take(rows).at(loads)
    for place, (row, load) in enumerate(zip(rows, loads, strict=True)):
        own = plain.at(load) if row < 3 else units().at(load)
        assert seen.ttft_ms[place] == own.ttft_ms[row % 3]
        assert seen.kv_link_gb_s[place] == own.kv_link_gb_s[row % 3]
    expected = np.concatenate((plain.largest_concurrency, units().largest_concurrency))
    assert both.largest_concurrency == pytest.approx(expected)
    assert both.size == 6


def test_nothing_measured_stands_behind_a_unit() -> None:
    """Its band is the widest, whatever model and card; at a confidence it is slower than a replica's quantile."""
    index = np.full(3, GENERATIONS.index("hopper"))
    known = at_confidence(units(), model="Llama-3.1-70B", engine="vllm", generation_index=index, confidence=0.9)
    assert isinstance(known, ConfidentPrepared)
    assert np.all(known.at(8.0).tpot_ms >= units().at(8.0).tpot_ms)
    assert band_multipliers("Llama-3.1-70B", "vllm", int(index[0]), two_roles=True).evidence == "none"
