"""What it takes to run a site beside servers: the hall, the staff, insurance, storage, software, connections."""

from optimizer.instance.fields import Frozen, Ruled, field


class Hall(Frozen):
    """The building: rented by the kW (colocation), or built. The ordinary air plant in both prices is taken out."""

    build_usd_per_kw: float | None = field(
        None,
        "Cost of building a hall, per kW of IT peak; land is not in it.",
        unit="USD/kW",
        default_source="catalogue figure of the site's country, else of the world",
        ge=0,
        le=1e6,
    )
    life_years: float | None = field(
        None, "Life of a hall that is built.", unit="years", default_source="catalogue figure", gt=0, le=100
    )
    maintenance_fraction: float | None = field(
        None,
        "Upkeep and security of a hall that is built, per year as a share of its cost.",
        unit="1/year",
        default_source="catalogue figure",
        ge=0,
        le=1,
    )
    fit_out_usd_per_kw: float = field(
        0.0,
        "Paid once for each kW of colocated IT peak.",
        unit="USD/kW",
        default_source="none: racks, cold plates and cooling, which the public figure may hold, have own lines",
        ge=0,
        le=1e5,
    )
    colocation_escalation_fraction: float = field(
        0.03,
        "Rise of the colocation rent a year, from the second year on.",
        unit="1/year",
        default_source="3 %: escalator of a published wholesale lease (2026)",
        ge=-0.5,
        le=1,
    )


class Staff(Frozen):
    """People who run bought servers, in posts (full-time equivalents); paid in whole steps."""

    fte_per_server: float | None = field(
        None,
        "Posts for each server of 8 accelerators; larger and smaller ones in proportion.",
        unit="posts/server",
        default_source="catalogue figure (cluster administration)",
        ge=0,
        le=10,
    )
    fte_per_mw: float | None = field(
        None,
        "Posts for each MW of IT peak in a hall that is built.",
        unit="posts/MW",
        default_source="catalogue figure (facility staff)",
        ge=0,
        le=1000,
    )
    minimum_fte: float | None = field(
        None,
        "Least posts of a hall that is built: somebody is there at every hour.",
        unit="posts",
        default_source="catalogue figure (24x7 cover)",
        ge=0,
        le=10_000,
    )
    step_fte: float = field(
        0.25,
        "Posts are paid in whole steps of this size.",
        unit="posts",
        default_source="a quarter post: what the catalogue's source gives for one server",
        gt=0,
        le=100,
    )
    usd_per_fte_year: float | None = field(
        None, "Loaded cost of a post.", unit="USD/year", default_source="catalogue figure (United States)", ge=0, le=1e7
    )
    escalation_fraction: float = field(
        0.025,
        "Rise of wages a year, from the second year on.",
        unit="1/year",
        default_source="2.5 %: operation and maintenance in NREL REopt",
        ge=-0.5,
        le=1,
    )


class Services(Ruled):
    """What stands or is paid beside servers, network and hall. All but insurance is off unless stated."""

    insurance_fraction: float | None = field(
        None,
        "Insurance per year: of the mean book value of servers and network, and of the price of hall and cooling.",
        unit="1/year",
        default_source="catalogue figure",
        ge=0,
        le=1,
    )
    software_usd_per_accelerator_year: float = field(
        0.0,
        "Licences and their support for each accelerator, bought or rented.",
        unit="USD/accelerator-year",
        default_source="none: open-source engines; list price of a vendor's stack 4,500 USD",
        ge=0,
        le=1e6,
    )
    storage_tb_per_accelerator: float = field(
        0.0,
        "Shared storage for each bought accelerator.",
        unit="TB/accelerator",
        default_source="none: weights lie on the disks in the servers",
        ge=0,
        le=1e5,
    )
    storage_usd_per_tb: float | None = field(
        None,
        "Price of shared storage.",
        unit="USD/TB",
        default_source="catalogue figure (parallel file system)",
        ge=0,
        le=1e5,
    )
    servers_per_management_server: int | None = field(
        None,
        "Bought servers that one server without accelerators manages; absent: none.",
        unit="servers",
        ge=1,
    )
    management_server_usd: float | None = field(
        None, "Price of a server without accelerators.", unit="USD/server", ge=0, le=1e7
    )
    connectivity_gbps: float = field(
        0.0, "Connection of the site.", unit="Gbit/s", default_source="none: traffic of text is small", ge=0, le=1e6
    )
    connectivity_usd_per_gbps_year: float | None = field(
        None, "Price of the connection.", unit="USD/(Gbit/s)-year", default_source="catalogue figure", ge=0, le=1e7
    )
