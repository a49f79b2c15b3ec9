"""What is not known: fields with a distribution, how they move together, how many scenarios are drawn."""

from typing import Annotated, Literal

from pydantic import Field

from optimizer.instance.fields import REQUIRED, Frozen, Ruled
from optimizer.instance.fields import field as declared

Distribution = Literal["uniform", "triangular", "normal", "lognormal", "discrete"]


class UncertainField(Ruled):
    """A number of the instance with its distribution; each distribution has parameters of its own.

    uniform: low, high. triangular: low, mode, high. normal: mean, standard_deviation. lognormal: median,
    log_standard_deviation. discrete: values, probabilities. A normal or lognormal may be cut off at low and high.
    """

    field: str = declared(
        REQUIRED, "Path of the field, such as site.electricity_usd_per_kwh.", min_length=1, max_length=200
    )
    distribution: Distribution = declared(REQUIRED, "Form of the distribution.")
    is_multiple: bool = declared(
        False,
        "Whether the figures are multiples of the value that the field has now (1.1: 10 % more).",
        default_source="figures are in the unit of the field",
    )
    low: float | None = declared(None, "Least value; for normal and lognormal the point where they are cut off.")
    mode: float | None = declared(None, "Likeliest value of a triangular distribution.")
    high: float | None = declared(None, "Largest value; for normal and lognormal the point where they are cut off.")
    mean: float | None = declared(None, "Mean of a normal distribution.")
    standard_deviation: float | None = declared(None, "Standard deviation of a normal distribution.", gt=0)
    median: float | None = declared(None, "Median of a lognormal distribution.", gt=0)
    log_standard_deviation: float | None = declared(
        None, "Standard deviation of the logarithm (0.1: about 10 % either way).", unit="1", gt=0, le=5
    )
    values: tuple[float, ...] | None = declared(
        None, "Values of a discrete distribution.", min_length=1, max_length=1000
    )
    probabilities: tuple[Annotated[float, Field(gt=0, le=1)], ...] | None = declared(
        None,
        "Probability of each value, in their order; they sum to 1.",
        unit="probability",
        min_length=1,
        max_length=1000,
    )


class Correlation(Frozen):
    """How two fields move together."""

    first: str = declared(REQUIRED, "Path of one uncertain field.", min_length=1, max_length=200)
    second: str = declared(REQUIRED, "Path of another one.", min_length=1, max_length=200)
    rank_correlation: float = declared(REQUIRED, "Spearman's rank correlation.", unit="1", gt=-1, lt=1)


class Uncertainty(Ruled):
    """Which fields are uncertain and how `optimize robust` looks at them; other verbs use the values of the fields."""

    fields: tuple[UncertainField, ...] = declared(
        (), "Uncertain fields.", default_source="nothing is uncertain", max_length=64
    )
    correlations: tuple[Correlation, ...] = declared(
        (), "Fields that move together.", default_source="fields are independent", max_length=2016
    )
    scenarios: int = declared(
        50,
        "Scenarios drawn (Latin hypercube: one in each of as many equally likely slices of every field).",
        unit="scenarios",
        default_source="assumed: quantiles from 5 to 95 % rest on more than one scenario",
        ge=2,
        le=10_000,
    )
    seed: int = declared(0, "Seed of the draw.", default_source="assumed", ge=0, le=2**31 - 1)
    risk_level: float = declared(
        0.9,
        "Share of scenarios beyond which the expected shortfall (CVaR) looks: 0.9 is the mean of the dearest tenth.",
        unit="probability",
        default_source="0.9: usual in planning under uncertainty (assumed)",
        ge=0,
        lt=1,
    )
