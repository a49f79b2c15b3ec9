"""The layout of a row of a table: what is stated, and for what is not the fastest layout that fits."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from optimizer.calibration.training.rows import TrainingRow
from optimizer.performance.training.constants import TrainingCalibration
from optimizer.performance.training.kernel import step_parts
from optimizer.performance.training.layouts import Layouts
from optimizer.performance.training.memory import can_fit, memory_use
from optimizer.performance.training.search import CONTEXT, EXPERT, PIPELINE, TENSOR, VIRTUAL, enumerate_layouts
from optimizer.performance.training.work import StepWork, work_of

#: Micro-batch that is assumed without a pipeline; with one, 1.
_MICRO_BATCH: Final = 4
_SERVER: Final = 8
_LAYERS_A_CHUNK: Final = 2


def plain_layout(row: TrainingRow) -> tuple[Layouts | None, tuple[str, ...], str]:
    """Layout of a row that states its degrees; what was assumed; why there is none (empty where there is).

    A row without tensor and pipeline degrees, and one whose degrees do not say how the accelerators are used, gives
    None without a reason: ``chosen_layout`` finds one.
    """
    if not row.tensor or (not row.pipeline and not row.data):
        return None, (), ""
    assumed: list[str] = []
    pipeline = row.pipeline or max(row.accelerators // (row.tensor * row.context * row.data), 1)
    context = row.context
    model_ranks = row.tensor * pipeline * context
    data = row.data or row.accelerators // model_ranks
    if 1 <= row.sequences < data and data % row.sequences == 0:
        # Every replica needs a sequence: what stands beyond that divides sequences.
        context, data = int(context * data / row.sequences), int(row.sequences)
        model_ranks = row.tensor * pipeline * context
        assumed.append(f"global_batch is below dp: dp {data}, cp {context}")
    if data * model_ranks != row.accelerators:
        return None, (), f"tp x pp x cp x dp is {data * model_ranks}, gpus is {row.accelerators}"
    share = row.sequences / data
    micro = row.micro_batch
    if not micro:
        micro = int(max(min(_MICRO_BATCH, share), 1)) if pipeline == 1 else 1
        assumed.append(f"micro_batch not stated: {micro}")
    if micro > share:
        return None, (), f"global_batch {row.sequences:g} is below dp x micro_batch = {data * micro}"
    virtual = row.virtual
    if not virtual:
        virtual = _virtual_stages(row, pipeline)
        if pipeline > 1:
            assumed.append(f"vpp not stated: {virtual}")
    expert = row.expert or 1
    if not row.is_dense and row.zero == 3 and expert == 1 and row.accelerators > _SERVER:
        # Gathering every expert for every micro-batch takes longer than such steps: the degree was not told.
        expert = _expert_parallel(row, data * context * row.tensor)
        assumed.append(f"ep of fully sharded experts not stated: {expert}")
    if row.zero < 0:
        assumed.append("zero not stated: 1")
    if row.recompute < 0:
        assumed.append("recompute not stated: none")
    layout = Layouts.of(
        tensor_parallel=row.tensor,
        pipeline_parallel=pipeline,
        virtual_stages=virtual,
        data_parallel=data,
        context_parallel=context,
        expert_parallel=expert,
        zero_stage=max(row.zero, 0) if row.zero >= 0 else 1,
        recompute=max(row.recompute, 0),
        micro_batch=micro,
        sequence_parallel=row.sequence_parallel if row.sequence_parallel >= 0 else 1,
    )
    return layout, tuple(assumed), ""


def _virtual_stages(row: TrainingRow, pipeline: int) -> int:
    """Chunks of two layers in NVIDIA's line since 2023, as most of its recipes have; none in other software."""
    assert row.model is not None
    if pipeline == 1 or row.traits.family != "megatron":
        return 1
    return max(-(-row.model.layers // pipeline) // _LAYERS_A_CHUNK, 1)


def _expert_parallel(row: TrainingRow, ranks: int) -> int:
    """The largest power of two that divides experts and ranks."""
    assert row.model is not None
    return max(degree for degree in EXPERT if row.model.experts % degree == 0 and ranks % degree == 0)


def row_work(row: TrainingRow, layout: Layouts) -> StepWork:
    """The work of a row under a layout."""
    assert row.model is not None
    assert row.accelerator is not None
    return work_of(
        row.model,
        layout,
        row.accelerator,
        row.traits,
        sequence_length=row.sequence,
        sequences=row.sequences,
        precision=row.precision,
        token_drop=row.token_drop,
    )


def chosen_layout(row: TrainingRow, calibration: TrainingCalibration) -> tuple[Layouts | None, tuple[str, ...], str]:
    """The fastest layout that fits and keeps to what the row states; what was chosen; why there is none."""
    assert row.model is not None
    assert row.accelerator is not None
    stated: Mapping[str, int] = {
        "tensor": row.tensor,
        "pipeline": row.pipeline,
        "virtual": row.virtual,
        "expert": row.expert,
        "micro_batch": row.micro_batch,
    }
    usual = {"tensor": TENSOR, "pipeline": PIPELINE, "virtual": VIRTUAL, "expert": EXPERT, "micro_batch": (1, 2, 4)}
    degrees = {name: (value,) if value else usual[name] for name, value in stated.items()}
    found = enumerate_layouts(
        row.model,
        row.accelerators,
        sequence_length=row.sequence,
        sequences=round(row.sequences),
        scale_up_domain=row.accelerator.scale_up_domain,
        context=(row.context,) if row.context > 1 else CONTEXT if row.sequences < row.accelerators else (1,),
        zero=(max(row.zero, 1),) if row.zero >= 0 else (1, 3),
        recompute=(row.recompute,) if row.recompute >= 0 else (0, 2),
        **degrees,
    )
    if found is None:
        return None, (), "no layout divides the model, the batch and the accelerators"
    micro = np.maximum(np.ceil(row.sequences / (found.data_parallel * found.micro_batch)), 1.0)
    fused = row.traits.fused_loss
    use = memory_use(row.model, found, sequence_length=row.sequence, micro_batches=micro, fused_loss=fused)
    fits = use.total_gib <= row.accelerator.memory_gib
    if not fits.any():
        fits = can_fit(row.model, found, row.accelerator.memory_gib, sequence_length=row.sequence, micro_batches=micro)
    if not fits.any():
        return None, (), "no layout fits the memory"
    found = found.take(fits)
    best = int(np.argmin(step_parts(row_work(row, found), calibration.factors).step_s))
    layout = found.take(np.array([best]))
    degrees_text = ", ".join(
        f"{name} {int(getattr(layout, field)[0])}"
        for name, field in (
            ("tp", "tensor_parallel"),
            ("pp", "pipeline_parallel"),
            ("vpp", "virtual_stages"),
            ("cp", "context_parallel"),
            ("ep", "expert_parallel"),
            ("dp", "data_parallel"),
            ("micro_batch", "micro_batch"),
            ("zero", "zero_stage"),
        )
    )
    return layout, (f"layout not stated: the fastest that fits, {degrees_text}",), ""
