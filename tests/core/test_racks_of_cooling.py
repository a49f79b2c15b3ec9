"""Cooling that is paid by the rack: rear doors and in-row coolers cost as much for a rack that is half full."""

import math

import pytest

from optimizer.costs import cooling
from optimizer.costs.term import capital_recovery_factor
from optimizer.pools import undominated_pools
from optimizer.units import HOURS_PER_YEAR
from tests.core.hand import bought, data_of, instance, offered, option, server_type, setting_of, solve

DOOR_USD = 12_000.0
AIR_USD = 900.0


@pytest.mark.parametrize("needed", range(1, 9))
def test_doors_against_a_loop(needed: int) -> None:
    """Doors for 4 servers of 10 kW each at 12,000 USD against air at 900 USD/kW: a door must be filled to pay."""
    of = server_type()
    air, door = option("air", marginal=AIR_USD), option("door", marginal=500.0)
    pools = [bought("air", of, cooling=air, per_rack=2), bought("door", of, cooling=door, per_rack=4)]
    own = {"door": {"per_rack_usd": DOOR_USD, "maintenance_fraction": 0.05}}
    given = instance(economics={"cooling_prices": own})
    terms = cooling.terms(setting_of(given, pools, residual=air))
    data = data_of(given, pools, [offered("d", of)], terms, demand=(float(needed),), residual=air)
    assert set(undominated_pools(data)) == {"air", "door"}
    found = solve(data)
    assert found is not None
    best = min(
        AIR_USD * 10.0 * (needed - doors) + 500.0 * 10.0 * doors + DOOR_USD * math.ceil(doors / 4)
        for doors in range(needed + 1)
    )
    hourly = (capital_recovery_factor(0.08, 15.0) + air.maintenance_typical_fraction) / HOURS_PER_YEAR
    assert found.usd_per_hour == pytest.approx(best * hourly, rel=1e-9)


def test_a_pool_whose_racks_are_dearer_does_not_dominate() -> None:
    """Equal but for the door: the one with it would be dropped or kept by its place without that cost."""
    of = server_type()
    first, second = option("first"), option("second")
    pools = [bought("first", of, cooling=first), bought("second", of, cooling=second)]
    given = instance(economics={"cooling_prices": {"first": {"per_rack_usd": 100.0}}})
    terms = cooling.terms(setting_of(given, pools, residual=first))
    data = data_of(given, pools, [offered("d", of)], terms, demand=(4.0,), residual=first)
    assert undominated_pools(data) == ("second",)
