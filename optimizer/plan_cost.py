"""The part of a plan that explains its cost: buying against renting, the figures that move the total most."""

from pydantic import Field

from optimizer.plan_shape import Shape


class WayCost(Shape):
    """The best plan that gets its servers in some ways only."""

    name: str
    sourcing: tuple[str, ...] = Field(description="Ways it may use.")
    is_allowed: bool = Field(description="Whether the instance's own choices hold one of them.")
    holds: str = Field(description="proven, feasible, or nothing where nothing fits.")
    summary: str
    accelerators: int | None
    usd_per_year: float | None
    capital_usd: float | None
    extra_fraction: float | None = Field(description="How much dearer than the plan a year, as a fraction.")


class MovedFigure(Shape):
    """A price or assumption, its range, and the cost of the best plan at both ends, solved again."""

    name: str
    field: str
    unit: str
    now: float
    low: float
    high: float
    low_usd_per_year: float | None = Field(description="Cost at the low end; null where nothing fits there.")
    high_usd_per_year: float | None = Field(description="Cost at the high end; null where nothing fits there.")
    change_usd_per_year: float = Field(description="The larger of both changes of the total.")
    is_decisive: bool = Field(description="Whether another choice is best at one end.")
    basis: str = Field(description="What the range rests on.")
    trust: str
    as_of: str


class CostStudy(Shape):
    """Why the plan costs what it costs; every figure from solving again.

    Costs of runs, which are paid once, are annuities over the plan's own horizon, so that they stand beside its bill's.
    """

    ways: tuple[WayCost, ...] = Field(description="As it stands, all bought, all rented, all on demand.")
    break_even_utilization_fraction: float | None = Field(
        description="Share of the hours from which on buying is cheaper than renting by the hour; null: never, or one"
        " of them cannot be had."
    )
    mean_load_fraction: float = Field(description="Mean load as a share of its peak, to hold that against.")
    break_even_month: int | None = Field(
        description="First month by whose end buying has cost no more than renting; null: not within the horizon."
    )
    break_even_month_discounted: int | None = Field(description="The same, money discounted.")
    figures: tuple[MovedFigure, ...] = Field(description="Those that move the total most, the strongest first.")
    moved: int = Field(description="Figures that were solved at both ends.")
    movable: int = Field(description="Figures that can be moved: more than ``moved`` where the study was stopped.")
