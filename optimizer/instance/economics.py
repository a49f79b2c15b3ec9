"""What it costs: horizon, rates, lives, prices and the planner's own overrides."""

from typing import Literal

from pydantic import Field

from optimizer.instance.discounts import DiscountKind, NetworkDiscount, PlantDiscount
from optimizer.instance.facility import Hall, Services, Staff
from optimizer.instance.fields import REQUIRED, Frozen, Ruled, field


class Discount(Frozen):
    """A step of a quantity discount."""

    from_servers: int = field(REQUIRED, "The discount holds from this count of servers on.", unit="servers", ge=2)
    discount_fraction: float = field(REQUIRED, "Taken off the undiscounted price.", unit="fraction", ge=0, lt=1)


class AcceleratorPrices(Ruled):
    """The planner's own prices of one accelerator; what is absent is taken from the catalogue."""

    server_usd: float | None = field(
        None, "Price of a whole server (of a rack for NVL72).", unit="USD/server", ge=0, le=1e12
    )
    discounts: tuple[Discount, ...] = field(
        (), "Quantity discounts on servers.", default_source="none: quotes are private"
    )
    discount_kind: Literal["all_units", "incremental"] = field(
        "all_units",
        "all_units: the step reached holds for every server; incremental: only for servers beyond the step.",
        default_source="usual form of a volume quote (assumed)",
    )
    on_demand_usd_per_hour: float | None = field(
        None, "Rent of one accelerator, on demand.", unit="USD/accelerator-hour", ge=0, le=1e6
    )
    reserved_1yr_usd_per_hour: float | None = field(
        None, "Rent of one accelerator, committed for a year.", unit="USD/accelerator-hour", ge=0, le=1e6
    )
    reserved_3yr_usd_per_hour: float | None = field(
        None, "Rent of one accelerator, committed for three years.", unit="USD/accelerator-hour", ge=0, le=1e6
    )
    spot_usd_per_hour: float | None = field(
        None, "Rent of one accelerator that may be withdrawn.", unit="USD/accelerator-hour", ge=0, le=1e6
    )


class RentFallbacks(Frozen):
    """Rent of terms that an offer states no price for, as shares of the same offer's price on demand.

    A term without its share here is not offered where it has no price row. Prices made so are tagged assumed.
    """

    reserved_1yr_fraction: float | None = field(
        None, "Of the price on demand, committed for a year.", unit="fraction", gt=0, le=1
    )
    reserved_3yr_fraction: float | None = field(
        None, "Of the price on demand, committed for three years.", unit="fraction", gt=0, le=1
    )
    spot_fraction: float | None = field(None, "Of the price on demand, on spot.", unit="fraction", gt=0, le=1)


class CoolingPrices(Ruled):
    """The planner's own prices of one cooling option; what is absent is taken from the catalogue."""

    fixed_usd: float | None = field(None, "Paid once when the plant is built.", unit="USD", ge=0, le=1e12)
    marginal_usd_per_kw: float | None = field(
        None, "Paid for each kW of heat it is sized for.", unit="USD/kW", ge=0, le=1e9
    )
    per_rack_usd: float | None = field(
        None,
        "Paid for each rack that it cools, however full: a rear door, a rack's share of the coolers in its row.",
        unit="USD/rack",
        ge=0,
        le=1e7,
    )
    maintenance_fraction: float | None = field(
        None, "Maintenance per year as a share of the plant's capital.", unit="1/year", ge=0, le=1
    )
    discounts: tuple[PlantDiscount, ...] = field(
        (),
        "Quantity discounts on the price per kW; the fixed price has none.",
        default_source="none: quotes are private",
    )
    discount_kind: DiscountKind = field(
        "all_units",
        "all_units: the step reached holds for every kW, and a larger plant is ordered where that costs less;"
        " incremental: only for the kW beyond the step.",
        default_source="usual form of a volume quote (assumed)",
    )


class Economics(Ruled):
    """Horizon, rates, lives, budgets and prices. Money is nominal USD."""

    horizon_years: float = field(
        5.0,
        "Years over which cost is counted.",
        unit="years",
        default_source="book life of servers (assumed)",
        # About a month, the shortest that anything is rented for; an annuity over less has no meaning.
        ge=0.08,
        le=50,
    )
    discount_rate: float = field(
        0.08,
        "Yearly rate at which later money counts less.",
        unit="1/year",
        default_source="8 %: practitioners' cost models",
        ge=0,
        le=1,
    )
    server_life_years: float = field(
        5.0,
        "Life of servers.",
        unit="years",
        default_source="4 to 6 years in operators' accounts (assumed)",
        gt=0,
        le=50,
    )
    network_life_years: float = field(
        5.0, "Life of the cluster network.", unit="years", default_source="4 to 6 years (assumed)", gt=0, le=50
    )
    cooling_life_years: float = field(
        15.0,
        "Life of the cooling plant.",
        unit="years",
        default_source="10 to 20 years, as the building (assumed)",
        gt=0,
        le=50,
    )
    server_maintenance_fraction: float = field(
        0.04,
        "Maintenance and support per year as a share of the server price.",
        unit="1/year",
        default_source="4 %: cost model of the practitioners (assumed)",
        ge=0,
        le=1,
    )
    network_maintenance_fraction: float = field(
        0.04,
        "Maintenance per year as a share of the network's price.",
        unit="1/year",
        default_source="as for servers (assumed)",
        ge=0,
        le=1,
    )
    liquid_ready_usd_per_kw: float = field(
        450.0,
        "Premium of a server built with cold plates and manifolds, where it could also be bought for air.",
        unit="USD/kW of server power",
        default_source="assumed: about 4,500 USD for an 8-accelerator server of 10 kW",
        ge=0,
        le=1e5,
    )
    liquid_retrofit_usd_per_kw: float | None = field(
        None,
        "Cost of converting a server to liquid cooling that is not sold for it; only with choices.liquid_retrofit.",
        unit="USD/kW of server power",
        default_source="catalogue figure at the price level: 2,000 to 3,000 USD/kW (assumed)",
        ge=0,
        le=1e5,
    )
    colocation_usd_per_kw_month: float | None = field(
        None,
        "Rent of powered space with an ordinary air plant, energy not included, per kW of IT peak.",
        unit="USD/kW-month",
        default_source="catalogue figure for United States wholesale colocation",
        ge=0,
        le=1e5,
    )
    rack_usd: float | None = field(
        None,
        "Price of one rack with its power strips.",
        unit="USD/rack",
        default_source="catalogue figure",
        ge=0,
        le=1e7,
    )
    carbon_usd_per_tonne: float = field(
        0.0,
        "Price of carbon dioxide from the energy of bought servers.",
        unit="USD/t",
        default_source="none: what utilities pay for it is in their prices",
        ge=0,
        le=1e5,
    )
    water_usd_per_m3: float = field(
        0.0,
        "Price of the water that cooling of bought servers takes, sewer included.",
        unit="USD/m3",
        default_source="none: no public tariff was found; state yours",
        ge=0,
        le=1e4,
    )
    energy_escalation_fraction: float = field(
        0.0166,
        "Rise of the energy price a year, from the second year on.",
        unit="1/year",
        default_source="1.66 %: nominal, NREL REopt",
        ge=-0.5,
        le=1,
    )
    server_residual_fraction: float = field(
        0.0,
        "Share of their price that servers fetch when their life ends.",
        unit="fraction",
        default_source="0: the safe case; one vendor's series of H100 has 0.125 after five years",
        ge=0,
        lt=1,
    )
    server_price_change_fraction: float = field(
        0.0,
        "Change a year of the price at which servers are replaced within the horizon.",
        unit="1/year",
        default_source="0: replaced at today's price; for the same work prices fell by 28 % a year (Epoch AI)",
        ge=-0.9,
        le=1,
    )
    tax_fraction: float = field(
        0.0,
        "Tax on profit: running cost and straight-line write-off lower it. The discount rate is then one after tax.",
        unit="fraction",
        default_source="0: before tax",
        ge=0,
        lt=1,
    )
    hall: Hall = field(Hall(), "The building.")
    staff: Staff = field(Staff(), "People who run bought servers.")
    services: Services = field(Services(), "What stands or is paid beside servers, network and hall.")
    price_level: Literal["low", "typical", "high"] = field(
        "typical",
        "Which of the catalogue's purchase figures is used.",
        default_source="typical of low, typical and high",
    )
    price_classes: tuple[Literal["list", "marketplace_or_community"], ...] = field(
        ("list",), "Which rental offers count.", default_source="list prices: what anyone can order", min_length=1
    )
    rent_fallbacks: RentFallbacks = field(
        RentFallbacks(),
        "Prices of rental terms that have no price row.",
        default_source="none: a term without a price is not offered",
    )
    budget_capex_usd: float | None = field(None, "Most capital spent at the start.", unit="USD", gt=0)
    budget_usd_per_year: float | None = field(None, "Most yearly cost, capital as an annuity.", unit="USD/year", gt=0)
    budget_usd: float | None = field(
        None, "Training: most cost of all jobs together, whatever the horizon.", unit="USD", gt=0
    )
    charge: Literal["job", "horizon"] = field(
        "job",
        "Training: bought servers are charged for the days on which jobs hold them, or for the whole horizon.",
        default_source="job: other work has the rest of their life",
    )
    prices: dict[str, AcceleratorPrices] = Field(
        default_factory=dict,
        description="The planner's own prices, by accelerator id.",
        json_schema_extra={"default_source": "catalogue prices"},
    )
    network_discounts: tuple[NetworkDiscount, ...] = field(
        (),
        "Quantity discounts on the network of bought accelerators of one link speed.",
        default_source="none: quotes are private",
    )
    network_discount_kind: DiscountKind = field(
        "all_units",
        "all_units: the step reached holds for the whole order, and more is ordered where that costs less;"
        " incremental: only for accelerators beyond the step.",
        default_source="usual form of a volume quote (assumed)",
    )
    cooling_prices: dict[str, CoolingPrices] = Field(
        default_factory=dict,
        description="The planner's own prices of cooling, by cooling id.",
        json_schema_extra={"default_source": "catalogue prices"},
    )
