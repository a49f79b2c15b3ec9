"""The diagnosis: why nothing fits an instance, which fields clash, and what would have to move."""

from typing import Literal

from pydantic import ConfigDict, Field

from optimizer.instance.model import Instance
from optimizer.plan import DefaultedField, Provenance, SearchCount, Shape


class LimitKills(Shape):
    """How many candidates one limit kills."""

    limit: str
    field: str
    kills: int
    alone: int = Field(description="Candidates that only this limit kills.")


class SingleChange(Shape):
    """A change of one limit that suffices alone, verified by solving."""

    field: str
    limit: str = Field(description="Limit that it moves; empty where it bears on several.")
    unit: str
    now: float
    needed: float
    usd_per_hour: float | None = Field(description="Cost of the plan after the change.")
    summary: str
    then: str = Field(default="", description="What the plan after the change uses.")


class ClashField(Shape):
    """A field of the clash: fields that cannot hold together, though all but any one of them can."""

    field: str
    value: str
    unit: str
    is_stated: bool = Field(description="Whether the planner wrote it; else it is a default.")


class Widening(Shape):
    """Members to add to a list of choices that suffice alone, verified by solving."""

    field: str
    added: tuple[str, ...]
    usd_per_hour: float = Field(description="Cost of the plan after the change.")
    summary: str
    then: str = Field(description="What the plan after the change uses.")


class Move(Shape):
    """One of several changes that suffice together: a number that moves, or members added to a list."""

    field: str
    unit: str
    now: float | None
    needed: float | None
    added: tuple[str, ...]
    summary: str


class CombinedChange(Shape):
    """Changes that suffice together, verified by solving; none of them can be left out or made smaller alone."""

    moves: tuple[Move, ...]
    usd_per_hour: float
    summary: str
    then: str = Field(description="What the plan after the changes uses.")


Cause = Literal["limits", "choices", "limits_and_choices", "nothing_helps", "unknown"]


class NearestCandidate(Shape):
    """The candidate that misses by least."""

    summary: str
    misses: dict[str, str] = Field(description="Limit -> what it reaches against what is needed.")


class Diagnosis(Shape):
    """Why nothing fits, and what would have to move."""

    model_config = ConfigDict(title="Diagnosis of gpu-cluster-optimizer")

    format_version: Literal[1] = 1
    name: str
    stage: Literal["no_candidate", "fleet"] = Field(
        description="no_candidate: no deployment meets its limits; fleet: deployments exist, but no fleet of them fits."
    )
    search: SearchCount
    kills: tuple[LimitKills, ...]
    nearest: NearestCandidate | None
    cause: Cause = Field(
        default="unknown",
        description="limits: limits and demand clash, whatever may be chosen; choices: the options searched were too"
        " narrow, for more of the catalogue gives a plan with every limit as it is; limits_and_choices: both must move;"
        " nothing_helps: no plan even without limits and with the whole catalogue; unknown: time came first.",
    )
    clash: tuple[ClashField, ...] = Field(
        default=(), description="Fields that cannot hold together: smallest, so letting any one go gives a plan."
    )
    changes: tuple[SingleChange, ...]
    widenings: tuple[Widening, ...] = Field(default=(), description="Choices to add that suffice alone.")
    combined: tuple[CombinedChange, ...] = Field(
        default=(), description="Changes that suffice together, where none does alone."
    )
    is_complete: bool = Field(default=True, description="False where the time limit or an interrupt came first.")
    messages: tuple[str, ...]
    defaults: tuple[DefaultedField, ...]
    instance: Instance
    provenance: Provenance
