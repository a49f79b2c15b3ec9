"""A proposal: the fleet that someone else has in mind, as few words as describe it."""

from typing import Any, Final, Literal

from pydantic import ConfigDict

from optimizer.instance.choices import RecoveryStepName, Sourcing
from optimizer.instance.fields import REQUIRED, Frozen, field

#: Keys of a proposal that do not describe a group of servers.
HEAD_KEYS: Final[tuple[str, ...]] = ("$schema", "name", "story", "is_owned", "groups")


class Group(Frozen):
    """Servers of one kind, and the replicas of one deployment that run on them."""

    accelerator: str = field(REQUIRED, "Accelerator, by catalogue id.", min_length=1)
    count: int | None = field(
        None, "Accelerators, spares included; a multiple of those in one server.", unit="accelerators", ge=1, le=10**7
    )
    servers: int | None = field(None, "Servers, spares included; in place of count.", unit="servers", ge=1, le=10**7)
    accelerators_per_server: int | None = field(
        None,
        "Accelerators of one server or rented instance.",
        unit="accelerators",
        default_source="the catalogue's server; of rented instances the largest with a price",
        ge=1,
        le=1024,
    )
    spare_servers: int | None = field(
        None,
        "Servers of these that stand spare; only bought ones can.",
        unit="servers",
        default_source="what the targets ask for, or all that the stated replicas leave over",
        ge=0,
        le=10**7,
    )
    sourcing: Sourcing = field("buy", "Way to get the servers.", default_source="buy")
    cooling: str | None = field(
        None,
        "Cooling of bought servers, by catalogue id.",
        default_source="air_containment_econ, or d2c_1p for servers built for liquid",
    )
    request_class: str | None = field(
        None, "Class of requests that is served.", default_source="the only class of the instance", min_length=1
    )
    tensor_parallel: int = field(1, "Tensor-parallel degree.", default_source="1", ge=1, le=4096)
    pipeline_parallel: int = field(1, "Pipeline-parallel degree.", default_source="1", ge=1, le=4096)
    expert_parallel: int = field(1, "Expert-parallel degree.", default_source="1", ge=1, le=4096)
    attention_data_parallel: int = field(1, "Attention-data-parallel degree.", default_source="1", ge=1, le=4096)
    scheme: str = field(
        "w16a16", "Scheme of weights and activations, by catalogue id.", default_source="w16a16: the 16-bit weights"
    )
    kv_scheme: str = field("kv16", "Scheme of the KV cache, by catalogue id.", default_source="kv16")
    recovery: RecoveryStepName = field("none", "Fine-tuning after quantization.", default_source="none")
    replicas: int | None = field(
        None,
        "Replicas of the model on these servers.",
        unit="replicas",
        default_source="as many as the servers in service hold",
        ge=1,
        le=10**7,
    )
    concurrency: int | None = field(
        None,
        "Requests in flight on one replica.",
        unit="requests",
        default_source="most that keeps latency, memory and links; where none does, least that carries the demand",
        ge=1,
        le=10**6,
    )


class Head(Frozen):
    """What a proposal says beside its groups or jobs."""

    model_config = ConfigDict(populate_by_name=True)

    schema_url: str | None = field(None, "Address of the JSON Schema, for editors.", alias="$schema")
    name: str = field(
        "proposal", "Name, shown in the evaluation.", default_source="proposal", min_length=1, max_length=200
    )
    story: str = field("", "What it is about, for readers.", max_length=20_000)
    is_owned: bool = field(
        False,
        "Whether it is paid already, as today's fleet is: then a payback counts none of its capital.",
        default_source="false: it would have to be paid",
    )


class FlatProposal(Group, Head):
    """A proposal of one group, written without a list."""


class Proposal(Head):
    """A proposal of one or several groups."""

    model_config = ConfigDict(title="Proposal for gpu-cluster-optimizer")

    groups: tuple[Group, ...] = field(REQUIRED, "Groups of servers.", min_length=1, max_length=64)


def schema() -> dict[str, Any]:
    """JSON Schema of a proposal: either form."""
    return either_form(Proposal, FlatProposal)


def either_form(whole: type[Frozen], flat: type[Frozen]) -> dict[str, Any]:
    """JSON Schema of a shape that may be written with a list, or flat where the list would hold one."""
    from optimizer.instance.schema import of_shape

    listed, alone = of_shape(whole), of_shape(flat)
    definitions = {**listed.pop("$defs"), **alone.pop("$defs", {})}
    dialect = listed.pop("$schema")
    alone.pop("$schema")
    names = flat.__name__, whole.__name__
    return {
        "$schema": dialect,
        "title": listed["title"],
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in names],
        "$defs": {**definitions, flat.__name__: alone, whole.__name__: listed},
    }


Form = Literal["Proposal", "FlatProposal"]
