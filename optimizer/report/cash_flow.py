"""The bill by component and year: what is paid when, beside the same cost as an even yearly payment.

Two views of one plan, from its bill alone:

*annuity*  every component costs the same each year (capital as an annuity over its life); discounted and summed over
           the horizon this is the plan's present value, ``usd_over_horizon`` (docs/method.md section 8).
*cash*     capital is paid at year 0 and again when a life ends within the horizon, less what a sale and the write-off
           against tax bring; running cost is paid at the end of each year and rises where the instance says so. What
           outlives the horizon is worth something then: the annuities that are left of its life (``value_left_usd``).
           Cash, discounted, less that value is the same present value; without it (a residual value of zero, the safe
           case) the plan costs ``usd_present_value_no_residual``.
"""

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Final

from optimizer.plan import Plan, rated_levels
from optimizer.report import training_bill
from optimizer.report.csv_tables import as_csv, to_cents
from optimizer.report.line_flows import (
    WHOLE,
    capital_payments,
    present_value_of_one,
    running_payments,
    spans,
    value_left_usd,
)
from optimizer.report.words import significant, usd
from optimizer.units import HOURS_PER_YEAR, MONTHS_PER_YEAR, SECONDS_PER_HOUR, TOKENS_PER_MILLION


@dataclass(frozen=True, slots=True)
class Flow:
    """One component in one year. Year 0 is the start; year 1 is the first year, paid at its end."""

    component: str
    year: int
    cash_usd: float
    value_left_usd: float
    discounted_usd: float
    annuity_usd: float
    annuity_discounted_usd: float


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """The plan's cost by what it buys; annuity view, so every figure is yearly cost over a yearly quantity."""

    usd_over_horizon: float
    usd_present_value_no_residual: float
    usd_per_year: float
    usd_per_month: float
    usd_per_hour: float
    usd_per_accelerator_hour_installed: float
    usd_per_accelerator_hour_used: float | None
    usd_per_million_output_tokens: float | None
    usd_per_million_total_tokens: float | None
    accelerator_hours_installed_per_year: float
    accelerator_hours_used_per_year: float
    output_tokens_per_year: float
    total_tokens_per_year: float


def flows(plan: Plan) -> tuple[Flow, ...]:
    """Every component in every year of the horizon, in the order of the bill."""
    economics = plan.instance.economics
    rate, horizon = economics.discount_rate, economics.horizon_years
    last = math.ceil(horizon - WHOLE)
    result = []
    for component in dict.fromkeys(line.component for line in plan.bill.lines):
        lines = [line for line in plan.bill.lines if line.component == component]
        yearly = math.fsum(line.usd_per_year for line in lines)
        cash, discounted, left = [0.0] * (last + 1), [0.0] * (last + 1), 0.0
        for line in lines:
            payments = capital_payments if line.capital_usd else running_payments
            for one in payments(plan, line):
                cash[one.year] += one.usd
                discounted[one.year] += one.worth_usd
            left += value_left_usd(plan, line) if line.capital_usd else 0.0
        discounted[last] -= left * (1.0 + rate) ** -horizon
        for year, start, end in ((0, 0.0, 0.0), *spans(horizon)):
            factor = present_value_of_one(rate, end) - present_value_of_one(rate, start)
            result.append(
                Flow(
                    component=component,
                    year=year,
                    cash_usd=cash[year],
                    value_left_usd=left if year == last else 0.0,
                    discounted_usd=discounted[year],
                    annuity_usd=yearly * (end - start),
                    annuity_discounted_usd=yearly * factor,
                )
            )
    return tuple(result)


def unit_costs(plan: Plan) -> UnitCosts:
    """Cost per hour, accelerator-hour and token.

    Used accelerator-hours are those of replicas at work: the rate served over the rate of a saturated replica, times
    its accelerators. Total tokens are prompt and output tokens, a prompt found in the prefix cache included.
    """
    economics = plan.instance.economics
    yearly = plan.bill.usd_per_year
    shapes = {one.name: one.request for one in plan.instance.workload.all_classes()}
    hours = [level.hours_per_year for level in rated_levels(plan)]
    used = output = total = 0.0
    for one in plan.deployments:
        shape = shapes[one.request_class]
        for rate, span in zip(one.rates_requests_per_s, hours, strict=True):
            requests = rate * span * SECONDS_PER_HOUR
            used += rate / one.prediction.requests_per_s * span * one.accelerators_per_replica
            output += requests * shape.output_tokens
            total += requests * (shape.input_tokens + shape.output_tokens)
    installed = plan.accelerators * HOURS_PER_YEAR
    rate = economics.discount_rate
    residual = math.fsum(one.value_left_usd for one in flows(plan)) * (1.0 + rate) ** -economics.horizon_years
    return UnitCosts(
        usd_over_horizon=plan.bill.usd_over_horizon,
        usd_present_value_no_residual=plan.bill.usd_over_horizon + residual,
        usd_per_year=yearly,
        usd_per_month=yearly / MONTHS_PER_YEAR,
        usd_per_hour=yearly / HOURS_PER_YEAR,
        usd_per_accelerator_hour_installed=yearly / installed,
        usd_per_accelerator_hour_used=yearly / used if used else None,
        usd_per_million_output_tokens=yearly / output * TOKENS_PER_MILLION if output else None,
        usd_per_million_total_tokens=yearly / total * TOKENS_PER_MILLION if total else None,
        accelerator_hours_installed_per_year=installed,
        accelerator_hours_used_per_year=used,
        output_tokens_per_year=output,
        total_tokens_per_year=total,
    )


_MONEY: Final = ("cash_usd", "value_left_usd", "discounted_usd", "annuity_usd", "annuity_discounted_usd")


def bill_csv(plan: Plan) -> str:
    """Component by year as CSV, with a last row ``total``; each money column sums to its total to the cent."""
    if plan.training is not None:
        return training_bill.bill_csv(plan)
    found = flows(plan)
    columns = [to_cents([getattr(one, name) for one in found]) for name in _MONEY]
    rows: list[list[object]] = [
        [one.component, one.year, *(column[place] for column in columns)] for place, one in enumerate(found)
    ]
    return as_csv(("component", "year", *_MONEY), [*rows, ["total", None, *(sum(column) for column in columns)]])


def bill_json(plan: Plan) -> str:
    """Component by year and the costs per unit as JSON, in full precision."""
    if plan.training is not None:
        return training_bill.bill_json(plan)
    content = {
        "name": plan.name,
        "flows": [asdict(one) for one in flows(plan)],
        "unit_costs": asdict(unit_costs(plan)),
    }
    return f"{json.dumps(content, indent=1, ensure_ascii=False)}\n"


def bill_text(plan: Plan) -> str:
    """Cash by year and the costs per unit, for people."""
    if plan.training is not None:
        return training_bill.bill_text(plan)
    found = flows(plan)
    lines = [f"  {'Year':<8}{'cash':>14}{'left at end':>14}{'discounted':>14}{'annuity':>14}{'discounted':>14}"]

    def row(label: str, chosen: Iterable[Flow]) -> str:
        kept = list(chosen)
        amounts = (math.fsum(getattr(one, name) for one in kept) for name in _MONEY)
        return f"  {label:<8}" + "".join(f"{usd(amount):>14}" for amount in amounts)

    years = sorted({one.year for one in found})
    lines += [row(str(year), (one for one in found if one.year == year)) for year in years]
    lines += [row("total", found), ""]
    units = unit_costs(plan)
    shown: tuple[tuple[str, float | None, Callable[[float], str]], ...] = (
        ("present value over the horizon", units.usd_over_horizon, usd),
        ("  with nothing left of what outlives it", units.usd_present_value_no_residual, usd),
        ("per year", units.usd_per_year, usd),
        ("per month", units.usd_per_month, usd),
        ("per accelerator-hour installed", units.usd_per_accelerator_hour_installed, usd),
        ("per accelerator-hour used", units.usd_per_accelerator_hour_used, usd),
        ("per million output tokens", units.usd_per_million_output_tokens, usd),
        ("per million tokens, prompt and output", units.usd_per_million_total_tokens, usd),
        ("accelerators at work, share of hours", _share(units), significant),
    )
    lines += [f"  {label:<42}{show(value):>14}" for label, value, show in shown if value is not None]
    return "\n".join(lines) + "\n"


def _share(units: UnitCosts) -> float:
    return units.accelerator_hours_used_per_year / units.accelerator_hours_installed_per_year
