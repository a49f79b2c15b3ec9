"""``optimize sweep``: an instance at many values of its fields."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from optimizer.commands import answering, files, outputs, progress, sweep_tables, talk
from optimizer.commands.field_completion import complete_vary
from optimizer.commands.interrupt import interruptible
from optimizer.commands.numbers import FiniteRange

if TYPE_CHECKING:
    from optimizer.studies.sweep import Asked, Sweep

_TEXTS: Final[outputs.Writers] = {".csv": sweep_tables.as_csv, ".json": sweep_tables.as_json}
#: What stands beside the output of a sweep that is not finished.
_PART: Final = ".part"


@click.command()
@click.argument("instance", type=click.Path(path_type=Path))
@click.option(
    "--vary",
    multiple=True,
    required=True,
    metavar="PATH=VALUES",
    shell_complete=complete_vary,
    help="A field and its values; may be given several times.",
)
@click.option("--link", is_flag=True, help="The fields move together; else every combination is a case.")
@click.option("--jobs", type=click.IntRange(1, 1024), metavar="N", help="Processes; as many as processors by default.")
@click.option("--scheduler", metavar="ADDRESS", help="Work on the Dask cluster at this address (tcp://...).")
@click.option("-o", "--output", metavar="FILE", help="Write every case there: .csv, .json or .parquet; - for JSON.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON in place of the screen.")
@click.option(
    "--no-reuse", is_flag=True, help="Solve every case, also where a neighbour's plan is proven to be its own."
)
@click.option(
    "--time-limit", "time_limit_s", type=FiniteRange(0, min_open=True), metavar="S", help="Seconds for each case."
)
@click.option("--gap", type=FiniteRange(0, 0.5), metavar="FRACTION", help="Relative gap that counts as proven.")
@click.option("--force", is_flag=True, help="Overwrite FILE; begin anew where another sweep is unfinished.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def sweep(
    instance: Path,
    vary: tuple[str, ...],
    link: bool,
    jobs: int | None,
    scheduler: str | None,
    output: str | None,
    as_json: bool,
    no_reuse: bool,
    time_limit_s: float | None,
    gap: float | None,
    force: bool,
    quiet: bool,
) -> int:
    """Solve INSTANCE at every combination of the values of some fields: winner, cost and binding limits of each.

    \b
    VALUES of a number     100:300:21       21 values, both ends included
                           100:1600:5:log   evenly spaced in ratio
                           -30%..30%:7      changes of the value in force
                           x0.5..x2:7       multiples of it
                           10,12.5,x2,+5%   each of these; null: no limit
    of a word or name      vllm,sglang
    of a list              a,b+c            the list of a, that of b and c
    A * in PATH moves every accelerator's (cooling option's) value together.

    Ctrl-C leaves the cases that are done in FILE; the same command goes on
    where it was. Results do not depend on --jobs, --scheduler or interruptions.
    """
    from optimizer.commands.money import money_of
    from optimizer.commands.solve import read

    wanted = read(instance)
    screen = money_of(wanted).told(lambda one, words: sweep_tables.on_screen(one, talk.width(), words))
    is_parquet = output is not None and output.lower().endswith(".parquet")
    if is_parquet:
        files.guard(Path(str(output)), "", force=True)
        sweep_tables.need_parquet()
    else:
        outputs.check(output, {**_TEXTS, ".parquet": sweep_tables.as_csv}, "sweep", force=force)
    part = None if output in (None, "-") else Path(f"{output}{_PART}")
    with answering.missing_libraries_told():
        from optimizer.studies import sweep as study

        asked = study.asked(
            wanted,
            vary,
            linked=link,
            instance_path=instance,
            time_limit_s=time_limit_s,
            gap=gap,
            reuse=not no_reuse,
        )
        if not quiet:
            talk.say(_announced(asked, link=link))
        kept = (
            "the cases that are done are kept; the same command goes on" if part else "the cases that are done are kept"
        )
        with interruptible(kept) as stop, progress.shown("cases", quiet=quiet) as tell:
            found = study.sweep(
                asked,
                jobs=jobs or _processors(),
                scheduler=scheduler,
                journal=part,
                force=force,
                progress=tell,
                stop=stop,
            )
    if is_parquet:
        if not quiet:
            talk.data(screen(found))
        files.write_bytes(Path(str(output)), sweep_tables.as_parquet(found))
        talk.say(f"written     {output}")
    else:
        outputs.give(found, output, _TEXTS, screen, as_json=as_json, quiet=quiet)
    if part is not None:
        if found.is_whole:
            part.unlink(missing_ok=True)
        else:
            talk.say(f"not finished: the same command goes on from {part}")
    return _exit_code(found)


def _announced(asked: "Asked", *, link: bool) -> str:
    from optimizer.report.words import counted

    count, axes = asked.count, asked.job.axes
    how = " together with ".join(f"{len(axis)} of {axis.label}" for axis in axes)
    if not link:
        how = " x ".join(f"{len(axis)} of {axis.label}" for axis in axes)
    return f"{counted(count, 'case')}: {how}"


def _processors() -> int:
    """Processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def _exit_code(found: "Sweep") -> int:
    """0 every case answered with proof; 4 nothing fits any; 5 stopped early or not all proven; 6 nothing found."""
    statuses = {row.status for row in found.rows}
    if not found.is_whole or statuses & {"feasible", "unknown"}:
        return 5 if statuses & {"optimal", "feasible", "infeasible"} else 6
    return 4 if statuses == {"infeasible"} else 0
