"""What is already owned: servers that stand, with the cooling they stand in and the life that is left."""

from optimizer.instance.fields import REQUIRED, Frozen, field


class OwnedServers(Frozen):
    """Servers of one type that are owned. They cost energy, space and upkeep, and no capital while their life lasts."""

    accelerator: str = field(REQUIRED, "Accelerator, by catalogue id.", min_length=1)
    servers: int = field(
        REQUIRED,
        "Whole servers owned, with the accelerators that the catalogue's server of the type has.",
        unit="servers",
        ge=1,
        le=1_000_000,
    )
    cooling: str = field(REQUIRED, "Cooling option they stand in, by catalogue id.", min_length=1)
    remaining_life_years: float = field(
        REQUIRED,
        "Years until they are replaced; at or beyond the horizon they last it.",
        unit="years",
        gt=0,
        le=50,
    )
    book_value_usd: float | None = field(
        None, "Book value of all of them. It is sunk: the answer states it and bills none of it.", unit="USD", ge=0
    )
    upkeep_usd_per_server_year: float | None = field(
        None,
        "Maintenance and support of one server a year.",
        unit="USD/server-year",
        default_source="economics.server_maintenance_fraction of the price of a new server",
        ge=0,
        le=1e9,
    )
