"""Power usage effectiveness (PUE) of a cooling option at one temperature, over a year, and in the hottest hour.

The overhead per unit of IT power is electrical loss, fans and pumps, and the compressors for what the outside
air or water cannot take. Source of the form: ASHRAE-style free-cooling share with a linear COP; checked
against the annual regional PUE of AWS (14 regions), Google (10) and Microsoft (9).
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from optimizer.performance.factors import FloatArray

#: Bounds of the compressors' coefficient of performance in the form.
_COP_LOW, _COP_HIGH = 2.5, 8.0


@dataclass(frozen=True, slots=True)
class HeatPath:
    """One way of the heat: fans and pumps (``distribution_fraction``), its rejection (``rejection_fraction``),
    both per unit of heat; below ``full_free_c`` no compressor runs, above ``no_free_c`` compressors carry all
    (None: always). The COP is ``cop_reference`` at ``cop_reference_c`` and falls by ``cop_slope_per_k``."""

    distribution_fraction: float
    rejection_fraction: float
    full_free_c: float | None
    no_free_c: float | None
    cop_reference: float
    cop_reference_c: float
    cop_slope_per_k: float


@dataclass(frozen=True, slots=True)
class CoolingPhysics:
    """A cooling option: the main heat path, the share of heat it takes, and the air path of the rest.

    ``electrical_loss_fraction`` is per unit of IT power. ``captured_fraction`` is the heat the main path takes
    (1 for air). ``residual`` is the air path of the rest; without one the main path takes all.
    """

    electrical_loss_fraction: float
    main: HeatPath
    captured_fraction: float = 1.0
    residual: HeatPath | None = None


#: Speed below which fans and pumps of variable speed do not slow down further (20 to 30 % of full speed).
_LEAST_SPEED = 0.25
#: Power of a fan or pump of variable speed grows with this power of the flow: the cube law less losses of motor, drive
#: and static pressure (1.5 to 2 above the flow itself).
_FLOW_EXPONENT = 2.75


def at_load(physics: CoolingPhysics, load: float, *, variable_speed: bool) -> CoolingPhysics:
    """The same plant at a share ``load`` (0..1] of what it is built for, all figures per unit of IT power then.

    Fans and pumps of fixed speed keep their power: ``phi / L``. Those of variable speed take ``phi L^1.75`` down to a
    quarter of full speed. Power equipment loses ``e (0.4 / L + 0.3 + 0.3 L)``: a standing part, one in proportion, one
    that grows with the square of the current. Source of both forms: the practitioners' cost models; which plants have
    variable speed is assumed.
    """
    power = max(load, _LEAST_SPEED) ** _FLOW_EXPONENT if variable_speed else 1.0

    def slowed(path: HeatPath) -> HeatPath:
        return replace(path, distribution_fraction=path.distribution_fraction * power / load)

    return replace(
        physics,
        electrical_loss_fraction=physics.electrical_loss_fraction * (0.4 / load + 0.3 + 0.3 * load),
        main=slowed(physics.main),
        residual=None if physics.residual is None else slowed(physics.residual),
    )


def free_cooling_fraction(path: HeatPath, temperature_c: ArrayLike) -> FloatArray:
    """Share of the heat (0..1) that leaves without compressors at the driving outside temperature."""
    temperature = np.asarray(temperature_c, dtype=np.float64)
    if path.full_free_c is None or path.no_free_c is None:
        return np.zeros_like(temperature)
    return np.clip((path.no_free_c - temperature) / (path.no_free_c - path.full_free_c), 0.0, 1.0)


def _path_overhead(path: HeatPath, electrical_loss: float, temperature_c: FloatArray) -> FloatArray:
    """Cooling power per unit of heat on one path; compressors also carry the heat of the electrical loss."""
    cop = path.cop_reference - path.cop_slope_per_k * (temperature_c - path.cop_reference_c)
    compressors = (1.0 - free_cooling_fraction(path, temperature_c)) * (1.0 + electrical_loss)
    return path.distribution_fraction + path.rejection_fraction + compressors / np.clip(cop, _COP_LOW, _COP_HIGH)


def pue_at(physics: CoolingPhysics, temperature_c: ArrayLike) -> FloatArray:
    """PUE in an hour at the option's driving temperature (dry or wet bulb, deg C), at full load."""
    temperature = np.asarray(temperature_c, dtype=np.float64)
    loss = physics.electrical_loss_fraction
    main = _path_overhead(physics.main, loss, temperature)
    if physics.residual is None:
        return 1.0 + loss + main
    rest = _path_overhead(physics.residual, loss, temperature)
    return 1.0 + loss + physics.captured_fraction * main + (1.0 - physics.captured_fraction) * rest


def annual_pue(physics: CoolingPhysics, temperatures_c: ArrayLike, hours: ArrayLike) -> float:
    """Mean PUE of a year from temperature bins: their middles (deg C) and hours, of the driving temperature."""
    weight = np.asarray(hours, dtype=np.float64)
    return float(np.sum(weight * pue_at(physics, temperatures_c)) / np.sum(weight))


def design_pue(physics: CoolingPhysics, temperatures_c: ArrayLike, hours: ArrayLike) -> float:
    """PUE in the worst bin that occurs at all: what site power must be sized for."""
    occurs = np.asarray(hours, dtype=np.float64) > 0
    return float(np.max(pue_at(physics, np.asarray(temperatures_c, dtype=np.float64)[occurs])))
