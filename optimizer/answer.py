"""One solve from screened candidates to a verified plan: the program, ties, runners-up."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from optimizer import ties
from optimizer.errors import InternalError
from optimizer.extract import make_plan
from optimizer.fleet import Fleet, fleet_of
from optimizer.offer import Offer, Without, program_data
from optimizer.performance.bands import load_bands
from optimizer.plan import Plan, RunnerUp
from optimizer.program import build_program
from optimizer.program_data import ProgramData
from optimizer.rounding import add_rounded_rows
from optimizer.solver import Compiled, Options, Outcome, Reason, Search, solver_name
from optimizer.ties import Stop as Stop


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What one program gave: its data, how the solver ended, the fleet it holds.

    ``cheapest`` is the fleet of least cost as the solver met it, before ties within ``extract.TIE`` were broken.
    """

    data: ProgramData | None
    outcome: Outcome
    fleet: Fleet | None
    model: Any = None
    cheapest: Fleet | None = None


NOTHING = Outcome(Reason.INFEASIBLE, float("nan"), -float("inf"), None, 0, 0.0)


def answer(
    offer: Offer, options: Options, without: Without, stop: Stop | None = None, *, break_ties: bool = True
) -> Answer:
    """Solve the program without the given choices; ties are broken by fewest accelerators, types, then names."""
    data = program_data(offer, without)
    if data is None:
        return Answer(None, NOTHING, None)
    deadline = time.perf_counter() + options.time_limit_s
    model = build_program(data)
    compiled = Compiled(model)
    if not break_ties:
        # They lift the bound on cost, but spread the reduced costs that narrow the search among ties.
        add_rounded_rows(compiled, model, data)
    if data.start is not None:
        compiled.start_from_counts(_start_columns(compiled, model, data.start))
    outcome = compiled.solve(options, stop, search=Search.SMALL, is_cost=True)
    if outcome.values is None:
        return Answer(data, outcome, None, model)
    values = compiled.rounded(outcome.values)
    cheapest = None
    if break_ties and outcome.reason is Reason.OPTIMAL:
        cheapest = fleet_of(data, compiled.by_index(values))
        values = ties.break_ties(compiled, model, data, outcome, values, options, deadline, stop)
    fleet = fleet_of(data, compiled.by_index(values))
    return Answer(data, outcome, fleet, model, cheapest or fleet)


def _start_columns(compiled: Compiled, model: Any, start: Mapping[tuple[str, ...], float]) -> dict[int, float]:
    """Values by column: those of the plan at hand, 0 for the other counts of replicas, servers and spares."""
    values = {}
    for name in ("Replicas", "Servers", "Spare", "Running", "Used"):
        for index, variable in getattr(model, name).items():
            key = (name, *index) if isinstance(index, tuple) else (name, index)
            values[compiled.column_of(variable)] = start.get(key, 0.0)
    return values


def plan_of(offer: Offer, solved: Answer, options: Options) -> Plan:
    """The plan of an answer that holds a fleet."""
    if solved.data is None or solved.fleet is None:
        raise InternalError("a plan was asked of an answer without a fleet")
    return make_plan(offer, solved.data, solved.fleet, solved.outcome, options, solver_name())


def uses(plan: Plan) -> Iterator[tuple[str, Without]]:
    """What a plan uses, each with the choice of doing without it."""
    for key in sorted({group.accelerator for group in plan.servers}):
        yield f"accelerator {key}", Without(accelerators=frozenset({key}))
    for key in sorted({f"{one.scheme}+{one.kv_scheme}+{one.recovery}" for one in plan.deployments}):
        yield f"scheme {key}", Without(schemes=frozenset({key}))
    for key in sorted({group.cooling for group in plan.servers if group.cooling is not None}):
        yield f"cooling {key}", Without(cooling=frozenset({key}))
    for key in sorted({group.sourcing for group in plan.servers}):
        yield f"sourcing {key}", Without(sourcing=frozenset({key}))


def alternatives(
    offer: Offer, plan: Plan, options: Options, stop: Stop | None, deadline: float
) -> list[tuple[RunnerUp, Plan | None]]:
    """The cheapest plan without each thing that the plan uses, cheapest first; the first is the next best plan.

    Each is a program of its own, solved to the asked gap; those that the time does not suffice for are left out. A
    thing that no plan can do without has a row and no plan.
    """
    rows: list[tuple[RunnerUp, Plan | None]] = []
    for name, without in uses(plan):
        left = deadline - time.perf_counter()
        if left <= 0.0 or (stop is not None and stop()):
            break
        row = alternative(offer, plan, name, without, replace(options, time_limit_s=left), stop)
        if row is not None:
            rows.append(row)
    return sorted(rows, key=lambda row: (row[0].usd_per_hour is None, row[0].usd_per_hour or 0.0, row[0].without))


def alternative(
    offer: Offer, plan: Plan, name: str, without: Without, options: Options, stop: Stop | None
) -> tuple[RunnerUp, Plan | None] | None:
    """The cheapest plan without something, held against the plan; None where the search was stopped before it knew."""
    other = answer(offer, options, without, stop, break_ties=False)
    if other.fleet is None or other.data is None:
        if other.outcome.reason is not Reason.INFEASIBLE:
            return None
        reason = "nothing else meets every limit"
        return RunnerUp(without=name, summary="no plan", usd_per_hour=None, extra_fraction=None, reason=reason), None
    found = make_plan(offer, other.data, other.fleet, other.outcome, options, plan.outcome.solver, plan)
    extra = found.bill.usd_per_hour / plan.bill.usd_per_hour - 1.0 if plan.bill.usd_per_hour else 0.0
    row = RunnerUp(
        without=name,
        summary=summary(found),
        usd_per_hour=found.bill.usd_per_hour,
        extra_fraction=extra,
        reason=difference(plan, found),
    )
    return row, found


def runners_up(offer: Offer, plan: Plan, options: Options, stop: Stop | None, deadline: float) -> tuple[RunnerUp, ...]:
    """Rows of ``alternatives`` alone."""
    return tuple(row for row, _ in alternatives(offer, plan, options, stop, deadline))


def measured_alternative(
    offer: Offer,
    plan: Plan,
    others: list[tuple[RunnerUp, Plan | None]],
    options: Options,
    stop: Stop | None,
    deadline: float,
) -> str | None:
    """What the best plan on accelerators with measured serving points would be, where the plan uses others.

    One of ``others`` may be that plan already: the one without the only such accelerator, when it uses none itself.
    """
    types = {pool.server_type.accelerator.id: pool.server_type.accelerator for pool in offer.setting.pools}
    bands = load_bands()
    measured = bands.generations | bands.thin_generations
    unmeasured = frozenset(key for key, row in types.items() if row.generation not in measured)
    used = {group.accelerator for group in plan.servers} & unmeasured
    if not used:
        return None
    name = "accelerators without measured serving points"
    for row, found in others:
        known = found is not None and not unmeasured & {group.accelerator for group in found.servers}
        if known and used == {row.without.removeprefix("accelerator ")}:
            return _said(used, row)
    left = deadline - time.perf_counter()
    if left <= 0.0 or (stop is not None and stop()):
        return None
    other = alternative(offer, plan, name, Without(accelerators=unmeasured), replace(options, time_limit_s=left), stop)
    return None if other is None else _said(used, other[0])


def _said(used: Iterable[str], row: RunnerUp) -> str:
    lead = f"no measured serving point stands behind {' and '.join(sorted(used))}"
    if row.extra_fraction is None:
        return f"{lead}, and no plan on measured accelerators meets every limit"
    return f"{lead}; the best plan that has them costs {row.extra_fraction:+.1%}: {row.summary}"


def summary(plan: Plan) -> str:
    """What a plan buys, in a few words."""
    parts = []
    for group in plan.servers:
        how = group.cooling or group.sourcing.replace("_", " ")
        how = f"owned, {how}" if group.sourcing == "owned" else how
        parts.append(f"{group.servers} x {group.server_type} ({how})")
    schemes = sorted(
        {one.scheme if one.recovery == "none" else f"{one.scheme} + {one.recovery}" for one in plan.deployments}
    )
    return " + ".join(parts) + ", " + ", ".join(schemes)


def difference(plan: Plan, other: Plan) -> str:
    """Where the other plan is dearer and where it is better."""
    changes = []
    names = {*plan.bill.usd_per_year_by_component, *other.bill.usd_per_year_by_component}
    for name in names:
        before = plan.bill.usd_per_year_by_component.get(name, 0.0)
        after = other.bill.usd_per_year_by_component.get(name, 0.0)
        changes.append((after - before, name))
    total = plan.bill.usd_per_year
    dearer = [name for usd, name in sorted(changes, reverse=True) if usd > 0.002 * total][:2]
    cheaper = [name for usd, name in sorted(changes) if usd < -0.002 * total][:2]
    parts = []
    if dearer:
        parts.append("dearer " + " and ".join(dearer))
    if cheaper:
        parts.append("cheaper " + " and ".join(cheaper))
    if other.accelerators != plan.accelerators:
        more = other.accelerators - plan.accelerators
        parts.append(f"{more:+,d} accelerator{'' if abs(more) == 1 else 's'}")
    fastest = (
        min(one.prediction.tpot_ms for one in other.deployments),
        min(one.prediction.tpot_ms for one in plan.deployments),
    )
    if abs(fastest[0] / fastest[1] - 1.0) > 0.05:
        parts.append(
            f"{abs(1.0 - fastest[0] / fastest[1]):.0%} {'faster' if fastest[0] < fastest[1] else 'slower'} per token"
        )
    return "; ".join(parts) or "nearly the same"
