"""Quantities of the site as a whole for a given fleet: hall, posts, management servers, connection."""

from collections.abc import Mapping

from optimizer.costs.services import MANAGEMENT
from optimizer.costs.staff import POSTS
from optimizer.costs.term import QuantityKey
from optimizer.program_data import SITE_USED, ProgramData


def site_quantities(data: ProgramData, servers: Mapping[str, int], capital_usd: float) -> dict[QuantityKey, float]:
    """Quantities of what a fleet's site needs; empty where nothing is bought.

    Where either hall may be used the cheaper one is taken that the capital budget allows beside the ``capital_usd`` of
    the rest of the fleet.
    """
    bought = {q: count for q, count in servers.items() if data.pools[q].in_hall and count}
    if not bought:
        return {}
    if not data.chooses_hall:
        return _in_hall(data, bought, owns=data.setting.instance.site.facility == "own_build")
    both = [_in_hall(data, bought, owns=owns) for owns in (False, True)]
    budget = data.setting.instance.economics.budget_capex_usd

    def rank(quantities: Mapping[QuantityKey, float]) -> tuple[bool, float]:
        yearly = sum(data.yearly_by_quantity.get(key, 0.0) * amount for key, amount in quantities.items())
        capital = sum(data.capital_by_quantity.get(key, 0.0) * amount for key, amount in quantities.items())
        return budget is not None and capital_usd + capital > budget, yearly

    return min(both, key=rank)


def _in_hall(data: ProgramData, bought: Mapping[str, int], *, owns: bool) -> dict[QuantityKey, float]:
    kw = sum(data.pools[q].server_kw * count for q, count in bought.items())
    quantities: dict[QuantityKey, float] = {("SpaceKw",): kw, SITE_USED: 1.0}
    if data.chooses_hall:
        quantities[("HallKw" if owns else "ColocationKw"), "site"] = kw
    if data.staff is not None:
        accelerators = sum(data.pools[q].server_type.accelerators * count for q, count in bought.items())
        quantities[POSTS] = data.staff.posts(accelerators, kw if owns else 0.0)
    each = data.servers_per_management_server
    if each is not None:
        quantities[MANAGEMENT] = float(-(-sum(bought.values()) // each))
    return quantities
