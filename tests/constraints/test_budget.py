"""Budget: capital at the start, yearly cost with capital as an annuity."""

import pytest

from optimizer.program_data import ProgramData
from optimizer.solver import Reason
from optimizer.units import HOURS_PER_YEAR
from tests.core.hand import bought, cost, data_of, instance, offered, price, rented, run, server_type


def program(**economics: float) -> ProgramData:
    """Four replicas: bought at 1 an hour and 1000 of capital, rented at 3."""
    of = server_type(rent={"on_demand": 3.0})
    pools = [bought("air", of), rented("rent", of)]
    terms = [price(("Servers", "air"), 1.0, capital=1000.0), price(("Servers", "rent"), 3.0)]
    return data_of(instance(economics=dict(economics)), pools, [offered("d", of, rate=2.5)], terms)


@pytest.mark.parametrize(("capex", "best"), [(4000.0, 4.0), (3999.0, 3 + 3.0), (999.0, 12.0)])
def test_border_of_capital(capex: float, best: float) -> None:
    assert cost(program(budget_capex_usd=capex)) == pytest.approx(best)


@pytest.mark.parametrize(("usd_per_hour", "holds"), [(4.0, True), (3.999, False)])
def test_border_of_yearly_cost(usd_per_hour: float, holds: bool) -> None:
    outcome = run(program(budget_usd_per_year=usd_per_hour * HOURS_PER_YEAR))
    assert (outcome.reason is Reason.OPTIMAL) == holds


def test_both_budgets_together() -> None:
    year = 6.0 * HOURS_PER_YEAR
    assert cost(program(budget_capex_usd=3000.0, budget_usd_per_year=year)) == pytest.approx(6.0)
    assert run(program(budget_capex_usd=2999.0, budget_usd_per_year=year)).reason is Reason.INFEASIBLE


def test_a_capital_budget_does_not_limit_what_only_rents() -> None:
    of = server_type(rent={"on_demand": 3.0})
    terms = [price(("Servers", "rent"), 3.0)]
    given = instance(economics={"budget_capex_usd": 1.0})
    data = data_of(given, [rented("rent", of)], [offered("d", of, rate=2.5)], terms)
    assert cost(data) == pytest.approx(12.0)


def test_budgets_do_not_limit_what_costs_nothing() -> None:
    of = server_type()
    given = instance(economics={"budget_capex_usd": 1.0, "budget_usd_per_year": 1.0})
    data = data_of(given, [bought("air", of)], [offered("d", of, rate=2.5)], [])
    assert run(data).reason is Reason.OPTIMAL
