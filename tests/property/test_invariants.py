"""Invariants of the answer over random instances: looser never dearer, one more option never dearer, and so on."""

import sys
from functools import cache
from random import Random

import pytest

from optimizer.api import solve
from optimizer.catalog import Catalog, load_catalog
from optimizer.catalog.rows import TERMS, FacilityFigure
from optimizer.instance.model import Instance
from optimizer.plan import Plan
from tests.oracle.random_instances import draw
from tests.property.changes import ADDED, LOOSER, changed, in_other_units, shuffled, some_of, times_dearer

#: Relative slack: the plan lies within the requested gap of the optimum, 1e-6, and ties within 1e-6 are broken by size.
SLACK = 4e-6
SEEDS = [*range(1000, 1007), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1007, 1040))]
CHANGES_EACH = 3


@cache
def base(seed: int) -> tuple[Instance, Plan | None]:
    """A random instance and its plan."""
    instance = draw(seed).instance
    return instance, solve(instance).plan


def cost(plan: Plan | None) -> float:
    """USD a year, infinite without a plan."""
    return float("inf") if plan is None else plan.bill.usd_per_year


def fleet(plan: Plan | None) -> dict[str, int]:
    """Servers by pool."""
    return {} if plan is None else {group.pool: group.servers for group in plan.servers}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_looser_limit_never_costs_more(seed: int) -> None:
    instance, plan = base(seed)
    if plan is None:
        return  # nothing costs more than no plan
    for name, looser in some_of(LOOSER, instance, CHANGES_EACH, Random(f"looser {seed}")):
        assert cost(solve(looser).plan) <= cost(plan) * (1.0 + SLACK), name


@pytest.mark.parametrize("seed", SEEDS)
def test_one_more_option_never_costs_more(seed: int) -> None:
    instance, plan = base(seed)
    if plan is None:
        return  # nothing costs more than no plan
    for name, wider in some_of(ADDED, instance, CHANGES_EACH, Random(f"added {seed}")):
        assert cost(solve(wider).plan) <= cost(plan) * (1.0 + SLACK), name


@pytest.mark.parametrize("seed", SEEDS)
def test_domination_changes_no_cost(seed: int) -> None:
    instance, plan = base(seed)
    assert cost(solve(instance, dominate=False).plan) == pytest.approx(cost(plan), rel=SLACK)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_of_lists_does_not_matter(seed: int) -> None:
    instance, plan = base(seed)
    other = changed(instance, shuffled(Random(f"order {seed}")))
    assert other is not None
    again = solve(other).plan
    assert cost(again) == pytest.approx(cost(plan), rel=SLACK)
    assert fleet(again) == fleet(plan)


@pytest.mark.parametrize("seed", SEEDS)
def test_demand_in_another_unit_gives_the_same_plan(seed: int) -> None:
    instance, plan = base(seed)
    other = changed(instance, in_other_units)
    if other is None:
        return  # users have no equivalent in requests: how many they send depends on how long they wait
    again = solve(other).plan
    assert cost(again) == pytest.approx(cost(plan), rel=1e-9)
    assert fleet(again) == fleet(plan)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_input_gives_the_same_bytes(seed: int) -> None:
    instance, plan = base(seed)
    again = solve(instance).plan
    if plan is None:
        assert again is None
        return
    assert again is not None
    assert again.model_dump_json() == plan.model_dump_json()


FACTOR = 3.0


#: Figures of the site that are prices.
PRICED = (
    "colo_wholesale_1mw_plus",
    "rack_hardware",
    "staff_cost_loaded",
    "storage_parallel_fs",
    "connectivity",
    "build_capex",
    "build_capex_global",
)


def _dearer_catalog(factor: float) -> Catalog:
    """The packaged catalogue with every price times a factor."""
    catalog = load_catalog()

    def money(row: object, *names: str) -> dict[str, float]:
        values = {name: getattr(row, name) for name in names}
        return {name: value * factor for name, value in values.items() if value is not None}

    def figure(row: FacilityFigure) -> FacilityFigure:
        return row.model_copy(update=money(row, "low", "typical", "high"))

    return catalog.with_rows(
        purchase_prices=[
            row.model_copy(update=money(row, "low_usd", "typical_usd", "high_usd"))
            for row in catalog.purchase_prices.values()
        ],
        rental_offers=[
            row.model_copy(update=money(row, *(f"{term}_usd_per_accelerator_hour" for term in TERMS)))
            for row in catalog.rental_offers.values()
        ],
        fabrics=[
            row.model_copy(update=money(row, *(f"{level}_usd_per_accelerator" for level in ("low", "typical", "high"))))
            for row in catalog.fabrics.values()
        ],
        cooling=[
            row.model_copy(
                update=money(
                    row,
                    "capex_fixed_usd",
                    "capex_marginal_usd_per_kw",
                    "capex_low_usd_per_kw",
                    "capex_typical_usd_per_kw",
                    "capex_high_usd_per_kw",
                )
            )
            for row in catalog.cooling.values()
        ],
        electricity=[row.model_copy(update=money(row, "price_usd_per_kwh")) for row in catalog.electricity.values()],
        facility=[figure(catalog.facility[key]) for key in PRICED],
        build_costs=[row.model_copy(update=money(row, "usd_per_kw")) for row in catalog.build_costs.values()],
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_all_prices_times_k_give_cost_times_k(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    instance, plan = base(seed)
    dearer = changed(instance, times_dearer(FACTOR))
    assert dearer is not None
    catalog = _dearer_catalog(FACTOR)
    for name, module in list(sys.modules.items()):
        if name.startswith("optimizer") and hasattr(module, "load_catalog"):
            monkeypatch.setattr(module, "load_catalog", lambda: catalog)
    assert cost(solve(dearer).plan) == pytest.approx(FACTOR * cost(plan), rel=SLACK)
