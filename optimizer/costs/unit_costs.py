"""A plan's cost by what it buys: month, accelerator-hour, million tokens (docs/report.md, costs per unit)."""

from optimizer.costs.tokens import usd_per_installed_hour, usd_per_million_tokens_of_year
from optimizer.plan import Plan, rated_levels
from optimizer.units import MONTHS_PER_YEAR, SECONDS_PER_HOUR


def with_unit_costs(plan: Plan) -> Plan:
    """The plan with its yearly cost over each yearly quantity in the bill.

    An accelerator is at work for the rate served over the rate of its saturated replica. Tokens are prompt and output,
    prompts found in the prefix cache included.
    """
    shapes = {one.name: one.request for one in plan.instance.workload.all_classes()}
    hours = [level.hours_per_year for level in rated_levels(plan)]
    used = tokens = 0.0
    for one in plan.deployments:
        shape = shapes[one.request_class]
        requests = sum(rate * span for rate, span in zip(one.rates_requests_per_s, hours, strict=True))
        used += requests / one.prediction.requests_per_s * one.accelerators_per_replica
        tokens += requests * SECONDS_PER_HOUR * (shape.input_tokens + shape.output_tokens)
    yearly = plan.bill.usd_per_year
    units = {
        "usd_per_month": yearly / MONTHS_PER_YEAR,
        "usd_per_million_total_tokens": usd_per_million_tokens_of_year(yearly, tokens) if tokens else None,
        "usd_per_accelerator_hour_installed": usd_per_installed_hour(yearly, float(plan.accelerators)),
        "usd_per_accelerator_hour_used": yearly / used if used else None,
    }
    return plan.model_copy(update={"bill": plan.bill.model_copy(update=units)})
