"""``optimize tornado``: which price, bound or assumption moves the answer most."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from optimizer.commands import answering, outputs, progress, talk
from optimizer.commands.interrupt import interruptible

if TYPE_CHECKING:
    from optimizer.studies.assumptions import End, Leading

_BAR = 30
_KINDS = {"prices": "price", "assumptions": "assumption", "bounds": "bound"}


@click.command()
@click.argument("instance", type=click.Path(path_type=Path))
@click.option("--count", type=click.IntRange(1, 1000), default=10, show_default=True, help="Figures to show.")
@click.option(
    "--only",
    type=click.Choice(list(_KINDS)),
    multiple=True,
    help="Move these alone: prices, assumptions (rates, lives, lengths, confidence), bounds (targets, site, demand).",
)
@click.option("-o", "--output", metavar="FILE", help=outputs.OUTPUT_HELP)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: every figure that was moved.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def tornado(
    instance: Path,
    count: int,
    only: tuple[str, ...],
    output: str | None,
    as_json: bool,
    quiet: bool,
    force: bool,
) -> int:
    """Move each price, assumption and bound of INSTANCE through its range, solve again, rank by the change of the cost.

    Prices move between the catalogue's low and high, or +-25 % where it states none; bounds and assumptions by the
    documented ranges of docs/studies.md. Ctrl-C keeps what was solved.
    """
    from optimizer.commands.money import money_of
    from optimizer.commands.solve import read
    from optimizer.studies.assumptions import KINDS, leading_assumptions

    wanted = read(instance)
    money = money_of(wanted)
    kinds = [kind for kind in KINDS if not only or kind in {_KINDS[one] for one in only}]
    draw = money.told(lambda one, words: _svg(one, count, words))
    writers: outputs.Writers = {".json": _json, ".csv": _csv, ".svg": draw}
    outputs.check(output, writers, "tornado", force=force)
    with (
        answering.missing_libraries_told(),
        interruptible("what was moved is shown") as stop,
        progress.shown("figures", quiet=quiet) as tell,
    ):
        found = leading_assumptions(wanted, None, instance, tell, kinds, stop)
    if found is None:
        talk.say(f"nothing fits {instance}; `optimize explain {instance}` says why")
        return 4
    screen = money.told(lambda one, words: _screen(one, count, words))
    outputs.give(found, output, writers, screen, as_json=as_json, quiet=quiet)
    return 0 if found.moved == found.total else 5


def _json(found: "Leading") -> str:
    content = asdict(found)
    for row, one in zip(content["assumptions"], found.assumptions, strict=True):
        row["change_usd_per_year"] = one.change_usd_per_year
        row["is_decisive"] = one.is_decisive
    return outputs.as_json("tornado", content)


def _csv(found: "Leading") -> str:
    header = ["kind", "name", "field", "unit", "now", "basis", "trust", "as_of"]
    for end in ("low", "high"):
        header += [end, f"{end}_usd_per_year", f"{end}_change_usd_per_year", f"{end}_is_same_choice", f"{end}_plan"]
    rows: list[list[Any]] = []
    for one in found.assumptions:
        row = [one.kind, one.name, one.field, one.unit, one.now, one.basis, one.trust, one.as_of]
        for way in (one.low, one.high):
            row += [way.value, way.usd_per_year, way.change_usd_per_year, way.is_same_choice, way.summary]
        rows.append(row)
    return outputs.as_csv("tornado", header, rows)


def _svg(found: "Leading", count: int, words: str) -> str:
    from dataclasses import replace

    from optimizer.report.charts.tornado import tornado_svg

    return tornado_svg(replace(found, assumptions=found.assumptions[:count]), words)


def _screen(found: "Leading", count: int, words: str) -> str:
    from optimizer.report.charts.tornado import tornado_bars
    from optimizer.report.words import counted, percent, significant, usd, wrapped

    width = talk.width()
    lines = [found.name, *wrapped("Plan", [found.summary, f"{usd(found.usd_per_year)} {words}"], width), ""]
    rows = found.assumptions[:count]
    for one, bar in zip(rows, tornado_bars(rows, _BAR), strict=True):
        lines.append(f"  {one.name[: width - _BAR - 5]:<{width - _BAR - 4}}{bar}".rstrip())
        origin = f"; {one.trust}{', ' + one.as_of if one.as_of else ''}" if one.kind == "price" else ""
        span = (
            f"{significant(one.low.value)} .. {significant(one.now)} .. {significant(one.high.value)} {one.unit}"
            f" ({one.basis}{origin})"
        )
        lines += wrapped("", [span], width, 6)
        lines += wrapped("", [f"{_change(one.low)} .. {_change(one.high)} {words}"], width, 6)
        for end, word in ((one.low, "low"), (one.high, "high")):
            if not end.is_same_choice and end.usd_per_year is not None:
                lines += wrapped("", [f"{word}: then {end.summary}"], width, 6)
    largest = max((one.change_usd_per_year for one in found.assumptions), default=0.0)
    share = percent(largest / found.usd_per_year) if found.usd_per_year else "0 %"
    named = f"{counted(found.moved, 'figure')} moved, each solved again at both ends; the strongest is worth {share}"
    if found.moved < found.total:
        named = f"stopped: {found.moved} of {counted(found.total, 'figure')} moved"
    return "\n".join([*lines, "", *wrapped("", ["- lowers, + raises the cost", named], width, 2)])


def _change(end: "End") -> str:
    from optimizer.report.words import usd

    change = end.change_usd_per_year
    if change is None:
        return "nothing fits"
    return f"{'-' if change < 0.0 else '+'}{usd(abs(change))}"
