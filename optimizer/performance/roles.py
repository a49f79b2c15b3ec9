"""Units of prefill and decode replicas (xPyD): x replicas that only work on prompts feed y that only decode.

Decoding is not disturbed by prompts and prompts do not wait for decoding; in exchange every prompt's cache crosses the
network before its second token, and each role keeps a copy of the weights. The physics is that of ``two_pools``; here
it is evaluated for many units at once, at any concurrency of a decode replica, in place of ``Prepared``.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimizer.performance.architecture import Architecture
from optimizer.performance.deployments import Deployments, Traffic
from optimizer.performance.factors import Factors, FloatArray
from optimizer.performance.prepare import PreparedColumns
from optimizer.performance.serving import Prepared, ServingPrediction, prepare
from optimizer.performance.two_pools import cache_bytes_of_prompt, undisturbed
from optimizer.units import BYTES_PER_GB, MS_PER_S

Rows = NDArray[np.int64]
#: Most of the time that a prefill replica may be busy at the peak: beyond it the queue has no bound to speak of.
MOST_BUSY_FRACTION: Final = 0.95
#: Prompts that a prefill replica holds for each of its ranks: one is worked on, one is being sent.
PROMPTS_HELD: Final = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class UnitPrepared:
    """Units as rows, everything hoisted that the load does not change.

    ``prefill`` and ``decode`` are one replica of each role, row for row. ``prefill_requests_per_s`` is what a prefill
    replica does when it never waits, ``most_requests_per_s`` what all of a unit's may carry when the unit is full, so
    that at ``utilization`` (the share of its capacity that a unit carries at the peak) none is busier than
    ``MOST_BUSY_FRACTION``. ``transfer_ms`` is one prompt's cache on its way.
    """

    prefill: PreparedColumns
    decode: Prepared
    prefill_replicas: FloatArray
    decode_replicas: FloatArray
    prefill_accelerators: FloatArray
    decode_accelerators: FloatArray
    transfer_ms: FloatArray
    transfer_gb: FloatArray
    utilization: float
    request_ms: float

    @property
    def size(self) -> int:
        """Rows."""
        return self.decode.size

    @property
    def largest_concurrency(self) -> FloatArray:
        """Of a decode replica; none where a prefill replica cannot start."""
        able = self.prefill.largest_concurrency >= PROMPTS_HELD * self.prefill.ranks
        return np.where(able, self.decode.largest_concurrency, 0.0)

    @property
    def prefill_requests_per_s(self) -> FloatArray:
        """Of one prefill replica that never waits."""
        return self.prefill.ranks * MS_PER_S / self.prefill.prefill_share_ms

    @property
    def prefill_gib(self) -> FloatArray:
        """Memory of one accelerator of a prefill replica with the prompts that it holds."""
        p = self.prefill
        prompts = PROMPTS_HELD * p.ranks / p.attention_data_parallel * p.sequence_gib
        return p.fixed_gib + np.maximum(prompts, p.longest_gib)

    def take(self, rows: Rows | NDArray[np.bool_]) -> "UnitPrepared":
        """The given rows, by index (may repeat) or mask."""
        return replace(
            self,
            prefill=self.prefill.take(rows),
            decode=self.decode.take(rows),
            prefill_replicas=self.prefill_replicas[rows],
            decode_replicas=self.decode_replicas[rows],
            prefill_accelerators=self.prefill_accelerators[rows],
            decode_accelerators=self.decode_accelerators[rows],
            transfer_ms=self.transfer_ms[rows],
            transfer_gb=self.transfer_gb[rows],
        )

    def at(self, concurrency: ArrayLike) -> ServingPrediction:
        """Predict at requests in flight per decode replica, a scalar or one value a row.

        Memory items and parts of a step are those of a decode replica; the total, weights and link traffic are the
        worse of both roles.
        """
        load = np.broadcast_to(np.asarray(concurrency, dtype=np.float64), (self.size,))
        seen = self.decode.at(load)
        output = float(self.decode.scalars.output_tokens)
        rest_ms = (output - 1.0) * seen.tpot_ms
        decoded = self.decode_replicas * load * MS_PER_S / (self.transfer_ms + rest_ms)
        full = self.prefill_replicas * self.prefill_requests_per_s
        requests = np.minimum(decoded, full * min(1.0, MOST_BUSY_FRACTION / self.utilization))
        busy = self.utilization * requests / full
        service = self.prefill.prefill_share_ms
        queue = busy / (2.0 * (1.0 - busy)) * service
        step = seen.tpot_ms * self.decode.scalars.tokens_per_step
        ttft = self.prefill.prefill_ms + queue + self.transfer_ms + 1.5 * step + self.request_ms
        sent = requests * self.transfer_gb
        return replace(
            seen,
            ttft_ms=ttft,
            latency_ms=ttft + rest_ms,
            requests_per_s=requests,
            output_tokens_per_s=requests * output,
            weights_gib=np.maximum(seen.weights_gib, self.prefill.weights_gib),
            total_gib=np.maximum(seen.total_gib, self.prefill_gib),
            nvlink_gb_s=np.maximum(seen.nvlink_gb_s, self.prefill.prefill_link_gb_s),
            nvlink_limit_gb_s=np.minimum(seen.nvlink_limit_gb_s, self.prefill.link_limit_gb_s),
            largest_concurrency=self.largest_concurrency,
            kv_link_gb_s=np.maximum(
                sent / (self.prefill_replicas * self.prefill_accelerators),
                sent / (self.decode_replicas * self.decode_accelerators),
            ),
        )


def prepare_units(
    architecture: Architecture,
    deployments: Deployments,
    traffic: Traffic,
    factors: Factors,
    *,
    plain: Prepared,
    prompts: PreparedColumns,
    prefill_rows: Rows,
    decode_rows: Rows,
    prefill_replicas: Rows,
    decode_replicas: Rows,
    utilization: float,
) -> UnitPrepared:
    """Units of the given rows of ``deployments``, which ``plain`` and ``prompts`` (``prepare_prompts``) were made of.

    Both roles of a unit have the same accelerator and scheme. The narrower end's links carry a prompt's cache.
    """
    d = deployments
    quiet = undisturbed(plain)
    decode_columns = quiet.columns.take(decode_rows)
    # Prompts cross the scale-up link of the other role only.
    decode_columns = replace(decode_columns, prefill_link_gb_s=np.zeros(decode_rows.size))
    rank = d.tensor_parallel * d.pipeline_parallel
    links = np.minimum(rank[prefill_rows], rank[decode_rows])
    size = cache_bytes_of_prompt(architecture, d.kv_bytes[decode_rows], traffic.input_tokens)
    rate = d.scale_out_gb_s[decode_rows] * factors.scale_out_link_fraction * BYTES_PER_GB
    return UnitPrepared(
        prefill=prompts.take(prefill_rows),
        decode=Prepared(decode_columns, quiet.scalars),
        prefill_replicas=prefill_replicas.astype(np.float64),
        decode_replicas=decode_replicas.astype(np.float64),
        prefill_accelerators=d.width[prefill_rows],
        decode_accelerators=d.width[decode_rows],
        transfer_ms=size * MS_PER_S / (rate * links),
        transfer_gb=size / BYTES_PER_GB,
        utilization=utilization,
        request_ms=float(quiet.scalars.request_ms),
    )


def prepare_prompts(
    architecture: Architecture,
    deployments: Deployments,
    traffic: Traffic,
    factors: Factors,
    usable_memory_fraction: float | None,
) -> PreparedColumns:
    """Deployments as prefill replicas: a prompt leaves with its first token."""
    alone = replace(traffic, output_tokens=1.0)
    return prepare(architecture, deployments, alone, factors, usable_memory_fraction=usable_memory_fraction).columns
