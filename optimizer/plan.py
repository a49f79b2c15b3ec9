"""The plan: what to buy or rent, what it costs, what every limit has to spare, where each figure came from.

A plan is a contract: a published schema, bytes that depend on the input alone (no clock, no seconds), read by reports
without a solver.
"""

from typing import Literal

from pydantic import ConfigDict, Field

from optimizer.instance.model import Instance
from optimizer.plan_cost import CostStudy
from optimizer.plan_shape import Shape as Shape
from optimizer.plan_training import TrainingPlan

PLAN_FORMAT_VERSION = 1

Trust = Literal["measured", "vendor", "fitted", "assumed", "user"]


class StopReason(Shape):
    """Why the solver stopped, apart from what it holds."""

    reason: Literal["optimal", "time_limit", "interrupt", "infeasible", "unbounded", "error"] = Field(
        description="Why the solver stopped."
    )
    holds: Literal["proven", "feasible", "nothing"] = Field(
        description="proven: within the requested gap and verified; feasible: verified, gap above the request."
    )
    objective_usd_per_hour: float = Field(description="Cost of the plan, USD per hour.")
    bound_usd_per_hour: float = Field(description="No plan can cost less than this, USD per hour.")
    gap: float = Field(description="(objective - bound) / objective.")
    requested_gap: float = Field(description="Gap that was asked for.")
    solver: str = Field(description="Name and version of the solver.")


class Prediction(Shape):
    """What the performance model says of one replica at the planned concurrency."""

    ttft_ms: float = Field(description="Mean time to first token, ms.")
    tpot_ms: float = Field(description="Mean time per output token, ms.")
    latency_ms: float = Field(description="Mean end-to-end time, ms.")
    requests_per_s: float = Field(description="Requests per second of one replica, saturated at its concurrency.")
    output_tokens_per_s: float = Field(description="Output tokens per second of one replica, saturated.")
    vram_gib: float = Field(description="Memory used on the fullest accelerator, GiB.")
    vram_items_gib: dict[str, float] = Field(description="Its items, GiB.")
    nvlink_gb_s: float = Field(
        description="Mean one-way traffic of one accelerator, GB/s, worse of prefill and decode."
    )
    nvlink_link_gb_s: float = Field(description="The link it is held against, GB/s one way.")
    accuracy: float = Field(description="Recovery at the asked confidence, fraction of the unquantized model.")
    accuracy_mean: float = Field(description="Expected recovery, fraction.")
    accuracy_probability: float | None = Field(
        description="Probability that the floor is met; null: too little is published."
    )
    busy_kw_per_server: float = Field(
        description="Power of a server in air, all its replicas busy, network not included, kW."
    )
    step_ms: dict[str, float] = Field(description="Where a decode step's time goes, ms.")
    evidence: str = Field(
        description="What measured points stand behind it: this configuration, this model, this accelerator, or none."
    )
    bands: dict[str, tuple[float, float]] = Field(
        description="80 % band of each predicted figure: model error on points the fit had not seen, not a percentile."
    )


class PrefillRole(Shape):
    """Prefill replicas of a unit, which feed its decode replicas with prompts' caches over the network."""

    replicas: int = Field(description="Prefill replicas of one unit.")
    tensor_parallel: int
    pipeline_parallel: int
    expert_parallel: int
    attention_data_parallel: int
    requests_per_s: float = Field(description="Prompts per second of all of them, if they never waited.")
    busy_fraction: float = Field(description="Share of the time they are busy when the unit carries its peak.")
    vram_gib: float = Field(description="Memory used on the fullest accelerator, prompts held included, GiB.")
    transfer_ms: float = Field(description="One prompt's cache on its way to a decode replica, ms; part of TTFT.")
    transfer_gb: float = Field(description="Bytes of one prompt's cache, GB.")
    link_gb_s: float = Field(description="Caches sent or taken by one accelerator, the worse end, GB/s one way.")
    link_limit_gb_s: float = Field(description="The network link it is held against, GB/s one way.")


class Deployment(Shape):
    """Replicas of one layout in one pool, or units of prefill and decode replicas (``prefill`` is given then).

    Of units the degrees, concurrency, memory items and parts of a step are those of a decode replica; rates are the
    unit's; memory in all, weights and link traffic are the worse of both roles.
    """

    id: str = Field(description="Stable name of the deployment.")
    request_class: str = Field(description="Class it serves.")
    accelerator: str = Field(description="Accelerator id.")
    server_type: str = Field(description="Server type.")
    power_cap_fraction: float = Field(default=1.0, description="Most that accelerators draw, of their TDP; 1: no cap.")
    pool: str = Field(description="Pool of servers it runs on.")
    tensor_parallel: int
    pipeline_parallel: int
    expert_parallel: int
    attention_data_parallel: int
    accelerators_per_replica: int = Field(description="Of a whole unit where there are two roles.")
    prefill: PrefillRole | None = Field(None, description="Prefill role of a unit; null: replicas do both phases.")
    decode_replicas: int = Field(1, description="Decode replicas of a unit; 1 where replicas do both phases.")
    scheme: str = Field(description="Weights-and-activations scheme.")
    kv_scheme: str = Field(description="KV scheme.")
    recovery: str = Field(description="Recovery step.")
    concurrency: int = Field(description="Requests in flight per replica, of a unit per decode replica.")
    replicas: int = Field(description="Replicas, or units of two roles.")
    rates_requests_per_s: tuple[float, ...] = Field(
        description="Requests per second served at each level that has hours, in their order; also at a peak without"
        " hours where the tariff charges for it."
    )
    replicas_by_level: tuple[int, ...] = Field(
        (),
        description="Replicas that run at each level that has hours, on servers that are paid by level; empty: all of "
        "them always.",
    )
    prediction: Prediction


class ServerGroup(Shape):
    """Servers of one pool."""

    pool: str
    server_type: str
    accelerator: str
    accelerators_per_server: int
    power_cap_fraction: float = Field(default=1.0, description="Most that accelerators draw, of their TDP; 1: no cap.")
    sourcing: Literal["owned", "buy", "on_demand", "reserved_1yr", "reserved_3yr", "spot"]
    provider: str = Field("", description="Who rents them out; empty where the planner states the price.")
    region: str = Field("", description="Where they are rented.")
    cooling: str | None = Field(description="Cooling option of servers in the planner's hall.")
    servers: int = Field(description="All servers of the pool, spares included; the most of any level.")
    servers_by_level: tuple[int, ...] = Field(
        (),
        description="Servers that run at each level that has hours, where they are paid by level; empty: all, always.",
    )
    in_service: int
    spare: int
    racks: int = Field(description="Racks they fill; 0 for rented servers.")
    servers_per_rack: int
    server_kw: float = Field(description="Most power of one server with its network share, kW.")
    idle_kw: float = Field(description="Power of one server with no requests, kW.")


class PackedServers(Shape):
    """Servers of one pool that hold the same replicas."""

    pool: str
    servers: int
    level: int | None = Field(
        None,
        description="Which of the levels that have hours, where servers are paid by level; null: every level.",
    )
    replicas: dict[str, int] = Field(description="Replicas of each deployment, by id, on this set of servers together.")


class CoolingPlant(Shape):
    """A cooling plant and the heat it is sized for."""

    option: str
    heat_kw: float
    pue_mean: float
    pue_design: float


class NetworkTier(Shape):
    """The network that bought accelerators of one link speed share."""

    fabric: str
    accelerators: int


class Level(Shape):
    """A load level."""

    fraction: float
    hours_per_year: float
    usd_per_kwh: float | None = Field(
        None, description="Mean energy price of its hours, weighted with the load; null without a tariff."
    )


class BillLine(Shape):
    """One line of the bill: quantity x unit price x factors = USD per year."""

    component: str
    item: str
    quantity: float
    unit: str
    unit_price_usd: float = Field(description="Price of one unit, before factors.")
    factors: dict[str, float] = Field(description="What the price is multiplied with, by name.")
    usd_per_year: float
    capital_usd: float = Field(description="Paid at the start, USD; 0 for running cost.")
    source: str
    as_of: str
    trust: Trust


class Bill(Shape):
    """Named components whose sum is the objective."""

    lines: tuple[BillLine, ...]
    usd_per_year_by_component: dict[str, float]
    usd_per_year: float
    usd_per_hour: float
    usd_over_horizon: float = Field(description="Present value over the horizon.")
    usd_per_million_output_tokens: float = Field(description="Served; of a plan for training, tokens trained.")
    usd_per_month: float | None = Field(
        default=None, description="A twelfth of the year; null in plans of earlier versions."
    )
    usd_per_million_total_tokens: float | None = Field(
        default=None, description="Prompt and output tokens served; null for training and in plans of earlier versions."
    )
    usd_per_accelerator_hour_installed: float | None = Field(
        default=None, description="Of all accelerators, spares included, all year; null as above."
    )
    usd_per_accelerator_hour_used: float | None = Field(
        default=None,
        description="Of accelerators at work: the rate served over that of a saturated replica; null as above.",
    )
    capital_usd: float
    assumed_fraction: float = Field(description="Share of yearly cost that rests on assumed figures.")
    oldest_price: str = Field(description="Oldest date among the prices used.")


class Headroom(Shape):
    """One limit: what it asks, what the plan reaches, what is left."""

    limit: str
    field: str
    label: str
    unit: str
    direction: Literal["<=", ">="]
    needed: float
    reached: float
    spare_fraction: float = Field(description="(needed - reached) / needed for <=, (reached - needed) / needed for >=.")
    binding: bool = Field(description="No candidate or one server less would do: the limit holds the plan back.")
    where: str = Field("", description="Deployment, pool or class it is reached at.")


class RunnerUp(Shape):
    """The cheapest plan that does without one thing this plan uses."""

    without: str = Field(description="What it does without, e.g. accelerator h100-80gb-sxm.")
    summary: str
    usd_per_hour: float | None = Field(description="Its cost; null when there is no such plan.")
    extra_fraction: float | None = Field(description="How much dearer, as a fraction.")
    reason: str


class Uses(Shape):
    """What a plan uses; two plans are distinct when one of these differs."""

    accelerators: tuple[str, ...]
    schemes: tuple[str, ...] = Field(
        description="Weights-and-activations scheme, KV scheme and recovery step; of runs the number format."
    )
    cooling: tuple[str, ...] = Field(description="Cooling options of bought servers.")
    sourcing: tuple[str, ...]
    sites: tuple[str, ...] = Field((), description="Named sites of bought servers of runs.")


class Ranked(Shape):
    """A further plan of the ranking: the cheapest that does without something of each plan before it."""

    rank: int = Field(description="2 for the next best plan.")
    summary: str
    uses: Uses
    holds: Literal["proven", "feasible"] = Field(description="proven: none between this rank and the one before.")
    usd_per_hour: float
    usd_per_year: float
    extra_fraction: float = Field(description="How much dearer than the plan, as a fraction.")
    capital_usd: float
    accelerators: int
    power_kw: float
    better: tuple[str, ...] = Field(description="Figures in which it is better than the plan.")
    worse: tuple[str, ...] = Field(description="Figures in which it is worse, cost aside.")
    reason: str = Field(description="Which components of the bill are dearer or cheaper.")


class Baseline(Shape):
    """What the plan is held against: today's fleet, or what one would have done without a search."""

    name: str
    rule: str = Field(description="How it was made.")
    summary: str | None = Field(description="What it uses; null where the rule gives no plan.")
    reason: str = Field(description="Why there is none; empty where there is one.")
    broken: tuple[str, ...] = Field(description="Limits that it breaks, each with what is needed and reached.")
    is_owned: bool = Field(description="Whether it is paid already: then its capital counts in no saving and payback.")
    usd_per_hour: float | None
    usd_per_year: float | None
    running_usd_per_year: float | None = Field(description="Its yearly cost without what capital costs.")
    capital_usd: float | None
    accelerators: int | None
    power_kw: float | None
    saving_usd_per_year: float | None = Field(
        description="What the plan costs less a year, capital as annuities; an owned baseline counts as it runs."
    )
    saving_fraction: float | None = Field(description="The same as a share of the baseline's cost.")
    saving_kw: float | None = Field(description="What the plan draws less at the meter, kW.")
    extra_capital_usd: float | None = Field(description="What the plan takes more at the start, USD.")
    payback_months: int | None = Field(
        description="First month by whose end the plan has cost no more in all; 0: it takes no more capital and costs"
        " less; null: not within the horizon, or a run, which is paid once."
    )
    usd: float | None = Field(None, description="Training: whole cost of its runs.")
    days: float | None = Field(None, description="Training: day on which its last job is done.")
    saving_usd: float | None = Field(None, description="Training: what the plan's runs cost less in all.")
    saving_days: float | None = Field(None, description="Training: how much sooner the plan's last job is done.")


class DefaultedField(Shape):
    """A field the planner left to its default."""

    field: str
    value: str
    unit: str
    source: str


class CatalogRow(Shape):
    """A catalogue row the plan rests on."""

    table: str
    id: str
    row: dict[str, object]


class Provenance(Shape):
    """What made the plan."""

    tool: str
    instance_sha256: str = Field(description="Hash of the resolved instance.")
    catalog_sha256: str = Field(description="Hash of the packaged catalogue.")
    factors_sha256: str = Field(description="Hash of the performance factors.")
    solver: str
    options: dict[str, float | int]


class SearchCount(Shape):
    """How much was searched."""

    candidates: int = Field(description="Deployments predicted.")
    admissible: int = Field(description="Deployments that break no limit.")
    kept: int = Field(description="Deployments left after domination.")
    killed_by_limit: dict[str, int] = Field(description="Deployments that break each limit, some more than one.")
    not_startable: dict[str, int] = Field(description="Layouts that no engine starts, by reason.")


class Plan(Shape):
    """A verified plan."""

    model_config = ConfigDict(title="Plan of gpu-cluster-optimizer")

    format_version: Literal[1] = 1
    name: str
    outcome: StopReason
    deployments: tuple[Deployment, ...]
    servers: tuple[ServerGroup, ...]
    packing: tuple[PackedServers, ...]
    plants: tuple[CoolingPlant, ...]
    network: tuple[NetworkTier, ...]
    levels: tuple[Level, ...]
    accelerators: int
    power_kw: float = Field(description="Power at the meter in the hottest hour, kW.")
    energy_kwh_per_year: float
    plant_load_fractions: dict[str, float] | None = Field(
        default=None,
        description="Mean IT power of the servers in the hall under each cooling option over the most they draw, which"
        " plants are sized for; to hold against site.plant_load_fraction. Null for training and in earlier versions.",
    )
    facility: Literal["colocation", "own_build"] | None = Field(
        None, description="Hall of bought servers; null where none is bought, and in plans of earlier versions."
    )
    posts: float = Field(0.0, description="Staff for bought servers and an own hall, full-time equivalents.")
    carbon_tonnes_per_year: float | None = Field(
        None, description="Grid carbon of the energy of bought servers, t; null in plans of earlier versions."
    )
    water_m3_per_year: float | None = Field(
        None, description="Water that cooling of bought servers takes, m3; null in plans of earlier versions."
    )
    bill: Bill
    headroom: tuple[Headroom, ...]
    runners_up: tuple[RunnerUp, ...]
    ranking: tuple[Ranked, ...] = Field(default=(), description="Next best distinct plans, where they were asked for.")
    baseline: Baseline | None = Field(
        default=None, description="What the plan is held against, where it was asked for."
    )
    cost_study: CostStudy | None = Field(default=None, description="Why it costs that, where it was asked for.")
    search: SearchCount
    messages: tuple[str, ...]
    training: TrainingPlan | None = Field(default=None, description="Jobs and sites, of a plan for training.")
    defaults: tuple[DefaultedField, ...]
    instance: Instance
    catalog_rows: tuple[CatalogRow, ...]
    provenance: Provenance


def rated_levels(plan: Plan) -> tuple[Level, ...]:
    """Levels at which a plan states rates: those that last, and the peak where the utility charges for it."""
    tariff = plan.instance.site.tariff
    charged = tariff is not None and tariff.demand_usd_per_kw_month > 0.0
    return tuple(
        level for place, level in enumerate(plan.levels) if level.hours_per_year > 0.0 or (place == 0 and charged)
    )
