"""Maintenance and support of servers (spares included) and of the network, as a share of their price per year."""

from optimizer.costs import network, servers
from optimizer.costs.term import Term
from optimizer.setting import Setting

COMPONENT = "maintenance"


def terms(setting: Setting) -> list[Term]:
    """A share of the price of everything bought for servers and network, every year."""
    economics = setting.instance.economics
    result = []
    for module, share in (
        (servers, economics.server_maintenance_fraction),
        (network, economics.network_maintenance_fraction),
    ):
        if share == 0.0:
            continue
        for one in module.terms(setting):
            factors = (("maintenance_fraction", share),)
            result.append(
                Term(
                    COMPONENT,
                    one.item,
                    one.quantity,
                    one.unit,
                    one.unit_price_usd,
                    factors,
                    0.0,
                    one.source,
                    one.as_of,
                    "assumed",
                )
            )
    return result
