"""What a plan for training leaves of each limit that the instance sets, at the place where least is left."""

import math
from collections.abc import Iterator

from optimizer.headroom import row_of
from optimizer.plan import Bill, Headroom
from optimizer.plan_training import TrainedJob
from optimizer.setting import rack_limit_kw
from optimizer.training.answer import Searched
from optimizer.training.evaluate import bounds_of
from optimizer.training.places import training_accelerator
from optimizer.training.program import Run, TrainingProgram


def headroom_rows(
    searched: Searched,
    data: TrainingProgram,
    runs: tuple[Run, ...],
    counts: dict[str, tuple[int, int]],
    jobs: tuple[TrainedJob, ...],
    bill: Bill,
) -> Iterator[Headroom]:
    """One row a limit: of layouts at the job with least to spare, then of fleets."""
    yield from _of_layouts(searched, data, runs, jobs)
    yield from _of_fleets(data, counts, bill)


def _of_layouts(
    searched: Searched, data: TrainingProgram, runs: tuple[Run, ...], jobs: tuple[TrainedJob, ...]
) -> Iterator[Headroom]:
    """A limit of layouts binds when it alone keeps others out, the deadline when one server less would
    break it or, where the count is free, one replica less."""
    rows: dict[str, list[tuple[float, float, str, bool]]] = {}
    for run, trained in zip(runs, jobs, strict=True):
        choice, job = data.choices[run[0]][run[1]], data.jobs[run[0]]
        row = choice.options.server_type.accelerator
        bounds = bounds_of(data.instance, job, training_accelerator(row))
        alone = {
            name: sum(one.alone.get(name, 0) for one in searched.options[run[0]] if one.server_type.accelerator is row)
            for name in choice.options.alone
        }
        servers = sum(part.in_service for part in choice.parts)
        replicas = trained.layout.data_parallel
        free = job.counts is None and trained.end_day + trained.days / max(replicas - 1, 1) > job.deadline_day
        late = (
            free
            or servers <= 1
            or trained.end_day - trained.start_day + trained.days / max(servers - 1, 1)
            > (job.deadline_day - trained.start_day)
        )
        figures = {
            "training_vram_gib": (bounds.memory_gib, trained.memory_gib),
            "training_vram_cap_gib": (bounds.memory_cap_gib, trained.memory_gib),
            "training_nvlink": (bounds.scale_up_fraction, trained.scale_up_fraction),
            "training_nvlink_cap_gb_s": (bounds.scale_up_cap_gb_s, trained.scale_up_gb_s),
            "scale_out_fraction": (bounds.scale_out_fraction, trained.scale_out_fraction),
            "mfu_fraction": (bounds.mfu_fraction, trained.mfu_fraction),
            "accelerator_count": (bounds.accelerators, float(trained.accelerators_used)),
            "deadline_days": (job.deadline_day, trained.end_day),
        }
        for name, (needed, reached) in figures.items():
            if math.isfinite(needed) and needed > 0.0:
                binds = late if name == "deadline_days" else alone.get(name, 0) > 0
                rows.setdefault(name, []).append((needed, reached, trained.name, binds))
    for name, found in rows.items():
        sign = -1.0 if name == "mfu_fraction" else 1.0
        needed, reached, where, _ = min(found, key=lambda one: sign * (one[0] - one[1]) / one[0])
        yield row_of(name, needed, reached, binding=any(one[3] for one in found), where=where if len(jobs) > 1 else "")


def _of_fleets(data: TrainingProgram, counts: dict[str, tuple[int, int]], bill: Bill) -> Iterator[Headroom]:
    """Caps of sites, supply, budgets and spares. A cap binds when one more server in use would break it."""
    instance = data.instance
    bought = {q: sum(count) for q, count in counts.items() if data.pools[q].pool.is_bought}
    places = {data.pools[q].place.name: data.pools[q].place for q in bought}
    several = bool(instance.sites)
    for name, place in places.items():
        here = {q: total for q, total in bought.items() if data.pools[q].place.name == name}
        where = name if several else ""
        if place.site.power_kw is not None:
            each = {q: float(data.pools[q].power_kw(1)) for q in here}
            reached = math.fsum(each[q] * total for q, total in here.items())
            limit_kw = place.site.power_kw
            yield row_of("power_kw", limit_kw, reached, binding=reached + min(each.values()) > limit_kw, where=where)
        if place.site.racks is not None:
            racks = sum(-(-total // data.pools[q].pool.per_rack) for q, total in here.items())
            yield row_of("racks", float(place.site.racks), float(racks), binding=racks >= place.site.racks, where=where)
        for q, total in here.items():
            pool = data.pools[q].pool
            assert pool.cooling is not None
            setting_instance = place.setting.instance
            limit_kw = rack_limit_kw(setting_instance, pool.server_type.accelerator, pool.cooling)
            held = min(pool.per_rack, total) * pool.server_kw
            yield row_of("rack_kw", limit_kw, held, binding=held + pool.server_kw > limit_kw, where=q)
    economics = instance.economics
    servers = sum(sum(count) for count in counts.values())
    if economics.budget_capex_usd is not None:
        yield _money("budget_capex_usd", economics.budget_capex_usd, bill.capital_usd, servers)
    if economics.budget_usd is not None:
        yield _money("budget_usd", economics.budget_usd, bill.usd_over_horizon, servers)
    used: dict[str, list[tuple[str, int]]] = {}
    for q, count in counts.items():
        row = data.pools[q].pool.server_type
        used.setdefault(row.accelerator.id, []).append((q, sum(count) * row.accelerators))
    for key, most in sorted(instance.choices.supply.items()):
        if key in used:
            reached = sum(total for _, total in used[key])
            size = min(data.pools[q].pool.server_type.accelerators for q, _ in used[key])
            yield row_of("supply", float(most), float(reached), binding=reached + size > most, where=key)
    if instance.choices.max_accelerator_types is not None:
        types = instance.choices.max_accelerator_types
        yield row_of("accelerator_types", float(types), float(len(used)), binding=len(used) >= types)
    for q in bought:
        service, spare = counts[q]
        needed = int(data.pools[q].spares(service))
        if needed:
            yield row_of("spare_servers", float(needed), float(spare), binding=spare <= needed, where=q)


def _money(name: str, most: float, reached: float, servers: int) -> Headroom:
    """A budget binds when one more server, at the mean cost of those in use, would break it."""
    return row_of(name, most, reached, binding=reached * (1.0 + 1.0 / max(servers, 1)) > most)
