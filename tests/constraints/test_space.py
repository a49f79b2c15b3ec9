"""Space: servers fill racks of their own pool, racks fit the site."""

import pytest

from optimizer.program_data import ProgramData
from optimizer.solver import Reason
from tests.core.hand import LIQUID, bought, cost, data_of, instance, offered, price, run, server_type, solve


def program(racks: int | None, *, replicas: int = 9, **targets: float) -> ProgramData:
    """Servers in air, 4 a rack, at 1 an hour; by liquid, 2 a rack, at 0.9. A rack costs 0.125 an hour."""
    of = server_type()
    pools = [bought("air", of), bought("liquid", of, cooling=LIQUID, per_rack=2)]
    terms = [price(("Servers", "air"), 1.0), price(("Servers", "liquid"), 0.9)]
    terms += [price(("Racks", q), 0.125) for q in ("air", "liquid")]
    site = {} if racks is None else {"racks": racks}
    given = instance(site=site, targets=dict(targets))
    return data_of(given, pools, [offered("d", of)], terms, demand=(float(replicas),))


def test_racks_are_whole_and_of_one_pool() -> None:
    found = solve(program(None))
    assert found is not None
    # 9 in liquid: 8.1 and 5 racks; 8 in liquid and 1 in air: 8.2 and as many racks.
    assert found.usd_per_hour == pytest.approx(9 * 0.9 + 5 * 0.125)
    assert found.values["Racks[liquid]"] == 5


def test_border() -> None:
    assert cost(program(5)) == pytest.approx(9 * 0.9 + 5 * 0.125)
    # Three racks of liquid hold six servers, one of air the other three.
    assert cost(program(4)) == pytest.approx(3 * 1.0 + 6 * 0.9 + 4 * 0.125)
    assert cost(program(3)) == pytest.approx(7 * 1.0 + 2 * 0.9 + 3 * 0.125)
    assert run(program(2)).reason is Reason.INFEASIBLE
    assert cost(program(2, replicas=8)) == pytest.approx(8 * 1.0 + 2 * 0.125)


def test_spares_stand_in_racks() -> None:
    assert cost(program(2, replicas=7, spare_fraction=0.125)) == pytest.approx(8 * 1.0 + 2 * 0.125)
    assert run(program(2, replicas=8, spare_fraction=0.125)).reason is Reason.INFEASIBLE


def test_a_system_that_is_a_rack_needs_no_variable_of_its_own() -> None:
    of = server_type()
    for racks, holds in ((3, True), (2, False)):
        terms = [price(("Racks", "rack"), 2.0), price(("Servers", "rack"), 1.0)]
        pools = [bought("rack", of, per_rack=1)]
        data = data_of(instance(site={"racks": racks}), pools, [offered("d", of)], terms, demand=(3.0,))
        found = solve(data)
        assert (found is not None) == holds
        if found is not None:
            assert found.usd_per_hour == pytest.approx(3 * 3.0)
            assert found.count("Racks") == 0
