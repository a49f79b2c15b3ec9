"""Server types whose accelerators run under a power cap: names, most power of a server, speed (docs/method.md 6)."""

from optimizer.catalog import Catalog
from optimizer.catalog.rows import Accelerator, ServerPowerCurve
from optimizer.performance.power_cap import CappedSpeed, capped_speed, draw_under_cap
from optimizer.pool import ServerType
from optimizer.units import W_PER_KW

#: No cap: accelerators may draw their whole board power.
UNCAPPED = 1.0
#: Dense models from this size on have power constants of their own.
LARGE_DENSE_PARAMETERS = 30e9


def server_type_id(accelerator: str, accelerators: int, cap_fraction: float = UNCAPPED) -> str:
    """Name of a server type: ``h100-80gb-sxm x8``, under a cap ``h100-80gb-sxm@70% x8``."""
    cap = "" if cap_fraction == UNCAPPED else f"@{100.0 * cap_fraction:.6g}%"
    return f"{accelerator}{cap} x{accelerators}"


def accelerator_of(server_type: str) -> str:
    """Accelerator in the name of a server type."""
    return server_type.rpartition(" x")[0].partition("@")[0]


def idle_air_kw(row: Accelerator, curve: ServerPowerCurve) -> float:
    """Power (kW) of a whole server in air with an engine loaded and no request; a cap does not change it."""
    rack_scale = row.accelerators_per_server > row.accelerators_per_host
    return (curve.idle_rack_scale_fraction if rack_scale else curve.idle_fraction) * row.server_power_kw


def most_air_kw(row: Accelerator, curve: ServerPowerCurve, cap_fraction: float) -> float:
    """Most power (kW) of a whole server in air: its rated maximum, less what the cap takes from its accelerators.

    Losses of conversion fall with it. Never below idle.
    """
    if cap_fraction == UNCAPPED:
        return row.server_power_kw
    loss = curve.kappa_liquid_fraction if row.liquid_cooling == "required" else curve.kappa_fraction
    taken = row.accelerators_per_server * row.tdp_w / W_PER_KW * (UNCAPPED - cap_fraction) * (1.0 + loss)
    return max(row.server_power_kw - taken, idle_air_kw(row, curve))


def saturated_fraction(curve: ServerPowerCurve, *, is_large_dense: bool) -> float:
    """Draw of accelerators that serve at saturation, as a fraction of their TDP, without a cap."""
    return curve.f1_dense_fraction if is_large_dense else curve.f1_fraction


def busy_fraction(curve: ServerPowerCurve, cap_fraction: float, *, is_large_dense: bool) -> float:
    """The same under a cap."""
    return draw_under_cap(cap_fraction, saturated_fraction(curve, is_large_dense=is_large_dense))


def speed_of(catalog: Catalog, server_type: ServerType, *, is_large_dense: bool) -> CappedSpeed:
    """Speed of a server type's accelerators over that without a cap."""
    if server_type.power_cap_fraction == UNCAPPED:
        return CappedSpeed(1.0, 1.0)
    curve = catalog.power_curves[server_type.accelerator.generation]
    return capped_speed(
        server_type.power_cap_fraction,
        memory_draw_fraction=saturated_fraction(curve, is_large_dense=is_large_dense),
        prefill_draw_fraction=curve.prefill_fraction,
    )
