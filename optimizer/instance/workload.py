"""The work: which model is served, what a request looks like, how much comes at the peak and over the day."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from optimizer.catalog.rows import ModelArchitecture
from optimizer.instance.fields import REQUIRED, Frozen, Ruled, field


class RequestShape(Frozen):
    """Mean length of a request of one class."""

    input_tokens: int = field(REQUIRED, "Prompt tokens of a mean request.", unit="tokens", gt=0, le=10_000_000)
    output_tokens: int = field(REQUIRED, "Generated tokens of a mean request.", unit="tokens", gt=0, le=10_000_000)
    prefix_hit_fraction: float = field(
        0.0,
        "Share of prompt tokens found in the prefix cache, so not computed again.",
        unit="fraction",
        default_source="no reuse is the safe case",
        ge=0,
        lt=1,
    )


class Demand(Ruled):
    """Demand at the peak, in exactly one of three units."""

    output_tokens_per_s: float | None = field(
        None, "Generated tokens per second at the peak, all replicas together.", unit="tokens/s", gt=0, le=1e12
    )
    requests_per_s: float | None = field(
        None, "Requests per second at the peak, all replicas together.", unit="requests/s", gt=0, le=1e12
    )
    concurrent_users: float | None = field(
        None,
        "Users at the peak, each waiting for an answer, then thinking for think_time_s (closed loop).",
        unit="users",
        gt=0,
        le=1e12,
    )
    think_time_s: float = field(
        0.0,
        "Mean pause of a user between an answer and the next request; only with concurrent_users.",
        unit="s",
        default_source="0 s is the safe case: every user always waits for an answer",
        ge=0,
        le=1e6,
    )


class Load(Ruled):
    """How the load moves below its peak: a mean, or a profile by the hour. The peak sizes, the mean is billed."""

    mean_fraction: float | None = field(
        None, "Mean load over the year as a share of the peak.", unit="fraction of peak", gt=0, le=1
    )
    hourly_fractions: tuple[Annotated[float, Field(ge=0, le=1)], ...] | None = field(
        None,
        "Load of each hour of a day (24 values) or of a week (168 values) as a share of the peak.",
        unit="fraction of peak",
    )


class ClassTargets(Ruled):
    """Latency targets of one request class; what is absent is taken from ``targets``."""

    tpot_ms: float | None = field(None, "As targets.tpot_ms, for this class.", unit="ms", gt=0)
    ttft_ms: float | None = field(None, "As targets.ttft_ms, for this class.", unit="ms", gt=0)
    latency_ms: float | None = field(None, "As targets.latency_ms, for this class.", unit="ms", gt=0)


class RequestClass(Frozen):
    """One kind of request: its lengths, its demand, its own latency targets."""

    name: str = field(REQUIRED, "Name of the class, used in the plan.", min_length=1, max_length=80)
    request: RequestShape = field(REQUIRED, "Mean lengths of this class.")
    demand: Demand = field(REQUIRED, "Demand of this class at the common peak.")
    targets: ClassTargets = field(ClassTargets(), "Latency targets of this class, where they differ.")


class HuggingFaceConfig(Frozen):
    """The text of a model's config.json: what a path in ``workload.model`` is resolved into."""

    name: str = field(REQUIRED, "Name of the model.", min_length=1, max_length=200)
    config: dict[str, Any] = Field(description="Content of config.json.")


def _model_form(value: Any) -> str:
    if isinstance(value, str):
        return "name"
    if isinstance(value, HuggingFaceConfig) or (isinstance(value, dict) and "config" in value):
        return "config"
    return "inline"


ModelChoice = Annotated[
    Annotated[str, Tag("name")]
    | Annotated[ModelArchitecture, Tag("inline")]
    | Annotated[HuggingFaceConfig, Tag("config")],
    Discriminator(_model_form),
]


class Calibration(Frozen):
    """The content of a calibration file: what a path in ``workload.calibration`` is resolved into."""

    document: dict[str, Any] = Field(description="What `optimize calibrate` wrote.")


def _calibration_form(value: Any) -> str:
    return "path" if isinstance(value, str) else "document"


CalibrationChoice = Annotated[
    Annotated[str, Tag("path")] | Annotated[Calibration, Tag("document")], Discriminator(_calibration_form)
]


class ServingWorkload(Ruled):
    """A model served to users: one request class (``request`` and ``demand``) or several (``classes``)."""

    kind: Literal["serving"] = field("serving", "Kind of work.", default_source="the only kind in this version")
    model: ModelChoice = field(
        REQUIRED,
        "Catalogue name or Hugging Face id of the model, path of a config.json, or the architecture itself.",
    )
    request: RequestShape | None = field(None, "Mean lengths of a request, when there is one class.")
    demand: Demand | None = field(None, "Demand at the peak, when there is one class.")
    classes: tuple[RequestClass, ...] = field(
        (), "Several request classes; a replica serves one class.", default_source="one class", max_length=16
    )
    load: Load = field(
        Load(mean_fraction=1.0),
        "Mean or profile of the load below its peak.",
        default_source="flat at the peak: the safe case for energy",
    )
    max_context_tokens: int | None = field(
        None,
        "Longest request (input + output) that must start; absent: input + output of the longest class.",
        unit="tokens",
        gt=0,
        le=100_000_000,
    )
    calibration: CalibrationChoice | None = field(
        None, "Path of a calibration that `optimize calibrate` made from the planner's own measurements."
    )
    engine: Literal["generic", "vllm", "sglang", "tensorrt-llm"] = field(
        "generic", "Serving engine whose overheads are assumed.", default_source="a mean over engines"
    )

    def calibration_document(self) -> dict[str, Any] | None:
        """The planner's own calibration, when its path has been resolved; None without one."""
        return self.calibration.document if isinstance(self.calibration, Calibration) else None

    def shapes(self) -> tuple[RequestShape, ...]:
        """Mean lengths of every class, in the order of the instance."""
        return tuple(one.request for one in self.classes) if self.classes else (self.request,) if self.request else ()

    def all_classes(self) -> tuple[RequestClass, ...]:
        """Every class; a workload of one class gives one, named ``all``."""
        if self.classes or self.request is None or self.demand is None:
            return self.classes
        return (RequestClass(name="all", request=self.request, demand=self.demand),)

    def longest_context_tokens(self) -> int:
        """Tokens of the longest request that must start."""
        if self.max_context_tokens is not None:
            return self.max_context_tokens
        return max(one.input_tokens + one.output_tokens for one in self.shapes())
