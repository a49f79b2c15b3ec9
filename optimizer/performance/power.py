"""Electrical power of a server as a function of its load.

Power follows whether anything runs much more than throughput: an accelerator that decodes at a small batch
draws well over half of what it draws when saturated. So the share of time a server is busy and the load while
it is busy are two arguments.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimizer.performance.factors import Factors, FloatArray
from optimizer.units import W_PER_KW

#: Batches (as powers of two) between which the measured decode power rises: 16 and 128.
_SMALL_BATCH_LOG2, _LARGE_BATCH_LOG2 = 4.0, 7.0


@dataclass(frozen=True, slots=True)
class ServerPower:
    """Constants of the power law of one server type; fields broadcast, so columns may stand in them.

    f(load) = ``busy_fraction_low`` + (``busy_fraction_high`` - ``busy_fraction_low``) load ^ ``load_exponent`` is
    the accelerators' draw as a fraction of their TDP while requests run, ``waiting_fraction`` (f_idle) that of
    a loaded engine that waits. ``conversion_loss_fraction`` (kappa) adds power supplies and fans. ``idle_kw``
    is the whole server with the engine loaded and nothing running, ``maximum_kw`` its rated maximum.
    """

    accelerators: ArrayLike
    tdp_w: ArrayLike
    idle_kw: ArrayLike
    maximum_kw: ArrayLike
    busy_fraction_low: ArrayLike
    busy_fraction_high: ArrayLike
    load_exponent: ArrayLike
    waiting_fraction: ArrayLike
    conversion_loss_fraction: ArrayLike


def server_power(
    generation_index: NDArray[np.int64] | int,
    factors: Factors,
    *,
    accelerators: ArrayLike,
    tdp_w: ArrayLike,
    maximum_kw: ArrayLike = np.nan,
    idle_kw: ArrayLike = np.nan,
) -> ServerPower:
    """The power law of server types from the packaged constants of their generation.

    Where the rated maximum or the idle power is not known (NaN), the maximum is the accelerators' TDP times the
    usual server factor, and idle the generation's share of the maximum.
    """
    index = np.asarray(generation_index, dtype=np.int64)
    count, tdp = np.asarray(accelerators, dtype=np.float64), np.asarray(tdp_w, dtype=np.float64)
    maximum, idle = np.asarray(maximum_kw, dtype=np.float64), np.asarray(idle_kw, dtype=np.float64)
    maximum = np.where(np.isnan(maximum), count * tdp / W_PER_KW * factors.server_power_over_tdp, maximum)
    idle = np.where(np.isnan(idle), maximum * factors.idle_power_fraction[index], idle)
    return ServerPower(
        accelerators=count,
        tdp_w=tdp,
        idle_kw=idle,
        maximum_kw=maximum,
        busy_fraction_low=factors.busy_power_low[index],
        busy_fraction_high=factors.busy_power_high[index],
        load_exponent=factors.busy_power_exponent[index],
        waiting_fraction=factors.waiting_power_fraction,
        conversion_loss_fraction=factors.conversion_loss_fraction,
    )


def busy_fraction_of_tdp(server: ServerPower, load: ArrayLike) -> FloatArray:
    """Accelerator draw over TDP at ``load`` (throughput over saturated throughput, 0..1) while requests run."""
    low = np.asarray(server.busy_fraction_low, dtype=np.float64)
    high = np.asarray(server.busy_fraction_high, dtype=np.float64)
    share = np.clip(np.asarray(load, dtype=np.float64), 0.0, 1.0)
    exponent = np.asarray(server.load_exponent, dtype=np.float64)
    return np.asarray(low + (high - low) * share**exponent, dtype=np.float64)


def _kw_at(server: ServerPower, fraction: FloatArray) -> FloatArray:
    """Server kW when its accelerators draw ``fraction`` of their TDP."""
    tdp_kw = np.asarray(server.accelerators, dtype=np.float64) * np.asarray(server.tdp_w, dtype=np.float64) / W_PER_KW
    above = np.maximum(fraction - np.asarray(server.waiting_fraction, dtype=np.float64), 0.0)
    loss = 1.0 + np.asarray(server.conversion_loss_fraction, dtype=np.float64)
    power = np.asarray(server.idle_kw, dtype=np.float64) + tdp_kw * above * loss
    return np.minimum(power, np.asarray(server.maximum_kw, dtype=np.float64))


def idle_power_kw(server: ServerPower) -> FloatArray:
    """Server kW with the engine loaded and no request."""
    return np.minimum(np.asarray(server.idle_kw, dtype=np.float64), np.asarray(server.maximum_kw, dtype=np.float64))


def busy_power_kw(server: ServerPower, load: ArrayLike = 1.0) -> FloatArray:
    """Server kW while requests run at ``load`` (0..1 of the saturated throughput), never above its maximum.

    P = P_idle + N TDP (f(load) - f_idle) (1 + kappa). Source: reduction of MLPerf Power logs (8 x B200: 3.09 kW
    idle to 10.5 kW on Llama-2-70B) and of public serving measurements; error about 0.10 of TDP (H100) and 0.16
    (B200) across models.
    """
    return _kw_at(server, busy_fraction_of_tdp(server, load))


def saturated_power_kw(server: ServerPower, batch: ArrayLike, prefill_share: ArrayLike, factors: Factors) -> FloatArray:
    """Server kW of a deployment at its own saturation: its decode batch and the share of a step spent on prompts.

    Prompts reach TDP (measured 0.97 when saturated), decoding stays below (0.64 at a batch of up to 16, 0.82
    at 128-320), so a deployment's own mix decides its energy.
    """
    share = np.clip(np.asarray(prefill_share, dtype=np.float64), 0.0, 1.0)
    decode = decode_fraction_of_tdp(batch, factors)
    return _kw_at(server, decode + share * (factors.prefill_power_fraction - decode))


def decode_fraction_of_tdp(batch: ArrayLike, factors: Factors) -> FloatArray:
    """Accelerator draw over TDP in decoding at a batch (sequences of a replica): flat up to 16 and from 128,
    linear in the logarithm of the batch between."""
    logs = np.log2(np.maximum(np.asarray(batch, dtype=np.float64), 1.0))
    share = np.clip((logs - _SMALL_BATCH_LOG2) / (_LARGE_BATCH_LOG2 - _SMALL_BATCH_LOG2), 0.0, 1.0)
    low, high = factors.decode_power_small_batch, factors.decode_power_large_batch
    return np.asarray(low + (high - low) * share, dtype=np.float64)


def average_power_kw(server: ServerPower, busy_share: ArrayLike, load: ArrayLike) -> FloatArray:
    """Mean server kW: idle, plus what running adds in the share of time (0..1) at least one request runs."""
    idle = idle_power_kw(server)
    share = np.clip(np.asarray(busy_share, dtype=np.float64), 0.0, 1.0)
    return idle + share * (busy_power_kw(server, load) - idle)


def peak_power_kw(server: ServerPower) -> FloatArray:
    """Server kW to provide for: its rated maximum, or saturated at full TDP where that is less known."""
    return np.asarray(server.maximum_kw, dtype=np.float64) + 0.0
