"""One row a limit: where it is set, its unit, its direction, its sentence.

The rows are read by the screen, the program, the checker, the explanation, the answer and the docs, so that a limit has
one name everywhere.
"""

from dataclasses import dataclass
from typing import Final, Literal

Direction = Literal["<=", ">="]
Scope = Literal["deployment", "fleet"]


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit.

    Attributes
    ----------
    name: key in a plan's headroom.
    family: module of ``constraints`` that owns it.
    field: path in the instance that sets its right-hand side.
    unit: unit of what is needed and reached.
    direction: ``<=`` when reached must stay below, ``>=`` when above.
    scope: ``deployment`` limits do not depend on the count of replicas; ``fleet`` limits are rows of the program.
    label: short label for a table.
    sentence: what it says, in a buyer's words.
    """

    name: str
    family: str
    field: str
    unit: str
    direction: Direction
    scope: Scope
    label: str
    sentence: str


LIMITS: Final[tuple[Limit, ...]] = (
    Limit(
        "vram_gib",
        "vram",
        "targets.vram_fraction",
        "GiB",
        "<=",
        "deployment",
        "VRAM per accelerator",
        "Everything an engine keeps on one accelerator fits into the share of memory it may use.",
    ),
    Limit(
        "vram_gib_per_accelerator",
        "vram",
        "targets.vram_gib_per_accelerator",
        "GiB",
        "<=",
        "deployment",
        "VRAM cap",
        "Everything on one accelerator stays below the planner's own cap.",
    ),
    Limit(
        "weights_gib_per_accelerator",
        "vram",
        "targets.weights_gib_per_accelerator",
        "GiB",
        "<=",
        "deployment",
        "weights per accelerator",
        "The weights on one accelerator stay below the planner's cap.",
    ),
    Limit(
        "tpot_ms",
        "latency",
        "targets.tpot_ms",
        "ms",
        "<=",
        "deployment",
        "latency per token",
        "The mean time between two tokens of a request stays below the target.",
    ),
    Limit(
        "ttft_ms",
        "latency",
        "targets.ttft_ms",
        "ms",
        "<=",
        "deployment",
        "first token",
        "The mean time to the first token stays below the target.",
    ),
    Limit(
        "latency_ms",
        "latency",
        "targets.latency_ms",
        "ms",
        "<=",
        "deployment",
        "end-to-end latency",
        "The mean time from request to last token stays below the target.",
    ),
    Limit(
        "accuracy",
        "accuracy",
        "targets.accuracy_floor_fraction",
        "fraction",
        ">=",
        "deployment",
        "accuracy kept",
        "Accuracy relative to the unquantized model holds at the stated confidence.",
    ),
    Limit(
        "nvlink_gb_s",
        "nvlink",
        "targets.nvlink_fraction",
        "GB/s",
        "<=",
        "deployment",
        "link traffic",
        "Mean one-way traffic of one accelerator over a step fits the allowed share of its link.",
    ),
    Limit(
        "nvlink_cap_gb_s",
        "nvlink",
        "targets.nvlink_gb_s",
        "GB/s",
        "<=",
        "deployment",
        "link traffic cap",
        "Mean one-way traffic of one accelerator over a step stays below the planner's cap.",
    ),
    Limit(
        "kv_link_gb_s",
        "transfer",
        "targets.kv_link_fraction",
        "GB/s",
        "<=",
        "deployment",
        "KV transfer",
        "Caches that go from prefill to decode replicas take no more than the allowed share of the network link.",
    ),
    Limit(
        "throughput_requests_per_s",
        "throughput",
        "workload.demand",
        "requests/s or users",
        ">=",
        "fleet",
        "throughput",
        "Replicas carry the demand of the peak at the allowed utilization.",
    ),
    Limit(
        "power_kw",
        "power",
        "site.power_kw",
        "kW",
        "<=",
        "fleet",
        "power at the meter",
        "Servers, spares and cooling in the hottest hour stay below the site's power.",
    ),
    Limit(
        "carbon_tonnes_per_year",
        "environment",
        "site.carbon_tonnes_per_year",
        "t/year",
        "<=",
        "fleet",
        "carbon dioxide",
        "The grid's carbon dioxide for the energy of bought servers stays below the cap.",
    ),
    Limit(
        "water_m3_per_year",
        "environment",
        "site.water_m3_per_year",
        "m3/year",
        "<=",
        "fleet",
        "cooling water",
        "The water that cooling of bought servers takes stays below the cap.",
    ),
    Limit("racks", "space", "site.racks", "racks", "<=", "fleet", "racks", "Racks fit the site."),
    Limit(
        "floor_m2",
        "space",
        "site.floor_m2",
        "m2",
        "<=",
        "fleet",
        "floor",
        "Racks with their share of the aisles fit the floor.",
    ),
    Limit(
        "rack_kw",
        "cooling",
        "site.rack_kw",
        "kW",
        "<=",
        "fleet",
        "power per rack",
        "Each rack stays within what its cooling option can take away.",
    ),
    Limit(
        "budget_capex_usd",
        "budget",
        "economics.budget_capex_usd",
        "USD",
        "<=",
        "fleet",
        "capital budget",
        "Capital spent at the start stays below the budget.",
    ),
    Limit(
        "budget_usd_per_year",
        "budget",
        "economics.budget_usd_per_year",
        "USD/year",
        "<=",
        "fleet",
        "yearly budget",
        "Yearly cost, capital as an annuity, stays below the budget.",
    ),
    Limit(
        "supply",
        "supply",
        "choices.supply",
        "accelerators",
        "<=",
        "fleet",
        "supply",
        "No more accelerators of a type are used than can be had.",
    ),
    Limit(
        "provider_supply",
        "supply",
        "choices.provider_supply",
        "accelerators",
        "<=",
        "fleet",
        "provider's supply",
        "No more accelerators of a type are rented from a provider than it rents out.",
    ),
    Limit(
        "inventory",
        "supply",
        "inventory",
        "servers",
        "<=",
        "fleet",
        "owned servers",
        "No more servers are owned than the inventory has.",
    ),
    Limit(
        "accelerator_types",
        "supply",
        "choices.max_accelerator_types",
        "types",
        "<=",
        "fleet",
        "accelerator types",
        "The fleet has no more accelerator types than allowed.",
    ),
    Limit(
        "training_vram_gib",
        "training",
        "targets.vram_fraction",
        "GiB",
        "<=",
        "deployment",
        "VRAM per accelerator",
        "States, activations and logits of the fullest stage fit the memory of its accelerators.",
    ),
    Limit(
        "training_vram_cap_gib",
        "training",
        "targets.vram_gib_per_accelerator",
        "GiB",
        "<=",
        "deployment",
        "VRAM cap",
        "Everything on one accelerator stays below the planner's own cap.",
    ),
    Limit(
        "training_nvlink",
        "training",
        "targets.nvlink_fraction",
        "fraction",
        "<=",
        "deployment",
        "link share",
        "Mean traffic of an accelerator over a step fits the allowed share of its scale-up link.",
    ),
    Limit(
        "training_nvlink_cap_gb_s",
        "training",
        "targets.nvlink_gb_s",
        "GB/s",
        "<=",
        "deployment",
        "link traffic cap",
        "Mean traffic of an accelerator over a step stays below the planner's cap.",
    ),
    Limit(
        "scale_out_fraction",
        "training",
        "targets.scale_out_fraction",
        "fraction",
        "<=",
        "deployment",
        "network share",
        "Mean traffic of an accelerator over a step fits the allowed share of its network interface.",
    ),
    Limit(
        "mfu_fraction",
        "training",
        "targets.mfu_floor_fraction",
        "fraction",
        ">=",
        "deployment",
        "MFU of a step",
        "A step makes the stated use of the matrix units.",
    ),
    Limit(
        "deadline_days",
        "training",
        "targets.deadline_days",
        "days",
        "<=",
        "deployment",
        "deadline",
        "Every job is done by its deadline.",
    ),
    Limit(
        "budget_usd",
        "training",
        "economics.budget_usd",
        "USD",
        "<=",
        "fleet",
        "budget of the jobs",
        "All jobs together cost no more than the budget.",
    ),
    Limit(
        "accelerator_count",
        "training",
        "workload.most_accelerators",
        "accelerators",
        "<=",
        "deployment",
        "accelerators of a job",
        "A job runs on no more accelerators than stated.",
    ),
    Limit(
        "spare_servers",
        "spare",
        "targets.spare_fraction",
        "servers",
        ">=",
        "fleet",
        "spare servers",
        "Spare servers stand ready for those in service.",
    ),
)


def limit(name: str) -> Limit:
    """The row named ``name``; KeyError when there is none."""
    for row in LIMITS:
        if row.name == name:
            return row
    raise KeyError(name)
