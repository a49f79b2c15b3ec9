"""Choices made beforehand, held against every scenario; and those that the program finds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from optimizer.errors import InternalError, SolverError
from optimizer.extract import make_plan
from optimizer.offer import Offer
from optimizer.plan import Plan
from optimizer.program_data import ProgramData
from optimizer.solver import Options, Outcome, Reason, solver_name
from optimizer.studies.best import server_words
from optimizer.studies.robust.distributions import FloatArray
from optimizer.studies.robust.reduction import chosen
from optimizer.studies.robust.scenarios import RECOURSE, reduced_data
from optimizer.studies.robust.two_stage import Aim, Now, Recourse, TwoStage, TwoStageProgram, recourse
from optimizer.studies.standing import Standing, Tell
from optimizer.verify import verify

#: Scenarios are added until a choice serves all and its largest regret is that of the program; at most so many times.
_ROUNDS = 20
_AIMS: tuple[Aim, ...] = ("regret", "shortfall", "expected")
#: Money closer than this share is the same.
_SAME = 2e-6


class Stopped(Exception):  # noqa: N818 - it reports how a search ended
    """The study was asked to stop, or its time was up."""


@dataclass(eq=False)
class Scenarios:
    """The scenarios that some plan can serve: offer, data and least cost of each, and what choices cost in them.

    ``preparation`` is the yearly cost of each scheme that is paid once, for scenarios that run nothing in it.
    """

    offers: tuple[Offer, ...]
    datas: tuple[ProgramData, ...]
    best: tuple[float, ...]
    options: Options
    tell: Tell
    stop: Callable[[], bool]
    preparation: dict[str, float] = field(init=False)
    _costs: dict[Now, tuple[float | None, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.preparation = {
            key[1]: usd
            for data in self.datas
            for key, usd in data.yearly_by_quantity.items()
            if key[0] == "SchemePrepared"
        }

    def costs(self, now: Now) -> tuple[float | None, ...]:
        """USD per year of a choice in each scenario at its best use; None where it cannot keep every limit."""
        if now not in self._costs:
            found = []
            for number, (offer, data) in enumerate(zip(self.offers, self.datas, strict=True)):
                if self.stop():
                    raise Stopped
                self.tell(Standing(number, len(self.datas), best="a choice in every scenario"))
                found.append(self._cost(offer, data, now))
            self._costs[now] = tuple(found)
        return self._costs[now]

    def _cost(self, offer: Offer, data: ProgramData, now: Now) -> float | None:
        found = recourse(offer, data, now, self.options, self.preparation, self.stop)
        if isinstance(found, Recourse):
            _check(offer, found, self.options)
            return found.usd_per_year
        if found is not None:
            raise_unless_infeasible(found)
        return None

    def words(self, now: Now) -> str:
        """A choice on one line."""
        parts = []
        for q, count in now.servers:
            pool = next(data.pools[q] for data in self.datas if q in data.pools)
            cooling = None if pool.cooling is None else pool.cooling.id
            parts.append(server_words(count, pool.server_type.id, pool.sourcing, cooling))
        return " + ".join(parts) if parts else "nothing beforehand, all on demand"


def raise_unless_infeasible(outcome: Outcome) -> None:
    """What a solve without a plan means, unless it is that there is none."""
    if outcome.reason in (Reason.TIME_LIMIT, Reason.INTERRUPT):
        raise Stopped
    if outcome.reason is not Reason.INFEASIBLE:
        raise SolverError(f"the solver ended with {outcome.reason.value}")


def choice_of(plan: Plan, priced: Sequence[str]) -> Now:
    """What a plan decides beforehand: servers that are bought or committed, and ``priced`` schemes that it uses."""
    schemes = {f"{one.scheme}+{one.kv_scheme}+{one.recovery}" for one in plan.deployments} & set(priced)
    servers = tuple(sorted((one.pool, one.servers) for one in plan.servers if one.sourcing not in RECOURSE))
    return Now(servers, tuple(sorted(schemes)))


@dataclass(frozen=True, slots=True)
class Found:
    """Answers of the program by aim, the scenarios that stood in it, and how often scenarios were added.

    Without answers no choice serves all scenarios together. ``is_settled``: every answer serves every scenario and no
    scenario's regret is above that of the program.
    """

    answers: dict[Aim, TwoStage]
    kept: tuple[int, ...]
    rounds: int
    is_settled: bool


def best_choices(
    scenarios: Scenarios, values: FloatArray, risk_level: float, in_program: int, options: Options
) -> Found:
    """The choices of least expected cost, least shortfall and least largest regret.

    The program holds ``in_program`` scenarios that stand for all. Where a choice fails in another scenario, or regrets
    it more than any in the program, that scenario is added and the program solved again (column-and-constraint
    generation: Zeng and Zhao 2013), so the least largest regret is that over all scenarios.
    """
    datas = reduced_data(scenarios.datas)
    kept, shares = chosen(values, in_program)
    for rounds in range(_ROUNDS):
        program = TwoStageProgram([datas[s] for s in kept], shares, [scenarios.best[s] for s in kept], risk_level)
        answers: dict[Aim, TwoStage] = {}
        more: int | None = None
        for number, aim in enumerate(_AIMS):
            scenarios.tell(Standing(number, 3, best=f"program over {len(kept)} scenarios, round {rounds + 1}"))
            outcome, answer = program.solve(aim, options, scenarios.stop)
            if answer is None:
                raise_unless_infeasible(outcome)
                return Found({}, kept, rounds, True)
            answers[aim] = answer
            more = _missed(scenarios, kept, answer)
            if more is not None:
                break
        if more is None:
            return Found(answers, kept, rounds, True)
        kept, shares = chosen(values, len(kept) + 1, (*kept, more))
    return Found(answers, kept, _ROUNDS, False)


def _missed(scenarios: Scenarios, kept: Sequence[int], answer: TwoStage) -> int | None:
    """A scenario outside the program that the choice fails in, or regrets more than the program knows."""
    costs = scenarios.costs(answer.now)
    outside = [s for s in range(len(costs)) if s not in kept]
    failing = [s for s in outside if costs[s] is None]
    if failing:
        return max(failing, key=lambda s: scenarios.best[s])
    if answer.aim != "regret" or not outside:
        return None
    regrets = {s: (costs[s] or 0.0) - scenarios.best[s] for s in outside}
    worst = max(outside, key=lambda s: regrets[s])
    room = (answer.outcome.gap + _SAME) * scenarios.best[worst]
    return worst if regrets[worst] > answer.usd_per_year + room else None


def _check(offer: Offer, found: Recourse, options: Options) -> None:
    """The fleet of a scenario must stand as a plan of that scenario's instance, at that cost (``optimizer.verify``)."""
    used = {q for _, q in found.fleet.replicas}
    # Servers that a scenario needs nothing of stand ready.
    idle = {q: count for q, count in found.fleet.servers.items() if q not in used}
    fleet = replace(found.fleet, spare={**found.fleet.spare, **idle})
    plan = make_plan(offer, found.data, fleet, found.outcome, options, solver_name())
    findings = [str(one) for one in verify(plan)]
    if plan.bill.usd_per_year > found.usd_per_year * (1.0 + _SAME):
        findings.append(f"the bill says {plan.bill.usd_per_year} USD per year, the program {found.usd_per_year}")
    if findings:
        raise InternalError("a scenario's plan does not stand up to our own check:\n" + "\n".join(findings[:20]))
