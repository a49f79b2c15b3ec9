"""``optimize limits-price``: what each limit costs."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from optimizer.commands import answering, outputs, progress, talk
from optimizer.commands.interrupt import interruptible
from optimizer.commands.numbers import FiniteRange

if TYPE_CHECKING:
    from optimizer.studies.limit_prices import LimitPrices, Moved


@click.command(name="limits-price")
@click.argument("instance", type=click.Path(path_type=Path))
@click.option(
    "--by",
    type=FiniteRange(0, 0.9, min_open=True),
    default=0.05,
    show_default=True,
    metavar="FRACTION",
    help="Share of its value by which each limit is moved; a count by one at least.",
)
@click.option("-o", "--output", metavar="FILE", help="Write the result there by its ending (.json, .csv).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def limits_price(instance: Path, by: float, output: str | None, as_json: bool, quiet: bool, force: bool) -> int:
    """Price each limit of INSTANCE: solve again with it tightened and loosened, and tell the difference of the cost.

    These are no dual values of a relaxed program: servers are whole, so a limit often costs nothing until it costs
    a server.
    """
    from optimizer.commands.money import money_of
    from optimizer.commands.solve import read

    wanted = read(instance)
    money = money_of(wanted)
    writers: outputs.Writers = {".json": _json, ".csv": _csv}
    outputs.check(output, writers, "limits-price", force=force)
    with (
        answering.missing_libraries_told(),
        interruptible("the limits done are shown") as stop,
        progress.shown("limits", quiet=quiet) as tell,
    ):
        from optimizer.studies.limit_prices import limit_prices

        found = limit_prices(wanted, instance, by_fraction=by, tell=tell, stop=stop)
    if found is None:
        talk.say(f"nothing fits {instance}; `optimize explain {instance}` says why")
        return 4
    outputs.give(found, output, writers, money.told(_screen), as_json=as_json, quiet=quiet)
    return 0 if found.is_complete else 5


def _json(found: "LimitPrices") -> str:
    return outputs.as_json("limits-price", asdict(found))


def _csv(found: "LimitPrices") -> str:
    header = ["field", "label", "unit", "now", "is_binding"]
    for side in ("tighter", "looser"):
        header += [side, f"{side}_usd_per_year", f"{side}_change_usd_per_year", f"{side}_usd_per_year_per_unit"]
    rows: list[list[Any]] = []
    for one in found.limits:
        row: list[Any] = [one.field, one.label, one.unit, one.now, one.is_binding]
        for way in (one.tighter, one.looser):
            row += (
                [None] * 4
                if way is None
                else [way.value, way.usd_per_year, way.change_usd_per_year, way.usd_per_year_per_unit]
            )
        rows.append(row)
    return outputs.as_csv("limits-price", header, rows)


def _screen(found: "LimitPrices", words: str) -> str:
    from optimizer.report.words import percent, significant, usd, wrapped

    width = talk.width()
    lines = [found.name, *wrapped("Plan", [found.summary, f"{usd(found.usd_per_year)} {words}"], width), ""]
    for one in found.limits:
        binding = " (holds the plan back)" if one.is_binding else ""
        lines += wrapped("", [f"{one.field} = {significant(one.now, 4)} {one.unit}{binding}"], width, 2)
        for way, word in ((one.tighter, "tighter"), (one.looser, "looser")):
            if way is not None:
                lines += wrapped(f"  {word}", [*_told(way, one.unit, words)], width, 12)
    by = percent(found.by_fraction)
    told = f"each limit moved by {by} (a floor by that share of the loss it allows; counts by one at least)"
    done = [] if found.is_complete else [f"stopped: {len(found.limits)} of {found.total} limits moved"]
    return "\n".join([*lines, "", *wrapped("", [*done, told, "every figure from solving again"], width, 2)])


def _told(way: "Moved", unit: str, words: str) -> list[str]:
    from optimizer.report.words import significant, usd

    value = f"{significant(way.value, 4)}"
    if way.change_usd_per_year is None:
        return [value, "nothing fits"]
    if way.change_usd_per_year == 0.0:
        return [value, "costs the same"]
    sign = "-" if way.change_usd_per_year < 0.0 else "+"
    rate = f"{usd(way.usd_per_year_per_unit or 0.0)} per {unit}"
    return [value, f"{sign}{usd(abs(way.change_usd_per_year))} {words}", rate, f"then {way.summary}"]
