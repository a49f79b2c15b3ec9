"""Fat tree, cluster capital and site cost by hand numbers."""

import pytest

from optimizer.costs.cluster import (
    ClusterPrices,
    cluster_capital,
    site_accelerator_hour_usd,
    switch_count,
    switch_tiers,
)
from tests.core.hand import catalog


@pytest.mark.parametrize(
    ("servers", "tiers"), [(1, 0), (2, 0), (3, 1), (64, 1), (65, 2), (2048, 2), (2049, 3), (65536, 3)]
)
def test_tiers_step_where_the_ports_end(servers: int, tiers: int) -> None:
    assert switch_tiers(servers) == tiers


def test_tiers_are_those_of_the_packaged_fabrics() -> None:
    for fabric in catalog().fabric_for(50.0, "infiniband"):
        assert switch_tiers(fabric.max_accelerators / 8) == fabric.tiers
        if fabric.tiers < 3:
            assert switch_tiers(fabric.max_accelerators / 8 + 1) == fabric.tiers + 1


def test_more_than_three_tiers_is_refused() -> None:
    with pytest.raises(ValueError, match="three tiers"):
        switch_tiers(65537)


def test_switches() -> None:
    assert switch_count(2) == 0
    # 24 links of three servers fit one switch; 65 servers have 520 links, each through three ports of 64.
    assert switch_count(3) == 1
    assert switch_count(65) == 25
    # With 4 ports and one rail: 4 servers on one switch, 8 on six, 16 on twenty.
    assert [switch_count(count, 4, 1) for count in (4, 8, 16)] == [1, 6, 20]


def test_capital_by_part() -> None:
    found = cluster_capital(64, ClusterPrices(100.0, 10.0, 5.0, (0.0, 2.0)))
    parts = (found.servers_usd, found.facility_usd, found.switches_usd, found.cables_usd)
    assert parts == pytest.approx((6400.0, 640.0, 40.0, 128.0))
    assert found.network_usd == pytest.approx(168.0)
    assert found.usd == pytest.approx(7208.0)


def test_an_accelerator_hour_at_a_site() -> None:
    figures = {
        "kw": 1.0,
        "pue": 1.5,
        "usd_per_kwh": 0.1,
        "accelerator_usd": 8766.0,
        "accelerator_life_years": 2.0,
        "utilization": 0.5,
        "build_usd_per_kw": 8766.0,
        "facility_life_years": 10.0,
    }
    assert site_accelerator_hour_usd(**figures) == pytest.approx(0.15 + 1.0 + 0.1)
    assert site_accelerator_hour_usd(**figures, rate=0.1) > 1.25
