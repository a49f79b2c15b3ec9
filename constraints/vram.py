r"""VRAM: everything an engine keeps on one accelerator fits into the memory it may use.

    weights + KV(c) + activation + graphs + buffers + runtime + reserve <= vram_fraction x memory
    the same sum <= vram_gib_per_accelerator
    weights <= weights_gib_per_accelerator

All in GiB on the accelerator with the heaviest pipeline stage; KV(c) is the cache of c requests of mean length, and
never less than that of the longest request, which must be able to start. ``memory`` is what the driver exposes, which
is less than the label of cards with error correction. Binds when a model is large, contexts are long, or concurrency
is high.

Source of the physics: memory that engines log at start (docs/method.md section 3).
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from optimizer.screen import Bounds, Seen

LIMITS: Final = ("vram_gib", "vram_gib_per_accelerator", "weights_gib_per_accelerator")


def admits(seen: "Seen", bounds: "Bounds") -> "dict[str, NDArray[np.bool_]]":
    """For each limit, whether each row keeps it."""
    return {
        "vram_gib": seen.vram_gib <= bounds.vram_gib,
        "vram_gib_per_accelerator": seen.vram_gib <= bounds.vram_gib_per_accelerator,
        "weights_gib_per_accelerator": seen.weights_gib <= bounds.weights_gib_per_accelerator,
    }
