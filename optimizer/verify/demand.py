"""Whether the replicas carry the peak and serve every level (docs/method.md section 4)."""

from collections import defaultdict

from optimizer.plan import Deployment, Plan
from optimizer.verify.facts import Facts, availability
from optimizer.verify.finding import SOLVED_RELATIVE, Ledger
from optimizer.verify.load import class_demand


def check_levels(ledger: Ledger, facts: Facts, plan: Plan) -> None:
    """The plan's load levels are those of the instance."""
    given = len(plan.levels)
    if not ledger.same("V-LEVEL", "levels", given, len(facts.levels), "count of load levels"):
        return
    for place, (found, own) in enumerate(zip(plan.levels, facts.levels, strict=True)):
        path = f"levels[{place}]"
        ledger.number("V-LEVEL", f"{path}.fraction", found.fraction, own.fraction, "share of the peak")
        ledger.number("V-LEVEL", f"{path}.hours_per_year", found.hours_per_year, own.hours, "hours a year")
        given_usd, own_usd = found.usd_per_kwh, own.usd_per_kwh
        known = ledger.same(
            "V-LEVEL", f"{path}.usd_per_kwh", given_usd is None, own_usd is None, "a price by the tariff"
        )
        if known and given_usd is not None and own_usd is not None:
            ledger.number("V-LEVEL", f"{path}.usd_per_kwh", given_usd, own_usd, "mean energy price of its hours")


def check_rates(ledger: Ledger, facts: Facts, plan: Plan) -> None:
    """Every level that lasts is served, and no replica is loaded above the allowed utilization."""
    levels = facts.busy_levels
    served: defaultdict[tuple[str, int], float] = defaultdict(float)
    for place, one in enumerate(plan.deployments):
        weight = class_demand(facts.classes[one.request_class]).weight(one.prediction.latency_ms)
        for number, rate in enumerate(one.rates_requests_per_s):
            path = f"deployments[{place}].rates_requests_per_s[{number}]"
            room = capacity_requests_per_s(facts, plan, one, number)
            served[one.request_class, number] += weight * rate
            fits = 0.0 <= rate <= room * (1.0 + SOLVED_RELATIVE)
            ledger.check(fits, "V-RATE", path, rate, f"0..{room!r}", "more than the replicas can serve")
    for name, one_class in facts.classes.items():
        demand = class_demand(one_class)
        for number, level in enumerate(levels):
            wanted = level.fraction * demand.needed
            path = f"levels[{number}].{name}"
            sentence = "the demand of this level is served, no less and no more"
            ledger.number("V-RATE", path, served[name, number], wanted, sentence, SOLVED_RELATIVE)


def capacity_requests_per_s(facts: Facts, plan: Plan, one: Deployment, level: int = 0) -> float:
    """Requests/s that the replicas of a deployment may carry which run at a level that lasts; the first is the peak."""
    sourcing = next(group.sourcing for group in plan.servers if group.pool == one.pool)
    replicas = one.replicas_by_level[level] if one.replicas_by_level else one.replicas
    share = facts.instance.targets.peak_utilization_fraction * availability(facts, sourcing)
    return share * one.prediction.requests_per_s * replicas


def total_tokens_per_year(facts: Facts, plan: Plan) -> float:
    """Prompt and output tokens served in a year; a prompt found in the prefix cache counts."""
    total = 0.0
    for one in plan.deployments:
        request = facts.classes[one.request_class].request
        served = sum(
            3600.0 * level.hours * rate for level, rate in zip(facts.busy_levels, one.rates_requests_per_s, strict=True)
        )
        total += served * request.input_tokens + served * request.output_tokens
    return total


def busy_accelerator_hours(facts: Facts, plan: Plan) -> float:
    """Accelerator-hours of a year in which replicas serve at their full rate."""
    return sum(
        level.hours * one.accelerators_per_replica * rate / one.prediction.requests_per_s
        for one in plan.deployments
        for rate, level in zip(one.rates_requests_per_s, facts.busy_levels, strict=True)
    )


def output_tokens_per_year(facts: Facts, plan: Plan) -> float:
    """Output tokens served in a year."""
    seconds_per_hour = 3600.0
    return sum(
        rate * level.hours * seconds_per_hour * facts.classes[one.request_class].request.output_tokens
        for one in plan.deployments
        for rate, level in zip(one.rates_requests_per_s, facts.busy_levels, strict=True)
    )
