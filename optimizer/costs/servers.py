"""Servers: what bought servers cost, with quantity discounts, and the premium of those built for liquid.

The bill splits these terms between servers in service and spares at the average price paid.
"""

from optimizer.costs.price_steps import price_steps
from optimizer.costs.term import Term, capital, capital_recovery_factor
from optimizer.setting import Pool, ServerType, Setting

COMPONENT = "servers"


def tier_prices(server_type: ServerType) -> tuple[tuple[int, float, float], ...]:
    """Discount tiers as (first count, price of one more server in the tier, offset paid once in the tier), in USD."""
    if server_type.server_usd is None:
        return ()
    list_usd, kind = server_type.server_usd.usd, server_type.discount_kind
    steps = price_steps(list_usd, server_type.discounts, kind, start=1, counted=True)
    return tuple((int(one.first), one.usd, one.offset_usd) for one in steps)


def liquid_premium_usd(setting: Setting, pool: Pool) -> float:
    """Premium (USD per server) of cold plates where the same server could be had for air."""
    row = pool.server_type.accelerator
    if not pool.is_bought or pool.cooling is None or pool.cooling.medium != "liquid" or row.liquid_cooling != "option":
        return 0.0
    return setting.instance.economics.liquid_ready_usd_per_kw * row.server_power_kw


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
    own = economics.liquid_ready_usd_per_kw
    field = type(economics).model_fields["liquid_ready_usd_per_kw"]
    provenance = (
        ("stated by the user", "", "user")
        if own != field.default
        else ("premium of cold plates and manifolds", "2026", "assumed")
    )
    for pool in setting.pools:
        premium = liquid_premium_usd(setting, pool)
        if premium > 0.0:
            item = f"{pool.server_type.id}: built for liquid"
            result.append(capital(COMPONENT, item, ("Servers", pool.id), "servers", premium, annuity, provenance))
    return result
