"""``optimize map``: which choice is best over two fields."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from optimizer.commands import answering, outputs, progress, talk
from optimizer.commands.interrupt import interruptible
from optimizer.commands.numbers import FiniteRange

if TYPE_CHECKING:
    from optimizer.studies.decision_map import DecisionMap


@click.command(name="map")
@click.argument("instance", type=click.Path(path_type=Path))
@click.option(
    "--vary",
    required=True,
    multiple=True,
    metavar="PATH=LOW:HIGH[:N]",
    help="Field, range and count of points; twice: across (13 points), then up (9 points).",
)
@click.option(
    "--near",
    type=FiniteRange(0, 1),
    default=0.01,
    show_default=True,
    metavar="FRACTION",
    help="A next best choice within this share of the cost is a near tie; 0 looks for none.",
)
@click.option("-o", "--output", metavar="FILE", help=outputs.OUTPUT_HELP)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def decision_map(
    instance: Path, vary: tuple[str, ...], near: float, output: str | None, as_json: bool, quiet: bool, force: bool
) -> int:
    """Draw which choice is best for INSTANCE over a grid of two fields, near ties and the present point marked.

    A choice is what is used: accelerator types, schemes, cooling, ways of sourcing. Ctrl-C keeps the rows done.
    """
    from optimizer.commands.money import money_of
    from optimizer.commands.solve import read

    if len(vary) != 2:
        raise click.UsageError("a map needs --vary twice: across, then up")
    wanted = read(instance)
    money = money_of(wanted)
    writers: outputs.Writers = {".json": _json, ".csv": _csv, ".svg": money.told(_svg)}
    outputs.check(output, writers, "map", force=force)
    with (
        answering.missing_libraries_told(),
        interruptible("the points done are shown") as stop,
        progress.shown("points", quiet=quiet) as tell,
    ):
        from optimizer.studies.decision_map import decision_map as study

        found = study(wanted, *vary, instance, near_fraction=near, tell=tell, stop=stop)
    outputs.give(found, output, writers, money.told(_screen), as_json=as_json, quiet=quiet)
    return 0 if found.is_complete else 5


def _json(found: "DecisionMap") -> str:
    return outputs.as_json("map", asdict(found))


def _csv(found: "DecisionMap") -> str:
    header = [found.x.field, found.y.field, "choice", "usd_per_year", "next_choice", "extra_fraction", "is_near_tie"]
    rows: list[list[Any]] = [
        [
            one.x,
            one.y,
            "nothing fits" if one.choice is None else found.choices[one.choice],
            one.usd_per_year,
            one.next_choice,
            one.extra_fraction,
            one.is_near_tie,
            one.summary,
        ]
        for one in found.cells
    ]
    return outputs.as_csv(
        "map", [*header, "plan"], [[*row, cell.summary] for row, cell in zip(rows, found.cells, strict=True)]
    )


def _svg(found: "DecisionMap", words: str) -> str:
    from optimizer.report.charts.regions import regions_svg

    return regions_svg(found, words)


def _screen(found: "DecisionMap", money_words: str) -> str:
    from optimizer.report.charts.regions import LETTERS, regions_characters
    from optimizer.report.words import counted, percent, usd, wrapped

    width = talk.width()
    lines = [found.name, "", *regions_characters(found, width - 2), ""]
    for place, words in enumerate(found.choices):
        own = [one.usd_per_year for one in found.cells if one.choice == place and one.usd_per_year is not None]
        money = f"{usd(min(own))} .. {usd(max(own))} {money_words}"
        lines += wrapped(LETTERS[place % len(LETTERS)], [words, money, counted(len(own), "point")], width, 4)
    if any(one.choice is None for one in found.cells):
        lines += wrapped(".", ["nothing fits"], width, 4)
    told = []
    if found.near_fraction:
        near = percent(found.near_fraction)
        told.append(f"small letters: a choice that does without something of it costs at most {near} more")
    told.append("[ ]: the point nearest to the present values")
    if not found.is_complete:
        told.insert(0, f"stopped after {counted(len(found.cells), 'point')}")
    return "\n".join([*lines, "", *wrapped("", told, width, 2)])
