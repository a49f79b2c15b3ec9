"""The way of the data, once: instance, setting, candidates, screening, program, plan, verification. No printing."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from optimizer.errors import InternalError, SolverError, StoppedWithoutPlan
from optimizer.instance.model import Instance
from optimizer.plan import Plan

if TYPE_CHECKING:
    from optimizer.diagnosis import Diagnosis
    from optimizer.proposals.result import Evaluation
    from optimizer.proposals.shape import Proposal
    from optimizer.proposals.training_shape import TrainingProposal
    from optimizer.whynot.result import WhyNot

__all__ = ["Solved", "evaluate", "load", "resolved", "solve", "why_not"]

EXIT_PROVEN, EXIT_INFEASIBLE, EXIT_STOPPED = 0, 4, 5


@dataclass(frozen=True, slots=True)
class Solved:
    """What a solve gives: a verified plan, or a diagnosis; the exit code of the command line; seconds by stage."""

    plan: Plan | None
    diagnosis: "Diagnosis | None"
    exit_code: int
    timing: dict[str, float]


class _Clock:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """Book the time since the last lap to a stage."""
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now


def load(path: Path | str) -> Instance:
    """Read and check an instance file; InputError with every problem at once."""
    from optimizer.instance.reading import read_instance

    return read_instance(Path(path))


def resolved(instance: Instance, instance_path: Path | None = None) -> Instance:
    """The same instance with a model path replaced by the configuration there, so that it means the same anywhere.

    Raises InputError when the file is missing, unreadable or no configuration that is known.
    """
    folder = Path() if instance_path is None else instance_path.parent
    workload = _with_calibration(instance, folder).workload
    update: dict[str, object] = {"model": _resolved_model(workload.model, folder)}
    if workload.kind == "training" and workload.jobs:
        jobs = (one.model_copy(update={"model": _resolved_model(one.model, folder)}) for one in workload.jobs)
        update["jobs"] = tuple(jobs)
    return instance.model_copy(update={"workload": workload.model_copy(update=update)})


def _resolved_model(choice: Any, folder: Path) -> Any:
    """A model choice as it was written, or the configuration that its path names."""
    import json

    from optimizer.errors import InputError, Problem
    from optimizer.instance.known import model_path
    from optimizer.instance.reading import read_json_text
    from optimizer.instance.workload import HuggingFaceConfig

    path = model_path(choice, folder) if isinstance(choice, str) else None
    if path is None:
        return choice
    from optimizer.performance.huggingface import UnsupportedConfigError, from_hf_config

    def refuse(found: str, allowed: str) -> InputError:
        return InputError((Problem("E-WORKLOAD-032", str(path), field="workload.model", found=found, allowed=allowed),))

    try:
        config = json.loads(read_json_text(path, str(path)))
        from_hf_config(config)
    except json.JSONDecodeError as error:
        raise refuse(f"no JSON ({error})", "must be a Hugging Face config.json") from None
    except UnsupportedConfigError as error:
        raise refuse(str(error), "must be a configuration whose model type is known") from None
    # Named as the planner wrote it, so that the plan's bytes do not depend on where the folder stands.
    written = choice.removesuffix("/config.json").removesuffix(".json")
    return HuggingFaceConfig(name=written.rpartition("/")[2] or "config", config=config)


def _with_calibration(instance: Instance, folder: Path) -> Instance:
    """The same instance with a calibration's path replaced by what the file holds; InputError when it is none."""
    import json

    from optimizer.errors import InputError, Problem
    from optimizer.instance.reading import read_json_text
    from optimizer.instance.workload import Calibration
    from optimizer.performance.factors import factors_with

    written = instance.workload.calibration
    if not isinstance(written, str):
        return instance
    path = folder / written
    try:
        calibration = Calibration(document=json.loads(read_json_text(path, str(path))))
        if instance.workload.kind == "training":
            from optimizer.performance.training.constants import calibration_with

            calibration_with(calibration.document)
        else:
            factors_with(calibration.document)
    except (json.JSONDecodeError, KeyError, TypeError, ValueError):
        allowed = "must be a file that `optimize calibrate` wrote"
        problem = Problem(
            "E-WORKLOAD-009", str(path), field="workload.calibration", found="no calibration", allowed=allowed
        )
        raise InputError((problem,)) from None
    return instance.model_copy(update={"workload": instance.workload.model_copy(update={"calibration": calibration})})


def solve(
    instance: Instance,
    *,
    instance_path: Path | None = None,
    time_limit_s: float | None = None,
    gap: float | None = None,
    threads: int | None = None,
    seed: int | None = None,
    export: Path | None = None,
    stop: Callable[[], bool] | None = None,
    dominate: bool = True,
    runners_up: int = 0,
    distinct: Collection[str] = ("accelerators", "schemes", "cooling", "sourcing", "sites"),
    baseline: "Literal['naive'] | Proposal | TrainingProposal | Plan | None" = None,
    tell: Callable[[int, str], None] = lambda _count, _words: None,
) -> Solved:
    """The cheapest cluster that provably meets every limit, or why there is none.

    Parameters
    ----------
    instance: what must hold; ``load`` reads one from a file.
    instance_path: where it was read from; relative paths in it start there.
    time_limit_s, gap, threads, seed: override ``instance.solver``.
    export: write the program there as .lp or .mps.
    stop: asked during the search; the best verified plan is kept when it says True.
    dominate: leave out candidates that no optimal plan needs; False searches them all, with the same cost.
    runners_up: how many of the next best distinct plans to rank beside the plan.
    distinct: what makes plans distinct.
    baseline: what the plan is held against: the naive choice, a proposal, or another plan.
    tell: called with a count and a word on each attempt to find a way out, where nothing fits.

    Raises
    ------
    SolverError: the solver failed. StoppedWithoutPlan: stopped before any plan. InternalError: our own check refused
    the plan.
    """
    if instance.workload.kind == "training":
        return _solve_training(
            resolved(instance, instance_path),
            baseline,
            time_limit_s=time_limit_s,
            gap=gap,
            threads=threads,
            seed=seed,
            export=export,
            stop=stop,
            rank=runners_up,
            distinct=distinct,
        )
    from optimizer.answer import alternatives, answer, measured_alternative, plan_of
    from optimizer.candidates import build_candidates
    from optimizer.catalog import load_catalog
    from optimizer.models import served_model
    from optimizer.offer import Without, make_offer
    from optimizer.performance.factors import factors_with
    from optimizer.schemes import scheme_options
    from optimizer.screen import screen
    from optimizer.setting import build_setting
    from optimizer.solver import Options, Reason
    from optimizer.verify import verify

    clock = _Clock()
    given = instance.solver
    options = Options(
        gap=given.gap if gap is None else gap,
        time_limit_s=given.time_limit_s if time_limit_s is None else time_limit_s,
        threads=given.threads if threads is None else threads,
        seed=given.seed if seed is None else seed,
    )
    deadline = time.perf_counter() + options.time_limit_s
    instance = resolved(instance, instance_path)
    setting = build_setting(instance, load_catalog())
    model = served_model(instance, setting.catalog)
    schemes = scheme_options(setting, model)
    clock.lap("setting")
    screened = screen(build_candidates(setting, model, schemes, factors_with(instance.workload.calibration_document())))
    offer = make_offer(screened, dominate=dominate)
    clock.lap("candidates")
    found = answer(offer, options, Without(), stop)
    if export is not None and found.model is not None:
        from optimizer.solver import export as write_program

        write_program(found.model, export)
    clock.lap("program")
    if found.fleet is None:
        if found.outcome.reason is Reason.INFEASIBLE:
            from optimizer.explain import diagnose

            diagnosis = diagnose(offer, options, stop, deadline, tell)
            clock.lap("diagnosis")
            return Solved(None, diagnosis, EXIT_INFEASIBLE, clock.seconds)
        if found.outcome.reason in (Reason.TIME_LIMIT, Reason.INTERRUPT):
            raise StoppedWithoutPlan(
                f"stopped by {found.outcome.reason.value.replace('_', ' ')} before any plan was found"
            )
        raise SolverError(f"the solver ended with {found.outcome.reason.value}")
    plan = plan_of(offer, found, options)
    others = alternatives(offer, plan, options, stop, deadline)
    measured = measured_alternative(offer, plan, others, options, stop, deadline)
    told = plan.messages if measured is None else (measured, *plan.messages)
    plan = plan.model_copy(update={"runners_up": tuple(row for row, _ in others), "messages": told})
    if runners_up:
        from optimizer.ranking import ranked, ranking, without_each

        order = ranking(offer, plan, runners_up, options, stop, deadline, without_each(others), distinct)
        plan = ranked(plan, order, runners_up)
    clock.lap("runners_up")
    if baseline is not None:
        from optimizer.proposals.baseline import baseline_of

        plan = plan.model_copy(update={"baseline": baseline_of(instance, plan, baseline, options, stop)})
        clock.lap("baseline")
    findings = verify(plan)
    clock.lap("verify")
    if findings:
        raise InternalError(
            "the plan does not stand up to its own check:\n" + "\n".join(str(one) for one in findings[:20])
        )
    return Solved(plan, None, EXIT_PROVEN if plan.outcome.holds == "proven" else EXIT_STOPPED, clock.seconds)


def evaluate(
    instance: Instance,
    proposal: "Proposal | TrainingProposal | Plan",
    *,
    instance_path: Path | None = None,
    file: str = "proposal",
    optimum: bool = True,
    time_limit_s: float | None = None,
    stop: Callable[[], bool] | None = None,
) -> "Evaluation":
    """A plan someone else made: every limit, the whole bill, the distance to the optimum.

    Parameters
    ----------
    proposal: ``optimizer.proposals.reading.read_proposal`` reads one from a file; a plan does as well.
    file: its name in messages.
    optimum: solve the instance too, to tell the distance.

    Raises
    ------
    InputError: the proposal contradicts itself, cannot be had, or no engine starts it. InternalError: our own check
    refused its figures.
    """
    from optimizer.proposals.kinds import evaluated
    from optimizer.proposals.telling import evaluation
    from optimizer.solver import Options

    given = instance.solver
    options = Options(
        given.gap, given.time_limit_s if time_limit_s is None else time_limit_s, given.threads, given.seed
    )
    instance = resolved(instance, instance_path)
    found = evaluated(instance, proposal, options, file=file)
    best: Plan | None = None
    state: Literal["solved", "infeasible", "stopped", "not asked"] = "not asked"
    if optimum:
        try:
            best = solve(instance, time_limit_s=time_limit_s, stop=stop).plan
            state = "infeasible" if best is None else "solved"
        except StoppedWithoutPlan:
            state = "stopped"
    return evaluation(instance, proposal.name, found, best, state)


def _solve_training(
    instance: Instance,
    baseline: "Literal['naive'] | Proposal | TrainingProposal | Plan | None",
    *,
    stop: Callable[[], bool] | None,
    **given: Any,
) -> Solved:
    """A plan for training, verified, or why there is none; its modules are loaded for this kind of work only."""
    from optimizer.training.answer import options_from, solve_training
    from optimizer.verify import verify

    found = solve_training(instance, stop=stop, **given)
    if found.plan is None:
        return Solved(None, found.diagnosis, EXIT_INFEASIBLE, found.timing)
    clock = _Clock()
    clock.seconds.update(found.timing)
    plan = found.plan
    if baseline is not None:
        from optimizer.proposals.baseline import baseline_of

        options = options_from(instance, given["time_limit_s"], given["gap"], given["threads"], given["seed"])
        plan = plan.model_copy(update={"baseline": baseline_of(instance, plan, baseline, options, stop)})
        clock.lap("baseline")
    findings = verify(plan)
    clock.lap("verify")
    if findings:
        raise InternalError(
            "the plan does not stand up to its own check:\n" + "\n".join(str(one) for one in findings[:20])
        )
    exit_code = EXIT_PROVEN if plan.outcome.holds == "proven" else EXIT_STOPPED
    return Solved(plan, None, exit_code, clock.seconds)


def why_not(
    instance: Instance,
    asked: str,
    *,
    instance_path: Path | None = None,
    time_limit_s: float | None = None,
    stop: Callable[[], bool] | None = None,
) -> "WhyNot":
    """Why the plan does not make a choice: which limit that breaks, with the nearest values, or how much more it costs.

    Parameters
    ----------
    asked: ``KEY=VALUE``, several with commas, to which the whole fleet keeps: ``accelerator=l40s,scheme=w8a8-fp8``.

    Raises
    ------
    UsageProblems: a key, a name or a number is none. StoppedWithoutPlan: the optimum was not found in time.
    """
    from optimizer.solver import Options
    from optimizer.whynot.answer import best_of
    from optimizer.whynot.answer import why_not as answered
    from optimizer.whynot.asked import read_asked

    given = instance.solver
    seconds = given.time_limit_s if time_limit_s is None else time_limit_s
    options = Options(given.gap, seconds, given.threads, given.seed)
    instance = resolved(instance, instance_path)
    if instance.workload.kind == "training":
        from optimizer.whynot.training import why_not_run
        from optimizer.whynot.training_asked import read_asked_run

        return why_not_run(instance, read_asked_run(asked, instance), options, stop, time.perf_counter() + seconds)
    choice = read_asked(asked, instance)
    deadline = time.perf_counter() + seconds
    best = best_of(instance, options, stop)
    return answered(instance, choice, best, options, stop, deadline)
