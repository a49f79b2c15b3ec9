"""What a plan is held against: savings, payback and power beside today's fleet or the naive choice."""

from typing import Literal

from optimizer.answer import Stop, summary
from optimizer.costs.payback import break_even_month
from optimizer.instance.model import Instance
from optimizer.plan import Baseline, Bill, Headroom, Plan
from optimizer.proposals.evaluation import Evaluated, evaluated
from optimizer.proposals.naive import RULE, naive_plan
from optimizer.proposals.shape import Proposal
from optimizer.solver import Options


def baseline_of(
    instance: Instance,
    plan: Plan,
    given: Literal["naive"] | Proposal | Plan,
    options: Options,
    stop: Stop | None,
) -> Baseline:
    """The row of the naive choice, of a proposal or of another plan beside a plan. ``instance`` is resolved."""
    if given == "naive":
        found, reason = naive_plan(instance, options, stop)
        if found is None:
            return missing("naive", RULE, reason)
        return beside(plan, found, name="naive", rule=RULE, broken=(), is_owned=False)
    return beside_proposal(plan, evaluated(instance, given, options), given.name)


def beside(plan: Plan, other: Plan, *, name: str, rule: str, broken: tuple[Headroom, ...], is_owned: bool) -> Baseline:
    """The baseline's row beside a plan."""
    mine, theirs = plan.bill, other.bill
    running = running_usd_per_year(theirs)
    counted = running if is_owned else theirs.usd_per_year
    saving = counted - mine.usd_per_year
    extra = mine.capital_usd - (0.0 if is_owned else theirs.capital_usd)
    rate = plan.instance.economics.discount_rate
    at_once = extra <= 0.0 and saving >= 0.0
    return Baseline(
        name=name,
        rule=rule,
        summary=summary(other),
        reason="",
        broken=tuple(said(row) for row in broken),
        is_owned=is_owned,
        usd_per_hour=theirs.usd_per_hour,
        usd_per_year=theirs.usd_per_year,
        running_usd_per_year=running,
        capital_usd=theirs.capital_usd,
        accelerators=other.accelerators,
        power_kw=other.power_kw,
        saving_usd_per_year=saving,
        saving_fraction=saving / counted if counted else 0.0,
        saving_kw=other.power_kw - plan.power_kw,
        extra_capital_usd=extra,
        payback_months=0 if at_once else break_even_month(plan, other, rate, is_paid=is_owned),
    )


def missing(name: str, rule: str, reason: str) -> Baseline:
    """The row of a baseline that the rule does not give."""
    return Baseline(
        name=name,
        rule=rule,
        summary=None,
        reason=reason,
        broken=(),
        is_owned=False,
        usd_per_hour=None,
        usd_per_year=None,
        running_usd_per_year=None,
        capital_usd=None,
        accelerators=None,
        power_kw=None,
        saving_usd_per_year=None,
        saving_fraction=None,
        saving_kw=None,
        extra_capital_usd=None,
        payback_months=None,
    )


def beside_proposal(plan: Plan, evaluated: Evaluated, name: str) -> Baseline:
    """The row of a proposal, of today's fleet as a rule, beside a plan."""
    return beside(
        plan,
        evaluated.plan,
        name=name,
        rule="evaluated as it is proposed",
        broken=evaluated.broken,
        is_owned=evaluated.is_owned,
    )


def running_usd_per_year(bill: Bill) -> float:
    """Yearly cost of what is not capital."""
    return sum(line.usd_per_year for line in bill.lines if line.capital_usd == 0.0)


def said(row: Headroom) -> str:
    """A limit with what is needed and what is reached."""
    where = f" ({row.where})" if row.where and row.limit in ("throughput_requests_per_s", "supply") else ""
    return f"{row.label}{where}: {row.reached:,.6g} {row.unit}, {row.direction} {row.needed:,.6g} needed ({row.field})"
