"""The bridge from verbs to the solver and the screen, which are loaded when a verb needs them."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from optimizer.commands import talk
from optimizer.errors import SolverError

if TYPE_CHECKING:
    from optimizer.instance.model import Instance
    from optimizer.plan import Diagnosis, Plan


class Solved(Protocol):
    """What a solve gives: a plan, or a diagnosis, or neither; how it ended; where the time went."""

    @property
    def plan(self) -> "Plan | None":
        """The verified plan."""

    @property
    def diagnosis(self) -> "Diagnosis | None":
        """Why nothing fits."""

    @property
    def exit_code(self) -> int:
        """Exit code of the command line."""

    @property
    def timing(self) -> dict[str, float]:
        """Seconds by stage."""


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
) -> Solved:
    """Solve an instance; options that are None are those of the instance."""
    solved: Solved = _part("optimizer.api").solve(
        instance,
        instance_path=path,
        time_limit_s=time_limit_s,
        gap=gap,
        threads=threads,
        seed=seed,
        export=export,
        stop=stop,
    )
    return solved


def screen(solved: Solved) -> str:
    """The answer on one screen."""
    part = _part("optimizer.report.screen")
    if solved.plan is not None:
        return str(part.render(solved.plan, solved.timing, talk.width()))
    return str(part.render_diagnosis(solved.diagnosis, solved.timing, talk.width()))


def _part(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and name.startswith(error.name):
            raise SolverError(f"this installation cannot solve: {error.name} is missing") from error
        if error.name in ("highspy", "pyomo", "numpy"):
            raise SolverError(f"{error.name} is not installed: pip install {error.name}") from error
        raise
