"""The bill of a plan for training: every term of every job's servers, or of the fleet, as one line.

Yearly figures of the bill are the annuity, over the horizon, of what is paid for the jobs: ``usd_over_horizon`` is the
whole cost. A line's factors say so: years charged to the job, then the annuity of the horizon.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optimizer.costs import BILL_COMPONENTS
from optimizer.costs.bill import SERVERS, SPARES
from optimizer.costs.term import Term
from optimizer.plan import BillLine
from optimizer.training.choices import Part
from optimizer.training.jobs import Job
from optimizer.training.prices import RUNNING, PoolPrices
from optimizer.training.program import Run, TrainingProgram

#: Components of such a bill, in its order; energy and delay follow from the jobs' days.
COMPONENTS = (*(name for name in BILL_COMPONENTS if name != "recovery"), "delay")
YEARS, ANNUITY = "job_years", "annuity_over_horizon"


@dataclass(frozen=True, slots=True)
class JobLine:
    """A line of the bill with the job it is paid for; None for what is paid as a fleet, with its pool."""

    job: str | None
    pool: str
    line: BillLine


def fleets(data: TrainingProgram, runs: tuple[Run, ...]) -> dict[str, tuple[int, int]]:
    """Pool -> (in service, spare) at the time when most of its servers are held; the earliest of such times."""
    held: dict[str, dict[float, tuple[int, int]]] = {}
    for run in runs:
        start, periods = data.runs[run]
        for part in data.choices[run[0]][run[1]].parts:
            for step in range(periods):
                when = start + step * data.period_days if data.is_shared else 0.0
                place = held.setdefault(part.prices.id, {})
                before = place.get(when, (0, 0))
                place[when] = (before[0] + part.in_service, before[1] + part.spare)
    return {
        key: max(sorted(times.items()), key=lambda item: (sum(item[1]), -item[0]))[1]
        for key, times in sorted(held.items())
    }


def job_lines(data: TrainingProgram, runs: tuple[Run, ...]) -> list[JobLine]:
    """Every line, by job and pool, then by the order of the terms."""
    found: list[JobLine] = []
    at_most = fleets(data, runs)
    paid: dict[str, float] = {}
    for run in runs:
        for part in data.choices[run[0]][run[1]].parts:
            own = float(part.prices.capital_usd(np.array([part.total]))[0])
            paid[part.prices.id] = paid.get(part.prices.id, 0.0) + own
    for run in runs:
        job, choice = data.jobs[run[0]], data.choices[run[0]][run[1]]
        start = data.runs[run][0]
        for part in choice.parts:
            # Capital of jobs that share a fleet is that of the fleet, by what each would have to buy alone.
            whole = float(part.prices.capital_usd(np.array([sum(at_most[part.prices.id])]))[0])
            share = whole / paid[part.prices.id] if paid[part.prices.id] else 1.0
            own_lines = _part_lines(data, job, part, choice.days, share if data.is_shared else 1.0)
            found += [JobLine(job.name, part.prices.id, line) for line in own_lines]
        if job.delay_usd_per_day:
            found.append(JobLine(job.name, "", _delay(data, job, start + choice.days - job.start_day)))
    if data.charges_horizon:
        for key, (in_service, spare) in at_most.items():
            prices = data.pools[key]
            for term in prices.terms:
                if term.component != "rent" and term.component not in RUNNING:
                    part = Part(prices, in_service, spare)
                    found += [JobLine(None, key, line) for line in _term_lines(data, term, part, {}, 1.0, "")]
    order = {name: place for place, name in enumerate(COMPONENTS)}
    return sorted(found, key=lambda one: order[one.line.component])


def _suffix(data: TrainingProgram, job: Job | None, prices: PoolPrices | None) -> str:
    parts = []
    if prices is not None and data.instance.sites and prices.pool.is_bought:
        parts.append(prices.place.name)
    if data.is_shared and job is not None:
        parts.append(job.name)
    return "".join(f", {part}" for part in parts)


def _part_lines(data: TrainingProgram, job: Job, part: Part, days: float, capital_share: float) -> Iterator[BillLine]:
    prices = part.prices
    for term in prices.terms:
        by_job = term.component == "rent" or term.component in RUNNING
        if data.charges_horizon and not by_job:
            continue
        factors: dict[str, float] = {}
        if by_job or data.instance.economics.charge == "job":
            factors = {YEARS: float(prices.years(days, term.component)), ANNUITY: prices.horizon_share}
        yield from _term_lines(data, term, part, factors, capital_share, _suffix(data, job, prices))


def _term_lines(
    data: TrainingProgram, term: Term, part: Part, factors: dict[str, float], capital_share: float, suffix: str
) -> Iterator[BillLine]:
    counts = (np.array([part.in_service]), np.array([part.total]))
    quantity = float(part.prices.quantity(term.quantity, *counts)[0])
    if quantity == 0.0 or term.usd_per_year == 0.0:
        return
    if not suffix and data.charges_horizon:
        suffix = _suffix(data, None, part.prices)
    all_factors = {**dict(term.factors), **factors}
    shares = {term.component: 1.0}
    if term.component == SERVERS and part.spare:
        shares = {SERVERS: part.in_service / part.total, SPARES: part.spare / part.total}
    for component, share in shares.items():
        yield BillLine(
            component=component,
            item=_item(term, part.prices, suffix),
            quantity=quantity * share,
            unit=term.unit,
            unit_price_usd=term.unit_price_usd,
            factors=all_factors,
            usd_per_year=quantity * share * term.unit_price_usd * math.prod(all_factors.values()),
            capital_usd=quantity * share * term.capital_usd * capital_share,
            source=term.source,
            as_of=term.as_of,
            trust=term.trust,
        )


def _item(term: Term, prices: PoolPrices, suffix: str) -> str:
    """Words of a line: what requests add on the serving side is what training adds here; a pool has its plan's name."""
    item = term.item.replace(": requests", ": training")
    if prices.pool.id in item:
        # The pool's own name says the site already.
        return item.replace(prices.pool.id, prices.id) + suffix.removeprefix(f", {prices.place.name}")
    return item + suffix


def _delay(data: TrainingProgram, job: Job, days: float) -> BillLine:
    share = next(iter(data.pools.values())).horizon_share
    return BillLine(
        component="delay",
        item=f"days until the model is there{_suffix(data, job, None)}",
        quantity=days,
        unit="days",
        unit_price_usd=job.delay_usd_per_day,
        factors={ANNUITY: share},
        usd_per_year=days * job.delay_usd_per_day * share,
        capital_usd=0.0,
        source="stated by the user",
        as_of="",
        trust="user",
    )
