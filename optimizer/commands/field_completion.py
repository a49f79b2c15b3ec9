"""Shell completion of ``--vary PATH=VALUES``: fields of an instance, and the words that a field may hold."""

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem


def complete_vary(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Fields whose name begins so, with their meaning; after ``=`` the field's words."""
    from optimizer.instance.field_paths import known_fields

    name, equals, values = incomplete.partition("=")
    fields = list(known_fields(_instance(ctx)))
    if not equals:
        return [
            CompletionItem(f"{field.name}=", help=f"{field.description} {field.unit}".strip())
            for field in fields
            if field.name.startswith(name)
        ]
    before, comma, last = values.rpartition(",")
    words = next((field.words for field in fields if field.name == name), ())
    return [CompletionItem(f"{name}={before}{comma}{word}") for word in words if word.startswith(last)]


def _instance(ctx: click.Context) -> Any:
    """The instance on the command line, when it can be read: completion must never fail."""
    from optimizer.errors import InputError
    from optimizer.instance.reading import read_instance

    path = ctx.params.get("instance")
    try:
        return read_instance(Path(path)) if path else None
    except InputError:
        return None
