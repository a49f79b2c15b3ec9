"""Every published example comes out: through the terms and formulas of a solve where it has them."""

import math
from typing import Any

import pytest

from optimizer.catalog.rows import Trust
from optimizer.costs import network, servers
from optimizer.costs.bill import bill_lines
from optimizer.costs.cluster import (
    ClusterPrices,
    cluster_capital,
    site_accelerator_hour_usd,
    switch_count,
    switch_tiers,
)
from optimizer.costs.finance import (
    Asset,
    capital_recovery_factor,
    free_cash_flow,
    growing,
    internal_rate_of_return,
    monthly_payment_usd,
    payback_year,
    present_value,
    present_worth_factor,
    residual_fraction,
)
from optimizer.costs.reliability import failures_per_year, hours_between_interruptions
from optimizer.costs.renting import RentedCluster, break_even_hours
from optimizer.costs.term import capital
from optimizer.costs.tokens import margin_over_cost, token_revenue_usd, usd_per_million_tokens
from optimizer.units import HOURS_PER_YEAR, W_PER_KW
from tests.core.hand import bought, catalog, instance, server_type, setting_of
from tests.costs.published import (
    billed_energy_usd,
    billed_rent_usd,
    check,
    examples,
    linear_pue,
    near,
    near_printed,
    table,
)

Given = dict[str, Any]


def inputs(key: str) -> Given:
    given: Given = examples()[key]["inputs"]
    return given


def farm(given: Given, facility_usd: float, staff_usd: float = 0.0) -> dict[str, float]:
    """Hamilton's farm by the month: each asset a loan, power by the energy term."""
    rate = given["annual_rate"]
    facility = monthly_payment_usd(facility_usd, rate, given["facility_months"])
    kwh = given["critical_kw"] * given["average_load"] * given["hours_per_month"]
    return {
        "servers": monthly_payment_usd(given["servers"] * given["usd_per_server"], rate, given["server_months"]),
        "network": monthly_payment_usd(given["network_usd"], rate, given["network_months"]),
        "power_cooling": facility * given["power_cooling_share"],
        "other_infra": facility * (1.0 - given["power_cooling_share"]),
        "power": billed_energy_usd(kwh, given["usd_per_kwh"], given["pue"]),
        "staff": staff_usd,
    }


def test_hamilton_2010() -> None:
    given = inputs("hamilton_2010")
    parts = farm(given, given["facility_usd"])
    total = math.fsum(parts.values())
    shares = {f"share_{name}_pct": 100.0 * usd / total for name, usd in parts.items() if name != "staff"}
    check("hamilton_2010", {"total_usd_month": total, **shares})
    recomputed = examples()["hamilton_2010"]["recomputed"]
    for name, usd in {"total_usd_month": total, **parts}.items():
        assert name == "staff" or near(usd, recomputed[name]), name


def test_hamilton_2010_as_reprinted() -> None:
    reprint = examples()["hamilton_2010"]["reprint"]
    parts = farm(inputs("hamilton_2010"), reprint["facility_usd"], reprint["staff_usd_month"])
    assert near_printed(math.fsum(parts.values()), reprint["total_usd_month"], reprint["printed_to"])


@pytest.mark.parametrize("grade", ["gold", "hyperscaler", "silver"])
def test_clustermax_4096(grade: str) -> None:
    given, published = inputs("clustermax_4096"), examples()["clustermax_4096"]["published"]
    row = given[grade]
    # An eight-accelerator server on demand for the hours of a month, 512 times.
    accelerators = billed_rent_usd(8, row["gpu_usd_h"], given["hours_per_month"]) * given["gpus"] / 8
    assert near(accelerators, row["gpu_usd_month"])
    cluster = RentedCluster(
        accelerators_usd=accelerators,
        storage_usd=row.get("storage", 0.0),
        network_usd=row.get("network", 0.0),
        hosts_usd=row.get("cpu", 0.0),
        support_fraction=given["support_rate"] if row.get("support") else 0.0,
        goodput_usd=row["goodput"],
        debugging_usd=row.get("debug", 0.0),
        setup_usd=row["setup_once"],
    )
    monthly = cluster.usd_per_month(given["months"])
    assert monthly == pytest.approx(published[f"{grade}_month"], abs=2.0)
    assert near(monthly * given["months"], published[f"{grade}_36"])
    assert near(cluster.support_usd_per_month, published.get(f"{grade}_support", 0.0))


def test_deepseek_inference_day() -> None:
    given, published = inputs("deepseek_inference_day"), examples()["deepseek_inference_day"]["published"]
    cost = given["nodes"] * billed_rent_usd(given["gpus_per_node"], given["usd_gpu_h"], 24.0)
    revenue = token_revenue_usd(
        [
            (given["cached_input_tokens"], given["usd_m_cached"]),
            (given["input_tokens"] - given["cached_input_tokens"], given["usd_m_input"]),
            (given["output_tokens"], given["usd_m_output"]),
        ]
    )
    # The margin is stated of the revenue that is stated; ours is within the tolerance of that revenue.
    margin = margin_over_cost(published["revenue_day"], cost)
    check(
        "deepseek_inference_day",
        {"cost_day": cost, "revenue_day": revenue, "margin_over_cost_pct": 100.0 * margin},
    )
    assert near(1.0 + margin_over_cost(revenue, cost), 1.0 + margin, 0.0005)


def test_deepseek_v3_training() -> None:
    given = inputs("deepseek_v3_training")
    hours = math.fsum(given["gpu_hours"])
    check("deepseek_v3_training", {"gpu_hours": hours, "usd": billed_rent_usd(1, given["usd_gpu_h"], hours)})


def test_lenovo_break_even() -> None:
    given = inputs("lenovo_breakeven")
    hours = {
        f"{term}_h": break_even_hours(given["capex_usd"], usd, given["own_usd_h"])
        for term, usd in given["rent_usd_h"].items()
    }
    # A month of 30 days, by which 8,556 h are 11.9 months.
    check("lenovo_breakeven", {**hours, "on_demand_months": hours["on_demand_h"] / 720.0})


def kyrgyzstan() -> tuple[tuple[Asset, ...], dict[str, tuple[float, ...]], tuple[float, ...]]:
    """Assets, running cost by kind and revenue by year of the 40 MW data centre."""
    given = inputs("kyrgyzstan_dcf")
    years = given["years"]
    gpus = int(given["it_mw"] * W_PER_KW / given["gpu_kw"])
    build = given["it_mw"] * 1e6 * given["build_usd_w"]
    fall = 1.0 - given["gpu_price_decline_per_generation"]
    accelerators = tuple(
        Asset(gpus * given["gpu_usd"] * fall**generation, year, year, given["gpu_life"])
        for generation, year in enumerate(given["gpu_years"])
    )
    # The network is not written off against tax there.
    fabric = tuple(Asset(gpus * given["network_usd_per_gpu"], year, year, None) for year in given["network_years"])
    assets = (Asset(build, 0, 1, given["build_life"]), *accelerators, *fabric)
    it_kwh = given["it_mw"] * W_PER_KW * HOURS_PER_YEAR
    book = (math.fsum(one.book_usd(year) for one in accelerators) for year in range(1, years + 1))
    running = {
        "electricity": growing(billed_energy_usd(it_kwh, given["usd_kwh"], given["pue"]), given["elec_growth"], years),
        "staff": growing(given["staff"] * given["salary"], given["salary_growth"], years),
        "maintenance": (build * given["maintenance"],) * years,
        "insurance": tuple(given["insurance"] * (build + usd) for usd in book),
        "connectivity": (given["connectivity"],) * years,
    }
    use = (*given["util"], *(given["util"][-1:] * (years - len(given["util"]))))
    revenue = tuple(billed_rent_usd(1, given["usd_gpu_h"], HOURS_PER_YEAR) * gpus * share for share in use)
    return assets, running, revenue


def test_kyrgyzstan_cash_flow() -> None:
    given, recomputed = inputs("kyrgyzstan_dcf"), examples()["kyrgyzstan_dcf"]["recomputed"]
    assets, running, revenue = kyrgyzstan()
    costs = [math.fsum(year) for year in zip(*running.values(), strict=True)]
    flow = free_cash_flow(assets, revenue, costs, given["tax"])
    npv, irr, payback = present_value(flow, given["wacc"]), internal_rate_of_return(flow), payback_year(flow)
    assert irr is not None
    assert payback is not None
    paid = math.fsum(one.usd for one in assets)
    accelerators = math.fsum(one.usd for one in assets if one.life_years == given["gpu_life"])
    check(
        "kyrgyzstan_dcf",
        {
            "npv_musd": npv / 1e6,
            "irr_pct": 100.0 * irr,
            "payback_year": payback,
            "gpu_capex_musd": accelerators / 1e6,
            "total_capex_musd": paid / 1e6,
            "electricity_share_of_opex_pct": 100.0 * math.fsum(running["electricity"]) / math.fsum(costs),
        },
    )
    assert payback == 6
    assert npv == pytest.approx(recomputed["npv_usd"], abs=1.0)
    assert irr == pytest.approx(recomputed["irr"], abs=1e-6)


@pytest.mark.parametrize("row", table("countries.csv"), ids=lambda row: row["country"])
def test_country_accelerator_hour(row: dict[str, str]) -> None:
    given, tolerance = inputs("country_gpu_hour"), examples()["country_gpu_hour"]["tolerance"]["all"]
    published, price, build = (
        float(row[name]) for name in ("usd_per_accelerator_hour", "usd_per_kwh", "build_usd_per_w")
    )
    pue = linear_pue(given["pue_base"], given["pue_slope"], given["theta_ref"], float(row["hottest_month_c"]))
    hourly = site_accelerator_hour_usd(
        kw=given["gpu_kw"],
        pue=pue,
        usd_per_kwh=price,
        accelerator_usd=given["gpu_usd"],
        accelerator_life_years=given["gpu_life"],
        utilization=given["util"],
        build_usd_per_kw=build * W_PER_KW,
        facility_life_years=given["facility_life"],
    )
    assert abs(hourly - published) <= tolerance
    # The same sum by the terms of a bill: energy, and annuities at rate 0.
    parts = (
        billed_energy_usd(given["gpu_kw"], price, pue),
        given["gpu_usd"] * capital_recovery_factor(0.0, given["gpu_life"]) / HOURS_PER_YEAR / given["util"],
        given["gpu_kw"] * W_PER_KW * build * capital_recovery_factor(0.0, given["facility_life"]) / HOURS_PER_YEAR,
    )
    assert math.fsum(parts) == pytest.approx(hourly)


def test_all_countries_are_there() -> None:
    assert len({row["country"] for row in table("countries.csv")}) == 85


@pytest.mark.parametrize("row", table("cluster_bills.csv"), ids=lambda row: row["servers"])
def test_h100_cluster_bill(row: dict[str, str]) -> None:
    given = inputs("h100_cluster_bom")
    count = float(row["servers"])
    prices = ClusterPrices(
        float(row["server_usd"]),
        given["facility_usd_per_server"],
        given["switch_usd"],
        given["cables_usd_per_server_by_tiers"],
    )
    found = cluster_capital(count, prices)
    assert switch_count(count) == int(row["switches"])
    assert found.cables_usd == pytest.approx(float(row["cables_usd"]))
    assert found.usd == pytest.approx(float(row["total_usd"]))
    assert near_printed(found.usd / (8 * count), float(row["usd_per_accelerator"]), 1.0)


@pytest.mark.parametrize("row", table("cluster_bills.csv")[1:], ids=lambda row: row["servers"])
def test_h100_cluster_bill_by_the_terms_of_a_solve(row: dict[str, str]) -> None:
    """Servers and the packaged fabric of the size's tier; without a switch (two servers) a solve has no price."""
    count = float(row["servers"])
    of = server_type(usd=float(row["server_usd"]))
    fabrics = {50.0: catalog().fabric_for(50.0, "infiniband")}
    given = setting_of(instance(), [bought("pool", of)], fabrics=fabrics)
    (server,) = (term for term in servers.terms(given) if term.quantity[0] == "TierServers")
    tier = next(one for one in fabrics[50.0] if one.max_accelerators >= 8 * count)
    assert tier.tiers == switch_tiers(count)
    (fabric,) = (term for term in network.terms(given) if term.quantity == ("FabricAccelerators", tier.id))
    total = count * (
        server.capital_usd + 8 * fabric.capital_usd + inputs("h100_cluster_bom")["facility_usd_per_server"]
    )
    assert near(total, float(row["total_usd"]))


def test_all_cluster_sizes_are_there() -> None:
    assert len(table("cluster_bills.csv")) == 13


@pytest.mark.parametrize("case", [0, 1], ids=["without", "with"])
def test_adiabatic_addon(case: int) -> None:
    given, published = inputs("adiabatic_addon"), examples()["adiabatic_addon"]["published"]
    kwh = [hours * given["mech_kw"] for hours in given["mech_hours"]]
    usd = [billed_energy_usd(one, given["usd_kwh"]) for one in kwh]
    assert near(kwh[case], published["kwh"][case])
    assert near(usd[case], published["usd"][case])
    saving = usd[0] - usd[1]
    assert near(saving, published["saving_year"])
    # Ten years undiscounted, less what the add-on costs.
    assert near(present_value([-given["capex"], *[saving] * given["years"]], 0.0), published["saving_10y"])


@pytest.mark.parametrize("rack", ["gb300", "vr"])
def test_rack_liquid_parts(rack: str) -> None:
    trays, tray_usd, switches, switch_usd = inputs("rack_liquid_parts")[rack]
    provenance: tuple[str, str, Trust] = ("case", "", "user")
    parts = [
        capital("cooling", name, (name,), "trays", usd, ("annuity", 0.2), provenance)
        for name, usd in (("compute tray", tray_usd), ("switch tray", switch_usd))
    ]
    lines = bill_lines(parts, {("compute tray",): trays, ("switch tray",): switches}, {})
    assert math.fsum(line.capital_usd for line in lines) == examples()["rack_liquid_parts"]["published"][rack]


@pytest.mark.parametrize("case", range(4))
def test_cost_per_million_tokens(case: int) -> None:
    hourly, rate = inputs("cost_per_mtok")["rows"][case]
    assert near(usd_per_million_tokens(hourly, rate), examples()["cost_per_mtok"]["published"]["rows"][case])


def test_liquid_energy() -> None:
    given = inputs("liquid_energy")
    # At 1 USD per kWh the energy term is energy; the source counts a year of 8,760 hours.
    before, after = (billed_energy_usd(given["it_kw"] * 8760.0, 1.0, pue) for pue in given["pue"])
    check("liquid_energy", {"mwh_year": (before - after) / 1e3})


def test_meta_llama3_failures() -> None:
    given = inputs("meta_llama3_failures")
    # 6.1 % is of a year of 365 days.
    faulty = failures_per_year(given["faulty_gpu"], given["gpus"], given["days"], 365.0)
    every = failures_per_year(given["all_unplanned"], given["gpus"], given["days"])
    hours = hours_between_interruptions(given["gpus"], every)
    check("meta_llama3_failures", {"faulty_gpu_pct_year": 100.0 * faulty, "hours_between_interruptions": hours})
    assert near(hours, given["days"] * 24.0 / given["all_unplanned"])


def test_present_worth_factor_of_reopt() -> None:
    given, published = inputs("reopt_present_worth"), examples()["reopt_present_worth"]["published"]["factor"]
    factor = present_worth_factor(given["years"], given["growth"], given["rate"])
    assert factor == pytest.approx(published, abs=5e-6)
    later = present_worth_factor(given["years"], given["growth"], given["rate"], grows_in_first_year=False)
    assert later == pytest.approx(published / (1.0 + given["growth"]), abs=5e-6)


def test_residual_value_curve_is_near_the_only_series() -> None:
    example = examples()["h100_residual_value"]
    for age, fraction in zip(example["inputs"]["ages"], example["published"]["fractions"], strict=True):
        assert residual_fraction(age) == pytest.approx(fraction, abs=example["tolerance_points"])
