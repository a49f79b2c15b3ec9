"""Buy or rent: the best plan of each kind beside the optimum, and where one overtakes the other."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, get_args

from optimizer.costs.payback import break_even_month
from optimizer.instance.choices import Sourcing
from optimizer.instance.model import Instance
from optimizer.plan import Plan
from optimizer.studies.best import best_plan, prepared, summary
from optimizer.units import HOURS_PER_YEAR

BUY: Final[tuple[Sourcing, ...]] = ("buy",)
RENT: Final[tuple[Sourcing, ...]] = tuple(one for one in get_args(Sourcing) if one != "buy")
ON_DEMAND: Final[tuple[Sourcing, ...]] = ("on_demand",)


@dataclass(frozen=True, slots=True)
class Way:
    """The best plan that gets its servers in some ways only.

    Attributes
    ----------
    sourcing: the ways it may use. is_allowed: whether the instance's own choices hold one of them; where they do not,
        the way is shown all the same, as what would be had if they did.
    plan: None where nothing fits.
    """

    name: str
    sourcing: tuple[Sourcing, ...]
    is_allowed: bool
    plan: Plan | None

    def row(self) -> dict[str, object]:
        """Its figures, for tables."""
        bill = None if self.plan is None else self.plan.bill
        return {
            "way": self.name,
            "sourcing": list(self.sourcing),
            "is_allowed": self.is_allowed,
            "holds": "nothing" if self.plan is None else self.plan.outcome.holds,
            "summary": "nothing fits" if self.plan is None else summary(self.plan),
            "accelerators": None if self.plan is None else self.plan.accelerators,
            "usd_per_year": None if bill is None else bill.usd_per_year,
            "usd_per_hour": None if bill is None else bill.usd_per_hour,
            "usd_over_horizon": None if bill is None else bill.usd_over_horizon,
            "capital_usd": None if bill is None else bill.capital_usd,
        }


@dataclass(frozen=True, slots=True)
class BuyOrRent:
    """The optimum, the best plan of each way, and the break-even between them; None where there is none.

    Attributes
    ----------
    utilization: share of the year's hours for which the best fleet on demand would have to run at the peak so that it
        costs what the owned fleet costs; the owned one stands all year, its energy for requests follows the load.
        Above it buying is cheaper.
    load: mean load of the instance as a share of its peak, to hold ``utilization`` against.
    month: first month by whose end all that was paid for buying is at most all that was paid for renting, within the
        horizon, money not discounted; ``month_discounted`` with money discounted.
    """

    name: str
    optimum: Way
    buy: Way
    rent: Way
    on_demand: Way
    utilization: float | None
    load: float
    month: int | None
    month_discounted: int | None

    def as_json(self) -> dict[str, object]:
        """Every figure, for ``json.dumps``."""
        return {
            "name": self.name,
            "ways": [one.row() for one in (self.optimum, self.buy, self.rent, self.on_demand)],
            "break_even_utilization_fraction": self.utilization,
            "mean_load_fraction": self.load,
            "break_even_month": self.month,
            "break_even_month_discounted": self.month_discounted,
        }


def buy_or_rent(instance: Instance, instance_path: Path | None = None, plan: Plan | None = None) -> BuyOrRent:
    """Solve an instance as it stands, buying only, renting only, and on demand only.

    ``plan``: the best plan as it stands, where it is at hand. A way that the optimum already goes is not solved again.
    """
    instance = prepared(instance, instance_path)
    best = Way("optimum", instance.choices.sourcing, True, plan or best_plan(instance))
    known = [best]
    for name, ways in (("all bought", BUY), ("all rented", RENT), ("all on demand", ON_DEMAND)):
        known.append(_restricted(instance, name, ways, known))
    _, buy, rent, on_demand = known
    months = [
        # A run is paid once: no month brings back what was bought for it.
        None
        if buy.plan is None or rent.plan is None or buy.plan.training is not None
        else break_even_month(buy.plan, rent.plan, rate)
        for rate in (0.0, instance.economics.discount_rate)
    ]
    some = best.plan or buy.plan or rent.plan
    return BuyOrRent(
        name=instance.name,
        optimum=best,
        buy=buy,
        rent=rent,
        on_demand=on_demand,
        utilization=None
        if buy.plan is None or on_demand.plan is None or buy.plan.training is not None
        else break_even_utilization(buy.plan, on_demand.plan),
        load=1.0 if some is None else mean_load(some),
        month=months[0],
        month_discounted=months[1],
    )


def _restricted(instance: Instance, name: str, ways: tuple[Sourcing, ...], known: Iterable[Way]) -> Way:
    """The best plan that keeps to ``ways``; one already at hand that does, and was free to do otherwise, is it."""
    allowed = tuple(one for one in ways if one in instance.choices.sourcing)
    searched = allowed or ways
    if instance.workload.kind == "training":
        searched = tuple(one for one in searched if one != "spot")  # runs on spot servers are not priced
    for other in known:
        wider = set(searched) <= set(other.sourcing)
        if wider and (other.plan is None or {group.sourcing for group in other.plan.servers} <= set(searched)):
            return Way(name, searched, bool(allowed), other.plan)
    choices = instance.choices.model_copy(update={"sourcing": searched})
    return Way(name, searched, bool(allowed), best_plan(instance.model_copy(update={"choices": choices})))


def mean_load(plan: Plan) -> float:
    """Hour-weighted mean load as a share of the peak; a run is always at full load."""
    if plan.training is not None:
        return 1.0
    return math.fsum(level.fraction * level.hours_per_year for level in plan.levels) / HOURS_PER_YEAR


def break_even_utilization(buy: Plan, on_demand: Plan) -> float | None:
    """Share of the hours at which renting by the hour costs what owning costs; None: renting is cheaper even at 1.

    ``u = (F - Q) / (R - E)`` with F the owned fleet's cost an hour without the energy of requests, E that energy at the
    peak load, R the rent of the whole rented fleet an hour, Q what renting costs beside rent.
    """
    per_request = math.fsum(
        line.usd_per_year for line in buy.bill.lines if line.component == "energy" and line.unit == "kWh/year"
    )
    rent = on_demand.bill.usd_per_year_by_component.get("rent", 0.0)
    load = mean_load(buy)
    at_peak = per_request / load if load else 0.0
    saved = rent - at_peak
    if saved <= 0.0:
        return None
    share = (buy.bill.usd_per_year - per_request - (on_demand.bill.usd_per_year - rent)) / saved
    return max(0.0, share) if share <= 1.0 else None
