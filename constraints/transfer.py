r"""Transfer: prompts' caches that cross the network between prefill and decode replicas fit its link.

    requests/s of a unit x bytes of a prompt's cache / accelerators of a role <= kv_link_fraction x scale-out link

the worse of sending (accelerators of all prefill replicas of the unit) and taking (of all decode replicas), one way per
accelerator, when the unit is full. The bytes are those of the prompt, each element once: keys and values of full
layers, the window of windowed ones, latents, fixed states. Mean over time: transfers come in bursts, which the fraction
leaves room for. Binds with long prompts, short answers and slow networks; 0 where one replica does both phases.

Source of the physics: docs/method.md section 2, units of two roles.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from optimizer.screen import Bounds, Seen

LIMITS: Final = ("kv_link_gb_s",)


def admits(seen: "Seen", bounds: "Bounds") -> "dict[str, NDArray[np.bool_]]":
    """Whether each row keeps it."""
    return {"kv_link_gb_s": seen.kv_link_gb_s <= bounds.kv_link_fraction * seen.kv_link_limit_gb_s}
