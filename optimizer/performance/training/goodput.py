"""From the time of a step to the days of a run: failures, checkpoints, restarts, and what runs lose beside recipes.

goodput = 1 - w/D - (u + D/2)/M with M = node mean time between failures / nodes: w seconds that a checkpoint blocks,
D seconds between checkpoints (best sqrt(2 w M): Young 1974, Daly 2006), u seconds to detect and restart.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from optimizer.performance.factors import FloatArray
from optimizer.performance.training.constants import resource

_HOURS_A_DAY, _S_A_HOUR, _S_A_DAY = 24.0, 3600.0, 86400.0
#: Accelerator-hours between failures that stop a job: 419 unexpected stops of 16,384 H100 in 54 days (Llama 3 report).
MTBF_ACCELERATOR_HOURS: Final = 50677.0
#: The same by accelerator or generation. ampere: geometric mean of Meta's two clusters, 6.5 and 2.34 failures per 1,000
#: nodes of 8 and day (arXiv 2410.21680), and one a week on BLOOM's 384; hopper: as above; h200: 205 in four months on
#: about 1,600 (Crusoe); blackwell: 21 in 55 days on 504 B200 (arXiv 2605.09370). Jobs fail for more reasons than nodes:
#: 1,024 A100 ran 7.9 h at a time, 3.6 times shorter than the worse cluster's nodes alone would let them.
MTBF_HOURS: Final[Mapping[str, float]] = MappingProxyType(
    {"ampere": 53800.0, "hopper": MTBF_ACCELERATOR_HOURS, "h200": 22800.0, "blackwell": 31680.0}
)
#: Detection and restart (Meta RSC example 5-20 minutes).
RESTART_S: Final = 600.0
#: Bytes of a full checkpoint a parameter: six of seven published ones.
CHECKPOINT_BYTES_PER_PARAMETER: Final = 13.0
#: Seconds that an asynchronous checkpoint blocks the job: between below 1 s (PyTorch, 70B) and what makes the formula
#: give the Llama 3 report's goodput of 0.9.
CHECKPOINT_BLOCKING_S: Final = 12.0
#: Production step over recipe step: 1.10 (Nemotron-4 340B), 1.15-1.17 (Llama 3 405B). Whole runs lose more:
#: ``production_factor``.
PRODUCTION_FACTOR: Final = 1.13
#: Share of the failures that put a node out of use, and hours until it is back (Unicron: nodes are drained in 37 %).
_DRAINED, _REPAIR_HOURS = 0.37, 24.0


def mtbf_hours(accelerator: str, generation: str) -> float:
    """Accelerator-hours between failures that stop a job, by accelerator, else by generation, else H100's."""
    found = next((hours for name, hours in MTBF_HOURS.items() if accelerator.startswith(name)), None)
    return found if found is not None else MTBF_HOURS.get(generation, MTBF_ACCELERATOR_HOURS)


def checkpoint_write_s(parameters: float, storage_gb_s: float) -> float:
    """Seconds in which storage takes a full checkpoint; a synchronous one blocks the job for as long."""
    if storage_gb_s <= 0:
        raise ValueError("storage_gb_s must be above 0")
    return parameters * CHECKPOINT_BYTES_PER_PARAMETER / (storage_gb_s * 1e9)


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
    spare_nodes: ArrayLike | None = None,
    repair_hours: float = _REPAIR_HOURS,
) -> Goodput:
    """Share of time that trains, for jobs of so many accelerators; columns broadcast.

    ``checkpoint_interval_s`` None: the best one. With ``fault_tolerant_replicas`` r > 1 (HSDP, elastic) a failure
    stops one of r replicas for the restart while the others go on, and no work is lost. ``spare_nodes`` None: always
    enough; else the job stands when more nodes are in repair than there are spares (Poisson), which is told as part
    of ``restart_fraction``.
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
    if spare_nodes is not None:
        broken = _DRAINED * repair_hours * _S_A_HOUR / mtbf
        again = again + _shortage(broken, np.asarray(spare_nodes, dtype=np.float64)) / np.maximum(replicas, 1.0)
    share = np.clip(1.0 - saving - lost - again, 0.0, 1.0)
    return Goodput(share, saving, lost, again, interval, mtbf)


def _shortage(mean: FloatArray, spares: FloatArray) -> FloatArray:
    """Probability that more than ``spares`` of Poisson many nodes are out at once."""
    means, limits = np.broadcast_arrays(mean, spares)
    found = np.empty(means.shape)
    for place in np.ndindex(means.shape):
        count = np.arange(int(limits[place]) + 1, dtype=np.float64)
        logs = (
            count * float(np.log(max(float(means[place]), 1e-300)))
            - np.cumsum(np.log(np.maximum(count, 1.0)))
            - float(means[place])
        )
        found[place] = 1.0 - min(float(np.exp(logs).sum()), 1.0)
    return found


@dataclass(frozen=True, slots=True)
class ProductionFactor:
    """Whole run over recipe steps / goodput, with multipliers of the 10 % and 90 % quantile; ``group``: like what."""

    factor: float
    low: float
    high: float
    group: str


@cache
def production_factor(kind: str = "dense", generation: str = "hopper", *, measured: bool = False) -> ProductionFactor:
    """What published runs took beside the steps of their recipe: slow starts, evaluation, stragglers, untuned layouts.

    ``kind`` is ``dense`` or ``moe``; ``measured`` says that the step was measured and not predicted. The band is that
    of published runs of the kind left out one at a time, and already holds the error of the predicted step.
    """
    table = resource("training_production.json")
    era = "ampere" if generation in ("volta", "ampere", "tpu") else "hopper"
    group = "reported" if measured else "moe" if kind == "moe" else f"dense|{era}"
    log = table["log_factor"].get(group, table["log_factor"]["all"])
    errors = table["log_error"][group.partition("|")[0]]
    low, high = (float(np.interp(level, table["levels"], errors)) for level in (0.1, 0.9))
    return ProductionFactor(float(np.exp(log)), float(np.exp(low)), float(np.exp(high)), group)


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
