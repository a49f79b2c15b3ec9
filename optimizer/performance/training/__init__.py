"""Training: step time, memory and whole-run time of many layouts at once. Plain numpy, no I/O but packaged constants.

The interface (kept stable)::

    model = TrainingModel.from_architecture(architecture, name)      # or from_shape(...), from_parameters(n, active)
    layouts = Layouts.of(tensor_parallel=[...], pipeline_parallel=..., virtual_stages=..., data_parallel=...,
                         context_parallel=..., expert_parallel=..., zero_stage=..., recompute=..., micro_batch=...,
                         sequence_parallel=...)                      # columns; scalars broadcast; codes of RECOMPUTE
    found = predict_step(model, layouts, TrainingAccelerator(...), sequence_length=8192, global_batch_tokens=16e6,
                         precision="bf16", stack="", optimizer_state="adam_bf16_gradients", calibration=None)
    share = goodput(accelerators, mtbf_accelerator_hours=..., checkpoint_blocking_s=..., checkpoint_interval_s=None,
                    restart_s=..., fault_tolerant_replicas=1)        # Goodput
    time = run_days(found.step_s, tokens=..., global_batch_tokens=..., accelerators=..., goodput_fraction=...)

    hours = mtbf_hours(accelerator.id, accelerator.generation)       # for goodput(mtbf_accelerator_hours=...)
    paid = production_factor("dense", accelerator.generation)        # for run_days(production_factor=paid.factor)

``enumerate_layouts(...)`` lists every layout of a number of accelerators that divides as it must. ``StepPrediction``
has ``fits`` (the stated memory formula, for planning) beside ``can_run`` (nobody can run it where False).

``flop_per_token(model, sequence_length, convention)`` counts FLOP by the conventions of ``CONVENTIONS``;
``memory_gib(...)`` is the peak that ``predict_step`` compares with the accelerator's memory.
"""

from optimizer.performance.training.flops import CONVENTIONS, flop_per_token
from optimizer.performance.training.goodput import (
    Goodput,
    ProductionFactor,
    RunTime,
    checkpoint_write_s,
    goodput,
    mtbf_hours,
    production_factor,
    run_days,
)
from optimizer.performance.training.hardware import PRECISIONS, TrainingAccelerator, precision_of
from optimizer.performance.training.layouts import RECOMPUTE, Layouts
from optimizer.performance.training.memory import STATES, memory_gib
from optimizer.performance.training.model import TrainingModel
from optimizer.performance.training.search import enumerate_layouts
from optimizer.performance.training.step import StepPrediction, predict_step

__all__ = [
    "CONVENTIONS",
    "PRECISIONS",
    "RECOMPUTE",
    "STATES",
    "Goodput",
    "Layouts",
    "ProductionFactor",
    "RunTime",
    "StepPrediction",
    "TrainingAccelerator",
    "TrainingModel",
    "checkpoint_write_s",
    "enumerate_layouts",
    "flop_per_token",
    "goodput",
    "memory_gib",
    "mtbf_hours",
    "precision_of",
    "predict_step",
    "production_factor",
    "run_days",
]
