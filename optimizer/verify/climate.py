"""PUE of a cooling option from the site's weather, by the checker's own arithmetic (docs/method.md section 6)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from optimizer.catalog.rows import Climate, CoolingOption
from optimizer.instance.site import Site

#: Coefficient of performance of a chiller outside which the straight line is cut.
_COP_LOW: Final = 2.5
_COP_HIGH: Final = 8.0


@dataclass(frozen=True, slots=True)
class Pue:
    """Facility power over IT power: mean of the year, and in the hottest hours."""

    mean: float
    design: float


@dataclass(frozen=True, slots=True)
class Weather:
    """Hours of a year by temperature (deg C), of dry and wet bulb; ``load``: share of its size that a plant runs at."""

    dry: Mapping[float, float]
    wet: Mapping[float, float]
    load: float


def weather(site: Site, climate: Climate) -> Weather:
    """The planner's own weather, else that of the packaged site."""
    own, load = site.climate_bins, site.plant_load_fraction
    if own is None:
        middles, dry, wet = climate.bin_mid_c, climate.dry_bulb_hours, climate.wet_bulb_hours
    elif own.dry_bulb_c is not None:
        return Weather(_counted(own.dry_bulb_c), _counted(own.wet_bulb_c or ()), load)
    else:
        middles, dry, wet = own.temperature_c or (), own.dry_bulb_hours or (), own.wet_bulb_hours or ()
    return Weather(dict(zip(middles, dry, strict=True)), dict(zip(middles, wet, strict=True)), load)


def _counted(temperatures: Iterable[float]) -> dict[float, float]:
    found: dict[float, float] = {}
    for one in temperatures:
        found[one] = found.get(one, 0.0) + 1.0
    return found


def pue(option: CoolingOption, seen: Weather | Climate) -> Pue:
    """PUE of an option at a site: mean at the plant's load, the hottest hours at full load."""
    if isinstance(seen, Climate):
        dry, wet = (dict(zip(seen.bin_mid_c, row, strict=True)) for row in (seen.dry_bulb_hours, seen.wet_bulb_hours))
        seen = Weather(dry, wet, 1.0)
    driven = seen.dry if option.heat_rejection_driver == "dry_bulb" else seen.wet
    lasting = {temperature: count for temperature, count in driven.items() if count > 0}
    slowed = _part_load(option, seen.load)
    mean = sum(count * _at(slowed, one) for one, count in lasting.items()) / sum(lasting.values())
    return Pue(mean, _at(option, max(lasting)))


def _part_load(option: CoolingOption, load: float) -> CoolingOption:
    """The option's figures per unit of IT power at a share of the plant's load (docs/method.md section 6)."""
    turning = max(load, 0.25) ** 1.75 * max(load, 0.25) / load if option.fan_speed == "variable" else 1.0 / load
    loss = option.electrical_loss_fraction
    return option.model_copy(
        update={
            "distribution_fraction": option.distribution_fraction * turning,
            "residual_air_distribution_fraction": (option.residual_air_distribution_fraction or 0.0) * turning,
            "electrical_loss_fraction": 0.4 * loss / load + 0.3 * loss + 0.3 * loss * load,
        }
    )


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
