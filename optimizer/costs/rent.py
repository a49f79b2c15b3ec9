"""Rent: price per accelerator-hour, paid at every hour of the year, or at the load levels that use a server.

Committed servers are paid always. Those rented by the hour are paid by level where the load is known by the hour; else
always too, because a mean alone does not say when they could be given up.
"""

from optimizer.costs.term import Term
from optimizer.setting import Setting
from optimizer.units import HOURS_PER_YEAR

COMPONENT = "rent"


def terms(setting: Setting) -> list[Term]:
    """Rented servers by pool."""
    result = []
    for pool in setting.pools:
        if pool.in_hall:
            continue
        price = pool.rent_price
        provenance = (price.source, price.as_of, price.trust)
        accelerators = ("accelerators", float(pool.server_type.accelerators))
        if setting.is_elastic(pool):
            key, unit, factors = ("ServerHours", pool.id), "server-hours/year", (accelerators,)
            result.append(Term(COMPONENT, pool.id, key, unit, price.usd, factors, 0.0, *provenance))
        else:
            hours = ("hours_per_year", HOURS_PER_YEAR)
            key = ("Servers", pool.id)
            result.append(Term(COMPONENT, pool.id, key, "servers", price.usd, (accelerators, hours), 0.0, *provenance))
    return result
