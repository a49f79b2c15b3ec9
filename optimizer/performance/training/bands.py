"""How far training predictions were off where they had not seen the rows: bands by what stands behind a prediction.

``stack``: steps of this stack were measured (held out: its rows of one model at a time). ``accelerator``: only other
software was measured on this accelerator and format (held out: one stack at a time). ``none``: neither (held out: one
generation at a time).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np

from optimizer.performance.factors import FloatArray
from optimizer.performance.training.constants import resource

EVIDENCE: Final = ("stack", "accelerator", "none")
KINDS: Final = ("dense", "moe")
LEVELS: Final = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
#: The band that is shown: 10 % to 90 % quantile.
LOW, HIGH = 0.1, 0.9


@dataclass(frozen=True, slots=True, eq=False)
class TrainingBands:
    """Quantiles of log(measured / predicted step) at ``levels`` by kind of model and evidence."""

    levels: FloatArray
    log_error: Mapping[str, Mapping[str, FloatArray]]

    def multiplier(self, kind: str, evidence: str, level: float) -> float:
        """What to multiply a predicted step with to get its quantile. Less evidence is never a narrower band."""
        upto = EVIDENCE[: EVIDENCE.index(evidence) + 1]
        found = [float(np.interp(level, self.levels, self.log_error[kind][one])) for one in upto]
        return float(np.exp(max(found) if level >= 0.5 else min(found)))


def bands_from_document(document: Mapping[str, Any]) -> TrainingBands:
    """Bands from their table's form."""
    return TrainingBands(
        np.asarray(document["levels"], dtype=np.float64),
        {
            kind: {name: np.asarray(values, dtype=np.float64) for name, values in found.items()}
            for kind, found in document["log_error"].items()
        },
    )


@cache
def load_bands() -> TrainingBands:
    """The packaged bands."""
    return bands_from_document(resource("training_bands.json"))
