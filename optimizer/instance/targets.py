"""What must hold: latency, accuracy, memory, links, spares. Each is one limit of ``optimizer.limits``."""

from optimizer.instance.fields import Ruled, field


class Targets(Ruled):
    """Limits of every deployment. A latency that is absent is not limited."""

    tpot_ms: float | None = field(
        None, "Longest mean time between two generated tokens of a request (TPOT).", unit="ms", gt=0, le=1e9
    )
    ttft_ms: float | None = field(None, "Longest mean time to the first token (TTFT).", unit="ms", gt=0, le=1e9)
    latency_ms: float | None = field(
        None, "Longest mean end-to-end time: TTFT + (output_tokens - 1) x TPOT.", unit="ms", gt=0, le=1e12
    )
    confidence: float = field(
        0.5,
        "Probability with which latency and throughput must hold, over the error of the predictions (held-out points).",
        unit="probability",
        default_source="0.5: predictions as they are; their band is always shown",
        ge=0.5,
        le=0.99,
    )
    accuracy_floor_fraction: float | None = field(
        None,
        "Least accuracy relative to the unquantized model on a suite of benchmarks (0.987: 98.7 % of its score).",
        unit="fraction",
        default_source="absent: 0.99, the threshold of MLPerf Inference for most models",
        gt=0,
        le=1,
    )
    accuracy_floor_score: float | None = field(
        None,
        "Least absolute score; needs accuracy_baseline_score, the score of the unquantized model on the same suite.",
        unit="points",
        gt=0,
        le=100,
    )
    accuracy_baseline_score: float | None = field(
        None, "Score of the unquantized model that accuracy_floor_score is held against.", unit="points", gt=0, le=100
    )
    accuracy_confidence: float = field(
        0.5,
        "Probability with which the accuracy floor must hold, over models (0.5: the expected model).",
        unit="probability",
        default_source="0.5: the expected case; the probability of meeting the floor is always shown",
        ge=0.5,
        lt=1,
    )
    vram_fraction: float = field(
        0.9,
        "Share of the driver's memory that an engine may use.",
        unit="fraction",
        default_source="vLLM's gpu_memory_utilization default, 0.9",
        gt=0,
        le=1,
    )
    vram_gib_per_accelerator: float | None = field(
        None, "Most memory used on one accelerator, all items together.", unit="GiB", gt=0
    )
    weights_gib_per_accelerator: float | None = field(
        None, "Most memory taken by weights on one accelerator.", unit="GiB", gt=0
    )
    nvlink_fraction: float = field(
        1.0,
        "Most of the scale-up link (NVLink, xGMI; PCIe where there is none) that mean traffic may take, one way.",
        unit="fraction",
        default_source="the link itself",
        gt=0,
        le=1,
    )
    nvlink_gb_s: float | None = field(
        None, "Most scale-up traffic of one accelerator, one way, mean over a step.", unit="GB/s", gt=0
    )
    kv_link_fraction: float = field(
        0.5,
        "Most of an accelerator's network link that caches may take on their way from prefill to decode replicas, one"
        " way, mean over time; only where choices.serving_roles has disaggregated.",
        unit="fraction",
        default_source="half the link is left for bursts and for other traffic (assumed)",
        gt=0,
        le=1,
    )
    peak_utilization_fraction: float = field(
        0.9,
        "Most of its capacity that a replica carries at the peak: the rest is room for random arrivals (queueing).",
        unit="fraction",
        default_source="assumed; near 1 the time to the first token is a queue",
        gt=0,
        le=1,
    )
    spare_fraction: float = field(
        0.05,
        "Spare servers per server in service of each bought type, rounded up to whole servers.",
        unit="fraction",
        default_source="5 %: the usual figure of the practitioners' cost models (assumed)",
        ge=0,
        le=1,
    )
    spare_servers: int = field(
        0,
        "Least count of spare servers of each bought type that is used.",
        unit="servers",
        default_source="spare_fraction alone",
        ge=0,
        le=1000,
    )
    availability_fraction: float | None = field(
        None,
        "Least probability that as many servers of each type are up as are in service; the least spares for it stand"
        " ready, or as many as spare_fraction and spare_servers ask for, whichever is most.",
        unit="probability",
        gt=0,
        lt=1,
    )
    failures_per_accelerator_year: float = field(
        0.04,
        "Failures of an accelerator a year that take its server down until it is replaced.",
        unit="1/year",
        default_source="4 %: permanent failures in large fleets, catalogue figure gpu_failure_permanent",
        ge=0,
        le=10,
    )
    repair_days: float = field(
        7.0,
        "Days until a server with a failed accelerator is up again.",
        unit="days",
        default_source="a week for the part to come and be changed (assumed)",
        gt=0,
        le=365,
    )
    deadline_days: float | None = field(
        None, "Training: day of the calendar by which every job is done, counted from its first day.", unit="days", gt=0
    )
    mfu_floor_fraction: float | None = field(
        None,
        "Training: least model FLOP of a step (causal attention, no recomputation) over the peak of its format.",
        unit="fraction",
        gt=0,
        le=1,
    )
    scale_out_fraction: float | None = field(
        None,
        "Training: most of an accelerator's network interface that mean traffic may take, one way.",
        unit="fraction",
        gt=0,
        le=1,
    )

    def accuracy_floor(self) -> float:
        """Floor relative to the unquantized model, 0..1 (0.99 where the planner states none: MLPerf Inference)."""
        if self.accuracy_floor_score is not None and self.accuracy_baseline_score is not None:
            return self.accuracy_floor_score / self.accuracy_baseline_score
        return 0.99 if self.accuracy_floor_fraction is None else self.accuracy_floor_fraction
