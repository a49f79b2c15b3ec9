"""What a proposal for training, or a plan, chooses: servers by site, format, method and degrees of each job."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from optimizer.catalog import Catalog
from optimizer.errors import InputError, Problem
from optimizer.instance.model import Instance
from optimizer.instance.training import TrainingJob, TrainingLayouts, TrainingWorkload
from optimizer.plan import Plan
from optimizer.proposals.chosen import AIR, LIQUID
from optimizer.proposals.training_shape import ProposedJob, TrainingProposal

#: Degrees that a proposal may state -> field of ``workload.layouts`` that lists those that are searched.
DEGREES: Final[Mapping[str, str]] = {
    "tensor_parallel": "tensor_parallel",
    "pipeline_parallel": "pipeline_parallel",
    "virtual_stages": "virtual_stages",
    "context_parallel": "context_parallel",
    "expert_parallel": "expert_parallel",
    "micro_batch": "micro_batch",
    "recompute": "recompute",
    "zero_stage": "zero_stages",
}


@dataclass(frozen=True, slots=True)
class Stand:
    """Servers of a job at one place. ``site`` is None for the only site and for what is rented."""

    site: str | None
    sourcing: str
    cooling: str | None
    count: int | None
    servers: int | None
    spare: int | None
    pool: str | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A job of a proposal. None: the tool chooses. ``degrees`` holds what is stated, ``data_parallel`` among it."""

    place: str
    job: str
    accelerator: str
    stands: tuple[Stand, ...]
    precision: str | None
    method: str | None
    start_day: float | None
    degrees: Mapping[str, int | str]
    liquid_speedup: float | None = None


def wanted_of(instance: Instance, proposal: TrainingProposal | Plan, catalog: Catalog, file: str) -> tuple[Wanted, ...]:
    """The jobs of a proposal in the order of the instance. Raises InputError where they are not its jobs."""
    workload = instance.workload
    assert isinstance(workload, TrainingWorkload)
    names = [one.name for one in workload.all_jobs()]
    if isinstance(proposal, Plan):
        found = list(_of_plan(proposal, names))
    else:
        several = len(proposal.jobs) > 1
        found = [
            _of_job(one, f"jobs[{place}]" if several else "", names, catalog) for place, one in enumerate(proposal.jobs)
        ]
    if sorted(one.job for one in found) != sorted(names):
        told = ", ".join(one.job for one in found) or "no job"
        problem = Problem("E-PROPOSAL-505", file, field="jobs", found=told, allowed=f"must be {', '.join(names)}")
        raise InputError((problem,))
    return tuple(sorted(found, key=lambda one: names.index(one.job)))


def _of_job(one: ProposedJob, place: str, names: list[str], catalog: Catalog) -> Wanted:
    liquid = catalog.accelerators[one.accelerator].liquid_cooling == "required"
    usual = LIQUID if liquid else AIR
    if one.parts:
        stands = tuple(
            Stand(part.site, "buy", part.cooling or usual, None, part.servers, part.spare_servers) for part in one.parts
        )
    else:
        cooling = (one.cooling or usual) if one.sourcing == "buy" else None
        stands = (Stand(one.site, one.sourcing, cooling, one.count, one.servers, one.spare_servers),)
    degrees = {name: getattr(one, name) for name in (*DEGREES, "data_parallel") if getattr(one, name) is not None}
    return Wanted(
        place, one.job or names[0], one.accelerator, stands, one.precision, one.method, one.start_day, degrees
    )


def _of_plan(plan: Plan, names: list[str]) -> Iterator[Wanted]:
    assert plan.training is not None
    groups = {group.pool: group for group in plan.servers}
    alone = len(plan.training.jobs) == len(names) == 1
    named = bool(plan.instance.sites)
    for place, job in enumerate(plan.training.jobs):
        stands = tuple(
            Stand(
                part.site if named and groups[part.pool].sourcing == "buy" else None,
                groups[part.pool].sourcing,
                groups[part.pool].cooling,
                None,
                part.in_service,
                part.spare,
                part.pool,
            )
            for part in job.parts
        )
        yield Wanted(
            place=f"training.jobs[{place}]",
            job=names[0] if alone else job.name,
            accelerator=job.accelerator,
            stands=stands,
            precision=job.precision,
            method=None if job.method == "one_site" else job.method,
            start_day=job.start_day,
            degrees={name: getattr(job.layout, name) for name in (*DEGREES, "data_parallel")},
            liquid_speedup=job.liquid_speedup,
        )


def with_degrees(layouts: TrainingLayouts, wanted: Iterable[Wanted]) -> TrainingLayouts:
    """The lists of layouts narrowed to the degrees that jobs state; a list of which some job states none stays."""
    jobs = tuple(wanted)
    update: dict[str, Any] = {}
    for name, field in DEGREES.items():
        if all(name in one.degrees for one in jobs):
            update[field] = tuple(sorted({one.degrees[name] for one in jobs}, key=str))
    return layouts.model_copy(update=update)


def narrowed(instance: Instance, wanted: tuple[Wanted, ...]) -> Instance:
    """The instance whose choices are those of the proposal and no others; every limit stays."""
    workload = instance.workload
    assert isinstance(workload, TrainingWorkload)
    stands = [stand for one in wanted for stand in one.stands]
    cooling = sorted({one.cooling for one in stands if one.cooling is not None})
    choices = instance.choices.model_copy(
        update={
            "accelerators": tuple(sorted({one.accelerator for one in wanted})),
            "sourcing": tuple(sorted({one.sourcing for one in stands})),
            **({"cooling": tuple(cooling)} if cooling else {}),
        }
    )
    by_name = {one.name: one for one in workload.all_jobs()}
    formats = {
        one.job: (one.precision,) if one.precision is not None else by_name[one.job].precisions for one in wanted
    }
    methods = tuple(dict.fromkeys(one.method for one in wanted if one.method is not None))
    jobs = tuple(
        one.model_copy(update={"precisions": formats[one.name], "accelerator_counts": None}) for one in workload.jobs
    )
    update: dict[str, Any] = {
        "layouts": with_degrees(workload.layouts, wanted),
        "accelerator_counts": None,
        "jobs": jobs,
        "precisions": tuple(dict.fromkeys(name for names in formats.values() for name in names or ())),
    }
    if methods:
        update["multi_site"] = workload.multi_site.model_copy(update={"methods": methods})
    return instance.model_copy(update={"choices": choices, "workload": workload.model_copy(update=update)})


def outside(instance: Instance, plan: Plan, catalog: Catalog) -> Iterator[tuple[str, str]]:
    """(field, value) of what a proposal's plan uses and the instance's own choices do not hold."""
    seen: dict[tuple[str, str], None] = {}
    for field, value, allowed in _used(instance, plan, catalog):
        if not allowed:
            seen[field, str(value)] = None
    yield from seen


def _used(instance: Instance, plan: Plan, catalog: Catalog) -> Iterator[tuple[str, object, bool]]:
    choices, workload = instance.choices, instance.workload
    assert isinstance(workload, TrainingWorkload)
    assert plan.training is not None
    if choices.accelerators is None:
        accelerators = {key for key, row in catalog.accelerators.items() if row.availability == "current"}
    else:
        accelerators = {catalog.resolve_accelerator(one) for one in choices.accelerators}
    if choices.cooling is None:
        cooling = {key for key, row in catalog.cooling.items() if row.offered_by_default}
    else:
        cooling = set(choices.cooling)
    for group in plan.servers:
        yield "choices.accelerators", group.accelerator, group.accelerator in accelerators
        yield "choices.sourcing", group.sourcing, group.sourcing in choices.sourcing
        yield "choices.cooling", group.cooling, group.cooling is None or group.cooling in cooling
    given: dict[str, TrainingJob] = {one.name: one for one in workload.all_jobs()}
    sizes = {group.server_type: group.accelerators_per_server for group in plan.servers}
    for job in plan.training.jobs:
        own = given[job.name]
        yield "workload.precisions", job.precision, job.precision in (own.precisions or ())
        held = job.method == "one_site" or job.method in workload.multi_site.methods
        yield "workload.multi_site.methods", job.method, held
        servers, size = sum(part.in_service for part in job.parts), sizes[job.server_type]
        counts = own.accelerator_counts
        fits = counts is None or servers in {-(-count // size) for count in counts}
        yield "workload.accelerator_counts", servers * size, fits
        for name, field in DEGREES.items():
            allowed, degree = getattr(workload.layouts, field), getattr(job.layout, name)
            usual = degree == 1 and name not in ("recompute", "zero_stage")
            yield f"workload.layouts.{field}", degree, allowed is None or usual or degree in allowed
