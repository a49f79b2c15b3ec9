"""Fewer scenarios that stand for many: fast forward selection.

Source: Heitsch and Roemisch 2003, "Scenario reduction algorithms in stochastic programming": scenarios are taken one
by one so that the probability-weighted distance of all to the nearest taken one falls most; each one left out gives
its probability to the nearest taken one.
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def distances(values: FloatArray) -> FloatArray:
    """Distances between scenarios, each column scaled to its standard deviation."""
    spread = values.std(axis=0)
    scaled = values / np.where(spread > 0.0, spread, 1.0)
    result: FloatArray = np.sqrt(((scaled[:, None, :] - scaled[None, :, :]) ** 2).sum(axis=2))
    return result


def chosen(values: FloatArray, count: int, always: tuple[int, ...] = ()) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """(indices of the scenarios kept, their probabilities), at most ``count`` of equally likely ones.

    ``always``: scenarios that are kept besides, whatever they stand for.
    """
    size = values.shape[0]
    between = distances(values)
    kept = list(dict.fromkeys(always))
    nearest = between[kept].min(axis=0) if kept else np.full(size, np.inf)
    while len(kept) < min(size, max(count, len(kept))):
        left = [one for one in range(size) if one not in kept]
        costs = [float(np.minimum(nearest, between[one]).sum()) for one in left]
        best = left[int(np.argmin(costs))]
        kept.append(best)
        nearest = np.minimum(nearest, between[best])
    kept.sort()
    owner = np.array(kept)[np.argmin(between[kept], axis=0)]
    return tuple(kept), tuple(float(np.count_nonzero(owner == one)) / size for one in kept)
