r"""NVLink: mean traffic of one accelerator fits its scale-up link.

    bytes sent per accelerator and step, one way / step time <= nvlink_fraction x link,  and <= nvlink_gb_s

the worse of prefill and decode. Tensor parallelism sends two all-reduces a layer, ``2 x 2 (t - 1)/t x hidden x
bytes`` a token; expert parallelism sends each token to its experts and back. ``link`` is NVLink or xGMI, on meshes no
more than the links to the ``t - 1`` peers of a group together, PCIe where there is no link. Mean over a step: bursts
reach the link's own rate. Binds at high tensor-parallel degrees with large batches, and on cards without a link.

Source of the physics: ring and tree all-reduce volumes (docs/method.md section 3).
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from optimizer.screen import Bounds, Seen

LIMITS: Final = ("nvlink_gb_s", "nvlink_cap_gb_s")


def admits(seen: "Seen", bounds: "Bounds") -> "dict[str, NDArray[np.bool_]]":
    """For each limit, whether each row keeps it."""
    return {
        "nvlink_gb_s": seen.nvlink_gb_s <= bounds.nvlink_fraction * seen.nvlink_link_gb_s,
        "nvlink_cap_gb_s": seen.nvlink_gb_s <= bounds.nvlink_cap_gb_s,
    }
