"""Power: server power times PUE in the hottest hour, spares included, against the site's power."""

import numpy as np
import pytest

from optimizer.program_data import ProgramData
from optimizer.solver import Reason
from tests.core.hand import LIQUID, bought, cost, data_of, instance, offered, price, rented, run, server_type, solve


def program(power_kw: float, **targets: float) -> ProgramData:
    """Four replicas of one server each: bought at 1 an hour and 12.5 kW at the meter, or rented at 3."""
    of = server_type(rent={"on_demand": 3.0})
    pools = [bought("air", of), rented("rent", of)]
    terms = [price(("Servers", "air"), 1.0), price(("Servers", "rent"), 3.0)]
    given = instance(site={"power_kw": power_kw}, targets=dict(targets))
    return data_of(given, pools, [offered("d", of, rate=2.5)], terms)


def test_border() -> None:
    # The solver forgives 1e-7 of the limit; a part in a thousand less is one server less.
    assert cost(program(4 * 12.5)) == pytest.approx(4.0)
    assert cost(program(4 * 12.5 * (1 - 1e-3))) == pytest.approx(3 * 1.0 + 3.0)
    assert cost(program(1.0)) == pytest.approx(4 * 3.0)


def test_spares_count() -> None:
    assert cost(program(5 * 12.5, spare_fraction=0.25)) == pytest.approx(5.0)
    # Three in service and their spare at the site, the fourth rented.
    assert cost(program(5 * 12.5 - 0.1, spare_fraction=0.25)) == pytest.approx(4 * 1.0 + 3.0)


def test_a_cooler_server_of_the_same_type_fits_more() -> None:
    of = server_type()
    pools = [bought("air", of), bought("liquid", of, cooling=LIQUID, server_kw=8.0, pue=1.125)]
    terms = [price(("Servers", "air"), 1.0), price(("Servers", "liquid"), 1.5)]
    for power_kw, best in ((50.0, 4.0), (4 * 9.0, 6.0)):
        data = data_of(instance(site={"power_kw": power_kw}), pools, [offered("d", of, rate=2.5)], terms)
        assert cost(data) == pytest.approx(best)
    data = data_of(instance(site={"power_kw": 35.9}), pools, [offered("d", of, rate=2.5)], terms)
    assert run(data).reason is Reason.INFEASIBLE


def test_power_of_the_plan_is_at_most_the_limit() -> None:
    for power_kw in np.linspace(10.0, 60.0, 11):
        found = solve(program(float(power_kw)))
        assert found is not None
        assert found.values.get("Servers[air]", 0.0) * 12.5 <= power_kw
