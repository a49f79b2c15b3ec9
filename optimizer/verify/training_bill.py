"""The checker's own bill of training: each job's servers as a fleet of their own, charged for its days."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from optimizer.instance.model import Instance
from optimizer.plan import Plan, ServerGroup
from optimizer.plan_training import JobPart, TrainedJob, TrainingPlan
from optimizer.units import HOURS_PER_YEAR
from optimizer.verify.bill import own_lines
from optimizer.verify.facts import Facts, GroupFacts, Quote, group_facts
from optimizer.verify.fleet import PoolEnergy, measure
from optimizer.verify.lines import Line, recovery_factor

_DAYS_A_YEAR: Final = 365.25
#: Paid for the time in which jobs run, whatever the servers are charged for.
_RUNNING: Final = frozenset({"energy", "carbon", "water"})
#: Years of a commitment.
_TERMS: Final = {"on_demand": 0.0, "reserved_1yr": 1.0, "reserved_3yr": 3.0}


@dataclass(frozen=True, slots=True)
class Held:
    """Servers of one group, at one place, with what the checker knows of them."""

    facts: Facts
    one: GroupFacts

    @property
    def busy_kw(self) -> float:
        """Power of a server that trains."""
        curve = self.facts.catalog.power_curves[self.one.row.generation]
        return self.one.loaded_kw(curve.training_fraction * self.one.row.server_power_kw)


def held(facts: Facts, group: ServerGroup, part: JobPart) -> Held:
    """A part of a job as a group of its own."""
    total = part.in_service + part.spare
    mine = group.model_copy(update={"servers": total, "in_service": part.in_service, "spare": part.spare})
    return Held(facts, group_facts(facts, mine))


def lines_of(plan: Plan, place: Held) -> list[Line]:
    """Yearly lines of servers that train all year."""
    facts, one = place.facts, place.one
    # Facts of a site know the hall that the plan chose there.
    hall = facts.instance.site.facility
    alone = plan.model_copy(update={"servers": (one.group,), "deployments": (), "facility": hall})
    groups = {one.group.pool: one}
    fleet = measure(facts, alone, groups)
    above = one.group.in_service * (place.busy_kw - one.idle_kw) if one.is_bought else 0.0
    levels = tuple(above * level.hours for level in facts.busy_levels)
    energy = {
        pool: PoolEnergy(each.idle_kwh, above * HOURS_PER_YEAR, levels, above if facts.demand_usd_per_kw_month else 0.0)
        for pool, each in fleet.energy_kwh.items()
    }
    return own_lines(facts, alone, replace(fleet, energy_kwh=energy))


def years_of(instance: Instance, one: GroupFacts, component: str, days: float) -> float | None:
    """Years that a component is charged for; None: for the whole horizon, as it stands."""
    years = days / _DAYS_A_YEAR
    if component == "rent":
        term = _TERMS[one.group.sourcing]
        return years if term == 0.0 else math.ceil(years / term - 1e-9) * term
    if component in _RUNNING or instance.economics.charge == "job":
        return years
    return None


def training_lines(
    plan: Plan, training: TrainingPlan, facts: Mapping[str, Facts], delay_usd_per_day: Mapping[str, float]
) -> list[Line]:
    """Every line of the bill, by job, then of shared fleets; then what delay costs."""
    economics = plan.instance.economics
    annuity = recovery_factor(economics.discount_rate, economics.horizon_years)
    groups = {group.pool: group for group in plan.servers}
    shared = len(training.jobs) > 1
    as_fleet = shared and economics.charge == "horizon"
    capital = _capital_shares(plan, training, facts) if shared else {}
    found: list[Line] = []
    for job in training.jobs:
        for part in job.parts:
            place = held(facts[part.site], groups[part.pool], part)
            for line in lines_of(plan, place):
                years = years_of(plan.instance, place.one, line.component, job.days)
                if years is None and as_fleet:
                    continue
                found.append(_scaled(line, () if years is None else (years, annuity), capital.get(part.pool, 1.0)))
        rate = delay_usd_per_day[job.name]
        if rate:
            days = job.end_day - earliest(plan, job)
            found.append(Line("delay", "days", days, "days", Quote.user(rate), (annuity,)))
    if as_fleet:
        for group in plan.servers:
            site = next(part.site for job in training.jobs for part in job.parts if part.pool == group.pool)
            place = Held(facts[site], group_facts(facts[site], group))
            kept = ("rent", *_RUNNING)
            found += [line for line in lines_of(plan, place) if line.component not in kept]
    return [line for line in found if line.usd_per_year != 0.0]


def earliest(plan: Plan, job: TrainedJob) -> float:
    """Day on which the job could start at the earliest."""
    jobs = getattr(plan.instance.workload, "jobs", ())
    return next((one.earliest_start_day for one in jobs if one.name == job.name), 0.0)


@dataclass(frozen=True, slots=True)
class SharedLine(Line):
    """A line of a job that shares its fleet: its capital is a part of the fleet's."""

    capital_share: float = 1.0

    @property
    def capital_usd(self) -> float:
        """Paid at the start."""
        return self.capital_share * self.quantity * self.price.usd if self.is_capital else 0.0


def _scaled(line: Line, factors: tuple[float, ...], share: float) -> SharedLine:
    """A line with the years it is charged for."""
    return SharedLine(
        line.component,
        line.subject,
        line.quantity,
        line.unit,
        line.price,
        (*line.factors, *factors),
        line.is_capital,
        line.price_code,
        line.pool,
        share,
    )


def _capital_shares(plan: Plan, training: TrainingPlan, facts: Mapping[str, Facts]) -> dict[str, float]:
    """Pool -> capital of the fleet over the sum of what its jobs would pay for fleets of their own."""
    alone: dict[str, float] = {}
    fleet: dict[str, float] = {}
    for group in plan.servers:
        for job in training.jobs:
            for part in job.parts:
                if part.pool == group.pool:
                    place = held(facts[part.site], group, part)
                    alone[group.pool] = alone.get(group.pool, 0.0) + sum(x.capital_usd for x in lines_of(plan, place))
                    if group.pool not in fleet:
                        whole = Held(facts[part.site], group_facts(facts[part.site], group))
                        fleet[group.pool] = sum(line.capital_usd for line in lines_of(plan, whole))
    return {pool: fleet[pool] / usd if usd else 1.0 for pool, usd in alone.items()}
