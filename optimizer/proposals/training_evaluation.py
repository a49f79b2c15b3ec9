"""A proposal for training made into a plan: predicted, priced and held against every limit as the program's own are.

What the proposal states is taken as it is; of what it leaves open (format, method, degrees, replicas) the quickest that
keeps the limits of a layout is taken, or where nothing does, what breaks fewest of them. With the servers given, the
quickest is the cheapest: everything that is paid grows with the days. Halls that are left open cost it least.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from optimizer.catalog import Catalog, load_catalog
from optimizer.errors import InputError, InternalError, Problem
from optimizer.instance.model import Instance
from optimizer.performance.training import Layouts
from optimizer.plan import Plan
from optimizer.proposals.broken import Evaluated, is_broken, tells_a_break
from optimizer.proposals.training_chosen import Wanted, narrowed, outside, wanted_of, with_degrees
from optimizer.proposals.training_halls import in_one_hall
from optimizer.proposals.training_layout import unsuited
from optimizer.proposals.training_servers import Found, servers_of
from optimizer.proposals.training_shape import TrainingProposal
from optimizer.setting import instance_catalog, takes_both_media
from optimizer.solver import Options, Outcome, Reason, solver_name
from optimizer.training.answer import Answered, Searched
from optimizer.training.choices import Choice, Choices, Part
from optimizer.training.evaluate import LAYOUT_LIMITS, Evaluator, Rows
from optimizer.training.extract import make_plan
from optimizer.training.jobs import Job, jobs_of, training_workload
from optimizer.training.layouts import base_layouts
from optimizer.training.options import Options as JobOptions
from optimizer.training.options import fastest_layouts, sound_layouts
from optimizer.training.places import SiteGroup, groups_of, training_accelerator
from optimizer.training.program import Run, TrainingProgram
from optimizer.training.replicas import expert_group_replicas, in_expert_groups, most_replicas, width
from optimizer.verify import verify

#: Slack of whole numbers against the last bit of a division.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class _Given(TrainingProgram):
    """The program's data with the one run of each job that is proposed, whether it is in time or not."""

    start: Mapping[Run, tuple[float, int]] = field(default_factory=dict)

    @property
    def runs(self) -> dict[Run, tuple[float, int]]:
        """(job, choice, period) -> (start day, periods held)."""
        return dict(self.start)


@dataclass(frozen=True, slots=True)
class _Way:
    """One format and method of a job: its layouts with counts of replicas, predicted, and the best of them."""

    evaluator: Evaluator
    rows: Rows
    best: int

    @property
    def rank(self) -> tuple[int, float, float]:
        """Limits broken, days, accelerators: less is better."""
        breaks = sum(not column[self.best] for column in self.rows.passes.values())
        return breaks, float(self.rows.days[self.best]), float(self.rows.accelerators[self.best])


def evaluated_training(
    instance: Instance, proposal: TrainingProposal | Plan, options: Options, *, file: str = "proposal"
) -> Evaluated:
    """Predict, price and check a proposal.

    ``instance`` is resolved. Raises InputError where the proposal contradicts itself, cannot be had, or its layout does
    not suit the model.
    """
    catalog = instance_catalog(instance, load_catalog())
    wanted = wanted_of(instance, proposal, catalog, file)
    ways = [
        _evaluated(instance, own, catalog, wanted, proposal, options, file)
        for own in in_one_hall(narrowed(instance, wanted), wanted)
    ]
    return min(ways, key=lambda way: (len(way.broken), way.plan.training.usd if way.plan.training else math.inf))


def _evaluated(
    instance: Instance,
    own: Instance,
    catalog: Catalog,
    wanted: tuple[Wanted, ...],
    proposal: TrainingProposal | Plan,
    options: Options,
    file: str,
) -> Evaluated:
    """The proposal in the halls of ``own``, the narrowed instance."""
    found = servers_of(own, catalog, wanted, file)
    jobs = jobs_of(own, catalog)
    choices: list[Choice] = []
    for one, job in zip(wanted, jobs, strict=True):
        choices.append(_choice(own, instance, one, job, found, file))
    start = {
        (j, 0, _period(own, one, job, file)): _start(own, one, job, choice)
        for j, (one, job, choice) in enumerate(zip(wanted, jobs, choices, strict=True))
    }
    period_days = training_workload(own).calendar_period_days
    data = _Given(own, jobs, tuple((choice,) for choice in choices), period_days, start=start)
    searched = Searched(
        own,
        jobs,
        found.prices,
        tuple((choice.options,) for choice in choices),
        tuple(Choices((choice,), 1, 1, {}, {}) for choice in choices),
    )
    stopped = Outcome(Reason.INTERRUPT, float("nan"), 0.0, None, 0, 0.0)
    plan = make_plan(searched, Answered(data, stopped, tuple(start)), options, solver_name())
    _checked(plan)
    broken = tuple(row for row in plan.headroom if is_broken(row))
    is_owned = not isinstance(proposal, Plan) and proposal.is_owned
    told = () if isinstance(proposal, Plan) else claims(plan, proposal)
    return Evaluated(plan, broken, tuple(outside(instance, plan, catalog)), is_owned, told)


def claims(plan: Plan, proposal: TrainingProposal) -> tuple[str, ...]:
    """What the proposal says of days and cost beside what comes out."""
    assert plan.training is not None
    told = []
    if proposal.claimed_days is not None:
        last = max(plan.training.jobs, key=lambda job: job.end_day)
        low, high = (last.start_day + days for days in last.days_band)
        where = "inside" if low <= proposal.claimed_days <= high else "outside"
        share = last.run_mfu_fraction * last.days / max(proposal.claimed_days - last.start_day, 1e-9)
        told.append(
            f"it says {proposal.claimed_days:,.4g} days: {where} the band {low:.0f} .. {high:.0f} around "
            f"{last.end_day:.0f} days; as many imply {share:.0%} of the 16-bit peak through the run (6ND)"
        )
    if proposal.claimed_usd is not None:
        off = plan.training.usd / proposal.claimed_usd - 1.0
        told.append(f"it says USD {proposal.claimed_usd:,.0f} in all: the bill is {off:+.1%} off that")
    return tuple(told)


def _refused(file: str, one: Wanted, code: str, key: str, found: str, allowed: str) -> InputError:
    place = f"{one.place}.{key}" if one.place else key
    return InputError((Problem(code, file, field=place, found=found, allowed=allowed),))


def _choice(own: Instance, instance: Instance, one: Wanted, job: Job, found: Found, file: str) -> Choice:
    parts = found.parts[one.job]
    server_type = parts[0].prices.pool.server_type
    group = _group(own, one, parts, file)
    speed = _speed(own, one, parts)
    accelerator = training_accelerator(server_type.accelerator)
    formats = (one.precision,) if one.precision is not None else job.precisions
    several = training_workload(own).multi_site
    methods = ("synchronous",) if group is None else (one.method,) if one.method is not None else several.methods
    able = [name for name in formats if accelerator.peak_tflops(name) > 0.0]
    if not able:
        allowed = f"must be a format that {accelerator.id} has matrix units for"
        raise _refused(file, one, "E-PROPOSAL-401", "precision", ", ".join(formats), allowed)
    bases = base_layouts(_with_own_degrees(own, instance, one), job, accelerator)
    ways = []
    for precision in able:
        for method in methods:
            evaluator = Evaluator(own, job, accelerator, precision, group, method, speed)
            rows = evaluator.rows(_with_replicas(one, job, bases, parts, group, file, accelerator.scale_up_domain))
            breaks = np.sum([~column for column in rows.passes.values()], axis=0)
            best = int(np.lexsort((rows.accelerators, rows.days, breaks))[0])
            ways.append(_Way(evaluator, rows, best))
    way = min(ways, key=lambda each: each.rank)
    rows = way.rows.take(np.array([way.best]))
    if not math.isfinite(float(rows.days[0])):
        found_words = f"{rows.accelerators[0]:,.0f} accelerators"
        raise _refused(file, one, "E-PROPOSAL-401", "count", found_words, "must be fewer: failures leave no time")
    options = JobOptions(
        job=job,
        server_type=server_type,
        precision=way.evaluator.precision,
        group=group,
        method=way.evaluator.method,
        speedup=speed,
        rows=rows,
        servers=np.array([sum(part.in_service for part in parts)]),
        tried=way.rows.size,
        admissible=1,
        broken={},
        alone=dict.fromkeys(LAYOUT_LIMITS, 0),
        nearest=None,
        evaluator=way.evaluator,
        bases=_for_ties(instance, job, way.evaluator),
    )
    return Choice(options, 0, parts, float(rows.days[0]), 0.0)


def _for_ties(instance: Instance, job: Job, evaluator: Evaluator) -> Layouts:
    """Layouts that the instance itself would try: those within the band are told as ties."""
    return fastest_layouts(
        replace(evaluator, group=None, method="synchronous", speedup=1.0),
        base_layouts(instance, job, evaluator.accelerator),
    )


def _with_own_degrees(own: Instance, instance: Instance, one: Wanted) -> Instance:
    """The instance with the layouts of this job alone: those of the planner, narrowed to what the job states."""
    layouts = with_degrees(training_workload(instance).layouts, (one,))
    return own.model_copy(update={"workload": training_workload(own).model_copy(update={"layouts": layouts})})


def _group(own: Instance, one: Wanted, parts: tuple[Part, ...], file: str) -> SiteGroup | None:
    if len(parts) < 2:
        return None
    sites = {part.prices.place.name for part in parts}
    for group in groups_of(own):
        if set(group.sites) == sites:
            return group
    raise _refused(file, one, "E-PROPOSAL-503", "parts", ", ".join(sorted(sites)), "must be joined by wan_links")


def _speed(own: Instance, one: Wanted, parts: tuple[Part, ...]) -> float:
    """Factor of liquid-cooled servers that could also be cooled by air, as the program takes it."""
    if one.liquid_speedup is not None:
        return one.liquid_speedup
    liquid = all(part.prices.pool.cooling is not None and part.prices.pool.cooling.medium == "liquid" for part in parts)
    optional = takes_both_media(own, parts[0].prices.pool.server_type.accelerator)
    return 1.0 + training_workload(own).liquid_speedup_fraction if liquid and optional else 1.0


def _with_replicas(
    one: Wanted, job: Job, bases: Layouts, parts: tuple[Part, ...], group: SiteGroup | None, file: str, domain: int
) -> Layouts:
    """The layouts with their replicas: those stated, else as many as servers and batch allow; no replica over sites."""
    size = parts[0].prices.pool.server_type.accelerators
    wide = width(bases)
    room, held = np.zeros(bases.size), np.zeros(bases.size)
    everywhere = np.ones(bases.size, dtype=np.bool_)
    for part in parts:
        here = np.floor(part.in_service * size / wide + _ROUNDING)
        grouped = in_expert_groups(here, bases)
        room, held = room + here, held + grouped
        everywhere &= grouped >= 1.0
    least = expert_group_replicas(bases) * (1.0 if group is None else float(len(parts)))
    stated = one.degrees.get("data_parallel")
    batch = most_replicas(job.sequences, bases)
    top = in_expert_groups(batch, bases)
    replicas = np.minimum(held, top) if stated is None else np.full(bases.size, float(stated))
    layouts = replace(bases, data_parallel=np.maximum(replicas, 1.0))
    good = everywhere & (replicas >= least) & (replicas <= held) & sound_layouts(layouts, job)
    if good.any():
        return layouts.take(np.flatnonzero(good))
    key, found, allowed = unsuited(one.degrees, job, bases, room, batch, domain, len(parts))
    raise _refused(file, one, "E-PROPOSAL-401", key, found, allowed)


def _period(own: Instance, one: Wanted, job: Job, file: str) -> int:
    """Period of the calendar in which a job starts; 0 for one alone."""
    workload = training_workload(own)
    day = one.start_day
    if day is not None and day < job.start_day - _ROUNDING:
        raise _refused(file, one, "E-PROPOSAL-402", "start_day", f"{day:g}", f"must be >= {job.start_day:g}")
    if not workload.jobs or len(workload.jobs) == 1:
        return 0
    step = workload.calendar_period_days
    period = math.ceil(job.start_day / step - _ROUNDING) if day is None else round(day / step)
    if day is not None and abs(period * step - day) > 1e-6:
        allowed = f"must be a multiple of {step:g}, the calendar's period"
        raise _refused(file, one, "E-PROPOSAL-402", "start_day", f"{day:g}", allowed)
    return period


def _start(own: Instance, one: Wanted, job: Job, choice: Choice) -> tuple[float, int]:
    """(start day, periods held)."""
    workload = training_workload(own)
    if len(workload.all_jobs()) == 1:
        return (job.start_day if one.start_day is None else one.start_day), 1
    step = workload.calendar_period_days
    return _period(own, one, job, "") * step, math.ceil(choice.days / step - _ROUNDING)


def _checked(plan: Plan) -> None:
    """The checker may find broken limits; it may not find wrong numbers."""
    wrong = [one for one in verify(plan) if not tells_a_break(one)]
    if wrong:
        raise InternalError(
            "a proposal's figures do not stand up to our own check:\n" + "\n".join(str(one) for one in wrong[:20])
        )
