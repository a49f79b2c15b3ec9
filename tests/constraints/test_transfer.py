"""Transfer: caches on the network between two roles against a share of each candidate's own link."""

from constraints import transfer
from tests.constraints.border import bounds, check_border, kept, seen


def test_border_of_the_share() -> None:
    # 12.5 of 50 GB/s.
    check_border(transfer, "kv_link_gb_s", "kv_link_fraction", 0.25)


def test_share_is_of_each_candidates_own_link() -> None:
    given = bounds(kv_link_fraction=0.5)
    assert kept(transfer, given, seen(kv_link_gb_s=12.5, kv_link_limit_gb_s=25.0))["kv_link_gb_s"]
    assert not kept(transfer, given, seen(kv_link_gb_s=12.5, kv_link_limit_gb_s=24.9))["kv_link_gb_s"]


def test_nothing_sent_is_admitted_without_a_link() -> None:
    assert all(kept(transfer, bounds(), seen(kv_link_gb_s=0.0, kv_link_limit_gb_s=0.0)).values())
