"""How a fault is told to a planner: field, what was found, what is allowed in which unit, what to write instead."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from optimizer.errors import SECTIONS, printable
from optimizer.instance.positions import Path

#: Longest piece of a planner's own text that a message repeats.
_SHOWN: Final = 40

_LONGEST_NAME: Final = 100

#: Bounds above this are no part of an explanation.
_TELLING: Final = 1e5

#: Words for units that name no unit of measure: shares and plain counts are told apart from ms and USD.
_SHARES: Final = frozenset({"fraction", "1", "1/year", "probability", "fraction of peak"})

#: Unit as people write it -> (unit of the field, factor). Only exact conversions; none changes the meaning of a figure.
_CONVERSIONS: Final[Mapping[tuple[str, str], float]] = MappingProxyType(
    {
        ("s", "ms"): 1e3,
        ("us", "ms"): 1e-3,
        ("ms", "s"): 1e-3,
        ("min", "s"): 60.0,
        ("h", "s"): 3600.0,
        ("w", "kw"): 1e-3,
        ("mw", "kw"): 1e3,
        ("gb", "gib"): 1e9 / 2**30,
        ("mib", "gib"): 2.0**-10,
        ("tib", "gib"): 2.0**10,
        ("tb/s", "gb/s"): 1e3,
        ("months", "years"): 1 / 12,
        ("%", "fraction"): 1e-2,
    }
)

_MULTIPLES: Final[Mapping[str, float]] = MappingProxyType({"k": 1e3, "K": 1e3, "M": 1e6, "million": 1e6, "B": 1e9})


def field_name(path: Path) -> str:
    """Dotted name of a path: ``choices.accelerators[2]``."""
    name = ""
    for step in path:
        if isinstance(step, int):
            name += f"[{step}]"
        elif re.fullmatch(r"[\w$/+-][\w$/+ -]*", step):
            name += f".{step}" if name else step
        else:
            name += f"[{shown(step)}]"
    # A path that nobody wrote by hand: its ends tell it apart, its middle does not.
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME // 2]}…{name[-_LONGEST_NAME // 2 :]}"


def section(path: Path) -> str:
    """Section of the codes that a path belongs to."""
    name = str(path[0]).upper() if path else ""
    return name if name in SECTIONS else "INSTANCE"


def shown(value: Any) -> str:
    """A value as it may stand in a message: JSON's own words, cut where it is long."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{printable(value if len(value) <= _SHOWN else value[:_SHOWN] + "…")}"'
    if isinstance(value, dict):
        return f"an object of {counted(len(value), 'key')}"
    if isinstance(value, list | tuple):
        return f"a list of {counted(len(value), 'value')}"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def counted(count: int, noun: str) -> str:
    """``1 key``, ``2 keys``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def figure(value: float) -> str:
    """A bound as people write it: whole numbers with separators, others short."""
    return f"{int(value):,}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:g}"


def with_unit(text: str, unit: str) -> str:
    """Text followed by its unit; a share has no word of its own."""
    return text if not unit or unit in _SHARES else f"{text} {unit}"


def range_words(schema: Mapping[str, Any], unit: str, value: float = 0) -> str:
    """The range of a number in one phrase: ``> 0 and <= 1,000 ms``.

    A bound that only keeps absurd figures out is told to whoever wrote one.
    """
    bounds = [
        f"{sign} {figure(schema[key])}"
        for key, sign in (("exclusiveMinimum", ">"), ("minimum", ">="), ("exclusiveMaximum", "<"), ("maximum", "<="))
        if key in schema and abs(schema[key]) <= max(_TELLING, abs(value))
    ]
    return with_unit(" and ".join(bounds), unit) if bounds else ""


def out_of_range(value: float, schema: Mapping[str, Any]) -> bool:
    """Whether a number lies outside the bounds of its schema."""
    return bool(
        ("minimum" in schema and value < schema["minimum"])
        or ("exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"])
        or ("maximum" in schema and value > schema["maximum"])
        or ("exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"])
    )


def percent_hint(value: float, schema: Mapping[str, Any]) -> str:
    """A share written as a percentage is the likeliest reason for a number between 1 and 100 where 1 is the most."""
    top = schema.get("maximum", schema.get("exclusiveMaximum"))
    share = value / 100
    if top == 1 and 1 < value <= 100 and not out_of_range(share, schema):
        return f"Write {share:.12g} for {value:.12g} %"
    return ""


def number_hint(text: str, unit: str) -> str:
    """What to write for a number that stands in quotes, perhaps with its unit: ``"150 ms"`` -> ``Write 150``."""
    match = re.fullmatch(
        r"\s*([-+]?(?:[0-9][0-9,_' ]*)?(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)\s*([^\d\s].*)?", text[: _SHOWN + 1]
    )
    if match is None or len(text) > _SHOWN or not any(char.isdigit() for char in match[1]):
        return "Write the number alone, without quotes"
    try:
        value = float(re.sub(r"[,_' ]", "", match[1]))
    except ValueError:
        return ""
    suffix = (match[2] or "").strip()
    if unit.startswith("USD") and suffix in _MULTIPLES:
        return f"Write {value * _MULTIPLES[suffix]:.12g}"
    written = suffix.casefold()
    wanted = "fraction" if unit in _SHARES else unit.casefold()
    aliases = {"msec": "ms", "sec": "s", "seconds": "s", "milliseconds": "ms", "percent": "%"}
    written = aliases.get(written, written)
    factor = 1.0 if written in ("", wanted) else _CONVERSIONS.get((written, wanted))
    if factor is None and written.rstrip("s") != wanted.split("/")[0].rstrip("s"):
        return "Write the number alone, without quotes"
    return f"Write {value * (factor or 1.0):.12g}"


def nearest(name: str, names: Iterable[str]) -> str:
    """The name that a misspelt one most likely stands for, or nothing."""
    from difflib import get_close_matches  # a file without faults needs it never

    folded = {re.sub(r"[\W_]", "", one).casefold(): one for one in sorted(names, reverse=True)}
    wanted = re.sub(r"[\W_]", "", name).casefold()[:80]
    if wanted in folded:
        return folded[wanted]
    found = get_close_matches(wanted, folded, n=1, cutoff=0.7)
    if found:
        return folded[found[0]]
    # `tpot` for `tpot_ms`: what was written begins exactly one name.
    begun = [one for short, one in folded.items() if len(wanted) > 2 and short.startswith(wanted)]
    return begun[0] if len(begun) == 1 else ""
