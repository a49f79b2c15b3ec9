"""Prefill and decode on two pools of accelerators, with the cache of each prompt sent from one to the other.

Decoding is not disturbed by prompts, and prompts do not wait for decoding; in exchange every prompt's cache crosses
a link before its second token, and each pool has its own size. Whether that pays depends on lengths and links: it is
computed beside the plan with one pool, never instead of it.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from optimizer.performance.architecture import (
    Architecture,
    index_elements_per_token,
    kv_elements_per_token_full,
    kv_elements_per_token_sliding,
    state_bytes_per_sequence,
)
from optimizer.performance.deployments import Deployments, Traffic
from optimizer.performance.factors import Factors, FloatArray
from optimizer.performance.serving import Prepared, ServingPrediction
from optimizer.units import BYTES_PER_GB, MS_PER_S


@dataclass(frozen=True, slots=True, eq=False)
class TwoPools:
    """What a pair of pools does (columns of length n, one row a pair of deployments).

    ``ttft_ms`` is prefill with its queue, transfer and the first decode step; ``tpot_ms`` that of decoding alone.
    ``prefill_requests_per_s`` and ``decode_requests_per_s`` are of one replica each, so their ratio is the ratio of
    replicas that neither starves.
    """

    ttft_ms: FloatArray
    tpot_ms: FloatArray
    transfer_ms: FloatArray
    transfer_gb_per_request: FloatArray
    prefill_requests_per_s: FloatArray
    decode_requests_per_s: FloatArray
    decode: ServingPrediction

    @property
    def prefill_replicas_per_decode_replica(self) -> FloatArray:
        """How many prefill replicas feed one decode replica."""
        return self.decode_requests_per_s / self.prefill_requests_per_s


def cache_bytes_of_prompt(architecture: Architecture, kv_bytes: FloatArray | float, tokens: float) -> FloatArray:
    """Bytes of one prompt's cache, each element once: what must cross the link."""
    a = architecture
    full = (kv_elements_per_token_full(a) * kv_bytes + index_elements_per_token(a)) * tokens
    sliding = kv_elements_per_token_sliding(a) * kv_bytes * min(tokens, float(a.sliding_window))
    return np.asarray(full + sliding + state_bytes_per_sequence(a), dtype=np.float64)


def undisturbed(decode: Prepared) -> Prepared:
    """Deployments that only decode: no prompts of others in their steps, and none that wait for each other."""
    return Prepared(decode.columns, replace(decode.scalars, interference=0.0, queue_fraction=0.0, clump_prompts=0.0))


def two_pools(
    architecture: Architecture,
    traffic: Traffic,
    factors: Factors,
    *,
    prefill: Prepared,
    decode: Prepared,
    decode_deployments: Deployments,
    prefill_deployments: Deployments | None = None,
    concurrency: ArrayLike,
    prefill_busy_fraction: ArrayLike = 0.7,
    link_gb_s: ArrayLike | None = None,
) -> TwoPools:
    """Predict pairs of prefill and decode deployments, row for row.

    ``concurrency`` is requests in flight per decode replica. The prefill pool is busy ``prefill_busy_fraction`` of
    the time: its queue is that of random arrivals at a constant service time, rho / (2 (1 - rho)) of it. The link is
    that of every accelerator of the decode replica to the network (``link_gb_s`` one way; by default its own
    interface), at the network's measured share; of the prefill replica where that has fewer in a rank.
    """
    busy = np.asarray(prefill_busy_fraction, dtype=np.float64)
    if np.any(busy < 0) or np.any(busy >= 1):
        raise ValueError("prefill_busy_fraction must lie in 0 <= busy < 1: a full queue never ends")
    seen = undisturbed(decode).at(concurrency)
    service = prefill.columns.prefill_share_ms
    queue = busy / (2.0 * (1.0 - busy)) * service
    size = cache_bytes_of_prompt(architecture, decode_deployments.kv_bytes, traffic.input_tokens)
    rate = decode_deployments.scale_out_gb_s if link_gb_s is None else np.asarray(link_gb_s, dtype=np.float64)
    width = decode_deployments.tensor_parallel * decode_deployments.pipeline_parallel
    if prefill_deployments is not None:
        width = np.minimum(width, prefill_deployments.tensor_parallel * prefill_deployments.pipeline_parallel)
    transfer = size * MS_PER_S / (rate * factors.scale_out_link_fraction * width * BYTES_PER_GB)
    step = seen.tpot_ms * decode.scalars.tokens_per_step
    ttft = prefill.columns.prefill_ms + queue + transfer + 1.5 * step + prefill.scalars.request_ms
    load = np.broadcast_to(np.asarray(concurrency, dtype=np.float64), seen.tpot_ms.shape)
    staying = transfer + (traffic.output_tokens - 1.0) * seen.tpot_ms
    return TwoPools(
        ttft_ms=ttft,
        tpot_ms=seen.tpot_ms,
        transfer_ms=transfer,
        transfer_gb_per_request=size / BYTES_PER_GB,
        prefill_requests_per_s=busy * prefill.columns.ranks * MS_PER_S / service,
        decode_requests_per_s=load * MS_PER_S / staying,
        decode=seen,
    )
