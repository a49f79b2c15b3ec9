"""``optimize tipping``: the values of a field at which the best choice flips."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from optimizer.commands import answering, outputs, progress, talk
from optimizer.commands.interrupt import interruptible
from optimizer.commands.numbers import FiniteRange

if TYPE_CHECKING:
    from optimizer.studies.tipping import Tipping


@click.command()
@click.argument("instance", type=click.Path(path_type=Path))
@click.option(
    "--vary",
    required=True,
    metavar="PATH=LOW:HIGH",
    help="Field and range, as 100:300, -30%..30% or x0.5..x2 of the value now.",
)
@click.option(
    "--resolution",
    type=FiniteRange(0, min_open=True),
    metavar="STEP",
    help="Shortest stretch that must not be missed, in the field's unit.  [default: range / 128, for prices / 1024]",
)
@click.option("-o", "--output", metavar="FILE", help=outputs.OUTPUT_HELP)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def tipping(
    instance: Path, vary: str, resolution: float | None, output: str | None, as_json: bool, quiet: bool, force: bool
) -> int:
    """Find every value of one field of INSTANCE, within a range, at which the best choice flips.

    A choice is what is used: accelerator types, schemes, cooling, ways of sourcing. Values between two solved ones are
    left out only where the choice there is proven; docs/studies.md states the guarantee. Ctrl-C keeps what is known.
    """
    from optimizer.commands.money import money_of
    from optimizer.commands.solve import read

    wanted = read(instance)
    money = money_of(wanted)
    writers: outputs.Writers = {".json": _json, ".csv": _csv, ".svg": money.told(_svg)}
    outputs.check(output, writers, "tipping", force=force)
    with (
        answering.missing_libraries_told(),
        interruptible("flips between the solved values are shown") as stop,
        progress.shown("values", quiet=quiet) as tell,
    ):
        from optimizer.studies.tipping import tipping_points

        found = tipping_points(wanted, vary, instance, resolution=resolution, tell=tell, stop=stop)
    outputs.give(found, output, writers, money.told(_screen), as_json=as_json, quiet=quiet)
    return 0 if found.is_complete else 5


def _json(found: "Tipping") -> str:
    return outputs.as_json("tipping", asdict(found))


def _csv(found: "Tipping") -> str:
    header = ["field", "unit", "first", "last", "choice", "first_usd_per_year", "last_usd_per_year", "first_plan"]
    rows = [
        [
            found.field,
            found.unit,
            one.first,
            one.last,
            one.choice,
            one.first_usd_per_year,
            one.last_usd_per_year,
            one.first_summary,
        ]
        for one in found.stretches
    ]
    return outputs.as_csv("tipping", header, rows)


def _svg(found: "Tipping", words: str) -> str:
    from optimizer.report.charts.stretches import stretches_svg

    return stretches_svg(found, words)


def _screen(found: "Tipping", words: str) -> str:
    from optimizer.report.charts.stretches import LETTERS, stretches_strip
    from optimizer.report.words import counted, significant, usd, wrapped

    width = talk.width()
    lines = [found.name, "", *(f"  {line}" for line in stretches_strip(found, width - 4)), ""]
    for place, one in enumerate(found.stretches):
        money = (
            "nothing fits"
            if one.first_usd_per_year is None or one.last_usd_per_year is None
            else f"{usd(one.first_usd_per_year)} .. {usd(one.last_usd_per_year)} {words}"
        )
        span = f"{significant(one.first)} .. {significant(one.last)} {found.unit}".rstrip()
        lines += wrapped(f"{LETTERS[place % len(LETTERS)]}", [one.choice, span, money], width, 4)
    lines.append("")
    for flip in found.flips:
        lines += wrapped("", [flip.message], width, 2)
    if not found.flips:
        only = found.stretches[0].choice if found.stretches else "nothing solved"
        lines += wrapped("", [f"the choice does not flip: {only}"], width, 2)
    step = f"{significant(found.resolution)} {found.unit}".rstrip()
    told = [f"resolution {step}: {found.solved} of {counted(found.cells + 1, 'value')} solved", found.guarantee]
    if not found.is_complete:
        told = [f"stopped after {counted(found.solved, 'value')}: flips may be missing", told[0]]
    return "\n".join([*lines, "", *wrapped("", told, width, 2)])
