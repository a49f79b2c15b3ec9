"""Rent: price per accelerator-hour, paid at every hour of the year whatever the load."""

from optimizer.costs.term import Term
from optimizer.setting import Setting
from optimizer.units import HOURS_PER_YEAR

COMPONENT = "rent"


def terms(setting: Setting) -> list[Term]:
    """Rented servers by pool."""
    result = []
    for pool in setting.pools:
        if pool.is_bought:
            continue
        price = pool.server_type.rent[pool.sourcing]
        factors = (("accelerators", float(pool.server_type.accelerators)), ("hours_per_year", HOURS_PER_YEAR))
        result.append(
            Term(
                COMPONENT,
                pool.id,
                ("Servers", pool.id),
                "servers",
                price.usd,
                factors,
                0.0,
                price.source,
                price.as_of,
                price.trust,
            )
        )
    return result
