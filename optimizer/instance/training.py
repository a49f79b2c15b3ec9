"""The work of training: what is trained, in which formats, by when, how failures are met, how sites work together."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from optimizer.instance.fields import REQUIRED, Frozen, Ruled, field
from optimizer.instance.workload import Calibration, CalibrationChoice, Load, ModelChoice, RequestClass

Precision = Literal["bf16", "fp8", "fp4"]
FlopConvention = Literal["6nd", "8nd", "full", "causal", "hardware_full"]
OptimizerState = Literal[
    "adam", "adam_two_gradients", "adam_bf16_gradients", "adam_bf16_moments", "adam_8bit", "adafactor", "muon"
]
Recompute = Literal["none", "selective", "full"]
Method = Literal["synchronous", "low_communication"]
Degrees = tuple[Annotated[int, Field(ge=1, le=4096)], ...]
Counts = tuple[Annotated[int, Field(ge=1, le=10_000_000)], ...]


#: Built with the instance, not one by one before: half of the loading time otherwise.
_LATE = ConfigDict(defer_build=True)


class TrainingJob(Frozen):
    """One of several jobs. What it leaves out is taken from the workload around it."""

    model_config = _LATE

    name: str = field(REQUIRED, "Name of the job, used in the plan.", min_length=1, max_length=80)
    model: ModelChoice | None = field(None, "As workload.model, for this job.")
    parameters_b: float | None = field(None, "As workload.parameters_b, for this job.", unit="1e9", gt=0, le=1e6)
    active_parameters_b: float | None = field(
        None, "As workload.active_parameters_b, for this job.", unit="1e9", gt=0, le=1e6
    )
    tokens: float | None = field(None, "As workload.tokens, for this job.", unit="tokens", gt=0, le=1e18)
    flop: float | None = field(None, "As workload.flop, for this job.", unit="FLOP", gt=0, le=1e32)
    sequence_tokens: int | None = field(
        None, "As workload.sequence_tokens, for this job.", unit="tokens", ge=128, le=10_000_000
    )
    global_batch_tokens: float | None = field(
        None, "As workload.global_batch_tokens, for this job.", unit="tokens", gt=0, le=1e12
    )
    precisions: tuple[Precision, ...] | None = field(None, "As workload.precisions, for this job.", min_length=1)
    accelerator_counts: Counts | None = field(None, "As workload.accelerator_counts, for this job.", min_length=1)
    earliest_start_day: float = field(
        0.0, "Day of the calendar on which it can start.", unit="day", default_source="the first day", ge=0, le=36_525
    )
    deadline_days: float | None = field(
        None, "Day of the calendar by which it must be done; targets.deadline_days where absent.", unit="days", gt=0
    )
    delay_usd_per_day: float | None = field(
        None, "As workload.delay_usd_per_day, for this job.", unit="USD/day", ge=0, le=1e12
    )


class TrainingLayouts(Frozen):
    """Degrees that the program searches in place of those of ``choices``; an absent list means the usual ones."""

    model_config = _LATE

    tensor_parallel: Degrees | None = field(None, "Tensor-parallel degrees.", min_length=1)
    pipeline_parallel: Degrees | None = field(None, "Pipeline-parallel degrees.", min_length=1)
    virtual_stages: Degrees | None = field(None, "Model chunks of a pipeline stage (interleaving).", min_length=1)
    context_parallel: Degrees | None = field(None, "Context-parallel degrees.", min_length=1)
    expert_parallel: Degrees | None = field(None, "Expert-parallel degrees of mixture-of-experts models.", min_length=1)
    micro_batch: Degrees | None = field(None, "Sequences of a micro-batch.", unit="sequences", min_length=1)
    recompute: tuple[Recompute, ...] = field(
        ("none", "selective", "full"),
        "What the backward pass may compute again.",
        default_source="every kind of the step-time model",
        min_length=1,
    )
    zero_stages: tuple[Annotated[int, Field(ge=0, le=3)], ...] = field(
        (1, 3),
        "Sharding over data-parallel ranks: 0 none, 1 optimizer state, 2 gradients too, 3 weights too (FSDP).",
        default_source="distributed optimizer and FSDP, the two in common use",
        min_length=1,
    )


class Reliability(Frozen):
    """Failures, checkpoints and restarts; with the production factor, what a run loses beside its recipe."""

    model_config = _LATE

    mtbf_accelerator_hours: float | None = field(
        None,
        "Accelerator-hours between failures that stop the job.",
        unit="accelerator-hours",
        default_source="published failure rates of the accelerator's generation, 22,800 to 53,800",
        gt=0,
        le=1e12,
    )
    restart_s: float = field(
        600.0,
        "Detection, restart and reload after a failure.",
        unit="s",
        default_source="10 min: middle of the 5 to 20 min of Meta's research clusters (2024)",
        ge=0,
        le=1e6,
    )
    checkpoint_blocking_s: float = field(
        12.0,
        "Time that writing a checkpoint stops the job.",
        unit="s",
        default_source="asynchronous writing; with it the formula meets the 90 % that Llama 3 reports",
        ge=0,
        le=1e5,
    )
    checkpoint_interval_s: float | None = field(
        None, "Time between checkpoints; absent: the best one, sqrt(2 x blocking x MTBF).", unit="s", gt=0, le=1e7
    )
    fault_tolerant_replicas: int = field(
        1,
        "Replica groups that train on while one of them recovers; 1: a failure stops the whole job.",
        unit="groups",
        default_source="1: synchronous recovery, the usual case",
        ge=1,
        le=100_000,
    )
    production_factor: float | None = field(
        None,
        "Time of the whole run over that of its recipe's steps and goodput: slow starts, evaluation, stragglers.",
        unit="1",
        default_source="published whole runs of its kind: 1.1 to 1.6; production steps alone 1.10 to 1.17",
        ge=0.5,
        le=10,
    )


class SeveralSites(Frozen):
    """How several sites train one model together."""

    model_config = _LATE

    methods: tuple[Method, ...] = field(
        ("synchronous",),
        "synchronous: gradients cross every step; low_communication: every inner_steps steps (DiLoCo).",
        default_source="synchronous: equal loss of the others is shown at small sizes only",
        min_length=1,
    )
    gradient_bytes: float = field(
        2.0,
        "Bytes of one gradient on the way between sites, synchronous.",
        unit="bytes",
        default_source="16-bit gradients, as in the published two-site runs",
        gt=0,
        le=8,
    )
    inner_steps: int = field(
        100,
        "Steps between exchanges, low_communication.",
        unit="steps",
        default_source="100: Streaming DiLoCo and INTELLECT-1",
        ge=1,
        le=10_000,
    )
    exchange_bits: float = field(
        4.0,
        "Bits of one parameter's change on the way between sites, low_communication.",
        unit="bits",
        default_source="4-bit exchange of Streaming DiLoCo (arXiv 2501.18512)",
        gt=0,
        le=64,
    )
    token_penalty_fraction: float = field(
        0.05,
        "Tokens trained in addition for the same loss, low_communication.",
        unit="fraction",
        default_source="assumed: no loss was seen up to 1B parameters, larger runs have no exact twin",
        ge=0,
        le=1,
    )


class TrainingWorkload(Ruled):
    """A model to train by a deadline, or several jobs (``jobs``) on one fleet over a calendar."""

    model_config = _LATE

    kind: Literal["training"] = field(REQUIRED, "Kind of work.")
    model: ModelChoice | None = field(
        None, "Catalogue name or Hugging Face id of the model, path of a config.json, or the architecture itself."
    )
    parameters_b: float | None = field(
        None,
        "Parameters, where no architecture is known: a usual shape of that size is taken, and the plan states it.",
        unit="1e9",
        gt=0,
        le=1e6,
    )
    active_parameters_b: float | None = field(
        None, "Parameters that a token meets (mixture of experts); with parameters_b.", unit="1e9", gt=0, le=1e6
    )
    tokens: float | None = field(None, "Tokens to train on.", unit="tokens", gt=0, le=1e18)
    flop: float | None = field(
        None, "Compute of the run in place of tokens, counted by flop_convention.", unit="FLOP", gt=0, le=1e32
    )
    flop_convention: FlopConvention = field(
        "6nd",
        "How flop counts: 6nd (6 x active parameters x tokens), 8nd (with full recomputation), full or causal "
        "(attention over all or half of the pairs, and the head), hardware_full (full with recomputation).",
        default_source="6ND: what most published totals count",
    )
    sequence_tokens: int = field(
        8192,
        "Tokens of a sequence.",
        unit="tokens",
        default_source="8,192: main stage of Llama 3.1",
        ge=128,
        le=10_000_000,
    )
    global_batch_tokens: float = field(
        16e6,
        "Tokens of one optimizer step.",
        unit="tokens",
        default_source="16 million: main stage of Llama 3.1 405B",
        gt=0,
        le=1e12,
    )
    precisions: tuple[Precision, ...] = field(
        ("bf16",),
        "Number formats of the matrix multiplications that may be used.",
        default_source="bf16: FP8 and FP4 training is the planner's decision",
        min_length=1,
    )
    optimizer_state: OptimizerState = field(
        "adam",
        "What is kept for each parameter beside the weights: adam 16 bytes, bf16 moments 12, 8 bits 8, muon 12.",
        default_source="Adam in FP32 with 16-bit weights, 18 bytes a parameter in all",
    )
    accelerator_counts: Counts | None = field(
        None, "Counts of accelerators that the job may run on.", unit="accelerators", min_length=1
    )
    most_accelerators: int | None = field(
        None, "Most accelerators that the job may run on.", unit="accelerators", ge=1, le=10_000_000
    )
    layouts: TrainingLayouts = field(TrainingLayouts(), "How the model may be spread over accelerators.")
    reliability: Reliability = field(Reliability(), "Failures, checkpoints, restarts.")
    multi_site: SeveralSites = field(SeveralSites(), "Methods of training over several sites, and what they send.")
    liquid_speedup_fraction: float = field(
        0.0,
        "Share by which liquid-cooled servers step faster than the published, mostly air-cooled ones.",
        unit="fraction",
        default_source="0: published rows contain their throttling; 0.05 is defensible, burn tests show 0.17",
        ge=0,
        le=0.2,
    )
    delay_usd_per_day: float = field(
        0.0,
        "What each day until the model is there costs.",
        unit="USD/day",
        default_source="0: only the deadline counts",
        ge=0,
        le=1e12,
    )
    jobs: tuple[TrainingJob, ...] = field((), "Several jobs on one fleet.", default_source="one job", max_length=16)
    calendar_period_days: float = field(
        7.0,
        "Step of the calendar: jobs start at its multiples, and hold their servers for whole periods.",
        unit="days",
        default_source="a week (assumed); one job alone starts on its earliest day and holds its exact time",
        gt=0,
        le=366,
    )
    stack: str = field(
        "", "Software whose measured steps count.", default_source="empty: a mean over stacks", max_length=80
    )
    calibration: CalibrationChoice | None = field(
        None, "Path of a calibration that `optimize calibrate` made from the planner's own step times."
    )

    # What the serving side asks of any workload.

    @property
    def load(self) -> Load:
        """Jobs run at full load."""
        return Load(mean_fraction=1.0)

    @property
    def engine(self) -> Literal["generic"]:
        """No serving engine."""
        return "generic"

    @property
    def classes(self) -> tuple[RequestClass, ...]:
        """No requests."""
        return ()

    def all_classes(self) -> tuple[RequestClass, ...]:
        """No requests."""
        return ()

    def longest_context_tokens(self) -> int:
        """Tokens of the longest sequence."""
        return max((self.sequence_tokens, *(one.sequence_tokens or 0 for one in self.jobs)))

    def calibration_document(self) -> dict[str, Any] | None:
        """The planner's own calibration, when its path has been resolved; None without one."""
        return self.calibration.document if isinstance(self.calibration, Calibration) else None

    def all_jobs(self) -> tuple[TrainingJob, ...]:
        """Every job with nothing left open but its deadline; a workload of one job gives one, named ``all``."""
        inherited = (
            "sequence_tokens",
            "global_batch_tokens",
            "precisions",
            "accelerator_counts",
            "delay_usd_per_day",
        )
        size = ("model", "parameters_b", "active_parameters_b")
        amount = ("tokens", "flop")
        found = []
        for one in self.jobs or (TrainingJob(name="all"),):
            update = {name: getattr(self, name) for name in inherited if getattr(one, name) is None}
            # A job that states a size or an amount of its own does without the whole group of the workload's.
            for group in (size, amount):
                if all(getattr(one, name) is None for name in group):
                    update |= {name: getattr(self, name) for name in group}
            found.append(one.model_copy(update=update))
        return tuple(found)
