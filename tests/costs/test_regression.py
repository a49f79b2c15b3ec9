"""512 H100 bought into colocation: 1.7459 USD per installed accelerator-hour, part by part."""

import math
from dataclasses import replace
from typing import Any

import pytest

from optimizer.costs import energy, maintenance, network, servers, space
from optimizer.costs.cluster import ClusterPrices, cluster_capital
from optimizer.costs.finance import annuity_factor, annuity_usd
from optimizer.costs.term import Term, capital
from optimizer.costs.tokens import usd_per_installed_hour, usd_per_used_hour
from optimizer.setting import Price, Setting
from optimizer.units import HOURS_PER_YEAR, MONTHS_PER_YEAR
from tests.core.hand import USER, bought, instance, server_type, setting_of
from tests.core.steps import fabrics
from tests.costs.published import examples, near

CASE: dict[str, Any] = examples()["own_512_h100"]
GIVEN: dict[str, Any] = CASE["inputs"]
PUBLISHED: dict[str, float] = CASE["published"]
ACCELERATORS = GIVEN["servers"] * GIVEN["accelerators_per_server"]
IT_KW = ACCELERATORS * GIVEN["kw_per_accelerator"]
NETWORK_USD = GIVEN["switches"] * GIVEN["switch_usd"] + GIVEN["cables_usd"]
CAPITAL_USD = GIVEN["servers"] * GIVEN["server_usd"] + NETWORK_USD


def by_formula() -> dict[str, float]:
    """Yearly cost by part, from the formulas alone."""
    owned = annuity_usd(CAPITAL_USD, GIVEN["rate"], GIVEN["life_years"], GIVEN["residual_fraction"])
    kwh = IT_KW * GIVEN["mean_fraction"] * GIVEN["hours_per_year"] * GIVEN["pue"]
    return {
        "capital": owned,
        "colocation": GIVEN["colocation_usd_per_kw_month"] * MONTHS_PER_YEAR * IT_KW,
        "energy": kwh * GIVEN["usd_per_kwh"],
        "maintenance": GIVEN["maintenance_fraction"] * CAPITAL_USD,
        "staff": GIVEN["staff"] * GIVEN["staff_usd_per_year"],
        "spares": GIVEN["spare_fraction"] * owned,
    }


@pytest.mark.parametrize("part", ["capital", "colocation", "energy", "maintenance", "staff", "spares", "total"])
def test_every_part_is_as_printed(part: str) -> None:
    yearly = by_formula()
    yearly["total"] = math.fsum(yearly.values())
    hourly = usd_per_installed_hour(yearly[part], ACCELERATORS, GIVEN["hours_per_year"])
    assert hourly == pytest.approx(PUBLISHED[part], abs=0.51e-4)


@pytest.mark.parametrize(("percent", "cents"), [(70, 0.005), (95, 0.005)])
def test_per_used_hour(percent: int, cents: float) -> None:
    hourly = usd_per_installed_hour(math.fsum(by_formula().values()), ACCELERATORS, GIVEN["hours_per_year"])
    assert usd_per_used_hour(hourly, percent / 100.0) == pytest.approx(PUBLISHED[f"at_{percent}_pct"], abs=cents)


def test_capital_is_the_sheet_at_64_servers() -> None:
    cables = GIVEN["cables_usd"] / GIVEN["servers"]
    found = cluster_capital(
        GIVEN["servers"], ClusterPrices(GIVEN["server_usd"], 0.0, GIVEN["switch_usd"], (0.0, cables))
    )
    assert found.usd == pytest.approx(CAPITAL_USD)


def setting() -> Setting:
    """The case as a solve sees it: one pool, one fabric, the case's own prices, a plant that costs nothing."""
    per_server = GIVEN["accelerators_per_server"]
    free = {"capex_typical_usd_per_kw": 0.0, "maintenance_typical_fraction": 0.0}
    economics = {
        "discount_rate": GIVEN["rate"],
        "server_life_years": GIVEN["life_years"],
        "network_life_years": GIVEN["life_years"],
        "colocation_usd_per_kw_month": GIVEN["colocation_usd_per_kw_month"],
        "server_maintenance_fraction": GIVEN["maintenance_fraction"],
        "network_maintenance_fraction": GIVEN["maintenance_fraction"],
        "liquid_ready_usd_per_kw": 0.0,
        "rack_usd": 0.0,
    }
    pool = bought(
        "pool",
        server_type(usd=GIVEN["server_usd"], per_server=per_server),
        server_kw=per_server * GIVEN["kw_per_accelerator"],
        pue=GIVEN["pue"],
    )
    each = NETWORK_USD / ACCELERATORS
    sizes = tuple(
        one.model_copy(update={"typical_usd_per_accelerator": each, "max_accelerators": ACCELERATORS})
        for one in fabrics()[50.0][:1]
    )
    given = setting_of(instance(economics=economics), [pool], fabrics={50.0: sizes})
    residual = given.residual.model_copy(update=free)
    return replace(given, residual=residual, electricity=Price(GIVEN["usd_per_kwh"], *USER))


def yearly(terms: list[Term], quantities: dict[str, float]) -> float:
    """Sum of the terms at quantities by family."""
    return math.fsum(term.usd_per_year * quantities[term.quantity[0]] for term in terms)


def test_the_terms_of_a_solve_give_the_same_total() -> None:
    """Within 0.1 %: a solve counts a year of 8,766 hours. Residual value and staff have no terms of their own here."""
    given = setting()
    idle = GIVEN["mean_fraction"] * IT_KW
    count = {
        "TierServers": float(GIVEN["servers"]),
        "FabricAccelerators": float(ACCELERATORS),
        "SpaceKw": IT_KW,
        # All energy as that of requests, none as idle.
        "Servers": 0.0,
        "BusyKwh": idle * HOURS_PER_YEAR,
    }
    bare = yearly([*servers.terms(given), *network.terms(given)], count)
    assert bare == pytest.approx(annuity_usd(CAPITAL_USD, GIVEN["rate"], GIVEN["life_years"]))
    factor = annuity_factor(GIVEN["rate"], GIVEN["life_years"], GIVEN["residual_fraction"])
    owned = capital("servers", "all", ("Once",), "cluster", CAPITAL_USD, ("annuity", factor), ("case", "", "user"))
    parts = {
        "capital": owned.usd_per_year,
        "colocation": yearly(space.terms(given), count),
        "energy": yearly(energy.terms(given), count),
        "maintenance": yearly(maintenance.terms(given), count),
        "staff": GIVEN["staff"] * GIVEN["staff_usd_per_year"],
        "spares": GIVEN["spare_fraction"] * owned.usd_per_year,
    }
    for part, usd in {**parts, "total": math.fsum(parts.values())}.items():
        assert near(usd_per_installed_hour(usd, ACCELERATORS), PUBLISHED[part]), part
