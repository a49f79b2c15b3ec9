"""Buy against rent, how much to commit, and the bill of a rented cluster: pure functions of prices.

Programs decide these things exactly; the functions here state the textbook answers, for the plan's comparison and as
checks of the program.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from optimizer.units import HOURS_PER_YEAR, MONTHS_PER_YEAR

#: Longest ownership that is looked at for a break-even, in months.
_MOST_MONTHS = 600


def break_even_hours(capital_usd: float, rent_usd_per_hour: float, running_usd_per_hour: float) -> float:
    """Hours of full use after which buying has cost less: ``h = K / (c_rent - c_run)``; infinite if renting is cheaper.

    Source: Lenovo Press LP2225, "On-premise vs cloud: generative AI total cost of ownership".
    """
    saved = rent_usd_per_hour - running_usd_per_hour
    return capital_usd / saved if saved > 0.0 else math.inf


def break_even_utilization(owned_usd_per_installed_hour: float, rent_usd_per_used_hour: float) -> float:
    """Share of hours in use above which owning is cheaper: ``u = c_own / c_rent``. Above 1: never."""
    return owned_usd_per_installed_hour / rent_usd_per_used_hour


def break_even_month(
    capital_usd: float,
    running_usd_per_month: float,
    rent_usd_per_month: float,
    *,
    rate: float = 0.0,
    rent_fall_per_year: float = 0.0,
) -> int | None:
    """First month by whose end owning has cost less than renting in present value; None within 50 years.

    ``K + sum run (1+d)^(-m/12) < sum rent (1-f)^(m/12) (1+d)^(-m/12)``: rent falls by ``f`` a year, all is
    discounted at ``d``. With falling rent owning may never pay, so long life alone does not decide.
    """
    owned, rented = capital_usd, 0.0
    for month in range(1, _MOST_MONTHS + 1):
        years = month / MONTHS_PER_YEAR
        worth = (1.0 + rate) ** -years
        owned += running_usd_per_month * worth
        rented += rent_usd_per_month * (1.0 - rent_fall_per_year) ** years * worth
        if owned < rented:
            return month
    return None


def committed_level(
    load: Iterable[tuple[float, float]], committed_usd_per_hour: float, on_demand_usd_per_hour: float
) -> float:
    """Accelerators to commit to where committed ones are paid at every hour and the rest on demand (newsvendor).

    ``load`` gives (accelerators needed, hours). The level is the least ``q`` among the needs and 0 for which the share
    of hours with a need above ``q`` is at most ``c_committed / c_on_demand``; it minimises
    ``c_committed q + c_on_demand mean(max(0, D - q))``.
    """
    rows = tuple(load)
    hours = math.fsum(lasting for _, lasting in rows)
    ratio = committed_usd_per_hour / on_demand_usd_per_hour
    for level in sorted({0.0, *(need for need, _ in rows)}):
        if math.fsum(lasting for need, lasting in rows if need > level) <= ratio * hours:
            return level
    raise AssertionError("no need is above the highest")  # pragma: no cover


def mixed_rent_usd_per_year(
    load: Iterable[tuple[float, float]],
    committed: float,
    committed_usd_per_hour: float,
    on_demand_usd_per_hour: float,
) -> float:
    """Yearly rent with ``committed`` accelerators paid at every hour and what the load needs above them on demand."""
    above = math.fsum(max(0.0, need - committed) * lasting for need, lasting in load)
    return committed * committed_usd_per_hour * HOURS_PER_YEAR + above * on_demand_usd_per_hour


@dataclass(frozen=True, slots=True)
class RentedCluster:
    """What a rented cluster is billed and what it loses, in USD a month; ``setup_usd`` once.

    ``support_fraction`` is charged on the billed items alone. ``goodput_usd`` is the worth of hours lost to failures,
    ``debugging_usd`` that of the engineers' time.
    """

    accelerators_usd: float
    storage_usd: float = 0.0
    network_usd: float = 0.0
    hosts_usd: float = 0.0
    support_fraction: float = 0.0
    goodput_usd: float = 0.0
    debugging_usd: float = 0.0
    setup_usd: float = 0.0

    @property
    def support_usd_per_month(self) -> float:
        """Support: a share of what is billed."""
        return self.support_fraction * (self.accelerators_usd + self.storage_usd + self.network_usd + self.hosts_usd)

    def usd_per_month(self, months: float) -> float:
        """``(accelerators + storage + network + hosts)(1 + support) + goodput loss + set-up/months + debugging``.

        Source: SemiAnalysis ClusterMAX, total cost of ownership calculator.
        """
        billed = self.accelerators_usd + self.storage_usd + self.network_usd + self.hosts_usd
        lost = self.goodput_usd + self.debugging_usd + self.setup_usd / months
        return billed + self.support_usd_per_month + lost
