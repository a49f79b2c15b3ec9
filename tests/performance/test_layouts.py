"""What engines refuse to start, as users met it, and what is known to run."""

from typing import Any

import numpy as np
import pytest

from optimizer.performance.architecture import Architecture
from optimizer.performance.layouts import RULES, check_layouts, enumerate_layouts, reasons_of
from tests.performance import builders as b


def broken(model: Architecture, **degrees: Any) -> set[str]:
    given = {
        "tensor_parallel": 1, "pipeline_parallel": 1, "expert_parallel": 1, "attention_data_parallel": 1,
        "scale_up_domain": 8, "accelerators_per_host": 8, **degrees,
    }  # fmt: skip
    mask = int(check_layouts(model, **given))
    return {rule.name for rule in RULES if mask & rule.bit}


def test_refused() -> None:
    assert "heads" in broken(b.LLAMA_70B, tensor_parallel=3)
    assert "heads" in broken(b.dense(40, 5120, 40, 40, 13824, 32000), tensor_parallel=6)
    assert broken(b.PHI_4, tensor_parallel=4) == {"kv_heads"}
    assert broken(b.LLAMA_8B, pipeline_parallel=33) == {"layers"}
    # 18432 / 32 = 576 is not a whole number of 128-wide blocks, though 128 heads divide by 32.
    found = broken(b.DEEPSEEK_V3, tensor_parallel=32, quantization_block=128, across_nodes=True)
    assert "ffn_block" in found
    assert "heads" not in found
    assert broken(b.QWEN_235B, tensor_parallel=8, quantization_block=128) == {"expert_block"}
    assert broken(b.LLAMA_70B, tensor_parallel=16) == {"scale_up_domain"}
    assert broken(b.LLAMA_70B, attention_data_parallel=2) == {"attention_data"}
    assert broken(b.LLAMA_70B, tensor_parallel=2, expert_parallel=2) == {"no_experts"}
    assert "experts" in broken(b.MIXTRAL, tensor_parallel=16, expert_parallel=16, across_nodes=True)
    assert "expert_group" in broken(b.QWEN_235B, tensor_parallel=2, expert_parallel=4)
    assert "degrees" in broken(b.LLAMA_8B, tensor_parallel=0)


@pytest.mark.parametrize(
    ("model", "degrees"),
    [
        (b.LLAMA_70B, {"tensor_parallel": 8, "pipeline_parallel": 2}),
        (b.LLAMA_70B, {"pipeline_parallel": 3}),
        (b.QWEN_235B, {"tensor_parallel": 8}),  # 4 KV heads, copied
        (b.DEEPSEEK_V3, {"tensor_parallel": 8, "quantization_block": 128}),
        (b.DEEPSEEK_V3, {"attention_data_parallel": 8, "expert_parallel": 8, "quantization_block": 128}),
        (b.DEEPSEEK_V3, {"tensor_parallel": 4, "expert_parallel": 4}),
        (b.GPT_OSS_120B, {"tensor_parallel": 8}),
        (b.QWEN_235B, {"tensor_parallel": 8, "quantization_block": 128, "expert_quantization_block": 1}),
        (b.QWEN_235B, {"tensor_parallel": 8, "expert_parallel": 8, "quantization_block": 128}),
        (b.LLAMA_70B, {"tensor_parallel": 8, "scale_up_domain": 1}),  # cards on PCIe in one host
        (b.LLAMA_70B, {"tensor_parallel": 16, "scale_up_domain": 72, "accelerators_per_host": 4}),
        (b.LLAMA_70B, {"tensor_parallel": 16, "across_nodes": True}),
    ],
)
def test_known_to_run(model: Architecture, degrees: dict[str, Any]) -> None:
    assert broken(model, **degrees) == set()


def test_linear_heads_must_divide_or_be_copied() -> None:
    model = b.dense(48, 2048, 32, 2, 5120, 1000, linear_layers=36, linear_key_heads=16, linear_value_heads=24)
    assert broken(model, tensor_parallel=8) == set()
    assert broken(model, tensor_parallel=16) == {"linear_heads", "scale_up_domain"}


def test_reasons_are_sentences() -> None:
    assert reasons_of(0) == ()
    assert reasons_of(1 | 4) == (RULES[0].sentence, RULES[2].sentence)
    assert len({rule.bit for rule in RULES}) == len(RULES)


def test_enumeration_keeps_order_and_masks() -> None:
    found = enumerate_layouts(
        b.DEEPSEEK_V3, scale_up_domain=8, accelerators_per_host=8, tensor_parallel=(1, 8), pipeline_parallel=(1, 2),
        expert_parallel=(1, 8), attention_data_parallel=(1, 8),
    )  # fmt: skip
    assert found.mask.shape == (16,)
    assert np.array_equal(found.width, found.tensor_parallel * found.pipeline_parallel * found.attention_data_parallel)
    starts = found.mask == 0
    assert starts.any()
    assert not starts.all()
    # One by one the rules say the same.
    for row in range(16):
        alone = check_layouts(
            b.DEEPSEEK_V3,
            tensor_parallel=found.tensor_parallel[row],
            pipeline_parallel=found.pipeline_parallel[row],
            expert_parallel=found.expert_parallel[row],
            attention_data_parallel=found.attention_data_parallel[row],
            scale_up_domain=8,
            accelerators_per_host=8,
        )
        assert int(alone) == found.mask[row]
