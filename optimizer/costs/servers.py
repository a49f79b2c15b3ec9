"""Servers: what bought servers cost, with quantity discounts, and the premium of those built for liquid.

The bill splits these terms between servers in service and spares at the average price paid.
"""

from dataclasses import replace

from optimizer.costs.price_steps import price_steps
from optimizer.costs.term import Term, capital, capital_recovery_factor
from optimizer.setting import Pool, Price, ServerType, Setting

COMPONENT = "servers"
#: Facility figure of what converting a server to liquid costs.
RETROFIT_FIGURE = "liquid_retrofit"


def tier_prices(server_type: ServerType) -> tuple[tuple[int, float, float], ...]:
    """Discount tiers as (first count, price of one more server in the tier, offset paid once in the tier), in USD."""
    if server_type.server_usd is None:
        return ()
    list_usd, kind = server_type.server_usd.usd, server_type.discount_kind
    steps = price_steps(list_usd, server_type.discounts, kind, start=1, counted=True)
    return tuple((int(one.first), one.usd, one.offset_usd) for one in steps)


def liquid_premium(setting: Setting, pool: Pool) -> tuple[str, Price] | None:
    """(what it is, USD per server) of cold plates where the same server could be had for air; None where it has none.

    Servers that are sold for liquid, too, cost a premium; those that are not are converted, where that is allowed.
    """
    row, economics = pool.server_type.accelerator, setting.instance.economics
    liquid = pool.is_bought and pool.cooling is not None and pool.cooling.medium == "liquid"
    if not liquid or row.liquid_cooling == "required":
        return None
    if row.liquid_cooling == "no":
        each = retrofit_price(setting)
        return "converted to liquid", replace(each, usd=each.usd * row.server_power_kw)
    usd = economics.liquid_ready_usd_per_kw
    stated = usd != type(economics).model_fields["liquid_ready_usd_per_kw"].default
    source, as_of = ("stated by the user", "") if stated else ("premium of cold plates and manifolds", "2026")
    return "built for liquid", Price(usd * row.server_power_kw, source, as_of, "user" if stated else "assumed")


def retrofit_price(setting: Setting) -> Price:
    """USD per kW of server power for converting a server to liquid: stated, else the catalogue's at the price level."""
    economics = setting.instance.economics
    if economics.liquid_retrofit_usd_per_kw is not None:
        return Price(economics.liquid_retrofit_usd_per_kw, "stated by the user", "", "user")
    row = setting.catalog.facility[RETROFIT_FIGURE]
    usd = {"low": row.low, "typical": row.typical, "high": row.high}[economics.price_level]
    return Price(usd, row.source, row.as_of, row.trust)


def terms(setting: Setting) -> list[Term]:
    """Server prices by tier, and liquid premiums, as annuities over the servers' life."""
    economics = setting.instance.economics
    annuity = ("annuity", capital_recovery_factor(economics.discount_rate, economics.server_life_years))
    result = []
    bought = {pool.server_type.id: pool.server_type for pool in setting.pools if pool.is_bought}
    for server_type in bought.values():
        price = server_type.server_usd
        assert price is not None
        provenance = (price.source, price.as_of, price.trust)
        tiers = tier_prices(server_type)
        for number, (count, usd, offset) in enumerate(tiers):
            label = server_type.id if len(tiers) == 1 else f"{server_type.id}, from {count} servers"
            key = ("TierServers", server_type.id, str(number))
            result.append(capital(COMPONENT, label, key, "servers", usd, annuity, provenance))
            if offset:
                used = ("TierUsed", server_type.id, str(number))
                item = f"{label}: dearer servers below the step"
                result.append(capital(COMPONENT, item, used, "tier", offset, annuity, provenance))
    for pool in setting.pools:
        premium = liquid_premium(setting, pool)
        if premium is not None and premium[1].usd > 0.0:
            what, each = premium
            item, provenance = f"{pool.server_type.id}: {what}", (each.source, each.as_of, each.trust)
            result.append(capital(COMPONENT, item, ("Servers", pool.id), "servers", each.usd, annuity, provenance))
    return result
