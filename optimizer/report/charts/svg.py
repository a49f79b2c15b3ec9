"""The few SVG elements that the charts need, written as text: same input, same bytes."""

import math
from collections.abc import Sequence
from html import escape
from typing import Final

#: Colours that people with colour blindness tell apart, dark enough for white paper.
#: Source: Okabe and Ito, "Color Universal Design", 2008.
PALETTE: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#555555", "#b8a800")
INK: Final = "#222222"
FAINT: Final = "#bbbbbb"
FONT: Final = "font-family='Helvetica, Arial, sans-serif'"


def number(value: float) -> str:
    """A coordinate with two decimals at most."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


class Canvas:
    """Elements in the order in which they are drawn, on white."""

    def __init__(self, width: float, height: float, title: str, study: str) -> None:
        self._size = (width, height)
        self._title, self._study = title, study
        self._elements: list[str] = []

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str, *, stroke: str = "none", title: str = ""
    ) -> None:
        """A rectangle; ``title`` is shown by browsers under the pointer."""
        tip = f"<title>{escape(title)}</title>" if title else ""
        self._elements.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(max(0.0, width))}" '
            f'height="{number(max(0.0, height))}" fill="{fill}" stroke="{stroke}">{tip}</rect>'
        )

    def line(
        self, x1: float, y1: float, x2: float, y2: float, *, stroke: str = INK, dashed: bool = False, width: float = 1.0
    ) -> None:
        """A straight line."""
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        self._elements.append(
            f'<line x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}" stroke="{stroke}" '
            f'stroke-width="{number(width)}"{dash}/>'
        )

    def path(self, points: Sequence[tuple[float, float]], *, stroke: str = INK, width: float = 1.5) -> None:
        """A line through points."""
        if points:
            steps = " ".join(f"{number(x)},{number(y)}" for x, y in points)
            self._elements.append(
                f'<polyline points="{steps}" fill="none" stroke="{stroke}" stroke-width="{number(width)}"/>'
            )

    def dot(self, x: float, y: float, radius: float, fill: str, *, stroke: str = "none", title: str = "") -> None:
        """A filled circle."""
        tip = f"<title>{escape(title)}</title>" if title else ""
        self._elements.append(
            f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" fill="{fill}" stroke="{stroke}">{tip}'
            "</circle>"
        )

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        anchor: str = "start",
        size: float = 12,
        fill: str = INK,
        bold: bool = False,
        turned: bool = False,
    ) -> None:
        """Words with their baseline at ``y``."""
        weight = ' font-weight="bold"' if bold else ""
        turn = f' transform="rotate(-90 {number(x)} {number(y)})"' if turned else ""
        self._elements.append(
            f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}" font-size="{number(size)}" '
            f'fill="{fill}"{weight}{turn}>{escape(words, quote=False)}</text>'
        )

    def render(self) -> str:
        """The whole file."""
        width, height = self._size
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{number(width)}" height="{number(height)}" '
            f'viewBox="0 0 {number(width)} {number(height)}" id="optimize-{self._study}" role="img" {FONT}>'
        )
        ground = f'<rect width="{number(width)}" height="{number(height)}" fill="#ffffff"/>'
        return "\n".join([head, f"<title>{escape(self._title)}</title>", ground, *self._elements, "</svg>"]) + "\n"


class Scale:
    """A linear axis: values onto coordinates, with round ticks."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        if high <= low:
            pad = abs(low) * 0.05 or 1.0
            low, high = low - pad, high + pad
        self.low, self.high, self.start, self.end = low, high, start, end

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, count: int = 5) -> list[float]:
        """Round values within the axis, about ``count`` of them: steps of 1, 2 or 5 times a power of ten."""
        rough = (self.high - self.low) / count
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in (1.0, 2.0, 5.0, 10.0) if power * factor >= rough * (1.0 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [index * step for index in range(first, last + 1)]


def tick_label(value: float) -> str:
    """A short label of a tick: 1.5 M, 200 k, 0.05."""
    for limit, unit in ((1e9, " B"), (1e6, " M"), (1e4, " k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if unit == ' k' else limit):.6g}{unit}"
    return f"{value:.6g}"


def axes(canvas: Canvas, x: Scale, y: Scale, x_title: str, y_title: str) -> None:
    """Axes with ticks and titles at the left and below; grid lines are faint."""
    for tick in x.ticks():
        canvas.line(x(tick), y.start, x(tick), y.end, stroke="#eeeeee")
        canvas.line(x(tick), y.start, x(tick), y.start + 4)
        canvas.text(x(tick), y.start + 17, tick_label(tick), anchor="middle", size=11)
    for tick in y.ticks():
        canvas.line(x.start, y(tick), x.end, y(tick), stroke="#eeeeee")
        canvas.line(x.start - 4, y(tick), x.start, y(tick))
        canvas.text(x.start - 7, y(tick) + 4, tick_label(tick), anchor="end", size=11)
    canvas.line(x.start, y.start, x.end, y.start)
    canvas.line(x.start, y.start, x.start, y.end)
    canvas.text((x.start + x.end) / 2, y.start + 36, x_title, anchor="middle")
    canvas.text(18, (y.start + y.end) / 2, y_title, anchor="middle", turned=True)
