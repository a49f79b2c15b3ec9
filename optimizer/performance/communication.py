"""What crosses the links in every step: all-reduces, expert exchange, pipeline hand-over."""

from dataclasses import dataclass

import numpy as np

from optimizer.performance.architecture import Architecture
from optimizer.performance.deployments import Deployments
from optimizer.performance.factors import Factors, FloatArray
from optimizer.performance.roofline import capped
from optimizer.units import BYTES_PER_GB, MS_PER_S

#: Activations cross the links in 16 bits.
ACTIVATION_BYTES = 2.0
_MS_PER_US = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """The link a layer's exchange uses, for each row: its rate, and which kind it is."""

    gb_s: FloatArray
    on_scale_up: FloatArray
    on_pcie: FloatArray


def choose_links(deployments: Deployments) -> Links:
    """The scale-up link where the group fits its domain, PCIe inside one host, else the network.

    On a mesh a group of g reaches only g - 1 of the links of an accelerator: min(link, pair x (g - 1)).
    """
    d = deployments
    group = d.tensor_parallel * d.attention_data_parallel
    mesh = np.minimum(d.scale_up_gb_s, d.scale_up_pair_gb_s * np.maximum(group - 1, 1))
    scale_up = (d.scale_up_gb_s > 0) & (group <= d.scale_up_domain)
    pcie = ~scale_up & (group <= d.accelerators_per_host)
    rate = np.where(scale_up, mesh, np.where(pcie, d.pcie_gb_s, d.scale_out_gb_s))
    return Links(rate, scale_up.astype(np.float64), pcie.astype(np.float64))


@dataclass(frozen=True, slots=True, eq=False)
class Messages:
    """What crosses the links in one step: how many exchanges, and bytes one accelerator sends for a token.

    ``reduce_bytes`` and ``exchange_bytes`` are one way per token of the rank. ``bytes_per_ms`` is the peak of the
    link that the layers use, ``hop_bytes_per_ms`` of the one to the next pipeline stage.
    """

    reduces: FloatArray
    reduce_bytes: FloatArray
    exchanges: FloatArray
    exchange_bytes: FloatArray
    hops: FloatArray
    hop_bytes: FloatArray
    hop_bytes_per_ms: FloatArray
    group: FloatArray
    pipeline_parallel: FloatArray
    bytes_per_ms: FloatArray
    gb_s: FloatArray
    on_scale_up: FloatArray
    on_pcie: FloatArray


def messages_of(architecture: Architecture, deployments: Deployments) -> Messages:
    """Messages of one step over all layers and stages.

    An all-reduce of b bytes among t ranks sends 2 (t-1)/t b one way per accelerator (ring and its equals). It
    follows attention and MLP in every layer, and a norm over all heads' queries and keys where a family has one.
    With attention-data parallelism the expert layers exchange tokens instead: each token goes out to k experts
    and back, 2 k h bytes (e-1)/e; or, without expert parallelism, it is gathered by all and reduced. Without
    attention-data parallelism expert outputs join in the layer's all-reduce, whatever the expert degree.
    """
    a, d = architecture, deployments
    tp, dp, ep = d.tensor_parallel, d.attention_data_parallel, d.expert_parallel
    links = choose_links(d)
    h_bytes = a.hidden_size * ACTIVATION_BYTES
    exchanged = np.where(dp > 1, float(a.moe_layers), 0.0)
    mixers = float(a.attention_layers + a.linear_layers)
    full_width = np.where(tp > 1, mixers + a.dense_layers + a.moe_layers - exchanged, 0.0)
    norms = np.where(tp > 1, float(a.attention_layers if a.qk_norm > 1 else 0), 0.0)
    copies = np.where(ep > 1, a.active_experts * (ep - 1.0) / np.maximum(ep, 1.0), tp * dp - 1.0)
    hop_rate = np.where(d.width <= d.accelerators_per_host, links.gb_s, d.scale_out_gb_s)
    return Messages(
        reduces=full_width + norms,
        # The norm's message is one number a token: a kernel more, no bytes to speak of.
        reduce_bytes=full_width * 2.0 * (tp - 1.0) / tp * h_bytes,
        exchanges=exchanged,
        exchange_bytes=exchanged * 2.0 * h_bytes * copies,
        hops=d.pipeline_parallel - 1.0,
        # Ranks send their own part of the hidden state to the next stage and gather it there.
        hop_bytes=(d.pipeline_parallel - 1.0) * h_bytes,
        hop_bytes_per_ms=hop_rate * (BYTES_PER_GB / MS_PER_S),
        group=tp * dp,
        pipeline_parallel=d.pipeline_parallel,
        bytes_per_ms=links.gb_s * (BYTES_PER_GB / MS_PER_S),
        gb_s=links.gb_s,
        on_scale_up=links.on_scale_up,
        on_pcie=links.on_pcie,
    )


@dataclass(frozen=True, slots=True, eq=False)
class StepCommunication:
    """Communication of one step as straight lines in the tokens m of a rank's micro-batch.

    all-reduce ms = min(small_fixed + small_per_token m, large_fixed + large_per_token m) (engines switch the
    kernel by message size); other ms = other_fixed + other_per_token m. ``link_bytes_per_token`` is what one
    accelerator sends one way for each token of its rank.
    """

    small_fixed_ms: FloatArray
    small_per_token_ms: FloatArray
    large_fixed_ms: FloatArray
    large_per_token_ms: FloatArray
    other_fixed_ms: FloatArray
    other_per_token_ms: FloatArray
    link_bytes_per_token: FloatArray
    links: Links

    def milliseconds(self, tokens: FloatArray | float) -> FloatArray:
        """Milliseconds of a step of ``tokens`` tokens in a rank."""
        small = self.small_fixed_ms + self.small_per_token_ms * tokens
        large = self.large_fixed_ms + self.large_per_token_ms * tokens
        return np.minimum(small, large) + self.other_fixed_ms + self.other_per_token_ms * tokens


def step_communication(
    architecture: Architecture, deployments: Deployments, factors: Factors, engine: int = 0
) -> StepCommunication:
    """Lines of the communication time of one step of an engine (``ENGINES``) over all layers and stages."""
    messages = messages_of(architecture, deployments)
    return communication_time(messages, deployments.tensor_parallel, factors, factors.engine_allreduce_time[engine])


def communication_time(
    messages: Messages, tensor_parallel: FloatArray | float, factors: Factors, allreduce_time: FloatArray | float
) -> StepCommunication:
    """Messages to milliseconds. ``allreduce_time`` is the engine's multiple of the plain all-reduce.

    Source: all-reduce tables of A100, H100 and L40S (alpha-beta pairs for small and large messages).
    """
    m, tp = messages, tensor_parallel
    scale_up, pcie = m.on_scale_up > 0, m.on_pcie > 0
    slow_us = np.where(
        pcie, factors.pcie_latency_us + factors.pcie_latency_per_rank_us * tp, factors.scale_out_latency_us
    )
    slow_fraction = np.where(pcie, factors.pcie_link_fraction, factors.scale_out_link_fraction)
    small_us = np.where(scale_up, factors.allreduce_small_latency_us, slow_us)
    large_us = factors.allreduce_large_latency_us + factors.allreduce_large_latency_per_rank_us * tp
    large_us = np.where(scale_up, large_us, slow_us)
    small_fraction = np.where(scale_up, factors.allreduce_small_link_fraction, slow_fraction)
    large_fraction = np.where(scale_up, factors.allreduce_large_link_fraction, slow_fraction)
    exchange_fraction = np.where(scale_up, factors.alltoall_link_fraction, slow_fraction)
    exchange_us = 2.0 * np.where(scale_up, factors.alltoall_latency_us, slow_us)
    # An engine's own kernels run over the scale-up link; elsewhere all use the library's.
    allreduce_time = np.where(scale_up, allreduce_time, 1.0)
    started = m.reduces * (allreduce_time * _MS_PER_US)
    hop_ms = m.hop_bytes / (factors.scale_out_link_fraction * m.hop_bytes_per_ms)
    return StepCommunication(
        small_fixed_ms=started * small_us,
        small_per_token_ms=m.reduce_bytes / (capped(small_fraction / allreduce_time) * m.bytes_per_ms),
        large_fixed_ms=started * large_us,
        large_per_token_ms=m.reduce_bytes / (capped(large_fraction / allreduce_time) * m.bytes_per_ms),
        other_fixed_ms=(m.exchanges * exchange_us + m.hops * factors.point_to_point_latency_us) * _MS_PER_US,
        other_per_token_ms=m.exchange_bytes / (exchange_fraction * m.bytes_per_ms) + hop_ms,
        link_bytes_per_token=(m.reduce_bytes + m.exchange_bytes) / m.pipeline_parallel,
        links=Links(m.gb_s, m.on_scale_up, m.on_pcie),
    )
