"""What a bought fleet that several jobs share costs, as pieces that a linear program can hold.

Two kinds of pieces: segments, straight lines between the counts of servers at which a price tier, a tier of the fabric
or a discount begins; and things that come whole, of which a count of servers needs a share each (racks, posts, servers
that manage others). Together they are ``PoolPrices.yearly_usd`` at every whole count.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from optimizer.costs.servers import tier_prices
from optimizer.costs.staff import staff_need
from optimizer.costs.term import QuantityKey
from optimizer.performance.factors import FloatArray
from optimizer.training.orders import bends, has_discounts
from optimizer.training.prices import RUNNING, IntArray, PoolPrices

#: Families of quantities that come whole.
_WHOLE: Final = frozenset({"Racks", "Posts", "ManagementServers"})
#: Slack of a count that is rounded up, for the last bit of a division.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Segment:
    """Counts of one pool at which its fleet costs ``fixed + each x count``, in USD over the horizon and capital."""

    first: int
    last: int
    usd_fixed: float
    usd_each: float
    capital_fixed: float
    capital_each: float


@dataclass(frozen=True, slots=True)
class Whole:
    """Something that a fleet needs whole: at least ``per_server`` x servers of it, and ``least`` where there are any.

    ``usd`` over the horizon and ``capital_usd`` of one.
    """

    key: QuantityKey
    per_server: float
    least: int
    usd: float
    capital_usd: float


def horizon_usd(prices: PoolPrices, total: IntArray) -> FloatArray:
    """What fleets of so many servers, spares included, are charged over the horizon, energy and rent apart."""
    return _usd(prices, total, frozenset())


def _straight_usd(prices: PoolPrices, total: IntArray) -> FloatArray:
    return _usd(prices, total, _WHOLE)


def _usd(prices: PoolPrices, total: IntArray, without: frozenset[str]) -> FloatArray:
    yearly = np.zeros(total.shape)
    for term in prices.terms:
        if term.component not in ("rent", *RUNNING) and term.quantity[0] not in without:
            yearly = yearly + term.usd_per_year * prices.quantity(term.quantity, total, total)
    return yearly / prices.horizon_share


def _straight_capital(prices: PoolPrices, total: IntArray) -> FloatArray:
    capital = np.zeros(total.shape)
    for term in prices.terms:
        if term.quantity[0] not in _WHOLE and term.capital_usd:
            capital = capital + term.capital_usd * prices.quantity(term.quantity, total, total)
    return capital


def segments_of(prices: PoolPrices, most: int) -> Iterator[Segment]:
    """Straight pieces of what 1 to ``most`` servers of a bought pool cost; what comes whole is apart."""
    size = prices.pool.server_type.accelerators
    fabrics = prices.place.setting.fabrics[prices.pool.server_type.accelerator.scale_out_gb_s]
    steps = {1, *(tier[0] for tier in tier_prices(prices.pool.server_type))}
    steps |= {fabric.max_accelerators // size + 1 for fabric in fabrics[:-1]}
    if has_discounts(prices.place.setting, prices.heat):
        steps |= _bends(prices, most)
    starts = np.array(sorted(step for step in steps if step <= most), dtype=np.int64)
    ends = np.append(starts[1:] - 1, most)
    spans = np.maximum(ends - starts, 1)
    found = []
    for of in (_straight_usd, _straight_capital):
        low, high = of(prices, starts), of(prices, ends)
        each = (high - low) / spans
        found += [low - each * starts, each]
    columns = [column.tolist() for column in (starts, ends, *found)]
    yield from (Segment(int(first), int(last), *rest) for first, last, *rest in zip(*columns, strict=True))


def _bends(prices: PoolPrices, most: int) -> set[int]:
    """Counts of servers at which a straight piece of what network and plants cost begins, discounts on them counted."""
    counts = np.arange(1, most + 1)
    paid = [term for term in prices.terms if term.component in ("network", "cooling") and term.capital_usd]
    parts = [term.capital_usd * prices.quantity(term.quantity, counts, counts) for term in paid]
    return bends(np.sum(parts, axis=0)) if parts and most > 2 else set(range(1, most + 1))


def wholes_of(prices: PoolPrices) -> Iterator[Whole]:
    """What a fleet of a bought pool needs whole; racks always, for the limits of a site."""
    yearly: dict[QuantityKey, float] = {("Racks", prices.pool.id): 0.0}
    capital: dict[QuantityKey, float] = {}
    for term in prices.terms:
        if term.quantity[0] in _WHOLE:
            yearly[term.quantity] = yearly.get(term.quantity, 0.0) + term.usd_per_year
            capital[term.quantity] = capital.get(term.quantity, 0.0) + term.capital_usd
    for key, usd_per_year in yearly.items():
        one, per_server, least = 1.0, 0.0, 0
        if key[0] == "Racks":
            per_server = 1.0 / prices.pool.per_rack
        elif key[0] == "ManagementServers":
            per_server = 1.0 / (prices.place.setting.instance.economics.services.servers_per_management_server or 1)
        else:
            need = staff_need(prices.place.setting)
            built = prices.place.setting.instance.site.facility == "own_build"
            kw = prices.pool.server_kw if built else 0.0
            one = need.step
            per_server = (need.per_accelerator * prices.pool.server_type.accelerators + need.per_hall_kw * kw) / one
            least = math.ceil(need.hall_minimum / one - _ROUNDING) if built else 0
        usd, capital_usd = usd_per_year * one / prices.horizon_share, capital.get(key, 0.0) * one
        yield Whole(key, per_server, least, usd, capital_usd)
