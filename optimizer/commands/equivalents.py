"""``optimize equivalents``: a fleet in units of another accelerator, in each meaning of the word."""

import json
import math
from typing import TYPE_CHECKING, Any

import click

from optimizer.commands import talk

if TYPE_CHECKING:
    from optimizer.studies.equivalents import Equivalent

#: As ``optimizer.studies.equivalents.MEANINGS``, which is loaded when the verb runs.
_MEANINGS = ("bf16-peak", "fp8-peak", "measured-training", "measured-serving", "memory-bandwidth")


class _Part(click.ParamType[Any]):
    """``ACCELERATOR=COUNT``."""

    name = "accelerator=count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        """Split at the equals sign; the count must be a finite number above 0."""
        name, sign, count = str(value).partition("=")
        try:
            number = float(count.replace("_", "").replace(",", "")) if sign else 1.0
        except ValueError:
            number = math.nan
        if not name or not (math.isfinite(number) and number > 0.0):
            self.fail(f"{value!r} is no ACCELERATOR=COUNT such as h100-80gb-sxm=350000", param, ctx)
        return name, number


@click.command()
@click.option(
    "--from", "fleet", type=_Part(), multiple=True, required=True, metavar="ACCELERATOR=COUNT", help="May be repeated."
)
@click.option("--to", "unit", required=True, metavar="ACCELERATOR", help="The unit: catalogue id or alias.")
@click.option("--by", type=click.Choice(_MEANINGS), help="One meaning; all of them side by side by default.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def equivalents(fleet: tuple[tuple[str, float], ...], unit: str, by: str | None, as_json: bool) -> int:
    """Say how many accelerators of one type do the work of a fleet, in each meaning of "work"."""
    from optimizer.catalog.names import UnknownName
    from optimizer.studies.equivalents import MEANINGS
    from optimizer.studies.equivalents import equivalents as run

    counts: dict[str, float] = {}
    for name, count in fleet:
        counts[name] = counts.get(name, 0.0) + count
    try:
        rows = run(counts, unit, MEANINGS if by is None else (by,))
    except UnknownName as error:
        raise click.UsageError(f"{error}. `optimize catalog accelerators` lists them") from None
    if as_json:
        document = {"from": counts, "to": rows[0].to, "rows": [row.document() for row in rows]}
        talk.data(json.dumps(document, indent=1))
    else:
        talk.data(_screen(rows))
    return 0


def _screen(rows: "tuple[Equivalent, ...]") -> str:
    fleet = " + ".join(f"{one.count:,.0f} {one.accelerator}" for one in rows[0].ratios)
    lines = [f"{fleet} in units of {rows[0].to}", "", f"  {'meaning':<20}{'equivalents':>14}   {'band':<24}each"]
    for row in rows:
        each = ", ".join("-" if one.value is None else f"{one.value:.3g}" for one in row.ratios)
        band = "exact by definition" if row.low == row.high else f"{_count(row.low)} .. {_count(row.high)}"
        if row.equivalents is None:
            band = "nothing measured"
        lines.append(f"  {row.meaning:<20}{_count(row.equivalents):>14}   {band:<24}{each}")
        if row.variant:
            lines.append(f"      {row.variant}")
        if row.source != "catalogue":
            lines.append(f"      {row.source}")
            lines += [f"      {one.accelerator}: {one.basis}" for one in row.ratios]
    return "\n".join(lines)


def _count(value: float | None) -> str:
    """No more digits than a ratio has."""
    if value is None:
        return "-"
    return f"{float(f'{value:.4g}'):,.0f}" if value >= 100 else f"{value:.3g}"
