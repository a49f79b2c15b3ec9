"""Which limits a plan breaks when an instance turns out otherwise: the plan as it stands, nothing added or moved.

The checker's own arithmetic is used (``optimizer.verify``): the same replicas at the same concurrency are predicted
again for the other instance, and each limit is held against what they and their servers reach. Load is shared among
replicas by their capacity.
"""

from optimizer.instance.model import Instance
from optimizer.performance.factors import factors_with
from optimizer.plan import Deployment, Plan
from optimizer.verify.bill import own_lines
from optimizer.verify.demand import capacity_requests_per_s
from optimizer.verify.facts import Facts, gather, group_facts
from optimizer.verify.finding import Ledger
from optimizer.verify.fleet import measure
from optimizer.verify.headroom import own_reaches
from optimizer.verify.load import class_demand
from optimizer.verify.prediction import asked_again


def broken_limits(plan: Plan, instance: Instance) -> frozenset[str]:
    """Names of the limits (``optimizer.limits``) that the plan breaks under another instance."""
    facts = gather(instance)
    moved = asked_again(Ledger(), facts, plan.model_copy(update={"instance": instance}), factors_with(
        instance.workload.calibration_document()
    ))  # fmt: skip
    moved = moved.model_copy(update={"deployments": tuple(_loaded(facts, moved, one) for one in moved.deployments)})
    fleet = measure(facts, moved, {one.pool: group_facts(facts, one) for one in moved.servers})
    lines = own_lines(facts, moved, fleet)
    capital = sum(line.capital_usd for line in lines)
    yearly = sum(line.usd_per_year for line in lines)
    return frozenset(one.limit for one in own_reaches(facts, moved, fleet, capital, yearly) if not one.holds)


def _loaded(facts: Facts, plan: Plan, one: Deployment) -> Deployment:
    """The deployment with its share of the demand at each level that lasts."""
    demand = class_demand(facts.classes[one.request_class])
    carried = sum(
        demand.weight(each.prediction.latency_ms) * capacity_requests_per_s(facts, plan, each)
        for each in plan.deployments
        if each.request_class == one.request_class
    )
    peak = capacity_requests_per_s(facts, plan, one) * min(1.0, demand.needed / carried) if carried else 0.0
    rates = tuple(level.fraction * peak for level in facts.busy_levels)
    return one.model_copy(update={"rates_requests_per_s": rates})
