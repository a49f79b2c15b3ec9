"""From counts to a plan: rates at the least energy, packing, quantities of the bill."""

import math
from random import Random

import highspy
import numpy as np
import pytest

from optimizer.api import solve
from optimizer.program_data import Pair, ProgramData, replicas_needed
from optimizer.rates import Counts, serving_rates
from optimizer.server_fillings import maximal_patterns, widths_form_chain
from tests.core.hand import bought, data_of, instance, offered, price, rented, server_type
from tests.core.real import small
from tests.core.test_random_programs import draw


def linear_program(data: ProgramData, replicas: dict[Pair, int]) -> float:
    """Least energy cost (USD/year) of serving every level with these replicas, by HiGHS."""
    levels = list(data.billed_levels.values())
    pairs = list(replicas)
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    columns: dict[tuple[str, str, int], int] = {}
    for d, q in pairs:
        one, pool = data.deployments[d], data.pools[q]
        usd = data.yearly_by_quantity.get(("BusyKwh", q), 0.0) if pool.is_bought else 0.0
        per_rate = data.busy_kwh_per_request_rate(one, pool) * usd if pool.is_bought else 0.0
        for number, level in enumerate(levels):
            most = data.capacity[d] * replicas[d, q] / one.demand_weight
            columns[d, q, number] = len(columns)
            highs.addCol(per_rate * level.hours_per_year, 0.0, most, 0, [], [])
    for number, level in enumerate(levels):
        for b, demand in enumerate(data.demand):
            mine = [pair for pair in pairs if data.deployments[pair[0]].class_index == b]
            at = np.array([columns[d, q, number] for d, q in mine], dtype=np.int32)
            weights = np.array([data.deployments[d].demand_weight for d, _ in mine])
            right = level.fraction * demand
            highs.addRow(right, right, at.size, at, weights)
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(highs.getInfo().objective_function_value)


@pytest.mark.parametrize("seed", range(30))
def test_rates_cost_as_little_energy_as_a_linear_program_finds(seed: int) -> None:
    data, random = draw(seed), Random(seed)
    replicas: dict[Pair, int] = {}
    for b, demand in enumerate(data.demand):
        mine = [pair for pair in data.pairs if data.deployments[pair[0]].class_index == b]
        chosen = random.sample(mine, min(len(mine), 3))
        for d, q in chosen:
            replicas[d, q] = max(1, replicas_needed(demand, data.capacity[d]) // len(chosen) + 1)
    rates = serving_rates(data, Counts(replicas), {})
    levels = list(data.billed_levels.values())
    spent = 0.0
    for (d, q), values in rates.items():
        one, pool = data.deployments[d], data.pools[q]
        assert len(values) == len(levels)
        for level, rate in zip(levels, values, strict=True):
            assert 0.0 <= rate <= data.capacity[d] * replicas[d, q] / one.demand_weight * (1 + 1e-9)
            if pool.is_bought:
                usd = data.yearly_by_quantity.get(("BusyKwh", q), 0.0)
                spent += data.busy_kwh_per_request_rate(one, pool) * usd * rate * level.hours_per_year
    for b, demand in enumerate(data.demand):
        for number, level in enumerate(levels):
            served = sum(
                values[number] * data.deployments[d].demand_weight
                for (d, _), values in rates.items()
                if data.deployments[d].class_index == b
            )
            assert served == pytest.approx(level.fraction * demand)
    assert spent == pytest.approx(linear_program(data, replicas), rel=1e-7, abs=1e-9)


def test_rates_fill_the_thriftiest_deployment_first() -> None:
    of = server_type(rent={"on_demand": 1.0})
    pools = [bought("air", of), rented("rent", of)]
    deployments = [offered("thrifty", of, rate=2.0, busy_kw=5.0), offered("hungry", of, rate=2.0, busy_kw=9.0)]
    data = data_of(instance(), pools, deployments, [price(("BusyKwh", "air"), 1.0)], demand=(5.0,))
    found = serving_rates(data, Counts({("thrifty", "air"): 1, ("hungry", "air"): 2}), {})
    assert found == {("thrifty", "air"): (2.0,), ("hungry", "air"): (3.0,)}
    # The provider pays for the energy of what is rented.
    found = serving_rates(data, Counts({("thrifty", "air"): 2, ("hungry", "rent"): 2}), {})
    assert found == {("thrifty", "air"): (1.0,), ("hungry", "rent"): (4.0,)}


def test_what_the_solvers_tolerance_leaves_over_is_shared() -> None:
    of = server_type()
    data = data_of(instance(), [bought("air", of)], [offered("d", of, rate=2.0)], [], demand=(4.0 * (1 + 1e-7),))
    ((rate,),) = serving_rates(data, Counts({("d", "air"): 2}), {}).values()
    assert rate == pytest.approx(4.0 * (1 + 1e-7), rel=1e-12)


@pytest.mark.parametrize(
    ("widths", "accelerators", "chain"),
    [
        ({1, 2, 4, 8}, 8, True),
        ({2, 8, 16}, 8, True),
        ({16}, 8, True),
        ({4, 3}, 8, False),
        ({3}, 8, False),
        ({3}, 6, True),
        ({2, 3}, 6, False),
        ({4, 6}, 12, False),
        ({1, 3, 6}, 6, True),
        (set(), 8, True),
    ],
)
def test_widths_that_nest(widths: set[int], accelerators: int, chain: bool) -> None:
    assert widths_form_chain(widths, accelerators) == chain


@pytest.mark.parametrize("accelerators", [4, 8, 12])
@pytest.mark.parametrize("widths", [(3, 2), (4, 3), (5, 3, 2), (8, 3), (6, 4)])
def test_patterns_are_all_maximal_fillings(widths: tuple[int, ...], accelerators: int) -> None:
    widths = tuple(width for width in widths if width <= accelerators)
    ordered = tuple(sorted(widths, reverse=True))
    every = {
        counts
        for counts in np.ndindex(*(accelerators // width + 1 for width in ordered))
        if 0 <= accelerators - sum(c * w for c, w in zip(counts, ordered, strict=True)) < min(ordered)
    }
    found = tuple(maximal_patterns(widths, accelerators))
    assert set(found) == every
    assert len(found) == len(every)


@pytest.mark.parametrize(
    ("demand", "capacity", "replicas"), [(10.0, 2.5, 4), (10.0001, 2.5, 5), (0.3, 0.1, 3), (1e-9, 1.0, 1), (7, 7, 1)]
)
def test_replicas_that_carry_a_demand(demand: float, capacity: float, replicas: int) -> None:
    assert max(1, replicas_needed(demand, capacity)) == replicas
    assert math.isclose(demand, capacity * replicas) or demand < capacity * replicas


def test_a_plan_in_the_twelfth_step_of_a_discount_is_billed_there() -> None:
    """Steps of two digits: the tenth comes after the ninth, not after the first."""
    steps = [{"from_servers": count, "discount_fraction": 0.02 * count} for count in range(2, 14)]
    prices = {"l40s": {"server_usd": 50_000, "discounts": steps}}
    choices = {"accelerators": ["l40s"], "sourcing": ["buy"], "max_concurrency": 4, "schemes": ["w16a16"]}
    largest = 0
    for demand in (60, 120, 200):
        given = small(choices=choices, economics={"prices": prices}, workload={"demand": {"requests_per_s": demand}})
        plan = solve(given).plan
        assert plan is not None
        count = sum(group.servers for group in plan.servers)
        share = max((0.02 * first for first in range(2, 14) if first <= count), default=0.0)
        lines = [line for line in plan.bill.lines if line.component == "servers"]
        assert lines
        assert all(line.unit_price_usd == pytest.approx(50_000 * (1.0 - share)) for line in lines)
        largest = max(largest, count)
    assert largest > 10
