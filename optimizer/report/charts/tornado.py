"""The tornado: one bar a figure, from the cost at its low end to that at its high end."""

from typing import TYPE_CHECKING

from optimizer.report.charts.svg import PALETTE, Canvas, Scale, tick_label
from optimizer.report.words import significant, usd

if TYPE_CHECKING:
    from optimizer.studies.assumptions import Assumption, End, Leading

_ROW, _LEFT, _WIDTH, _TOP = 34, 330, 860, 74
_LOW, _HIGH = PALETTE[5], PALETTE[1]


def tornado_svg(found: "Leading", words: str = "per year") -> str:
    """The study as an SVG picture: blue the low end, orange the high end of each range, in USD per year."""
    rows = found.assumptions
    height = _TOP + _ROW * max(1, len(rows)) + 50
    canvas = Canvas(_WIDTH, height, f"What moves the cost of {found.name}", "tornado")
    canvas.text(16, 26, f"What moves the cost of {found.name}", size=16, bold=True)
    moved = f"{found.moved} of {found.total}" if found.moved < found.total else f"{found.moved}"
    canvas.text(16, 46, f"{found.summary}: {usd(found.usd_per_year)} {words}; {moved} figures moved", size=11)
    changes = [one.change_usd_per_year or 0.0 for row in rows for one in (row.low, row.high)]
    scale = Scale(min([0.0, *changes]), max([0.0, *changes]), _LEFT, _WIDTH - 90)
    bottom = _TOP + _ROW * len(rows)
    for tick in scale.ticks():
        canvas.line(scale(tick), _TOP - 6, scale(tick), bottom, stroke="#eeeeee")
        canvas.text(scale(tick), bottom + 18, _signed(tick), anchor="middle", size=11)
    canvas.text((_LEFT + _WIDTH - 90) / 2, bottom + 38, f"change of the cost, USD {words}", anchor="middle", size=11)
    for place, row in enumerate(rows):
        _bar(canvas, scale, row, _TOP + _ROW * place, words)
    canvas.line(scale(0.0), _TOP - 6, scale(0.0), bottom)
    return canvas.render()


def _bar(canvas: Canvas, scale: Scale, row: "Assumption", top: float, words: str) -> None:
    span = f"{significant(row.low.value)} .. {significant(row.now)} .. {significant(row.high.value)} {row.unit}"
    canvas.text(16, top + 12, row.name[:52], size=12)
    canvas.text(16, top + 25, span[:60], size=10, fill="#666666")
    for end, fill in ((row.low, _LOW), (row.high, _HIGH)):
        change = end.change_usd_per_year
        if change is None:
            canvas.text(_WIDTH - 84, top + (12 if end is row.low else 25), _forbidden(row, end), size=10, fill=_HIGH)
            continue
        x = min(scale(0.0), scale(change))
        tip = f"{row.name} {significant(end.value)} {row.unit}: {_signed(change)} USD {words}; {end.summary}"
        canvas.rect(x, top + 4, abs(scale(change) - scale(0.0)), _ROW - 14, fill, title=tip)
        if not end.is_same_choice:
            # Another plan is best at this end: told without colour too.
            canvas.dot(scale(change), top + 4 + (_ROW - 14) / 2, 4, "#ffffff", stroke="#222222", title=tip)


def _forbidden(row: "Assumption", end: "End") -> str:
    return f"{'low' if end is row.low else 'high'}: nothing fits"


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{tick_label(value)}"


def tornado_bars(rows: "tuple[Assumption, ...]", width: int) -> list[str]:
    """One line of characters a figure: ``-`` what lowers, ``+`` what raises the cost, ``|`` the cost now."""
    if not rows:
        return []
    changes = [(one.low.change_usd_per_year, one.high.change_usd_per_year) for one in rows]
    known = [change for pair in changes for change in pair if change is not None]
    below, above = -min([0.0, *known]), max([0.0, *known])
    if below + above == 0.0:
        return ["|" for _ in rows]
    left = round((width - 1) * below / (below + above))
    right = width - 1 - left
    lines = []
    for pair in changes:
        least = -min([0.0, *(one for one in pair if one is not None)])
        most = max([0.0, *(one for one in pair if one is not None)])
        minus = round(left * least / below) if below else 0
        plus = round(right * most / above) if above else 0
        lines.append(f"{' ' * (left - minus)}{'-' * minus}|{'+' * plus}")
    return lines
