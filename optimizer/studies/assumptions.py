"""What moves the answer most: each price, bound and assumption is moved through its range and solved again."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from optimizer.instance.model import Instance
from optimizer.plan import Plan
from optimizer.studies import server_movers, site_movers
from optimizer.studies.best import best_plan, prepared, summary
from optimizer.studies.bound_movers import bounds_and_assumptions
from optimizer.studies.movers import Kind, Mover
from optimizer.studies.standing import Standing, Tell

KINDS: tuple[Kind, ...] = ("price", "assumption", "bound")


@dataclass(frozen=True, slots=True)
class End:
    """The best plan at one end of a range; no cost where nothing fits."""

    value: float
    usd_per_year: float | None
    change_usd_per_year: float | None
    summary: str
    is_same_choice: bool


@dataclass(frozen=True, slots=True)
class Assumption:
    """A figure, its range and what that rests on, and what the best plan costs at both ends."""

    name: str
    field: str
    unit: str
    now: float
    basis: str
    trust: str
    as_of: str
    low: End
    high: End
    kind: Kind

    @property
    def change_usd_per_year(self) -> float:
        """The larger of both changes of the total."""
        return max(abs(one.change_usd_per_year or 0.0) for one in (self.low, self.high))

    @property
    def is_decisive(self) -> bool:
        """Whether another choice is best at one end."""
        return not (self.low.is_same_choice and self.high.is_same_choice)

    @property
    def may_forbid(self) -> bool:
        """Whether nothing fits at one end."""
        return self.low.usd_per_year is None or self.high.usd_per_year is None


@dataclass(frozen=True, slots=True)
class Leading:
    """The plan's cost and the figures that move it, the strongest first; those at whose end nothing fits before all.

    ``moved`` were solved at both ends, of ``total`` that can be moved: fewer where the study was stopped.
    """

    name: str
    usd_per_year: float
    summary: str
    assumptions: tuple[Assumption, ...]
    moved: int
    total: int


def leading_assumptions(
    instance: Instance,
    count: int | None = 5,
    instance_path: Path | None = None,
    progress: Tell | None = None,
    kinds: Collection[str] = KINDS,
    stop: Callable[[], bool] | None = None,
    plan: Plan | None = None,
) -> Leading | None:
    """The ``count`` figures whose range moves the total most (None: all), each from solving again at both ends.

    None where nothing fits the instance. ``stop`` is asked between solves; what is done by then is given.
    ``plan``: the best plan, where it is at hand.
    """
    instance = prepared(instance, instance_path)
    plan = plan or best_plan(instance)
    if plan is None:
        return None
    found: list[Assumption] = []
    every = movers(instance, plan, kinds)
    for done, mover in enumerate(every):
        if stop is not None and stop():
            break
        if progress is not None:
            progress(Standing(done, len(every), best=mover.name))
        low, high = (_end(mover, value, plan) for value in (mover.low, mover.high))
        found.append(
            Assumption(
                mover.name,
                mover.field,
                mover.unit,
                mover.now,
                mover.basis,
                mover.trust,
                mover.as_of,
                low,
                high,
                mover.kind,
            )
        )
    moved = len(found)
    found.sort(key=lambda one: (not one.may_forbid, -one.change_usd_per_year, one.name))
    return Leading(plan.name, plan.bill.usd_per_year, summary(plan), tuple(found[:count]), moved, len(every))


def _end(mover: Mover, value: float, plan: Plan) -> End:
    if value == mover.now:
        return End(value, plan.bill.usd_per_year, 0.0, summary(plan), True)
    there = best_plan(*mover.at(value))
    if there is None:
        return End(value, None, None, "nothing fits", False)
    cost = there.bill.usd_per_year
    if plan.training is not None:
        # A run is paid once: spread over another horizon, or at another rate, it would seem to cost another sum a year.
        cost = there.bill.usd_over_horizon * plan.bill.usd_per_year / plan.bill.usd_over_horizon
    # Layouts of equal cost come and go; what is bought, rented and prepared is the choice.
    return End(value, cost, cost - plan.bill.usd_per_year, summary(there), summary(there) == summary(plan))


def movers(instance: Instance, plan: Plan, kinds: Collection[str] = KINDS) -> tuple[Mover, ...]:
    """Every price that the plan pays and the maintenance shares; every assumption; every bound."""
    found = []
    if "price" in kinds:
        found += [*server_movers.servers(instance, plan), *server_movers.rents(instance, plan)]
        for group in (
            site_movers.cooling,
            site_movers.network,
            site_movers.recovery,
            site_movers.site,
            site_movers.people_and_hall,
            site_movers.shares,
        ):
            found += list(group(instance, plan))
    found = [one for one in found if one.now > 0.0]
    if set(kinds) & {"assumption", "bound"}:
        found += [one for one in bounds_and_assumptions(instance) if one.kind in kinds]
    return tuple(found)
