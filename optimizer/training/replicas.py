"""Counts of replicas at which a layout can be the best, whatever the deadline, the power or the supply.

A step is micro-batches m = ceil(S / (replicas x micro-batch)) x a time + what data-parallel replicas exchange and
update; failures and stragglers grow with the accelerators. So of all counts of one m the least takes the least
servers, and more replicas of the same m are quicker by no more than what the update, shared by more of them, saves.
None of these counts depends on a limit, so that a looser limit never takes a plan away. Ranks of a stage are groups of
ranks that hold each expert once, so counts go in steps of ``expert_group_replicas``.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from optimizer.performance.factors import FloatArray
from optimizer.performance.training import Layouts

#: Slack of a ceiling, as the step-time model rounds micro-batches.
_ROUNDING: Final = 1e-9


def most_replicas(sequences: int, layouts: Layouts) -> FloatArray:
    """Every replica has a micro-batch at least."""
    return np.maximum(np.floor(sequences / layouts.micro_batch + _ROUNDING), 1.0)


def expert_group_replicas(layouts: Layouts) -> FloatArray:
    """Replicas that whole groups of expert-parallel ranks make: the ranks of a stage, replicas x tensor x context, are
    a multiple of the expert-parallel degree (as Megatron-LM and DeepSpeed form their groups). 1 without experts."""
    ranks = layouts.tensor_parallel * layouts.context_parallel
    common = np.gcd(layouts.expert_parallel.astype(np.int64), ranks.astype(np.int64))
    return layouts.expert_parallel / common


def in_expert_groups(replicas: FloatArray, layouts: Layouts) -> FloatArray:
    """Most replicas in whole expert groups, of so many; 0 where there are not enough of them for one."""
    group = expert_group_replicas(layouts)
    return np.asarray(np.floor(replicas / group + _ROUNDING) * group)


def width(layouts: Layouts) -> FloatArray:
    """Accelerators of a replica."""
    return layouts.tensor_parallel * layouts.pipeline_parallel * layouts.context_parallel


def steps_of(shares: int) -> tuple[FloatArray, FloatArray]:
    """(least, most) replicas of every number of micro-batches into which so many shares of a batch can fall."""
    count = np.arange(1, shares + 1)
    micro = -(-shares // count)
    first = np.flatnonzero(np.diff(micro, prepend=-1))
    last = np.append(first[1:] - 1, shares - 1)
    return count[first].astype(np.float64), count[last].astype(np.float64)


def whole_shares(sequences: int, micro_batch: float) -> int:
    """Micro-batches that a batch makes when one replica does them all."""
    return max(int(np.ceil(sequences / micro_batch - _ROUNDING)), 1)


def breakpoints(
    bases: Layouts, sequences: int, least: FloatArray, most: FloatArray
) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
    """(layout, least replicas, most replicas) of every range of one number of micro-batches within ``least`` and
    ``most`` replicas of each layout, in whole expert groups."""
    group = expert_group_replicas(bases)
    rows, firsts, lasts = [], [], []
    for micro_batch in np.unique(bases.micro_batch).tolist():
        own = np.flatnonzero(bases.micro_batch == micro_batch)
        first, last = steps_of(whole_shares(sequences, micro_batch))
        low = np.maximum(first[None, :], least[own, None])
        high = np.minimum(last[None, :], most[own, None])
        low = np.ceil(low / group[own, None] - _ROUNDING) * group[own, None]
        high = np.floor(high / group[own, None] + _ROUNDING) * group[own, None]
        place, step = np.nonzero(low <= high)
        rows.append(own[place])
        firsts.append(low[place, step])
        lasts.append(high[place, step])
    return np.concatenate(rows), np.concatenate(firsts), np.concatenate(lasts)
