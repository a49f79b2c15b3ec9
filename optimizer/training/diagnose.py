"""Why no plan for training exists, and the least move of each single limit that opens one, verified by solving.

A looser limit never makes a plan impossible, so each move is found by doubling and then halving the way to it; the
figure that is said is one at which a plan was found, and its cost is that plan's.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from optimizer.costs.finance import capital_recovery_factor
from optimizer.diagnosis import Cause, Diagnosis, LimitKills, NearestCandidate, SingleChange, Widening
from optimizer.instance.model import Instance
from optimizer.instance.site import Site
from optimizer.limits import limit
from optimizer.solver import Options, solver_name
from optimizer.sources import defaulted, provenance
from optimizer.training.answer import Searched, Stop, answer, search
from optimizer.training.bill import job_lines
from optimizer.training.extract import search_count
from optimizer.training.jobs import HOURS_PER_DAY, Job, training_workload
from optimizer.training.options import Options as JobOptions
from optimizer.training.places import training_accelerator
from optimizer.units import FLOP_PER_TFLOP, HOURS_PER_YEAR, SECONDS_PER_HOUR

#: Doublings before a limit is given up, and the share of the value at which halving ends.
_DOUBLINGS, _RESOLUTION, _STEPS = 6, 0.01, 8
#: Accelerators of a usual server, by which exact counts move.
_COUNT_STEP = 8


@dataclass(frozen=True, slots=True)
class Move:
    """A limit that may be moved: name of the limit, path, unit, value now, and the instance with another value."""

    name: str
    path: str
    unit: str
    now: float
    whole: bool
    rising: bool
    most: float
    moved: Callable[[float], Instance]
    step: int = 1


def diagnose(
    searched: Searched, options: Options, stop: Stop | None, deadline: float, *, widen: bool = True
) -> Diagnosis:
    """Which limits kill which options, what comes nearest, and which single changes suffice.

    ``widen``: try formats too that are not allowed.
    """
    instance = searched.instance
    kills: dict[str, int] = {}
    alone: dict[str, int] = {}
    tallies = [(one.broken, one.alone) for options_ in searched.options for one in options_]
    tallies += [(one.broken, one.alone) for one in searched.choices]
    for broken, single in tallies:
        for name, count in broken.items():
            kills[name] = kills.get(name, 0) + count
            alone[name] = alone.get(name, 0) + single.get(name, 0)
    every_job = all(any(one.admissible for one in options_) for options_ in searched.options)
    changes = []
    for move in moves(instance):
        if time.perf_counter() > deadline or (stop is not None and stop()):
            break
        change = _least(move, options, stop, deadline)
        if change is not None:
            changes.append(change)
    changes.sort(key=lambda one: abs(math.log(one.needed / one.now)) if one.now > 0 else 0.0)
    told = list(_told(searched))
    widenings = tuple(_other_formats(instance, options, stop, deadline)) if widen else ()
    cause: Cause = "choices" if widenings else "limits" if changes else "unknown"
    if not changes and not widenings:
        told.append("no single limit suffices: several must move together, or more options be allowed")
    return Diagnosis(
        name=instance.name,
        stage="fleet" if every_job else "no_candidate",
        search=search_count(searched, sum(len(one.found) for one in searched.choices)),
        kills=tuple(
            LimitKills(limit=name, field=limit(name).field, kills=count, alone=alone.get(name, 0))
            for name, count in sorted(kills.items(), key=lambda item: (-item[1], item[0]))
            if count
        ),
        nearest=None if every_job else _nearest(searched),
        cause=cause,
        changes=tuple(changes),
        widenings=widenings,
        messages=tuple(told),
        defaults=defaulted(instance),
        instance=instance,
        provenance=provenance(instance, options, solver_name()),
    )


def moves(instance: Instance) -> Iterator[Move]:
    """Every limit that is set and could be moved."""
    workload, targets, economics = training_workload(instance), instance.targets, instance.economics

    def in_part(section: str, field: str) -> Callable[[float], Instance]:
        def moved(value: float) -> Instance:
            part = getattr(instance, section)
            return instance.model_copy(update={section: part.model_copy(update={field: value})})

        return moved

    def in_targets(name: str, field: str, most: float, *, rising: bool = True) -> Iterator[Move]:
        now = getattr(targets, field)
        if now is not None:
            unit = "fraction" if field.endswith("fraction") else limit(name).unit
            yield Move(name, f"targets.{field}", unit, float(now), False, rising, most, in_part("targets", field))

    yield from in_targets("deadline_days", "deadline_days", math.inf)
    yield from in_targets("mfu_fraction", "mfu_floor_fraction", 1.0, rising=False)
    yield from in_targets("scale_out_fraction", "scale_out_fraction", 1.0)
    yield from in_targets("training_vram_cap_gib", "vram_gib_per_accelerator", math.inf)
    yield from in_targets("training_nvlink_cap_gb_s", "nvlink_gb_s", math.inf)
    if targets.nvlink_fraction < 1.0:
        yield from in_targets("training_nvlink", "nvlink_fraction", 1.0)
    if "vram_fraction" in targets.model_fields_set and targets.vram_fraction < 1.0:
        yield from in_targets("training_vram_gib", "vram_fraction", 1.0)
    if workload.most_accelerators is not None:
        yield Move(
            "accelerator_count",
            "workload.most_accelerators",
            "accelerators",
            float(workload.most_accelerators),
            True,
            True,
            math.inf,
            lambda value: _with_workload(instance, {"most_accelerators": round(value)}),
        )
    if workload.accelerator_counts is not None:
        # One exact count of the planner's: the least whole servers above it that suffice.
        yield Move(
            "accelerator_count",
            "workload.accelerator_counts",
            "accelerators",
            float(max(workload.accelerator_counts)),
            True,
            True,
            math.inf,
            lambda value: _with_workload(instance, {"accelerator_counts": (round(value),)}),
            _COUNT_STEP,
        )
    for name, field in (("budget_capex_usd", "budget_capex_usd"), ("budget_usd", "budget_usd")):
        now = getattr(economics, field)
        if now is not None:
            yield Move(name, f"economics.{field}", "USD", now, False, True, math.inf, in_part("economics", field))
    for key, count in sorted(instance.choices.supply.items()):
        yield Move(
            "supply",
            f"choices.supply.{key}",
            "accelerators",
            float(max(count, 1)),
            True,
            True,
            math.inf,
            _supply(instance, key),
        )
    yield from _site_moves(instance)


def _site_moves(instance: Instance) -> Iterator[Move]:
    places: list[tuple[str, int, Site]] = [(f"sites[{index}]", index, one) for index, one in enumerate(instance.sites)]
    for path, index, site in places or [("site", -1, instance.site)]:
        for name, field, whole in (("power_kw", "power_kw", False), ("racks", "racks", True)):
            now = getattr(site, field)
            if now is not None:
                yield Move(
                    name,
                    f"{path}.{field}",
                    limit(name).unit,
                    float(max(now, 1)),
                    whole,
                    True,
                    math.inf,
                    _site(instance, index, field, whole),
                )


def _site(instance: Instance, index: int, field: str, whole: bool) -> Callable[[float], Instance]:
    def moved(value: float) -> Instance:
        update = {field: round(value) if whole else value}
        if index < 0:
            return instance.model_copy(update={"site": instance.site.model_copy(update=update)})
        sites = tuple(
            one.model_copy(update=update) if place == index else one for place, one in enumerate(instance.sites)
        )
        return instance.model_copy(update={"sites": sites})

    return moved


def _supply(instance: Instance, key: str) -> Callable[[float], Instance]:
    def moved(value: float) -> Instance:
        supply = {**instance.choices.supply, key: round(value)}
        return instance.model_copy(update={"choices": instance.choices.model_copy(update={"supply": supply})})

    return moved


def _with_workload(instance: Instance, update: dict[str, object]) -> Instance:
    return instance.model_copy(update={"workload": instance.workload.model_copy(update=update)})


def _cost(instance: Instance, options: Options, stop: Stop | None, deadline: float) -> float | None:
    """USD per hour of the cheapest plan of a changed instance, or None where it has none."""
    left = replace(options, time_limit_s=max(1e-3, deadline - time.perf_counter()))
    data = search(instance).program()
    found = answer(data, left, stop, break_ties=False)
    if found.runs is None:
        return None
    return math.fsum(one.line.usd_per_year for one in job_lines(data, found.runs)) / HOURS_PER_YEAR


def _least(move: Move, options: Options, stop: Stop | None, deadline: float) -> SingleChange | None:
    """The least value of one limit that suffices alone."""
    bad, good, cost = move.now, math.nan, None
    for doubling in range(1, _DOUBLINGS + 1):
        value = min(move.now * 2.0**doubling, move.most) if move.rising else move.now * 0.5**doubling
        cost = _cost(move.moved(_rounded(move, value)), options, stop, deadline)
        if cost is not None:
            good = value
            break
        bad = value
        if value == move.most or time.perf_counter() > deadline:
            return None
    if cost is None:
        return None
    for _ in range(_STEPS):
        if abs(good - bad) <= _RESOLUTION * good or time.perf_counter() > deadline:
            break
        middle = _rounded(move, math.sqrt(good * bad))
        found = _cost(move.moved(middle), options, stop, deadline)
        if found is None:
            bad = middle
        else:
            good, cost = middle, found
    good = _rounded(move, good)
    verb = "raise" if move.rising else "lower"
    return SingleChange(
        field=move.path,
        limit=move.name,
        unit=move.unit,
        now=move.now,
        needed=good,
        usd_per_hour=cost,
        summary=f"{verb} {move.path} {move.now:,.6g} -> {good:,.6g} {move.unit}, then {_total(move, cost)}",
    )


def _total(move: Move, usd_per_hour: float) -> str:
    """The whole cost of a plan, from its annuity over the horizon."""
    return _in_all(move.moved(move.now), usd_per_hour)


def _in_all(instance: Instance, usd_per_hour: float) -> str:
    economics = instance.economics
    share = capital_recovery_factor(economics.discount_rate, economics.horizon_years)
    return f"USD {usd_per_hour * HOURS_PER_YEAR / share:,.4g} in all"


def _rounded(move: Move, value: float) -> float:
    """Whole counts are whole; others have four digits, to the looser side."""
    if move.whole:
        return float(math.ceil(value / move.step - 1e-9) * move.step)
    scale = 10.0 ** (3 - math.floor(math.log10(value)))
    return (math.ceil(value * scale - 1e-9) if move.rising else math.floor(value * scale + 1e-9)) / scale


def _other_formats(instance: Instance, options: Options, stop: Stop | None, deadline: float) -> Iterator[Widening]:
    """Number formats that were not allowed and open a plan, each alone."""
    workload = training_workload(instance)
    used = {name for one in workload.all_jobs() for name in one.precisions or ()}
    for form in ("fp8", "fp4"):
        if form in used or time.perf_counter() > deadline:
            continue
        jobs = tuple(
            one.model_copy(update={"precisions": None if one.precisions is None else (*one.precisions, form)})
            for one in workload.jobs
        )
        wider = _with_workload(instance, {"precisions": (*workload.precisions, form), "jobs": jobs})
        cost = _cost(wider, options, stop, deadline)
        if cost is not None:
            summary = f"add {form} to workload.precisions, then {_in_all(wider, cost)}"
            yield Widening(field="workload.precisions", added=(form,), usd_per_hour=cost, summary=summary, then=form)


def _told(searched: Searched) -> Iterator[str]:
    """What each job would need of an accelerator, and what stood in the way before any limit."""
    if not searched.prices:
        yield "no whole server can be had: none has a price in the allowed ways, or none fits a rack"
    for job, options in zip(searched.jobs, searched.options, strict=True):
        best = _best(options)
        if best is None:
            yield f"{job.name}: {_no_layout(searched, job)}"
            continue
        one, days, tflops, count = best
        name = f"{job.name}: " if len(searched.jobs) > 1 else ""
        yield (
            f"{name}nearest: {count:,.0f} {one.server_type.accelerator.id} in {one.precision} take {days:.1f} days "
            f"of the {job.window_days:.4g} allowed, at {tflops:.0f} model TFLOP/s in a step"
        )
        if job.counts is not None:
            row = one.server_type.accelerator
            needed = _needed_tflops(job)
            peaks = {"16-bit": row.fp16_tflops, "FP8": row.fp8_tflops}
            shares = " and ".join(f"{needed / peak:.0%} of the {form} peak" for form, peak in peaks.items() if peak)
            yield (
                f"{name}{max(job.counts):,} {row.id} would need {needed:.0f} TFLOP/s each (6ND) through all "
                f"{job.window_days:.4g} days, failures and restarts included: {shares}"
            )


def _no_layout(searched: Searched, job: Job) -> str:
    """Why nothing could be tried for a job: no accelerator has its formats, or no layout suits its model."""
    rows = {one.pool.server_type.accelerator.id: one.pool.server_type.accelerator for one in searched.prices.values()}
    able = (training_accelerator(row).peak_tflops(one) > 0.0 for row in rows.values() for one in job.precisions)
    if not any(able):
        return f"no accelerator has the matrix units of {', '.join(job.precisions)}"
    model = job.model
    return (
        f"no layout of workload.layouts suits a model of {model.layers} layers and {model.attention_heads} attention "
        "heads: tensor parallelism divides the heads inside one scale-up domain, every stage has layers"
    )


def _needed_tflops(job: Job) -> float:
    """6ND over the accelerator-seconds of the whole window, of the largest count that is allowed."""
    assert job.counts is not None
    seconds = job.window_days * HOURS_PER_DAY * SECONDS_PER_HOUR
    return job.flop_by_convention["6nd"] / (max(job.counts) * seconds) / FLOP_PER_TFLOP


def _best(options: tuple[JobOptions, ...]) -> tuple[JobOptions, float, float, float] | None:
    """The option that comes soonest, admissible or not: (option, days, TFLOP/s, accelerators)."""
    found = []
    for one in options:
        rows = one.rows if one.rows.size else one.nearest
        if rows is not None and rows.size:
            place = int(rows.days.argmin())
            found.append((one, float(rows.days[place]), float(rows.tflops[place]), float(rows.accelerators[place])))
    return min(found, key=lambda item: item[1], default=None)


def _nearest(searched: Searched) -> NearestCandidate | None:
    """The layout that breaks fewest limits, of the first job that has none."""
    for options in searched.options:
        if any(one.admissible for one in options):
            continue
        rows = [(one, one.nearest) for one in options if one.nearest is not None and one.nearest.size]
        if not rows:
            return None

        def rank(item: tuple[JobOptions, object]) -> tuple[int, float]:
            nearest = item[0].nearest
            assert nearest is not None
            return sum(not column[0] for column in nearest.passes.values()), float(nearest.days[0])

        one, nearest = min(rows, key=rank)
        assert nearest is not None
        lay = nearest.layouts
        reached = {
            "training_vram_gib": f"{nearest.memory_gib[0]:.4g} GiB",
            "training_vram_cap_gib": f"{nearest.memory_gib[0]:.4g} GiB",
            "training_nvlink": f"{nearest.scale_up_fraction[0]:.3g} of the link",
            "training_nvlink_cap_gb_s": f"{nearest.scale_up_gb_s[0]:.4g} GB/s",
            "scale_out_fraction": f"{nearest.scale_out_fraction[0]:.3g} of the interface",
            "mfu_fraction": f"{nearest.mfu_fraction[0]:.3g}",
            "deadline_days": f"{nearest.days[0]:.4g} days, <= {one.job.window_days:.4g} needed",
            "accelerator_count": f"{nearest.accelerators[0]:,.0f}",
        }
        layout = f"TP {lay.tensor_parallel[0]:.0f} x PP {lay.pipeline_parallel[0]:.0f} x DP {lay.data_parallel[0]:.0f}"
        return NearestCandidate(
            summary=f"{nearest.accelerators[0]:,.0f} {one.server_type.accelerator.id}, {layout}, {one.precision}",
            misses={name: reached[name] for name, column in nearest.passes.items() if not column[0]},
        )
    return None
