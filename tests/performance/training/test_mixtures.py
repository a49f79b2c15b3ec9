"""What is particular to steps of mixtures: traffic of experts, latent attention, fused kernels."""

from dataclasses import replace

import pytest

from optimizer.calibration.training.names import resolve_model
from optimizer.catalog import load_catalog
from optimizer.performance.training import Layouts, TrainingAccelerator, TrainingModel, predict_step
from optimizer.performance.training.constants import load_calibration
from tests.performance.training.cases import LLAMA_70B

B200 = TrainingAccelerator("b200-180gb-sxm", "blackwell", 180.0, 7700, 2250, 4500, 9000, 900, 8, 50, 64, 1000)
MIXTURE = TrainingModel.from_parameters(235e9, 22e9)
#: The same with values half as wide as queries.
LATENT = replace(MIXTURE, score_width=0.75 * MIXTURE.score_width)


def part(model: TrainingModel, name: str, layouts: Layouts, stack: str = "", precision: str = "bf16") -> list[float]:
    """Seconds of one part of the step, without effects."""
    plain = replace(load_calibration(), effects={level: {} for level in load_calibration().effects})
    found = predict_step(
        model,
        layouts,
        B200,
        sequence_length=4096,
        global_batch_tokens=4096 * 4096,
        precision=precision,
        stack=stack,
        calibration=replace(plain, unknown_stack={"dense": 0.0, "moe": 0.0}),
    )
    return [float(one) for one in found.parts[name]]


def layouts(expert: int, virtual: tuple[int, ...], pipeline: int = 8, micro_batch: int = 1) -> Layouts:
    return Layouts.of(
        pipeline_parallel=pipeline,
        virtual_stages=list(virtual),
        data_parallel=256 // pipeline,
        expert_parallel=expert,
        micro_batch=micro_batch,
    )


def test_models_with_latent_attention_are_known() -> None:
    catalog = load_catalog()
    latent = {
        name: found.has_narrow_values
        for name in ("DeepSeek-V3 671B", "Kimi K2 1T", "Qwen3 235B-A22B", "GPT-OSS 120B", "Llama 4 Maverick 400B")
        if (found := resolve_model(catalog, name)) is not None
    }
    assert [name for name, narrow in latent.items() if narrow] == ["DeepSeek-V3 671B", "Kimi K2 1T"]
    assert not LLAMA_70B.has_narrow_values
    assert len(latent) >= 4


def test_interleaved_stages_overlap_traffic_across_domains_only() -> None:
    """A part of what shows across servers of 8 is hidden; nothing of what stays inside them."""
    factor = load_calibration().factors.expert_interleaved_factor
    assert 0.2 < factor < 1.0

    def shown(expert: int) -> list[float]:
        """Over the products' time, because chunks round the layers of a stage up."""
        layout = layouts(expert, (1, 4))
        return [a / b for a, b in zip(part(MIXTURE, "expert", layout), part(MIXTURE, "matrix", layout), strict=True)]

    inside, inside_virtual = shown(8)
    assert inside_virtual == pytest.approx(inside)
    outside, outside_virtual = shown(32)
    assert factor * outside < outside_virtual < outside


def test_latent_attention_was_not_fused_on_blackwell_until_mid_2025() -> None:
    layout = layouts(8, (1,))
    (before,), (after,) = (
        part(LATENT, "attention", layout, stack) for stack in ("NeMo 25.05", "Megatron-Bridge 25.09")
    )
    assert before > 3 * after
    plain_before, plain_after = (
        part(MIXTURE, "attention", layout, stack)[0] for stack in ("NeMo 25.05", "Megatron-Bridge 25.09")
    )
    assert plain_before == pytest.approx(plain_after, rel=0.05)
    # Other software of that time had kernels of its own.
    assert part(LATENT, "attention", layout, "DeepSeek HAI-LLM (DualPipe)")[0] == pytest.approx(after, rel=0.05)


def test_fused_experts_need_a_micro_batch_of_one_with_latent_attention() -> None:
    """A micro-batch of two takes twice the products' time and, of latent attention, loses the fused kernel."""

    def ratio(model: TrainingModel) -> float:
        one, two = (
            part(model, "elementwise", layouts(8, (1,), micro_batch=size), "Megatron-Bridge 26.06", "mxfp8")[0]
            for size in (1, 2)
        )
        return two / one

    assert ratio(LATENT) > 1.1 * ratio(MIXTURE)
