"""Quantity discounts on network and cooling plant: the program's least cost against the words of the offer."""

from typing import Any

import numpy as np
import pytest

from optimizer.costs import cooling, network
from optimizer.costs.price_steps import cheapest_order, price_steps
from optimizer.costs.reach import network_reach, plant_reach
from optimizer.costs.term import capital_recovery_factor
from optimizer.program_data import ProgramData
from optimizer.training.orders import bends, cheapest_orders
from optimizer.units import HOURS_PER_YEAR
from tests.core.hand import bought, data_of, instance, offered, option, server_type, setting_of, solve
from tests.core.steps import fabrics

NETWORK = ((9, 0.1), (24, 0.3), (40, 0.5))
PLANT = ((25.0, 0.1), (60.0, 0.4), (85.0, 0.5))
KINDS = ("all_units", "incremental")
NETWORK_HOURLY = capital_recovery_factor(0.08, 5.0) / HOURS_PER_YEAR
PLANT_HOURLY = (capital_recovery_factor(0.08, 15.0) + 0.05) / HOURS_PER_YEAR


def network_spent(kind: str, count: int) -> float:
    """What an order for exactly ``count`` accelerators costs: 1 USD each up to 16, 2 up to 32, 3 beyond, less."""
    usd = 1.0 if count <= 16 else 2.0 if count <= 32 else 3.0
    if kind == "all_units":
        return count * usd * (1.0 - max((off for first, off in NETWORK if count >= first), default=0.0))
    return sum(
        usd * (1.0 - max((off for first, off in NETWORK if n >= first), default=0.0)) for n in range(1, count + 1)
    )


def plant_spent(kind: str, kw: float, usd: float = 10_000.0) -> float:
    """What a plant of exactly ``kw`` costs at 10,000 USD/kW less the discount."""
    if kind == "all_units":
        return kw * usd * (1.0 - max((off for first, off in PLANT if kw >= first), default=0.0))
    # A sum of thin slices, each at the price of its middle.
    slices = round(kw * 100)
    return sum(
        usd * kw / slices * (1.0 - max((off for first, off in PLANT if (n + 0.5) * kw / slices >= first), default=0.0))
        for n in range(slices)
    )


def given(kind: str) -> Any:
    """An instance with both discounts."""
    steps = [{"from_accelerators": first, "discount_fraction": off} for first, off in NETWORK]
    plant = [{"from_kw": first, "discount_fraction": off} for first, off in PLANT]
    return instance(
        economics={
            "network_discounts": steps,
            "network_discount_kind": kind,
            "cooling_prices": {"air": {"fixed_usd": 7000.0, "discounts": plant, "discount_kind": kind}},
            "network_maintenance_fraction": 0.0,
        }
    )


def network_program(kind: str, needed: int, most: int) -> ProgramData:
    """One accelerator a server, one server a replica; the network is all that costs."""
    of = server_type(per_server=1)
    pools = [bought("pool", of)]
    sizes = fabrics()
    terms = network.terms(setting_of(given(kind), pools, fabrics=sizes))
    deployments = [offered("d", of, width=1)]
    return data_of(given(kind), pools, deployments, terms, demand=(float(needed),), most_servers=most, fabrics=sizes)


@pytest.mark.parametrize("needed", [1, 7, 8, 9, 10, 16, 17, 18, 19, 23, 24, 25, 32, 33, 38, 39, 40, 41])
@pytest.mark.parametrize("kind", KINDS)
def test_network_against_a_loop(kind: str, needed: int) -> None:
    counts = range(needed, 45) if kind == "all_units" else range(needed, needed + 1)
    best = min(network_spent(kind, count) for count in counts)
    for most in (needed, 44):
        found = solve(network_program(kind, needed, most))
        assert found is not None
        assert found.usd_per_hour == pytest.approx(best * NETWORK_HOURLY, rel=1e-9)
        # More is ordered, but not more servers bought.
        assert found.values["Servers[pool]"] == needed


def plant_program(kind: str, kw: float) -> ProgramData:
    """One server of so many kW; its plant is all that costs."""
    of = server_type()
    row = option("air", fixed=7000.0, marginal=10_000.0)
    pools = [bought("pool", of, cooling=row, server_kw=kw)]
    setting = setting_of(given(kind), pools, residual=row)
    terms = cooling.terms(setting)
    return data_of(given(kind), pools, [offered("d", of)], terms, demand=(1.0,), most_servers=1, residual=row)


@pytest.mark.parametrize(
    "kw", [1.0, 22.49, 22.5, 22.51, 24.99, 25.0, 25.01, 40.0, 40.01, 59.99, 60.0, 60.01, 70.0, 71.0, 84.99, 85.0, 90.0]
)
@pytest.mark.parametrize("kind", KINDS)
def test_plant_against_its_words(kind: str, kw: float) -> None:
    sizes = [kw, *(first for first, _ in PLANT if first > kw)] if kind == "all_units" else [kw]
    best = 7000.0 + min(plant_spent(kind, size) for size in sizes)
    found = solve(plant_program(kind, kw))
    assert found is not None
    assert found.usd_per_hour == pytest.approx(best * PLANT_HOURLY, rel=1e-9 if kind == "all_units" else 1e-4)


def test_incremental_plant_to_the_digit() -> None:
    """70 kW: 25 at 10,000 USD, 35 at 9,000, 10 at 6,000, and 7,000 once."""
    found = solve(plant_program("incremental", 70.0))
    assert found is not None
    assert found.usd_per_hour == pytest.approx((7000.0 + 250_000.0 + 315_000.0 + 60_000.0) * PLANT_HOURLY, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_reach_keeps_every_step_that_an_order_may_fall_into(kind: str) -> None:
    of = server_type(per_server=1)
    row = option("air", fixed=7000.0, marginal=10_000.0)
    setting = setting_of(given(kind), [bought("pool", of, cooling=row)], fabrics=fabrics(), residual=row)
    for most in range(1, 60):
        reach = network_reach(setting, 50.0, most)
        plants = plant_reach(setting, row, 2.0 * most)
        for count in range(1, most + 1):
            segment, ordered = network.network_order(setting, 50.0, count)
            first, last = reach[segment.id]
            assert first <= ordered <= last
            step, kw = cooling.plant_order(setting, row, 2.0 * count)
            assert plants[step][0] <= kw <= plants[step][1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("more", [True, False])
def test_orders_of_many_counts_at_once(kind: str, more: bool) -> None:
    steps = price_steps(10.0, PLANT, "incremental" if kind == "incremental" else "all_units", start=0.0, counted=False)
    amounts = np.linspace(0.5, 120.0, 240)
    place, ordered = cheapest_orders(steps, amounts, may_order_more=more)
    if more:
        alone = [cheapest_order(steps, float(amount)) for amount in amounts]
        assert [(int(a), float(b)) for a, b in zip(place, ordered, strict=True)] == alone
    else:
        assert np.array_equal(ordered, amounts)
        assert [steps[int(one)].first for one in place] == [
            max([first for first, _ in PLANT if first <= amount], default=0.0) for amount in amounts
        ]


def test_bends_are_where_the_line_is_not_straight() -> None:
    usd = np.array([1.0, 2.0, 3.0, 3.0, 3.0, 4.0, 5.0, 9.0, 10.0])
    starts = sorted(bends(usd) | {1})
    ends = [*(start - 1 for start in starts[1:]), len(usd)]
    for first, last in zip(starts, ends, strict=True):
        piece = usd[first - 1 : last]
        assert np.allclose(np.diff(piece, 2), 0.0)
    # One piece for each of: rising, flat, rising, after the jump; the counts about a bend may stand alone.
    assert len(starts) <= 9
