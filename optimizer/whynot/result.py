"""The answer to "why not this": the contract that people, reports and scripts read."""

from typing import Literal

from pydantic import ConfigDict, Field

from optimizer.diagnosis import ClashField, NearestCandidate, SingleChange
from optimizer.plan import Plan, Shape
from optimizer.proposals.result import Distance, OutsideChoice

Verdict = Literal[
    "is_the_plan", "costs_more", "costs_the_same", "costs_less", "breaks_limits", "cannot_be_had", "unknown"
]


class NearestValue(Shape):
    """The best that the choice reaches of one limit, whatever else holds, beside what is needed."""

    limit: str
    field: str
    unit: str
    direction: Literal["<=", ">="]
    needed: float
    reached: float = Field(
        description="Best value of any candidate with one request in flight, of the class it is worst for; of runs the"
        " best of any layout."
    )
    request_class: str = Field(description="Class of requests; of runs the job.")
    kills: int = Field(description="Candidates of the choice that break it.")
    candidates: int = Field(description="Candidates of the choice.")


class WhyNot(Shape):
    """Why the plan does not make a choice."""

    model_config = ConfigDict(title="Why-not answer of gpu-cluster-optimizer")

    format_version: Literal[1] = 1
    name: str = Field(description="Name of the instance.")
    kind: Literal["serving", "training"] = "serving"
    asked: str = Field(description="The choice that was asked about.")
    verdict: Verdict = Field(
        description="is_the_plan: the plan makes it; costs_more (the_same, less): a fleet of it keeps every limit, at"
        " that cost; breaks_limits: none does; cannot_be_had: no price, cooling or layout; unknown: time came first."
    )
    summary: str = Field(description="The answer in a sentence.")
    outside: tuple[OutsideChoice, ...] = Field(description="What the instance's own choices leave out of it.")
    reasons: tuple[str, ...] = Field(description="Why it cannot be had, or what else to know.")
    nearest_values: tuple[NearestValue, ...] = Field(default=(), description="Limits that keep deployments of it out.")
    nearest: NearestCandidate | None = Field(default=None, description="The candidate of it that misses by least.")
    clash: tuple[ClashField, ...] = Field(default=(), description="Fields that cannot hold together with this choice.")
    changes: tuple[SingleChange, ...] = Field(default=(), description="Single changes after which it works, priced.")
    distance: Distance | None = Field(
        default=None, description="The optimum, and how far the cheapest fleet of the choice is from it."
    )
    better: tuple[str, ...] = Field(default=(), description="Figures in which the choice is better than the optimum.")
    worse: tuple[str, ...] = ()
    plan: Plan | None = Field(default=None, description="The cheapest plan that makes the choice, where there is one.")
