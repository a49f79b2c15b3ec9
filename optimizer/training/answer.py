"""Training from an instance to its plan, or to why there is none. No printing."""

import math
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from optimizer.catalog import Catalog, load_catalog
from optimizer.diagnosis import Diagnosis
from optimizer.errors import SolverError, StoppedWithoutPlan
from optimizer.instance.model import Instance
from optimizer.next_best import Things
from optimizer.performance.factors import FloatArray
from optimizer.plan import Plan
from optimizer.solver import Compiled, Options, Outcome, Reason, solver_name
from optimizer.training.choices import Choices, choices_of
from optimizer.training.jobs import Job, jobs_of, training_workload
from optimizer.training.narrowing import narrowed
from optimizer.training.options import Options as JobOptions
from optimizer.training.options import options_of
from optimizer.training.places import groups_of, places_of
from optimizer.training.prices import PoolPrices, pool_prices
from optimizer.training.program import Run, TrainingProgram, build_program
from optimizer.units import HOURS_PER_YEAR

Stop = Callable[[], bool]
#: Gap and share of the time for a plan of the thinned program of several jobs.
_KNOWN_GAP, _KNOWN_SHARE = 1e-3, 0.2
#: Plans within this share of the least cost count as equal.
TIE: Final = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Searched:
    """An instance with everything that was tried for each job."""

    instance: Instance
    jobs: tuple[Job, ...]
    prices: dict[tuple[str, str], PoolPrices]
    options: tuple[tuple[JobOptions, ...], ...]
    choices: tuple[Choices, ...]

    def program(self) -> TrainingProgram:
        """The program over the choices."""
        kept = tuple(one.found for one in self.choices)
        return TrainingProgram(self.instance, self.jobs, kept, training_workload(self.instance).calendar_period_days)

    def without(self, things: Things) -> "Searched":
        """The same search where some accelerators, formats, cooling options, ways of sourcing or sites may not be used.

        Choices are made anew, so that what is cheapest of the rest is among them.
        """
        prices = {key: one for key, one in self.prices.items() if not things & things_of_pool(self.instance, one)}
        formats = {name for kind, name in things if kind == "schemes"}
        options = tuple(tuple(one for one in each if one.precision not in formats) for each in self.options)
        if len(self.jobs) == 1 and all(kind in ("accelerators", "schemes") for kind, _ in things):
            # A type or a format takes whole kinds of choices with it, of which each kept its cheapest.
            left = {id(one) for one in prices.values()}
            same = tuple(
                replace(
                    one,
                    found=tuple(
                        choice
                        for choice in one.found
                        if choice.options.precision not in formats
                        and all(id(part.prices) in left for part in choice.parts)
                    ),
                )
                for one in self.choices
            )
            return replace(self, prices=prices, options=options, choices=same)
        return replace(self, prices=prices, options=options, choices=_choices(self.instance, options, prices))

    def on_one_site(self) -> "Searched":
        """The same search where no job may be spread over several sites."""
        options = tuple(tuple(one for one in each if one.group is None) for each in self.options)
        return replace(self, options=options, choices=_choices(self.instance, options, self.prices))


def things_of_pool(instance: Instance, prices: PoolPrices) -> Things:
    """What servers of a pool are, as ``Uses`` names it."""
    pool = prices.pool
    found = {("accelerators", pool.server_type.accelerator.id), ("sourcing", str(pool.sourcing))}
    if pool.cooling is not None:
        found.add(("cooling", pool.cooling.id))
    if instance.sites and pool.is_bought:
        found.add(("sites", prices.place.name))
    return frozenset(found)


def _choices(
    instance: Instance, options: tuple[tuple[JobOptions, ...], ...], prices: dict[tuple[str, str], PoolPrices]
) -> tuple[Choices, ...]:
    alone = len(options) == 1
    return tuple(choices_of(instance, list(own), prices, alone_here=alone) for own in options)


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """What a program gave: the run of each job, in the order of the jobs; None where there is none."""

    data: TrainingProgram
    outcome: Outcome
    runs: tuple[Run, ...] | None
    model: Any = None


@dataclass(frozen=True, slots=True)
class Found:
    """A plan or a diagnosis, with seconds by stage."""

    plan: Plan | None
    diagnosis: Diagnosis | None
    timing: dict[str, float]


def best_plan(instance: Instance, options: Options, catalog: Catalog | None = None) -> Plan | None:
    """The cheapest plan without runners-up and unverified, or None where nothing fits; for studies.

    Raises SolverError and StoppedWithoutPlan.
    """
    from optimizer.training.extract import make_plan

    searched = search(instance, catalog=catalog)
    found = answer(searched.program(), options)
    if found.runs is None:
        if found.outcome.reason is Reason.INFEASIBLE:
            return None
        raise _stopped(found.outcome)
    return make_plan(searched, found, options, solver_name())


def _stopped(outcome: Outcome) -> SolverError | StoppedWithoutPlan:
    """Why a program gave neither a plan nor the proof that there is none."""
    reason = outcome.reason.value.replace("_", " ")
    if outcome.reason in (Reason.TIME_LIMIT, Reason.INTERRUPT):
        return StoppedWithoutPlan(f"stopped by {reason} before any plan was found")
    return SolverError(f"the solver ended with {reason}")


def search(instance: Instance, catalog: Catalog | None = None) -> Searched:
    """Options and choices of every job, on the packaged catalogue or another one."""
    catalog = load_catalog() if catalog is None else catalog
    jobs = jobs_of(instance, catalog)
    places = places_of(instance, catalog)
    prices = pool_prices(instance, places)
    groups = groups_of(instance)
    types = {one.pool.server_type.id: one.pool.server_type for one in prices.values()}
    options = tuple(
        tuple(one for _, server_type in sorted(types.items()) for one in options_of(instance, job, server_type, groups))
        for job in jobs
    )
    return Searched(instance, jobs, prices, options, _choices(instance, options, prices))


NOTHING: Final = Outcome(Reason.INFEASIBLE, float("nan"), -float("inf"), None, 0, 0.0)


def answer(data: TrainingProgram, options: Options, stop: Stop | None = None, *, break_ties: bool = True) -> Answered:
    """Solve the program; ties of a job alone are broken by fewest accelerators, days, then names."""
    runs = data.runs
    if any(all(run[0] != j for run in runs) for j in range(len(data.jobs))):
        return Answered(data, NOTHING, None)
    began = time.perf_counter()
    less = narrowed(data, lambda thin: _known(thin, options, stop))
    data, runs = less.data, less.data.runs
    model = build_program(data)
    compiled = Compiled(model)
    if less.known:
        compiled.start_from_counts({compiled.column_of(model.Run[run]): 1.0 for run in less.known})
    left = options.time_limit_s - (time.perf_counter() - began)
    outcome = compiled.solve(replace(options, time_limit_s=max(1e-3, left)), stop)
    outcome = _with_others(outcome, less.others_usd * _usd_per_hour(data))
    if outcome.values is None:
        return Answered(data, outcome, None, model)
    chosen = _chosen(data, compiled, model, outcome.values)
    if break_ties and not data.is_shared:
        least = data.run_usd(chosen[0])
        equal = [run for run in runs if data.run_usd(run) <= least + TIE * abs(least)]

        def rank(run: Run) -> tuple[Any, ...]:
            choice = data.choices[run[0]][run[1]]
            return (choice.accelerators, choice.days, choice.key)

        chosen = [min(equal, key=rank)]
    chosen.sort()
    return Answered(data, outcome, tuple(chosen), model)


def _usd_per_hour(data: TrainingProgram) -> float:
    """The program's unit, USD per hour over the horizon, of one USD."""
    return next(iter(data.pools.values())).horizon_share / HOURS_PER_YEAR


def _chosen(data: TrainingProgram, compiled: Compiled, model: Any, values: FloatArray) -> list[Run]:
    rounded = compiled.rounded(values)
    return [run for run in data.runs if rounded[compiled.column_of(model.Run[run])] > 0.5]


def _known(thin: TrainingProgram, options: Options, stop: Stop | None) -> tuple[float, tuple[Run, ...]] | None:
    """USD and runs of a plan of the thinned program; None where none was found in a fair share of the time."""
    model = build_program(thin)
    compiled = Compiled(model)
    gap, seconds = max(options.gap, _KNOWN_GAP), options.time_limit_s * _KNOWN_SHARE
    outcome = compiled.solve(replace(options, gap=gap, time_limit_s=seconds), stop)
    if outcome.values is None:
        return None
    return outcome.objective / _usd_per_hour(thin), tuple(_chosen(thin, compiled, model, outcome.values))


def _with_others(outcome: Outcome, others: float) -> Outcome:
    """The outcome with the bound of the runs that were left out; without a plan among the rest nothing is proven."""
    if math.isinf(others):
        return outcome
    if outcome.reason is Reason.INFEASIBLE:
        return replace(outcome, reason=Reason.TIME_LIMIT)
    return replace(outcome, bound=min(outcome.bound, others))


def options_from(
    instance: Instance, time_limit_s: float | None, gap: float | None, threads: int | None, seed: int | None
) -> Options:
    """Options of the solver: those of the instance where none are given."""
    given = instance.solver
    return Options(
        gap=given.gap if gap is None else gap,
        time_limit_s=given.time_limit_s if time_limit_s is None else time_limit_s,
        threads=given.threads if threads is None else threads,
        seed=given.seed if seed is None else seed,
    )


def solve_training(
    instance: Instance,
    *,
    time_limit_s: float | None = None,
    gap: float | None = None,
    threads: int | None = None,
    seed: int | None = None,
    export: Path | None = None,
    stop: Stop | None = None,
    rank: int = 0,
    distinct: Collection[str] = (),
) -> Found:
    """The cheapest way to do every job in time, or why there is none; ``optimizer.api.solve`` verifies it.

    ``rank`` of the next best plans that are distinct by the kinds in ``distinct`` are ranked beside it.

    Raises SolverError and StoppedWithoutPlan as that does.
    """
    from optimizer.training.extract import make_plan
    from optimizer.training.runners_up import runners_up

    seconds: dict[str, float] = {}
    last = time.perf_counter()

    def lap(stage: str) -> None:
        nonlocal last
        now = time.perf_counter()
        seconds[stage], last = now - last, now

    options = options_from(instance, time_limit_s, gap, threads, seed)
    deadline = last + options.time_limit_s
    searched = search(instance)
    lap("candidates")
    found = answer(searched.program(), options, stop)
    if export is not None and found.model is not None:
        from optimizer.solver import export as write_program

        write_program(found.model, export)
    lap("program")
    if found.runs is None:
        if found.outcome.reason is Reason.INFEASIBLE:
            from optimizer.training.diagnose import diagnose

            diagnosis = diagnose(searched, options, stop, deadline)
            lap("diagnosis")
            return Found(None, diagnosis, seconds)
        raise _stopped(found.outcome)
    plan = make_plan(searched, found, options, solver_name())
    left = replace(options, time_limit_s=max(1e-3, deadline - time.perf_counter()))
    plan = plan.model_copy(update={"runners_up": runners_up(searched, plan, left, stop, deadline)})
    if rank:
        from optimizer.training.ranking import ranked

        plan = ranked(searched, plan, rank, options, stop, deadline, distinct)
    lap("runners_up")
    return Found(plan, None, seconds)
