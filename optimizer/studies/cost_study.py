"""Why a plan costs what it costs: the best plan of each way to get servers, and what moves the total most."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from optimizer.instance.model import Instance
from optimizer.plan import Plan
from optimizer.plan_cost import CostStudy, MovedFigure, WayCost
from optimizer.studies.assumptions import Assumption, leading_assumptions
from optimizer.studies.best import prepared
from optimizer.studies.buy_or_rent import Way, buy_or_rent
from optimizer.studies.standing import Tell

#: What the planner asks for is no assumption, so bounds are not moved.
KINDS: Final = ("price", "assumption")
#: Figures that are told.
COUNT: Final = 5


def explain_cost(
    instance: Instance,
    plan: Plan,
    instance_path: Path | None = None,
    progress: Tell | None = None,
    stop: Callable[[], bool] | None = None,
    count: int = COUNT,
) -> Plan:
    """The plan with ``cost_study``: buying against renting, and the ``count`` figures that move its total most.

    Everything is solved again: three ways to get servers, and both ends of the range of every price and assumption.
    ``stop`` is asked between solves; what is done by then is given.
    """
    instance = prepared(instance, instance_path)
    ways = buy_or_rent(instance, plan=plan)
    leading = leading_assumptions(instance, count, progress=progress, kinds=KINDS, stop=stop, plan=plan)
    study = CostStudy(
        ways=tuple(_way(one, plan) for one in (ways.optimum, ways.buy, ways.rent, ways.on_demand)),
        break_even_utilization_fraction=ways.utilization,
        mean_load_fraction=ways.load,
        break_even_month=ways.month,
        break_even_month_discounted=ways.month_discounted,
        figures=tuple(_figure(one) for one in leading.assumptions) if leading else (),
        moved=leading.moved if leading else 0,
        movable=leading.total if leading else 0,
    )
    return plan.model_copy(update={"cost_study": study})


def _way(way: Way, plan: Plan) -> WayCost:
    row = way.row()
    yearly = None if way.plan is None else way.plan.bill.usd_per_year
    extra = None if yearly is None or not plan.bill.usd_per_year else yearly / plan.bill.usd_per_year - 1.0
    return WayCost(
        name=way.name,
        sourcing=tuple(way.sourcing),
        is_allowed=way.is_allowed,
        holds=str(row["holds"]),
        summary=str(row["summary"]),
        accelerators=None if way.plan is None else way.plan.accelerators,
        usd_per_year=yearly,
        capital_usd=None if way.plan is None else way.plan.bill.capital_usd,
        extra_fraction=extra,
    )


def _figure(one: Assumption) -> MovedFigure:
    return MovedFigure(
        name=one.name,
        field=one.field,
        unit=one.unit,
        now=one.now,
        low=one.low.value,
        high=one.high.value,
        low_usd_per_year=one.low.usd_per_year,
        high_usd_per_year=one.high.usd_per_year,
        change_usd_per_year=one.change_usd_per_year,
        is_decisive=one.is_decisive,
        basis=one.basis,
        trust=one.trust,
        as_of=one.as_of,
    )
