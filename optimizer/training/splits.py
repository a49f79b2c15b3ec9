"""Splits of a job over several sites, in whole units: a replica, or as many as fill whole servers.

Over two sites every split is tried. Over more these are: the equal split; those where every site but one is at one
unit, at the last server of a tier of the fabric, or at what it holds; and the cheapest of all, found site by site:
the least cost of n units on the first k sites is the least over what the k-th of them takes. The ends alone would hold
a cheapest split if the cost of a site were a straight line between them; racks and posts come whole, so it is one but
for a step. Rows that even so cannot become the cheapest are spared the search.
"""

import math
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from optimizer.performance.factors import FloatArray
from optimizer.training.prices import IntArray, PoolPrices

#: Units of a job over two sites, and over more, that are told apart; of larger ones several are moved at a time.
_MOST: Final = 20_000
_MOST_OF_MORE: Final = 4_000
#: Splits of a row that are kept where nothing but the cost tells them apart.
_FEW: Final = 4

Index = NDArray[np.int64]


def splits(
    pools: tuple[PoolPrices, ...], servers: IntArray, unit: IntArray, days: FloatArray, *, every: bool
) -> tuple[Index, IntArray]:
    """(row, servers in service by site) of the splits worth trying.

    ``servers`` in service, ``unit`` servers of a whole unit and ``days`` by row of a job's options. What is left over
    of whole units, idle servers of a stated count, stands at one of the sites. Splits that a site cannot hold are among
    them. With ``every`` none over two sites is left out for its cost: another limit than a site's may forbid the
    cheapest.
    """
    rows, counts = _at_the_ends(pools, servers, unit)
    costs = _Costs(pools, int(servers.max(initial=0)), days)
    moved = unit * -(-servers // (unit * (_MOST if len(pools) == 2 else _MOST_OF_MORE)))
    if len(pools) == 2:
        more, finer = _halves(servers, moved)
        if not every:
            kept = _cheapest_splits(costs.of(more, finer), more)
            more, finer = more[kept], finer[:, kept]
    else:
        chosen = _may_be_cheapest(costs, rows, counts, unit)
        found = [(row, costs.least(row, int(servers[row]), int(moved[row]))) for row in chosen.tolist()]
        kept_rows = [(row, split) for row, several in found for split in several]
        more = np.array([row for row, _ in kept_rows], dtype=np.int64)
        finer = np.array([split for _, split in kept_rows], dtype=np.int64).reshape(-1, len(pools)).T
    return np.concatenate([rows, more]), np.concatenate([counts, finer], axis=1)


def _ends(one: PoolPrices) -> list[float]:
    """Servers up to which a straight line goes, but for the last and what comes whole."""
    most = one.most_servers()
    return [float(count) for count in one.tier_ends() if count < most] + ([most] if math.isfinite(most) else [])


def _at_the_ends(pools: tuple[PoolPrices, ...], servers: IntArray, unit: IntArray) -> tuple[Index, IntArray]:
    """(row, servers by site) of the equal split and of those at the ends of what sites cost and hold."""
    sites, units = len(pools), servers // unit
    parts = [(0, np.stack([units // sites + (units % sites > place) for place in range(sites)]))]
    ends = [[np.ones_like(units), *(np.floor(count / unit).astype(np.int64) for count in _ends(one))] for one in pools]
    for rest in range(sites):
        others = [place for place in range(sites) if place != rest]
        for chosen in product(*(ends[place] for place in others)):
            split = np.zeros((sites, units.size), dtype=np.int64)
            for place, count in zip(others, chosen, strict=True):
                split[place] = count
            split[rest] = units - split.sum(axis=0)
            parts.append((rest, split))
    counted = []
    for first, split in parts:
        whole = split * unit
        whole[first] += servers - units * unit
        counted.append(whole)
    return np.tile(np.arange(units.size), len(parts)), np.concatenate(counted, axis=1)


class _Costs:
    """Cost of servers at each site by row, looked up by their count; infinite where a site cannot hold them."""

    def __init__(self, pools: tuple[PoolPrices, ...], most: int, days: FloatArray) -> None:
        self._pools = pools
        self._tables = [one.yearly_usd(np.arange(most + 1)) for one in pools]
        self._years = [
            {name: one.years(days, name) for name in each} for one, each in zip(pools, self._tables, strict=True)
        ]

    def of(self, rows: Index, counts: IntArray) -> FloatArray:
        """Cost of each split; ``counts`` (sites, splits) servers in service."""
        usd = np.zeros(rows.size)
        for place, count in enumerate(counts):
            for name, table in self._tables[place].items():
                # More than all leaves less than none to another site.
                known = np.clip(count, 0, table.size - 1)
                usd = usd + table[known] * self._years[place][name][rows]
            usd = np.where((count < 0) | (count > self._pools[place].most_servers()), np.inf, usd)
        return usd

    def unevenness(self, unit: int) -> FloatArray:
        """Most by which the cost of all sites together departs from straight lines between their ends, by row."""
        usd = np.zeros(self._years[0][next(iter(self._years[0]))].shape)
        for place, one in enumerate(self._pools):
            for name, table in self._tables[place].items():
                last = table.size - 1
                ends = {unit, last, *(int(end // unit) * unit for end in _ends(one))}
                known = np.array(sorted(end for end in ends if unit <= end <= last), dtype=np.int64)
                counts = np.arange(unit, min(last, int(min(one.most_servers(), last))) + 1)
                if known.size and counts.size:
                    off = np.abs(table[counts] - np.interp(counts, known, table[known])).max()
                    usd = usd + off * self._years[place][name]
        return usd

    def least(self, row: int, servers: int, unit: int) -> list[tuple[int, ...]]:
        """The cheapest split of a row, for either site of what is left over of whole units."""
        units, left = divmod(servers, unit)
        return [
            split
            for first in range(len(self._pools) if left else 1)
            if (split := self._least(row, units, unit, left, first)) is not None
        ]

    def _least(self, row: int, units: int, unit: int, left: int, first: int) -> tuple[int, ...] | None:
        usd = []
        for place, one in enumerate(self._pools):
            counts = np.arange(units + 1) * unit + (left if place == first else 0)
            own = sum(table[counts] * self._years[place][name][row] for name, table in self._tables[place].items())
            usd.append(np.where((np.arange(units + 1) == 0) | (counts > one.most_servers()), np.inf, own))
        best, taken = usd[0], []
        for own in usd[1:-1]:
            total, share = np.full(units + 1, np.inf), np.zeros(units + 1, dtype=np.int64)
            for count in np.flatnonzero(np.isfinite(own)).tolist():
                tried = best[: units + 1 - count] + own[count]
                better = tried < total[count:]
                total[count:][better], share[count:][better] = tried[better], count
            best = total
            taken.append(share)
        final = best[::-1] + usd[-1]
        last = int(np.argmin(final))
        if not math.isfinite(final[last]):
            return None
        parts, rest = [last], units - last
        for share in reversed(taken):
            parts.append(int(share[rest]))
            rest -= parts[-1]
        parts.append(rest)
        return tuple(part * unit + (left if place == first else 0) for place, part in enumerate(reversed(parts)))


def _may_be_cheapest(costs: _Costs, rows: Index, counts: IntArray, unit: IntArray) -> Index:
    """Rows that the cheapest split of all may belong to, and those of which no split at the ends can be held."""
    usd = np.where((counts >= unit[rows]).all(axis=0), costs.of(rows, counts), np.inf)
    best = np.full(unit.size, np.inf)
    np.minimum.at(best, rows, usd)
    # A straight line is least at an end; each of the two is off by no more than this.
    loss = np.zeros(unit.size)
    for one in np.unique(unit).tolist():
        own = unit == one
        loss[own] = 2.0 * costs.unevenness(int(one))[own]
    return np.flatnonzero((best - loss <= best.min(initial=np.inf)) | ~np.isfinite(best))


def _cheapest_splits(usd: FloatArray, rows: Index) -> Index:
    """The cheapest few splits of each row that its sites hold."""
    order = np.lexsort((usd, rows))
    order = order[np.isfinite(usd[order])]
    own = rows[order]
    first = np.searchsorted(own, own)
    return order[np.arange(order.size) - first < _FEW]


def _halves(servers: IntArray, unit: IntArray) -> tuple[Index, IntArray]:
    """Every split of two sites, and either site for what is left over."""
    units = servers // unit
    spans = np.maximum(units - 1, 0)
    row = np.repeat(np.arange(units.size), spans)
    first = np.arange(row.size) - np.repeat(np.cumsum(spans) - spans, spans) + 1
    here, there = first * unit[row], (units[row] - first) * unit[row]
    over = (servers - units * unit)[row]
    idle = over > 0
    return (
        np.concatenate([row, row[idle]]),
        np.stack([np.concatenate([here + over, here[idle]]), np.concatenate([there, (there + over)[idle]])]),
    )
