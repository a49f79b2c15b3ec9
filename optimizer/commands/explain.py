"""``optimize explain``: what an error code means, or why nothing fits an instance."""

import re
from pathlib import Path

import click

from optimizer.commands import answering, talk


@click.command()
@click.argument("what", metavar="CODE|INSTANCE")
def explain(what: str) -> int:
    """Explain an error code (E-TARGETS-003), or why no cluster fits INSTANCE."""
    if re.fullmatch(r"(?i)E-[A-Z]+-[0-9]+", what) and not Path(what).exists():
        return _code(what.upper())
    from optimizer.commands.solve import read

    path = Path(what)
    instance = read(path)
    solved = answering.solve(instance, path)
    if solved.diagnosis is None:
        talk.data(f"{path}: a cluster meets every limit. `optimize {path}` shows the cheapest.")
        return 0
    talk.data(answering.screen(solved))
    return 0


def _code(name: str) -> int:
    from optimizer.errors import CODES
    from optimizer.instance.problems import nearest

    code = CODES.get(name)
    if code is None:
        near = nearest(name, CODES)
        hint = f" Did you mean {near}?" if near else ""
        raise click.UsageError(f"there is no code {name}.{hint}")
    talk.data(f"{code.code}\n\n  {code.meaning}\n  {code.remedy}")
    return 0
