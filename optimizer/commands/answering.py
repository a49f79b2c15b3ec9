"""The bridge from verbs to the solver and the screen, which are loaded when a verb needs them."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from optimizer.commands import talk
from optimizer.errors import SolverError

if TYPE_CHECKING:
    from optimizer.api import Solved
    from optimizer.instance.model import Instance
    from optimizer.plan import Plan
    from optimizer.proposals.shape import Proposal
    from optimizer.proposals.training_shape import TrainingProposal

_LIBRARIES: Final = ("highspy", "numpy", "pyomo")


def solve(
    instance: "Instance",
    path: Path,
    *,
    time_limit_s: float | None = None,
    gap: float | None = None,
    threads: int | None = None,
    seed: int | None = None,
    export: Path | None = None,
    stop: Callable[[], bool] | None = None,
    runners_up: int = 0,
    distinct: Collection[str] = ("accelerators", "schemes", "cooling", "sourcing", "sites"),
    baseline: "Literal['naive'] | Proposal | TrainingProposal | Plan | None" = None,
    quiet: bool = False,
) -> "Solved":
    """Solve an instance; options that are None are those of the instance."""
    from optimizer.commands.progress import shown, watched
    from optimizer.studies.standing import Standing

    with missing_libraries_told(), shown("searches", quiet=quiet) as tell:
        from optimizer import api

        return api.solve(
            instance,
            instance_path=path,
            time_limit_s=time_limit_s,
            gap=gap,
            threads=threads,
            seed=seed,
            export=export,
            stop=None if stop is None else watched(stop, tell),
            runners_up=runners_up,
            distinct=distinct,
            baseline=baseline,
            tell=lambda count, _field: tell(Standing(count, None)),
        )


def explained(
    instance: "Instance", path: Path, solved: "Solved", stop: Callable[[], bool] | None, *, quiet: bool = False
) -> "Solved":
    """The answer with its cost explained by further solves, progress on stderr."""
    from dataclasses import replace

    from optimizer.commands.progress import shown
    from optimizer.studies.cost_study import explain_cost

    if solved.plan is None:
        return solved
    with missing_libraries_told(), shown("figures", quiet=quiet) as tell:
        return replace(solved, plan=explain_cost(instance, solved.plan, path, tell, stop))


def screen(solved: "Solved") -> str:
    """The answer on one screen."""
    from optimizer.report.screen import render, render_diagnosis

    if solved.plan is not None:
        return render(solved.plan, solved.timing, talk.width())
    if solved.diagnosis is not None:
        return render_diagnosis(solved.diagnosis, solved.timing, talk.width())
    return ""


@contextmanager
def missing_libraries_told() -> Iterator[None]:
    """Say which library is missing; the solver and what feeds it are loaded late, so here is where it shows."""
    try:
        yield
    except ModuleNotFoundError as error:
        name = str(error.name).partition(".")[0]
        if name in _LIBRARIES:
            raise SolverError(f"{name} is not installed: pip install {name}") from error
        raise
