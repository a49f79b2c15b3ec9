"""The study of uncertainty: scenarios drawn and solved alone, the program over them, each choice held against all."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from optimizer.answer import answer
from optimizer.errors import InputError, Problem, SolverError, StoppedWithoutPlan, UsageProblems
from optimizer.instance.model import Instance
from optimizer.instance.uncertainty import Uncertainty
from optimizer.offer import Offer, Without
from optimizer.solver import Options, Reason
from optimizer.studies.best import best_plan, offer_of, options_of, prepared, summary
from optimizer.studies.current_values import current_value
from optimizer.studies.robust.breaks import broken_limits
from optimizer.studies.robust.choices import Scenarios, Stopped, best_choices, choice_of
from optimizer.studies.robust.distributions import FloatArray
from optimizer.studies.robust.results import Fared, FieldDrawn, Proof, Robust, fared
from optimizer.studies.robust.scenarios import (
    Uncertain,
    drawn_values,
    scenario_instances,
    shared_data,
    uncertain_fields,
)
from optimizer.studies.robust.two_stage import Aim
from optimizer.studies.standing import Standing, Tell
from optimizer.units import HOURS_PER_YEAR

#: Gap of the program over scenarios: it is far larger than one instance's, and its scenarios are a sample.
GAP = 1e-4
#: Seconds after which a solve of the program over scenarios ends with the best choice and its gap.
TIME_LIMIT_S = 60.0
#: Scenarios that stand for all in the program, unless asked otherwise.
IN_PROGRAM = 10

NAMES: dict[Aim, str] = {
    "expected": "least expected cost",
    "shortfall": "least shortfall",
    "regret": "least regret",
}


@dataclass(frozen=True, slots=True)
class _Alone:
    """Scenarios solved by themselves: the numbers of those that some plan serves, their offers and least costs."""

    looked_at: int
    met: tuple[int, ...]
    offers: tuple[Offer, ...]
    best: tuple[float, ...]


def robust(
    instance: Instance,
    instance_path: Path | None = None,
    *,
    scenarios: int | None = None,
    seed: int | None = None,
    risk_level: float | None = None,
    in_program: int = IN_PROGRAM,
    gap: float = GAP,
    time_limit_s: float = TIME_LIMIT_S,
    tell: Tell = lambda _standing: None,
    stop: Callable[[], bool] = lambda: False,
) -> Robust | None:
    """How plans fare when the instance's uncertain fields turn out otherwise, and what to choose beforehand.

    None where nothing fits the instance as it stands. ``scenarios``, ``seed`` and ``risk_level`` override
    ``instance.uncertainty``; ``in_program`` scenarios stand for all in the program (as many as are drawn: exactly).
    Each solve of it ends at ``gap`` or after ``time_limit_s``; ``proofs`` tell the gap that is left.

    Raises
    ------
    InputError: nothing is uncertain, or fields or values are bad. StoppedWithoutPlan: stopped before any choice could
    be held against the scenarios. SolverError, InternalError: as for ``api.solve``.
    """
    if instance.workload.kind != "serving":
        found = f"workload.kind {instance.workload.kind}"
        allowed = "must be serving: the program over scenarios knows no other"
        raise UsageProblems((Problem("E-STUDY-405", "robust", found=found, allowed=allowed),))
    instance = prepared(instance, instance_path)
    asked = instance.uncertainty or Uncertainty()
    count = asked.scenarios if scenarios is None else scenarios
    seed = asked.seed if seed is None else seed
    risk_level = asked.risk_level if risk_level is None else risk_level
    if not asked.fields:
        raise _refused(
            instance, 408, "uncertainty.fields", "none", "must name at least one field with its distribution"
        )
    fields = uncertain_fields(instance, asked)
    nominal = best_plan(instance)
    if nominal is None:
        return None
    values = drawn_values(asked, fields, count, seed)
    instances = scenario_instances(instance, fields, values)
    options = options_of(instance)
    alone = _alone(instances, options, tell, stop)
    complete = alone.looked_at == count
    if len(alone.met) < 2:
        if not complete:
            raise StoppedWithoutPlan("stopped before two scenarios were known")
        found = f"{count - len(alone.met)} of {count} scenarios that no plan can serve"
        raise _refused(instance, 409, "uncertainty", found, "at least two must be served by some plan")
    met = list(alone.met)
    datas = shared_data(alone.offers, [one.pool for one in nominal.servers])
    known = Scenarios(alone.offers, datas, alone.best, options, tell, stop)
    breaks = [broken_limits(nominal, instances[number]) for number in met]
    plans: list[Fared] = []
    proofs: list[Proof] = []
    messages: list[str] = []
    used, rounds = 0, 0
    try:
        first = choice_of(nominal, tuple(known.preparation))
        plans.append(fared("nominal", known.words(first), first, known.costs(first), known.best, risk_level))
        wider = replace(options, gap=max(gap, options.gap), time_limit_s=time_limit_s)
        found_choices = best_choices(known, values[met], risk_level, in_program, wider)
        used, rounds = len(found_choices.kept), found_choices.rounds
        for aim, one in found_choices.answers.items():
            costs = known.costs(one.now)
            plans.append(fared(NAMES[aim], known.words(one.now), one.now, costs, known.best, risk_level))
            proofs.append(Proof(aim, one.usd_per_year, one.bound_usd_per_year, one.outcome.gap))
        if not found_choices.answers:
            messages.append(
                "no choice made beforehand keeps every limit of all scenarios, though each has a plan alone"
            )
        left = max((one.gap_fraction for one in proofs), default=0.0)
        if left > wider.gap * (1.0 + 1e-6):
            messages.append(f"time was up before the program was solved to its gap: {100.0 * left:.2g} % are left")
        if not found_choices.is_settled:
            messages.append("scenarios were added as often as is allowed; the largest regret may be further reduced")
    except Stopped:
        complete = False
    if not plans:
        raise StoppedWithoutPlan("stopped before a choice was held against the scenarios")
    if used and used < len(met):
        messages.append(
            f"expected cost and shortfall are least over {used} scenarios that stand for {len(met)};"
            " all figures are over all of them"
        )
    return Robust(
        name=instance.name,
        fields=tuple(_drawn(instance, one, values[:, column]) for column, one in enumerate(fields)),
        scenarios=alone.looked_at,
        seed=seed,
        risk_level=risk_level,
        unmet=alone.looked_at - len(met),
        in_program=used,
        rounds=rounds,
        values=tuple(tuple(float(value) for value in row) for row in values[met]),
        best_usd_per_year=known.best,
        nominal_summary=summary(nominal),
        nominal_usd_per_year=nominal.bill.usd_per_year,
        breaks=dict(sorted(Counter(name for one in breaks for name in one).items())),
        broken_fraction=sum(1 for one in breaks if one) / len(breaks),
        plans=tuple(plans),
        proofs=tuple(proofs),
        messages=tuple(messages),
        is_complete=complete,
    )


def _refused(instance: Instance, number: int, where: str, found: str, allowed: str) -> InputError:
    return InputError((Problem(f"E-UNCERTAINTY-{number}", instance.name, field=where, found=found, allowed=allowed),))


def _alone(instances: Sequence[Instance], options: Options, tell: Tell, stop: Callable[[], bool]) -> _Alone:
    """Each scenario by itself, until stopped."""
    met: list[int] = []
    offers: list[Offer] = []
    best: list[float] = []
    for number, one in enumerate(instances):
        if stop():
            return _Alone(number, tuple(met), tuple(offers), tuple(best))
        tell(Standing(number, len(instances), best="each scenario alone"))
        offer = offer_of(one)
        found = answer(offer, options, Without(), stop, break_ties=False)
        if found.fleet is not None:
            met.append(number)
            offers.append(offer)
            best.append(found.outcome.objective * HOURS_PER_YEAR)
        elif found.outcome.reason in (Reason.TIME_LIMIT, Reason.INTERRUPT):
            return _Alone(number, tuple(met), tuple(offers), tuple(best))
        elif found.outcome.reason is not Reason.INFEASIBLE:
            raise SolverError(f"the solver ended with {found.outcome.reason.value}")
    return _Alone(len(instances), tuple(met), tuple(offers), tuple(best))


def _drawn(instance: Instance, one: Uncertain, values: FloatArray) -> FieldDrawn:
    ordered = sorted(float(value) for value in values)
    now = current_value(instance, one.field)
    return FieldDrawn(
        field=one.field.name,
        unit=one.field.unit,
        distribution=one.law.distribution,
        now=float(now) if isinstance(now, int | float) else None,
        low=ordered[0],
        median=ordered[len(ordered) // 2],
        high=ordered[-1],
    )
