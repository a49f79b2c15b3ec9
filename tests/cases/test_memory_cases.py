"""Every memory and cache case that rests on a model's shape, within its tolerance."""

from typing import Any

import pytest

from tests.cases.build import model, on, report
from tests.cases.memory_cases import CASES, EXEMPT, FP8, HYBRID_27B, INT4_32, QWEN_VL_TOWER, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case_within_its_tolerance(case: Case) -> None:
    assert case.call() == pytest.approx(case.value, rel=case.tolerance_percent / 100 + 1e-9), case.source


def test_no_case_is_both_tested_and_exempt() -> None:
    ids = [case.id for case in CASES]
    assert len(set(ids)) == len(ids)
    assert not set(ids) & set(EXEMPT)


def test_verdict_weights_alone_fill_the_card() -> None:
    # MEM-15: 78 GiB of weights on a card that leaves 79.2.
    found = report("DeepSeek-V3", "h800-80gb-sxm", util=0.98, tensor_parallel=8, **FP8)
    assert found.tight[0]
    assert not found.starts[0]


def test_verdict_long_context_of_a_copied_latent() -> None:
    # MEM-19: one request of 128k beside a terabyte of weights on eight H200.
    found = report("Kimi-K2", "h200-141gb-sxm", context=131072, util=0.9, tensor_parallel=8, **FP8)
    assert not found.starts[0]
    short = report("Kimi-K2", "h200-141gb-sxm", context=8192, util=0.95, tensor_parallel=8, **FP8)
    assert short.starts[0]


def test_verdict_vision_tower_takes_the_last_gibibyte() -> None:
    # MEM-24: loads on four 40 GB cards, but nothing useful is left.
    tower = QWEN_VL_TOWER * 2 / 4 / 2**30
    found = report("Qwen2.5-72B", "a100-40gb-sxm", util=0.9, version="0.8.2", tensor_parallel=4, extra_gib=tower)
    assert not found.starts[0]


def test_verdict_two_nodes_of_eight() -> None:
    # MEM-54, MEM-55, INP-17: tensor parallel inside, pipeline across.
    layout: dict[str, Any] = {"tensor_parallel": 8, "pipeline_parallel": 2}
    assert report("GLM-5", context=8192, **layout, **FP8).starts[0]
    assert report("Kimi-K2.5", context=131072, **layout, **INT4_32).starts[0]
    assert report("Kimi-K2", context=32768, util=0.9, **layout, **FP8).starts[0]
    assert not report("Kimi-K2", context=32768, util=0.9, tensor_parallel=8, **FP8).starts[0]


def test_verdict_state_bounds_the_sequences_of_hybrids() -> None:
    # KV-21: 1,024 sequences are refused; the state of each one stays whatever its length.
    found = report(HYBRID_27B, version="0.21", util=0.92, context=4096)
    assert found.state_gib_per_sequence[0] * 1024 > found.items.pool_gib[0]
    assert found.largest_concurrency[0] < 1024


def test_verdict_cache_is_charged_by_stage() -> None:
    # KV-27: a stage holds the cache of its own layers.
    one, two = (report("Llama-3.1-8B", pipeline_parallel=stages).items.sequence_gib[0] for stages in (1, 2))
    assert two == pytest.approx(one / 2)


def test_verdict_head_width_is_read() -> None:
    # MEM-47: hidden over heads would be 160, and 45 for gpt-oss-20b.
    assert model("Mistral-Small-24B").hidden_size // model("Mistral-Small-24B").attention_heads == 160
    assert model("gpt-oss-20b").head_dim == 64


def test_memory_columns_are_the_catalogues() -> None:
    assert on("h100-80gb-sxm").memory_gib[0] == pytest.approx(79.65)
