"""The options of a job: for each type, format and set of sites the layouts that keep every limit, the best of them.

An option is better than another of its kind when it takes no more servers and no more days: everything that is paid
grows with both (``undominated``). Counts of replicas are tried over the whole range that the batch allows
(``optimizer.training.replicas``); nothing that is tried depends on the deadline or on what can be had.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from optimizer.instance.model import Instance
from optimizer.performance.factors import FloatArray
from optimizer.performance.training import Layouts
from optimizer.performance.training.constants import calibration_with
from optimizer.setting import ServerType, takes_both_media
from optimizer.training.evaluate import LAYOUT_LIMITS, Evaluator, Rows, bounds_of, joined
from optimizer.training.jobs import Job, training_workload
from optimizer.training.layouts import base_layouts
from optimizer.training.places import SiteGroup, training_accelerator
from optimizer.training.replicas import (
    breakpoints,
    expert_group_replicas,
    in_expert_groups,
    most_replicas,
    width,
)

#: Counts of accelerators at which the fastest layouts are sought where none is stated: each so many times the last.
_APART: Final = 2.0
#: Layouts of which every count is tried: the fastest ones at each of those counts; all of them where they are few.
_FASTEST, _FEW = 16, 64
#: Layouts of a kind that are compared, and those that need least memory, kept to say why nothing fits.
_OF_A_KIND, _NEAREST = 3, 4


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """Options of one job of one kind (type, format, sites, method), none dominated, by rising servers.

    ``servers`` in service; ``speedup`` above 1 only for liquid-cooled pools. ``tried`` counts rows, ``broken`` and
    ``alone`` rows that break a limit, and rows that break it alone. ``nearest`` is what came nearest where
    nothing is admissible, and ``extremes`` the best value that any row reaches of each limit then.
    """

    job: Job
    server_type: ServerType
    precision: str
    group: SiteGroup | None
    method: str
    speedup: float
    rows: Rows
    servers: NDArray[np.int64]
    tried: int
    admissible: int
    broken: dict[str, int]
    alone: dict[str, int]
    nearest: Rows | None
    evaluator: Evaluator
    bases: Layouts
    extremes: Mapping[str, float] = field(default_factory=dict)


def options_of(
    instance: Instance, job: Job, server_type: ServerType, groups: tuple[SiteGroup, ...]
) -> Iterator[Options]:
    """Options of a job on one type of server, one set for each format, set of sites and method."""
    row = server_type.accelerator
    accelerator = training_accelerator(row)
    workload = training_workload(instance)
    bases = base_layouts(instance, job, accelerator)
    liquid = 1.0 + workload.liquid_speedup_fraction
    speedups = {1.0, liquid} if takes_both_media(instance, row) else {1.0}
    ways = [(None, "synchronous"), *((group, method) for group in groups for method in workload.multi_site.methods)]
    for precision in job.precisions:
        if accelerator.peak_tflops(precision) <= 0.0 or not bases.size:
            continue
        plain = Evaluator(instance, job, accelerator, precision)
        fastest = fastest_layouts(plain, bases)
        for group, method in ways:
            for speedup in sorted(speedups):
                evaluator = replace(plain, group=group, method=method, speedup=speedup)
                yield searched_options(evaluator, server_type, fastest)


def with_replicas(bases: Layouts, rows: NDArray[np.int64], replicas: FloatArray) -> Layouts:
    """Bases by index, each with a count of data-parallel replicas."""
    return replace(bases.take(rows), data_parallel=np.asarray(replicas, dtype=np.float64))


def sound_layouts(layouts: Layouts, job: Job) -> NDArray[np.bool_]:
    """Replicas within the batch, and ranks of a stage in whole expert-parallel groups."""
    ranks = layouts.data_parallel * layouts.tensor_parallel * layouts.context_parallel
    whole: NDArray[np.bool_] = (ranks > 0) & (np.mod(ranks, layouts.expert_parallel) == 0)
    return whole & (layouts.data_parallel <= most_replicas(job.sequences, layouts))


def fastest_layouts(evaluator: Evaluator, bases: Layouts) -> Layouts:
    """Bases of which every count is tried, whatever the deadline."""
    if bases.size <= _FEW:
        return bases
    job = evaluator.job
    top = most_replicas(job.sequences, bases)
    full = np.clip(np.floor(job.sequences / (bases.micro_batch * 4.0 * bases.pipeline_parallel)), 1.0, np.inf)
    full = np.maximum(in_expert_groups(np.minimum(np.maximum(full, _least_replicas(bases, 1.0)), top), bases), 1.0)
    efficient = evaluator.rows(replace(bases, data_parallel=full))
    fits = efficient.passes["training_vram_gib"]
    rate = np.where(fits, job.batch_tokens / efficient.step_s / efficient.accelerators, 0.0)
    # What comes nearest is needed too, to say why nothing passes: the least memory, and the quickest of all.
    kept = np.zeros(bases.size, dtype=np.bool_)
    kept[np.argsort(efficient.memory_gib, kind="stable")[:_NEAREST]] = True
    kept[np.argsort(-rate, kind="stable")[:_FASTEST]] = True
    worth = np.flatnonzero(_best_of_a_kind(bases, rate, efficient.memory_gib))
    some, wide = bases.take(worth), width(bases)[worth]
    counts = job.counts
    if counts is None:
        largest = float((wide * top[worth]).max())
        doublings = np.ceil(np.log(max(largest / 8.0, 1.0)) / np.log(_APART))
        counts = tuple((8.0 * _APART ** np.arange(doublings + 1.0)).astype(int).tolist())
    for count in counts:
        # Wider layouts do not fit the count, and those that would leave half of it idle have a share of their own.
        own = np.flatnonzero((wide <= count) & (2.0 * wide * top[worth] > count))
        if not own.size:
            continue
        replicas = np.clip(np.floor(count / wide[own] + 1e-9), 1.0, top[worth][own])
        replicas = np.maximum(in_expert_groups(replicas, some.take(own)), 1.0)
        rows = evaluator.rows(replace(some.take(own), data_parallel=replicas))
        good = rows.passing("deadline_days") & sound_layouts(rows.layouts, job)
        speed = np.where(good, job.batch_tokens / rows.step_s / rows.accelerators, 0.0)
        order = np.argsort(-speed, kind="stable")[: _FASTEST if job.counts is None else _FEW]
        kept[worth[own[order[speed[order] > 0.0]]]] = True
    return bases.take(kept)


def _least_replicas(bases: Layouts, sites: float) -> FloatArray:
    """A replica for each site, or replicas enough for an expert-parallel group: none spans sites."""
    return expert_group_replicas(bases) * sites


def _best_of_a_kind(bases: Layouts, rate: FloatArray, memory_gib: FloatArray) -> NDArray[np.bool_]:
    """Of layouts that differ in interleaving, recomputation, sharding and micro-batch alone the fastest few, and the
    one that needs least memory: which of them fits and is fastest changes little with the count of replicas."""
    # Degrees are below 2^13, so four of them make one number.
    kind = bases.tensor_parallel
    for degree in (bases.pipeline_parallel, bases.context_parallel, bases.expert_parallel):
        kind = kind * 8192.0 + degree
    kept = np.zeros(bases.size, dtype=np.bool_)
    for key, count in ((-rate, _OF_A_KIND), (memory_gib, 1)):
        order = np.lexsort((key, kind))
        first = np.concatenate(([True], kind[order][1:] != kind[order][:-1]))
        rank = np.arange(order.size) - np.maximum.accumulate(np.where(first, np.arange(order.size), 0))
        kept[order[rank < count]] = True
    return kept


def searched_options(evaluator: Evaluator, server_type: ServerType, bases: Layouts) -> Options:
    job = evaluator.job
    sites = 1.0 if evaluator.group is None else float(len(evaluator.group.sites))
    wide, top = width(bases), most_replicas(job.sequences, bases)
    if job.counts is not None:
        counts = np.array(sorted(set(job.counts)), dtype=np.float64)
        replicas = np.floor(counts[None, :] / wide[:, None] + 1e-9)
        paid = np.broadcast_to(counts[None, :], replicas.shape)
        group = expert_group_replicas(bases)[:, None]
        replicas = np.floor(np.minimum(replicas, top[:, None]) / group + 1e-9) * group
        rows = np.broadcast_to(np.arange(bases.size)[:, None], replicas.shape)
        kept = replicas >= sites * group
        found = evaluated(evaluator, bases, rows[kept], replicas[kept])
        pays = paid[kept][found[1]]
        return _options(evaluator, server_type, bases, found[0], pays)
    return _options(evaluator, server_type, bases, _over_counts(evaluator, server_type, bases), None)


def _over_counts(evaluator: Evaluator, server_type: ServerType, bases: Layouts) -> Rows:
    """Rows of every count of replicas that can matter: both ends of each range of one number of micro-batches, the
    least that fits the memory, and what lies between the ends where it is not worse than what is known."""
    job, size = evaluator.job, float(server_type.accelerators)
    sites = 1.0 if evaluator.group is None else float(len(evaluator.group.sites))
    bases = bases.take(np.flatnonzero(_least_replicas(bases, sites) <= most_replicas(job.sequences, bases)))
    least, top = _least_replicas(bases, sites), in_expert_groups(most_replicas(job.sequences, bases), bases)
    if not bases.size:
        return evaluator.rows(bases)
    fitting = _least_fitting(evaluator, bases, least, top)
    own, first, last = breakpoints(bases, job.sequences, np.where(np.isfinite(fitting), fitting, top), top)
    # So many that failures leave no time: more of them no more.
    runs = evaluator.goodput(width(bases)[own] * first).goodput_fraction > 0.0
    if runs.any():
        own, first, last = own[runs], first[runs], last[runs]
    low, _ = evaluated(evaluator, bases, own, first)
    high, _ = evaluated(evaluator, bases, own, last)
    parts = [low, high]
    if low.size:
        known = joined(parts)
        good = known.passing("deadline_days")
        servers = np.ceil(known.accelerators / size - 1e-9)
        # Between the ends of a range the step without stragglers goes one way, as what is exchanged and what is updated
        # go with 1/replicas: it is no shorter than at the better end. Stragglers and failures grow.
        loss = calibration_with(training_workload(evaluator.instance).calibration_document()).factors.scale_loss

        def slower(accelerators: FloatArray) -> FloatArray:
            return np.asarray(1.0 + loss * np.log(np.maximum(accelerators / 8.0, 1.0)))

        best = np.minimum(low.step_s / slower(low.accelerators), high.step_s / slower(high.accelerators))
        best = best * low.days * low.goodput_fraction / low.step_s
        rows, replicas = _between(own, first, last, expert_group_replicas(bases)[own], low.goodput_fraction > 0.0)
        used = width(bases)[rows[:, 0]] * replicas
        share = np.maximum(evaluator.goodput(used).goodput_fraction, 1e-12)
        bound = best[rows[:, 1]] * slower(used) / share
        worth = bound * (1.0 + 1e-12) < _quickest(servers[good], known.days[good], np.ceil(used / size - 1e-9))
        parts.append(evaluated(evaluator, bases, rows[worth, 0], replicas[worth])[0])
    return joined(parts)


def _between(
    own: NDArray[np.int64], first: FloatArray, last: FloatArray, steps: FloatArray, kept: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], FloatArray]:
    """((layout, range) by row, replicas): every step strictly between the ends of each range that is kept."""
    places = np.flatnonzero(kept & (last - first > steps))
    spans = np.round((last - first) / steps - 1.0)[places].astype(np.int64)
    before = np.repeat(np.cumsum(spans) - spans, spans)
    place = np.repeat(places, spans)
    passed = 1.0 + (np.arange(place.size) - before)
    return np.stack([own[place], place], axis=1), first[place] + steps[place] * passed


def _least_fitting(evaluator: Evaluator, bases: Layouts, least: FloatArray, top: FloatArray) -> FloatArray:
    """Least replicas with which each layout fits its memory: more replicas never need more. Infinite where none do."""

    def fits(replicas: FloatArray) -> NDArray[np.bool_]:
        rows = evaluator.rows(replace(bases, data_parallel=replicas))
        return rows.passes["training_vram_gib"] & rows.passes["training_vram_cap_gib"]

    low, high = least - 1.0, np.where(fits(top), top, np.inf)
    while (open_ := np.isfinite(high) & (high - low > 1.0)).any():
        middle = np.where(open_, np.floor((low + np.where(open_, high, low)) / 2.0), np.maximum(low, 1.0))
        good = fits(middle)
        high = np.where(open_ & good, middle, high)
        low = np.where(open_ & ~good, middle, low)
    return high


def _quickest(servers: FloatArray, days: FloatArray, within: FloatArray) -> FloatArray:
    """Fewest days that any row takes within so many servers, for each of ``within``; infinite where there is none."""
    order = np.argsort(servers, kind="stable")
    best = np.concatenate(([np.inf], np.minimum.accumulate(days[order])))
    return best[np.searchsorted(servers[order], within, side="right")]


def evaluated(
    evaluator: Evaluator, bases: Layouts, rows: NDArray[np.int64], replicas: FloatArray
) -> tuple[Rows, NDArray[np.int64]]:
    layouts = with_replicas(bases, rows, replicas)
    sound = np.flatnonzero(sound_layouts(layouts, evaluator.job))
    return evaluator.rows(layouts.take(sound)), sound


def undominated(servers: NDArray[np.int64], days: FloatArray) -> NDArray[np.int64]:
    """Rows than which no other takes as few servers and as few days, by rising servers; the first of equal ones."""
    order = np.lexsort((days, servers))
    least = np.minimum.accumulate(np.concatenate(([np.inf], days[order][:-1])))
    return order[days[order] < least]


def _options(
    evaluator: Evaluator, server_type: ServerType, bases: Layouts, rows: Rows, paid: FloatArray | None
) -> Options:
    size = server_type.accelerators
    taken = rows.accelerators if paid is None else paid
    servers = np.ceil(taken / size - 1e-9).astype(np.int64)
    good = rows.passing()
    broken = {name: int((~column).sum()) for name, column in rows.passes.items()}
    alone = {name: int((rows.passing(name) & ~rows.passes[name]).sum()) for name in LAYOUT_LIMITS}
    places = np.flatnonzero(good)
    discounted = bool(server_type.discounts)
    # With quantity discounts more servers can cost less, so only equal ones are compared.
    if discounted:
        kept = places
    elif evaluator.group is None:
        kept = places[undominated(servers[places], rows.days[places])]
    else:
        # Over several sites wider replicas, and wider expert groups, split less finely: only equal ones are compared.
        wide = (width(rows.layouts) * expert_group_replicas(rows.layouts))[places]
        each = [places[wide == one] for one in np.unique(wide)]
        parts = [own[undominated(servers[own], rows.days[own])] for own in each]
        kept = np.concatenate([places[:0], *parts])
    nearest, extremes = None, {}
    if rows.size and not places.size:
        nearest = rows.take(np.array([_nearest(evaluator, rows)]))
        extremes = _extremes(rows)
    return Options(
        job=evaluator.job,
        server_type=server_type,
        precision=evaluator.precision,
        group=evaluator.group,
        method=evaluator.method,
        speedup=evaluator.speedup,
        rows=rows.take(kept),
        servers=servers[kept],
        tried=rows.size,
        admissible=int(places.size),
        broken=broken,
        alone=alone,
        nearest=nearest,
        evaluator=evaluator,
        bases=bases,
        extremes=extremes,
    )


def _extremes(rows: Rows) -> dict[str, float]:
    """The best value that any row reaches of each limit, whatever else it breaks."""
    seen = {
        "training_vram_gib": rows.memory_gib,
        "training_vram_cap_gib": rows.memory_gib,
        "training_nvlink": rows.scale_up_fraction,
        "training_nvlink_cap_gb_s": rows.scale_up_gb_s,
        "scale_out_fraction": rows.scale_out_fraction,
        "deadline_days": rows.days,
        "accelerator_count": rows.accelerators,
    }
    return {
        **{name: float(column.min()) for name, column in seen.items()},
        "mfu_fraction": float(rows.mfu_fraction.max()),
    }


def _nearest(evaluator: Evaluator, rows: Rows) -> int:
    """The row that breaks fewest limits, of those the one that misses them by least, then the soonest done."""
    breaks = np.sum([~column for column in rows.passes.values()], axis=0)
    bounds = bounds_of(evaluator.instance, evaluator.job, evaluator.accelerator)
    ratios = {
        "training_vram_gib": rows.memory_gib / bounds.memory_gib,
        "training_vram_cap_gib": rows.memory_gib / bounds.memory_cap_gib,
        "training_nvlink": rows.scale_up_fraction / bounds.scale_up_fraction,
        "training_nvlink_cap_gb_s": rows.scale_up_gb_s / bounds.scale_up_cap_gb_s,
        "scale_out_fraction": rows.scale_out_fraction / bounds.scale_out_fraction,
        "mfu_fraction": bounds.mfu_fraction / rows.mfu_fraction,
        "deadline_days": rows.days / bounds.days,
        "accelerator_count": rows.accelerators / bounds.accelerators,
    }
    missed = np.zeros(rows.size)
    for name, ratio in ratios.items():
        missed += np.where(rows.passes[name], 0.0, ratio - 1.0)
    return int(np.lexsort((rows.days, missed, breaks))[0])
