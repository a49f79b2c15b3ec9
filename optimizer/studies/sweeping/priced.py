"""A solution's fleets at another case: whether they can stand there, and what they cost."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from optimizer.extract import TIE
from optimizer.offer import Offer
from optimizer.program_data import ProgramData
from optimizer.setting import Setting
from optimizer.studies.sweeping.fleet_limits import within_limits
from optimizer.studies.sweeping.relations import screened_data
from optimizer.studies.sweeping.solving import Solution, at_case, usd_per_year


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """A solution's fleets at another case: data of what they use, yearly cost of the fleet and of the cheapest one.

    ``screened`` are the case's own data where its candidates differ. ``fits``: both fleets keep the limits that move.
    """

    offer: Offer
    data: ProgramData
    screened: ProgramData | None
    usd: float
    least_usd: float
    fits: bool

    @property
    def in_window(self) -> bool:
        """Whether the fleet counts as one of least cost."""
        return self.usd <= self.least_usd * (1.0 + TIE)


def priced(solution: Solution, offer: Offer, *, screens: bool) -> Priced | None:
    """Both fleets of a solution at another case; None where they cannot stand there as they are.

    ``screens``: the case may differ in limits of one deployment, so that its candidates differ.
    """
    counts, cheapest = solution.counts, solution.cheapest
    assert counts is not None
    assert cheapest is not None
    if is_paid_by_level(offer.setting):
        return None
    screened = None
    if screens:
        screened = screened_data(solution, offer, {*counts.replicas, *cheapest.replicas})
        if screened is None:
            return None
    data = at_case(solution, counts, offer, screened)
    other = data
    if cheapest.replicas.keys() != counts.replicas.keys() or cheapest.servers.keys() != counts.servers.keys():
        other = at_case(solution, cheapest, offer, screened)
    cost, least = usd_per_year(data, counts), usd_per_year(other, cheapest)
    fits = all(within_limits(its, fleet, usd) for its, fleet, usd in ((data, counts, cost), (other, cheapest, least)))
    return Priced(offer if screened is not None else solution.offer, data, screened, cost, least, fits)


def is_paid_by_level(setting: Setting) -> bool:
    """Whether servers may be paid by load level: what is had at each level changes with every case."""
    return setting.follows_load and any(setting.is_elastic(pool) for pool in setting.pools)


def have_the_same_plans(settings: Iterable[Setting]) -> bool:
    """Whether all settings have the same plans but for limits, whatever these cost; False where any pays by load level.

    A server without a price is not offered, so a price may bring it to market. Every setting is looked at, so that no
    proof hangs on what the first one happens to be.
    """
    first: tuple[object, ...] | None = None
    last: Setting | None = None
    for setting in settings:
        if last is not None and all(getattr(setting, name) is getattr(last, name) for name in _SHAPES):
            continue
        found = _shape(setting)
        first = found if first is None else first
        if is_paid_by_level(setting) or found != first:
            return False
        last = setting
    return True


#: What ``_shape`` reads of a setting.
_SHAPES: Final = ("pools", "server_types", "fabrics", "levels", "provider_limits")


def _shape(setting: Setting) -> tuple[object, ...]:
    """What the program of a setting is made of, whatever it costs.

    Servers that can be had and how, steps of quantity discounts, tiers of fabric, load levels, providers' limits.
    """
    return (
        tuple((pool.id, pool.is_hourly, pool.availability, pool.owned is not None) for pool in setting.pools),
        tuple((one.id, one.discounts, one.discount_kind) for one in setting.server_types),
        tuple((speed, tuple(fabric.id for fabric in fabrics)) for speed, fabrics in sorted(setting.fabrics.items())),
        tuple((level.fraction, level.hours_per_year) for level in setting.levels),
        tuple(sorted(setting.provider_limits.items())),
    )
