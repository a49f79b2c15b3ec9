"""Units of prefill and decode replicas, listed from docs/method.md section 2 one by one, with the physics of a pair."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np

from optimizer.catalog.hardware import Accelerator
from optimizer.instance.workload import RequestClass
from optimizer.performance.deployments import Deployments
from optimizer.performance.serving import prepare
from optimizer.performance.two_pools import two_pools
from tests.oracle.listing import DeploymentLister, Layout


@dataclass(frozen=True)
class Unit:
    """One unit at its largest concurrency: name, accelerators, whole servers (0 inside one), rate and latency."""

    name: str
    width: int
    servers: int
    concurrency: int
    requests_per_s: float
    latency_ms: float


def units(
    lister: DeploymentLister,
    row: Accelerator,
    size: int,
    one_class: RequestClass,
    parts: dict[Layout, Deployments],
) -> Iterator[Unit]:
    """Every unit of layouts that start, in one scheme on one server type."""
    counts = sorted(set(lister.instance.choices.unit_replicas))
    for first, second in product(parts, parts):
        narrow = sorted(one.width for one in (first, second) if one.width <= size)
        if any(large % small for small, large in pairwise([*narrow, size])):
            continue
        for x, y in product(counts, counts):
            if math.gcd(x, y) > 1:
                continue
            whole = inside = 0
            for count, layout in ((x, first), (y, second)):
                if layout.width > size:
                    whole += count * math.ceil(layout.pipeline / (size // (layout.tensor * layout.data)))
                else:
                    inside += count * layout.width
            servers = 0 if whole == 0 and inside <= size else whole + math.ceil(inside / size)
            if (inside % size if servers else size % inside) != 0:
                continue
            found = _largest(lister, row, one_class, (parts[first], parts[second]), (x, y))
            if found is None:
                continue
            width = x * first.width + y * second.width
            yield Unit(f"{x}x{first}+{y}x{second}", width, servers, *found)


def _largest(
    lister: DeploymentLister,
    row: Accelerator,
    one_class: RequestClass,
    sides: tuple[Deployments, Deployments],
    counts: tuple[int, int],
) -> tuple[int, float, float] | None:
    """(concurrency, requests/s, latency) at the largest concurrency that keeps every limit; None where none does."""
    prefill, decode = sides
    targets, own = lister.instance.targets, one_class.targets
    traffic, usable = lister.traffic(one_class), targets.vram_fraction
    alone = replace(traffic, output_tokens=1)
    model, factors = lister.architecture, lister.factors
    prompts = prepare(model, prefill, alone, factors, usable_memory_fraction=usable)
    decoding = prepare(model, decode, traffic, factors, usable_memory_fraction=usable)
    held = 2 * int(prefill.pipeline_parallel[0])
    if float(prompts.columns.largest_concurrency[0]) < held * int(prefill.attention_data_parallel[0]):
        return None
    ranks = int(decode.attention_data_parallel[0])
    slots = min(lister.instance.choices.max_concurrency, lister.slots(row)) * ranks
    top = min(slots, int(float(decoding.columns.largest_concurrency[0])))
    rho = targets.peak_utilization_fraction
    prompt = prompts.at(float(held * int(prefill.attention_data_parallel[0])))
    sends = counts[0] * int(prefill.width[0])
    takes = counts[1] * int(decode.width[0])
    if top < 1:
        return None
    # Every concurrency at once, one a row.
    several, loads = np.zeros(top, dtype=np.int64), np.arange(1.0, top + 1.0)
    many: dict[str, Any] = {
        "prefill": prompts.take(several),
        "decode": decoding.take(several),
        "decode_deployments": decode.take(several),
        "prefill_deployments": prefill.take(several),
        "concurrency": loads,
    }
    calm = two_pools(model, traffic, factors, **many, prefill_busy_fraction=0.5)
    reads = counts[0] * calm.prefill_requests_per_s / 0.5
    rates = np.minimum(counts[1] * calm.decode_requests_per_s, reads * min(1.0, 0.95 / rho))
    seen = two_pools(model, traffic, factors, **many, prefill_busy_fraction=rho * rates / reads)
    latency = seen.ttft_ms + (one_class.request.output_tokens - 1) * seen.tpot_ms
    weights = max(float(prompt.weights_gib[0]), float(decoding.columns.weights_gib[0]))
    quiet = replace(decoding.columns, prefill_link_gb_s=decoding.columns.prefill_link_gb_s * 0)
    silent = replace(decoding.scalars, interference=0.0, queue_fraction=0.0, clump_prompts=0.0)
    link_gb_s = type(decoding)(quiet, silent).take(several).at(loads).nvlink_gb_s
    most_link = min(float(decoding.columns.link_limit_gb_s[0]), float(prompts.columns.link_limit_gb_s[0]))
    for index in range(top - 1, -1, -1):
        rate, memory = float(rates[index]), max(float(seen.decode.total_gib[index]), float(prompt.total_gib[0]))
        tpot, ttft = float(seen.tpot_ms[index]), float(seen.ttft_ms[index])
        sent = rate * float(seen.transfer_gb_per_request[index])
        busy_link = max(float(link_gb_s[index]), float(prompts.columns.prefill_link_gb_s[0]))
        bounds = (
            (memory, targets.vram_fraction * row.memory_gib),
            (memory, targets.vram_gib_per_accelerator),
            (weights, targets.weights_gib_per_accelerator),
            (tpot, targets.tpot_ms if own.tpot_ms is None else own.tpot_ms),
            (ttft, targets.ttft_ms if own.ttft_ms is None else own.ttft_ms),
            (float(latency[index]), targets.latency_ms if own.latency_ms is None else own.latency_ms),
            (busy_link, targets.nvlink_fraction * most_link),
            (busy_link, targets.nvlink_gb_s),
            (sent / min(sends, takes), targets.kv_link_fraction * row.scale_out_gb_s),
        )
        if all(most is None or value <= most for value, most in bounds):
            return index + 1, rate, float(latency[index])
    return None
