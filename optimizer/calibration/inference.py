"""What a benchmark did not write down, inferred for whole campaigns: multi-token prediction.

Models that are released with a draft head run with or without it, 1.6-2.3 times apart at equal layout and load.
A campaign (engine, version, day) has one setting. It is the one under which the campaign's points agree with
all others: under the wrong one the median point is off by a third and more, under the right one by a few per cent.
"""

import csv
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Final

import numpy as np

from optimizer.calibration.fit import Data, fit, predict
from optimizer.calibration.parameters import Parameter
from optimizer.calibration.points import Point, work_of_points
from optimizer.catalog import Catalog
from optimizer.performance.factors import Factors

#: Families whose models are released with a draft head that engines run.
DRAFT_FAMILIES: Final = frozenset({"deepseek", "glm"})
#: Tokens accepted a step beyond the first, net of drafting: one draft is taken in 85 % of steps (DeepSeek-V3 report).
ACCEPTED_TOKENS: Final = 0.7

Campaign = tuple[str, str, str]


def campaign_of(point: Point) -> Campaign:
    """Engine, version and day: the settings of one run of a benchmark."""
    return (point.engine, point.version, point.measured_on)


@cache
def packaged_drafts() -> frozenset[Campaign]:
    """Campaigns of the packaged points that ran with drafts."""
    text = resources.files("optimizer.calibration").joinpath("data/drafts.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return frozenset((row["engine"], row["engine_version"], row["measured_on"]) for row in rows)


def with_drafts(points: list[Point], catalog: Catalog, drafts: frozenset[Campaign] | None = None) -> list[Point]:
    """Points whose accepted drafts were not stated get those of their campaign; none where it is not known."""
    known = packaged_drafts() if drafts is None else drafts
    return [
        replace(point, accepted=ACCEPTED_TOKENS if _can_draft(point, catalog) and campaign_of(point) in known else 0.0)
        if np.isnan(point.accepted)
        else point
        for point in points
    ]


def _can_draft(point: Point, catalog: Catalog) -> bool:
    return not point.problem and catalog.models[point.model].family in DRAFT_FAMILIES


def infer_drafts(
    points: list[Point], catalog: Catalog, prior: Factors, parameters: tuple[Parameter, ...], rounds: int = 3
) -> Mapping[Campaign, tuple[float, float]]:
    """Median log error of each campaign that may draft, without and with drafts, after agreeing with all others."""
    drafts: frozenset[Campaign] = frozenset()
    seen: dict[Campaign, tuple[float, float]] = {}
    open_points = [point for point in points if np.isnan(point.accepted) and _can_draft(point, catalog)]
    variants = [[replace(point, accepted=accepted) for point in open_points] for accepted in (0.0, ACCEPTED_TOKENS)]
    plain, drafting = (Data.of(points, work_of_points(points, catalog)) for points in variants)
    start = None
    for _ in range(rounds):
        labelled = with_drafts(points, catalog, drafts)
        start = fit(Data.of(labelled, work_of_points(labelled, catalog)), prior, parameters, start=start, steps=6)
        errors = [np.log(predict(data, start)[0] / data.tpot_ms) for data in (plain, drafting)]
        for campaign in sorted({campaign_of(point) for point in open_points}):
            rows = np.array([campaign_of(point) == campaign for point in open_points])
            seen[campaign] = (float(np.median(errors[0][rows])), float(np.median(errors[1][rows])))
        drafts = drafts_of(seen)
    return seen


def drafts_of(evidence: Mapping[Campaign, tuple[float, float]]) -> frozenset[Campaign]:
    """The campaigns that agree better with drafts than without."""
    return frozenset(name for name, (without, with_) in evidence.items() if abs(with_) < abs(without))
