"""A job on one type of accelerator in one format: step, whole run and limits of many layouts at once."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from constraints import training
from optimizer.instance.model import Instance
from optimizer.limits import limit
from optimizer.performance.factors import FloatArray
from optimizer.performance.training import (
    Layouts,
    StepPrediction,
    TrainingAccelerator,
    goodput,
    mtbf_hours,
    predict_step,
    production_factor,
    run_days,
)
from optimizer.performance.training.goodput import Goodput
from optimizer.training.jobs import Job, training_workload
from optimizer.training.places import S_PER_KM, SiteGroup

#: Share of a step that the backward pass of the pipeline takes: gradients cross between sites behind it.
OVERLAP: Final = 0.5
#: Throughput lost beside what the formula hides, per km: 1 % at 120 km, 2 to 3 % at 410 to 500, 4 % at 1,000 (published
#: two-site runs, ``data/multisite.csv``).
LOSS_PER_KM: Final = 4e-5
#: The band of the step-time model is from its 10 % to its 90 % quantile.
_UPPER: Final = NormalDist().inv_cdf(0.9)
BITS_PER_BYTE: Final = 8.0
GIGA: Final = 1e9

#: Names of ``optimizer.limits`` that one layout keeps or breaks.
LAYOUT_LIMITS: Final = tuple(name for name in training.LIMITS if limit(name).scope == "deployment")


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What layouts reach, columns."""

    memory_gib: FloatArray
    scale_up_gb_s: FloatArray
    scale_up_fraction: FloatArray
    scale_out_fraction: FloatArray
    mfu_fraction: FloatArray
    days: FloatArray
    accelerators: FloatArray


@dataclass(frozen=True, slots=True)
class Bounds:
    """Right-hand sides of the limits of a layout; infinite (0 for MFU) where nothing is limited."""

    memory_gib: float
    memory_cap_gib: float
    scale_up_fraction: float
    scale_up_cap_gb_s: float
    scale_out_fraction: float
    mfu_fraction: float
    days: float
    accelerators: float


def bounds_of(instance: Instance, job: Job, accelerator: TrainingAccelerator) -> Bounds:
    """Bounds of a job on a type of accelerator.

    The memory model counts fragmentation and libraries itself, so all that the driver exposes may be used unless the
    planner states a share.
    """
    targets = instance.targets

    def cap(value: float | None) -> float:
        return math.inf if value is None else float(value)

    used = targets.vram_fraction if "vram_fraction" in targets.model_fields_set else 1.0
    return Bounds(
        memory_gib=accelerator.memory_gib * used,
        memory_cap_gib=cap(targets.vram_gib_per_accelerator),
        scale_up_fraction=targets.nvlink_fraction,
        scale_up_cap_gb_s=cap(targets.nvlink_gb_s),
        scale_out_fraction=cap(targets.scale_out_fraction),
        mfu_fraction=targets.mfu_floor_fraction or 0.0,
        # The last bit of a division is no delay.
        days=job.window_days * (1.0 + 1e-12),
        accelerators=cap(training_workload(instance).most_accelerators),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Layouts with what is predicted of them; columns of one length.

    ``step_s`` and ``days`` hold at the asked confidence; ``expected_step_s`` is the prediction itself with its band
    ``low_s`` and ``high_s``, several sites included; ``low_days`` and ``high_days`` are the band of the
    whole run. ``wan_gbit_per_s`` is what each site sends, mean over a step.
    ``tokens`` is what is trained, the penalty of low communication included. ``passes`` has a column a limit.
    """

    layouts: Layouts
    accelerators: FloatArray
    step_s: FloatArray
    days: FloatArray
    low_days: FloatArray
    high_days: FloatArray
    production_factor: FloatArray
    expected_step_s: FloatArray
    low_s: FloatArray
    high_s: FloatArray
    goodput_fraction: FloatArray
    checkpoint_interval_s: FloatArray
    mtbf_s: FloatArray
    mfu_fraction: FloatArray
    tflops: FloatArray
    memory_gib: FloatArray
    scale_up_gb_s: FloatArray
    scale_up_fraction: FloatArray
    scale_out_gb_s: FloatArray
    scale_out_fraction: FloatArray
    micro_batches: FloatArray
    wan_gbit_per_s: FloatArray
    tokens: FloatArray
    passes: Mapping[str, NDArray[np.bool_]]
    evidence: str

    @property
    def size(self) -> int:
        """Rows."""
        return int(self.step_s.size)

    def passing(self, but: str = "") -> NDArray[np.bool_]:
        """Rows that keep every limit, or every one but the named one."""
        kept = np.ones(self.size, dtype=np.bool_)
        for name, column in self.passes.items():
            if name != but:
                kept &= column
        return kept

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> "Rows":
        """The given rows, by index or mask."""
        taken = {
            one.name: getattr(self, one.name)[rows]
            for one in fields(self)
            if one.name not in ("layouts", "passes", "evidence")
        }
        passes = {name: column[rows] for name, column in self.passes.items()}
        return replace(self, **taken, layouts=self.layouts.take(rows), passes=passes)


def joined(parts: list[Rows]) -> Rows:
    """Rows of several evaluations of one job, type and format, one after another."""
    columns = {
        one.name: np.concatenate([getattr(part, one.name) for part in parts])
        for one in fields(Rows)
        if one.name not in ("layouts", "passes", "evidence")
    }
    layouts = Layouts(*(np.concatenate([getattr(part.layouts, one.name) for part in parts]) for one in fields(Layouts)))
    passes = {name: np.concatenate([part.passes[name] for part in parts]) for name in parts[0].passes}
    return Rows(**columns, layouts=layouts, passes=passes, evidence=parts[0].evidence)


@dataclass(frozen=True, slots=True)
class Evaluator:
    """A job on one type of accelerator in one format, on one site or in one group of sites by one method.

    ``speedup`` divides the step (liquid-cooled servers).
    """

    instance: Instance
    job: Job
    accelerator: TrainingAccelerator
    precision: str
    group: SiteGroup | None = None
    method: str = "synchronous"
    speedup: float = 1.0

    def rows(self, layouts: Layouts) -> Rows:
        """Everything that is predicted of the layouts."""
        workload, targets, job = training_workload(self.instance), self.instance.targets, self.job
        found = predict_step(
            job.model,
            layouts,
            self.accelerator,
            sequence_length=job.sequence_tokens,
            global_batch_tokens=job.batch_tokens,
            precision=self.precision,
            stack=workload.stack,
            optimizer_state=workload.optimizer_state,
            calibration=workload.calibration_document(),
        )
        step, bits = self._over_sites(found)
        step = step / self.speedup
        scale = step / found.step_s
        low, high = found.low_s * scale, found.high_s * scale
        # At 0.5 the predictions are taken as they are.
        asked = 0.0 if targets.confidence == 0.5 else NormalDist().inv_cdf(targets.confidence) / _UPPER
        sure = step * (found.high_s / found.step_s) ** asked
        good = self.goodput(layouts.accelerators)
        penalty = workload.multi_site.token_penalty_fraction if self.method == "low_communication" else 0.0
        tokens = job.tokens * (1.0 + (penalty if self.group is not None else 0.0))
        factor, run_low, run_high = self._whole_run(low / step, high / step)
        run = run_days(
            step,
            tokens=tokens,
            global_batch_tokens=job.sequences * float(job.sequence_tokens),
            accelerators=layouts.accelerators,
            goodput_fraction=good.goodput_fraction,
            production_factor=factor,
            step_low=run_low,
            step_high=run_high,
        )
        days = run.days * run_high**asked
        mfu, tflops = found.mfu_fraction / scale, found.tflops_per_accelerator / scale
        seen = Seen(
            memory_gib=found.memory_gib,
            scale_up_gb_s=found.scale_up_gb_s / scale,
            scale_up_fraction=found.scale_up_fraction / scale,
            scale_out_fraction=found.scale_out_fraction / scale,
            mfu_fraction=mfu,
            days=days,
            accelerators=layouts.accelerators,
        )
        passes = training.admits(seen, bounds_of(self.instance, job, self.accelerator))
        return Rows(
            layouts=layouts,
            accelerators=layouts.accelerators,
            step_s=sure,
            days=days,
            low_days=run.low_days,
            high_days=run.high_days,
            production_factor=np.full(layouts.size, factor),
            expected_step_s=step,
            low_s=low,
            high_s=high,
            goodput_fraction=good.goodput_fraction + 0.0 * step,
            checkpoint_interval_s=good.checkpoint_interval_s + 0.0 * step,
            mtbf_s=good.mtbf_s + 0.0 * step,
            mfu_fraction=mfu,
            tflops=tflops,
            memory_gib=found.memory_gib,
            scale_up_gb_s=found.scale_up_gb_s / scale,
            scale_up_fraction=found.scale_up_fraction / scale,
            scale_out_gb_s=found.scale_out_gb_s / scale,
            scale_out_fraction=found.scale_out_fraction / scale,
            micro_batches=found.micro_batches,
            wan_gbit_per_s=bits / step / GIGA,
            tokens=np.full(layouts.size, tokens),
            passes=passes,
            evidence=found.evidence,
        )

    def goodput(self, accelerators: FloatArray) -> Goodput:
        """Share of the time that trains on so many accelerators."""
        relies, row = training_workload(self.instance).reliability, self.accelerator
        return goodput(
            accelerators,
            mtbf_accelerator_hours=relies.mtbf_accelerator_hours or mtbf_hours(row.id, row.generation),
            checkpoint_blocking_s=relies.checkpoint_blocking_s,
            checkpoint_interval_s=relies.checkpoint_interval_s,
            restart_s=relies.restart_s,
            fault_tolerant_replicas=relies.fault_tolerant_replicas,
        )

    def _whole_run(self, low: FloatArray, high: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """(factor of a whole run over its steps, band as multipliers of its days).

        The planner's own factor leaves the step's band; that of published runs brings the band of those runs, which
        holds the error of predicted steps.
        """
        own = training_workload(self.instance).reliability.production_factor
        if own is not None:
            return own, low, high
        kind = "moe" if self.job.model.experts else "dense"
        seen = production_factor(kind, self.accelerator.generation)
        return seen.factor, np.full_like(low, seen.low), np.full_like(high, seen.high)

    def _over_sites(self, found: StepPrediction) -> tuple[FloatArray, FloatArray]:
        """(seconds of a step, bits each site sends a step). One site: as predicted.

        Synchronous: ``2 (S-1)/S x parameters x bytes`` must pass in the share of the step that the backward pass takes,
        else the step is that much longer; throughput falls further by ``LOSS_PER_KM``. Low communication: the
        exchange, in fewer bits and every H steps, stops the job (its overlap is not counted on).
        """
        step = found.step_s
        if self.group is None:
            return step, np.zeros_like(step)
        several = training_workload(self.instance).multi_site
        sites = float(len(self.group.sites))
        share = 2.0 * (sites - 1.0) / sites * self.job.model.parameters * BITS_PER_BYTE
        rounds = 2.0 * (sites - 1.0) * 2.0 * self.group.km * S_PER_KM
        if self.method == "low_communication":
            bits = share * several.exchange_bits / BITS_PER_BYTE
            stop = bits / (self.group.gbit_per_s * GIGA) + rounds
            return step + stop / several.inner_steps, np.full_like(step, bits / several.inner_steps)
        bits = share * several.gradient_bytes
        pipe = step - found.parts["data"] - found.parts["update"]
        crossing = (1.0 - OVERLAP) * pipe + bits / (self.group.gbit_per_s * GIGA) + rounds
        return np.maximum(step, crossing) / (1.0 - LOSS_PER_KM * self.group.km), np.full_like(step, bits)
