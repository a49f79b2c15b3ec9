"""What a plan is held against: savings, payback and power beside today's fleet or the naive choice."""

from typing import Literal

from optimizer.answer import Stop
from optimizer.costs.payback import break_even_month
from optimizer.instance.model import Instance
from optimizer.plan import Baseline, Bill, Headroom, Plan
from optimizer.proposals.broken import Evaluated
from optimizer.proposals.kinds import evaluated, naive, summary_of
from optimizer.proposals.shape import Proposal
from optimizer.proposals.training_shape import TrainingProposal
from optimizer.solver import Options


def baseline_of(
    instance: Instance,
    plan: Plan,
    given: Literal["naive"] | Proposal | TrainingProposal | Plan,
    options: Options,
    stop: Stop | None,
) -> Baseline:
    """The row of the naive choice, of a proposal or of another plan beside a plan. ``instance`` is resolved."""
    if given == "naive":
        found, rule, reason = naive(instance, options, stop)
        if found is None:
            return missing("naive", rule, reason)
        return beside(plan, found, name="naive", rule=rule, broken=(), is_owned=False)
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
    # A run is paid once: there are no yearly savings that pay a purchase back.
    payback = (
        None if plan.training is not None else 0 if at_once else break_even_month(plan, other, rate, is_paid=is_owned)
    )
    return Baseline(
        name=name,
        rule=rule,
        summary=summary_of(other),
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
        payback_months=payback,
        **_of_runs(plan, other, counted),
    )


def _of_runs(plan: Plan, other: Plan, counted_usd_per_year: float) -> dict[str, float | None]:
    """Whole cost and days of the baseline's runs, and what the plan saves of both."""
    if plan.training is None or other.training is None:
        return dict.fromkeys(("usd", "days", "saving_usd", "saving_days"))
    annuity = plan.bill.usd_per_year / plan.training.usd if plan.training.usd else 1.0
    return {
        "usd": other.training.usd,
        "days": other.training.days,
        "saving_usd": counted_usd_per_year / annuity - plan.training.usd,
        "saving_days": other.training.days - plan.training.days,
    }


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
        usd=None,
        days=None,
        saving_usd=None,
        saving_days=None,
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
