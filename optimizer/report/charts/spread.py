"""How the cost of each choice spreads over scenarios: whiskers from 5 to 95 %, a box from 25 to 75 %, the median."""

from typing import TYPE_CHECKING

from optimizer.report.charts.svg import PALETTE, Canvas, Scale, tick_label
from optimizer.report.words import usd

if TYPE_CHECKING:
    from optimizer.studies.robust.results import Robust

_ROW, _LEFT, _WIDTH, _TOP = 52, 210, 860, 84


def _rows(found: "Robust") -> list[tuple[str, tuple[float, ...]]]:
    """(name, quantiles) of the best plan of each scenario and of every choice that serves some."""
    best = sorted(found.best_usd_per_year)
    own = tuple(_quantile(best, share) for share in (0.05, 0.25, 0.5, 0.75, 0.95))
    rows = [("each scenario's best", own)]
    return rows + [
        (one.name, one.quantiles_usd_per_year) for one in found.plans if one.quantiles_usd_per_year is not None
    ]


def _quantile(ordered: list[float], share: float) -> float:
    """Quantile by linear interpolation between the nearest values, as the study's own are."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def spread_svg(found: "Robust") -> str:
    """The study as an SVG picture, in USD per year."""
    rows = _rows(found)
    bottom = _TOP + _ROW * len(rows)
    canvas = Canvas(_WIDTH, bottom + 52, f"Cost of {found.name} under uncertainty", "robust")
    canvas.text(16, 26, f"Cost of {found.name} under uncertainty", size=16, bold=True)
    kept = found.scenarios - found.unmet
    told = f"{kept} scenarios, seed {found.seed}: 5 to 95 % (line), 25 to 75 % (box), median; diamond: expected cost"
    canvas.text(16, 46, told, size=11)
    scale = Scale(min(min(q) for _, q in rows), max(max(q) for _, q in rows), _LEFT, _WIDTH - 40)
    for tick in scale.ticks():
        canvas.line(scale(tick), _TOP - 12, scale(tick), bottom, stroke="#eeeeee")
        canvas.text(scale(tick), bottom + 18, tick_label(tick), anchor="middle", size=11)
    canvas.text((_LEFT + _WIDTH - 40) / 2, bottom + 40, "USD per year", anchor="middle", size=11)
    expected = {one.name: one for one in found.plans}
    for place, (name, quantiles) in enumerate(rows):
        middle = _TOP + _ROW * place + 14
        low, lower, median, upper, high = (scale(one) for one in quantiles)
        canvas.text(16, middle + 4, name)
        tip = f"{name}: " + ", ".join(usd(one) for one in quantiles)
        canvas.line(low, middle, high, middle)
        canvas.rect(lower, middle - 9, upper - lower, 18, PALETTE[place % len(PALETTE)], stroke="#222222", title=tip)
        canvas.line(median, middle - 9, median, middle + 9, stroke="#ffffff", width=2.5)
        one = expected.get(name)
        if one is not None and one.expected_usd_per_year is not None:
            canvas.text(scale(one.expected_usd_per_year), middle + 4, "◆", anchor="middle", size=10)
            failing = f"; fails in {one.failing} of {kept}" if one.failing else ""
            canvas.text(_LEFT, middle + 24, f"{one.summary[:88]}{failing}", size=10, fill="#666666")
    return canvas.render()


def spread_strips(found: "Robust", width: int) -> list[str]:
    """The same in characters: ``-`` from 5 to 95 %, ``=`` from 25 to 75 %, ``|`` the median."""
    rows = _rows(found)
    low, high = min(min(q) for _, q in rows), max(max(q) for _, q in rows)
    span = high - low or 1.0
    lines = []
    for name, quantiles in rows:
        places = [round((one - low) / span * (width - 1)) for one in quantiles]
        strip = [" "] * width
        for place in range(places[0], places[4] + 1):
            strip[place] = "-"
        for place in range(places[1], places[3] + 1):
            strip[place] = "="
        strip[places[2]] = "|"
        lines.append(f"  {name:<22}{''.join(strip).rstrip()}")
    lines.append(f"  {'':<22}{usd(low):<{max(1, width - 10)}}{usd(high):>10}")
    return lines
