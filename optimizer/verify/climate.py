"""PUE of a cooling option from the site's weather, by the checker's own arithmetic (docs/method.md section 6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from optimizer.catalog.rows import Climate, CoolingOption

#: Coefficient of performance of a chiller outside which the straight line is cut.
_COP_LOW: Final = 2.5
_COP_HIGH: Final = 8.0


@dataclass(frozen=True, slots=True)
class Pue:
    """Facility power over IT power: mean of the year, and in the hottest hours."""

    mean: float
    design: float


def pue(option: CoolingOption, climate: Climate) -> Pue:
    """PUE of an option at a site, at full load."""
    dry = option.heat_rejection_driver == "dry_bulb"
    hours = climate.dry_bulb_hours if dry else climate.wet_bulb_hours
    values = [_at(option, temperature) for temperature in climate.bin_mid_c]
    return Pue(_weighted(values, hours), values[_hottest(hours)])


def captured_fraction(option: CoolingOption) -> float:
    """Share of the heat that goes to the option's own plant; air, and rear doors, take all."""
    return option.liquid_capture_typical_fraction if option.medium == "liquid" else 1.0


def _at(option: CoolingOption, temperature: float) -> float:
    own = _overhead(
        temperature,
        option.distribution_fraction + option.rejection_fraction,
        option.t_full_c,
        option.t_start_c,
        option.cop_ref - option.cop_slope_per_k * (temperature - option.cop_ref_c),
        option.electrical_loss_fraction,
    )
    share = captured_fraction(option)
    rest = 0.0
    if share < 1.0:
        slope = option.residual_air_cop_slope_per_k or 0.0
        rest = _overhead(
            temperature,
            (option.residual_air_distribution_fraction or 0.0) + (option.residual_air_rejection_fraction or 0.0),
            option.residual_air_t_full_c,
            option.residual_air_t_start_c,
            (option.residual_air_cop_ref or 0.0) - slope * (temperature - option.cop_ref_c),
            option.electrical_loss_fraction,
        )
    return 1.0 + option.electrical_loss_fraction + share * own + (1.0 - share) * rest


def _overhead(
    temperature: float, fans: float, t_full: float | None, t_start: float | None, cop: float, loss: float
) -> float:
    free = 0.0
    if t_full is not None and t_start is not None:
        free = min(1.0, max(0.0, (t_start - temperature) / (t_start - t_full)))
    return fans + (1.0 - free) * (1.0 + loss) / min(_COP_HIGH, max(_COP_LOW, cop))


def _weighted(values: Sequence[float], hours: Sequence[float]) -> float:
    return sum(value * hour for value, hour in zip(values, hours, strict=True)) / sum(hours)


def _hottest(hours: Sequence[float]) -> int:
    return max(place for place, hour in enumerate(hours) if hour > 0)
