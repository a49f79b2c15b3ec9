"""How far predictions were off where they could be checked: bands around TPOT, TTFT and tokens/s.

A band is model error on configurations that the fit had not seen, not a percentile over requests. It depends on
the engine and on what stands behind a prediction (``EVIDENCE``): points of this model on this generation, of
other models only, or of other generations only.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimizer.performance.factors import GENERATIONS, FloatArray

METRICS: Final = ("tpot_ms", "ttft_ms", "output_tokens_per_s")
#: What stands behind a prediction, best first; codes of ``evidence_of`` point into this.
EVIDENCE: Final = ("configuration", "model", "accelerator", "none")


@dataclass(frozen=True, slots=True, eq=False)
class Bands:
    """Quantiles of log(measured / predicted) by evidence, metric and engine, at increasing ``levels``.

    ``models`` are the catalogue's names of measured models, ``generations`` those of accelerators
    measured under load, ``thin_generations`` those of which only throughput of old engines is known.
    """

    levels: FloatArray
    log_error: Mapping[str, Mapping[str, Mapping[str, FloatArray]]]
    models: frozenset[str]
    generations: frozenset[str]
    thin_generations: frozenset[str]

    def multiplier(self, metric: str, engine: str, evidence: ArrayLike, level: float) -> FloatArray:
        """What to multiply a prediction with to get its quantile at ``level`` (0..1), for each evidence code.

        Times at a high level are long, rates at a low level are small. Between levels the logarithm is
        interpolated; beyond the outer ones it keeps its last slope. Never decreasing in the level, nor, above
        the median, in the evidence: less evidence is never a narrower band.
        """
        table = np.array([_at(self.levels, self.log_error[name][metric][engine], level) for name in EVIDENCE])
        table = np.maximum.accumulate(table) if level >= 0.5 else np.minimum.accumulate(table)
        return np.asarray(np.exp(table)[np.asarray(evidence, dtype=np.int64)], dtype=np.float64)

    def evidence_of(self, model: str | None, generation_index: ArrayLike) -> NDArray[np.int64]:
        """Code of the evidence for a catalogue model (None: not in the catalogue) on accelerators of generations."""
        measured = np.array([name in self.generations for name in GENERATIONS])
        some = np.array([name in self.thin_generations for name in GENERATIONS])
        base = EVIDENCE.index("configuration" if model in self.models else "model")
        index = np.asarray(generation_index, dtype=np.int64)
        other = np.where(some[index], EVIDENCE.index("accelerator"), EVIDENCE.index("none"))
        return np.where(measured[index], base, other).astype(np.int64)


def _at(levels: FloatArray, values: FloatArray, level: float) -> float:
    """Linear interpolation that goes on with the outer slopes."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"a level lies between 0 and 1, found {level}")
    inside = float(np.interp(level, levels, values))
    if level < levels[0]:
        return float(values[0] - (levels[0] - level) * (values[1] - values[0]) / (levels[1] - levels[0]))
    if level > levels[-1]:
        return float(values[-1] + (level - levels[-1]) * (values[-1] - values[-2]) / (levels[-1] - levels[-2]))
    return inside


def bands_from_document(document: Mapping[str, Any]) -> Bands:
    """Bands from their table's form."""
    errors: dict[str, Any] = {
        evidence: {
            metric: {engine: np.asarray(values, dtype=np.float64) for engine, values in engines.items()}
            for metric, engines in metrics.items()
        }
        for evidence, metrics in document["log_error"].items()
    }
    return Bands(
        np.asarray(document["levels"], dtype=np.float64),
        errors,
        frozenset(document["models"]),
        frozenset(document["generations"]),
        frozenset(document["thin_generations"]),
    )


@cache
def load_bands() -> Bands:
    """The packaged bands."""
    text = resources.files("optimizer.performance").joinpath("data/bands.json").read_text(encoding="utf-8")
    return bands_from_document(json.loads(text))
