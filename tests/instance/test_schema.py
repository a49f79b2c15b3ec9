"""The schema: committed as generated, complete, and satisfied by what is sound."""

from typing import Any

import jsonschema
import pytest

from optimizer.instance import schema
from tests.instance.samples import several_classes, sound, training


def test_committed_is_generated() -> None:
    text = schema.INSTANCE_SCHEMA.read_text(encoding="utf-8")
    assert text == schema.as_text(schema.generated()), "run: python -m optimizer.instance.schema"


def properties() -> list[tuple[str, str, dict[str, Any]]]:
    whole = schema.committed()
    shapes = {"Instance": whole, **whole["$defs"]}
    return [(name, key, one) for name, shape in shapes.items() for key, one in shape.get("properties", {}).items()]


def test_every_property_says_what_it_means() -> None:
    assert [(shape, key) for shape, key, one in properties() if not one.get("description")] == []


def test_quantities_have_units() -> None:
    """A key whose name ends in a unit states it too; a plain count or share says what it counts."""
    endings = ("_ms", "_s", "_gib", "_kw", "_usd", "_years", "_tokens", "_fraction", "_per_hour", "_gb_s")
    assert [(shape, key) for shape, key, one in properties() if key.endswith(endings) and not one.get("unit")] == []


def test_defaults_of_the_instance_have_sources() -> None:
    own = {"Targets", "Choices", "Site", "Economics", "SolverOptions", "Demand", "Load", "RequestShape"}
    own |= {"TrainingWorkload", "TrainingJob", "TrainingLayouts", "Reliability", "SeveralSites", "NamedSite", "WanLink"}
    own |= {"Hall", "Staff", "Services", "Tariff"}
    # A default of null is no figure: the limit is not set, or the catalogue gives the price; {} are the keys' own.
    bare = [
        (shape, key)
        for shape, key, one in properties()
        if shape in own and one.get("default") not in (None, {}) and not one.get("default_source")
    ]
    assert bare == []


@pytest.mark.parametrize("value", [sound(), several_classes(), training()])
def test_sound_instances_satisfy_it(value: dict[str, Any]) -> None:
    jsonschema.validate(value, schema.committed(), cls=jsonschema.Draft202012Validator)


def test_it_is_a_schema_of_its_dialect() -> None:
    jsonschema.Draft202012Validator.check_schema(schema.committed())
