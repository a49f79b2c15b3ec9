"""Sweeps over values that nobody sane asks for, in any order: reuse equals solving each, whatever the first case is.

No value, none left, zero, lists, options that go away, prices that bring servers to market, whole counts.
"""

from random import Random
from typing import Any

import pytest

from optimizer.instance.model import Instance
from optimizer.studies.sweep import sweep
from tests.studies.small import prices
from tests.studies.test_sweep import BUY, DEMAND, same_answers, two_types

#: Values of a field, each as it is written; a draw takes some of them in any order.
ODD = {
    BUY: ("null", "0", "1", "200000", "x0.5", "+40%", "1e7"),
    "economics.prices.h100-80gb-sxm.on_demand_usd_per_hour": ("null", "0", "0.5", "3", "50"),
    "economics.prices.h100-80gb-sxm.reserved_1yr_usd_per_hour": ("null", "0", "1", "2.5"),
    "economics.prices.l40s.server_usd": ("null", "0", "30000", "1e6"),
    "economics.prices.a800-80gb-sxm.server_usd": ("null", "0", "10000", "400000"),
    "economics.prices.a800-80gb-sxm.on_demand_usd_per_hour": ("null", "0.1", "9"),
    "economics.horizon_years": ("1", "3", "5", "0.5"),
    "economics.discount_rate": ("0", "0.08", "0.5"),
    "economics.server_maintenance_fraction": ("0", "0.2"),
    "economics.rack_usd": ("0", "100000"),
    "economics.cooling_prices.air_containment_econ.per_rack_usd": ("null", "0", "50000"),
    "economics.cooling_prices.air_containment_econ.fixed_usd": ("null", "0", "1e6"),
    "site.electricity_usd_per_kwh": ("0", "0.1", "2"),
    "site.power_kw": ("null", "0.5", "8", "20", "1000"),
    "site.racks": ("null", "1", "2", "50"),
    "choices.supply.h100-80gb-sxm": ("0", "8", "16", "800"),
    "choices.max_accelerator_types": ("null", "2", "1"),
    "economics.budget_capex_usd": ("null", "1", "500000", "1e8"),
    "economics.budget_usd_per_year": ("null", "1", "200000", "1e8"),
    "targets.tpot_ms": ("null", "4", "12", "60", "1000"),
    "targets.spare_servers": ("0", "1", "3"),
    "targets.spare_fraction": ("0", "0.3"),
    "choices.max_concurrency": ("1", "7", "64", "512"),
    DEMAND: ("0.001", "80", "81", "200", "201"),
    "choices.accelerators": ("l40s", "h100-80gb-sxm+l40s", "a800-80gb-sxm+l40s", "h100-80gb-sxm"),
    "choices.sourcing": ("buy", "buy+on_demand", "on_demand+reserved_1yr"),
    "choices.schemes": ("w16a16", "w16a16+w8a8-fp8"),
    "targets.peak_utilization_fraction": ("0.5", "1"),
}

#: Fewest and most values of a drawn axis.
_FEW, _MANY = 2, 5


def _base(random: Random) -> Instance:
    """Two accelerators of which some have prices, with caps, discounts or a load by the hour now and then."""
    own: dict[str, Any] = prices()
    if random.random() < 0.3:
        own["prices"]["h100-80gb-sxm"]["discounts"] = [{"from_servers": 2, "discount_fraction": 0.3}]
        own["prices"]["h100-80gb-sxm"]["discount_kind"] = random.choice(("all_units", "incremental"))
    if random.random() < 0.2:
        own["budget_capex_usd"] = 2e6
    load: dict[str, Any] = {"mean_fraction": 0.5}
    if random.random() < 0.3:
        load = {"hourly_fractions": [1.0] * 8 + [0.3] * 16}
    names = random.choice((["h100-80gb-sxm", "l40s"], ["h100-80gb-sxm", "a800-80gb-sxm"], ["a800-80gb-sxm", "l40s"]))
    return two_types(
        choices={"accelerators": names, "sourcing": random.choice((["buy"], ["buy", "on_demand", "reserved_1yr"]))},
        workload={"load": load, "demand": {"requests_per_s": 80.0}},
        site=random.choice(({}, {}, {"power_kw": 30.0}, {"carbon_tonnes_per_year": 200.0})),
        economics=own,
    )


def _axes(random: Random) -> list[str]:
    axes: list[str] = []
    for name in random.sample(sorted(ODD), random.choice((1, 2, 2, 3))):
        few = min(len(ODD[name]), random.randint(_FEW, _MANY if not axes else _FEW))
        axes.append(f"{name}={','.join(random.sample(ODD[name], few))}")
    return axes


def _held(seed: int) -> None:
    random = Random(seed)
    instance, vary = _base(random), _axes(random)
    reused, alone = sweep(instance, vary), sweep(instance, vary, reuse=False)
    same_answers(reused, alone)


@pytest.mark.parametrize("seed", [*range(4), 463])
def test_reuse_is_solving_each_at_odd_values(seed: int) -> None:
    _held(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 34))
def test_reuse_is_solving_each_at_more_odd_values(seed: int) -> None:
    _held(seed)
