"""``optimize catalog``: the tables that plans rest on."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

import click

from optimizer.commands import talk

#: Column that holds prose: on a screen it is left to --json and --csv.
_PROSE = frozenset({"source", "remarks"})
_GAP = 2


@click.command()
@click.argument("what", type=click.Choice(["accelerators", "models", "schemes", "cooling", "prices"]))
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a list of objects, units in the keys.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
def catalog(what: str, as_json: bool, as_csv: bool) -> int:
    """Show a table of the catalogue: accelerators, models, schemes, cooling or prices.

    The screen shows the columns that fit; --csv and --json show all, with source, date and trust.
    """
    if as_json and as_csv:
        raise click.UsageError("--json and --csv exclude each other")
    from optimizer.catalog import load_catalog
    from optimizer.catalog.show import table

    columns, rows = table(load_catalog(), what)
    if as_json:
        talk.data(json.dumps([dict(zip(columns, row, strict=True)) for row in rows], indent=1, ensure_ascii=False))
    elif as_csv:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
        talk.data(text.getvalue())
    else:
        talk.data(_screen(columns, rows, talk.width()))
        talk.say(f"{len(rows)} rows; every column with --csv or --json")
    return 0


def _screen(columns: Sequence[str], rows: Sequence[Sequence[Any]], width: int) -> str:
    """The leading columns that fit, headings broken into words, one line a row."""
    shown = [index for index, name in enumerate(columns) if name not in _PROSE]
    cells = [[_cell(row[index]) for index in shown] for row in rows]
    heads = [columns[index].split() for index in shown]
    widths = [
        min(34, max(len(text) for text in [*head, *(row[place] for row in cells)])) for place, head in enumerate(heads)
    ]
    fitting = 1
    while fitting < len(widths) and sum(widths[: fitting + 1]) + _GAP * fitting <= width:
        fitting += 1
    numeric = [all(not row[index] or isinstance(row[index], int | float) for row in rows) for index in shown]
    height = max(len(head) for head in heads[:fitting])
    lines = [
        _line(
            [head[row - height + len(head)] if row >= height - len(head) else "" for head in heads[:fitting]],
            widths,
            numeric,
        )
        for row in range(height)
    ]
    lines.append("-" * min(width, sum(widths[:fitting]) + _GAP * (fitting - 1)))
    lines += [_line(row[:fitting], widths, numeric) for row in cells]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    parts = [
        (text if len(text) <= size else text[: size - 1] + "…").rjust(size)
        if right
        else (text if len(text) <= size else text[: size - 1] + "…").ljust(size)
        for text, size, right in zip(cells, widths, numeric, strict=False)
    ]
    return (" " * _GAP).join(parts).rstrip()


def _cell(value: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if isinstance(value, int) and value >= 10_000:
        return f"{value:,}"
    return str(value)
