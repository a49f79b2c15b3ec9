"""Ways to get servers: the committed share against the newsvendor, offers with limits, successors of owned servers."""

import math
from typing import Any

import pytest

from optimizer.catalog import load_catalog
from optimizer.costs import rent
from optimizer.costs.finance import present_worth_factor
from optimizer.costs.owned import replaced_fraction
from optimizer.costs.renting import committed_level, mixed_rent_usd_per_year
from optimizer.instance.model import Instance
from optimizer.pools import undominated_offers
from optimizer.setting import build_setting
from optimizer.units import HOURS_PER_YEAR
from tests.core.hand import catalog, data_of, instance, offered, rented, server_type, setting_of, solve
from tests.core.real import small

#: Load of a day as a share of a peak of 12 servers: (share, hours).
DAY = ((1.0, 3), (0.75, 6), (0.5, 5), (0.25, 10))
PEAK = 12


def day() -> Instance:
    """An instance with the load of ``DAY``."""
    hours = [share for share, count in DAY for _ in range(count)]
    return instance(workload={"load": {"hourly_fractions": hours}})


@pytest.mark.parametrize("committed_usd", [0.1, 0.3, 0.45, 0.6, 0.7, 0.95, 1.0])
def test_the_program_commits_what_the_newsvendor_does(committed_usd: float) -> None:
    of = server_type(usd=None, rent={"on_demand": 1.0, "reserved_1yr": committed_usd})
    pools = [rented("hourly", of), rented("committed", of, "reserved_1yr")]
    given = day()
    setting = setting_of(given, pools)
    data = data_of(given, pools, [offered("d", of)], rent.terms(setting), demand=(float(PEAK),))
    found = solve(data)
    assert found is not None
    load = [(PEAK * share, float(hours)) for share, hours in DAY]
    level = committed_level(load, committed_usd, 1.0)
    yearly = [(need, hours / 24.0 * HOURS_PER_YEAR) for need, hours in load]
    cost = mixed_rent_usd_per_year(yearly, level, committed_usd, 1.0) * 8 / HOURS_PER_YEAR
    assert found.usd_per_hour == pytest.approx(cost, rel=1e-9)
    # Where committing and renting by the hour cost the same, either is right.
    ratio = committed_usd * 24.0
    if not any(math.isclose(ratio, sum(h for s, h in DAY if s > share)) for share, _ in DAY):
        assert found.values.get("Servers[committed]", 0.0) == level


@pytest.mark.parametrize("committed_usd", [0.3, 0.6, 0.8])
def test_unlike_hours_of_a_day_each_need_whole_servers(committed_usd: float) -> None:
    """Twenty-four different loads: hours merged to a mean would do with fewer servers than the hours themselves."""
    of = server_type(usd=None, rent={"on_demand": 1.0, "reserved_1yr": committed_usd})
    pools = [rented("hourly", of), rented("committed", of, "reserved_1yr")]
    hours = [round(0.1 + 0.9 * math.sin(math.pi * (place + 1) / 24.0) ** 1.5, 2) - 0.001 * place for place in range(24)]
    given = instance(workload={"load": {"hourly_fractions": hours}})
    setting = setting_of(given, pools)
    for peak in (2, 3, 7):
        data = data_of(given, pools, [offered("d", of)], rent.terms(setting), demand=(float(peak),))
        found = solve(data)
        assert found is not None
        needs = [math.ceil(peak * share / max(hours) - 1e-9) for share in hours]
        least = min(
            level * committed_usd + sum(max(0, need - level) for need in needs) / 24.0 for level in range(peak + 1)
        )
        assert found.usd_per_hour == pytest.approx(8.0 * least, rel=1e-9)


def test_a_mean_does_not_make_the_peak_free() -> None:
    of = server_type(usd=None, rent={"on_demand": 1.0})
    pools = [rented("hourly", of)]
    given = instance(workload={"load": {"mean_fraction": 0.5}})
    setting = setting_of(given, pools)
    data = data_of(given, pools, [offered("d", of)], rent.terms(setting), demand=(float(PEAK),))
    found = solve(data)
    assert found is not None
    assert found.usd_per_hour == pytest.approx(8.0 * PEAK)


def test_a_dearer_offer_is_a_choice_only_where_the_cheaper_is_limited() -> None:
    choices = {"accelerators": ["h100-80gb-sxm"], "sourcing": ["on_demand"]}
    free = build_setting(instance(choices=choices), catalog())
    kept = undominated_offers(free, {pool.id: pool for pool in free.pools})
    whole = [pool for pool in kept.values() if pool.server_type.accelerators == 8]
    assert len(whole) == 1
    cheapest = whole[0]
    limits = {"provider_supply": {cheapest.provider: {"h100-80gb-sxm": 8}}}
    limited = build_setting(instance(choices={**choices, **limits}), catalog())
    kept = undominated_offers(limited, {pool.id: pool for pool in limited.pools})
    whole = [pool for pool in kept.values() if pool.server_type.accelerators == 8]
    assert [pool.provider for pool in whole][:1] == [cheapest.provider]
    assert len({pool.provider for pool in whole}) == 2
    assert all(pool.rent_price.usd >= cheapest.rent_price.usd for pool in whole)


def test_a_term_without_a_price_is_offered_only_by_its_stated_share() -> None:
    choices = {"accelerators": ["h100-80gb-sxm"], "sourcing": ["reserved_3yr"], "providers": ["AWS"]}
    assert not build_setting(instance(choices=choices), catalog()).pools
    shares = {"rent_fallbacks": {"reserved_3yr_fraction": 0.5}}
    pools = build_setting(instance(choices=choices, economics=shares), catalog()).pools
    assert pools
    on_demand = build_setting(instance(choices={**choices, "sourcing": ["on_demand"]}), catalog()).pools
    base = {pool.server_type.id: pool.rent_price.usd for pool in on_demand}
    for pool in pools:
        assert pool.rent_price.trust == "assumed"
        assert pool.rent_price.usd == pytest.approx(0.5 * base[pool.server_type.id])


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.12])
@pytest.mark.parametrize(("horizon", "left"), [(5, 1), (5, 4), (10, 3)])
def test_successors_are_paid_in_the_years_after_the_end_of_life(rate: float, horizon: int, left: int) -> None:
    later = present_worth_factor(horizon, 0.0, rate) - present_worth_factor(left, 0.0, rate)
    assert replaced_fraction(rate, horizon, left) == pytest.approx(later / present_worth_factor(horizon, 0.0, rate))
    assert replaced_fraction(rate, horizon, horizon) == 0.0
    assert replaced_fraction(rate, horizon, horizon + 3) == 0.0


def test_what_is_owned_and_not_chosen_is_kept_and_never_rented_or_bought() -> None:
    owned = {
        "accelerator": "h100-80gb-sxm",
        "servers": 2,
        "cooling": "air_containment_econ",
        "remaining_life_years": 3.0,
    }
    sections: dict[str, Any] = {
        "choices": {"accelerators": ["l40s"], "sourcing": ["buy", "on_demand", "reserved_3yr"]},
        "inventory": [owned],
    }
    instance = small(**sections)
    ways = {pool.sourcing for pool in build_setting(instance, load_catalog()).pools if "h100" in pool.id}
    assert ways == {"owned"}
