"""Predictions of points by fits that had not seen them, and the bands that follow from their errors."""

import csv
from collections.abc import Mapping
from importlib import resources
from typing import Any, Final

import numpy as np

from optimizer.calibration.crossvalidation import Held, hold_out
from optimizer.calibration.fit import Data, output_rate
from optimizer.calibration.parameters import MEASURED_GENERATIONS, Parameter
from optimizer.calibration.throughput import THIN_GENERATIONS
from optimizer.performance.bands import METRICS
from optimizer.performance.factors import ENGINES, Factors, FloatArray

#: Ways of holding points out, with the folds of each; 0: one fold a key.
WAYS: Final[Mapping[str, int]] = {"group": 10, "model": 0, "accelerator": 0}
LEVELS: Final = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
#: Without any measurement the error of a generation left out is taken this many times.
_NO_EVIDENCE: Final = 1.5
_LEAST_POINTS: Final = 30


def keys_of(data: Data, way: str) -> list[str]:
    """What is held out together."""
    return [getattr(point, way) for point in data.points]


def hold_out_all(data: Data, prior: Factors, parameters: tuple[Parameter, ...], start: Factors) -> dict[str, Held]:
    """Every way of holding out."""
    found = {}
    for way, folds in WAYS.items():
        keys = keys_of(data, way)
        found[way] = hold_out(data, prior, parameters, keys, folds or len(set(keys)), start=start)
    return found


def held_text(data: Data, held: Mapping[str, Held]) -> str:
    """Held-out times as a table, four digits."""
    names = [f"{metric}_{way}" for way in held for metric in METRICS[:2]]
    columns = [getattr(held[way], metric) for way in held for metric in METRICS[:2]]
    lines = [",".join(("id", *names))]
    for row, point in enumerate(data.points):
        lines.append(",".join((point.id, *(f"{column[row]:.4g}" for column in columns))))
    return "\n".join(lines) + "\n"


def packaged_held(data: Data) -> dict[str, Held]:
    """The packaged held-out predictions, in the order of the packaged points."""
    text = resources.files("optimizer.calibration").joinpath("data/held_out.csv").read_text(encoding="utf-8")
    rows = {row["id"]: row for row in csv.DictReader(text.splitlines())}
    found = {}
    for way in WAYS:
        tpot, ttft = (
            np.array([float(rows[point.id][f"{metric}_{way}"]) for point in data.points]) for metric in METRICS[:2]
        )
        found[way] = Held(tpot, ttft, output_rate(data, tpot, ttft))
    return found


def log_errors(data: Data, held: Held, metric: str) -> FloatArray:
    """log(measured / predicted) of every point."""
    errors: FloatArray = np.log(getattr(data, metric) / getattr(held, metric))
    return errors


def bands_document(data: Data, held: Mapping[str, Held]) -> dict[str, Any]:
    """Quantiles of held-out errors by evidence, metric and engine."""
    engines = np.array([point.engine for point in data.points])
    errors: dict[str, Any] = {}
    for evidence, way in (("configuration", "group"), ("model", "model"), ("accelerator", "accelerator")):
        errors[evidence] = {}
        for metric in METRICS:
            found = log_errors(data, held[way], metric)
            by_engine = {}
            for engine in ENGINES:
                own = found[engines == engine]
                own = own if own.size >= _LEAST_POINTS else found
                by_engine[engine] = [round(float(value), 4) for value in np.nanquantile(own, LEVELS)]
            errors[evidence][metric] = by_engine
    errors["none"] = {
        metric: {engine: [round(_NO_EVIDENCE * value, 4) for value in values] for engine, values in by_engine.items()}
        for metric, by_engine in errors["accelerator"].items()
    }
    return {
        "version": 1,
        "meaning": "quantiles of log(measured / predicted) on points that the fit had not seen",
        "levels": list(LEVELS),
        "models": sorted({point.model for point in data.points}),
        "generations": list(MEASURED_GENERATIONS),
        "thin_generations": list(THIN_GENERATIONS),
        "log_error": errors,
    }
