"""``optimize evaluate``: a plan someone else made, against every limit and price of an instance."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from optimizer.commands import answering, files, progress, talk
from optimizer.commands.interrupt import interruptible
from optimizer.commands.numbers import FiniteRange

if TYPE_CHECKING:
    from optimizer.proposals.result import Evaluation


@click.command()
@click.argument("instance", type=click.Path(path_type=Path))
@click.argument("proposal", type=click.Path(path_type=Path))
@click.option("-o", "--output", metavar="PATH", help="Write the evaluation as JSON there; - for stdout.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON in place of the screen.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--force", is_flag=True, help="Overwrite a file that is no evaluation of this instance.")
@click.option("--no-optimum", is_flag=True, help="Do not solve the instance to tell the distance.")
@click.option(
    "--time-limit",
    "time_limit_s",
    type=FiniteRange(0, min_open=True),
    metavar="S",
    help="Stop solving after S seconds.",
)
def evaluate(
    instance: Path,
    proposal: Path,
    output: str | None,
    as_json: bool,
    quiet: bool,
    force: bool,
    no_optimum: bool,
    time_limit_s: float | None,
) -> int:
    """Check PROPOSAL against INSTANCE: every limit, the whole bill, the distance to the optimum.

    PROPOSAL is a JSON file: accelerator, count or servers, layout, scheme, cooling, sourcing (the format: `optimize
    schema proposal`), or a plan that `optimize` wrote. The exit code is 0 when it keeps every limit, 8 when not.
    """
    from optimizer.commands.solve import read
    from optimizer.proposals.reading import read_proposal
    from optimizer.report.evaluation import render

    wanted = read(instance)
    if output is not None and output != "-":
        files.guard(Path(output), wanted.name, force=force, kind="evaluation of this instance", mark="proposal")
    with (
        answering.missing_libraries_told(),
        interruptible("the optimum is left out") as stop,
        progress.shown("searches", quiet=quiet) as tell,
    ):
        from optimizer import api

        resolved = api.resolved(wanted, instance)
        given = read_proposal(proposal, resolved)
        found = api.evaluate(
            resolved,
            given,
            file=str(proposal),
            optimum=not no_optimum,
            time_limit_s=time_limit_s,
            stop=progress.watched(stop, tell),
        )
    text = files.as_json(found)
    if output == "-" or (as_json and not quiet):
        talk.data(text)
    elif not quiet:
        talk.data(render(found, talk.width()))
    if output is not None and output != "-":
        files.write(Path(output), text)
        if not quiet:
            talk.say(f"written     {output}")
    return exit_code(found)


def exit_code(found: "Evaluation") -> int:
    """0 where every limit is kept, 8 (a gate failed) where one is broken."""
    return 0 if found.keeps_every_limit else 8
