"""The answer on one screen: what to buy, what it costs, which limits it has to spare, what the next best costs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from optimizer.plan import Deployment, Headroom, Plan, PrefillRole, Ranked, RunnerUp, ServerGroup
from optimizer.report.words import TERMS, counted, percent, rented_from, signed_percent, significant, usd, wrapped

if TYPE_CHECKING:
    from optimizer.diagnosis import Diagnosis

#: Messages and runners-up beyond these stand in the plan file.
_MESSAGES, _RUNNERS_UP, _CHANGES, _KILLS, _SHARES, _CAUSES = 1, 2, 5, 4, 5, 3
#: Figures in which a ranked plan is better.
_BETTER = 3
_SOURCING = {"buy": "Buy", "owned": "Keep"}
#: What makes the screen say more of the cost: buying against renting, what moves it most.
_WHY = "why: --explain-cost"
#: What a component of the bill is called where its own name says less.
_COMPONENTS = {"recovery": "preparation of weights"}
_HOLDS = {"proven": "optimal, proven", "feasible": "best found, not proven"}


def render(plan: Plan, timing: Mapping[str, float] | None = None, width: int = 80) -> str:
    """The plan on one screen, ``width`` columns wide."""
    lines = [
        *_title(plan.name, f"{_HOLDS[plan.outcome.holds]} (gap {percent(plan.outcome.gap)}){_seconds(timing)}", width)
    ]
    if plan.training is not None:
        return _rendered_training(plan, lines, width)
    for group in plan.servers:
        lines += server_lines(group, width)
    for number, one in enumerate(plan.deployments):
        lines += deployment_lines(one, "Serve" if number == 0 else "", width)
    lines += costs(plan, width, why="" if plan.cost_study else _WHY)
    lines += ["", *limits(plan, width)]
    lines += _ranked(plan.ranking, width) if plan.ranking else _next_best(plan.runners_up, width)
    if plan.baseline is not None:
        from optimizer.report.evaluation import baseline_lines

        lines += baseline_lines(plan.baseline, width)
    if plan.cost_study is not None:
        from optimizer.report.cost_study import cost_study_lines

        lines += cost_study_lines(plan, width)
    lines += _footer(plan, width)
    return "\n".join(lines) + "\n"


def _rendered_training(plan: Plan, lines: list[str], width: int) -> str:
    from optimizer.report import training

    for group in plan.servers:
        lines += server_lines(group, width)
    lines += training.run_lines(plan, width)
    lines += ["", *limits(plan, width)]
    lines += _ranked(plan.ranking, width) if plan.ranking else training.next_best_lines(plan, width)
    if plan.baseline is not None:
        from optimizer.report.evaluation import baseline_lines

        lines += baseline_lines(plan.baseline, width)
    if plan.cost_study is not None:
        from optimizer.report.cost_study import cost_study_lines

        lines += cost_study_lines(plan, width)
    lines += training.footer_lines(plan, width)
    return "\n".join(lines) + "\n"


def render_diagnosis(diagnosis: "Diagnosis", timing: Mapping[str, float] | None = None, width: int = 80) -> str:
    """Why nothing fits and what to change, on one screen."""
    lines = [*_title(diagnosis.name, f"infeasible: no allowed choice meets every limit{_seconds(timing)}", width), ""]
    search = diagnosis.search
    if diagnosis.stage == "no_candidate":
        kills = [f"{one.kills:,} break {one.field}" for one in diagnosis.kills[:_KILLS]]
        lines += wrapped("Searched", [counted(search.candidates, "candidate"), *kills], width, 12)
    else:
        lines += wrapped(
            "Searched",
            [
                f"{search.admissible:,} of {counted(search.candidates, 'candidate')} meet their own limits",
                "no fleet of them meets the caps",
            ],
            width,
            12,
        )
    if diagnosis.nearest is not None:
        misses = [f"{name}: {text}" for name, text in diagnosis.nearest.misses.items()]
        lines += wrapped("Nearest", [diagnosis.nearest.summary, *misses], width, 12)
    if diagnosis.clash:
        parts = [f"{one.field} {one.value} {one.unit}".rstrip() for one in diagnosis.clash]
        lines += wrapped("Clash", [*parts, "cannot hold together"], width, 12)
    if diagnosis.changes or diagnosis.widenings:
        lines += ["", "  Any one of these is enough"]
        # A run's own cost stands in its summary: its hours are not those of the horizon.
        is_run = diagnosis.instance.workload.kind == "training"
        for change in diagnosis.changes[:_CHANGES]:
            known = change.usd_per_hour is not None and not is_run
            price = f"then {usd(change.usd_per_hour or 0.0)} per hour" if known else ""
            lines += wrapped("", [change.summary, price], width, 4, joint="   ")
        for wider in diagnosis.widenings[:_CHANGES]:
            price = "" if is_run else f"then {usd(wider.usd_per_hour)} per hour"
            lines += wrapped("", [wider.summary, *([price] if price else [])], width, 4, joint="   ")
    for several in diagnosis.combined:
        lines += ["", "  These are enough together"]
        for move in several.moves:
            lines += wrapped("", [move.summary], width, 4)
        lines += wrapped("", [f"then {usd(several.usd_per_hour)} per hour"], width, 4)
    for message in diagnosis.messages[:_CAUSES]:
        lines += wrapped("Note", [message], width)
    return "\n".join(lines) + "\n"


def _title(name: str, state: str, width: int) -> list[str]:
    name = " ".join(name.split())
    line = f"{name} · {state}"
    return [line] if len(line) <= width else [name[:width], f"  {state}"]


def _seconds(timing: Mapping[str, float] | None) -> str:
    return f" in {sum(timing.values()):.1f} s" if timing else ""


def server_lines(group: ServerGroup, width: int) -> list[str]:
    """The servers of one pool."""
    total = group.servers * group.accelerators_per_server
    unit = f"{group.accelerators_per_server} x {group.accelerator}"
    parts = [f"{counted(group.servers, 'server')} of {unit} ({counted(total, 'accelerator')})"]
    if group.spare:
        parts.append(f"{group.spare:,} of them spare")
    if group.power_cap_fraction < 1.0:
        parts.append(f"capped at {percent(group.power_cap_fraction)} of their power")
    if group.cooling is not None:
        parts += [counted(group.racks, "rack"), f"{group.cooling} cooling"]
    else:
        parts.append(TERMS[group.sourcing])
        parts += [name for name in (rented_from(group.provider, group.region),) if name]
        if group.servers_by_level and min(group.servers_by_level) < group.servers:
            parts.append(f"{min(group.servers_by_level):,} to {group.servers:,} of them by the load")
    return wrapped(_SOURCING.get(group.sourcing, "Rent"), parts, width)


def deployment_lines(one: Deployment, label: str, width: int) -> list[str]:
    """One deployment, its layout and scheme."""
    layout = _layout(one)
    recovery = "" if one.recovery == "none" else f" + {one.recovery}"
    served = "" if one.request_class == "all" else f" for {one.request_class}"
    what = f"{counted(one.replicas, 'replica')} of {layout}{served}, {one.concurrency:,} in flight"
    if one.prefill is not None:
        what = (
            f"{counted(one.replicas, 'unit')}{served} of {counted(one.prefill.replicas, 'prefill replica')}"
            f" ({_layout(one.prefill)}) and {counted(one.decode_replicas, 'decode replica')} ({layout}),"
            f" {one.concurrency:,} in flight each"
        )
    return wrapped(label, [what, f"{one.scheme}{recovery}, {one.kv_scheme}"], width)


def _layout(one: Deployment | PrefillRole) -> str:
    layout = f"TP {one.tensor_parallel}"
    for name, degree in (
        ("PP", one.pipeline_parallel),
        ("EP", one.expert_parallel),
        ("attention DP", one.attention_data_parallel),
    ):
        if degree > 1:
            layout += f" x {name} {degree}"
    return layout


def costs(plan: Plan, width: int, *, why: str = "") -> list[str]:
    """What it costs, on every basis, and where it goes; ``why`` says where more of it can be read."""
    bill = plan.bill
    horizon = significant(plan.instance.economics.horizon_years).rstrip("0").rstrip(".")
    rates = (
        f"{usd(bill.usd_per_year)} per year = {usd(bill.usd_per_hour)} per hour"
        f" = {usd(bill.usd_per_million_output_tokens)} per million output tokens"
    )
    totals = [f"{usd(bill.usd_over_horizon)} over {horizon} years (present value)"]
    if bill.capital_usd:
        totals.append(f"{usd(bill.capital_usd)} at start")
    if plan.power_kw:
        totals.append(f"{significant(plan.power_kw)} kW")
    shares = sorted(bill.usd_per_year_by_component.items(), key=lambda item: -item[1])
    parts = [
        f"{_COMPONENTS.get(name, name)} {percent(value / bill.usd_per_year)}"
        for name, value in shares[:_SHARES]
        if bill.usd_per_year
    ]
    if len(shares) > _SHARES:
        parts.append(f"other {percent(sum(value for _, value in shares[_SHARES:]) / bill.usd_per_year)}")
    parts += [why] if parts and why else []
    shown = wrapped("", parts, width) if parts else []
    return [*wrapped("Cost", [rates], width), *wrapped("", totals, width), *shown]


def limits(plan: Plan, width: int, broken: frozenset[str] = frozenset()) -> list[str]:
    """A table of the limits; those that hold the plan back, or are broken, are marked."""
    name_width = max(26, width - 54)
    lines = [f"  {'Limit':<{name_width}}{'needed':>14}{'reached':>12}{'spare':>10}"]
    for row in plan.headroom:
        needed = f"{row.direction} {_value(row.needed)}"
        mark = "  <- broken" if row.limit in broken else "  <- binds" if row.binding and not broken else ""
        figures = f"{needed:>14}{_value(row.reached):>12}{percent(row.spare_fraction):>10}"
        lines.append(f"  {_label(plan, row)[: name_width - 1]:<{name_width}}{figures}{mark}")
    return lines


def _label(plan: Plan, row: Headroom) -> str:
    """Name and unit of a limit; demand is in its own unit, and of its class where there are several."""
    if row.limit == "throughput_requests_per_s":
        classes = plan.instance.workload.all_classes()
        users = any(one.demand.concurrent_users is not None for one in classes if one.name == row.where)
        name = row.where if len(classes) > 1 else row.label
        return f"{name}, {'users' if users else 'requests/s'}"
    unit = {"fraction": "", "accelerators": "", "servers": "", "racks": "", "types": ""}.get(row.unit, row.unit)
    return f"{row.label}, {unit}" if unit else row.label


def _value(value: float) -> str:
    return f"{value:.4f}" if 0.5 < value < 1.0 else significant(value)


def _next_best(rows: tuple[RunnerUp, ...], width: int) -> list[str]:
    """The cheapest plan without each thing the plan uses; the first is the next best, with its reason."""
    lines: list[str] = []
    for number, row in enumerate(rows[:_RUNNERS_UP]):
        label = "Next best" if number == 0 else ""
        if row.extra_fraction is None:
            parts = [f"without {row.without}: {row.reason}"]
        else:
            parts = [f"{signed_percent(row.extra_fraction)} without {row.without}: {row.summary}"]
            parts += [row.reason] if number == 0 else []
        lines += wrapped(label, parts, width, 12)
    return lines


def _ranked(rows: tuple[Ranked, ...], width: int) -> list[str]:
    """The next best distinct plans, each with what it is better at."""
    lines: list[str] = []
    for row in rows:
        proven = [] if row.holds == "proven" else ["not proven"]
        better = [f"better: {', '.join(row.better[:_BETTER])}"] if row.better else []
        parts = [f"{signed_percent(row.extra_fraction)}: {row.summary}", *proven, *better]
        lines += wrapped(f"Rank {row.rank}", parts, width)
    return lines


def _bands(plan: Plan, width: int) -> list[str]:
    """Model error of the deployment whose latency is least sure, from measured points that the fit had not seen."""
    names = (("tpot_ms", "per token"), ("ttft_ms", "first token"), ("output_tokens_per_s", "tokens/s"))
    worst = max(plan.deployments, key=lambda one: one.prediction.bands["tpot_ms"][1] / one.prediction.tpot_ms)
    seen = worst.prediction
    parts = []
    for name, label in names:
        low, high = seen.bands[name]
        value = getattr(seen, name)
        parts.append(f"{label} {signed_percent(low / value - 1.0)} .. {signed_percent(high / value - 1.0)}")
    return wrapped("Band", [", ".join(parts), f"80 %, model error; evidence: {seen.evidence}"], width)


def _footer(plan: Plan, width: int) -> list[str]:
    parts = [
        f"{counted(len(plan.defaults), 'input')} defaulted",
        f"{percent(plan.bill.assumed_fraction)} of cost assumed",
    ]
    if plan.bill.oldest_price:
        parts.append(f"oldest price {plan.bill.oldest_price}")
    lines = wrapped("Trust", parts, width)
    lines += _bands(plan, width)
    more = len(plan.messages) - _MESSAGES
    for message in plan.messages[:_MESSAGES]:
        lines += wrapped("Note", [f"{message} (+{more} more in the plan)" if more > 0 else message], width)
    return lines
