"""The trade-off front: cost against the first limit traded, the knee and the plan of today's limits marked."""

from typing import TYPE_CHECKING

from optimizer.report.charts.svg import PALETTE, Canvas, Scale, axes
from optimizer.report.words import significant, usd

if TYPE_CHECKING:
    from optimizer.studies.frontier import Front

_WIDTH, _HEIGHT = 860, 480
_ROWS = 14


def front_svg(found: "Front", money_words: str = "per year") -> str:
    """The study as an SVG picture; further limits are told by colour and under the pointer."""
    canvas = Canvas(_WIDTH, _HEIGHT, f"Trade-off of {found.name}", "frontier")
    canvas.text(16, 26, f"Trade-off of {found.name}: cost against {found.labels[0]}", size=16, bold=True)
    x = Scale(*_ends([one.reached[0] for one in found.points]), 90, _WIDTH - 40)
    y = Scale(*_ends([one.usd_per_year for one in found.points]), _HEIGHT - 70, 60)
    axes(canvas, x, y, f"{found.aims[0]}, {found.units[0]}", f"USD {money_words}")
    groups = sorted({one.reached[1:] for one in found.points})
    for place, group in enumerate(groups):
        fill = PALETTE[place % len(PALETTE)]
        own = sorted((one for one in found.points if one.reached[1:] == group), key=lambda one: one.reached[0])
        steps: list[tuple[float, float]] = []
        for one in own:
            # The front is a staircase: between two points the dearer plan's cost holds.
            if steps:
                steps.append((x(one.reached[0]), steps[-1][1]))
            steps.append((x(one.reached[0]), y(one.usd_per_year)))
        canvas.path(steps, stroke=fill, width=1.0)
        for one in own:
            words = ", ".join(
                f"{label} {significant(value, 4)} {unit}"
                for label, value, unit in zip(found.labels, one.reached, found.units, strict=True)
            )
            tip = f"{usd(one.usd_per_year)} {money_words}, {words}: {one.summary}"
            canvas.dot(x(one.reached[0]), y(one.usd_per_year), 4, fill, title=tip)
            mark = "knee" if one.is_knee else "now" if one.is_now else ""
            if mark:
                canvas.dot(x(one.reached[0]), y(one.usd_per_year), 8, "none", stroke="#222222")
                canvas.text(x(one.reached[0]) + 10, y(one.usd_per_year) - 8, mark, size=12, bold=True)
        if len(groups) > 1:
            words = ", ".join(
                f"{label} {significant(value, 4)} {unit}"
                for label, value, unit in zip(found.labels[1:], group, found.units[1:], strict=True)
            )
            canvas.text(_WIDTH - 40, 70 + 15 * place, words, anchor="end", size=10, fill=fill)
    return canvas.render()


def _ends(values: list[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    pad = (high - low) * 0.05 or abs(low) * 0.05 or 1.0
    return low - pad, high + pad


def front_characters(found: "Front", width: int) -> list[str]:
    """The front in characters: ``*`` a plan, ``K`` the knee, ``N`` the plan of the instance's own limits."""
    left = 12
    columns = max(10, width - left - 2)
    xs = [one.reached[0] for one in found.points]
    ys = [one.usd_per_year for one in found.points]
    grid = [[" "] * columns for _ in range(_ROWS)]
    for one in sorted(found.points, key=lambda each: (each.is_knee, each.is_now)):
        column = _place(one.reached[0], xs, columns)
        row = _ROWS - 1 - _place(one.usd_per_year, ys, _ROWS)
        grid[row][column] = "K" if one.is_knee else "N" if one.is_now else "*"
    lines = []
    for number, line in enumerate(grid):
        label = usd(max(ys)) if number == 0 else usd(min(ys)) if number == _ROWS - 1 else ""
        lines.append(f"  {label:>{left - 3}} |{''.join(line)}".rstrip())
    low, high = significant(min(xs)), f"{significant(max(xs))} {found.units[0]}".rstrip()
    lines.append(f"  {'':>{left - 3}} +{'-' * columns}")
    lines.append(f"  {'':>{left - 1}}{low}{high:>{max(1, columns - len(low))}}")
    lines.append(f"  {'':>{left - 1}}{found.aims[0]}")
    return lines


def _place(value: float, values: list[float], count: int) -> int:
    span = max(values) - min(values)
    return round((value - min(values)) / span * (count - 1)) if span else 0
