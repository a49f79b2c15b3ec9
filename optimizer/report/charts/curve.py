"""The cost curve: what an accelerator costs an hour as the fleet grows, freely cooled and with one option alone."""

from collections.abc import Mapping, Sequence

from optimizer.report.charts.svg import PALETTE, Canvas, Scale, axes

_WIDTH, _HEIGHT = 860, 480


def curve_svg(name: str, lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Lines of (accelerators, USD per accelerator-hour) by their word, as an SVG picture."""
    canvas = Canvas(_WIDTH, _HEIGHT, f"Cost curve of {name}", "cost curve")
    canvas.text(16, 26, f"Cost curve of {name}", size=16, bold=True)
    every = [point for points in lines.values() for point in points]
    x = Scale(0.0, max(one[0] for one in every) * 1.02, 90, _WIDTH - 190)
    low, high = min(one[1] for one in every), max(one[1] for one in every)
    y = Scale(low - 0.05 * (high - low), high + 0.05 * (high - low), _HEIGHT - 70, 60)
    axes(canvas, x, y, "accelerators", "USD per accelerator-hour")
    for place, (word, points) in enumerate(lines.items()):
        stroke = PALETTE[place % len(PALETTE)]
        canvas.path([(x(count), y(usd)) for count, usd in points], stroke=stroke, width=2.5 if place == 0 else 1.2)
        for count, usd in points:
            canvas.dot(x(count), y(usd), 3, stroke, title=f"{word}: {count:,.0f} accelerators, {usd:.4f} USD/h")
        canvas.text(_WIDTH - 180, 70 + 16 * place, word, size=12, fill=stroke)
    return canvas.render()
