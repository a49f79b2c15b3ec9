"""A sweep as JSON, CSV, Parquet, or on the screen."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from optimizer.commands import outputs
from optimizer.errors import Problem, UsageProblems

if TYPE_CHECKING:
    from optimizer.studies.sweep import Sweep
    from optimizer.studies.sweeping.rows import Row

#: Limits that bind in every plan, which a screen need not repeat: the demand itself, and spares.
_ALWAYS: Final = frozenset({"workload.demand", "targets.spare_fraction"})

#: More cases than this are told on the screen where the winner changes only.
SHOWN: Final = 60


def columns(found: "Sweep") -> list[str]:
    """Names of the columns of a table: the case, the varied fields, what was found."""
    from optimizer.studies.sweeping.rows import COLUMNS

    return ["case", *(axis.label for axis in found.axes), *COLUMNS]


def cells(row: "Row") -> list[Any]:
    """A row as the cells of a table; lists are joined by blanks."""
    from optimizer.studies.sweeping.rows import COLUMNS

    told = [getattr(row, name) for name in COLUMNS]
    told = [" ".join(one) if isinstance(one, tuple) else one for one in told]
    return [row.case, *(_plain(value) for value in row.values), *told]


def as_json(found: "Sweep") -> str:
    """Everything: axes with their units, and every case."""
    axes = [
        {"label": axis.label, "fields": [field.name for field in axis.fields], "unit": axis.unit} for axis in found.axes
    ]
    rows = []
    for row in found.rows:
        content = asdict(row)
        content["values"] = {axis.label: value for axis, value in zip(found.axes, row.values, strict=True)}
        rows.append(content)
    content = {"name": found.name, "axes": axes, "linked": found.linked, "cases": found.count, "done": len(rows)}
    return outputs.as_json("sweep", {**content, "rows": rows})


def as_csv(found: "Sweep") -> str:
    """One line a case."""
    return outputs.as_csv("sweep", columns(found), [cells(row) for row in found.rows])


def need_parquet() -> None:
    """See that Parquet can be written.

    Raises
    ------
    UsageProblems: the extra is not installed.
    """
    try:
        import pyarrow.parquet  # noqa: F401
    except ModuleNotFoundError:
        raise UsageProblems(
            (
                Problem(
                    "E-SWEEP-310",
                    "-o",
                    found="no package pyarrow",
                    allowed="is needed for .parquet",
                    fix="pip install 'gpu-cluster-optimizer[parquet]', or write .csv or .json",
                ),
            )
        ) from None


def as_parquet(found: "Sweep") -> bytes:
    """One row a case, typed columns."""
    import io

    import pyarrow as pa
    from pyarrow import parquet

    table = [cells(row) for row in found.rows]
    content = {name: _column([line[place] for line in table]) for place, name in enumerate(columns(found))}
    file = io.BytesIO()
    parquet.write_table(pa.table(content), file)
    return file.getvalue()


def _column(values: list[Any]) -> list[Any]:
    """Values of one type, as a column must have: numbers, or texts where anything else is among them."""
    real = [value for value in values if value is not None]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in real):
        whole = all(isinstance(value, int) for value in real)
        return [value if value is None or whole else float(value) for value in values]
    return [None if value is None else str(value) for value in values]


def _plain(value: Any) -> Any:
    """A varied value as one cell: lists joined by +."""
    if isinstance(value, list | tuple):
        return "+".join(str(one) for one in value)
    return json.dumps(value) if isinstance(value, dict) else value


def on_screen(found: "Sweep", width: int, words: str = "per year") -> str:
    """The winner, cost and binding limits of each case; of many cases those where the winner changes."""
    from optimizer.report.words import counted, significant, usd, wrapped

    heads = [_head(axis.label, axis.unit) for axis in found.axes]
    rows = list(found.rows)
    shown = rows if len(rows) <= SHOWN else _changes(rows)
    values = [[_value(value, significant) for value in row.values] for row in shown]
    widths = [max([len(head), *(len(line[place]) for line in values)]) for place, head in enumerate(heads)]
    lead = sum(widths) + 2 * len(widths)
    lines = [found.name, ""]
    lines.append("  ".join(head.rjust(size) for head, size in zip(heads, widths, strict=True)) + f"{words:>12}  winner")
    before: tuple[str, list[str]] = ("", [])
    for row, line in zip(shown, values, strict=True):
        start = "  ".join(text.rjust(size) for text, size in zip(line, widths, strict=True))
        cost = "-" if row.usd_per_year is None else usd(row.usd_per_year)
        said = _said(row)
        text = "the same" if said == before[0] and row.winner else said
        lines += _hung(f"{start}{cost:>12}  ", text, lead + 14, width)
        told = [field.rpartition(".")[2] for field in row.binding if field not in _ALWAYS]
        # A run of training serves no demand.
        told = told or (["demand"] if "workload.demand" in row.binding else [])
        if row.winner and told and (said, told) != before:
            lines += _hung(" " * (lead + 14), "binds " + ", ".join(told), lead + 14, width)
        before = (said, told)
    if len(shown) < len(rows):
        lines += [
            "",
            f"{counted(len(rows), 'case')}; shown are those at which the winner changes. -o FILE.csv has all.",
        ]
    left = found.count - len(rows)
    told = [f"{counted(found.solved, 'case')} solved, {len(rows) - found.solved} proven from these"]
    if left:
        told.append(f"{left} not done")
    return "\n".join([*lines, "", *wrapped("", told, width, 0)])


def _said(row: "Row") -> str:
    if row.status == "infeasible":
        return "nothing fits: " + " with ".join(row.forbidden_by)
    if row.status == "unknown":
        return "no plan within the time limit"
    schemes = ", ".join(row.schemes)
    # The words of a run say its formats already.
    winner = row.winner if f", {schemes}, " in row.winner else f"{row.winner}, {schemes}"
    return winner if row.status == "optimal" else f"{winner} (gap {100.0 * (row.gap_fraction or 0.0):.2g} %)"


def _changes(rows: "Sequence[Row]") -> "list[Row]":
    """The first and the last row of every run of one answer."""
    told = [(row.winner, row.forbidden_by, row.status) for row in rows]
    return [
        row
        for place, row in enumerate(rows)
        if place in (0, len(rows) - 1) or told[place] != told[place - 1] or told[place] != told[place + 1]
    ]


def _head(label: str, unit: str) -> str:
    return label.rpartition(".")[2] + (f", {unit}" if unit and not label.endswith(unit) else "")


def _value(value: Any, significant: Any) -> str:
    if value is None:
        return "none"
    return significant(value, 5) if isinstance(value, float) else str(_plain(value))


def _hung(start: str, text: str, indent: int, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(
        text,
        max(width, indent + 24),
        initial_indent=start,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [start.rstrip()]
