"""Software, shared storage, servers without accelerators, the site's connection: what the planner asks for."""

from collections.abc import Iterator
from dataclasses import replace

from optimizer.costs.figures import USER, figure
from optimizer.costs.term import Term, capital, capital_recovery_factor
from optimizer.setting import Setting

COMPONENT = "services"
#: Key of servers without accelerators.
MANAGEMENT = ("ManagementServers", "site")
#: Units of the catalogue's figures: a petabyte, a link of 100 Gbit/s.
_TB_PER_PB, _GBPS_PER_LINK = 1000.0, 100.0


def terms(setting: Setting) -> list[Term]:
    """Every term of what is asked for."""
    return [*_software(setting), *_storage(setting), *_management(setting), *_connection(setting)]


def _software(setting: Setting) -> Iterator[Term]:
    usd = setting.instance.economics.services.software_usd_per_accelerator_year
    if usd > 0.0:
        for pool in setting.pools:
            factors = (("accelerators", float(pool.server_type.accelerators)),)
            key = ("Servers", pool.id)
            yield Term(COMPONENT, f"{pool.id}: software", key, "servers", usd, factors, 0.0, *USER)


def _storage(setting: Setting) -> Iterator[Term]:
    economics = setting.instance.economics
    terabytes = economics.services.storage_tb_per_accelerator
    if terabytes == 0.0:
        return
    price = figure(setting, "storage_parallel_fs", economics.services.storage_usd_per_tb, 1.0 / _TB_PER_PB)
    annuity = ("annuity", capital_recovery_factor(economics.discount_rate, economics.server_life_years))
    for pool in setting.pools:
        if pool.is_bought and price.usd > 0.0:
            usd = price.usd * terabytes * pool.server_type.accelerators
            source = (price.source, price.as_of, price.trust)
            item = f"{pool.id}: storage"
            yield from _kept_up(
                setting, capital(COMPONENT, item, ("Servers", pool.id), "servers", usd, annuity, source)
            )


def _management(setting: Setting) -> Iterator[Term]:
    economics = setting.instance.economics
    usd = economics.services.management_server_usd
    if usd:
        annuity = ("annuity", capital_recovery_factor(economics.discount_rate, economics.server_life_years))
        yield from _kept_up(
            setting, capital(COMPONENT, "management servers", MANAGEMENT, "servers", usd, annuity, USER)
        )


def _kept_up(setting: Setting, one: Term) -> Iterator[Term]:
    """What is bought, and its maintenance at the servers' share."""
    yield one
    share = setting.instance.economics.server_maintenance_fraction
    if share > 0.0:
        yield replace(one, item=f"{one.item}, maintenance", factors=(("maintenance_fraction", share),), capital_usd=0.0)


def _connection(setting: Setting) -> Iterator[Term]:
    services = setting.instance.economics.services
    if services.connectivity_gbps > 0.0:
        price = figure(setting, "connectivity", services.connectivity_usd_per_gbps_year, 1.0 / _GBPS_PER_LINK)
        factors = (("gbps", services.connectivity_gbps),)
        source = (price.source, price.as_of, price.trust)
        if price.usd > 0.0:
            key = ("SiteUsed", "site")
            yield Term(COMPONENT, "connectivity", key, "site", price.usd, factors, 0.0, *source)
