"""A proposal for training: the servers that someone else has in mind for each job, as few words as describe it."""

from typing import Any, Final

from pydantic import ConfigDict

from optimizer.instance.choices import Sourcing
from optimizer.instance.fields import REQUIRED, Frozen, field
from optimizer.instance.training import Method, Precision, Recompute
from optimizer.proposals.shape import Head, either_form

#: Keys of a proposal for training that do not describe a job.
TRAINING_HEAD_KEYS: Final[tuple[str, ...]] = (
    "$schema",
    "name",
    "story",
    "is_owned",
    "claimed_days",
    "claimed_usd",
    "jobs",
)
_MOST_DEGREE: Final = 4096


class ProposedPart(Frozen):
    """Servers of a job at one site, where it runs on several."""

    site: str = field(REQUIRED, "Site of the instance where they stand.", min_length=1)
    servers: int = field(REQUIRED, "Servers in service there.", unit="servers", ge=1, le=10**7)
    spare_servers: int | None = field(
        None,
        "Servers that stand spare beside them.",
        unit="servers",
        default_source="what the targets ask for",
        ge=0,
        le=10**7,
    )
    cooling: str | None = field(
        None,
        "Cooling there, by catalogue id.",
        default_source="air_containment_econ, or d2c_1p for servers built for liquid",
    )


class ProposedJob(Frozen):
    """One job: its servers in service, and how the model is spread over them. What is absent, the tool chooses."""

    job: str | None = field(None, "Job of the instance.", default_source="the only job of the instance", min_length=1)
    accelerator: str = field(REQUIRED, "Accelerator, by catalogue id.", min_length=1)
    count: int | None = field(
        None,
        "Accelerators in service, as workload.accelerator_counts; a multiple of those in one server.",
        unit="accelerators",
        ge=1,
        le=10**7,
    )
    servers: int | None = field(None, "Servers in service; in place of count.", unit="servers", ge=1, le=10**7)
    spare_servers: int | None = field(
        None,
        "Servers that stand spare beside them; only bought ones can.",
        unit="servers",
        default_source="what the targets ask for",
        ge=0,
        le=10**7,
    )
    parts: tuple[ProposedPart, ...] = field(
        (), "Servers by site, where the job runs on several sites at once.", default_source="one site", max_length=64
    )
    sourcing: Sourcing = field("buy", "Way to get the servers.", default_source="buy")
    cooling: str | None = field(
        None,
        "Cooling of bought servers, by catalogue id.",
        default_source="air_containment_econ, or d2c_1p for servers built for liquid",
    )
    site: str | None = field(
        None, "Site of bought servers.", default_source="the only site of the instance", min_length=1
    )
    precision: Precision | None = field(
        None, "Number format of the matrix multiplications.", default_source="the quickest that the job allows"
    )
    method: Method | None = field(
        None,
        "How several sites train together.",
        default_source="the quickest of the methods that the workload allows",
    )
    start_day: float | None = field(
        None,
        "Day of the calendar on which it starts; of several jobs a whole number of periods.",
        unit="day",
        default_source="the earliest that the job allows",
        ge=0,
        le=36_525,
    )
    tensor_parallel: int | None = field(
        None, "Tensor-parallel degree.", default_source="the quickest", ge=1, le=_MOST_DEGREE
    )
    pipeline_parallel: int | None = field(
        None, "Pipeline-parallel degree.", default_source="the quickest", ge=1, le=_MOST_DEGREE
    )
    virtual_stages: int | None = field(
        None, "Model chunks of a pipeline stage.", default_source="the quickest", ge=1, le=_MOST_DEGREE
    )
    data_parallel: int | None = field(
        None,
        "Replicas.",
        unit="replicas",
        default_source="as many as the servers in service hold and the batch allows",
        ge=1,
        le=10**7,
    )
    context_parallel: int | None = field(
        None, "Context-parallel degree.", default_source="the quickest", ge=1, le=_MOST_DEGREE
    )
    expert_parallel: int | None = field(
        None, "Expert-parallel degree.", default_source="the quickest", ge=1, le=_MOST_DEGREE
    )
    micro_batch: int | None = field(
        None, "Sequences of a micro-batch.", unit="sequences", default_source="the quickest", ge=1, le=_MOST_DEGREE
    )
    recompute: Recompute | None = field(
        None, "What the backward pass computes again.", default_source="the quickest that fits"
    )
    zero_stage: int | None = field(
        None, "Sharding over replicas, 0 to 3.", default_source="the quickest that fits", ge=0, le=3
    )


class TrainingHead(Head):
    """What a proposal for training says beside its jobs."""

    claimed_days: float | None = field(
        None, "Days that whoever proposes it says the last job takes; told beside the model's.", unit="days", gt=0
    )
    claimed_usd: float | None = field(
        None, "Cost that whoever proposes it says, in all; told beside the bill.", unit="USD", gt=0
    )


class FlatTrainingProposal(ProposedJob, TrainingHead):
    """A proposal for one job, written without a list."""


class TrainingProposal(TrainingHead):
    """A proposal for one or several jobs."""

    model_config = ConfigDict(title="Proposal for training of gpu-cluster-optimizer")

    jobs: tuple[ProposedJob, ...] = field(REQUIRED, "Jobs, each of the instance once.", min_length=1, max_length=16)


def training_schema() -> dict[str, Any]:
    """JSON Schema of a proposal for training: either form."""
    return either_form(TrainingProposal, FlatTrainingProposal)
