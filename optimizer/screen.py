"""Screening: which candidates keep every limit of one deployment, at which concurrency, and which are worth offering.

Limits of one deployment do not depend on how many there are, so they are checked here for all candidates at once. A
candidate is offered at its largest admissible concurrency: capacity grows with concurrency, and neither accelerators
nor space nor power do.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

import constraints
from optimizer.candidates import Candidates, FloatArray, IntArray
from optimizer.performance.search import highest_admissible_concurrency
from optimizer.performance.serving import ServingPrediction
from optimizer.units import MS_PER_S

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Right-hand sides of the deployment limits, one a row or one for all; infinite where not asked for."""

    vram_gib: FloatArray
    vram_gib_per_accelerator: float
    weights_gib_per_accelerator: float
    tpot_ms: FloatArray
    ttft_ms: FloatArray
    latency_ms: FloatArray
    accuracy: float
    nvlink_fraction: float
    nvlink_cap_gb_s: float
    kv_link_fraction: float

    def take(self, rows: IntArray) -> "Bounds":
        """Bounds of the given rows."""
        return Bounds(
            self.vram_gib[rows],
            self.vram_gib_per_accelerator,
            self.weights_gib_per_accelerator,
            self.tpot_ms[rows],
            self.ttft_ms[rows],
            self.latency_ms[rows],
            self.accuracy,
            self.nvlink_fraction,
            self.nvlink_cap_gb_s,
            self.kv_link_fraction,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What each row reaches."""

    vram_gib: FloatArray
    weights_gib: FloatArray
    tpot_ms: FloatArray
    ttft_ms: FloatArray
    latency_ms: FloatArray
    accuracy: FloatArray
    nvlink_gb_s: FloatArray
    nvlink_link_gb_s: FloatArray
    kv_link_gb_s: FloatArray
    kv_link_limit_gb_s: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Screened:
    """Outcome of the screening.

    ``concurrency`` is 0 where no concurrency keeps every limit. ``alone`` is what each row reaches with one request in
    flight, ``passes`` whether it then keeps each limit (by name): the reasons of what is not offered. ``prediction``
    is that of the admissible ``rows`` at their concurrency.
    """

    candidates: Candidates
    bounds: Bounds
    concurrency: IntArray
    alone: Seen
    passes: dict[str, BoolArray]
    rows: IntArray
    prediction: ServingPrediction

    def killed_by_limit(self) -> dict[str, int]:
        """Candidates that break each limit, some more than one."""
        return {name: int(np.count_nonzero(~kept)) for name, kept in self.passes.items() if not kept.all()}

    def killed_alone(self) -> dict[str, int]:
        """Candidates that only this limit kills."""
        if not self.passes:
            return {}
        broken = sum((~kept).astype(np.int64) for kept in self.passes.values())
        return {name: int(np.count_nonzero(~kept & (broken == 1))) for name, kept in self.passes.items()}


def bounds_of(candidates: Candidates) -> Bounds:
    """Right-hand sides from the instance's targets, by row."""
    targets = candidates.setting.instance.targets
    classes = candidates.setting.classes

    def by_class(name: str) -> FloatArray:
        common = getattr(targets, name)
        values = [getattr(one.targets, name) if getattr(one.targets, name) is not None else common for one in classes]
        return np.array([np.inf if value is None else value for value in values])[candidates.class_index]

    def cap(value: float | None) -> float:
        return np.inf if value is None else value

    memory = np.array([one.accelerator.memory_gib for one in candidates.server_types])
    return Bounds(
        vram_gib=(memory * targets.vram_fraction)[candidates.server_type_index],
        vram_gib_per_accelerator=cap(targets.vram_gib_per_accelerator),
        weights_gib_per_accelerator=cap(targets.weights_gib_per_accelerator),
        tpot_ms=by_class("tpot_ms"),
        ttft_ms=by_class("ttft_ms"),
        latency_ms=by_class("latency_ms"),
        accuracy=targets.accuracy_floor(),
        nvlink_fraction=targets.nvlink_fraction,
        nvlink_cap_gb_s=cap(targets.nvlink_gb_s),
        kv_link_fraction=targets.kv_link_fraction,
    )


def accuracy_column(candidates: Candidates) -> FloatArray:
    """Recovery at the asked confidence by row; minus infinity where too little is published to say."""
    values = [option.accuracy.quantile for option in candidates.schemes]
    return np.array([-np.inf if value is None else value for value in values])[candidates.scheme_index]


def seen_of(prediction: ServingPrediction, accuracy: FloatArray) -> Seen:
    """What limits look at."""
    return Seen(
        vram_gib=prediction.total_gib,
        weights_gib=prediction.weights_gib,
        tpot_ms=prediction.tpot_ms,
        ttft_ms=prediction.ttft_ms,
        latency_ms=prediction.latency_ms,
        accuracy=accuracy,
        nvlink_gb_s=prediction.nvlink_gb_s,
        nvlink_link_gb_s=prediction.nvlink_limit_gb_s,
        kv_link_gb_s=prediction.kv_link_gb_s,
        kv_link_limit_gb_s=prediction.kv_link_limit_gb_s,
    )


def keeps(seen: Seen, bounds: Bounds) -> dict[str, BoolArray]:
    """For each deployment limit, whether each row keeps it."""
    result: dict[str, BoolArray] = {}
    for family in constraints.FAMILIES:
        admits = getattr(family, "admits", None)
        if admits is not None:
            result.update(admits(seen, bounds))
    return result


def screen(candidates: Candidates) -> Screened:
    """Check every deployment limit and find the largest admissible concurrency of each row."""
    bounds = bounds_of(candidates)
    everything = np.arange(candidates.size, dtype=np.int64)
    concurrency = np.zeros(candidates.size, dtype=np.int64)
    if not candidates.size:
        empty = np.empty(0)
        none = Seen(*[empty] * len(fields(Seen)))
        return Screened(candidates, bounds, concurrency, none, {}, everything, _nothing())
    accuracy = accuracy_column(candidates)
    alone = seen_of(candidates.at(everything, np.ones(candidates.size, dtype=np.int64)), accuracy)
    passes = keeps(alone, bounds)
    admissible = np.logical_and.reduce(list(passes.values()))
    limit = candidates.setting.instance.choices.max_concurrency
    has_units = bool(candidates.prefill_replicas.any())
    for index, prepared in enumerate(candidates.prepared):
        rows = everything[admissible & (candidates.class_index == index)]
        if not rows.size:
            continue
        mine, own = prepared.take(rows - candidates.starts[index]), bounds.take(rows)
        concurrency[rows] = highest_admissible_concurrency(
            mine,
            tpot_ms=own.tpot_ms,
            ttft_ms=own.ttft_ms,
            latency_ms=own.latency_ms,
            memory_gib=np.minimum(own.vram_gib, own.vram_gib_per_accelerator),
            nvlink_gb_s=np.minimum(own.nvlink_fraction * alone.nvlink_link_gb_s[rows], own.nvlink_cap_gb_s),
            kv_link_gb_s=own.kv_link_fraction * alone.kv_link_limit_gb_s[rows] if has_units else np.inf,
            # An engine's slots are those of one data-parallel rank.
            max_concurrency=limit * candidates.attention_data_parallel[rows],
        )
    rows = everything[concurrency > 0]
    prediction = candidates.at(rows, concurrency[rows]) if rows.size else _nothing()
    return Screened(candidates, bounds, concurrency, alone, passes, rows, prediction)


def _nothing() -> ServingPrediction:
    return ServingPrediction(**{one.name: np.empty(0) for one in fields(ServingPrediction)})


def not_dominated(
    group: IntArray, width: IntArray, servers: FloatArray, capacity: FloatArray, energy: FloatArray
) -> BoolArray:
    """Rows that no other row of their group dominates.

    Within a group (class, server type, scheme) row ``j`` dominates row ``i`` when ``m >= 1`` replicas of ``j`` fit
    where one of ``i`` stands, ``m capacity_j >= capacity_i`` and ``energy_j <= energy_i``. ``servers`` is what a
    replica blocks of a server, ``capacity`` what it serves and ``energy`` what one unit of demand adds above idle.
    ``m = floor(width_i / width_j)`` inside a server, whose rest other replicas may use;
    ``floor(servers_i / servers_j)`` where ``i`` is wider than a server and takes whole ones.

    Proof: in any plan replace each replica of ``i`` by ``m`` replicas of ``j`` on the same accelerators and give them
    the same demand at every level. Packing holds, capacity holds, energy does not rise, and nothing else of the
    program sees layouts or concurrency. So an optimal plan without ``i`` exists, whatever the right-hand sides are.
    Of equal rows the first stays; domination is transitive, so removing all dominated rows at once leaves one that
    dominates each.
    """
    keep = np.ones(group.size, dtype=np.bool_)
    for value in np.unique(group):
        rows = np.flatnonzero(group == value)
        # Rows of one width first, by sorting: what is left is few, and is held against each other row by row.
        beaten = _beaten_alike(width[rows], servers[rows], capacity[rows], energy[rows])
        keep[rows[beaten]] = False
        rows = rows[~beaten]
        w, n, c, e = width[rows], servers[rows], capacity[rows], energy[rows]
        inside = np.floor_divide(w[:, None], w[None, :])
        whole = np.floor(n[:, None] / n[None, :] + 1e-9)
        times = np.where(n[:, None] > 1.0, whole, np.where(n[None, :] <= 1.0, inside, 0.0))
        beats = (times >= 1.0) & (times * c[None, :] >= c[:, None]) & (e[None, :] <= e[:, None])
        both = beats & beats.T
        first = np.arange(rows.size)[None, :] < np.arange(rows.size)[:, None]
        keep[rows] = ~np.any((beats & ~both) | (both & first), axis=1)
    return keep


def _beaten_alike(width: IntArray, servers: FloatArray, capacity: FloatArray, energy: FloatArray) -> BoolArray:
    """Rows that another row of the same width and servers beats: it carries as much and adds no more energy."""
    order = np.lexsort((np.arange(width.size), energy, -capacity, servers, width))
    w, n, e = width[order], servers[order], energy[order]
    starts = np.concatenate(([True], (w[1:] != w[:-1]) | (n[1:] != n[:-1])))
    beaten = np.zeros(width.size, dtype=np.bool_)
    for first, end in zip(np.flatnonzero(starts), [*np.flatnonzero(starts)[1:], width.size], strict=True):
        least = np.minimum.accumulate(e[first:end])
        beaten[order[first + 1 : end]] = e[first + 1 : end] >= least[:-1]
    return beaten


def demand_weights(candidates: Candidates, rows: IntArray, latency_ms: FloatArray) -> FloatArray:
    """What one request/s of each row counts for in its class's demand: 1, or think time + latency for users."""
    weights = np.ones(rows.size)
    for index, one in enumerate(candidates.setting.classes):
        if one.demand.concurrent_users is not None:
            here = candidates.class_index[rows] == index
            weights[here] = one.demand.think_time_s + latency_ms[here] / MS_PER_S
    return weights


def class_demand(candidates: Candidates) -> tuple[float, ...]:
    """Demand of each class at the peak, in the unit of weight x requests/s."""
    result = []
    for one in candidates.setting.classes:
        demand = one.demand
        if demand.requests_per_s is not None:
            result.append(demand.requests_per_s)
        elif demand.output_tokens_per_s is not None:
            result.append(demand.output_tokens_per_s / one.request.output_tokens)
        else:
            assert demand.concurrent_users is not None
            result.append(demand.concurrent_users)
    return tuple(result)
