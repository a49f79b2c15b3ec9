"""``optimize solve``: the cheapest cluster for an instance."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from optimizer.commands import answering, files, talk
from optimizer.commands.interrupt import interruptible
from optimizer.commands.numbers import FiniteRange

if TYPE_CHECKING:
    from optimizer.instance.model import Instance
    from optimizer.plan import Plan
    from optimizer.proposals.shape import Proposal
    from optimizer.proposals.training_shape import TrainingProposal


@click.command()
@click.argument("instance", type=click.Path(path_type=Path))
@click.option("-o", "--output", metavar="PATH", help="Write the answer there; - for stdout.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON in place of the screen.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--force", is_flag=True, help="Overwrite a file that is no plan of this instance.")
@click.option(
    "--time-limit", "time_limit_s", type=FiniteRange(0, min_open=True), metavar="S", help="Stop after S seconds."
)
@click.option("--gap", type=FiniteRange(0, 0.5), metavar="FRACTION", help="Relative gap that counts as proven.")
@click.option("--threads", type=click.IntRange(1, 256), metavar="N", help="Threads of the solver.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), metavar="N", help="Seed of the solver's tie-breaking.")
@click.option(
    "--export",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the program to FILE.lp or FILE.mps.",
)
@click.option(
    "--runners-up", type=click.IntRange(0, 50), default=0, metavar="K", help="Rank the K next best distinct plans."
)
@click.option(
    "--distinct",
    type=click.Choice(["accelerators", "schemes", "cooling", "sourcing", "sites"]),
    multiple=True,
    default=("accelerators", "schemes", "cooling", "sourcing", "sites"),
    help="What makes plans distinct; may be repeated. Absent: any of them.",
)
@click.option(
    "--baseline",
    metavar="naive|FILE",
    help="Hold the plan against the naive choice, or a proposal (today's fleet).",
)
@click.option(
    "--explain-cost",
    is_flag=True,
    help="Solve again: all bought, all rented, break-even, the five figures that move the cost most.",
)
def solve(
    instance: Path,
    output: str | None,
    as_json: bool,
    quiet: bool,
    force: bool,
    time_limit_s: float | None,
    gap: float | None,
    threads: int | None,
    seed: int | None,
    export: Path | None,
    runners_up: int,
    distinct: tuple[str, ...],
    baseline: str | None,
    explain_cost: bool,
) -> int:
    """Find the cheapest cluster that meets every limit of INSTANCE.

    The plan is written beside the instance (my.json: my.plan.json), or a diagnosis when nothing fits
    (my.diagnosis.json). Ctrl-C stops the search and keeps the best verified plan.
    """
    if export is not None and export.suffix not in (".lp", ".mps"):
        raise click.BadParameter("the file must end in .lp or .mps", param_hint="--export")
    wanted = read(instance)
    to_stdout = output == "-"
    if not to_stdout:
        for kind in ("plan", "diagnosis"):
            files.guard(_target(instance, output, kind), wanted.name, force=force)

    if export is not None:
        files.guard(export, wanted.name, force=force)

    held_against = None if baseline is None else _baseline(baseline, wanted)
    with interruptible() as stop:
        solved = answering.solve(
            wanted,
            instance,
            time_limit_s=time_limit_s,
            gap=gap,
            threads=threads,
            seed=seed,
            export=export,
            stop=stop,
            runners_up=runners_up,
            distinct=distinct,
            baseline=held_against,
            quiet=quiet,
        )
        if explain_cost and solved.plan is not None:
            solved = answering.explained(wanted, instance, solved, stop, quiet=quiet)
    answer = solved.plan or solved.diagnosis
    if answer is None:
        talk.say("stopped with no plan; a longer --time-limit may find one")
        return solved.exit_code
    kind = "plan" if solved.plan else "diagnosis"
    text = files.as_json(answer)
    if to_stdout or (as_json and not quiet):
        talk.data(text)
    elif not quiet:
        talk.data(answering.screen(solved))
    if not to_stdout:
        target = _target(instance, output, kind)
        files.guard(target, wanted.name, force=force)
        files.write(target, text)
        if not quiet:
            talk.say(f"written     {target}")
            _warn_of_stale(instance, output, kind)
    return solved.exit_code


def read(path: Path) -> "Instance":
    """Read an instance; a verb that was misspelt is a file that is missing, so say the verb."""
    from optimizer.commands.app import VERBS
    from optimizer.errors import InputError
    from optimizer.instance.problems import nearest
    from optimizer.instance.reading import read_instance

    try:
        return read_instance(path)
    except InputError as error:
        verb = nearest(str(path), VERBS) if error.problems[0].code == "E-FILE-001" and not path.suffix else ""
        if not verb:
            raise
        raise click.UsageError(f"no verb and no file {str(path)!r}. Did you mean `optimize {verb}`?") from None


def _baseline(given: str, instance: "Instance") -> "Literal['naive'] | Proposal | TrainingProposal | Plan":
    """The baseline that was asked for: the word, or what a file holds."""
    if given == "naive":
        return "naive"
    from optimizer.proposals.reading import read_proposal

    return read_proposal(Path(given), instance)


def _target(instance: Path, output: str | None, kind: str) -> Path:
    return files.answer_path(instance, kind) if output is None else Path(output)


def _warn_of_stale(instance: Path, output: str | None, kind: str) -> None:
    """An answer of the other kind from an earlier run still lies there and no longer holds."""
    other = files.answer_path(instance, "diagnosis" if kind == "plan" else "plan")
    if output is None and other.exists():
        talk.say(f"note        {other} is from an earlier run and no longer holds")
