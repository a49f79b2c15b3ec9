"""What a field does to the program when it moves: that decides which stages are built anew and what may be reused.

A field that is not listed rebuilds everything and every case of it is solved on its own, so a new field is safe before
it is listed. ``tests/studies/test_sweep_stages.py`` holds every listed one to what it is listed as.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, Literal

from optimizer.instance.field_paths import FieldPath
from optimizer.instance.positions import Path

Looser = Literal["larger", "smaller"]


class Kind(Enum):
    """What the program sees of a field.

    LIMIT: one right-hand side of a fleet limit; costs and candidates stay.
    DEMAND: how much a class asks for; costs of servers and candidates stay.
    FLEET: spares and utilization: rows of the program; candidates and costs stay, nothing is ordered.
    PRICE: costs alone.
    SCREEN: a right-hand side of a limit of one deployment: which candidates are offered, and at which concurrency.
    OTHER: anything.
    """

    LIMIT = "limit"
    DEMAND = "demand"
    FLEET = "fleet"
    PRICE = "price"
    SCREEN = "screen"
    OTHER = "other"


#: Fields by pattern; ``*`` is any step. The word is which values are looser.
_FIELDS: Final[Mapping[Path, tuple[Kind, Looser]]] = MappingProxyType(
    {
        ("site", "power_kw"): (Kind.LIMIT, "larger"),
        ("site", "racks"): (Kind.LIMIT, "larger"),
        ("site", "floor_m2"): (Kind.LIMIT, "larger"),
        ("site", "carbon_tonnes_per_year"): (Kind.LIMIT, "larger"),
        ("site", "water_m3_per_year"): (Kind.LIMIT, "larger"),
        ("choices", "max_accelerator_types"): (Kind.LIMIT, "larger"),
        ("economics", "budget_capex_usd"): (Kind.LIMIT, "larger"),
        ("economics", "budget_usd_per_year"): (Kind.LIMIT, "larger"),
        ("choices", "supply", "*"): (Kind.LIMIT, "larger"),
        ("workload", "demand", "output_tokens_per_s"): (Kind.DEMAND, "smaller"),
        ("workload", "demand", "requests_per_s"): (Kind.DEMAND, "smaller"),
        ("workload", "demand", "concurrent_users"): (Kind.DEMAND, "smaller"),
        ("workload", "classes", "*", "demand", "output_tokens_per_s"): (Kind.DEMAND, "smaller"),
        ("workload", "classes", "*", "demand", "requests_per_s"): (Kind.DEMAND, "smaller"),
        ("workload", "classes", "*", "demand", "concurrent_users"): (Kind.DEMAND, "smaller"),
        ("targets", "spare_fraction"): (Kind.FLEET, "smaller"),
        ("targets", "spare_servers"): (Kind.FLEET, "smaller"),
        ("targets", "peak_utilization_fraction"): (Kind.FLEET, "larger"),
        ("economics", "prices", "*", "server_usd"): (Kind.PRICE, "smaller"),
        ("economics", "prices", "*", "on_demand_usd_per_hour"): (Kind.PRICE, "smaller"),
        ("economics", "prices", "*", "reserved_1yr_usd_per_hour"): (Kind.PRICE, "smaller"),
        ("economics", "prices", "*", "reserved_3yr_usd_per_hour"): (Kind.PRICE, "smaller"),
        ("economics", "cooling_prices", "*", "fixed_usd"): (Kind.PRICE, "smaller"),
        ("economics", "cooling_prices", "*", "marginal_usd_per_kw"): (Kind.PRICE, "smaller"),
        ("economics", "cooling_prices", "*", "maintenance_fraction"): (Kind.PRICE, "smaller"),
        ("economics", "horizon_years"): (Kind.PRICE, "larger"),
        ("economics", "discount_rate"): (Kind.PRICE, "smaller"),
        ("economics", "server_life_years"): (Kind.PRICE, "larger"),
        ("economics", "network_life_years"): (Kind.PRICE, "larger"),
        ("economics", "cooling_life_years"): (Kind.PRICE, "larger"),
        ("economics", "server_maintenance_fraction"): (Kind.PRICE, "smaller"),
        ("economics", "network_maintenance_fraction"): (Kind.PRICE, "smaller"),
        ("economics", "liquid_ready_usd_per_kw"): (Kind.PRICE, "smaller"),
        ("economics", "liquid_retrofit_usd_per_kw"): (Kind.PRICE, "smaller"),
        ("economics", "cooling_prices", "*", "per_rack_usd"): (Kind.PRICE, "smaller"),
        ("economics", "colocation_usd_per_kw_month"): (Kind.PRICE, "smaller"),
        ("economics", "rack_usd"): (Kind.PRICE, "smaller"),
        ("site", "electricity_usd_per_kwh"): (Kind.PRICE, "smaller"),
        ("targets", "tpot_ms"): (Kind.SCREEN, "larger"),
        ("targets", "ttft_ms"): (Kind.SCREEN, "larger"),
        ("targets", "latency_ms"): (Kind.SCREEN, "larger"),
        ("targets", "vram_gib_per_accelerator"): (Kind.SCREEN, "larger"),
        ("targets", "weights_gib_per_accelerator"): (Kind.SCREEN, "larger"),
        ("targets", "nvlink_fraction"): (Kind.SCREEN, "larger"),
        ("targets", "nvlink_gb_s"): (Kind.SCREEN, "larger"),
        ("workload", "classes", "*", "targets", "tpot_ms"): (Kind.SCREEN, "larger"),
        ("workload", "classes", "*", "targets", "ttft_ms"): (Kind.SCREEN, "larger"),
        ("workload", "classes", "*", "targets", "latency_ms"): (Kind.SCREEN, "larger"),
        ("choices", "max_concurrency"): (Kind.SCREEN, "larger"),
    }
)

#: Every listed pattern, for tests.
LISTED: Final = tuple(_FIELDS)


def kind_of(field: FieldPath) -> tuple[Kind, Looser]:
    """What a field does, and which of its values are looser."""
    for pattern, kind in _FIELDS.items():
        if len(pattern) == len(field.steps) and all(
            asked in ("*", step) for asked, step in zip(pattern, field.steps, strict=True)
        ):
            return kind
    return Kind.OTHER, "larger"
