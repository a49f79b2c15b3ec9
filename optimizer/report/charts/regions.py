"""The decision map: a coloured cell a point, hatched where another choice is nearly as good, a cross for now."""

from typing import TYPE_CHECKING

from optimizer.report.charts.svg import PALETTE, Canvas, tick_label
from optimizer.report.words import significant, usd

if TYPE_CHECKING:
    from optimizer.studies.decision_map import DecisionMap, MapAxis

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LEFT, _TOP, _SIDE_X, _SIDE_Y = 100, 60, 700, 400


def nearest_point(axis: "MapAxis") -> int | None:
    """Index of the point nearest to the present value; None where it lies outside."""
    if axis.now is None or not axis.points[0] <= axis.now <= axis.points[-1]:
        return None
    now = axis.now
    return min(range(len(axis.points)), key=lambda place: abs(axis.points[place] - now))


def regions_svg(found: "DecisionMap", money_words: str = "per year") -> str:
    """The study as an SVG picture; letters tell choices apart without colour."""
    height = _TOP + _SIDE_Y + 66 + 18 * (len(found.choices) + 1)
    canvas = Canvas(_LEFT + _SIDE_X + 40, height, f"Best choice of {found.name}", "map")
    canvas.text(16, 26, f"Best choice of {found.name}", size=16, bold=True)
    across, up = len(found.x.points), len(found.y.points)
    wide, high = _SIDE_X / across, _SIDE_Y / up
    for row in range(up):
        for column in range(across):
            cell = found.at(column, row)
            if cell is None:
                continue
            x, y = _LEFT + column * wide, _TOP + (up - 1 - row) * high
            fill = "#dddddd" if cell.choice is None else PALETTE[cell.choice % len(PALETTE)]
            letter = "" if cell.choice is None else LETTERS[cell.choice % len(LETTERS)]
            money = "nothing fits" if cell.usd_per_year is None else f"{usd(cell.usd_per_year)} {money_words}"
            canvas.rect(x, y, wide, high, fill, stroke="#ffffff", title=f"{cell.summary}: {money}")
            if cell.is_near_tie:
                for part in (1, 2, 3):
                    canvas.line(x, y + part * high / 4, x + part * wide / 4, y, stroke="#ffffff")
            canvas.text(x + wide / 2, y + high / 2 + 4, letter, anchor="middle", size=11, fill="#ffffff")
    for axis, is_x in ((found.x, True), (found.y, False)):
        for place in sorted({0, len(axis.points) // 2, len(axis.points) - 1}):
            words = tick_label(float(significant(axis.points[place], 4).replace(",", "")))
            if is_x:
                canvas.text(_LEFT + (place + 0.5) * wide, _TOP + _SIDE_Y + 16, words, anchor="middle", size=11)
            else:
                canvas.text(_LEFT - 8, _TOP + (up - 0.5 - place) * high + 4, words, anchor="end", size=11)
    canvas.text(_LEFT + _SIDE_X / 2, _TOP + _SIDE_Y + 36, _titled(found.x), anchor="middle")
    canvas.text(22, _TOP + _SIDE_Y / 2, _titled(found.y), anchor="middle", turned=True)
    column_now, row_now = nearest_point(found.x), nearest_point(found.y)
    if column_now is not None and row_now is not None:
        x, y = _LEFT + (column_now + 0.5) * wide, _TOP + (up - 0.5 - row_now) * high
        canvas.dot(x, y, 9, "none", stroke="#000000")
        canvas.text(x + 12, y - 8, "now", size=12, bold=True)
    for place, words in enumerate(found.choices):
        top = _TOP + _SIDE_Y + 62 + 18 * place
        canvas.rect(16, top - 10, 12, 12, PALETTE[place % len(PALETTE)])
        canvas.text(34, top, f"{LETTERS[place % len(LETTERS)]}  {words}", size=11)
    if found.near_fraction:
        top = _TOP + _SIDE_Y + 62 + 18 * len(found.choices)
        canvas.text(34, top, f"hatched: another choice within {100.0 * found.near_fraction:g} % of the cost", size=11)
    return canvas.render()


def _titled(axis: "MapAxis") -> str:
    return f"{axis.field}, {axis.unit}" if axis.unit else axis.field


def regions_characters(found: "DecisionMap", width: int) -> list[str]:
    """The map in characters: a letter a choice, small for near ties, ``.`` where nothing fits, ``[ ]`` around now."""
    left = 12
    across, up = len(found.x.points), len(found.y.points)
    pitch = max(2, min(4, (width - left) // max(1, across)))
    column_now, row_now = nearest_point(found.x), nearest_point(found.y)
    labels = {0, up // 2, up - 1}
    lines = [f"  {_titled(found.y)}"]
    for row in reversed(range(up)):
        text = ""
        for column in range(across):
            cell = found.at(column, row)
            if cell is None:
                sign = " "
            elif cell.choice is None:
                sign = "."
            else:
                sign = LETTERS[cell.choice % len(LETTERS)]
                sign = sign.lower() if cell.is_near_tie else sign
            is_now = (column, row) == (column_now, row_now)
            text += (f"[{sign}]" if is_now else f" {sign} ").ljust(pitch)[: max(pitch, 3)] if pitch > 2 else f" {sign}"
        label = significant(found.y.points[row]) if row in labels else ""
        lines.append(f"  {label:>{left - 3}} {text}".rstrip())
    low, high = significant(found.x.points[0]), significant(found.x.points[-1])
    lines.append(f"  {'':>{left - 3}}  {low}{high:>{max(1, pitch * across - len(low) - 1)}}")
    lines.append(f"  {'':>{left - 3}}  {_titled(found.x)}")
    return lines
