"""The answer to "why not this" on one screen."""

from optimizer.report.evaluation import costs_beside
from optimizer.report.words import significant, usd, wrapped
from optimizer.whynot.result import WhyNot

_VALUES, _CHANGES, _FIGURES, _REASONS = 4, 5, 4, 3


def render(found: WhyNot, width: int = 80) -> str:
    """The answer, ``width`` columns wide."""
    lines = [" ".join(found.name.split())[:width], *wrapped("Answer", [found.summary], width)]
    if found.outside:
        lines += wrapped("Outside", [f"{one.field} has no {one.value}" for one in found.outside], width)
    if found.distance is not None:
        far = found.distance
        parts = [
            far.summary,
            *costs_beside(far, "the choice"),
        ]
        # A run's bill is its annuity over the horizon: shares of it are told as parts of the whole.
        scale = 1.0 if far.usd is None or not far.usd_per_year else far.usd / far.usd_per_year
        ranked = sorted(far.extra_usd_per_year_by_component.items(), key=lambda item: -abs(item[1]))[:3]
        more = [f"{name} {_signed(value * scale)}" for name, value in ranked if abs(value * scale) > 1.0]
        lines += wrapped("Plan", [*parts, *([f"most of it: {', '.join(more)}"] if more else [])], width)
    for label, figures in (("Better", found.better), ("Worse", found.worse)):
        if figures:
            lines += wrapped(label, list(figures[:_FIGURES]), width)
    for number, row in enumerate(found.nearest_values[:_VALUES]):
        need = f"{row.direction} {significant(row.needed, 4)} needed, {significant(row.reached, 4)} {row.unit} at best"
        what = "candidates" if found.kind == "serving" else "layouts"
        parts = [row.field, need, f"{row.kills:,} of {row.candidates:,} {what} break it"]
        lines += wrapped("Nearest" if number == 0 else "", parts, width)
    if found.nearest is not None:
        misses = [f"{name}: {text}" for name, text in found.nearest.misses.items()]
        lines += wrapped("Closest", [found.nearest.summary, *misses], width)
    if found.clash:
        texts = [f"{one.field} {one.value} {one.unit}".rstrip() for one in found.clash]
        lines += wrapped("Clash", [*texts, "cannot hold together with it"], width)
    if found.changes:
        lines += ["", "  It would work after any one of these"]
        for change in found.changes[:_CHANGES]:
            # A run's own cost stands in its summary: its hours are not those of the horizon.
            known = change.usd_per_hour is not None and found.kind == "serving"
            price = f"then {usd(change.usd_per_hour or 0.0)} per hour" if known else ""
            lines += wrapped("", [change.summary, price], width, 4, joint="   ")
    for reason in found.reasons[:_REASONS]:
        if reason not in found.summary:
            lines += wrapped("Note", [reason], width)
    return "\n".join(lines) + "\n"


def _signed(value: float) -> str:
    return f"{'-' if value < 0.0 else '+'}{usd(abs(value))}"
