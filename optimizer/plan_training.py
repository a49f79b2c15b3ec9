"""The part of a plan that speaks of training: jobs, their layouts and times, the sites they stand on."""

from typing import Literal

from pydantic import Field

from optimizer.plan_shape import Shape


class TrainingLayout(Shape):
    """How a model is spread: the accelerators used are the product of tensor, pipeline, context and data parallel."""

    tensor_parallel: int
    pipeline_parallel: int
    virtual_stages: int = Field(description="Model chunks of a pipeline stage (interleaving).")
    data_parallel: int = Field(description="Replicas.")
    context_parallel: int
    expert_parallel: int
    zero_stage: int = Field(description="Sharding over replicas: 0 none, 1 optimizer state, 2 gradients, 3 weights.")
    recompute: Literal["none", "selective", "full"]
    micro_batch: int = Field(description="Sequences of a micro-batch.")


class TiedLayout(Shape):
    """Another layout on the same servers whose step lies within the model's band: which is faster is not known."""

    layout: TrainingLayout
    step_s: float
    memory_gib: float


class JobPart(Shape):
    """Servers of one pool that a job holds."""

    site: str
    pool: str
    in_service: int
    spare: int


class TrainedJob(Shape):
    """A job of the plan."""

    name: str
    shape: str = Field(description="Where the model's shape is from.")
    parameters: float
    active_parameters: float
    tokens: float = Field(description="Tokens trained, those for the loss of low-communication methods included.")
    flop_by_convention: dict[str, float] = Field(description="FLOP of the run as each convention counts it.")
    accelerator: str
    server_type: str
    precision: Literal["bf16", "fp8", "fp4"]
    method: Literal["one_site", "synchronous", "low_communication"]
    liquid_speedup: float = Field(description="Factor by which liquid-cooled servers are taken to step faster.")
    layout: TrainingLayout
    accelerators_used: int = Field(description="Accelerators of the layout.")
    accelerators_held: int = Field(description="Accelerators in service and spare.")
    parts: tuple[JobPart, ...]
    start_day: float
    end_day: float
    days: float
    days_band: tuple[float, float] = Field(
        description="80 % band: error of the step-time model, and of published runs beside it."
    )
    step_s: float = Field(description="Seconds of a recipe step, at the asked confidence.")
    expected_step_s: float = Field(description="The prediction itself.")
    step_band_s: tuple[float, float] = Field(description="80 % band of the prediction.")
    production_factor: float = Field(description="Whole run over its steps and goodput.")
    goodput_fraction: float
    mtbf_h: float = Field(description="Mean time between failures of the job.")
    checkpoint_interval_s: float
    mfu_fraction: float = Field(description="Model FLOP of a step (causal attention) over the peak of the format.")
    run_mfu_fraction: float = Field(description="6ND over accelerator-hours x the 16-bit peak: the whole run.")
    tflops_per_accelerator: float = Field(description="Model TFLOP/s of a step.")
    run_tflops_per_accelerator: float = Field(description="6ND over accelerator-seconds of the whole run.")
    memory_gib: float
    scale_up_gb_s: float
    scale_up_fraction: float
    scale_out_gb_s: float
    scale_out_fraction: float
    wan_gbit_per_s: float = Field(description="What each site sends to the others, mean over a step; 0 on one site.")
    accelerator_hours: float = Field(description="Accelerators in service x hours.")
    usd: float = Field(description="Cost of the job; what is charged as a fleet by its share of the server-days.")
    usd_per_accelerator_hour: float
    delay_usd: float
    evidence: str
    ties: tuple[TiedLayout, ...]
    tied: int = Field(description="Layouts within the band in all.")


class SiteUse(Shape):
    """What stands at a site and draws there."""

    site: str
    facility: Literal["colocation", "own_build"] | None = Field(
        default=None, description="Hall of bought servers; null where none is bought, and in plans of earlier versions."
    )
    servers: int
    accelerators: int
    racks: int
    power_kw: float = Field(description="At the meter in the hottest hour, spares included.")
    energy_mwh: float = Field(description="At the meter, over all jobs.")


class TrainingPlan(Shape):
    """Jobs and sites. ``usd`` is the whole cost; the bill's yearly figures are its annuity over the horizon."""

    charge: Literal["job", "horizon"]
    usd: float
    days: float = Field(description="Day on which the last job is done.")
    energy_mwh: float
    jobs: tuple[TrainedJob, ...]
    sites: tuple[SiteUse, ...]
