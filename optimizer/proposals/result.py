"""The evaluation of a proposal as it is written: the contract that people, reports and scripts read."""

from typing import Literal

from pydantic import ConfigDict, Field

from optimizer.plan import Headroom, Plan, Shape


class BrokenLimit(Shape):
    """A limit that the proposal does not keep."""

    limit: str
    field: str = Field(description="Field of the instance that sets it.")
    label: str
    unit: str
    direction: Literal["<=", ">="]
    needed: float
    reached: float
    where: str = Field(description="Deployment, pool or class at which it is broken most.")
    summary: str


class OutsideChoice(Shape):
    """Something the proposal uses that the instance's choices do not hold."""

    field: str
    value: str


class Distance(Shape):
    """The proposal beside the optimum of the instance."""

    summary: str = Field(description="What the optimum uses.")
    holds: Literal["proven", "feasible"]
    usd_per_hour: float
    usd_per_year: float
    capital_usd: float
    accelerators: int
    power_kw: float
    extra_usd_per_year: float = Field(description="What the proposal costs more a year; negative: less.")
    extra_fraction: float = Field(description="The same as a share of the optimum's cost.")
    extra_usd_per_year_by_component: dict[str, float]
    extra_capital_usd: float
    extra_accelerators: int
    extra_power_kw: float
    usd: float | None = Field(None, description="Training: whole cost of the optimum's jobs.")
    days: float | None = Field(None, description="Training: day on which the optimum's last job is done.")
    extra_usd: float | None = Field(None, description="Training: what the proposal's jobs cost more in all.")
    extra_days: float | None = Field(None, description="Training: how much later the proposal's last job is done.")


class Evaluation(Shape):
    """A proposal against an instance."""

    model_config = ConfigDict(title="Evaluation of gpu-cluster-optimizer")

    format_version: Literal[1] = 1
    name: str = Field(description="Name of the instance.")
    proposal: str = Field(description="Name of the proposal.")
    keeps_every_limit: bool
    is_allowed: bool = Field(description="Whether the instance's choices hold all that it uses.")
    broken: tuple[BrokenLimit, ...]
    outside: tuple[OutsideChoice, ...]
    limits: tuple[Headroom, ...] = Field(description="Every limit: needed, reached and what is left.")
    optimum: Distance | None = Field(description="None where no plan meets every limit, or none was asked for.")
    optimum_state: Literal["solved", "infeasible", "stopped", "not asked"]
    messages: tuple[str, ...]
    plan: Plan = Field(
        description="The proposal as a plan, under the instance with its choices narrowed to what the proposal uses."
    )
