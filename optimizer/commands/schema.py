"""``optimize schema``: the JSON Schema of what goes in and what comes out."""

import click

from optimizer.commands import talk


@click.command()
@click.argument(
    "what", type=click.Choice(["instance", "plan", "diagnosis", "proposal", "evaluation", "whynot"]), default="instance"
)
def schema(what: str) -> int:
    """Print the JSON Schema of an instance (the default), a plan, a diagnosis, a proposal or an evaluation."""
    from optimizer.instance.schema import INSTANCE_SCHEMA, as_text, of_shape

    if what == "instance":
        talk.data(INSTANCE_SCHEMA.read_text(encoding="utf-8"))
        return 0
    if what == "proposal":
        from optimizer.proposals.kinds import schema as of_proposal

        talk.data(as_text(of_proposal()))
        return 0
    from optimizer.diagnosis import Diagnosis
    from optimizer.plan import Plan, Shape
    from optimizer.proposals.result import Evaluation
    from optimizer.whynot.result import WhyNot

    shapes: dict[str, type[Shape]] = {"plan": Plan, "diagnosis": Diagnosis, "evaluation": Evaluation, "whynot": WhyNot}
    talk.data(as_text(of_shape(shapes[what], mode="serialization")))
    return 0
