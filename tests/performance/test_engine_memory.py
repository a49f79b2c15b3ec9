"""Engine families: versions, defaults, sources, and what they do to memory."""

from dataclasses import fields, replace

import pytest

from optimizer.performance.deployments import Traffic
from optimizer.performance.engine_memory import (
    EngineMemory,
    driver_shares,
    engine_families,
    engine_memory,
    is_newer_than_data,
    memory_document,
    memory_sources,
    parse_version,
)
from optimizer.performance.factors import ENGINES, GENERATIONS, TRUSTS, load_factors
from optimizer.performance.memory import adapters_gib, checkpoint_gib, memory_items, memory_report
from tests.performance import builders as b

CHAT = Traffic(4000, 192)
CARD = {**b.H100, "memory_gib": 79.65}


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("0.19.0", (0, 19, 0)),
        ("v0.11.0rc2", (0, 11, 0)),
        ("1.2.0rc6.post2", (1, 2, 0)),
        ("before 0.17", (0, 16, 999)),
        ("vLLM < 0.8", (0, 7, 999)),
        ("", ()),
        ("nightly", ()),
    ],
)
def test_versions(text: str, version: tuple[int, ...]) -> None:
    assert parse_version(text) == version


def test_every_engine_has_families_in_order() -> None:
    for engine in ENGINES:
        versions = [parse_version(one.from_version) for one in engine_families() if one.engine == engine]
        assert versions
        assert versions == sorted(versions)
        assert versions[0] == (0,)


def test_family_of_a_version() -> None:
    assert engine_memory("vllm", "0.16.0").sampler_bytes_per_entry == 36
    assert engine_memory("vllm", "0.17.0").sampler_bytes_per_entry == 12
    assert engine_memory("vllm", "before 0.17") == engine_memory("vllm", "0.16.2")
    assert engine_memory("vllm") == engine_memory("vllm", "nightly-2026") == engine_memory("vllm", "0.99")
    assert engine_memory("vllm", "0.21").memory_fraction == 0.92
    with pytest.raises(ValueError, match="unknown engine 'tgi'"):
        engine_memory("tgi")


def test_versions_newer_than_the_data_are_told() -> None:
    assert is_newer_than_data("vllm", "0.28.0")
    assert not is_newer_than_data("vllm", "0.27.3")
    assert not is_newer_than_data("generic", "7")
    assert not is_newer_than_data("vllm", "")


def test_every_constant_has_a_source() -> None:
    names = {source.name for source in memory_sources()}
    assert {field.name for field in fields(EngineMemory)} - {"engine", "from_version"} == names - {"driver_share"}
    assert all(source.trust in TRUSTS and source.source and source.unit for source in memory_sources())
    assert set(memory_document()["driver_share"]) - {"default"} <= set(GENERATIONS)


def test_constants_are_checked() -> None:
    family = engine_memory()
    with pytest.raises(ValueError, match="runtime_gib"):
        replace(family, runtime_gib=-1.0)
    with pytest.raises(ValueError, match="fractions"):
        replace(family, largest_memory_fraction=0.0)
    with pytest.raises(ValueError, match="unknown engine"):
        replace(family, engine="tgi")


def test_driver_leaves_less_than_the_card_has() -> None:
    assert driver_shares()[GENERATIONS.index("hopper")] * 79.65 == pytest.approx(79.18, abs=0.01)
    assert driver_shares()[GENERATIONS.index("cdna3")] == 1.0


def test_the_same_model_lost_three_gibibytes_between_two_versions() -> None:
    old, new = (
        memory_items(b.QWEN_14B, b.deploy(CARD), CHAT, load_factors(), engine=engine_memory("vllm", version))
        for version in ("0.16.0", "0.17.0")
    )
    assert new.pool_gib[0] - old.pool_gib[0] == pytest.approx(3.4, abs=0.05)


def test_traffic_names_the_engine_and_its_version() -> None:
    named = Traffic(4000, 192, engine="vllm", engine_version="0.16.0")
    by_traffic = memory_items(b.QWEN_14B, b.deploy(CARD), named, load_factors())
    by_family = memory_items(b.QWEN_14B, b.deploy(CARD), CHAT, load_factors(), engine=engine_memory("vllm", "0.16"))
    assert by_traffic.pool_gib[0] == by_family.pool_gib[0]


def test_small_cards_have_smaller_defaults() -> None:
    large = memory_report(b.LLAMA_8B, b.deploy(CARD), CHAT, load_factors())
    small = memory_report(b.LLAMA_8B, b.deploy(b.L40S), CHAT, load_factors())
    a100 = memory_report(b.LLAMA_8B, b.deploy(b.A100, memory_gib=80.0), CHAT, load_factors())
    assert large.sequence_slots[0] == 1024
    assert small.sequence_slots[0] == a100.sequence_slots[0] == 256
    assert small.items.activation_gib[0] < large.items.activation_gib[0]
    assert large.largest_concurrency[0] <= 1024


def test_mixed_cards_get_their_own() -> None:
    mixed = b.deploy(CARD, memory_gib=[79.65, 44.99])
    report = memory_report(b.LLAMA_8B, mixed, CHAT, load_factors())
    assert report.sequence_slots.tolist() == [1024, 256]


def test_slots_count_for_each_attention_data_parallel_rank() -> None:
    deployments = b.deploy(b.H100, attention_data_parallel=8, expert_parallel=8, weight_bytes=1.0, memory_gib=500.0)
    report = memory_report(b.DEEPSEEK_V3, deployments, Traffic(10, 10), load_factors())
    assert report.sequence_slots[0] == report.largest_concurrency[0] == 8 * 1024


def test_own_defaults_in_each_engines_own_sense() -> None:
    """SGLang: 1 - 12.9 GiB of reserve / card for weights and cache. TensorRT-LLM: 0.9 of what is free."""
    deployments = b.deploy(CARD)
    sglang, trtllm = (
        memory_report(b.LLAMA_8B, deployments, Traffic(4000, 192, engine=engine), load_factors())
        for engine in ("sglang", "trtllm")
    )
    reserve = (512 + 1.5 * 8192 + 2 * 256 + 128) / 1024
    driver = 79.65 * 0.9941
    static = (driver - 0.25) * (1 - reserve / 79.65)
    assert sglang.items.pool_gib[0] + sglang.items.weights_gib[0] == pytest.approx(static)
    assert trtllm.items.pool_gib[0] == pytest.approx(0.9 * (79.65 - trtllm.items.fixed_gib[0]))


def test_an_asked_fraction_bounds_everything_in_every_engine() -> None:
    for engine in ENGINES:
        report = memory_report(
            b.LLAMA_8B, b.deploy(CARD), Traffic(4000, 192, engine=engine), load_factors(), usable_memory_fraction=0.8
        )
        assert report.usable_gib[0] == pytest.approx(0.8 * 79.65)
        assert report.items.reserve_gib[0] == pytest.approx(0.8 * 0.0059 * 79.65)


def test_late_graphs_take_what_the_fraction_leaves() -> None:
    def pool(version: str, fraction: float) -> float:
        kind = engine_memory("vllm", version)
        items = memory_items(
            b.LLAMA_8B, b.deploy(CARD), CHAT, load_factors(), usable_memory_fraction=fraction, engine=kind
        )
        assert items.graphs_gib[0] == (kind.graph_gib if kind.graphs_inside else 0.0)
        return float(items.pool_gib[0])

    assert pool("0.19", 0.9) - pool("0.21", 0.9) == pytest.approx(0.5)
    # Nothing is left beside the fraction: the graphs come out of the cache.
    assert pool("0.19", 1.0) == pytest.approx(pool("0.21", 1.0))


def test_weights_that_are_not_the_text_models() -> None:
    plain, seeing = (
        memory_items(b.QWEN_32B, b.deploy(CARD), CHAT, load_factors(), extra_weights_gib=extra) for extra in (0.0, 1.3)
    )
    assert seeing.weights_gib[0] - plain.weights_gib[0] == pytest.approx(1.3)
    assert plain.pool_gib[0] - seeing.pool_gib[0] == pytest.approx(1.3)


def test_checkpoint_and_adapters() -> None:
    assert checkpoint_gib(b.LLAMA_8B) == pytest.approx(8_030_261_248 * 2 / 2**30)
    one = adapters_gib(b.LLAMA_70B, slots=1, rank=64, modules=("q", "v"))
    assert adapters_gib(b.LLAMA_70B, slots=32, rank=64, modules=("q", "v")) == pytest.approx(32 * one)
    assert adapters_gib(b.LLAMA_70B, slots=1, rank=64, modules=("q", "v"), tensor_parallel=8) == pytest.approx(one / 8)
    assert adapters_gib(b.LLAMA_70B, slots=1, rank=16, modules=("down",)) == pytest.approx(
        80 * 16 * (28672 + 8192) * 2 / 2**30
    )
    with pytest.raises(ValueError, match="unknown adapted matrix 'w1'"):
        adapters_gib(b.LLAMA_70B, slots=1, rank=8, modules=("w1",))


def test_memory_grows_with_degrees_of_nothing_but_weights_shrinks() -> None:
    degrees = [1, 2, 4, 8]
    items = memory_items(b.LLAMA_70B, b.deploy(CARD, tensor_parallel=degrees), CHAT, load_factors())
    assert (items.weights_gib[:-1] > items.weights_gib[1:]).all()
    assert (items.activation_gib[:-1] >= items.activation_gib[1:]).all()
    assert (items.communication_gib[:-1] <= items.communication_gib[1:]).all()
    assert (items.sequence_gib[:-1] >= items.sequence_gib[1:]).all()
