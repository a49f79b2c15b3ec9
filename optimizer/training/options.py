"""The options of a job: for each type, format and set of sites the layouts that keep every limit, the best of them.

An option is better than another of its kind when it takes no more servers and no more days: everything that is paid
grows with both (``undominated``). Counts of replicas are searched to the whole replica near the deadline, where the
cheapest plans lie, and on a grid above it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from optimizer.instance.model import Instance
from optimizer.performance.factors import FloatArray
from optimizer.performance.training import Layouts
from optimizer.setting import ServerType
from optimizer.training.evaluate import LAYOUT_LIMITS, Evaluator, Rows, joined
from optimizer.training.jobs import Job, training_workload
from optimizer.training.layouts import base_layouts
from optimizer.training.places import SiteGroup, training_accelerator

#: Counts of accelerators tried above the least one, as multiples of it: a plan far above the deadline's count is only
#: worth its cost where delay costs.
_GRID: Final = tuple(np.geomspace(0.7, 8.0, 16).tolist())
#: Layouts that are searched over all counts: the fastest ones at each of three counts.
_FASTEST: Final = 64
#: Layouts of a kind that go there, and those that need least memory, kept to say why nothing fits.
_OF_A_KIND, _NEAREST = 3, 4
#: Values tried between a count that is too slow and one that is not, each round.
_BETWEEN, _ROUNDS = 24, 3
#: Layouts that are refined to the whole replica: those within this factor of the least servers.
_NEAR: Final = 1.25


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """Options of one job of one kind (type, format, sites, method), none dominated, by rising servers.

    ``servers`` in service; ``speedup`` above 1 only for liquid-cooled pools. ``tried`` counts rows, ``broken`` and
    ``alone`` rows that break a limit, and rows that break it alone. ``best`` holds what came nearest, kept or not.
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


def options_of(
    instance: Instance, job: Job, server_type: ServerType, groups: tuple[SiteGroup, ...]
) -> Iterator[Options]:
    """Options of a job on one type of server, one set for each format, set of sites and method."""
    row = server_type.accelerator
    accelerator = training_accelerator(row)
    workload = training_workload(instance)
    bases = base_layouts(instance, job, accelerator)
    liquid = 1.0 + workload.liquid_speedup_fraction
    speedups = {1.0, liquid} if row.liquid_cooling == "option" else {1.0}
    ways = [(None, "synchronous"), *((group, method) for group in groups for method in workload.multi_site.methods)]
    for precision in job.precisions:
        if accelerator.peak_tflops(precision) <= 0.0 or not bases.size:
            continue
        plain = Evaluator(instance, job, accelerator, precision)
        fastest, least = _fastest(plain, bases)
        for group, method in ways:
            for speedup in sorted(speedups):
                evaluator = replace(plain, group=group, method=method, speedup=speedup)
                yield _searched(evaluator, server_type, fastest, least)


def _most_replicas(job: Job, layouts: Layouts) -> FloatArray:
    """Every replica has a micro-batch at least."""
    return np.maximum(np.floor(job.sequences / layouts.micro_batch + 1e-9), 1.0)


def _width(layouts: Layouts) -> FloatArray:
    return layouts.tensor_parallel * layouts.pipeline_parallel * layouts.context_parallel


def with_replicas(bases: Layouts, rows: NDArray[np.int64], replicas: FloatArray) -> Layouts:
    """Bases by index, each with a count of data-parallel replicas."""
    return replace(bases.take(rows), data_parallel=np.asarray(replicas, dtype=np.float64))


def _sound(layouts: Layouts, job: Job) -> NDArray[np.bool_]:
    """Replicas within the batch, and experts spread over no more ranks than a stage has."""
    ranks = layouts.data_parallel * layouts.tensor_parallel * layouts.context_parallel
    return (layouts.data_parallel <= _most_replicas(job, layouts)) & (layouts.expert_parallel <= ranks)


def most_accelerators(instance: Instance, job: Job, server_type: ServerType) -> float:
    """Cap of the accelerators that a job may use of a type, spares aside."""
    workload = training_workload(instance)
    supply = instance.choices.supply.get(server_type.accelerator.id)
    caps = [float(cap) for cap in (workload.most_accelerators, supply) if cap is not None]
    if job.counts is not None:
        caps.append(float(max(job.counts)))
    return min(caps, default=np.inf)


def _fastest(evaluator: Evaluator, bases: Layouts) -> tuple[Layouts, float]:
    """Bases worth searching over all counts, and the accelerators that the deadline asks for at best efficiency."""
    job = evaluator.job
    full = np.clip(np.floor(job.sequences / (bases.micro_batch * 4.0 * bases.pipeline_parallel)), 1.0, np.inf)
    full = np.minimum(
        np.maximum(full, np.ceil(bases.expert_parallel / (bases.tensor_parallel * bases.context_parallel))),
        _most_replicas(job, bases),
    )
    efficient = evaluator.rows(replace(bases, data_parallel=full))
    fits = efficient.passes["training_vram_gib"]
    rate = np.where(fits, job.batch_tokens / efficient.step_s / efficient.accelerators, 0.0)
    # Accelerator-days of the most efficient layout; where none fits, of the most efficient of all, to say why.
    work = efficient.accelerators * efficient.days
    least = float((work[fits] if fits.any() else work).min()) / job.window_days
    if bases.size <= _FASTEST:
        return bases, least
    # What comes nearest is needed too, to say why nothing passes: the least memory, and the quickest of all.
    kept = np.zeros(bases.size, dtype=np.bool_)
    kept[np.argsort(efficient.memory_gib, kind="stable")[:_NEAREST]] = True
    kept[np.argsort(-rate, kind="stable")[: _FASTEST // 4]] = True
    worth = np.flatnonzero(_best_of_a_kind(bases, rate, efficient.memory_gib))
    some, wide = bases.take(worth), _width(bases)[worth]
    counts = job.counts[:3] if job.counts is not None else (least, 2.0 * least, 6.0 * least)
    for count in counts:
        replicas = np.clip(np.floor(count / wide + 1e-9), 1.0, _most_replicas(job, some))
        rows = evaluator.rows(replace(some, data_parallel=replicas))
        good = rows.passing("deadline_days") & _sound(rows.layouts, job)
        speed = np.where(good, job.batch_tokens / rows.step_s / rows.accelerators, 0.0)
        order = np.argsort(-speed, kind="stable")[:_FASTEST]
        kept[worth[order[speed[order] > 0.0]]] = True
    return bases.take(kept), least


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


def _searched(evaluator: Evaluator, server_type: ServerType, bases: Layouts, least: float) -> Options:
    job, instance = evaluator.job, evaluator.instance
    sites = 1.0 if evaluator.group is None else float(len(evaluator.group.sites))
    most = most_accelerators(instance, job, server_type)
    width, top = _width(bases), _most_replicas(job, bases)
    index = np.arange(bases.size)
    if job.counts is not None:
        counts = np.array(sorted(set(job.counts)), dtype=np.float64)
        replicas = np.floor(counts[None, :] / width[:, None] + 1e-9)
        paid = np.broadcast_to(counts[None, :], replicas.shape)
        replicas = np.minimum(replicas, top[:, None])
        rows = np.broadcast_to(index[:, None], replicas.shape)
        kept = replicas >= sites
        found = evaluated(evaluator, bases, rows[kept], replicas[kept])
        pays = paid[kept][found[1]]
        return _options(evaluator, server_type, bases, found[0], pays)
    grid = np.array(_GRID) * max(least, 1.0)
    replicas = np.floor(grid[None, :] / width[:, None])
    replicas = np.clip(replicas, sites, np.maximum(np.minimum(top, np.floor(most / width)), 1.0)[:, None])
    rows = np.broadcast_to(index[:, None], replicas.shape)
    pairs = np.unique(np.stack([rows.ravel(), replicas.ravel()], axis=1), axis=0)
    parts = [evaluated(evaluator, bases, pairs[:, 0].astype(np.int64), pairs[:, 1])[0]]
    parts += _refined(evaluator, server_type, bases, parts[0], most)
    return _options(evaluator, server_type, bases, joined(parts), None)


def evaluated(
    evaluator: Evaluator, bases: Layouts, rows: NDArray[np.int64], replicas: FloatArray
) -> tuple[Rows, NDArray[np.int64]]:
    layouts = with_replicas(bases, rows, replicas)
    sound = np.flatnonzero(_sound(layouts, evaluator.job))
    return evaluator.rows(layouts.take(sound)), sound


def _base_keys(layouts: Layouts) -> NDArray[np.float64]:
    return np.stack([getattr(layouts, one.name) for one in fields(Layouts) if one.name != "data_parallel"], axis=1)


def _refined(evaluator: Evaluator, server_type: ServerType, bases: Layouts, coarse: Rows, most: float) -> list[Rows]:
    """The least replicas that meet the deadline, to the whole replica, of layouts that come near the least servers."""
    found: list[Rows] = []
    width = _width(bases)
    keys = {tuple(key): place for place, key in enumerate(_base_keys(bases).tolist())}
    own = np.array([keys[tuple(key)] for key in _base_keys(coarse.layouts).tolist()], dtype=np.int64)
    late = coarse.passing("deadline_days") & ~coarse.passes["deadline_days"]
    fine = coarse.passing()
    slow, quick = np.zeros(bases.size), np.full(bases.size, np.inf)
    np.maximum.at(slow, own[late], coarse.layouts.data_parallel[late])
    np.minimum.at(quick, own[fine], coarse.layouts.data_parallel[fine])
    # A layout too slow at one count is not the less so at a smaller one; only the gap just below its first good one.
    slow = np.where(slow < quick, slow, 0.0)
    if not np.isfinite(quick).any():
        return found
    for _ in range(_ROUNDS):
        size = quick * width
        near = np.flatnonzero((quick - slow > 1.0) & (size <= _NEAR * np.nanmin(size)) & (slow > 0.0))
        if not near.size:
            break
        steps = np.linspace(slow[near], quick[near], _BETWEEN + 2)[1:-1]
        replicas = np.unique(
            np.stack([np.tile(near, _BETWEEN).astype(float), np.ceil(steps - 1e-9).ravel()], 1), axis=0
        )
        place = replicas[:, 0].astype(np.int64)
        inside = (replicas[:, 1] > slow[place]) & (replicas[:, 1] < quick[place])
        if not inside.any():
            break
        rows, sound = evaluated(evaluator, bases, place[inside], replicas[inside, 1])
        place, tried = place[inside][sound], replicas[inside, 1][sound]
        good, bad = rows.passing(), rows.passing("deadline_days") & ~rows.passes["deadline_days"]
        np.minimum.at(quick, place[good], tried[good])
        np.maximum.at(slow, place[bad], np.where(tried[bad] < quick[place[bad]], tried[bad], 0.0))
        found.append(rows)
    del server_type, most
    return found


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
    kept = places if discounted else places[undominated(servers[places], rows.days[places])]
    nearest = None
    if rows.size and not places.size:
        nearest = rows.take(np.array([_nearest(evaluator, rows)]))
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
    )


def _nearest(evaluator: Evaluator, rows: Rows) -> int:
    """The row that breaks fewest limits, and of those the soonest done."""
    breaks = np.sum([~column for column in rows.passes.values()], axis=0)
    del evaluator
    return int(np.lexsort((rows.days, breaks))[0])
