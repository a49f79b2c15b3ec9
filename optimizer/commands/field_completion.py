"""Shell completion of ``--vary PATH=VALUES``: fields of an instance, and the words that a field may hold."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

#: Sections that are keyed by rows of the catalogue, all of which a ``*`` stands for.
_KEYED: Final = frozenset({("economics", "prices"), ("economics", "cooling_prices"), ("choices", "supply")})


def complete_vary(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Fields whose name begins so, with their meaning; after ``=`` the field's words.

    Entries of lists go by their names, as ``workload.classes.chat``; by number, or all of them by ``*``, where that is
    what was begun.
    """
    from optimizer.instance.field_paths import document_of, known_fields

    name, equals, values = incomplete.partition("=")
    instance = _instance(ctx)
    document = {} if instance is None else document_of(instance)
    found: dict[str, Any] = {}
    for field in known_fields(instance):
        for spelling in _spellings(field, document, name):
            found.setdefault(spelling, field)
    if not equals:
        return [
            CompletionItem(f"{spelling}=", help=f"{field.description} {field.unit}".strip())
            for spelling, field in found.items()
            if spelling.startswith(name)
        ]
    before, comma, last = values.rpartition(",")
    words = found[name].words if name in found else ()
    return [CompletionItem(f"{name}={before}{comma}{word}") for word in words if word.startswith(last)]


def _spellings(field: Any, document: dict[str, Any], begun: str) -> Iterator[str]:
    """How a field may be written, the usual way first."""
    from optimizer.instance.list_entries import spelled
    from optimizer.instance.problems import field_name

    usual = spelled(field.steps, document)
    yield usual
    if "[" in begun:
        yield field.name
    above, star, _ = begun.partition(".*")
    # What a planner keeps by number or by the catalogue's id stands right below the path that was begun.
    depth = next((at for at in range(len(field.steps)) if field_name(field.steps[:at]) == above), 0)
    if star and 0 < depth < len(field.steps):
        is_entry = isinstance(field.steps[depth], int) or (depth == 2 and field.steps[:2] in _KEYED)
        if is_entry:
            rest = field_name(field.steps[depth + 1 :])
            yield f"{above}.*{'.' if rest else ''}{rest}"


def _instance(ctx: click.Context) -> Any:
    """The instance on the command line, when it can be read: completion must never fail."""
    from optimizer.errors import InputError
    from optimizer.instance.reading import read_instance

    # Where an option still waits for its value, as --vary does here, click gives what stood before as arguments.
    path = ctx.params.get("instance") or next((arg for arg in ctx.args if not arg.startswith("-")), None)
    try:
        return read_instance(Path(path)) if path else None
    except InputError:
        return None
