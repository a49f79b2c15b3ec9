"""Memory of training against published totals and measured peaks."""

import numpy as np
import pytest

from optimizer.performance.training import Layouts, TrainingModel
from optimizer.performance.training.memory import FRAGMENTATION_FACTOR, can_fit, memory_use
from tests.performance.training.cases import GPT_175B, LLAMA_8B, LLAMA_70B, LLAMA_405B, gpt

#: GB of the sources over GiB of the model.
GB = 1e9 / 2**30

#: Korthikanti et al. 2022, figure 1: layers, hidden, heads, t, p, v, b; GiB of states, and of activations without
#: recomputation and with sequence parallelism and selective recomputation.
KORTHIKANTI = [
    (48, 6144, 64, 8, 1, 1, 4, 45.56, 59.25, 9.56),
    (96, 12288, 96, 8, 8, 3, 1, 45.56, 66.84, 12.35),
    (105, 20480, 128, 8, 35, 3, 1, 31.64, 114.02, 23.08),
    (128, 25600, 160, 8, 64, 1, 1, 32.96, 131.25, 26.56),
]


@pytest.mark.parametrize(("layers", "hidden", "heads", "t", "p", "v", "b", "states", "plain", "lean"), KORTHIKANTI)
def test_published_activations_are_met(
    layers: int, hidden: int, heads: int, t: int, p: int, v: int, b: int, states: float, plain: float, lean: float
) -> None:
    model = gpt(layers, hidden, heads)

    def activations(recompute: int, parallel: int) -> float:
        layout = Layouts.of(
            tensor_parallel=t,
            pipeline_parallel=p,
            virtual_stages=v,
            micro_batch=b,
            zero_stage=0,
            recompute=recompute,
            sequence_parallel=parallel,
        )
        use = memory_use(
            model,
            layout,
            sequence_length=2048,
            micro_batches=np.array([256.0]),
            optimizer_state="adam",
            keeps_scores=True,
        )
        assert use.states_gib[0] / FRAGMENTATION_FACTOR == pytest.approx(states, rel=0.09)
        return float(use.activations_gib[0] / FRAGMENTATION_FACTOR)

    assert activations(0, 0) == pytest.approx(plain, rel=0.001)
    assert activations(1, 1) == pytest.approx(lean, rel=0.001)


_B200 = gpt(80, 14400, 80, 50304)
_B181 = gpt(72, 14336, 112, 50304)
#: BigScience 2022 (DeepSpeed, everything recomputed): model, p, d, b, ZeRO stage, measured peak in GB.
BIGSCIENCE = [
    (_B200, 10, 1, 1, 1, 73),
    (_B200, 10, 2, 1, 1, 51),
    (_B200, 10, 4, 1, 1, 35),
    (_B200, 10, 4, 2, 1, 43),
    (_B200, 10, 4, 4, 1, 55),
    (_B200, 10, 4, 8, 1, 76),
    (_B181, 12, 4, 1, 1, 29),
    (_B181, 12, 4, 4, 1, 49),
    (_B181, 12, 4, 8, 1, 69),
    (_B181, 6, 8, 4, 1, 56),
    (_B181, 12, 4, 2, 0, 72),
    (_B181, 12, 4, 2, 1, 37),
]


@pytest.mark.parametrize(("model", "p", "d", "b", "zero", "peak_gb"), BIGSCIENCE)
def test_measured_peaks_of_bigscience(model: TrainingModel, p: int, d: int, b: int, zero: int, peak_gb: float) -> None:
    layout = Layouts.of(
        tensor_parallel=8,
        pipeline_parallel=p,
        data_parallel=d,
        micro_batch=b,
        zero_stage=zero,
        recompute=2,
        sequence_parallel=0,
    )
    use = memory_use(
        model,
        layout,
        sequence_length=2048,
        micro_batches=np.array([256.0]),
        optimizer_state="adam_two_gradients",
        keeps_scores=True,
    )
    assert use.total_gib[0] == pytest.approx(peak_gb * GB, rel=0.25)


#: torchtitan's tables on H100 of 96 GB: model, layout, sequence, micro-batches, measured peak in GiB (compiled).
TORCHTITAN = [
    (LLAMA_8B, {"data_parallel": 8, "micro_batch": 2, "recompute": 3}, 8192, 1, 77.0),
    (LLAMA_8B, {"data_parallel": 128, "micro_batch": 2, "recompute": 3}, 8192, 1, 62.0),
    (LLAMA_70B, {"tensor_parallel": 8, "data_parallel": 32, "micro_batch": 16, "recompute": 2}, 8192, 1, 71.9),
    (
        LLAMA_405B,
        {"tensor_parallel": 8, "pipeline_parallel": 8, "data_parallel": 8, "recompute": 2},
        8192,
        32,
        82.5,
    ),
    (
        LLAMA_405B,
        {"tensor_parallel": 8, "pipeline_parallel": 8, "virtual_stages": 2, "data_parallel": 8, "recompute": 2},
        8192,
        32,
        72.7,
    ),
    (
        LLAMA_405B,
        {"tensor_parallel": 8, "pipeline_parallel": 8, "context_parallel": 8, "recompute": 2},
        262144,
        8,
        84.9,
    ),
]


@pytest.mark.parametrize(("model", "layout", "sequence", "micro", "peak_gib"), TORCHTITAN)
def test_measured_peaks_of_torchtitan(
    model: TrainingModel, layout: dict[str, int], sequence: int, micro: int, peak_gib: float
) -> None:
    use = memory_use(
        model, Layouts.of(zero_stage=3, **layout), sequence_length=sequence, micro_batches=np.array([float(micro)])
    )
    assert use.total_gib[0] == pytest.approx(peak_gib, rel=0.25)


def test_sharding_and_recomputation_save_memory() -> None:
    layouts = Layouts.of(
        tensor_parallel=8, pipeline_parallel=8, data_parallel=8, zero_stage=[0, 1, 2], recompute=[0, 0, 0]
    )
    total = memory_use(GPT_175B, layouts, sequence_length=2048, micro_batches=np.full(3, 64.0)).total_gib
    assert np.all(np.diff(total) < 0)
    again = Layouts.of(tensor_parallel=8, pipeline_parallel=8, recompute=[0, 3, 2])
    assert np.all(
        np.diff(memory_use(GPT_175B, again, sequence_length=2048, micro_batches=np.full(3, 64.0)).activations_gib) < 0
    )


def test_what_nobody_can_run() -> None:
    one, many = (Layouts.of(tensor_parallel=8, data_parallel=d, zero_stage=1, recompute=2) for d in (1, 64))
    for layout in (one, many):
        fits = can_fit(LLAMA_405B, layout, 80.0, sequence_length=8192, micro_batches=np.ones(1))
        assert not fits[0]
    sharded = Layouts.of(tensor_parallel=8, data_parallel=64, zero_stage=3, recompute=2)
    assert can_fit(LLAMA_405B, sharded, 80.0, sequence_length=8192, micro_batches=np.ones(1))[0]


def test_a_fused_loss_halves_the_logits() -> None:
    """Without a pipeline, where no activations of other stages make room: 16384 tokens x vocabulary x 12 or 6 B."""
    layout = Layouts.of(data_parallel=64, zero_stage=3, micro_batch=2)
    plain, fused = (
        memory_use(LLAMA_8B, layout, sequence_length=8192, micro_batches=np.ones(1), fused_loss=one).logits_gib[0]
        for one in (False, True)
    )
    assert plain == pytest.approx(16384 * 128256 * 12 / 2**30)
    assert fused == pytest.approx(plain / 2)


def test_experts_with_one_copy_hold_no_second_gradient() -> None:
    """FSDP with a pipeline keeps whole 32-bit gradients beside the divided ones; what is not divided has one."""
    mixture = TrainingModel.from_parameters(235e9, 22e9)
    one, two = (
        memory_use(
            mixture,
            Layouts.of(pipeline_parallel=4, data_parallel=64, expert_parallel=expert, zero_stage=3),
            sequence_length=4096,
            micro_batches=np.full(1, 8.0),
        ).states_gib[0]
        for expert in (64, 32)
    )
    each = mixture.routed_parameters / 4 / 64 * FRAGMENTATION_FACTOR / 2**30
    # 64 ranks with one copy: 2 + 2 + 12 B; 32 with two: 2 + 2 + 4 + 12/2 B of twice as many parameters.
    assert two - one == pytest.approx(each * (2 * 14 - 16))
