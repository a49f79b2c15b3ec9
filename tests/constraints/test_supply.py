"""Supply: accelerators of a type that can be had, bought and rented together; types in the fleet."""

import pytest

from optimizer.program_data import ProgramData
from optimizer.solver import Reason
from tests.core.hand import Json, bought, cost, data_of, instance, offered, price, rented, run, server_type


def program(demand: float = 4.0, **choices: Json | int) -> ProgramData:
    """Cheap accelerators at 1 a server, rented at 1.5, dear ones at 3; eight in a server, one replica in each."""
    cheap, dear = server_type("cheap", rent={"on_demand": 1.5}), server_type("dear")
    pools = [bought("cheap_air", cheap), rented("cheap_rent", cheap), bought("dear_air", dear)]
    prices = {"cheap_air": 1.0, "cheap_rent": 1.5, "dear_air": 3.0}
    terms = [price(("Servers", q), usd) for q, usd in prices.items()]
    deployments = [offered("c", cheap), offered("d", dear)]
    return data_of(instance(choices=dict(choices)), pools, deployments, terms, demand=(demand,))


@pytest.mark.parametrize(("supply", "best"), [(32, 4.0), (31, 3 + 3.0), (24, 3 + 3.0), (7, 4 * 3.0), (0, 4 * 3.0)])
def test_border(supply: int, best: float) -> None:
    assert cost(program(supply={"cheap": supply})) == pytest.approx(best)


def test_bought_and_rented_count_together() -> None:
    data = program(supply={"cheap": 16, "dear": 0})
    assert run(data).reason is Reason.INFEASIBLE
    assert cost(program(2.0, supply={"cheap": 16, "dear": 0})) == pytest.approx(2.0)


def test_spares_count() -> None:
    of = server_type("cheap")
    given = {"supply": {"cheap": 24}}
    terms = [price(("Servers", "air"), 1.0)]
    for demand, holds in ((2.0, True), (3.0, False)):
        full = instance(choices=given, targets={"spare_fraction": 0.05})
        data = data_of(full, [bought("air", of)], [offered("d", of)], terms, demand=(demand,))
        assert (run(data).reason is Reason.OPTIMAL) == holds


def test_number_of_types() -> None:
    assert cost(program(supply={"cheap": 24}, max_accelerator_types=2)) == pytest.approx(6.0)
    assert cost(program(supply={"cheap": 24}, max_accelerator_types=1)) == pytest.approx(4 * 3.0)
    # Buying and renting the same accelerator is one type.
    assert cost(program(supply={"cheap": 32}, max_accelerator_types=1)) == pytest.approx(4.0)
