"""From the runs that the program chose to a plan: jobs, servers, bill, headroom."""

import math
from collections.abc import Callable, Iterator

import numpy as np

from optimizer.climate import site_climate
from optimizer.costs.bill import assumed_fraction, by_component, oldest_price
from optimizer.costs.environment import water_m3_per_kwh
from optimizer.costs.network import network_order
from optimizer.costs.tokens import usd_per_million_tokens_of_year
from optimizer.performance.training import RECOMPUTE, Layouts
from optimizer.plan import Bill, CoolingPlant, NetworkTier, Plan, SearchCount, ServerGroup, StopReason
from optimizer.plan_training import JobPart, SiteUse, TiedLayout, TrainedJob, TrainingLayout, TrainingPlan
from optimizer.solver import Options, Reason
from optimizer.sources import defaulted, provenance
from optimizer.training.answer import TIE, Answered, Searched
from optimizer.training.bill import COMPONENTS, JobLine, fleets, job_lines
from optimizer.training.choices import Choice
from optimizer.training.headroom import headroom_rows
from optimizer.training.jobs import HOURS_PER_DAY, Job
from optimizer.training.options import evaluated
from optimizer.training.origin import catalog_rows, messages
from optimizer.training.prices import PoolPrices
from optimizer.training.program import TrainingProgram
from optimizer.training.replicas import in_expert_groups
from optimizer.units import HOURS_PER_YEAR, SECONDS_PER_HOUR

#: Ties that are shown; their count is always told.
_TIES = 4
_TERA = 1e12


def make_plan(searched: Searched, found: Answered, options: Options, solver: str) -> Plan:
    """The plan of an answer that holds runs. Runners-up are added by the caller."""
    data, runs = found.data, found.runs
    assert runs is not None
    instance, economics = data.instance, data.instance.economics
    lines = job_lines(data, runs)
    bare = [one.line for one in lines]
    yearly = math.fsum(line.usd_per_year for line in bare)
    share = next(iter(data.pools.values())).horizon_share
    chosen = [data.choices[run[0]][run[1]] for run in runs]
    jobs = tuple(
        trained_job(choice, chosen, data.jobs[run[0]], data.runs[run][0], lines, share)
        for run, choice in zip(runs, chosen, strict=True)
    )
    counts = fleets(data, runs)
    bill = Bill(
        lines=tuple(bare),
        usd_per_year_by_component=by_component(bare, COMPONENTS),
        usd_per_year=yearly,
        usd_per_hour=yearly / HOURS_PER_YEAR,
        usd_over_horizon=yearly / share,
        usd_per_million_output_tokens=usd_per_million_tokens_of_year(yearly / share, sum(job.tokens for job in jobs)),
        capital_usd=math.fsum(line.capital_usd for line in bare),
        assumed_fraction=assumed_fraction(bare),
        oldest_price=oldest_price(bare),
    )
    sites = tuple(_site_uses(data, counts, jobs))
    halls = {one.facility for one in sites if one.facility is not None}
    objective = yearly / HOURS_PER_YEAR
    bound = min(max(found.outcome.bound, 0.0), objective)
    gap = max(0.0, 1.0 - bound / objective) if objective else 0.0
    proven = found.outcome.reason is Reason.OPTIMAL and gap <= options.gap + TIE
    energy_mwh = math.fsum(one.energy_mwh for one in sites)
    return Plan(
        name=instance.name,
        outcome=StopReason(
            reason=found.outcome.reason.value,
            holds="proven" if proven else "feasible",
            objective_usd_per_hour=objective,
            bound_usd_per_hour=bound,
            gap=gap,
            requested_gap=options.gap,
            solver=solver,
        ),
        deployments=(),
        servers=tuple(_groups(data, counts)),
        packing=(),
        plants=tuple(_plants(data, counts)),
        network=tuple(_network(data, counts)),
        levels=(),
        accelerators=sum(
            (service + spare) * data.pools[q].pool.server_type.accelerators for q, (service, spare) in counts.items()
        ),
        power_kw=math.fsum(one.power_kw for one in sites),
        energy_kwh_per_year=energy_mwh * 1e3 / economics.horizon_years,
        # Sites may differ, then each says its own.
        facility=halls.pop() if len(halls) == 1 else None,
        # Each job is billed its own posts; a fleet that several share says nothing of them.
        posts=0.0,
        carbon_tonnes_per_year=_over_jobs(data, jobs, _tonnes) / economics.horizon_years,
        water_m3_per_year=_over_jobs(data, jobs, _water_m3) / economics.horizon_years,
        bill=bill,
        headroom=tuple(headroom_rows(searched, data, runs, counts, jobs, bill)),
        runners_up=(),
        search=search_count(searched, sum(len(choices) for choices in data.choices)),
        messages=messages(searched, jobs, counts),
        training=TrainingPlan(
            charge=economics.charge,
            usd=yearly / share,
            days=max(job.end_day for job in jobs),
            energy_mwh=energy_mwh,
            jobs=jobs,
            sites=sites,
        ),
        defaults=defaulted(instance),
        instance=instance,
        catalog_rows=catalog_rows(data, counts, bare),
        provenance=provenance(instance, options, solver),
    )


def search_count(searched: Searched, kept: int) -> SearchCount:
    """How much was searched: layouts with a count of replicas, and choices of servers."""
    killed: dict[str, int] = {}
    for options in searched.options:
        for one in options:
            for name, count in one.broken.items():
                killed[name] = killed.get(name, 0) + count
    for choices in searched.choices:
        for name, count in choices.broken.items():
            killed[name] = killed.get(name, 0) + count
    return SearchCount(
        candidates=sum(one.tried for options in searched.options for one in options)
        + sum(one.considered for one in searched.choices),
        admissible=sum(one.admissible for options in searched.options for one in options)
        + sum(one.admissible for one in searched.choices),
        kept=kept,
        killed_by_limit={name: count for name, count in sorted(killed.items()) if count},
        not_startable={},
    )


def layout_of(layouts: Layouts, row: int) -> TrainingLayout:
    """One row of the columns."""
    lay = layouts
    return TrainingLayout(
        tensor_parallel=int(lay.tensor_parallel[row]),
        pipeline_parallel=int(lay.pipeline_parallel[row]),
        virtual_stages=int(lay.virtual_stages[row]),
        data_parallel=int(lay.data_parallel[row]),
        context_parallel=int(lay.context_parallel[row]),
        expert_parallel=int(lay.expert_parallel[row]),
        zero_stage=int(lay.zero_stage[row]),
        recompute=RECOMPUTE[int(lay.recompute[row])],  # type: ignore[arg-type]  # the names are those of the literal
        micro_batch=int(lay.micro_batch[row]),
    )


def trained_job(
    choice: Choice,
    chosen: list[Choice],
    job: Job,
    start: float,
    lines: list[JobLine],
    share: float,
) -> TrainedJob:
    """One job of the plan."""
    options, row = choice.options, choice.row
    rows = options.rows

    def at(name: str) -> float:
        return float(getattr(rows, name)[row])

    size = options.server_type.accelerators
    in_service = sum(part.in_service for part in choice.parts) * size
    hours = in_service * choice.days * HOURS_PER_DAY
    own = math.fsum(one.line.usd_per_year for one in lines if one.job == job.name)
    usd = own / share + _fleet_share(choice, chosen, lines) / share
    delay = math.fsum(
        one.line.usd_per_year / share for one in lines if one.job == job.name and one.line.component == "delay"
    )
    flop, peak = job.flop_by_convention["6nd"], options.server_type.accelerator.fp16_tflops * _TERA
    seconds = in_service * choice.days * HOURS_PER_DAY * SECONDS_PER_HOUR
    ties, tied = _ties(choice)
    return TrainedJob(
        name=job.name,
        shape=job.shape,
        parameters=job.model.parameters,
        active_parameters=job.model.active_parameters,
        tokens=at("tokens"),
        flop_by_convention=dict(job.flop_by_convention),
        accelerator=options.server_type.accelerator.id,
        server_type=options.server_type.id,
        precision=options.precision,  # type: ignore[arg-type]  # of the instance, where it is a literal
        method="one_site" if options.group is None else options.method,  # type: ignore[arg-type]  # of the instance
        liquid_speedup=options.speedup,
        layout=layout_of(rows.layouts, row),
        accelerators_used=round(at("accelerators")),
        accelerators_held=choice.accelerators,
        parts=tuple(
            JobPart(site=part.prices.place.name, pool=part.prices.id, in_service=part.in_service, spare=part.spare)
            for part in choice.parts
        ),
        start_day=start,
        end_day=start + choice.days,
        days=choice.days,
        days_band=(at("low_days"), at("high_days")),
        step_s=at("step_s"),
        expected_step_s=at("expected_step_s"),
        step_band_s=(at("low_s"), at("high_s")),
        production_factor=at("production_factor"),
        goodput_fraction=at("goodput_fraction"),
        mtbf_h=at("mtbf_s") / SECONDS_PER_HOUR,
        checkpoint_interval_s=at("checkpoint_interval_s"),
        mfu_fraction=at("mfu_fraction"),
        run_mfu_fraction=flop / seconds / peak,
        tflops_per_accelerator=at("tflops"),
        run_tflops_per_accelerator=flop / seconds / _TERA,
        memory_gib=at("memory_gib"),
        scale_up_gb_s=at("scale_up_gb_s"),
        scale_up_fraction=at("scale_up_fraction"),
        scale_out_gb_s=at("scale_out_gb_s"),
        scale_out_fraction=at("scale_out_fraction"),
        wan_gbit_per_s=at("wan_gbit_per_s"),
        accelerator_hours=hours,
        usd=usd,
        usd_per_accelerator_hour=(usd - delay) / hours,
        delay_usd=delay,
        evidence=rows.evidence,
        ties=ties,
        tied=tied,
    )


def _fleet_share(choice: Choice, chosen: list[Choice], lines: list[JobLine]) -> float:
    """Yearly USD of fleets that a job answers for: its share of their server-days."""
    total = 0.0
    for part in choice.parts:
        q = part.prices.id
        fleet = math.fsum(one.line.usd_per_year for one in lines if one.job is None and one.pool == q)
        if fleet:
            days = math.fsum(
                inner.total * other.days for other in chosen for inner in other.parts if inner.prices.id == q
            )
            total += fleet * part.total * choice.days / days
    return total


def _ties(choice: Choice) -> tuple[tuple[TiedLayout, ...], int]:
    """Other layouts on no more servers whose expected step lies within the 80 % band of the chosen one."""
    options, row = choice.options, choice.row
    rows, bases = options.rows, options.bases
    used = float(rows.layouts.tensor_parallel[row] * rows.layouts.pipeline_parallel[row])
    used *= float(rows.layouts.context_parallel[row] * rows.layouts.data_parallel[row])
    width = bases.tensor_parallel * bases.pipeline_parallel * bases.context_parallel
    replicas = np.maximum(in_expert_groups(np.floor(used / width + 1e-9), bases), 1.0)
    found, _ = evaluated(options.evaluator, bases, np.arange(bases.size), replicas)
    near = found.passing("deadline_days") & (found.expected_step_s <= float(rows.high_s[row]))
    near &= found.accelerators <= used + 1e-9
    chosen = layout_of(rows.layouts, row)
    places = [int(one) for one in np.argsort(found.expected_step_s, kind="stable") if near[one]]
    others = [(one, layout_of(found.layouts, one)) for one in places]
    others = [(one, layout) for one, layout in others if layout != chosen]
    shown = tuple(
        TiedLayout(layout=layout, step_s=float(found.expected_step_s[one]), memory_gib=float(found.memory_gib[one]))
        for one, layout in others[:_TIES]
    )
    return shown, len(others)


def _over_jobs(
    data: TrainingProgram, jobs: tuple[TrainedJob, ...], each: Callable[[PoolPrices, int, int, float], float]
) -> float:
    """Sum over every part of every job."""
    return math.fsum(
        each(data.pools[part.pool], part.in_service, part.in_service + part.spare, job.days)
        for job in jobs
        for part in job.parts
        if data.pools[part.pool].pool.is_bought
    )


def _tonnes(prices: PoolPrices, in_service: int, total: int, days: float) -> float:
    return prices.energy_kwh(in_service, total, days) * prices.place.setting.tonnes_per_kwh()


def _water_m3(prices: PoolPrices, in_service: int, total: int, days: float) -> float:
    return prices.it_kwh(in_service, total, days) * water_m3_per_kwh(prices.pool)


def _groups(data: TrainingProgram, counts: dict[str, tuple[int, int]]) -> Iterator[ServerGroup]:
    for q, (service, spare) in counts.items():
        prices = data.pools[q]
        pool = prices.pool
        total = service + spare
        yield ServerGroup(
            pool=q,
            server_type=pool.server_type.id,
            accelerator=pool.server_type.accelerator.id,
            accelerators_per_server=pool.server_type.accelerators,
            provider=pool.provider,
            region=pool.region,
            servers_by_level=(),
            sourcing=pool.sourcing,
            cooling=pool.cooling.id if pool.cooling is not None else None,
            servers=total,
            in_service=service,
            spare=spare,
            racks=-(-total // pool.per_rack) if pool.is_bought else 0,
            servers_per_rack=pool.per_rack,
            server_kw=pool.server_kw,
            idle_kw=prices.idle_kw,
        )


def _plants(data: TrainingProgram, counts: dict[str, tuple[int, int]]) -> Iterator[CoolingPlant]:
    from optimizer.setting import plant_pue

    heat: dict[tuple[str, str], float] = {}
    for q, count in counts.items():
        prices = data.pools[q]
        for plant, kw in prices.heat.items():
            key = (prices.place.name, plant)
            heat[key] = heat.get(key, 0.0) + kw * sum(count)
    for (place, plant), kw in sorted(heat.items()):
        setting = next(one.place.setting for one in data.pools.values() if one.place.name == place)
        mean, design = plant_pue(
            setting.catalog.cooling[plant],
            site_climate(setting.instance.site, setting.catalog),
            setting.instance.site.plant_load_fraction,
        )
        name = f"{place}/{plant}" if data.instance.sites else plant
        yield CoolingPlant(option=name, heat_kw=kw, pue_mean=mean, pue_design=design)


def _network(data: TrainingProgram, counts: dict[str, tuple[int, int]]) -> Iterator[NetworkTier]:
    for q, count in counts.items():
        prices = data.pools[q]
        if prices.pool.is_bought:
            row, accelerators = prices.pool.server_type, sum(count) * prices.pool.server_type.accelerators
            segment, _ = network_order(prices.place.setting, row.accelerator.scale_out_gb_s, accelerators)
            yield NetworkTier(fabric=segment.fabric.id, accelerators=accelerators)


def _site_uses(
    data: TrainingProgram, counts: dict[str, tuple[int, int]], jobs: tuple[TrainedJob, ...]
) -> Iterator[SiteUse]:
    names = dict.fromkeys(data.pools[q].place.name for q in counts)
    for name in names:
        mine = {q: count for q, count in counts.items() if data.pools[q].place.name == name}
        energy = math.fsum(
            data.pools[part.pool].energy_kwh(part.in_service, part.in_service + part.spare, job.days)
            for job in jobs
            for part in job.parts
            if part.pool in mine
        )
        bought = [data.pools[q].place.hall for q in mine if data.pools[q].pool.is_bought]
        yield SiteUse(
            site=name,
            facility=bought[0] if bought else None,
            servers=sum(sum(count) for count in mine.values()),
            accelerators=sum(sum(c) * data.pools[q].pool.server_type.accelerators for q, c in mine.items()),
            racks=sum(
                -(-sum(c) // data.pools[q].pool.per_rack) for q, c in mine.items() if data.pools[q].pool.is_bought
            ),
            power_kw=math.fsum(float(data.pools[q].power_kw(sum(c))) for q, c in mine.items()),
            energy_mwh=energy / 1e3,
        )
