"""Invariants of the step-time model."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from optimizer.performance.training import Layouts, TrainingAccelerator, TrainingModel, enumerate_layouts, predict_step
from optimizer.performance.training.step import StepPrediction
from tests.performance.training.cases import A100, H100, LLAMA_8B, LLAMA_70B, LLAMA_405B

MIXTURE = TrainingModel.from_parameters(235e9, 22e9)


def predict(
    model: TrainingModel, layouts: Layouts, accelerator: TrainingAccelerator = H100, **more: Any
) -> StepPrediction:
    setting: dict[str, Any] = {"sequence_length": 8192, "global_batch_tokens": 256 * 8192} | more
    return predict_step(model, layouts, accelerator, **setting)


def test_columns_are_rows_one_at_a_time() -> None:
    layouts = enumerate_layouts(MIXTURE, 256, sequence_length=8192, sequences=256)
    assert layouts is not None
    some = layouts.take(np.arange(0, layouts.size, max(layouts.size // 40, 1)))
    whole = predict(MIXTURE, some)
    for index in range(some.size):
        single = predict(MIXTURE, some.take(np.array([index])))
        for name in ("step_s", "memory_gib", "scale_up_gb_s", "scale_out_gb_s", "tflops_per_accelerator"):
            assert getattr(single, name)[0] == pytest.approx(getattr(whole, name)[index], rel=1e-12)


def test_blocks_do_not_show() -> None:
    layouts = enumerate_layouts(LLAMA_405B, 1024, sequence_length=8192, sequences=256)
    assert layouts is not None
    many = layouts.take(np.resize(np.arange(layouts.size), 20000))
    found = predict(LLAMA_405B, many).step_s
    assert np.array_equal(found, np.resize(predict(LLAMA_405B, layouts).step_s, 20000))


def test_parts_sum_to_the_step() -> None:
    for model in (LLAMA_70B, MIXTURE):
        layouts = enumerate_layouts(model, 128, sequence_length=8192, sequences=256)
        assert layouts is not None
        found = predict(model, layouts)
        assert np.allclose(sum(found.parts.values()), found.step_s)


def test_nothing_beats_the_peak() -> None:
    for model in (LLAMA_8B, LLAMA_405B, MIXTURE):
        for precision in ("bf16", "fp8"):
            layouts = enumerate_layouts(model, 256, sequence_length=8192, sequences=512)
            assert layouts is not None
            found = predict(model, layouts, precision=precision, global_batch_tokens=512 * 8192)
            assert np.all((found.mfu_fraction > 0) & (found.mfu_fraction < 0.9))
            assert np.all(found.low_s < found.step_s)
            assert np.all(found.step_s < found.high_s)


def test_the_bubble_is_the_textbooks() -> None:
    """(p - 1)/v of a stage's time, whatever the number of micro-batches (Narayanan et al. 2021)."""
    layouts = Layouts.of(tensor_parallel=8, pipeline_parallel=8, virtual_stages=[1, 2, 5, 10], data_parallel=2)
    bubble = predict(LLAMA_70B, layouts).parts["bubble"]
    assert bubble[0] / bubble == pytest.approx([1, 2, 5, 10])


def test_more_of_everything_takes_longer() -> None:
    base = {"tensor_parallel": 4, "pipeline_parallel": 4, "data_parallel": 4}
    again = predict(LLAMA_70B, Layouts.of(recompute=[0, 3, 2], **base)).step_s
    assert np.all(np.diff(again) > 0)
    batches = [
        predict(LLAMA_70B, Layouts.of(**base), global_batch_tokens=n * 8192).step_s[0] for n in (64, 128, 256, 512)
    ]
    assert np.all(np.diff(batches) > 0)
    faster = predict(LLAMA_70B, Layouts.of(**base), precision="fp8").step_s
    assert faster[0] < predict(LLAMA_70B, Layouts.of(**base)).step_s[0]
    assert (
        predict(LLAMA_70B, Layouts.of(**base), A100).step_s[0] > 1.5 * predict(LLAMA_70B, Layouts.of(**base)).step_s[0]
    )


def test_weak_scaling_loses_a_little() -> None:
    """Recipes lose 0-10 % from 64 to 2,048 accelerators."""
    small, large = (
        predict(
            LLAMA_70B,
            Layouts.of(tensor_parallel=4, pipeline_parallel=4, virtual_stages=5, context_parallel=2, data_parallel=d),
            global_batch_tokens=64 * d * 8192,
        ).step_s[0]
        for d in (2, 64)
    )
    assert 1.0 <= large / small < 1.1


def test_interleaving_leaves_time_to_reduce_gradients() -> None:
    """With p micro-batches a chunk, the first chunk's gradients are whole long before the step's end."""
    layouts = Layouts.of(tensor_parallel=8, pipeline_parallel=16, virtual_stages=[1, 8], data_parallel=128)
    data = predict(LLAMA_405B, layouts, global_batch_tokens=2048 * 8192).parts["data"]
    assert data[1] < 0.7 * data[0]


def test_traffic_by_hand() -> None:
    """Tensor parallelism sends 4 (t - 1)/t x 2 bytes x tokens x hidden a layer and micro-batch, all inside a server."""
    layout = Layouts.of(tensor_parallel=8, data_parallel=1, zero_stage=0)
    found = predict(LLAMA_8B, layout, global_batch_tokens=64 * 8192)
    expected = 4 * 7 / 8 * 2 * 8192 * 4096 * 32 * 64
    assert found.scale_up_gb_s[0] * found.step_s[0] * 1e9 == pytest.approx(expected)
    assert found.scale_out_gb_s[0] == 0
    wide = predict(LLAMA_8B, Layouts.of(tensor_parallel=1, data_parallel=64), global_batch_tokens=64 * 8192)
    assert wide.scale_out_gb_s[0] > 0


def test_a_format_that_hardware_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="no matrix units"):
        predict(LLAMA_8B, Layouts.of(), A100, precision="fp8")
    with pytest.raises(ValueError, match="unknown training precision"):
        predict(LLAMA_8B, Layouts.of(), precision="fp7")


def test_layouts_that_mean_nothing_are_refused() -> None:
    for wrong in ({"tensor_parallel": 0}, {"zero_stage": 4}, {"recompute": 9}, {"sequence_parallel": 2}):
        with pytest.raises(ValueError):
            Layouts.of(**wrong)


@pytest.mark.parametrize(
    ("model", "accelerators", "sequence"), [(LLAMA_8B, 16, 32768), (LLAMA_70B, 64, 2048), (MIXTURE, 256, 2048)]
)
def test_every_enumerated_layout_divides(model: TrainingModel, accelerators: int, sequence: int) -> None:
    layouts = enumerate_layouts(model, accelerators, sequence_length=sequence, sequences=256)
    assert layouts is not None
    assert np.all(layouts.accelerators == accelerators)
    found = predict(model, layouts, sequence_length=sequence, global_batch_tokens=256 * sequence)
    assert np.all(found.divides)
    for field in fields(StepPrediction):
        column = getattr(found, field.name)
        if isinstance(column, np.ndarray) and column.dtype == np.float64:
            assert np.all(np.isfinite(column)), field.name


def test_evidence_widens_bands() -> None:
    layout = Layouts.of(tensor_parallel=4, pipeline_parallel=4, data_parallel=4)
    known, other = (predict(LLAMA_70B, layout, stack=stack) for stack in ("NeMo 25.04", "nobody's"))
    assert (known.evidence, other.evidence) == ("stack", "accelerator")
    assert known.high_s[0] / known.step_s[0] <= other.high_s[0] / other.step_s[0]
    odd = TrainingAccelerator("own", "hopper", 80.0, 3000, 900, 1800, 0, 450, 8, 50)
    assert predict(LLAMA_70B, layout, odd).evidence == "none"
