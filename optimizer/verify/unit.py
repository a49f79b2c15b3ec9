"""A unit of prefill and decode replicas, computed by the checker itself (docs/method.md section 2)."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Final

from optimizer.performance.bands import EVIDENCE, load_bands
from optimizer.performance.deployments import Deployments, Traffic
from optimizer.performance.factors import Factors
from optimizer.performance.serving import Prepared, ServingPrediction, prepare
from optimizer.performance.two_pools import cache_bytes_of_prompt
from optimizer.plan import Deployment, PrefillRole
from optimizer.units import BYTES_PER_GB, MS_PER_S
from optimizer.verify.facts import Facts
from optimizer.verify.finding import Ledger, close

#: Most of the time that a prefill replica may be busy at the peak.
_MOST_BUSY: Final = 0.95
#: Prompts that lie in a prefill replica for each rank: one worked on, one being sent.
_PROMPTS: Final = 2.0
_STEP: Final = ("weights_ms", "kv_ms", "compute_ms", "communication_ms", "overhead_ms", "prefill_ms")


@dataclass(frozen=True, slots=True)
class OwnUnit:
    """The unit's figures by the names of a prediction, and those of its prefill role by the names of the plan."""

    seen: Mapping[str, float]
    role: Mapping[str, float]
    startable: bool


def own_unit(
    facts: Facts,
    one: Deployment,
    role: PrefillRole,
    sides: tuple[Deployments, Deployments],
    traffic: Traffic,
    factors: Factors,
) -> OwnUnit:
    """Compute a unit at the plan's concurrency from its two replicas, ``sides`` = (prefill, decode)."""
    model, targets = facts.model.architecture, facts.instance.targets
    alone = replace(traffic, output_tokens=1.0)
    prompts, decode = (
        prepare(model, side, kind, factors, usable_memory_fraction=targets.vram_fraction)
        for side, kind in zip(sides, (alone, traffic), strict=True)
    )
    quiet = replace(decode.scalars, interference=0.0, queue_fraction=0.0, clump_prompts=0.0)
    columns = replace(decode.columns, prefill_link_gb_s=decode.columns.prefill_link_gb_s * 0.0)
    at = Prepared(columns, quiet).at(float(one.concurrency))
    seen = {field.name: float(getattr(at, field.name)[0]) for field in fields(ServingPrediction)}

    def prompt(name: str) -> float:
        return float(getattr(prompts.columns, name)[0])

    tensor_p, tensor_d = role.tensor_parallel * role.pipeline_parallel, one.tensor_parallel * one.pipeline_parallel
    size_gb = float(cache_bytes_of_prompt(model, sides[1].kv_bytes, traffic.input_tokens)[0]) / BYTES_PER_GB
    link = float(sides[1].scale_out_gb_s[0])
    transfer = MS_PER_S * size_gb / (link * factors.scale_out_link_fraction * min(tensor_p, tensor_d))
    after_first = (traffic.output_tokens - 1.0) * seen["tpot_ms"]
    prompts_per_s = role.replicas * MS_PER_S * prompt("ranks") / prompt("prefill_share_ms")
    carried = one.decode_replicas * one.concurrency * MS_PER_S / (transfer + after_first)
    rho = targets.peak_utilization_fraction
    full = min(carried, prompts_per_s * min(1.0, _MOST_BUSY / rho))
    busy = rho * full / prompts_per_s
    wait = busy * prompt("prefill_share_ms") / (2.0 * (1.0 - busy))
    first = prompt("prefill_ms") + wait + transfer + 1.5 * seen["tpot_ms"] * float(quiet.tokens_per_step)
    first += float(quiet.request_ms)
    prompt_gib = prompt("sequence_gib") * _PROMPTS * prompt("ranks") / role.attention_data_parallel
    memory = prompt("fixed_gib") + max(prompt_gib, prompt("longest_gib"))
    ends = (
        role.replicas * tensor_p * role.attention_data_parallel,
        (one.decode_replicas * tensor_d * one.attention_data_parallel),
    )
    slow, late, few = _multipliers(targets.confidence, traffic.engine)
    seen.update({name: seen[name] * slow for name in _STEP})
    seen.update(
        tpot_ms=seen["tpot_ms"] * slow,
        ttft_ms=first * late,
        latency_ms=first * late + after_first * slow,
        requests_per_s=full * few,
        output_tokens_per_s=full * few * traffic.output_tokens,
        total_gib=max(seen["total_gib"], memory),
        weights_gib=max(seen["weights_gib"], prompt("weights_gib")),
        nvlink_gb_s=max(seen["nvlink_gb_s"], prompt("prefill_link_gb_s")),
        nvlink_limit_gb_s=min(seen["nvlink_limit_gb_s"], prompt("link_limit_gb_s")),
        kv_link_gb_s=full * size_gb / min(ends),
    )
    figures = {
        "requests_per_s": prompts_per_s,
        "busy_fraction": busy * few,
        "vram_gib": memory,
        "transfer_ms": transfer,
        "transfer_gb": size_gb,
        "link_gb_s": seen["kv_link_gb_s"],
        "link_limit_gb_s": link,
    }
    return OwnUnit(seen, figures, prompt("largest_concurrency") >= _PROMPTS * prompt("ranks"))


def _multipliers(confidence: float, engine: str) -> tuple[float, float, float]:
    """Of TPOT, TTFT and rates at a confidence: no measured point stands behind a unit."""
    if confidence <= 0.5:
        return 1.0, 1.0, 1.0
    bands, none = load_bands(), EVIDENCE.index("none")

    def quantile(metric: str, level: float) -> float:
        return float(bands.multiplier(metric, engine, none, level))

    return (
        max(1.0, quantile("tpot_ms", confidence)),
        max(1.0, quantile("ttft_ms", confidence)),
        min(1.0, quantile("output_tokens_per_s", 1.0 - confidence)),
    )


def check_role(ledger: Ledger, path: str, role: PrefillRole, own: OwnUnit) -> None:
    """The prefill role's figures, and that both roles carry what the unit carries."""
    for name, number in own.role.items():
        found = getattr(role, name)
        ledger.check(close(found, number), "V-PREDICT", f"{path}.{name}", found, number, "differs from the checker's")
    ledger.check(own.startable, "V-PREDICT", path, "no start", "two prompts a rank", "a prefill replica cannot start")
    enough = own.seen["requests_per_s"] <= own.role["requests_per_s"] * (1.0 + 1e-9)
    found = own.role["requests_per_s"]
    ledger.check(enough, "V-RATE", path, found, own.seen["requests_per_s"], "prefill replicas feed the decode replicas")
