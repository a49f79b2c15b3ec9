"""What a study of uncertainty gives: how each plan fares over the scenarios, and which is best by which measure."""

from dataclasses import dataclass

import numpy as np

from optimizer.studies.robust.two_stage import Now, weighted_shortfall

#: Shares of the scenarios at which the distribution of cost is told.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True)
class FieldDrawn:
    """An uncertain field as it was drawn."""

    field: str
    unit: str
    distribution: str
    now: float | None
    low: float
    median: float
    high: float


@dataclass(frozen=True, slots=True)
class Fared:
    """How a choice made beforehand fares over the scenarios, with the best use of servers on demand in each.

    ``usd_per_year`` has None where it cannot keep every limit; ``failing`` counts those. Money figures are over the
    scenarios that it serves; shortfall and regret are None when it fails in any: nothing bounds them.
    """

    name: str
    summary: str
    now: Now
    usd_per_year: tuple[float | None, ...]
    failing: int
    expected_usd_per_year: float | None
    shortfall_usd_per_year: float | None
    largest_regret_usd_per_year: float | None
    mean_regret_usd_per_year: float | None
    quantiles_usd_per_year: tuple[float, ...] | None


def fared(
    name: str,
    summary: str,
    now: Now,
    costs: tuple[float | None, ...],
    best: tuple[float, ...],
    risk_level: float,
) -> Fared:
    """The figures of a choice from its cost and the least cost in each scenario, all equally likely."""
    served = [cost for cost in costs if cost is not None]
    regrets = [cost - least for cost, least in zip(costs, best, strict=True) if cost is not None]
    failing = len(costs) - len(served)
    share = [1.0 / len(served)] * len(served) if served else []
    return Fared(
        name=name,
        summary=summary,
        now=now,
        usd_per_year=costs,
        failing=failing,
        expected_usd_per_year=sum(served) / len(served) if served else None,
        shortfall_usd_per_year=weighted_shortfall(served, share, risk_level) if served and not failing else None,
        largest_regret_usd_per_year=max(0.0, *regrets) if regrets and not failing else None,
        mean_regret_usd_per_year=sum(regrets) / len(regrets) if regrets and not failing else None,
        quantiles_usd_per_year=tuple(float(one) for one in np.quantile(served, QUANTILES)) if served else None,
    )


@dataclass(frozen=True, slots=True)
class Proof:
    """What the program proved of an aim over its own scenarios: value and bound, USD per year."""

    aim: str
    usd_per_year: float
    bound_usd_per_year: float
    gap_fraction: float


@dataclass(frozen=True, slots=True)
class Robust:
    """The study.

    ``scenarios`` were drawn; ``unmet`` of them no plan can serve and they count nowhere else. ``in_program`` stand in
    the program for the others. ``breaks`` counts, over the scenarios that some plan can serve, how often the nominal
    plan as it stands breaks each limit; ``broken_fraction`` how often any. ``best`` is the cost of each scenario's own
    best plan.
    """

    name: str
    fields: tuple[FieldDrawn, ...]
    scenarios: int
    seed: int
    risk_level: float
    unmet: int
    in_program: int
    rounds: int
    values: tuple[tuple[float, ...], ...]
    best_usd_per_year: tuple[float, ...]
    nominal_summary: str
    nominal_usd_per_year: float
    breaks: dict[str, int]
    broken_fraction: float
    plans: tuple[Fared, ...]
    proofs: tuple[Proof, ...]
    messages: tuple[str, ...]
    is_complete: bool
