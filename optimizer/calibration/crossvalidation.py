"""Errors on points that a fit has not seen: by configuration group, by model, by accelerator."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optimizer.calibration.fit import Data, fit, output_rate, predict
from optimizer.calibration.parameters import Parameter
from optimizer.performance.factors import Factors, FloatArray

METRICS = ("tpot_ms", "ttft_ms", "output_tokens_per_s")


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Predictions of each point by a fit that had not seen it."""

    tpot_ms: FloatArray
    ttft_ms: FloatArray
    output_tokens_per_s: FloatArray


@dataclass(frozen=True, slots=True)
class Errors:
    """Absolute relative errors of one metric over some points, as fractions."""

    points: int
    median: float
    mean: float


def folds_of(keys: Sequence[str], folds: int, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The fold of each point: points of one key share it, keys are dealt at random."""
    names = np.array(sorted(set(keys)))
    np.random.default_rng(seed).shuffle(names)
    of_key = {name: index % folds for index, name in enumerate(names)}
    return np.array([of_key[key] for key in keys], dtype=np.int64)


def hold_out(
    data: Data,
    prior: Factors,
    parameters: tuple[Parameter, ...],
    keys: Sequence[str],
    folds: int,
    *,
    start: Factors | None = None,
) -> Held:
    """Refit without each fold and predict it."""
    fold = folds_of(keys, folds)
    tpot, ttft = np.full(len(fold), np.nan), np.full(len(fold), np.nan)
    for index in np.unique(fold):
        fitted = fit(data, prior, parameters, np.flatnonzero(fold != index), start=start, steps=10)
        seen = fold == index
        all_tpot, all_ttft = predict(data, fitted)
        tpot[seen], ttft[seen] = all_tpot[seen], all_ttft[seen]
    return Held(tpot, ttft, output_rate(data, tpot, ttft))


def seen_by(data: Data, factors: Factors) -> Held:
    """Predictions in the sample."""
    tpot, ttft = predict(data, factors)
    return Held(tpot, ttft, output_rate(data, tpot, ttft))


def errors_of(data: Data, held: Held, metric: str, rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Errors:
    """Median and mean absolute relative error of a metric over rows where it was measured."""
    share = np.abs(getattr(held, metric) / getattr(data, metric) - 1.0)[rows]
    share = share[np.isfinite(share)]
    if not share.size:
        return Errors(0, np.nan, np.nan)
    return Errors(int(share.size), float(np.median(share)), float(np.mean(share)))
