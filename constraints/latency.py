r"""Latency: each token, the first token and the whole answer come in time.

    TPOT(c) <= tpot_ms        TTFT(c) <= ttft_ms        TTFT(c) + (O - 1) TPOT(c) <= latency_ms

c: requests in flight on one replica; O: output tokens of a mean request. Means over requests, not percentiles. Binds
when a model is large for its accelerators' memory bandwidth, or when many requests share a replica: a lower
concurrency is faster and dearer.

Source of the physics: roofline with measured efficiencies (docs/method.md section 3).
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from optimizer.screen import Bounds, Seen

LIMITS: Final = ("tpot_ms", "ttft_ms", "latency_ms")


def admits(seen: "Seen", bounds: "Bounds") -> "dict[str, NDArray[np.bool_]]":
    """For each limit, whether each row keeps it."""
    return {
        "tpot_ms": seen.tpot_ms <= bounds.tpot_ms,
        "ttft_ms": seen.ttft_ms <= bounds.ttft_ms,
        "latency_ms": seen.latency_ms <= bounds.latency_ms,
    }
