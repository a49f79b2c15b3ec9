"""``optimize tornado``: which assumption moves the answer most."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from optimizer.commands import answering, talk

if TYPE_CHECKING:
    from optimizer.studies.assumptions import End, Leading

_BAR = 24


@click.command()
@click.argument("instance", type=click.Path(path_type=Path))
@click.option("--count", type=click.IntRange(1, 100), default=5, show_default=True, help="Assumptions to name.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def tornado(instance: Path, count: int, as_json: bool, quiet: bool) -> int:
    """Move each price that INSTANCE's plan pays through its range, solve again, and rank by the change of the total.

    The range is the catalogue's low and high, or +-25 % where it states none.
    """
    from optimizer.commands.solve import read
    from optimizer.studies.assumptions import leading_assumptions

    wanted = read(instance)
    with answering.missing_libraries_told():
        found = leading_assumptions(
            wanted, count, instance, None if quiet else lambda name: talk.say(f"moving      {name}")
        )
    if found is None:
        talk.say(f"nothing fits {instance}; `optimize explain {instance}` says why")
        return 4
    talk.data(_json(found) if as_json else _screen(found, talk.width()))
    return 0


def _json(found: "Leading") -> str:
    content = asdict(found)
    for row, one in zip(content["assumptions"], found.assumptions, strict=True):
        row["change_usd_per_year"] = one.change_usd_per_year
        row["is_decisive"] = one.is_decisive
    return json.dumps(content, indent=1, ensure_ascii=False)


def _screen(found: "Leading", width: int) -> str:
    from optimizer.report.words import counted, percent, significant, usd, wrapped

    lines = [found.name, *wrapped("Plan", [found.summary, f"{usd(found.usd_per_year)} per year"], width), ""]
    most = max((one.change_usd_per_year for one in found.assumptions), default=0.0)
    for one in found.assumptions:
        bar = "#" * max(1, round(_BAR * one.change_usd_per_year / most)) if most else ""
        lines.append(f"  {one.name[: width - _BAR - 5]:<{width - _BAR - 4}}{bar}".rstrip())
        span = (
            f"{significant(one.low.value)} .. {significant(one.now)} .. {significant(one.high.value)} {one.unit}"
            f" ({one.basis}; {one.trust}{', ' + one.as_of if one.as_of else ''})"
        )
        lines += wrapped("", [span], width, 6)
        lines += wrapped("", [f"{_change(one.low)} .. {_change(one.high)} per year"], width, 6)
        for end, word in ((one.low, "low"), (one.high, "high")):
            if not end.is_same_choice:
                lines += wrapped("", [f"{word}: then {end.summary}"], width, 6)
    largest = found.assumptions[0].change_usd_per_year if found.assumptions else 0.0
    share = percent(largest / found.usd_per_year) if found.usd_per_year else "0 %"
    named = f"{counted(found.moved, 'price')} moved, each solved again at both ends; the first is worth {share}"
    return "\n".join([*lines, "", *wrapped("", [named], width, 2)])


def _change(end: "End") -> str:
    from optimizer.report.words import usd

    change = end.change_usd_per_year
    if change is None:
        return "nothing fits"
    return f"{'-' if change < 0.0 else '+'}{usd(abs(change))}"
