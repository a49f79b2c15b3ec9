"""Entries of an instance's lists in paths: by number, by name, or all at once."""

from collections.abc import Mapping, Sequence
from typing import Any

from optimizer.instance.positions import Path
from optimizer.instance.problems import field_name, nearest


def entry_names(members: Sequence[Any]) -> list[str]:
    """Names of a list's entries, in order: ``name``, else ``id``; empty for one that has neither."""
    return [str(one.get("name", one.get("id", ""))) if isinstance(one, Mapping) else "" for one in members]


def entry_index(text: str, members: Sequence[Any]) -> int | None:
    """The entry that a name or a number from 0 on means; None where there is none."""
    names = entry_names(members)
    if text and text in names:
        return names.index(text)
    return int(text) if text.isdecimal() and int(text) < len(members) else None


def entry_paths(above: Path, members: Sequence[Any]) -> list[str]:
    """How each entry of a list is written: ``workload.classes.chat``, or ``workload.classes[0]`` without a name."""
    where, names = field_name(above), entry_names(members)
    return [
        field_name((*above, name)) if name and names.count(name) == 1 else f"{where}[{index}]"
        for index, name in enumerate(names)
    ]


def spelled(steps: Path, document: Mapping[str, Any]) -> str:
    """A field's name with the names of the entries on the way, as a planner writes it: ``workload.classes.chat...``."""
    value: Any = document
    written: list[str | int] = []
    for step in steps:
        if isinstance(value, list) and isinstance(step, int) and step < len(value):
            names = entry_names(value)
            name = names[step]
            written.append(name if name and names.count(name) == 1 else step)
            value = value[step]
        else:
            written.append(step)
            value = value.get(step) if isinstance(value, Mapping) else None
    return field_name(tuple(written))


def meant_entry(text: str, members: Sequence[Any], above: Path, inside: Sequence[str], after: Sequence[str]) -> str:
    """What a text that is no entry of a list probably means.

    ``inside`` are the fields of an entry, ``after`` the steps below the entry.
    """
    where, paths = field_name(above), entry_paths(above, members)
    tail = "".join(f".{step}" for step in after)
    if text in inside:
        return f"Name the entry: {paths[0]}{tail}, or all of them: {where}.*{tail}"
    near = nearest(text, [name for name in entry_names(members) if name])
    if near:
        return f"Did you mean {field_name((*above, near))}{tail}?"
    return f"It has {', '.join(paths[:8])}{', …' if len(paths) > 8 else ''}; {where}.* stands for all of them"
