"""What engines refuse to start, with the reason, and what is known to run."""

from dataclasses import replace
from typing import Any

import pytest

from optimizer.performance.architecture import Architecture
from optimizer.performance.engine_memory import engine_memory
from optimizer.performance.layouts import RULES, check_layouts
from optimizer.performance.memory import MemoryReport
from tests.cases.build import catalog, model, report
from tests.cases.measured_layouts import MEASURED_LAYOUTS
from tests.performance.builders import dense

#: Bytes a weight and of attention by precision; gpt-oss and int4 checkpoints leave attention in 16 bits.
BYTES = {"bf16": 2.0, "unlabelled": 2.0, "fp8": 1.0012, "fp4": 0.5625, "int4": 0.5625}


def broken(architecture: Architecture, **degrees: Any) -> set[str]:
    given = {
        "tensor_parallel": 1, "pipeline_parallel": 1, "expert_parallel": 1, "attention_data_parallel": 1,
        "scale_up_domain": 8, "accelerators_per_host": 8, **degrees,
    }  # fmt: skip
    mask = int(check_layouts(architecture, **given))
    return {rule.name for rule in RULES if mask & rule.bit}


@pytest.mark.parametrize(
    ("case", "architecture", "degrees", "reason"),
    [
        # 18,432 / 32 = 576 is not a whole number of 128-wide blocks.
        ("INP-04", model("DeepSeek-V3"), {"tensor_parallel": 32, "quantization_block": 128}, "ffn_block"),
        ("INP-06", model("Llama-3.1-70B"), {"tensor_parallel": 3}, "heads"),
        ("INP-07", dense(48, 6656, 52, 52, 17920, 32000), {"tensor_parallel": 3}, "heads"),
        ("INP-08", model("Llama-2-13B"), {"tensor_parallel": 6}, "heads"),
        ("INP-10", model("Phi-2"), {"context_tokens": 8192}, "context"),
        # 1,536 / 8 = 192 (vLLM issue 17569): refused unless each expert stays whole.
        ("experts", model("Qwen3-235B-A22B"), {"tensor_parallel": 8, "quantization_block": 128}, "expert_block"),
        ("vision", model("Qwen2.5-72B"), {"tensor_parallel": 8, "vision_heads": 12}, "vision_heads"),
        # 14 heads of 64: half of 896 is not a whole number of groups of 128.
        (
            "groups",
            dense(24, 896, 14, 2, 4864, 151936),
            {"tensor_parallel": 2, "quantization_block": 128},
            "attention_block",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refused_with_the_reason(case: str, architecture: Architecture, degrees: dict[str, Any], reason: str) -> None:
    assert reason in broken(architecture, **degrees)


def test_the_same_models_run_otherwise() -> None:
    assert broken(model("DeepSeek-V3"), tensor_parallel=16, quantization_block=128, across_nodes=True) == set()
    assert broken(model("Llama-3.1-70B"), pipeline_parallel=3) == set()
    assert broken(model("Llama-2-13B"), tensor_parallel=2, pipeline_parallel=3) == set()
    assert broken(model("Phi-2"), context_tokens=2048) == set()
    eight = {"tensor_parallel": 8, "expert_parallel": 8, "quantization_block": 128}
    assert broken(model("Qwen3-235B-A22B"), **eight) == set()
    assert broken(model("Kimi-K2"), tensor_parallel=8, pipeline_parallel=2, quantization_block=128) == set()


def started(
    name: str, accelerator: str, precision: str, engine: str, layout: tuple[int, int, int, int], util: float | None
) -> MemoryReport:
    tensor, expert, data, longest = layout
    mxfp4 = "gpt-oss" in name
    weights = 4.25 / 8 if mxfp4 else BYTES[precision]
    return report(
        name, accelerator, context=longest, engine=engine, version="", util=util,
        tensor_parallel=tensor, expert_parallel=expert, attention_data_parallel=data, weight_bytes=weights,
        attention_weight_bytes=2.0 if mxfp4 or precision == "int4" else weights,
    )  # fmt: skip


@pytest.mark.parametrize("row", MEASURED_LAYOUTS, ids=lambda row: "-".join(row[:4]))
def test_what_ran_is_accepted_and_fits(row: tuple[str, str, str, str, tuple[tuple[int, int, int, int], ...]]) -> None:
    name, accelerator, precision, engine, layouts = row
    card = catalog().accelerators[accelerator]
    shape = catalog().models[catalog().resolve_model(name)]
    for layout in layouts:
        tensor, expert, data, longest = layout
        names = broken(
            model(name), tensor_parallel=tensor, expert_parallel=expert, attention_data_parallel=data,
            scale_up_domain=card.scale_up_domain, accelerators_per_host=card.accelerators_per_host,
            quantization_block=shape.native_block_width if precision == "fp8" else 1, context_tokens=longest,
            expert_quantization_block=1,
        )  # fmt: skip
        assert names == set(), layout
        # What an operator may ask for at most; defaults are tested below.
        found = started(name, accelerator, precision, engine, layout, engine_memory(engine).largest_memory_fraction)
        assert found.starts[0], layout


def test_only_terabyte_class_weights_on_four_cards_need_more_than_the_default() -> None:
    """DeepSeek in fp8 on four B200: 158 GiB of weights are 89 % of what the driver leaves.

    SGLang's own fraction (0.85 there) and any total of 0.90 refuse it; TensorRT-LLM's fraction bounds the cache
    alone, so that its default starts.
    """
    refused = set()
    for name, accelerator, precision, engine, layouts in MEASURED_LAYOUTS:
        for layout in layouts:
            found = started(name, accelerator, precision, engine, layout, None)
            if not found.starts[0]:
                refused.add((name, accelerator, precision, engine, layout[:3]))
                assert found.tight[0]
    assert refused == {("deepseek-ai/DeepSeek-R1", "b200-180gb-sxm", "fp8", "sglang", (4, 1, 1))}


def test_width_in_use_must_be_known() -> None:
    assert replace(model("Phi-2"), max_context_tokens=0).max_context_tokens == 0
    assert broken(replace(model("Phi-2"), max_context_tokens=0), context_tokens=8192) == set()
