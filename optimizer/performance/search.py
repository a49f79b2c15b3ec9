"""The largest concurrency of each deployment that keeps every bound."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from optimizer.performance.joined import AnyPrepared


def highest_admissible_concurrency(
    prepared: "AnyPrepared",
    *,
    tpot_ms: ArrayLike = np.inf,
    ttft_ms: ArrayLike = np.inf,
    latency_ms: ArrayLike = np.inf,
    memory_gib: ArrayLike = np.inf,
    nvlink_gb_s: ArrayLike = np.inf,
    kv_link_gb_s: ArrayLike = np.inf,
    max_concurrency: ArrayLike = 4096,
) -> NDArray[np.int64]:
    """The largest whole concurrency in 1..max_concurrency that keeps all bounds, 0 where none does, shape (n,).

    Bounds are scalars or columns; infinity leaves a bound out. The usable memory that ``prepared`` was made
    with always binds. All bounded quantities grow with the concurrency, so halving the interval is exact.
    """
    n = prepared.size
    bounds = {
        name: np.broadcast_to(np.asarray(value, dtype=np.float64), (n,))
        for name, value in (
            ("tpot_ms", tpot_ms),
            ("ttft_ms", ttft_ms),
            ("latency_ms", latency_ms),
            ("total_gib", memory_gib),
            ("nvlink_gb_s", nvlink_gb_s),
            ("kv_link_gb_s", kv_link_gb_s),
        )
        if not np.all(np.asarray(value, dtype=np.float64) == np.inf)
    }
    low = np.zeros(n, dtype=np.int64)
    high = np.minimum(prepared.largest_concurrency, max_concurrency).astype(np.int64)
    if not bounds:
        return high
    # Rows that are settled leave, so that late steps cost little.
    open_rows = np.flatnonzero(high > low)
    while open_rows.size:
        # The upper middle: the interval shrinks even when it holds two numbers.
        middle = (low[open_rows] + high[open_rows] + 1) // 2
        seen = prepared.take(open_rows).at(middle)
        keeps = np.ones(open_rows.size, dtype=np.bool_)
        for name, bound in bounds.items():
            keeps &= getattr(seen, name) <= bound[open_rows]
        low[open_rows] = np.where(keeps, middle, low[open_rows])
        high[open_rows] = np.where(keeps, high[open_rows], middle - 1)
        open_rows = open_rows[low[open_rows] < high[open_rows]]
    return low
