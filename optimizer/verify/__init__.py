"""The checker: believes nothing that a plan derives, and computes it again from its choice.

It shares no code with the program: its limits, its bill and its arithmetic are its own (docs/method.md, sections 2-8).
A plan that it refuses is a bug of ours and is not written.
"""

from optimizer.plan import Plan
from optimizer.verify.finding import CODES, Finding, Ledger, VerifyError

__all__ = ["CODES", "Finding", "VerifyError", "verify"]


def verify(plan: Plan) -> tuple[Finding, ...]:
    """Every contradiction of a plan, in the order of its parts; empty: the plan stands.

    Names, counts and offers come first: where they do not hold, nothing is computed from them.
    """
    if plan.instance.workload.kind == "training":
        from optimizer.verify.training import check_training

        return check_training(plan)
    from optimizer.performance.factors import factors_with
    from optimizer.verify.bill import own_lines
    from optimizer.verify.demand import (
        busy_accelerator_hours,
        check_levels,
        check_rates,
        output_tokens_per_year,
        total_tokens_per_year,
    )
    from optimizer.verify.facts import gather, group_facts
    from optimizer.verify.fleet import check_fleet, measure
    from optimizer.verify.headroom import check_limits, own_reaches
    from optimizer.verify.money import check_lines, check_totals, check_units
    from optimizer.verify.origin import check_origin
    from optimizer.verify.prediction import asked_again
    from optimizer.verify.site import check_site
    from optimizer.verify.structure import check_structure

    ledger = Ledger()
    try:
        facts = gather(plan.instance)
    except KeyError as error:
        ledger.add(
            "V-CATALOG", "instance", error, "a resolved instance", "the instance names what the catalogue has not"
        )
        return tuple(ledger.findings)
    check_structure(ledger, facts, plan)
    if ledger.findings:
        return tuple(ledger.findings)
    plan = asked_again(ledger, facts, plan, factors_with(plan.instance.workload.calibration_document()))
    groups = {one.pool: group_facts(facts, one) for one in plan.servers}
    fleet = measure(facts, plan, groups)
    lines = own_lines(facts, plan, fleet)
    check_levels(ledger, facts, plan)
    check_rates(ledger, facts, plan)
    check_fleet(ledger, facts, plan, fleet)
    check_site(ledger, facts, plan, fleet)
    check_lines(ledger, plan, lines)
    check_totals(ledger, facts, plan, lines, output_tokens_per_year(facts, plan))
    check_units(ledger, plan, total_tokens_per_year(facts, plan), busy_accelerator_hours(facts, plan))
    capital = sum(line.capital_usd for line in lines)
    yearly = sum(line.usd_per_year for line in lines)
    check_limits(ledger, plan, own_reaches(facts, plan, fleet, capital, yearly))
    check_origin(ledger, facts, plan)
    return tuple(ledger.findings)
