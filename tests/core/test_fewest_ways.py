"""Equal servers at equal cost are filled in few ways; what buys something stays."""

import time

import numpy as np
import pytest

from optimizer.costs import rent
from optimizer.fewest_ways import fewest_ways
from optimizer.program import build_program
from optimizer.program_data import Offered
from optimizer.solver import Compiled, Options
from tests.core.hand import data_of, instance, offered, rented, server_type, setting_of

EXACT = Options(gap=1e-9, time_limit_s=60.0, threads=1, seed=0)


def counts_after(ways: list[Offered], demand: float, forced: dict[str, int]) -> dict[str, float]:
    """Replicas of each deployment after a mix that the solver was made to meet was made simple."""
    of = server_type(usd=None, rent={"on_demand": 1.0})
    pools, given = [rented("hourly", of)], instance()
    data = data_of(given, pools, ways, rent.terms(setting_of(given, pools)), demand=(demand,))
    model = build_program(data)
    compiled = Compiled(model)
    columns = [compiled.column_of(model.Replicas[key, "hourly"]) for key in forced]
    counts = np.array([float(count) for count in forced.values()])
    before = compiled.set_bounds(columns, counts, counts)
    mixed = compiled.solve(EXACT)
    assert mixed.values is not None
    compiled.set_bounds(columns, *before)
    compiled.add_row(compiled.cost_vector(model.TotalCost.expr), mixed.objective * (1.0 + 1e-6))
    found = fewest_ways(compiled, model, data, mixed.values, EXACT, time.perf_counter() + 60.0, None)
    return {key: found[compiled.column_of(model.Replicas[key, "hourly"])] for key in forced}


@pytest.mark.parametrize("other", ["plain", "second scheme"])
def test_a_second_way_that_buys_nothing_is_left_out(other: str) -> None:
    of = server_type(usd=None, rent={"on_demand": 1.0})
    ways = [offered("a", of, width=4, rate=1.0), offered("b", of, width=4, rate=1.05, scheme=other)]
    found = counts_after(ways, 3.6, {"a": 2, "b": 2})
    assert sorted(count > 0 for count in found.values()) == [False, True]


def test_the_way_that_carries_the_demand_stays() -> None:
    """Two wide replicas carry 4.4, a mix 4.2, four narrow ones 4.0: at 4.1 only the narrow way can be spared."""
    of = server_type(usd=None, rent={"on_demand": 1.0})
    ways = [offered("wide", of, width=8, rate=2.2), offered("narrow", of, width=4, rate=1.0, scheme="other")]
    assert counts_after(ways, 4.1, {"wide": 1, "narrow": 2}) == {"wide": 2.0, "narrow": 0.0}
