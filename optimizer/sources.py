"""What an answer rests on and should tell: catalogue rows, defaults, counts of the search, provenance, messages."""

from collections.abc import Mapping

from optimizer import __version__
from optimizer.costs.cooling import heat_paths
from optimizer.costs.network import fabric_of
from optimizer.costs.term import QuantityKey
from optimizer.fleet import Fleet
from optimizer.instance.defaults import defaults_used
from optimizer.instance.model import Instance
from optimizer.plan import (
    CatalogRow,
    DefaultedField,
    Provenance,
    SearchCount,
)
from optimizer.pool import Pool
from optimizer.power_states import UNCAPPED
from optimizer.program_data import ProgramData
from optimizer.provenance import catalog_sha256, factors_sha256, instance_sha256
from optimizer.rental import doubtful_prices
from optimizer.screen import Screened
from optimizer.setting import electricity_region
from optimizer.solver import Options

#: Facility figures that the bill and the power of servers rest on.
FACILITY_FIGURES = ("colo_wholesale_1mw_plus", "rack_hardware", "server_fan_share_air", "liquid_retrofit")


def search_count(screened: Screened, kept: int) -> SearchCount:
    """How much was searched."""
    return SearchCount(
        candidates=screened.candidates.size,
        admissible=int(screened.rows.size),
        kept=kept,
        killed_by_limit=screened.killed_by_limit(),
        not_startable=dict(sorted(screened.candidates.not_startable.items())),
    )


def messages(data: ProgramData, fleet: Fleet) -> tuple[str, ...]:
    """What a buyer should know before believing the plan."""
    told = [*doubtful_prices(data.setting.instance, data.setting.catalog)]
    used = {data.pools[q].server_type.accelerator.id: data.pools[q].server_type.accelerator for q in fleet.servers}
    for key, row in sorted(used.items()):
        if row.confidence == "low":
            told.append(f"{key}: its figures are of low confidence")
    if any(data.deployments[d].roles > 1 for d, _ in fleet.replicas):
        told.append("units of prefill and decode replicas: no measured point stands behind two roles, measure one")
    bought = {data.pools[q].server_type.id for q in fleet.servers if data.pools[q].is_bought}
    told += [
        f"{refusal.server_type} is not offered with {refusal.cooling}: {refusal.reason}"
        for refusal in data.setting.refusals
        if refusal.server_type in bought
    ]
    told += _cap_messages(data, fleet)
    told += _sourcing_messages(data, fleet)
    if (
        data.setting.instance.targets.accuracy_floor_fraction is None
        and data.setting.instance.targets.accuracy_floor_score is None
    ):
        told.append("no accuracy floor is stated: 0.99 of the unquantized model is held")
    return tuple(told)


def _cap_messages(data: ProgramData, fleet: Fleet) -> list[str]:
    """What a power cap of the plan rests on."""
    caps = {
        pool.server_type.accelerator.id: pool.server_type.power_cap_fraction
        for pool in (data.pools[q] for q in fleet.servers)
        if pool.server_type.power_cap_fraction < UNCAPPED
    }
    return [
        f"{key} runs under a power cap of {cap:.6g} of its board power: its speed there is assumed from other cards, "
        "measure yours under that cap"
        for key, cap in sorted(caps.items())
    ]


def _sourcing_messages(data: ProgramData, fleet: Fleet) -> list[str]:
    """On what is owned and on what is rented."""
    told = []
    setting = data.setting
    # Every power state of owned servers is a pool; together they are one row of the inventory.
    owned: dict[tuple[str, str], list[Pool]] = {}
    for pool in setting.pools:
        if pool.owned is not None:
            owned.setdefault((pool.server_type.accelerator.id, pool.id.rpartition("/")[2]), []).append(pool)
    for (_, cooling), states in owned.items():
        one = next((pool for pool in states if pool.id in fleet.servers), states[0])
        assert one.owned is not None
        used = sum(fleet.servers.get(pool.id, 0) for pool in states)
        value = one.owned.book_value_usd
        sunk = "" if value is None else f"; their book value of {value:,.0f} USD is sunk and not billed"
        told.append(f"{used:,} of {one.owned.servers:,} owned servers {one.server_type.id} ({cooling}) are used{sunk}")
    told += [
        f"owned {refusal.server_type} cannot be used with {refusal.cooling}: {refusal.reason}"
        for refusal in setting.refusals
        if any(one.cooling == refusal.cooling for one in setting.instance.inventory)
    ]
    hourly = [q for q in fleet.servers if data.pools[q].is_hourly]
    varies = setting.mean_fraction() < 1.0
    if hourly and varies and not setting.follows_load:
        told.append("rented servers are billed at every hour: workload.load.hourly_fractions tells when they are idle")
    return told


def defaulted(instance: Instance) -> tuple[DefaultedField, ...]:
    """Fields left to their defaults."""
    return tuple(
        DefaultedField(field=one.field, value=str(one.value), unit=one.unit, source=one.source)
        for one in defaults_used(instance)
    )


def catalog_rows(
    data: ProgramData, screened: Screened, fleet: Fleet, quantities: Mapping[QuantityKey, float]
) -> tuple[CatalogRow, ...]:
    """Every catalogue row that the plan rests on."""
    setting = data.setting
    catalog = setting.catalog
    keys: set[tuple[str, str]] = {("climates", setting.instance.site.climate)}
    for q in fleet.servers:
        pool = data.pools[q]
        row = pool.server_type.accelerator
        keys |= {("accelerators", row.id), ("power_curves", row.generation)}
        if pool.cooling is not None:
            keys |= {("cooling", pool.cooling.id), ("purchase_prices", row.id)}
        if pool.owned is not None:
            # The network that stands is kept up at the price of its two-tier figure.
            keys |= {("cooling", option.id) for option, _ in heat_paths(setting, pool)}
            keys |= {("fabrics", f.id) for f in setting.fabrics[row.scale_out_gb_s] if f.tiers == 2}
    keys |= {("cooling", key[1]) for key in quantities if key[0] == "PlantKw"}
    keys |= {("fabrics", fabric_of(key[1])) for key in quantities if key[0] == "FabricAccelerators"}
    for d, _ in fleet.replicas:
        scheme = screened.candidates.schemes[
            int(screened.candidates.scheme_index[screened.rows[data.deployments[d].row]])
        ]
        keys |= {("schemes", scheme.scheme.id), ("kv_schemes", scheme.kv_scheme.id)}
    if screened.candidates.model.catalog_id is not None:
        keys.add(("models", screened.candidates.model.catalog_id))
    keys |= _price_rows(data, quantities)
    rows = []
    for table, key in sorted(keys):
        found = getattr(catalog, table).get(key)
        if found is not None:
            rows.append(CatalogRow(table=table, id=key, row=found.model_dump(mode="json")))
    return tuple(rows)


def _price_rows(data: ProgramData, quantities: Mapping[QuantityKey, float]) -> set[tuple[str, str]]:
    """Rows that only prices rest on: electricity, facility figures, rental offers, recovery steps."""
    setting = data.setting
    site = setting.instance.site
    keys: set[tuple[str, str]] = set()
    billed = {term.source for term in data.terms if quantities.get(term.quantity, 0.0)}
    keys |= {("facility", key) for key in FACILITY_FIGURES if setting.catalog.facility[key].source in billed}
    priced = site.electricity_usd_per_kwh is None and site.tariff is None
    if (priced or site.carbon_g_per_kwh is None) and data.hall:
        keys.add(("electricity", electricity_region(setting.instance, setting.catalog)))
    for key, offer in setting.catalog.rental_offers.items():
        name = f"{offer.provider} {offer.instance}: {offer.source}"
        if any(one.endswith(name) for one in billed):
            keys.add(("rental_offers", key))
    keys |= _site_rows(data, quantities)
    if any(key[0] == "SchemePrepared" and term.quantity == key for key in quantities for term in data.terms):
        keys |= {("recovery_steps", key) for key in setting.catalog.recovery_steps}
    return keys


def _site_rows(data: ProgramData, quantities: Mapping[QuantityKey, float]) -> set[tuple[str, str]]:
    """Rows behind staff, insurance, services and an own hall, each where its component is billed."""
    setting = data.setting
    billed = [term for term in data.terms if quantities.get(term.quantity, 0.0)]
    components = {term.component for term in billed}
    figures: list[str] = []
    if "staff" in components:
        figures += ["staff_cost_loaded", "cluster_admin"]
    if "insurance" in components:
        figures.append("insurance")
    if "services" in components:
        figures += [
            key
            for key in ("storage_parallel_fs", "connectivity")
            if any(
                setting.catalog.facility[key].source == term.source for term in billed if term.component == "services"
            )
        ]
    keys: set[tuple[str, str]] = set()
    if any(term.item.startswith("hall without") for term in billed):
        figures += ["facility_life", "facility_maintenance", "facility_staff", "staff_min_24x7"]
        country = setting.catalog.electricity[electricity_region(setting.instance, setting.catalog)].iso3
        if country in setting.catalog.build_costs:
            keys.add(("build_costs", country))
        else:
            figures.append("build_capex" if country == "USA" else "build_capex_global")
    return keys | {("facility", key) for key in figures}


def provenance(instance: Instance, options: Options, solver: str) -> Provenance:
    """What made the answer."""
    return Provenance(
        tool=f"gpu-cluster-optimizer {__version__}",
        instance_sha256=instance_sha256(instance),
        catalog_sha256=catalog_sha256(),
        factors_sha256=factors_sha256(),
        solver=solver,
        options={"gap": options.gap, "threads": options.threads, "seed": options.seed},
    )
