"""Tipping points: the least cost over a range, with a band for each stretch over which one choice is best."""

from typing import TYPE_CHECKING

from optimizer.report.charts.svg import PALETTE, Canvas, Scale, axes
from optimizer.report.words import significant

if TYPE_CHECKING:
    from optimizer.studies.tipping import Tipping

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_WIDTH, _HEIGHT = 860, 420


def stretches_svg(found: "Tipping", words: str = "per year") -> str:
    """The study as an SVG picture."""
    height = _HEIGHT + 18 * len(found.stretches) + 20
    canvas = Canvas(_WIDTH, height, f"Best choice of {found.name} over {found.field}", "tipping")
    canvas.text(16, 26, f"Best choice of {found.name} over {found.field}", size=16, bold=True)
    costs = [
        cost for one in found.stretches for cost in (one.first_usd_per_year, one.last_usd_per_year) if cost is not None
    ]
    x = Scale(found.low, found.high, 90, _WIDTH - 30)
    y = Scale(min(costs, default=0.0), max(costs, default=1.0), _HEIGHT - 70, 60)
    edges = [found.low, *((flip.low + flip.high) / 2.0 for flip in found.flips), found.high]
    for place, one in enumerate(found.stretches):
        fill = PALETTE[place % len(PALETTE)] if one.first_usd_per_year is not None else "#999999"
        left, right = x(edges[place]), x(edges[place + 1])
        canvas.rect(left, 48, right - left, 12, fill, title=one.choice)
        canvas.text((left + right) / 2.0, 44, LETTERS[place % len(LETTERS)], anchor="middle", size=11)
    axes(canvas, x, y, f"{found.field}, {found.unit}" if found.unit else found.field, f"USD {words}")
    for place, one in enumerate(found.stretches):
        if one.first_usd_per_year is not None and one.last_usd_per_year is not None:
            ends = [(x(one.first), y(one.first_usd_per_year)), (x(one.last), y(one.last_usd_per_year))]
            canvas.path(ends, stroke=PALETTE[place % len(PALETTE)], width=2.5)
            for at_x, at_y in ends:
                canvas.dot(at_x, at_y, 3, PALETTE[place % len(PALETTE)])
    for flip in found.flips:
        middle = (flip.low + flip.high) / 2.0
        canvas.line(x(middle), 60, x(middle), _HEIGHT - 70, dashed=True)
        canvas.text(x(middle) + 4, 74, significant(middle, 4), size=10)
    if found.now is not None and found.low <= found.now <= found.high:
        canvas.line(x(found.now), 60, x(found.now), _HEIGHT - 70, stroke="#555555", width=2.0)
        canvas.text(x(found.now) + 4, _HEIGHT - 76, "now", size=10)
    for place, one in enumerate(found.stretches):
        top = _HEIGHT + 18 * place
        fill = PALETTE[place % len(PALETTE)] if one.first_usd_per_year is not None else "#999999"
        canvas.rect(16, top - 10, 12, 12, fill)
        span = f"{significant(one.first, 4)} .. {significant(one.last, 4)} {found.unit}".rstrip()
        canvas.text(34, top, f"{LETTERS[place % len(LETTERS)]}  {one.choice}  ({span})", size=11)
    return canvas.render()


def stretches_strip(found: "Tipping", width: int) -> list[str]:
    """The range in characters: one letter a choice, ``.`` where nothing fits, ``^`` under the value now."""
    if not found.stretches or width < 10:
        return []
    edges = [found.low, *((flip.low + flip.high) / 2.0 for flip in found.flips), found.high]
    strip = []
    for column in range(width):
        value = found.low + (found.high - found.low) * (column + 0.5) / width
        place = max(index for index in range(len(found.stretches)) if edges[index] <= value or index == 0)
        fits = found.stretches[place].first_usd_per_year is not None
        strip.append(LETTERS[place % len(LETTERS)] if fits else ".")
    low, high = significant(found.low), significant(found.high)
    scale = f"{low}{high:>{max(1, width - len(low))}}"
    lines = ["".join(strip), scale]
    if found.now is not None and found.low <= found.now <= found.high:
        at = min(width - 1, int((found.now - found.low) / (found.high - found.low) * width))
        lines.insert(1, f"{' ' * at}^ now" if at + 5 <= width else f"{' ' * (at - 4)}now ^")
    return lines
