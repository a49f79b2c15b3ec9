"""What a plan for training rests on and should tell: catalogue rows and messages."""

from collections.abc import Iterable

from optimizer.costs.network import fabric_of
from optimizer.plan import BillLine, CatalogRow
from optimizer.plan_training import TrainedJob
from optimizer.setting import electricity_region
from optimizer.sources import FACILITY_FIGURES
from optimizer.training.answer import Searched
from optimizer.training.jobs import training_workload
from optimizer.training.prices import PoolPrices
from optimizer.training.program import TrainingProgram


def catalog_rows(
    data: TrainingProgram, counts: dict[str, tuple[int, int]], lines: Iterable[BillLine]
) -> tuple[CatalogRow, ...]:
    """Every catalogue row that the plan rests on."""
    lines = tuple(lines)
    billed = {line.source for line in lines}
    catalog = next(iter(data.pools.values())).place.setting.catalog
    keys: set[tuple[str, str]] = set()
    for q in counts:
        prices = data.pools[q]
        row, site = prices.pool.server_type.accelerator, prices.place.site
        keys |= {("accelerators", row.id), ("power_curves", row.generation)}
        if prices.pool.cooling is None:
            continue
        keys |= {("climates", site.climate), ("purchase_prices", row.id)}
        keys |= {("cooling", plant) for plant in prices.heat}
        keys |= {
            ("fabrics", fabric_of(t.quantity[1]))
            for t in prices.terms
            if t.quantity[0] == "FabricAccelerators" and t.source in billed
        }
        if site.electricity_usd_per_kwh is None:
            region = site.electricity_region or catalog.climates[site.climate].electricity_region
            keys.add(("electricity", region))
        keys |= _hall_rows(prices, lines)
    keys |= {("facility", key) for key in FACILITY_FIGURES if catalog.facility[key].source in billed}
    for key, offer in catalog.rental_offers.items():
        if f"{offer.provider} {offer.instance}: {offer.source}" in billed:
            keys.add(("rental_offers", key))
    keys |= {("models", job.model.name) for job in data.jobs if job.model.name in catalog.models}
    found = []
    for table, key in sorted(keys):
        entry = getattr(catalog, table).get(key)
        if entry is not None:
            found.append(CatalogRow(table=table, id=key, row=entry.model_dump(mode="json")))
    return tuple(found)


def _hall_rows(prices: PoolPrices, lines: Iterable[BillLine]) -> set[tuple[str, str]]:
    """What a hall of one's own rests on."""
    if prices.place.hall != "own_build" or not any(line.item.startswith("hall without") for line in lines):
        return set()
    setting = prices.place.setting
    country = setting.catalog.electricity[electricity_region(setting.instance, setting.catalog)].iso3
    keys = {("facility", key) for key in ("facility_life", "facility_maintenance", "facility_staff", "staff_min_24x7")}
    if country in setting.catalog.build_costs:
        return keys | {("build_costs", country)}
    return keys | {("facility", "build_capex" if country == "USA" else "build_capex_global")}


def messages(searched: Searched, jobs: tuple[TrainedJob, ...], counts: dict[str, tuple[int, int]]) -> tuple[str, ...]:
    """What a buyer should know before believing the plan."""
    told = []
    instance, catalog = searched.instance, next(iter(searched.prices.values())).place.setting.catalog
    for job, trained in zip(searched.jobs, jobs, strict=True):
        lead = f"{job.name}: " if len(jobs) > 1 else ""
        if trained.shape.startswith("usual shape"):
            told.append(f"{lead}the model's shape is not known, so a {trained.shape}")
        if trained.tied:
            told.append(
                f"{lead}{trained.tied} more layouts lie within the model's band: which is fastest, a short sweep of "
                "micro-batches on the real software must say"
            )
        if trained.method == "low_communication":
            told.append(f"{lead}equal loss of low-communication training is shown at small sizes only")
    bought = any(searched_pool_is_bought(searched, q) for q in counts)
    if bought and instance.economics.charge == "job":
        told.append("bought servers are charged for the days on which jobs hold them; other work pays the rest")
    elif bought:
        told.append("bought servers are charged for the whole horizon, whatever they do after the jobs")
    if instance.targets.deadline_days is None and any(
        one.deadline_days is None for one in training_workload(instance).all_jobs()
    ):
        told.append("no deadline is stated: the horizon is one")
    used = sorted({job.accelerator for job in jobs})
    told += [
        f"{key}: its figures are of low confidence" for key in used if catalog.accelerators[key].confidence == "low"
    ]
    return tuple(told)


def searched_pool_is_bought(searched: Searched, q: str) -> bool:
    """Whether the pool of this name in the plan is bought."""
    return any(one.id == q and one.pool.is_bought for one in searched.prices.values())
