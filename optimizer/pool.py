"""A pool: servers of one type, got in one way and cooled in one way. Its shapes, and what kinds of ways there are."""

from dataclasses import dataclass
from typing import Literal

from optimizer.catalog.rows import Accelerator, CoolingOption, Trust

#: ``owned``: servers of the inventory. The others are ways to get new ones.
Sourcing = Literal["owned", "buy", "on_demand", "reserved_1yr", "reserved_3yr", "spot"]
RENTAL_TERMS: tuple[Literal["on_demand", "reserved_1yr", "reserved_3yr", "spot"], ...] = (
    "on_demand",
    "reserved_1yr",
    "reserved_3yr",
    "spot",
)
#: Terms that can be given up by the hour: such servers may be paid in the hours that use them only.
HOURLY_TERMS: frozenset[Sourcing] = frozenset({"on_demand", "spot"})


@dataclass(frozen=True, slots=True)
class Price:
    """A price with where it comes from."""

    usd: float
    source: str
    as_of: str
    trust: Trust


@dataclass(frozen=True, slots=True)
class ServerType:
    """An accelerator and how many of it stand in one server.

    ``server_usd`` is None where it can only be rented, or is only owned; ``rent`` maps a term to the least price per
    accelerator-hour. ``discounts`` are (from_servers, discount_fraction), rising. Under a ``power_cap_fraction``
    below 1 its accelerators draw no more than that fraction of their TDP: the same servers in a state of their own.
    """

    id: str
    accelerator: Accelerator
    accelerators: int
    server_usd: Price | None
    discounts: tuple[tuple[int, float], ...]
    discount_kind: Literal["all_units", "incremental"]
    rent: dict[Sourcing, Price]
    power_cap_fraction: float = 1.0


@dataclass(frozen=True, slots=True)
class Owned:
    """Servers of the inventory: how many, years that are left, the planner's own upkeep, book value that is sunk.

    ``new_server`` is the undiscounted price of a new server of the type, where one is known.
    """

    servers: int
    remaining_life_years: float
    upkeep_usd_per_year: float | None
    book_value_usd: float | None
    new_server: Price | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """Servers of one type got in one way and cooled in one way; powers are of one server, its network included.

    ``rent`` is the price per accelerator-hour of a rented pool's own offer (None: the least of its type and term),
    ``availability`` the share of the paid time in which its servers serve.
    """

    id: str
    server_type: ServerType
    sourcing: Sourcing
    cooling: CoolingOption | None
    per_rack: int
    fan_factor: float
    network_kw: float
    server_kw: float
    pue_mean: float
    pue_design: float
    provider: str = ""
    region: str = ""
    rent: Price | None = None
    availability: float = 1.0
    owned: Owned | None = None

    @property
    def is_bought(self) -> bool:
        """Whether new servers are bought, with their network, racks and cooling plant."""
        return self.sourcing == "buy"

    @property
    def in_hall(self) -> bool:
        """Whether servers stand in the planner's hall: bought or owned. Rented ones stand elsewhere."""
        return self.sourcing in ("buy", "owned")

    @property
    def is_hourly(self) -> bool:
        """Whether servers can be given up by the hour."""
        return self.sourcing in HOURLY_TERMS

    @property
    def rent_price(self) -> Price:
        """Price per accelerator-hour of a rented pool."""
        return self.rent if self.rent is not None else self.server_type.rent[self.sourcing]

    def loaded_kw(self, air_kw: float) -> float:
        """Power (kW) of one server of this pool that draws ``air_kw`` in air without its network."""
        return air_kw * self.fan_factor + self.network_kw
