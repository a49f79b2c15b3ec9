"""Training in the hall that costs less: held against solving with every combination of halls, one by one."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from optimizer import api
from optimizer.plan import Plan
from optimizer.verify import verify
from tests.training.small import one_job, read, two_jobs, two_sites

HALLS = ("colocation", "own_build")
#: Without posts of an own hall that is never left alone, which no small run pays for.
STAFF = {"minimum_fte": 0.0, "fte_per_mw": 0.0}


def solved(value: dict[str, Any]) -> Plan | None:
    return api.solve(read(value)).plan


def with_halls(make: Callable[..., dict[str, Any]], halls: tuple[str, ...], economics: dict[str, Any]) -> Any:
    value = make()
    value["economics"] = economics
    for site, hall in zip(value.get("sites") or [value.setdefault("site", {})], halls, strict=True):
        site["facility"] = hall
    return value


@pytest.mark.parametrize("build_usd_per_kw", [4000.0, 30_000.0])
@pytest.mark.parametrize("charge", ["job", "horizon"])
@pytest.mark.parametrize(("make", "sites"), [(one_job, 1), (two_jobs, 1), (two_sites, 2)])
def test_the_hall_that_costs_less_is_found(
    make: Callable[..., dict[str, Any]], sites: int, charge: str, build_usd_per_kw: float
) -> None:
    economics = {"charge": charge, "hall": {"build_usd_per_kw": build_usd_per_kw}, "staff": STAFF}
    plan = solved(with_halls(make, ("cheaper",) * sites, economics))
    assert plan is not None
    assert plan.training is not None
    assert not verify(plan)
    costs = {}
    for halls in product(HALLS, repeat=sites):
        other = solved(with_halls(make, halls, economics))
        assert other is not None
        assert not verify(other)
        costs[halls] = other.bill.usd_per_year
    assert plan.bill.usd_per_year == pytest.approx(min(costs.values()), rel=3e-6)
    expected = "own_build" if build_usd_per_kw < 10_000 else "colocation"
    assert {one.facility for one in plan.training.sites} == {expected}
    assert plan.facility == expected
    assert all(group.pool.endswith(f"/{expected}") for group in plan.servers)


def test_named_sites_stand_in_halls_of_their_own() -> None:
    """The checker bills each site's servers in that site's hall."""
    economics = {"hall": {"build_usd_per_kw": 4000.0}, "staff": STAFF}
    plan = solved(with_halls(two_sites, ("own_build", "colocation"), economics))
    assert plan is not None
    assert plan.training is not None
    assert not verify(plan)
    assert {one.site: one.facility for one in plan.training.sites} == {"east": "own_build", "west": "colocation"}
    assert plan.facility is None
    assert {line.item for line in plan.bill.lines if line.component == "space"} >= {
        "hall without its air plant, east",
        "colocation without its air plant, west",
    }


def test_the_checker_refuses_another_hall() -> None:
    plan = solved(with_halls(one_job, ("colocation",), {"staff": STAFF}))
    assert plan is not None
    assert plan.training is not None
    (use,) = plan.training.sites
    wrong = plan.training.model_copy(update={"sites": (use.model_copy(update={"facility": "own_build"}),)})
    assert any("training.sites[0].facility" in str(one) for one in verify(plan.model_copy(update={"training": wrong})))


def test_a_capital_budget_that_no_own_hall_keeps_takes_colocation() -> None:
    economics: dict[str, Any] = {"charge": "horizon", "hall": {"build_usd_per_kw": 4000.0}, "staff": STAFF}
    free = solved(with_halls(one_job, ("cheaper",), economics))
    rented = solved(with_halls(one_job, ("colocation",), economics))
    assert free is not None
    assert rented is not None
    assert free.facility == "own_build"
    between = 0.5 * (free.bill.capital_usd + rented.bill.capital_usd)
    assert rented.bill.capital_usd < between < free.bill.capital_usd
    capped = solved(with_halls(one_job, ("cheaper",), {**economics, "budget_capex_usd": between}))
    assert capped is not None
    assert capped.facility == "colocation"
