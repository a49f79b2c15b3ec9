"""``optimize new``: a template to start from."""

import json
from pathlib import Path
from typing import Final

import click

from optimizer.commands import files, talk

_FOLDER: Final = Path(__file__).parent / "templates"


def templates() -> dict[str, Path]:
    """Every template by its name."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.json"))}


@click.command()
@click.argument("template", required=False)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="PATH", help="Write it there.")
@click.option("--force", is_flag=True, help="Overwrite PATH if it exists.")
def new(template: str | None, output: Path | None, force: bool) -> int:
    """Print TEMPLATE, an instance to start from; without one, list the templates.

    optimize new serving-70b > my.json
    """
    known = templates()
    if template is None:
        width = max(map(len, known))
        for name, path in known.items():
            talk.data(f"{name:<{width}}  {json.loads(path.read_text(encoding='utf-8'))['name']}")
        return 0
    if template not in known:
        from optimizer.instance.problems import nearest

        near = nearest(template, known)
        hint = f"Did you mean {near}?" if near else f"There are: {', '.join(known)}."
        raise click.BadParameter(f"there is no template {template!r}. {hint}", param_hint="TEMPLATE")
    text = known[template].read_text(encoding="utf-8")
    if output is None:
        talk.data(text)
        return 0
    files.guard(output, "", force=force)
    files.write(output, text)
    talk.say(f"written     {output}")
    return 0
