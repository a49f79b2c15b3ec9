"""An evaluation on one screen: what is proposed, what it costs, what it breaks, what the optimum would be."""

from optimizer.plan import Baseline
from optimizer.proposals.result import Distance, Evaluation
from optimizer.report import training
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
    if plan.training is not None:
        lines += training.run_lines(plan, width)
    else:
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
        *costs_beside(best, "the proposal"),
        f"{_signed(best.extra_capital_usd)} at start, {best.extra_accelerators:+,d} accelerators, {power} kW",
    ]
    ranked = sorted(best.extra_usd_per_year_by_component.items(), key=lambda item: -abs(item[1]))[:3]
    # A run's bill is its annuity over the horizon: shares of it are told as parts of the whole.
    scale = 1.0 if best.usd is None or not best.usd_per_year else best.usd / best.usd_per_year
    more = [f"{name} {_signed(value * scale)}" for name, value in ranked if abs(value * scale) > 1.0]
    if more:
        parts.append("most of it: " + ", ".join(more))
    return wrapped("Optimum", parts, width)


def costs_beside(best: Distance, what: str) -> list[str]:
    """Cost of the optimum, and how much more something costs: by the year, or the whole of a run and its days."""
    extra = signed_percent(best.extra_fraction)
    if best.usd is None or best.extra_usd is None or best.extra_days is None or best.days is None:
        return [
            f"{usd(best.usd_per_year)} per year",
            f"{what} costs {extra} ({_signed(best.extra_usd_per_year)} per year)",
        ]
    parts = [f"{usd(best.usd)} in all", f"{what} costs {extra} ({_signed(best.extra_usd)} in all)"]
    if abs(best.extra_days) >= 0.05:
        parts.append(f"{significant(abs(best.extra_days))} days {'later' if best.extra_days > 0.0 else 'sooner'}")
    return parts


def baseline_lines(row: Baseline, width: int) -> list[str]:
    """The baseline beside a plan: what it is, what it costs, what the plan saves."""
    if row.summary is None or row.usd_per_year is None or row.saving_usd_per_year is None:
        return wrapped("Baseline", [f"{row.name}: none", row.reason], width, 12)
    if row.usd is not None:
        return wrapped("Baseline", _run_beside(row), width, 12)
    parts = [f"{row.name}: {row.summary}", f"{usd(row.usd_per_year)} per year"]
    if row.is_owned and row.running_usd_per_year is not None:
        parts.append(f"owned: {usd(row.running_usd_per_year)} per year to run")
    word = "saves" if row.saving_usd_per_year >= 0.0 else "costs more by"
    saving = f"the plan {word} {usd(abs(row.saving_usd_per_year))} per year"
    if row.saving_fraction is not None:
        saving += f" ({signed_percent(-row.saving_fraction)})"
    parts.append(saving)
    parts += [*_power(row), _payback(row), *_breaks(row)]
    return wrapped("Baseline", parts, width, 12)


def _run_beside(row: Baseline) -> list[str]:
    """The baseline of runs: whole cost and days."""
    saving, days = row.saving_usd or 0.0, row.saving_days or 0.0
    parts = [f"{row.name}: {row.summary}", f"{usd(row.usd or 0.0)} in all"]
    if row.is_owned:
        parts.append("owned: its capital is paid already")
    word = "saves" if saving >= 0.0 else "costs more by"
    share = f" ({signed_percent(-row.saving_fraction)})" if row.saving_fraction is not None else ""
    parts.append(f"the plan {word} {usd(abs(saving))}{share}")
    if abs(days) >= 0.05:
        parts.append(f"done {significant(abs(days))} days {'sooner' if days > 0.0 else 'later'}")
    return [*parts, *_power(row), *_breaks(row)]


def _power(row: Baseline) -> list[str]:
    if not row.saving_kw:
        return []
    return [f"{significant(abs(row.saving_kw))} kW {'less' if row.saving_kw > 0.0 else 'more'}"]


def _breaks(row: Baseline) -> list[str]:
    if not row.broken:
        return []
    return [f"breaks {row.broken[0]}" + (f" and {len(row.broken) - 1} more" if len(row.broken) > 1 else "")]


def _payback(row: Baseline) -> str:
    if row.payback_months is None:
        return "does not pay back within the horizon"
    if row.payback_months == 0:
        return "no more capital, so nothing to pay back"
    return f"{_signed(row.extra_capital_usd or 0.0)} at start, paid back in month {row.payback_months}"


def _signed(value: float) -> str:
    return f"{'-' if value < 0.0 else '+'}{usd(abs(value))}"
