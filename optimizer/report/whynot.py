"""The answer to "why not this" on one screen."""

from optimizer.report.words import signed_percent, significant, usd, wrapped
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
            f"{usd(far.usd_per_year)} per year",
            f"the choice costs {signed_percent(far.extra_fraction)} ({_signed(far.extra_usd_per_year)} per year)",
        ]
        ranked = sorted(far.extra_usd_per_year_by_component.items(), key=lambda item: -abs(item[1]))[:3]
        more = [f"{name} {_signed(value)}" for name, value in ranked if abs(value) > 1.0]
        lines += wrapped("Plan", [*parts, *([f"most of it: {', '.join(more)}"] if more else [])], width)
    for label, figures in (("Better", found.better), ("Worse", found.worse)):
        if figures:
            lines += wrapped(label, list(figures[:_FIGURES]), width)
    for number, row in enumerate(found.nearest_values[:_VALUES]):
        need = f"{row.direction} {significant(row.needed, 4)} needed, {significant(row.reached, 4)} {row.unit} at best"
        parts = [row.field, need, f"{row.kills:,} of {row.candidates:,} candidates break it"]
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
            price = f"then {usd(change.usd_per_hour)} per hour" if change.usd_per_hour is not None else ""
            lines += wrapped("", [change.summary, price], width, 4, joint="   ")
    for reason in found.reasons[:_REASONS]:
        if reason not in found.summary:
            lines += wrapped("Note", [reason], width)
    return "\n".join(lines) + "\n"


def _signed(value: float) -> str:
    return f"{'-' if value < 0.0 else '+'}{usd(abs(value))}"
