"""The verb ``calibrate`` as a function: fit what a user's own points can say, keep the packaged constants else."""

import hashlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from optimizer.calibration.crossvalidation import METRICS, Errors, errors_of, hold_out, seen_by
from optimizer.calibration.fit import Data, fit
from optimizer.calibration.inference import with_drafts
from optimizer.calibration.packaged import calibration_document
from optimizer.calibration.parameters import Parameter, serving_parameters
from optimizer.calibration.points import Point, read_points, read_table, work_of_points
from optimizer.calibration.tables import is_collection, online_row
from optimizer.catalog import Catalog, load_catalog
from optimizer.performance.factors import ENGINES, GENERATIONS, Factors, load_factors

#: Folds of the comparison before and after; fewer where there are fewer configuration groups.
_FOLDS: Final = 5
#: How far a user's points move a constant against how far the packaged points moved it from the table's.
_TRUST: Final = 0.7


@dataclass(frozen=True, slots=True)
class Calibration:
    """A calibration to write (``document``), and errors on the user's points before and after it, by metric.

    ``after`` is cross-validated by configuration group where there are at least two, else in the sample.
    """

    document: dict[str, Any]
    factors: Factors
    points: int
    left_out: int
    before: dict[str, Errors]
    after: dict[str, Errors]
    cross_validated: bool


def parameters_for(points: list[Point], generations: frozenset[int]) -> tuple[Parameter, ...]:
    """Constants that these points touch: their engines' and their generations', and what all share."""
    engines = {ENGINES.index(point.engine) for point in points}
    found = []
    for parameter in serving_parameters():
        narrowed = Parameter(parameter.factor, parameter.index, parameter.scale, parameter.width * _TRUST)
        if parameter.factor in _BY_GENERATION:
            continue
        if parameter.factor in _BY_ENGINE and parameter.index[0] not in engines:
            continue
        found.append(narrowed)
    like = [p for p in serving_parameters() if p.factor in _BY_GENERATION and p.index[0] == _MODEL_GENERATION]
    for generation in sorted(generations):
        found += [Parameter(p.factor, (generation, *p.index[1:]), p.scale, p.width * _TRUST) for p in like]
    return tuple(found)


_MODEL_GENERATION: Final = GENERATIONS.index("blackwell")
_BY_GENERATION: Final = frozenset(
    {"bandwidth_efficiency", "flop_efficiency", "kv_bandwidth_efficiency", "attention_flop_efficiency"}
)
_BY_ENGINE: Final = frozenset(
    parameter.factor
    for parameter in serving_parameters()
    if parameter.index and parameter.factor not in _BY_GENERATION | {"expert_bandwidth_efficiency"}
)


def calibrate(
    text: str, *, name: str = "own points", catalog: Catalog | None = None, factors: Factors | None = None
) -> Calibration:
    """Fit the measurement table ``text`` (CSV), drawn towards ``factors``, by default the packaged ones.

    Rows without both times, or of unknown models and accelerators, are left out. ValueError where none is left.
    """
    catalog, prior = catalog or load_catalog(), factors or load_factors()
    columns, rows = read_table(text)
    plain = [online_row(row) for row in rows] if is_collection(columns) else rows
    every = with_drafts(read_points(plain, catalog), catalog)
    points = [p for p in every if not p.problem and np.isfinite(p.tpot_ms) and p.tpot_ms > 0]
    if not points:
        raise ValueError("no row with a measured TPOT, a known model and a known accelerator")
    data = Data.of(points, work_of_points(points, catalog))
    generations = frozenset(int(g) for g in np.unique(np.asarray(data.work.generation)))
    parameters = parameters_for(points, generations)
    fitted = fit(data, prior, parameters)
    groups = [point.group for point in points]
    folds = min(len(set(groups)), _FOLDS)
    held = hold_out(data, prior, parameters, groups, folds, start=fitted) if folds > 1 else seen_by(data, fitted)
    whole = np.ones(len(points), dtype=np.bool_)
    before = seen_by(data, prior)
    document = calibration_document(fitted, parameters, text)
    document["source"] = f"calibration on {len(points)} points of {name}, drawn towards the packaged constants"
    document["as_of"] = max((point.measured_on for point in points), default="") or document["as_of"]
    document["points_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    return Calibration(
        document=document,
        factors=fitted,
        points=len(points),
        left_out=len(every) - len(points),
        before={metric: errors_of(data, before, metric, whole) for metric in METRICS},
        after={metric: errors_of(data, held, metric, whole) for metric in METRICS},
        cross_validated=folds > 1,
    )
