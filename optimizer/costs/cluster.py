"""Capital of a cluster by size, and an accelerator-hour at a site: pure functions of figures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from optimizer.costs.finance import annuity_usd
from optimizer.units import HOURS_PER_YEAR

#: Ports of a switch, and links of a server that go to as many separate planes (rails).
SWITCH_PORTS, RAILS = 64, 8
#: Servers up to which no switch is needed: they are cabled to each other.
DIRECT_SERVERS = 2


def switch_tiers(servers: float, ports: int = SWITCH_PORTS) -> int:
    """Switch tiers of a non-blocking fat tree: a rail reaches ``k``, ``k^2/2``, ``k^3/4`` servers with 1, 2, 3 tiers.

    With 64 ports: to 64 servers one tier, to 2048 two, to 65536 three; two servers are joined without a switch.
    """
    if servers <= DIRECT_SERVERS:
        return 0
    for tiers in (1, 2, 3):
        if servers <= 2.0 * (ports / 2.0) ** tiers:
            return tiers
    raise ValueError(f"more than three tiers of {ports}-port switches reach")


def switch_count(servers: float, ports: int = SWITCH_PORTS, rails: int = RAILS) -> int:
    """Switches of the fat tree: ``links (2 tiers - 1) / ports``, rounded up; all ports of the top tier go downwards."""
    tiers = switch_tiers(servers, ports)
    return math.ceil(servers * rails * (2 * tiers - 1) / ports - 1e-9) if tiers else 0


@dataclass(frozen=True, slots=True)
class ClusterPrices:
    """Unit prices (USD): server, its share of the facility, switch, cables and optics per server by switch tiers."""

    server_usd: float
    facility_usd_per_server: float
    switch_usd: float
    cables_usd_per_server: Sequence[float]


@dataclass(frozen=True, slots=True)
class ClusterCapital:
    """Capital by part, in USD."""

    servers_usd: float
    facility_usd: float
    switches_usd: float
    cables_usd: float

    @property
    def network_usd(self) -> float:
        """Switches and cables."""
        return self.switches_usd + self.cables_usd

    @property
    def usd(self) -> float:
        """All parts."""
        return self.servers_usd + self.facility_usd + self.network_usd


def cluster_capital(servers: float, prices: ClusterPrices) -> ClusterCapital:
    """Capital of a cluster of eight-accelerator servers with one link of the fabric for each accelerator.

    A step function: a further switch tier makes every server's cabling and switching dearer. Source: the H100 cluster
    sheet of "H100-freakonomics" (August 2024).
    """
    return ClusterCapital(
        servers_usd=servers * prices.server_usd,
        facility_usd=servers * prices.facility_usd_per_server,
        switches_usd=switch_count(servers) * prices.switch_usd,
        cables_usd=servers * prices.cables_usd_per_server[switch_tiers(servers)],
    )


def site_accelerator_hour_usd(
    *,
    kw: float,
    pue: float,
    usd_per_kwh: float,
    accelerator_usd: float,
    accelerator_life_years: float,
    utilization: float,
    build_usd_per_kw: float,
    facility_life_years: float,
    rate: float = 0.0,
) -> float:
    """Cost of an accelerator-hour at a site: ``PUE kW p + GPU A(n)/(8766 u) + kW build A(m)/8766``, A the annuity.

    At rate 0 (``A = 1/n``) the form of M. Lokshin (2026): energy and hall by the installed hour, the accelerator by the
    used hour.
    """
    accelerator = annuity_usd(accelerator_usd, rate, accelerator_life_years) / (HOURS_PER_YEAR * utilization)
    hall = annuity_usd(kw * build_usd_per_kw, rate, facility_life_years) / HOURS_PER_YEAR
    return pue * kw * usd_per_kwh + accelerator + hall
