"""An evaluation on one screen: what is proposed, what it costs, what it breaks, what the optimum would be."""

from optimizer.plan import Baseline
from optimizer.proposals.result import Evaluation
from optimizer.report.screen import costs, deployment_lines, limits, server_lines
from optimizer.report.words import counted, signed_percent, significant, usd, wrapped

_MESSAGES = 3


def render(found: Evaluation, width: int = 80) -> str:
    """The evaluation, ``width`` columns wide."""
    plan = found.plan
    state = "keeps every limit" if found.keeps_every_limit else f"breaks {counted(len(found.broken), 'limit')}"
    head = f"{' '.join(found.proposal.split())} · {state}"
    lines = [head if len(head) <= width else head[: width - 1] + "…"]
    for group in plan.servers:
        lines += server_lines(group, width)
    for number, one in enumerate(plan.deployments):
        lines += deployment_lines(one, "Serve" if number == 0 else "", width)
    lines += costs(plan, width)
    lines += ["", *limits(plan, width, broken=frozenset(row.limit for row in found.broken))]
    for number, row in enumerate(found.broken):
        lines += wrapped("Breaks" if number == 0 else "", [row.summary], width)
    if found.outside:
        texts = [f"{one.field}: {one.value}" for one in found.outside]
        lines += wrapped("Outside", ["what the instance's choices leave out", *texts], width)
    lines += _optimum(found, width)
    for message in found.messages[:_MESSAGES]:
        lines += wrapped("Note", [message], width)
    return "\n".join(lines) + "\n"


def _optimum(found: Evaluation, width: int) -> list[str]:
    best = found.optimum
    if best is None:
        if found.optimum_state == "infeasible":
            return wrapped("Optimum", ["none: nothing meets every limit; `optimize explain` says why"], width)
        if found.optimum_state == "stopped":
            return wrapped("Optimum", ["not known: the search was stopped before any plan"], width)
        return []
    power = f"{'+' if best.extra_power_kw >= 0.0 else ''}{significant(best.extra_power_kw)}"
    parts = [
        best.summary,
        f"{usd(best.usd_per_year)} per year",
        f"the proposal costs {signed_percent(best.extra_fraction)} ({_signed(best.extra_usd_per_year)} per year)",
        f"{_signed(best.extra_capital_usd)} at start, {best.extra_accelerators:+,d} accelerators, {power} kW",
    ]
    ranked = sorted(best.extra_usd_per_year_by_component.items(), key=lambda item: -abs(item[1]))[:3]
    more = [f"{name} {_signed(value)}" for name, value in ranked if abs(value) > 1.0]
    if more:
        parts.append("most of it: " + ", ".join(more))
    return wrapped("Optimum", parts, width)


def baseline_lines(row: Baseline, width: int) -> list[str]:
    """The baseline beside a plan: what it is, what it costs, what the plan saves."""
    if row.summary is None or row.usd_per_year is None or row.saving_usd_per_year is None:
        return wrapped("Baseline", [f"{row.name}: none", row.reason], width, 12)
    parts = [f"{row.name}: {row.summary}", f"{usd(row.usd_per_year)} per year"]
    if row.is_owned and row.running_usd_per_year is not None:
        parts.append(f"owned: {usd(row.running_usd_per_year)} per year to run")
    word = "saves" if row.saving_usd_per_year >= 0.0 else "costs more by"
    saving = f"the plan {word} {usd(abs(row.saving_usd_per_year))} per year"
    if row.saving_fraction is not None:
        saving += f" ({signed_percent(-row.saving_fraction)})"
    parts.append(saving)
    if row.saving_kw:
        parts.append(f"{significant(abs(row.saving_kw))} kW {'less' if row.saving_kw > 0.0 else 'more'}")
    parts.append(_payback(row))
    if row.broken:
        parts.append(f"breaks {row.broken[0]}" + (f" and {len(row.broken) - 1} more" if len(row.broken) > 1 else ""))
    return wrapped("Baseline", parts, width, 12)


def _payback(row: Baseline) -> str:
    if row.payback_months is None:
        return "does not pay back within the horizon"
    if row.payback_months == 0:
        return "no more capital, so nothing to pay back"
    return f"{_signed(row.extra_capital_usd or 0.0)} at start, paid back in month {row.payback_months}"


def _signed(value: float) -> str:
    return f"{'-' if value < 0.0 else '+'}{usd(abs(value))}"
