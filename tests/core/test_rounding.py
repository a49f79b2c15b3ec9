"""Rows that whole counts imply: they cut off no whole point, and never change the least cost."""

import itertools
import math
from dataclasses import replace
from random import Random

import pytest

from optimizer.costs.staff import POSTS
from optimizer.program import build_program
from optimizer.program_data import ProgramData
from optimizer.rounding import add_rounded_rows, rounded
from optimizer.solver import Compiled, Reason
from tests.core.hand import EXACT, bought, data_of, instance, offered, price, rented, server_type
from tests.core.steps import fabrics
from tests.core.test_random_programs import SEEDS, TOLERANCE, draw


@pytest.mark.parametrize("seed", range(20))
def test_a_rounded_row_holds_at_every_whole_point(seed: int) -> None:
    """``y`` is as small as the row that was rounded lets it be, so the check is the sharpest there is."""
    random = Random(seed)
    counts = {"a": random.uniform(0.05, 3.0), "b": random.uniform(0.05, 3.0), "c": 1.0}
    least = random.uniform(0.3, 6.0)
    row = rounded(counts, least)
    assert row is not None
    gap = math.inf
    for point in itertools.product(range(8), repeat=3):
        y = max(0.0, least - sum(each * x for each, x in zip(counts.values(), point, strict=True)))
        left = sum(row.whole[key] * x for key, x in zip(counts, point, strict=True)) + row.others * y - row.least
        assert left >= -1e-9
        gap = min(gap, left)
    assert gap == pytest.approx(0.0, abs=1e-9)


def test_a_whole_number_is_not_rounded() -> None:
    assert rounded({"a": 0.5}, 3.0) is None
    assert rounded({"a": 0.5}, 2.9999) is None


def least(data: ProgramData, *, rows: bool, relaxed: bool = False) -> float:
    """Least cost with or without the rows, of whole plans or of any; infinite where there is no plan."""
    compiled = Compiled(build_program(data) if not relaxed else _relaxed(data))
    if rows:
        add_rounded_rows(compiled, compiled.columns[0].model(), data)
    outcome = compiled.solve(EXACT)
    return math.inf if outcome.reason is Reason.INFEASIBLE else outcome.objective


def _relaxed(data: ProgramData) -> object:
    from pyomo.core import Reals, Var

    model = build_program(data)
    for variable in model.component_data_objects(Var):
        low, high = variable.bounds
        variable.domain = Reals
        variable.setlb(low)
        variable.setub(high)
    return model


@pytest.mark.parametrize("seed", SEEDS)
def test_rounded_rows_keep_the_least_cost(seed: int) -> None:
    data = draw(seed)
    if seed % 2:
        data = replace(data, terms=(*data.terms, price(POSTS, Random(seed).uniform(0.1, 3.0), component="staff")))
    expected = least(data, rows=False)
    assert least(data, rows=True) == pytest.approx(expected, rel=TOLERANCE)


def _one_type(*, rent: bool) -> ProgramData:
    """Twenty-two servers at 1 USD with one spare in twenty; rented servers at 1.02."""
    of = server_type(rent={"on_demand": 1.02})
    pools = [bought("air", of), *([rented("cloud", of, "on_demand")] if rent else [])]
    terms = [price(("Servers", "air"), 1.0), *([price(("Servers", "cloud"), 1.02)] if rent else [])]
    given = instance(targets={"spare_fraction": 0.05})
    return data_of(given, pools, [offered("d", of)], terms, demand=(22.0,), most_servers=60, fabrics=fabrics())


def test_spares_of_fractional_plans_are_whole_too() -> None:
    """Without rented servers the relaxation pays for the second spare, as whole plans do."""
    data = _one_type(rent=False)
    assert least(data, rows=False, relaxed=True) == pytest.approx(22.0 * 1.05)
    assert least(data, rows=True, relaxed=True) == pytest.approx(24.0) == least(data, rows=True)


def test_rented_servers_may_take_what_would_need_one_more_spare() -> None:
    data = _one_type(rent=True)
    assert least(data, rows=True) == pytest.approx(22.0 * 1.02)
    assert least(data, rows=True) == least(data, rows=False)
