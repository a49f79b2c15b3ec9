r"""Accuracy: the quantized model keeps enough of the unquantized model's score.

    quantile_p(recovery of scheme, KV scheme and recovery step) >= accuracy floor

Recovery is a distribution over models (t distribution over the published ones); p is ``targets.accuracy_confidence``.
At 0.5 the expected model must keep the floor, at 0.9 nine models of ten. Binds below 8 bits, and at 8 bits when the
confidence is high; a recovery step (fine-tuning after quantization) can be bought to close a part of the loss.

Source: published accuracy of quantized models, by scheme (docs/method.md section 7).
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from optimizer.screen import Bounds, Seen

LIMITS: Final = ("accuracy",)


def admits(seen: "Seen", bounds: "Bounds") -> "dict[str, NDArray[np.bool_]]":
    """For the one limit, whether each row keeps it."""
    return {"accuracy": seen.accuracy >= bounds.accuracy}
