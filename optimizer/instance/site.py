"""Where it stands: power, racks, climate, electricity; several sites and the links between them."""

from typing import Literal

from optimizer.instance.fields import REQUIRED, Frozen, Ruled, field
from optimizer.instance.tariff import Tariff
from optimizer.instance.weather import ClimateBins


class Site(Ruled):
    """The hall of bought servers. Rented servers stand elsewhere and take none of it."""

    climate: str = field(
        "us_va_ashburn",
        "Site of the weather that cooling works against, by catalogue id.",
        default_source="Ashburn, Virginia: the largest market",
    )
    climate_bins: ClimateBins | None = field(
        None,
        "Own weather, in place of that of `climate`, which then names the region of electricity and carbon alone.",
    )
    plant_load_fraction: float = field(
        1.0,
        "Mean load of cooling and power plant over what they are built for. Below 1 fans and pumps of fixed speed keep"
        " their power, those of variable speed slow down, and power equipment loses a larger share.",
        unit="fraction",
        default_source="1: figures of plants are stated at full load",
        ge=0.1,
        le=1,
    )
    electricity_region: str | None = field(
        None,
        "Region of the electricity price and of the grid's carbon, by catalogue id.",
        default_source="the region of the climate",
    )
    electricity_usd_per_kwh: float | None = field(
        None,
        "Electricity price, all charges together.",
        unit="USD/kWh",
        default_source="catalogue price of the region",
        ge=0,
        le=100,
    )
    tariff: Tariff | None = field(None, "The utility's tariff, in place of one price for all charges together.")
    carbon_g_per_kwh: float | None = field(
        None,
        "Carbon dioxide of the grid's electricity, life cycle.",
        unit="g/kWh",
        default_source="catalogue figure of the region",
        ge=0,
        le=5000,
    )
    carbon_tonnes_per_year: float | None = field(
        None, "Most carbon dioxide of the energy of bought servers in a year.", unit="t/year", ge=0
    )
    water_m3_per_year: float | None = field(
        None, "Most water that cooling of bought servers takes in a year.", unit="m3/year", ge=0
    )
    power_kw: float | None = field(
        None, "Most power at the meter: servers, spares and cooling in the hottest hour.", unit="kW", gt=0
    )
    facility: Literal["colocation", "own_build", "cheaper"] = field(
        "colocation",
        "Hall of bought servers: rented by the kW, built, or whichever costs less.",
        default_source="colocation: fleets of a few MW at most",
    )
    floor_m2: float | None = field(None, "Floor for racks with their share of the aisles.", unit="m2", ge=0)
    rack_floor_m2: float = field(
        2.5,
        "Floor of a rack with its share of the aisles.",
        unit="m2/rack",
        default_source="assumed: 0.72 m2 of rack and two and a half times as much of aisles",
        gt=0,
        le=100,
    )
    racks: int | None = field(None, "Racks that can be placed.", unit="racks", ge=0)
    rack_units: int = field(
        42, "Height of a rack usable for servers.", unit="U", default_source="standard rack of 42 U", ge=1, le=100
    )
    rack_kw: float | None = field(
        None,
        "Most power of one rack, below the cooling option's own limit.",
        unit="kW",
        default_source="the cooling option's practical limit",
        gt=0,
    )


class NamedSite(Site):
    """One of several sites that a training job may use alone or together."""

    name: str = field(REQUIRED, "Name of the site, used in the plan.", min_length=1, max_length=80)


class WanLink(Frozen):
    """A link between two sites. Sites without one do not train together."""

    between: tuple[str, ...] = field(REQUIRED, "Names of the two sites.", min_length=2, max_length=2)
    gbit_per_s: float = field(REQUIRED, "Rate each way that the job may use.", unit="Gb/s", gt=0, le=1e9)
    km: float = field(0.0, "Length of the fibre.", unit="km", default_source="0: light needs no time", ge=0, le=50_000)
