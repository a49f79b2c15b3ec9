"""``optimize schema``: the JSON Schema of what goes in and what comes out."""

import click

from optimizer.commands import talk


@click.command()
@click.argument("what", type=click.Choice(["instance", "plan", "diagnosis"]), default="instance")
def schema(what: str) -> int:
    """Print the JSON Schema of an instance (the default), a plan or a diagnosis."""
    from optimizer.instance.schema import INSTANCE_SCHEMA, as_text, of_shape

    if what == "instance":
        talk.data(INSTANCE_SCHEMA.read_text(encoding="utf-8"))
        return 0
    from optimizer.plan import Diagnosis, Plan

    talk.data(as_text(of_shape(Plan if what == "plan" else Diagnosis, mode="serialization")))
    return 0
