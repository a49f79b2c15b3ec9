"""Splits of a job over sites: none is cheaper than the cheapest that is tried, by trying every one."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from optimizer.catalog import load_catalog
from optimizer.instance.reading import read_instance
from optimizer.performance.factors import FloatArray
from optimizer.training.places import places_of
from optimizer.training.prices import IntArray, PoolPrices, pool_prices
from optimizer.training.splits import splits

SHIPPED = Path(__file__).parents[2] / "instances" / "train-100k-three-sites.json"


def pools(count: int) -> tuple[PoolPrices, ...]:
    """One pool at each of so many sites, of different cooling."""
    instance = read_instance(SHIPPED)
    found = pool_prices(instance, places_of(instance, load_catalog()))
    by_site: dict[str, list[PoolPrices]] = {}
    for one in found.values():
        if one.pool.is_bought:
            by_site.setdefault(one.place.name, []).append(one)
    return tuple(several[place % len(several)] for place, several in enumerate(list(by_site.values())[:count]))


@pytest.mark.parametrize("sites", [2, 3])
@pytest.mark.parametrize(("servers", "unit"), [(7, 1), (26, 1), (41, 2), (60, 2), (75, 1)])
def test_no_split_is_cheaper_than_those_that_are_tried(sites: int, servers: int, unit: int) -> None:
    several, days = pools(sites), np.array([30.0])
    rows, counts = splits(several, np.array([servers]), np.array([unit]), days, every=False)
    sound = (counts >= unit).all(axis=0)
    assert (counts.sum(axis=0)[sound] == servers).all()
    assert (rows == 0).all()

    def usd(split: IntArray) -> FloatArray:
        return np.asarray(np.sum([one.usd(count, days) for one, count in zip(several, split, strict=True)], axis=0))

    every = np.array(
        [
            [*(part * unit for part in split), servers - unit * sum(split)]
            for split in product(range(1, servers // unit + 1), repeat=sites - 1)
            if servers - unit * sum(split) >= unit
        ]
    ).T
    assert usd(counts[:, sound]).min() <= usd(every).min() * (1.0 + 1e-12)
