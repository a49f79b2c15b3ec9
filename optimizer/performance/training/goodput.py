"""From the time of a step to the days of a run: failures, checkpoints, restarts, and what runs lose beside recipes.

goodput = 1 - w/D - (u + D/2)/M with M = node mean time between failures / nodes: w seconds that a checkpoint blocks,
D seconds between checkpoints (best sqrt(2 w M): Young 1974, Daly 2006), u seconds to detect and restart.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from optimizer.performance.factors import FloatArray

_HOURS_A_DAY, _S_A_HOUR, _S_A_DAY = 24.0, 3600.0, 86400.0
#: Accelerator-hours between failures that stop a job: 419 unexpected stops of 16,384 H100 in 54 days (Llama 3 report).
MTBF_ACCELERATOR_HOURS: Final = 50677.0
#: Detection and restart (Meta RSC example 5-20 minutes).
RESTART_S: Final = 600.0
#: Bytes of a full checkpoint a parameter: six of seven published ones.
CHECKPOINT_BYTES_PER_PARAMETER: Final = 13.0
#: Seconds that an asynchronous checkpoint blocks the job.
CHECKPOINT_BLOCKING_S: Final = 12.0
#: Production step over recipe step: 1.10 (Nemotron-4 340B), 1.15-1.17 (Llama 3 405B).
PRODUCTION_FACTOR: Final = 1.13


@dataclass(frozen=True, slots=True, eq=False)
class Goodput:
    """Columns: share of time that makes progress, where the rest goes, the interval used and the job's MTBF."""

    goodput_fraction: FloatArray
    checkpoint_fraction: FloatArray
    lost_work_fraction: FloatArray
    restart_fraction: FloatArray
    checkpoint_interval_s: FloatArray
    mtbf_s: FloatArray


def goodput(
    accelerators: ArrayLike,
    *,
    mtbf_accelerator_hours: ArrayLike = MTBF_ACCELERATOR_HOURS,
    checkpoint_blocking_s: ArrayLike = CHECKPOINT_BLOCKING_S,
    checkpoint_interval_s: ArrayLike | None = None,
    restart_s: ArrayLike = RESTART_S,
    fault_tolerant_replicas: ArrayLike = 1,
) -> Goodput:
    """Share of time that trains, for jobs of so many accelerators; columns broadcast.

    ``checkpoint_interval_s`` None: the best one. With ``fault_tolerant_replicas`` r > 1 (HSDP, elastic) a failure
    stops one of r replicas for the restart while the others go on, and no work is lost.
    """
    n = np.atleast_1d(np.asarray(accelerators, dtype=np.float64))
    blocking, restart = np.asarray(checkpoint_blocking_s, dtype=np.float64), np.asarray(restart_s, dtype=np.float64)
    replicas = np.asarray(fault_tolerant_replicas, dtype=np.float64)
    mtbf = np.asarray(mtbf_accelerator_hours, dtype=np.float64) * _S_A_HOUR / n
    best = np.sqrt(2.0 * blocking * mtbf)
    interval = best if checkpoint_interval_s is None else np.asarray(checkpoint_interval_s, dtype=np.float64) + 0.0 * n
    saving = np.where(blocking > 0, blocking / np.maximum(interval, 1e-9), 0.0) + 0.0 * n
    lost = np.where(replicas > 1, 0.0, interval / 2.0 / mtbf)
    again = restart / mtbf / np.maximum(replicas, 1.0)
    share = np.clip(1.0 - saving - lost - again, 0.0, 1.0)
    return Goodput(share, saving, lost, again, interval, mtbf)


@dataclass(frozen=True, slots=True, eq=False)
class RunTime:
    """Columns: days of a whole run and the band around them (10 % and 90 % quantile)."""

    days: FloatArray
    low_days: FloatArray
    high_days: FloatArray
    accelerator_hours: FloatArray


def run_days(
    step_s: ArrayLike,
    *,
    tokens: float,
    global_batch_tokens: float,
    accelerators: ArrayLike,
    goodput_fraction: ArrayLike,
    production_factor: float = PRODUCTION_FACTOR,
    step_low: ArrayLike = 0.9,
    step_high: ArrayLike = 1.1,
) -> RunTime:
    """Days to train on ``tokens``: steps x recipe step x production factor / goodput.

    ``step_low`` and ``step_high`` are the multipliers of the step's own band (``StepPrediction``).
    """
    steps = np.ceil(tokens / global_batch_tokens)
    share = np.maximum(np.asarray(goodput_fraction, dtype=np.float64), 1e-9)
    days = np.atleast_1d(np.asarray(step_s, dtype=np.float64)) * steps * production_factor / share / _S_A_DAY
    low, high = days * np.asarray(step_low), days * np.asarray(step_high)
    return RunTime(days, low, high, days * _HOURS_A_DAY * np.asarray(accelerators, dtype=np.float64))
