"""NVLink: mean one-way traffic against a share of the link and against the planner's cap in GB/s."""

import numpy as np

from constraints import nvlink
from tests.constraints.border import bounds, check_border, kept, seen


def test_border_of_the_share() -> None:
    # 45 of 450 GB/s.
    check_border(nvlink, "nvlink_gb_s", "nvlink_fraction", 0.1)


def test_border_of_the_cap() -> None:
    check_border(nvlink, "nvlink_cap_gb_s", "nvlink_cap_gb_s", 45.0)


def test_share_is_of_each_candidates_own_link() -> None:
    given = bounds(nvlink_fraction=0.5)
    assert kept(nvlink, given, seen(nvlink_gb_s=45.0, nvlink_link_gb_s=90.0))["nvlink_gb_s"]
    assert not kept(nvlink, given, seen(nvlink_gb_s=45.0, nvlink_link_gb_s=89.0))["nvlink_gb_s"]


def test_no_link_and_no_traffic_is_admitted() -> None:
    assert all(kept(nvlink, bounds(), seen(nvlink_gb_s=0.0, nvlink_link_gb_s=0.0)).values())


def test_no_cap_is_no_limit() -> None:
    assert kept(nvlink, bounds(nvlink_cap_gb_s=np.inf), seen(nvlink_gb_s=450.0))["nvlink_cap_gb_s"]
