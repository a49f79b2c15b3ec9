"""Solve an instance with a choice forced, and say what that breaks or costs."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optimizer.advice.advise import Advice, advise
from optimizer.advice.attempt import Search
from optimizer.answer import Answer, Stop, answer, plan_of, summary
from optimizer.candidates import FloatArray, build_candidates
from optimizer.catalog import load_catalog
from optimizer.errors import InternalError, StoppedWithoutPlan
from optimizer.explain import nearest_candidate
from optimizer.fleet import fleet_of
from optimizer.instance.model import Instance
from optimizer.limits import limit
from optimizer.models import served_model
from optimizer.offer import Offer, Without, make_offer, program_data
from optimizer.performance.factors import factors_with
from optimizer.plan import Plan
from optimizer.program import build_program
from optimizer.proposals.result import OutsideChoice
from optimizer.proposals.telling import distance_to
from optimizer.ranking import compared
from optimizer.schemes import scheme_options
from optimizer.screen import Screened, screen
from optimizer.setting import Setting, build_setting
from optimizer.solver import Compiled, Options, Reason
from optimizer.verify import verify
from optimizer.whynot.asked import Asked, left_out
from optimizer.whynot.result import NearestValue, Verdict, WhyNot

#: A difference of cost below this share is none.
_SAME = 2e-6


@dataclass(frozen=True, slots=True)
class _Forced:
    """The instance with the choice forced, screened and offered."""

    instance: Instance
    setting: Setting
    offer: Offer | None
    reasons: tuple[str, ...]


def why_not(
    instance: Instance, asked: Asked, best: Plan | None, options: Options, stop: Stop | None, deadline: float
) -> WhyNot:
    """Why the plan ``best`` (None: the instance has none) does not make a choice. ``instance`` is resolved."""
    forced = _forced(instance, asked)
    outside = tuple(
        OutsideChoice(field=field, value=value) for field, value in left_out(instance, asked, forced.setting)
    )
    if forced.offer is None:
        return _told(
            instance,
            asked,
            "cannot_be_had",
            f"{asked.text} cannot be had: {forced.reasons[0]}",
            outside,
            forced.reasons,
        )
    offer = forced.offer
    found, least = _solve(offer, asked, options, stop)
    if found.fleet is not None and found.data is not None:
        plan = plan_of(offer, found, options)
        _checked(plan)
        return _priced(instance, asked, best, plan, outside)
    if least is None and found.outcome.reason is not Reason.INFEASIBLE:
        why = f"stopped by {found.outcome.reason.value.replace('_', ' ')} before it was known"
        return _told(instance, asked, "unknown", why, outside, ())
    reasons: list[str] = []
    if least is not None:
        reasons.append(least)
    screened = offer.screened
    values = tuple(nearest_values(screened))
    search = Search(offer, options, stop, deadline, restrict=asked.restricted)
    advice = Advice() if least is not None else advise(search, widen=False)
    return WhyNot(
        name=instance.name,
        asked=asked.text,
        verdict="breaks_limits",
        summary=_why(asked, values, advice, least),
        outside=outside,
        reasons=tuple(reasons),
        nearest_values=values,
        nearest=nearest_candidate(screened) if values else None,
        clash=advice.clash,
        changes=advice.changes,
    )


def best_of(instance: Instance, options: Options, stop: Stop | None) -> Plan | None:
    """The cheapest plan of a resolved instance alone; None where nothing fits. Raises StoppedWithoutPlan."""
    setting = build_setting(instance, load_catalog())
    model = served_model(instance, setting.catalog)
    factors = factors_with(instance.workload.calibration_document())
    offer = make_offer(screen(build_candidates(setting, model, scheme_options(setting, model), factors)))
    found = answer(offer, options, Without(), stop)
    if found.fleet is not None:
        return plan_of(offer, found, options)
    if found.outcome.reason is Reason.INFEASIBLE:
        return None
    raise StoppedWithoutPlan("stopped before the plan to compare with was found")


def _forced(instance: Instance, asked: Asked) -> _Forced:
    """The forced instance's offer, or why there is none."""
    given = asked.forced(instance)
    setting = asked.restricted(build_setting(given, load_catalog()))
    reasons = [f"{one.server_type} is not offered with {one.cooling}: {one.reason}" for one in setting.refusals]
    if asked.server_types and not setting.pools:
        known = sorted({one.id for one in setting.server_types})
        reasons.insert(0, f"no such server can be had; there are {', '.join(known) or 'none'}")
    if not setting.pools:
        ways = ", ".join(given.choices.sourcing)
        reasons.append(f"no server of it has a price ({ways}) and a cooling that it can take")
        return _Forced(given, setting, None, tuple(reasons))
    model = served_model(given, setting.catalog)
    factors = factors_with(given.workload.calibration_document())
    candidates = build_candidates(setting, model, scheme_options(setting, model), factors)
    if not candidates.size:
        ranked = sorted(candidates.not_startable.items(), key=lambda item: (-item[1], item[0]))
        reasons = [f"no engine starts it: {text} ({count:,} layouts)" for text, count in ranked[:3]] or [
            "the accelerator does not run the scheme"
        ]
        return _Forced(given, setting, None, tuple(reasons))
    return _Forced(given, setting, make_offer(screen(candidates)), tuple(reasons))


def _solve(offer: Offer, asked: Asked, options: Options, stop: Stop | None) -> tuple[Answer, str | None]:
    """The cheapest plan of an offer, of exactly so many servers where asked; else why that count fails."""
    if asked.count is None and asked.servers is None:
        return answer(offer, options, Without(), stop), None
    data = program_data(offer, reduce=False)
    if data is None:
        return answer(offer, options, Without(), stop), None
    wanted = asked.count if asked.count is not None else asked.servers
    assert wanted is not None
    sizes = {q: pool.server_type.accelerators if asked.count is not None else 1 for q, pool in data.pools.items()}
    # No more can be owned than the inventory has.
    room = {
        q: most if data.pools[q].owned is not None else max(most, wanted // sizes[q])
        for q, most in data.max_servers.items()
    }
    roomy = replace(data, max_servers=room)
    data = roomy.with_terms(offer.terms)
    model = build_program(data)
    counted = sum(size * model.Servers[q] for q, size in sizes.items())
    least = _least_count(Compiled(model), counted, options, stop)
    noun = "accelerators" if asked.count is not None else "servers"
    _force(model, counted, wanted)
    compiled = Compiled(model)
    outcome = compiled.solve(options, stop)
    if outcome.values is None:
        why = None
        if outcome.reason is Reason.INFEASIBLE and least is not None:
            few = f"{wanted:,} {noun} are too few: the peak and the spares take at least {least:,}"
            why = few if wanted < least else f"{wanted:,} {noun} make no whole servers of it, or break a cap"
        return Answer(data, outcome, None, model), why
    values = compiled.rounded(outcome.values)
    fleet = fleet_of(data, compiled.by_index(values))
    used = sum(sizes[q] * count for q, count in fleet.servers.items())
    if used != wanted:
        # Servers that are paid in the hours that use them cost nothing unused, so the count alone does not bind them.
        why = f"no hour of the cheapest such plan uses {wanted:,} {noun}: those paid by the hour are had when used only"
        return Answer(data, outcome, None, model), why
    return Answer(data, outcome, fleet, model), None


def _force(model: Any, counted: Any, wanted: int) -> None:
    from pyomo.core import Constraint

    model.Forced_Count = Constraint(expr=counted == wanted, doc="the count that is asked about")


def _least_count(compiled: Compiled, counted: Any, options: Options, stop: Stop | None) -> int | None:
    costs = compiled.cost_vector(counted)
    compiled.set_objective(costs)
    outcome = compiled.solve(options, stop)
    if outcome.values is None or outcome.reason is not Reason.OPTIMAL:
        return None
    return round(float(costs @ compiled.rounded(outcome.values)))


def _checked(plan: Plan) -> None:
    findings = verify(plan)
    if findings:
        raise InternalError("a forced plan does not stand:\n" + "\n".join(str(one) for one in findings[:20]))


def nearest_values(screened: Screened) -> list[NearestValue]:
    """Limits that keep candidates out of a class that has none left, with the best that any of them reaches."""
    candidates = screened.candidates
    served = set(candidates.class_index[screened.rows].tolist())
    seen, bounds = screened.alone, screened.bounds
    pairs: dict[str, tuple[FloatArray, FloatArray | float]] = {
        "vram_gib": (seen.vram_gib, bounds.vram_gib),
        "vram_gib_per_accelerator": (seen.vram_gib, bounds.vram_gib_per_accelerator),
        "weights_gib_per_accelerator": (seen.weights_gib, bounds.weights_gib_per_accelerator),
        "tpot_ms": (seen.tpot_ms, bounds.tpot_ms),
        "ttft_ms": (seen.ttft_ms, bounds.ttft_ms),
        "latency_ms": (seen.latency_ms, bounds.latency_ms),
        "accuracy": (seen.accuracy, bounds.accuracy),
        "nvlink_gb_s": (seen.nvlink_gb_s, bounds.nvlink_fraction * seen.nvlink_link_gb_s),
        "nvlink_cap_gb_s": (seen.nvlink_gb_s, bounds.nvlink_cap_gb_s),
        "kv_link_gb_s": (seen.kv_link_gb_s, bounds.kv_link_fraction * seen.kv_link_limit_gb_s),
    }
    rows = []
    for index, one in enumerate(candidates.setting.classes):
        if index in served:
            continue
        mine = np.flatnonzero(candidates.class_index == index)
        for name, kept in screened.passes.items():
            kills = int(np.count_nonzero(~kept[mine]))
            if not kills:
                continue
            rule = limit(name)
            reached, needed = (np.broadcast_to(values, (candidates.size,))[mine] for values in pairs[name])
            sign = 1.0 if rule.direction == "<=" else -1.0
            best = int(np.argmin(sign * (reached - needed)))
            rows.append(
                NearestValue(
                    limit=name,
                    field=rule.field,
                    unit=rule.unit,
                    direction=rule.direction,
                    needed=float(needed[best]),
                    reached=float(reached[best]) if np.isfinite(reached[best]) else 0.0,
                    request_class=one.name,
                    kills=kills,
                    candidates=int(mine.size),
                )
            )
    return sorted(rows, key=lambda row: (-row.kills, row.limit))


def _why(asked: Asked, values: tuple[NearestValue, ...], advice: Advice, least: str | None) -> str:
    if least is not None:
        return f"{asked.text}: {least}"
    always = [row for row in values if row.kills == row.candidates]
    if always:
        row = always[0]
        return (
            f"{asked.text} breaks {row.field}: {row.reached:,.4g} {row.unit} at best,"
            f" {row.direction} {row.needed:,.4g} needed"
        )
    if values:
        names = ", ".join(dict.fromkeys(row.field for row in values[:3]))
        return f"{asked.text}: no deployment of it keeps {names} together"
    clash = ", ".join(one.field for one in advice.clash)
    return f"{asked.text}: deployments of it keep their limits, but no fleet does{f': {clash} clash' if clash else ''}"


def _priced(
    instance: Instance, asked: Asked, best: Plan | None, plan: Plan, outside: tuple[OutsideChoice, ...]
) -> WhyNot:
    """The answer where a fleet of the choice keeps every limit."""
    if best is None:
        return _told(
            instance,
            asked,
            "costs_less",
            f"{asked.text} keeps every limit, where the instance's own choices have no plan: {summary(plan)}",
            outside,
            (),
            plan,
        )
    extra = plan.bill.usd_per_year / best.bill.usd_per_year - 1.0 if best.bill.usd_per_year else 0.0
    same = abs(extra) <= _SAME
    verdict: Verdict = "costs_the_same" if same else "costs_more" if extra > 0.0 else "costs_less"
    if same and not outside and summary(plan) == summary(best):
        verdict = "is_the_plan"
    words = {
        "is_the_plan": "is what the plan does",
        "costs_the_same": "costs the same: the plan is one of several",
        "costs_more": f"costs {extra:+.1%}",
        "costs_less": f"costs {extra:+.1%}, but the instance's choices leave it out",
    }[verdict]
    better, worse = compared(best, plan)
    return WhyNot(
        name=instance.name,
        asked=asked.text,
        verdict=verdict,
        summary=f"{asked.text} {words}: {summary(plan)}",
        outside=outside,
        reasons=(),
        distance=distance_to(best, plan),
        better=better,
        worse=worse,
        plan=plan,
    )


def _told(
    instance: Instance,
    asked: Asked,
    verdict: Verdict,
    words: str,
    outside: tuple[OutsideChoice, ...],
    reasons: tuple[str, ...],
    plan: Plan | None = None,
) -> WhyNot:
    """An answer of words alone."""
    return WhyNot(
        name=instance.name,
        asked=asked.text,
        verdict=verdict,
        summary=words,
        outside=outside,
        reasons=reasons,
        plan=plan,
    )
