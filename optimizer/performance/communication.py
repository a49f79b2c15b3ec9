"""What crosses the links in every step: all-reduces, expert exchange, pipeline hand-over."""

from dataclasses import dataclass

import numpy as np

from optimizer.performance.architecture import Architecture
from optimizer.performance.deployments import Deployments
from optimizer.performance.factors import Factors, FloatArray
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


def _ms_per_byte(fraction: FloatArray | float, links: Links) -> FloatArray:
    return MS_PER_S / (fraction * links.gb_s * BYTES_PER_GB)


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


def step_communication(architecture: Architecture, deployments: Deployments, factors: Factors) -> StepCommunication:
    """Lines of the communication time of one step over all layers and stages.

    An all-reduce of b bytes among t ranks sends 2 (t-1)/t b one way per accelerator (ring and its equals). It
    follows attention and MLP in every layer. With attention-data parallelism the expert layers exchange tokens
    instead: each token goes out to k experts and back, 2 k h bytes (e-1)/e; or, without expert parallelism, it
    is gathered by all and reduced. Without attention-data parallelism expert outputs join in the layer's
    all-reduce, whatever the expert degree.

    Source: all-reduce tables of A100, H100 and L40S (alpha-beta pairs for small and large messages).
    """
    a, d = architecture, deployments
    tp, dp, ep = d.tensor_parallel, d.attention_data_parallel, d.expert_parallel
    links = choose_links(d)
    h_bytes = a.hidden_size * ACTIVATION_BYTES
    exchanged = np.where(dp > 1, float(a.moe_layers), 0.0)
    mixers = float(a.attention_layers + a.linear_layers)
    reduces = np.where(tp > 1, mixers + a.dense_layers + a.moe_layers - exchanged, 0.0)
    ring_bytes = reduces * 2.0 * (tp - 1.0) / tp * h_bytes

    scale_up, pcie = links.on_scale_up > 0, links.on_pcie > 0
    slow_us = np.where(
        pcie, factors.pcie_latency_us + factors.pcie_latency_per_rank_us * tp, factors.scale_out_latency_us
    )
    slow_fraction = np.where(pcie, factors.pcie_link_fraction, factors.scale_out_link_fraction)
    small_us = np.where(scale_up, factors.allreduce_small_latency_us, slow_us)
    large_us = factors.allreduce_large_latency_us + factors.allreduce_large_latency_per_rank_us * tp
    large_us = np.where(scale_up, large_us, slow_us)
    small_fraction = np.where(scale_up, factors.allreduce_small_link_fraction, slow_fraction)
    large_fraction = np.where(scale_up, factors.allreduce_large_link_fraction, slow_fraction)

    group = tp * dp
    copies = np.where(ep > 1, a.active_experts * (ep - 1.0) / np.maximum(ep, 1.0), group - 1.0)
    exchange_bytes = exchanged * 2.0 * h_bytes * copies
    exchange_fraction = np.where(scale_up, factors.alltoall_link_fraction, slow_fraction)
    exchange_us = 2.0 * np.where(scale_up, factors.alltoall_latency_us, slow_us)

    hops = d.pipeline_parallel - 1.0
    hop_rate = np.where(d.width <= d.accelerators_per_host, links.gb_s, d.scale_out_gb_s)
    # Ranks send their own part of the hidden state to the next stage and gather it there.
    hop_ms_per_token = h_bytes * MS_PER_S / (factors.scale_out_link_fraction * hop_rate * BYTES_PER_GB)
    return StepCommunication(
        small_fixed_ms=reduces * small_us * _MS_PER_US,
        small_per_token_ms=ring_bytes * _ms_per_byte(small_fraction, links),
        large_fixed_ms=reduces * large_us * _MS_PER_US,
        large_per_token_ms=ring_bytes * _ms_per_byte(large_fraction, links),
        other_fixed_ms=exchanged * exchange_us * _MS_PER_US + hops * factors.point_to_point_latency_us * _MS_PER_US,
        other_per_token_ms=exchange_bytes * _ms_per_byte(exchange_fraction, links) + hops * hop_ms_per_token,
        link_bytes_per_token=(ring_bytes + exchange_bytes) / d.pipeline_parallel,
        links=links,
    )
