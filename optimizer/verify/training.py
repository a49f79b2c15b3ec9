"""The checker of plans for training: it believes none of a plan's figures and computes each again from its choice."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from optimizer.instance.model import Instance
from optimizer.instance.site import NamedSite, Site
from optimizer.instance.training import TrainingWorkload
from optimizer.plan import Plan
from optimizer.plan_training import SiteUse, TrainedJob, TrainingPlan
from optimizer.verify.climate import captured_fraction, pue, weather
from optimizer.verify.facts import ORDINARY_AIR, Facts, gather, group_facts, rent_quote, server_quote
from optimizer.verify.finding import SOLVED_RELATIVE, Finding, Ledger
from optimizer.verify.headroom import Reach, check_limits
from optimizer.verify.lines import Line, recovery_factor
from optimizer.verify.money import check_lines, check_totals
from optimizer.verify.orders import network_order
from optimizer.verify.origin import check_origin
from optimizer.verify.spares import needed_spares
from optimizer.verify.training_bill import held, training_lines
from optimizer.verify.training_layout import check_layout, whole_share
from optimizer.verify.training_prediction import OwnJob, check_prediction, own_job

_RENTED: Final = "rented"
_ONE_SITE: Final = "site"


def check_training(plan: Plan) -> tuple[Finding, ...]:
    """Every contradiction of a plan for training."""
    ledger = Ledger()
    instance, workload, training = plan.instance, plan.instance.workload, plan.training
    if training is None or not isinstance(workload, TrainingWorkload):
        ledger.add("V-COUNT", "training", "nothing", "jobs", "a plan for training says how it trains")
        return tuple(ledger.findings)
    try:
        facts = facts_by_site(instance, {one.site: one.facility for one in training.sites})
        any_facts = next(iter(facts.values()))
        own = {one.name: own_job(instance, workload, one, any_facts.catalog) for one in workload.all_jobs()}
    except KeyError as error:
        ledger.add("V-CATALOG", "instance", error, "a resolved instance", "the instance names what no row has")
        return tuple(ledger.findings)
    _check_structure(ledger, plan, training, facts, own)
    # Spares of a proposal may be other than asked for: all else is checked with those it has.
    if any(one.code != "V-SPARE" for one in ledger.findings):
        return tuple(ledger.findings)
    for place, job in enumerate(training.jobs):
        check_prediction(ledger, f"training.jobs[{place}]", instance, workload, own[job.name], job, any_facts.catalog)
    _check_counts(ledger, plan, training, facts)
    delay = {name: one.given.delay_usd_per_day or 0.0 for name, one in own.items()}
    lines = training_lines(plan, training, facts, delay)
    check_lines(ledger, plan, lines)
    annuity = recovery_factor(instance.economics.discount_rate, instance.economics.horizon_years)
    check_totals(ledger, any_facts, plan, lines, sum(job.tokens for job in training.jobs) * annuity)
    _check_money(ledger, plan, training, lines, annuity)
    check_limits(ledger, plan, list(_reaches(plan, training, facts, own, lines)))
    check_origin(ledger, any_facts, plan)
    return tuple(ledger.findings)


def facts_by_site(instance: Instance, halls: Mapping[str, str | None]) -> dict[str, Facts]:
    """What is known at each place, bought servers in the hall that the plan says.

    Rented servers take prices only, which are the same everywhere.
    """
    found: dict[str, Facts] = {}
    for site in instance.sites or (instance.site,):
        name = site.name if isinstance(site, NamedSite) else _ONE_SITE
        hall = site.facility if site.facility != "cheaper" else halls.get(name) or "colocation"
        plain = Site(**{key: getattr(site, key) for key in Site.model_fields} | {"facility": hall})
        found[name] = gather(instance.model_copy(update={"site": plain}))
    return {**found, _RENTED: next(iter(found.values()))}


def _check_structure(
    ledger: Ledger, plan: Plan, training: TrainingPlan, facts: Mapping[str, Facts], own: Mapping[str, OwnJob]
) -> None:
    instance = plan.instance
    any_facts = next(iter(facts.values()))
    names = [job.name for job in training.jobs]
    ledger.same("V-COUNT", "training.jobs", sorted(names), sorted(own), "each job of the instance runs once")
    ledger.same("V-COUNT", "name", plan.name, instance.name, "the plan carries the name of its instance")
    ledger.same(
        "V-COUNT", "training.charge", training.charge, instance.economics.charge, "what servers are charged for"
    )
    groups = {group.pool: group for group in plan.servers}
    ledger.same("V-COUNT", "servers", len(groups), len(plan.servers), "each pool once")
    for place, group in enumerate(plan.servers):
        path = f"servers[{place}]"
        known = group.accelerator in any_facts.accelerators and group.accelerator in any_facts.catalog.accelerators
        if not ledger.check(known, "V-OFFER", f"{path}.accelerator", group.accelerator, "offered", "not offered"):
            continue
        row = any_facts.catalog.accelerators[group.accelerator]
        whole, size = row.accelerators_per_server, group.accelerators_per_server
        ledger.same("V-COUNT", f"{path}.accelerators_per_server", size, whole, "jobs run on whole servers")
        ledger.same("V-COUNT", f"{path}.server_type", group.server_type, f"{row.id} x{whole}", "named by what it holds")
        ways = instance.choices.sourcing
        ledger.check(group.sourcing in ways, "V-OFFER", f"{path}.sourcing", group.sourcing, ways, "not allowed")
        if group.sourcing == "buy":
            allowed = group.cooling is not None and group.cooling in any_facts.cooling
            if ledger.check(allowed, "V-COOLING", f"{path}.cooling", group.cooling, "offered", "not offered"):
                medium = any_facts.catalog.cooling[group.cooling or ""].medium
                converted = instance.choices.liquid_retrofit
                refused = {"required": "air", "no": None if converted else "liquid"}.get(row.liquid_cooling)
                ledger.check(
                    medium != refused, "V-COOLING", f"{path}.cooling", medium, row.liquid_cooling, "impossible"
                )
            sold = server_quote(any_facts, row.id) is not None
            ledger.check(sold, "V-PRICE", f"{path}.sourcing", "buy", "a server price", "nobody sells this server")
        else:
            ledger.same("V-COOLING", f"{path}.cooling", group.cooling, None, "rented servers are cooled by their owner")
            let = rent_quote(any_facts, group) is not None
            ledger.check(let, "V-PRICE", f"{path}.sourcing", group.sourcing, "a rental price", "nobody rents it out so")
    for place, job in enumerate(training.jobs):
        _check_job(ledger, f"training.jobs[{place}]", plan, job, facts, own.get(job.name))


def _check_job(
    ledger: Ledger, path: str, plan: Plan, job: TrainedJob, facts: Mapping[str, Facts], own: OwnJob | None
) -> None:
    groups = {group.pool: group for group in plan.servers}
    workload = plan.instance.workload
    if own is None or not isinstance(workload, TrainingWorkload):
        return
    ledger.check(
        job.precision in (own.given.precisions or ()),
        "V-OFFER",
        f"{path}.precision",
        job.precision,
        own.given.precisions,
        "this format is not allowed",
    )
    lay = job.layout
    used = lay.tensor_parallel * lay.pipeline_parallel * lay.context_parallel * lay.data_parallel
    ledger.same("V-COUNT", f"{path}.accelerators_used", job.accelerators_used, used, "product of the degrees")
    check_layout(ledger, f"{path}.layout", lay, workload.layouts, own)
    share = whole_share(lay)
    in_service = held_servers = held_whole = 0
    for number, part in enumerate(job.parts):
        here = f"{path}.parts[{number}]"
        group = groups.get(part.pool)
        if not ledger.check(group is not None, "V-COUNT", f"{here}.pool", part.pool, sorted(groups), "no such pool"):
            continue
        assert group is not None
        known = part.site in facts and (part.site == _RENTED) == (group.sourcing != "buy")
        ledger.check(known, "V-OFFER", f"{here}.site", part.site, sorted(facts), "no such site for this pool")
        ledger.same("V-COUNT", f"{here}.pool", job.server_type, group.server_type, "its pool has another server type")
        ledger.same("V-COUNT", f"{here}.pool", job.accelerator, group.accelerator, "its pool has another accelerator")
        ledger.check(part.in_service >= 1, "V-COUNT", f"{here}.in_service", part.in_service, ">= 1", "nothing there")
        targets = plan.instance.targets
        needed = needed_spares(targets, group.accelerators_per_server, part.in_service)
        needed = needed if group.sourcing == "buy" else 0
        ledger.same("V-SPARE", f"{here}.spare", part.spare, needed, "spares that the targets ask for")
        liquid = group.cooling is not None and (
            next(iter(facts.values())).catalog.cooling[group.cooling].medium == "liquid"
        )
        wanted = 1.0 + workload.liquid_speedup_fraction
        fine = job.liquid_speedup == 1.0 or (liquid and job.liquid_speedup == wanted)
        ledger.check(fine, "V-PREDICT", f"{path}.liquid_speedup", job.liquid_speedup, wanted, "liquid servers only")
        in_service += part.in_service * group.accelerators_per_server
        held_servers += (part.in_service + part.spare) * group.accelerators_per_server
        held_whole += part.in_service * group.accelerators_per_server // share * share
    ledger.same("V-COUNT", f"{path}.accelerators_held", job.accelerators_held, held_servers, "servers and spares")
    ledger.check(
        used <= in_service, "V-PACK", f"{path}.accelerators_used", used, f"<= {in_service}", "servers hold fewer"
    )
    words = "sites hold fewer in whole replicas and expert-parallel groups"
    ledger.check(used <= held_whole, "V-PACK", f"{path}.accelerators_used", used, f"<= {held_whole}", words)
    if own.given.accelerator_counts is not None:
        counts = {
            -(-count // (in_service // max(sum(p.in_service for p in job.parts), 1)))
            for count in own.given.accelerator_counts
        }
        servers = sum(part.in_service for part in job.parts)
        ledger.check(
            servers in counts, "V-OFFER", f"{path}.parts", servers, sorted(counts), "this count is not allowed"
        )
    ledger.number(
        "V-COUNT", f"{path}.accelerator_hours", job.accelerator_hours, in_service * job.days * 24.0, "in service"
    )
    several = len({part.site for part in job.parts}) > 1
    ledger.check(
        several == (job.method != "one_site"), "V-OFFER", f"{path}.method", job.method, len(job.parts), "sites"
    )
    allowed = job.method == "one_site" or job.method in workload.multi_site.methods
    ledger.check(allowed, "V-OFFER", f"{path}.method", job.method, workload.multi_site.methods, "not allowed")
    ledger.check(
        job.start_day >= own.start_day - 1e-9, "V-LIMIT", f"{path}.start_day", job.start_day, own.start_day, "early"
    )


def _held_at_most(plan: Plan, training: TrainingPlan) -> dict[str, tuple[int, int]]:
    """Pool -> (in service, spare) when most is held; jobs of several hold their servers for whole periods."""
    workload = plan.instance.workload
    assert isinstance(workload, TrainingWorkload)
    period = workload.calendar_period_days
    found: dict[str, dict[int, tuple[int, int]]] = defaultdict(dict)
    for job in training.jobs:
        first = round(job.start_day / period) if len(training.jobs) > 1 else 0
        last = first + (math.ceil(job.days / period - 1e-9) if len(training.jobs) > 1 else 1)
        for part in job.parts:
            for when in range(first, last):
                before = found[part.pool].get(when, (0, 0))
                found[part.pool][when] = (before[0] + part.in_service, before[1] + part.spare)
    return {pool: max(times.values(), key=sum) for pool, times in found.items()}


def _check_counts(ledger: Ledger, plan: Plan, training: TrainingPlan, facts: Mapping[str, Facts]) -> None:
    """Servers, racks, plants, power and energy."""
    most = _held_at_most(plan, training)
    home = {part.pool: part.site for job in training.jobs for part in job.parts}
    ledger.same(
        "V-COUNT", "servers", sorted(group.pool for group in plan.servers), sorted(most), "pools that jobs hold"
    )
    heat: dict[tuple[str, str], float] = defaultdict(float)
    kw: dict[str, float] = defaultdict(float)
    for place, group in enumerate(plan.servers):
        path, site = f"servers[{place}]", home[group.pool]
        one = group_facts(facts[site], group)
        ledger.same("V-COUNT", f"{path}.servers", group.servers, sum(most[group.pool]), "what jobs hold at once")
        ledger.same("V-COUNT", f"{path}.servers", group.servers, group.in_service + group.spare, "in service and spare")
        if not one.is_bought:
            continue
        assert one.option is not None
        ledger.same("V-RACK", f"{path}.servers_per_rack", group.servers_per_rack, one.per_rack, "by power and height")
        ledger.check(one.per_rack >= 1, "V-RACK", f"{path}.servers_per_rack", one.per_rack, ">= 1", "no rack holds it")
        racks = -(-group.servers // max(one.per_rack, 1))
        ledger.same("V-RACK", f"{path}.racks", group.racks, racks, "racks that the servers fill")
        ledger.number("V-POWER", f"{path}.server_kw", group.server_kw, one.server_kw, "power of one server")
        ledger.number("V-POWER", f"{path}.idle_kw", group.idle_kw, one.idle_kw, "power of one idle server")
        share = captured_fraction(one.option)
        heat[site, one.option.id] += share * group.servers * one.server_kw
        if share < 1.0:
            heat[site, ORDINARY_AIR] += (1.0 - share) * group.servers * one.server_kw
        kw[site] += group.servers * one.server_kw * one.pue.design
    named = {(f"{site}/{name}" if plan.instance.sites else name): (site, name) for site, name in heat}
    ledger.numbers(
        "V-COOLING",
        "plants",
        {one.option: one.heat_kw for one in plan.plants},
        {key: heat[names] for key, names in named.items() if heat[names] > 0},
        "heat of each plant",
    )
    for place, plant in enumerate(plan.plants):
        site, name = named.get(plant.option, ("", ""))
        if name:
            own = pue(facts[site].catalog.cooling[name], weather(facts[site].instance.site, facts[site].climate))
            ledger.number("V-COOLING", f"plants[{place}].pue_mean", plant.pue_mean, own.mean, "mean PUE")
            ledger.number("V-COOLING", f"plants[{place}].pue_design", plant.pue_design, own.design, "design PUE")
    ledger.number("V-POWER", "power_kw", plan.power_kw, sum(kw.values()), "power at the meter in the hottest hour")
    total = sum(group.servers * group.accelerators_per_server for group in plan.servers)
    ledger.same("V-COUNT", "accelerators", plan.accelerators, total, "accelerators of all servers")
    fabrics = sorted((tier.fabric, tier.accelerators) for tier in plan.network)
    wanted = []
    for group in plan.servers:
        if group.sourcing == "buy":
            count = group.servers * group.accelerators_per_server
            speed = facts[home[group.pool]].catalog.accelerators[group.accelerator].scale_out_gb_s
            wanted.append((network_order(facts[home[group.pool]], speed, count)[0].id, count))
    ledger.same("V-TIER", "network", fabrics, sorted(wanted), "fabric of each pool's size")
    _check_sites(ledger, plan, training, facts, kw)


def _check_hall(ledger: Ledger, plan: Plan, use: SiteUse, path: str) -> None:
    """The hall of a site is one that may be used there; where nothing is bought there is none."""
    instance = plan.instance
    named = {site.name: site.facility for site in instance.sites} or {_ONE_SITE: instance.site.facility}
    if use.site not in named:
        ledger.same("V-OFFER", path, use.facility, None, "rented servers stand in no hall of the site")
        return
    stated = named[use.site]
    allowed = ("colocation", "own_build") if stated == "cheaper" else (stated,)
    # Plans of earlier versions say nothing; they knew no choice.
    known = use.facility in allowed or (use.facility is None and stated != "cheaper")
    ledger.check(known, "V-OFFER", path, use.facility, allowed, "a hall that may be used")


def _check_sites(
    ledger: Ledger, plan: Plan, training: TrainingPlan, facts: Mapping[str, Facts], kw: Mapping[str, float]
) -> None:
    groups = {group.pool: group for group in plan.servers}
    energy: dict[str, float] = defaultdict(float)
    tonnes = water = 0.0
    for job in training.jobs:
        for part in job.parts:
            place = held(facts[part.site], groups[part.pool], part)
            if place.one.is_bought:
                mean_kw = part.in_service * place.busy_kw + part.spare * place.one.idle_kw
                it_mwh = mean_kw * job.days * 24.0 / 1e3
                energy[part.site] += it_mwh * place.one.pue.mean
                tonnes += it_mwh * 1e3 * place.one.pue.mean * facts[part.site].tonnes_per_kwh
                assert place.one.option is not None
                water += it_mwh * place.one.option.water_typical_l_per_kwh
    home = {part.pool: part.site for job in training.jobs for part in job.parts}
    ledger.same(
        "V-COUNT", "training.sites", sorted(one.site for one in training.sites), sorted(set(home.values())), "sites"
    )
    for number, use in enumerate(training.sites):
        path = f"training.sites[{number}]"
        _check_hall(ledger, plan, use, f"{path}.facility")
        here = [group for group in plan.servers if home[group.pool] == use.site]
        ledger.same("V-COUNT", f"{path}.servers", use.servers, sum(one.servers for one in here), "servers there")
        ledger.same("V-RACK", f"{path}.racks", use.racks, sum(one.racks for one in here), "racks there")
        accelerators = sum(one.servers * one.accelerators_per_server for one in here)
        ledger.same("V-COUNT", f"{path}.accelerators", use.accelerators, accelerators, "accelerators there")
        ledger.number("V-POWER", f"{path}.power_kw", use.power_kw, kw.get(use.site, 0.0), "power there")
        ledger.number("V-POWER", f"{path}.energy_mwh", use.energy_mwh, energy.get(use.site, 0.0), "energy there")
    total = sum(energy.values())
    ledger.number("V-POWER", "training.energy_mwh", training.energy_mwh, total, "energy of all jobs")
    years = plan.instance.economics.horizon_years
    for name, found, own in (
        ("carbon_tonnes_per_year", plan.carbon_tonnes_per_year, tonnes / years),
        ("water_m3_per_year", plan.water_m3_per_year, water / years),
    ):
        ledger.number("V-POWER", name, math.nan if found is None else found, own, "of all jobs, mean over the horizon")
    yearly = total * 1e3 / years
    ledger.number("V-POWER", "energy_kwh_per_year", plan.energy_kwh_per_year, yearly, "mean over the horizon")
    last = max(job.end_day for job in training.jobs)
    ledger.number("V-COUNT", "training.days", training.days, last, "day on which the last job is done")


def _check_money(ledger: Ledger, plan: Plan, training: TrainingPlan, lines: list[Line], annuity: float) -> None:
    total = math.fsum(line.usd_per_year for line in lines) / annuity
    ledger.number("V-SUM", "training.usd", training.usd, total, "cost of all jobs", SOLVED_RELATIVE)
    parts = math.fsum(job.usd for job in training.jobs)
    ledger.number("V-SUM", "training.jobs", parts, total, "the jobs' costs make the whole", SOLVED_RELATIVE)
    for place, job in enumerate(training.jobs):
        each = (job.usd - job.delay_usd) / job.accelerator_hours
        ledger.number(
            "V-SUM", f"training.jobs[{place}].usd_per_accelerator_hour", job.usd_per_accelerator_hour, each, ""
        )
    del plan


def _reaches(
    plan: Plan, training: TrainingPlan, facts: Mapping[str, Facts], own: Mapping[str, OwnJob], lines: list[Line]
) -> Iterator[Reach]:
    """Every limit that the instance sets, where it applies."""
    instance, targets = plan.instance, plan.instance.targets
    workload = instance.workload
    assert isinstance(workload, TrainingWorkload)
    catalog = next(iter(facts.values())).catalog
    several = len(training.jobs) > 1
    for job in training.jobs:
        where = job.name if several else ""
        share = targets.vram_fraction if "vram_fraction" in targets.model_fields_set else 1.0
        memory = catalog.accelerators[job.accelerator].memory_gib
        bounds: tuple[tuple[str, float | None, float], ...] = (
            ("training_vram_gib", memory * share, job.memory_gib),
            ("training_vram_cap_gib", targets.vram_gib_per_accelerator, job.memory_gib),
            ("training_nvlink", targets.nvlink_fraction, job.scale_up_fraction),
            ("training_nvlink_cap_gb_s", targets.nvlink_gb_s, job.scale_up_gb_s),
            ("scale_out_fraction", targets.scale_out_fraction, job.scale_out_fraction),
            ("mfu_fraction", targets.mfu_floor_fraction, job.mfu_fraction),
            ("deadline_days", own[job.name].deadline_day, job.end_day),
            ("accelerator_count", workload.most_accelerators, float(job.accelerators_used)),
        )
        for name, needed, reached in bounds:
            if needed is not None:
                yield Reach(name, where, float(needed), reached)
    home = {part.pool: part.site for job in training.jobs for part in job.parts}
    for use in training.sites:
        if use.site == _RENTED:
            continue
        site, where = facts[use.site].instance.site, use.site if instance.sites else ""
        here = [group_facts(facts[use.site], group) for group in plan.servers if home[group.pool] == use.site]
        if site.power_kw is not None:
            yield Reach(
                "power_kw", where, site.power_kw, sum(g.group.servers * g.server_kw * g.pue.design for g in here)
            )
        if site.racks is not None:
            yield Reach(
                "racks", where, float(site.racks), float(sum(-(-g.group.servers // max(g.per_rack, 1)) for g in here))
            )
        for g in here:
            yield Reach("rack_kw", g.group.pool, g.rack_kw, min(max(g.per_rack, 1), g.group.servers) * g.server_kw)
            needed = needed_spares(targets, g.group.accelerators_per_server, g.group.in_service)
            if needed:
                yield Reach("spare_servers", g.group.pool, float(needed), float(g.group.spare))
    used: dict[str, int] = defaultdict(int)
    for group in plan.servers:
        used[group.accelerator] += group.servers * group.accelerators_per_server
    for name, most in instance.choices.supply.items():
        key = name if name in catalog.accelerators else catalog.resolve_accelerator(name)
        if used.get(key):
            yield Reach("supply", key, float(most), float(used[key]))
    if instance.choices.max_accelerator_types is not None:
        yield Reach("accelerator_types", "", float(instance.choices.max_accelerator_types), float(len(used)))
    economics = instance.economics
    if economics.budget_capex_usd is not None:
        yield Reach("budget_capex_usd", "", economics.budget_capex_usd, sum(line.capital_usd for line in lines))
    if economics.budget_usd is not None:
        annuity = recovery_factor(economics.discount_rate, economics.horizon_years)
        yield Reach("budget_usd", "", economics.budget_usd, sum(line.usd_per_year for line in lines) / annuity)
