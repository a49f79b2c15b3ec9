"""``optimize frontier``: what a tighter limit costs, plan by plan."""

from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from optimizer.commands import answering, outputs, progress, talk
from optimizer.commands.interrupt import interruptible
from optimizer.commands.numbers import FiniteRange

if TYPE_CHECKING:
    from optimizer.studies.frontier import Front


@click.command()
@click.argument("instance", type=click.Path(path_type=Path))
@click.option(
    "--trade",
    required=True,
    metavar="cost,PATH[=LOW:HIGH],...",
    help="Cost and the limits that are traded against it, such as cost,targets.tpot_ms=20:200.",
)
@click.option(
    "--step",
    type=FiniteRange(0, 0.5),
    default=0.05,
    show_default=True,
    metavar="FRACTION",
    help="Least share by which a continuous limit is tightened at once; 0 finds every point.",
)
@click.option("-o", "--output", metavar="FILE", help=outputs.OUTPUT_HELP)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def frontier(
    instance: Path, trade: str, step: float, output: str | None, as_json: bool, quiet: bool, force: bool
) -> int:
    """Find the plans of INSTANCE that no other plan beats in both cost and the limits traded against it.

    Each limit is tightened step by step and the cheapest plan under it found; the instance's own limit on a traded
    field is set aside. K marks the knee, N the plan of the instance's own limits. Ctrl-C keeps the points found.
    """
    from optimizer.commands.money import money_of
    from optimizer.commands.solve import read

    wanted = read(instance)
    money = money_of(wanted)
    writers: outputs.Writers = {".json": _json, ".csv": _csv, ".svg": money.told(_svg)}
    outputs.check(output, writers, "frontier", force=force)
    with (
        answering.missing_libraries_told(),
        interruptible("the points found are shown") as stop,
        progress.shown("plans", quiet=quiet) as tell,
    ):
        from optimizer.studies.frontier import frontier as study

        found = study(wanted, trade, instance, step=step, tell=tell, stop=stop)
    if not found.points:
        talk.say("no plan was found" if not found.is_complete else f"nothing fits {instance} under any of these limits")
        return 4 if found.is_complete else 6
    outputs.give(found, output, writers, money.told(_screen), as_json=as_json, quiet=quiet)
    return 0 if found.is_complete else 5


def _json(found: "Front") -> str:
    return outputs.as_json("frontier", asdict(found))


def _csv(found: "Front") -> str:
    header = ["usd_per_year", *found.aims, "is_knee", "is_now", "holds", "plan"]
    rows: list[list[Any]] = [
        [one.usd_per_year, *one.reached, one.is_knee, one.is_now, one.holds, one.summary] for one in found.points
    ]
    return outputs.as_csv("frontier", header, rows)


def _svg(found: "Front", words: str) -> str:
    from optimizer.report.charts.front import front_svg

    return front_svg(found, words)


def _screen(found: "Front", words: str) -> str:
    from optimizer.report.charts.front import front_characters
    from optimizer.report.words import counted, significant, usd, wrapped

    width = talk.width()
    lines = [found.name, "", *front_characters(found, width - 2), ""]
    for _, group in groupby(found.points, key=lambda one: (one.summary, one.is_knee, one.is_now)):
        own = list(group)
        mark = "K" if own[0].is_knee else "N" if own[0].is_now else " "
        money = _span([usd(one.usd_per_year) for one in own])
        reached = [
            f"{_span([significant(one.reached[place]) for one in own])} {unit}".rstrip()
            for place, unit in enumerate(found.units)
        ]
        count = [counted(len(own), "point")] if len(own) > 1 else []
        lines += wrapped(mark, [f"{money} {words}", *reached, *count, own[0].summary], width, 4)
    told = [
        f"{counted(len(found.points), 'plan')} that no other beats, of {found.solved} solved",
        "K: knee, N: the instance's own limits",
    ]
    if found.step:
        told.append(f"plans nearer than {100.0 * found.step:g} % to the one before may be left out (--step 0: none)")
    if not found.is_complete:
        told.insert(0, "stopped: more points may exist")
    return "\n".join([*lines, "", *wrapped("", told, width, 2)])


def _span(texts: list[str]) -> str:
    """First and last of several figures, once where they read alike."""
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]} .. {texts[-1]}"
