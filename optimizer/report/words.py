"""Numbers and words as people read them: three significant digits, units beside them, ASCII where it matters."""

import math


def significant(value: float, digits: int = 3) -> str:
    """A number with ``digits`` significant digits and thousands separators: 0.0123, 1.23, 12.3, 1,230."""
    if value == 0.0 or not math.isfinite(value):
        return f"{value:.0f}" if value == 0.0 else str(value)
    rounded = round(value, digits - 1 - math.floor(math.log10(abs(value))))
    # Rounding may have reached the next power of ten (9.996 -> 10), which takes a place less.
    places = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(0, places)}f}"


def usd(value: float) -> str:
    """Money: $357, $12.3 k, $3.13 M, $1.20 B."""
    for limit, unit in ((1e9, " B"), (1e6, " M"), (1e4, " k")):
        if abs(value) >= limit * 0.9995:
            return f"${significant(value / (1e3 if unit == ' k' else limit))}{unit}"
    return f"${significant(value)}"


def percent(fraction: float) -> str:
    """A share: 0.4 %, 12 %, 105 %."""
    value = fraction * 100.0
    if abs(value) >= 9.95 or abs(value) < 0.005:
        return f"{value:.0f} %"
    return f"{value:.1f} %" if abs(value) >= 0.05 else f"{value:.2f} %"


def signed_percent(fraction: float) -> str:
    """A change: +2.1 %, -14 %."""
    return ("+" if fraction >= 0.0 else "") + percent(fraction)


def counted(count: int, noun: str) -> str:
    """1 rack, 13 racks."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


#: How servers are rented, as people say it.
TERMS = {
    "on_demand": "on demand",
    "reserved_1yr": "1-year term",
    "reserved_3yr": "3-year term",
    "spot": "on spot",
}


def rented_from(provider: str, region: str) -> str:
    """Who rents servers out, and where; empty where the planner states the price."""
    return f"{provider} ({region})" if provider and region else provider


def wrapped(label: str, parts: list[str], width: int, indent: int = 10, joint: str = " · ") -> list[str]:
    """A labelled paragraph of parts, broken between parts; a part longer than a line is broken at its spaces."""
    lines: list[str] = []
    current = "  " + label.ljust(indent - 2)
    empty = True
    for part in parts:
        words = part if empty else joint + part
        if len(current) + len(words) <= width:
            current += words
            empty = False
            continue
        if not empty:
            lines.append(current.rstrip())
            current, words = " " * indent, part
        while len(current) + len(words) > width and " " in words[: width - len(current)]:
            cut = words.rfind(" ", 0, width - len(current) + 1)
            if cut <= 0:
                break
            lines.append((current + words[:cut]).rstrip())
            current, words = " " * indent, words[cut + 1 :]
        current += words
        empty = False
    lines.append(current.rstrip())
    return lines
