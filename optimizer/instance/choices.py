"""What may be chosen: accelerators, layouts, schemes, recovery, cooling, sourcing, mixing."""

from typing import Annotated, Literal

from pydantic import Field

from optimizer.instance.fields import Ruled, field

Degree = Annotated[int, Field(ge=1, le=4096)]
Sourcing = Literal["buy", "on_demand", "reserved_1yr", "reserved_3yr", "spot"]
ServingRoles = Literal["unified", "disaggregated"]
Count = Annotated[int, Field(ge=0)]
RecoveryStepName = Literal["none", "qad", "qat-lora"]


class Choices(Ruled):
    """The options that the program searches. An absent list means every option of the catalogue that is offered."""

    accelerators: tuple[str, ...] | None = field(
        None,
        "Accelerators that may be used, by catalogue id.",
        default_source="catalogue rows with availability current",
        min_length=1,
    )
    supply: dict[str, Count] = Field(
        default_factory=dict,
        description="Most accelerators of a type that can be had, owned, bought and rented together, by catalogue id.",
        json_schema_extra={"unit": "accelerators", "default_source": "no limit of supply"},
    )
    tensor_parallel: tuple[Degree, ...] = field(
        (1, 2, 4, 8, 16, 32, 64),
        "Tensor-parallel degrees.",
        default_source="powers of two that engines run",
        min_length=1,
    )
    pipeline_parallel: tuple[Degree, ...] = field(
        (1, 2, 3, 4, 6, 8),
        "Pipeline-parallel degrees.",
        default_source="degrees seen in practice (assumed)",
        min_length=1,
    )
    expert_parallel: tuple[Degree, ...] | None = field(
        None,
        "Expert-parallel degrees of mixture-of-experts models.",
        default_source="1, and the whole width of a stage",
        min_length=1,
    )
    attention_data_parallel: tuple[Degree, ...] = field(
        (1, 2, 4, 8, 16, 32),
        "Attention-data-parallel degrees (MLA and mixture-of-experts models).",
        default_source="powers of two that engines run",
        min_length=1,
    )
    max_concurrency: int = field(
        1024,
        "Most requests in flight on one replica, for each of its attention-data-parallel ranks.",
        unit="requests",
        default_source="vLLM's max_num_seqs default on current accelerators",
        ge=1,
        le=65_536,
    )
    sequence_slots: int | None = field(
        None,
        "Sequences that the engine schedules at once on each attention-data-parallel rank, as it is told to (vLLM's"
        " max_num_seqs); its sampler's memory grows with them.",
        unit="sequences",
        default_source="the engine's default on the accelerator: vLLM 1,024 from 70 GiB on (A100 excepted), else 256",
        ge=1,
        le=65_536,
    )
    serving_roles: tuple[ServingRoles, ...] = field(
        ("unified",),
        "unified: every replica works on prompts and decodes; disaggregated: units of prefill and of decode replicas,"
        " with each prompt's cache sent over the network. Both may stand in one plan.",
        default_source="one pool: nothing is measured for two in the packaged points, and the search grows by them",
        min_length=1,
    )
    unit_replicas: tuple[Annotated[int, Field(ge=1, le=16)], ...] = field(
        (1, 2, 3, 4, 5, 6, 7),
        "How many replicas of a role one disaggregated unit may have (xPyD: x for prefill, y for decode).",
        unit="replicas",
        default_source="units of benchmarks of disaggregated serving (assumed)",
        min_length=1,
    )
    schemes: tuple[str, ...] | None = field(
        None,
        "Quantization schemes of weights and activations, by catalogue id.",
        default_source="every scheme of the catalogue; an accelerator that cannot run one is not offered with it",
        min_length=1,
    )
    kv_schemes: tuple[str, ...] = field(
        ("kv16",),
        "Quantization schemes of the KV cache, by catalogue id.",
        default_source="16 bits: few published measurements of 8-bit KV at long context",
        min_length=1,
    )
    recovery_steps: tuple[RecoveryStepName, ...] = field(
        ("none",),
        "Fine-tuning after quantization that may be bought to win accuracy back.",
        default_source="none: a training run is the planner's decision",
        min_length=1,
    )
    cooling: tuple[str, ...] | None = field(
        None,
        "Cooling options for bought servers, by catalogue id.",
        default_source="catalogue options that are offered by default",
        min_length=1,
    )
    power_cap_fractions: tuple[Annotated[float, Field(ge=0.6, le=1)], ...] = field(
        (1.0,),
        "Power states of servers in the hall: accelerators may be told to draw no more than this fraction of their"
        " board power (nvidia-smi -pl and the like). All servers of a type run in one state. 1 is no cap.",
        unit="fraction",
        default_source="no cap: speeds under one are assumed from measurements of other cards",
        min_length=1,
    )
    liquid_retrofit: bool = field(
        False,
        "Whether servers that are not sold for liquid cooling may be converted to it (cold plates, or made fit for"
        " immersion), at economics.liquid_retrofit_usd_per_kw.",
        default_source="no: the maker's warranty may end with it",
    )
    sourcing: tuple[Sourcing, ...] = field(
        ("buy", "on_demand", "reserved_1yr", "reserved_3yr"),
        "Ways to get servers. Those of `inventory` are there whatever stands here.",
        default_source="every way with a price but spot, whose servers may be withdrawn",
        min_length=1,
    )
    providers: tuple[str, ...] | None = field(
        None,
        "Providers that servers may be rented from, by their name in the catalogue or in own rows.",
        default_source="every provider with a price",
        min_length=1,
    )
    regions: tuple[str, ...] | None = field(
        None,
        "Regions that servers may be rented in, by their name in the catalogue or in own rows.",
        default_source="every region with a price: nothing ties the work to a place",
        min_length=1,
    )
    provider_supply: dict[str, dict[str, Count]] = Field(
        default_factory=dict,
        description="Most accelerators of a type that one provider rents out: provider -> id -> accelerators.",
        json_schema_extra={"unit": "accelerators", "default_source": "no limit of a provider's supply"},
    )
    spot_availability_fraction: float | None = field(
        None,
        "Share of the paid hours in which a spot server serves; the rest goes to withdrawals, restarts and loading. "
        "Asked for where `sourcing` has spot.",
        unit="fraction",
        gt=0,
        le=1,
    )
    max_accelerator_types: int | None = field(
        None,
        "Most accelerator types in the fleet (1 forbids a mix).",
        unit="types",
        default_source="mixes are allowed",
        ge=1,
    )
