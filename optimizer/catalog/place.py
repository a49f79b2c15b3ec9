"""Where the cluster stands: cooling, weather, electricity, building and staff figures, and the servers' power curve."""

from typing import Literal, Self

from pydantic import model_validator

from optimizer.catalog.base import Generation, Row, fraction, quantity, text


class CoolingOption(Row):
    """One way to cool a hall: what it can take, what it costs, and the parameters of its PUE formula.

    c(T) = phi + rho + (1 - x(T)) (1 + e) / COP(T), x(T) = clip((t_start - T) / (t_start - t_full), 0, 1),
    COP(T) = clip(cop_ref - slope (T - cop_ref_c), 2.5, 8); PUE = 1 + e + captured c_liquid + (1 - captured) c_air.
    """

    id: str = text("cooling id")
    name: str = text("name in print", "")
    medium: Literal["air", "liquid"] = text("what reaches the server: liquid is cold plates or immersion", "air")
    offered_by_default: bool = text("false: must be asked for", True)
    rack_kw_practical: float = quantity("rack load it is used for", "kW", gt=0)
    rack_kw_upper: float = quantity("largest rack load reported", "kW", gt=0)
    ppue_low: float = quantity("cooling overhead alone, best", "1", 1.0, ge=1)
    ppue_typical: float = quantity("cooling overhead alone", "1", 1.1, ge=1)
    ppue_high: float = quantity("cooling overhead alone, worst", "1", 1.5, ge=1)
    liquid_capture_low_fraction: float = fraction("share of heat taken by the liquid, low", 0.0)
    liquid_capture_typical_fraction: float = fraction("share of heat taken by the liquid", 0.0)
    liquid_capture_high_fraction: float = fraction("share of heat taken by the liquid, high", 0.0)
    server_fan_saved_low_fraction: float = fraction("share of server fan power saved, low", 0.0, low=-1.0)
    server_fan_saved_typical_fraction: float = fraction("share of server fan power saved", 0.0, low=-1.0)
    server_fan_saved_high_fraction: float = fraction("share of server fan power saved, high", 0.0, low=-1.0)
    capex_low_usd_per_kw: float = quantity("capital per IT power, low", "USD/kW", gt=0)
    capex_typical_usd_per_kw: float = quantity("capital per IT power", "USD/kW", gt=0)
    capex_high_usd_per_kw: float = quantity("capital per IT power, high", "USD/kW", gt=0)
    capex_fixed_usd: float = quantity("capital that does not grow with the plant", "USD", 0.0, ge=0)
    capex_marginal_usd_per_kw: float = quantity("capital of one more kW", "USD/kW", gt=0)
    in_rack_usd_per_kw: float = quantity(
        "doors or cold plates; cold plates are normally in the server price", "USD/kW", 0.0, ge=0
    )
    maintenance_low_fraction: float = fraction("yearly maintenance share of capital, low", 0.03)
    maintenance_typical_fraction: float = fraction("yearly maintenance share of capital", 0.05)
    maintenance_high_fraction: float = fraction("yearly maintenance share of capital, high", 0.08)
    water_low_l_per_kwh: float = quantity("water per IT energy, low", "L/kWh", 0.0, ge=0)
    water_typical_l_per_kwh: float = quantity("water per IT energy", "L/kWh", 0.0, ge=0)
    water_high_l_per_kwh: float = quantity("water per IT energy, high", "L/kWh", 0.0, ge=0)
    supply_temperature_min_c: float = quantity("coldest supply", "degC")
    supply_temperature_max_c: float = quantity("warmest supply", "degC")
    heat_rejection_driver: Literal["dry_bulb", "wet_bulb"] = text("which outside temperature drives the plant")
    distribution_fraction: float = fraction("phi: fans and pumps inside, per IT power")
    rejection_fraction: float = fraction("rho: fans and pumps of heat rejection, per IT power")
    t_full_c: float | None = quantity("below it no compressor runs; none: no free cooling", "degC", None)
    t_start_c: float | None = quantity("above it compressors carry all; none: no free cooling", "degC", None)
    cop_ref: float = quantity("coefficient of performance at cop_ref_c", "1", gt=0)
    cop_ref_c: float = quantity("outside temperature of cop_ref", "degC")
    cop_slope_per_k: float = quantity("loss of COP per kelvin", "1/K", ge=0)
    fan_speed: Literal["fixed", "variable"] = text("of fans and pumps inside, at part load", "fixed")
    electrical_loss_fraction: float = fraction("e: UPS, transformers and lines, per IT power")
    residual_air_distribution_fraction: float | None = fraction("phi of the air plant for what liquid leaves", None)
    residual_air_rejection_fraction: float | None = fraction("rho of that air plant", None)
    residual_air_t_full_c: float | None = quantity("t_full of that air plant", "degC", None)
    residual_air_t_start_c: float | None = quantity("t_start of that air plant", "degC", None)
    residual_air_cop_ref: float | None = quantity("cop_ref of that air plant", "1", None, gt=0)
    residual_air_cop_slope_per_k: float | None = quantity("COP slope of that air plant", "1/K", None, ge=0)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.t_full_c is None) != (self.t_start_c is None):
            raise ValueError("t_full_c and t_start_c come together")
        if self.t_full_c is not None and self.t_start_c is not None and self.t_full_c >= self.t_start_c:
            raise ValueError("t_full_c must lie below t_start_c")
        return self


class Climate(Row):
    """A year of weather at one site, as hours in bins of 2 K."""

    id: str = text("site id")
    name: str = text("place", "")
    region: str = text("country or state", "")
    electricity_region: str = text("row of the electricity table")
    latitude_deg: float = quantity("latitude", "deg", 0.0, ge=-90, le=90)
    longitude_deg: float = quantity("longitude", "deg", 0.0, ge=-180, le=180)
    elevation_m: float = quantity("above sea level", "m", 0.0)
    dry_bulb_mean_c: float = quantity("annual mean", "degC")
    wet_bulb_mean_c: float = quantity("annual mean", "degC")
    dry_bulb_p004_c: float = quantity("0.4 % of hours are colder", "degC")
    dry_bulb_p996_c: float = quantity("design heat: 0.4 % of hours are warmer", "degC")
    wet_bulb_p996_c: float = quantity("design wet bulb: 0.4 % of hours are higher", "degC")
    dry_bulb_month_c: tuple[float, ...] = quantity("monthly means, January first", "degC", ())
    wet_bulb_month_c: tuple[float, ...] = quantity("monthly means, January first", "degC", ())
    bin_mid_c: tuple[float, ...] = quantity("middle of each bin, rising", "degC")
    dry_bulb_hours: tuple[float, ...] = quantity("hours a year with the dry bulb in the bin", "h")
    wet_bulb_hours: tuple[float, ...] = quantity("hours a year with the wet bulb in the bin", "h")
    coincident_wet_bulb_c: tuple[float | None, ...] = quantity(
        "mean wet bulb while the dry bulb is in the bin", "degC", ()
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not len(self.bin_mid_c) == len(self.dry_bulb_hours) == len(self.wet_bulb_hours):
            raise ValueError("bin_mid_c, dry_bulb_hours and wet_bulb_hours must be of one length")
        return self


class ElectricityRegion(Row):
    """Industrial electricity: average revenue per kWh (demand charges inside) and the grid's carbon intensity."""

    id: str = text("region: ISO 3166 alpha-3, or US-xx for a state")
    iso3: str = text("country", "")
    name: str = text("name in print", "")
    price_usd_per_kwh: float | None = quantity("price used; none: no retail value found", "USD/kWh", None, gt=0)
    price_basis: str = text("what the price is", "")
    price_latest_usd_per_kwh: float | None = quantity("newer single figure", "USD/kWh", None, gt=0)
    price_latest_as_of: str = text("date of the newer figure", "")
    price_2023_usd_per_kwh: float | None = quantity("figure of 2023, for the trend", "USD/kWh", None, gt=0)
    cost_recovery_usd_per_kwh: float | None = quantity(
        "long-run cost where the tariff is below it", "USD/kWh", None, gt=0
    )
    carbon_g_per_kwh: float | None = quantity("grid carbon, life cycle", "g/kWh", None, ge=0)
    carbon_basis: str = text("zone or country, and method", "")
    carbon_as_of: str = text("date of the carbon figure", "")
    wholesale_mean_usd_per_kwh: float | None = quantity("wholesale mean of 2024", "USD/kWh", None)
    wholesale_p05_usd_per_kwh: float | None = quantity("wholesale 5 % quantile of 2024", "USD/kWh", None)
    wholesale_p95_usd_per_kwh: float | None = quantity("wholesale 95 % quantile of 2024", "USD/kWh", None)
    carbon_source: str = text("where the carbon figure comes from", "")


class BuildCost(Row):
    """What a data hall costs in a country, an ordinary air plant in it, land not."""

    id: str = text("country, ISO 3166 alpha-3")
    usd_per_kw: float = quantity("cost per IT power", "USD/kW", gt=0)


class FacilityFigure(Row):
    """One figure of building, colocation, staff, upkeep, failure, life or finance."""

    id: str = text("parameter")
    unit: str = text("unit of low, typical and high; shares are fractions")
    low: float = quantity("low end", "see unit")
    typical: float = quantity("typical", "see unit")
    high: float = quantity("high end", "see unit")
    scope: str = text("what the figure covers", "")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low <= self.typical <= self.high:
            raise ValueError("low <= typical <= high must hold")
        return self


class ServerPowerCurve(Row):
    """Power of a server by load, for one accelerator generation.

    P = idle + busy n TDP (f(load) - f_idle) (1 + kappa), f(load) = f0 + (f1 - f0) load^c, load: throughput over
    saturated throughput, busy: share of time with a request in flight.
    """

    id: Generation = text("generation")
    idle_fraction: float = fraction("idle, engine loaded, of the server's maximum")
    idle_rack_scale_fraction: float = fraction("same for rack-scale units")
    f_idle_fraction: float = fraction("accelerator waiting, of its TDP")
    f0_fraction: float = fraction("accelerator at vanishing load, of its TDP; all models")
    f1_fraction: float = fraction("accelerator saturated, of its TDP; all models")
    c: float = quantity("exponent of load; all models", "1", gt=0)
    f0_dense_fraction: float = fraction("f0 of dense models from 30e9 parameters")
    f1_dense_fraction: float = fraction("f1 of dense models from 30e9 parameters")
    c_dense: float = quantity("exponent of dense models from 30e9 parameters", "1", gt=0)
    rmse_fraction: float | None = fraction("root mean square error of the fit, of TDP", None)
    kappa_fraction: float = fraction("conversion loss and fans on top of accelerator power, air")
    kappa_liquid_fraction: float = fraction("conversion loss and fans on top of accelerator power, liquid")
    prefill_fraction: float = fraction("accelerator in saturated prefill, of its TDP")
    training_fraction: float = fraction("server in dense training, of its maximum")
