"""Random halls, staff, services, tax and residual values, laid over a random instance from a stream of their own."""

from collections.abc import Iterable
from random import Random
from typing import Any

from optimizer.instance.model import Instance

#: Features that at least 50 of 500 instances must have.
FEATURES = (
    "own hall",
    "either hall",
    "staff",
    "services",
    "management servers",
    "residual value",
    "tax",
    "replacement",
    "software",
)
#: Rarer.
CAPS = ("floor",)


def add_site(random: Random, document: dict[str, Any]) -> None:
    """What stands and works at the site, and what time makes of it."""
    economics, site = document["economics"], document["site"]
    hall: dict[str, Any] = {}
    site["facility"] = random.choice(("colocation", "colocation", "own_build", "cheaper"))
    if random.random() < 0.5:
        hall["build_usd_per_kw"] = random.choice((500.0, 5000.0, 20_000.0))
    if random.random() < 0.4:
        hall |= {"life_years": random.choice((8.0, 20.0)), "maintenance_fraction": random.choice((0.0, 0.05))}
    if random.random() < 0.3:
        hall["fit_out_usd_per_kw"] = 750.0
    if random.random() < 0.3:
        hall["colocation_escalation_fraction"] = random.choice((0.0, 0.08))
    # The wages of a real hall would decide every small fleet alone.
    staff: dict[str, Any] = {"usd_per_fte_year": random.choice((0.0, 500.0, 5000.0, 150_000.0))}
    if random.random() < 0.7:
        staff |= {"minimum_fte": random.choice((0.0, 0.5, 2.0)), "step_fte": random.choice((0.1, 0.25, 1.0))}
    if random.random() < 0.4:
        staff |= {"fte_per_server": random.choice((0.0, 0.2)), "fte_per_mw": random.choice((0.0, 100.0))}
    services: dict[str, Any] = {}
    if random.random() < 0.3:
        services["storage_tb_per_accelerator"] = random.choice((1.0, 20.0))
    if random.random() < 0.3:
        services |= {"servers_per_management_server": random.choice((1, 2, 4)), "management_server_usd": 9000.0}
    if random.random() < 0.2:
        services |= {"connectivity_gbps": 10.0, "connectivity_usd_per_gbps_year": 300.0}
    if random.random() < 0.3:
        services["insurance_fraction"] = random.choice((0.0, 0.02))
    for name, part in (("hall", hall), ("staff", staff), ("services", services)):
        if part:
            economics[name] = part
    if random.random() < 0.3:
        economics["server_residual_fraction"] = random.choice((0.1, 0.3))
    if random.random() < 0.25:
        economics["tax_fraction"] = random.choice((0.21, 0.3))
    if random.random() < 0.25:
        economics |= {"horizon_years": random.choice((7.0, 10.0, 4.5)), "server_life_years": random.choice((3.0, 4.0))}
        economics["server_price_change_fraction"] = random.choice((-0.28, 0.1))


def add_software(random: Random, document: dict[str, Any]) -> None:
    """Licences for each accelerator, bought, owned or rented; from a stream of their own, so that seeds stay."""
    if random.random() < 0.2:
        services = document["economics"].setdefault("services", {})
        services["software_usd_per_accelerator_year"] = random.choice((100.0, 500.0, 2000.0))


def add_floor(random: Random, document: dict[str, Any], racks: int) -> None:
    """A floor around what the cheapest fleet takes."""
    if racks and random.random() < 0.3:
        document["site"]["floor_m2"] = round(2.5 * racks * random.uniform(0.7, 1.5), 1)


def features(instance: Instance) -> Iterable[str]:
    """Which of them an instance has."""
    site, economics = instance.site, instance.economics
    yield {"own_build": "own hall", "cheaper": "either hall", "colocation": ""}[site.facility]
    services = economics.services
    given = {
        "staff": economics.staff.usd_per_fte_year,
        "services": services.storage_tb_per_accelerator or services.connectivity_gbps,
        "software": services.software_usd_per_accelerator_year,
        "management servers": services.servers_per_management_server,
        "residual value": economics.server_residual_fraction,
        "tax": economics.tax_fraction,
        "replacement": economics.server_price_change_fraction,
        "floor": site.floor_m2,
    }
    yield from (name for name, value in given.items() if value)
