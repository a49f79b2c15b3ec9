"""A way out of "infeasible": which limits kill which candidates, what is nearest, which limit would have to move.

Each single change is found by moving one limit alone and verified by solving; "no single change" is said when that is
so.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from optimizer.answer import Stop, answer
from optimizer.candidates import FloatArray, build_candidates
from optimizer.extract import defaulted, provenance, search_count
from optimizer.instance.model import Instance
from optimizer.limits import limit
from optimizer.models import served_model
from optimizer.offer import Offer, Without, make_offer
from optimizer.performance.factors import Factors
from optimizer.plan import Diagnosis, LimitKills, NearestCandidate, SingleChange
from optimizer.schemes import scheme_options
from optimizer.screen import Screened, screen
from optimizer.setting import build_setting
from optimizer.solver import Options, solver_name

#: Limits of one deployment that an instance field sets directly: limit -> (section, field, factor to the limit's unit).
_DEPLOYMENT_FIELDS = {
    "vram_gib": ("targets", "vram_fraction"),
    "vram_gib_per_accelerator": ("targets", "vram_gib_per_accelerator"),
    "weights_gib_per_accelerator": ("targets", "weights_gib_per_accelerator"),
    "tpot_ms": ("targets", "tpot_ms"),
    "ttft_ms": ("targets", "ttft_ms"),
    "latency_ms": ("targets", "latency_ms"),
    "accuracy": ("targets", "accuracy_floor_fraction"),
    "nvlink_gb_s": ("targets", "nvlink_fraction"),
    "nvlink_cap_gb_s": ("targets", "nvlink_gb_s"),
}
#: Caps of the fleet.
_FLEET_FIELDS = {
    "power_kw": ("site", "power_kw"),
    "racks": ("site", "racks"),
    "rack_kw": ("site", "rack_kw"),
    "budget_capex_usd": ("economics", "budget_capex_usd"),
    "budget_usd_per_year": ("economics", "budget_usd_per_year"),
    "accelerator_types": ("choices", "max_accelerator_types"),
}
#: Steps of the search for the least value of a fleet cap that suffices.
_BISECTIONS = 40
_RELATIVE_STEP = 1e-3


@dataclass(frozen=True, slots=True)
class _Try:
    """A changed instance that was solved."""

    usd_per_hour: float
    value: float


def diagnose(offer: Offer, options: Options, stop: Stop | None, deadline: float) -> Diagnosis:
    """Why no plan exists, and what to change."""
    screened = offer.screened
    instance = screened.candidates.setting.instance
    stage: Literal["no_candidate", "fleet"] = "fleet" if _every_class_has_one(offer) else "no_candidate"
    kills, alone = screened.killed_by_limit(), screened.killed_alone()
    changes = tuple(_changes(offer, options, stop, deadline))
    told = []
    if not screened.candidates.size:
        told.append("no layout of the allowed degrees starts on any allowed accelerator")
    if not changes:
        told.append("no single limit suffices: several must move together, or more options be allowed")
    told += [
        f"{one.server_type} is not offered with {one.cooling}: {one.reason}"
        for one in screened.candidates.setting.refusals
    ]
    return Diagnosis(
        name=instance.name,
        stage=stage,
        search=search_count(screened, int(offer.kept.size)),
        kills=tuple(
            LimitKills(limit=name, field=limit(name).field, kills=count, alone=alone.get(name, 0))
            for name, count in sorted(kills.items(), key=lambda item: (-item[1], item[0]))
        ),
        nearest=nearest_candidate(screened) if stage == "no_candidate" else None,
        changes=changes,
        messages=tuple(told),
        defaults=defaulted(instance),
        instance=instance,
        provenance=provenance(instance, options, solver_name()),
    )


def _every_class_has_one(offer: Offer) -> bool:
    rows = offer.screened.rows
    classes = set(offer.screened.candidates.class_index[rows].tolist())
    return classes == set(range(len(offer.demand)))


def shortfalls(screened: Screened) -> dict[str, FloatArray]:
    """By how much each row misses each limit with one request in flight, as a share of what is needed; 0: kept."""
    seen, bounds = screened.alone, screened.bounds
    with np.errstate(invalid="ignore", divide="ignore"):
        pairs: dict[str, tuple[FloatArray, FloatArray | float]] = {
            "vram_gib": (seen.vram_gib, bounds.vram_gib),
            "vram_gib_per_accelerator": (seen.vram_gib, bounds.vram_gib_per_accelerator),
            "weights_gib_per_accelerator": (seen.weights_gib, bounds.weights_gib_per_accelerator),
            "tpot_ms": (seen.tpot_ms, bounds.tpot_ms),
            "ttft_ms": (seen.ttft_ms, bounds.ttft_ms),
            "latency_ms": (seen.latency_ms, bounds.latency_ms),
            "nvlink_gb_s": (seen.nvlink_gb_s, bounds.nvlink_fraction * seen.nvlink_link_gb_s),
            "nvlink_cap_gb_s": (seen.nvlink_gb_s, bounds.nvlink_cap_gb_s),
        }
        result = {name: np.maximum(0.0, reached / needed - 1.0) for name, (reached, needed) in pairs.items()}
        loss = (1.0 - seen.accuracy) / max(1.0 - bounds.accuracy, 1e-12)
        result["accuracy"] = np.where(screened.passes["accuracy"], 0.0, np.maximum(0.0, loss - 1.0))
    return {name: np.nan_to_num(values, nan=0.0, posinf=np.inf) for name, values in result.items()}


def nearest_candidate(screened: Screened) -> NearestCandidate | None:
    """The candidate whose largest miss is smallest."""
    if not screened.candidates.size:
        return None
    misses = shortfalls(screened)
    worst = np.maximum.reduce(list(misses.values()))
    row = int(np.argmin(worst))
    if not np.isfinite(worst[row]):
        return None
    candidates = screened.candidates
    server = candidates.server_types[int(candidates.server_type_index[row])].id
    scheme = candidates.schemes[int(candidates.scheme_index[row])].id
    layout = f"TP {candidates.tensor_parallel[row]} x PP {candidates.pipeline_parallel[row]}"
    return NearestCandidate(
        summary=f"{server}, {layout}, {scheme}, one request in flight",
        misses={name: _miss(screened, name, row) for name, values in misses.items() if values[row] > 0.0},
    )


def _miss(screened: Screened, name: str, row: int) -> str:
    seen, bounds, rule = screened.alone, screened.bounds, limit(name)
    reached = {
        "vram_gib": seen.vram_gib,
        "vram_gib_per_accelerator": seen.vram_gib,
        "weights_gib_per_accelerator": seen.weights_gib,
        "nvlink_cap_gb_s": seen.nvlink_gb_s,
    }.get(name)
    values = getattr(seen, name) if reached is None else reached
    needed = {
        "nvlink_gb_s": bounds.nvlink_fraction * seen.nvlink_link_gb_s,
    }.get(name)
    bound = getattr(bounds, name) if needed is None else needed
    at = float(np.broadcast_to(bound, values.shape)[row])
    return f"{values[row]:.4g} {rule.unit}, {rule.direction} {at:.4g} needed"


def _changes(offer: Offer, options: Options, stop: Stop | None, deadline: float) -> Iterator[SingleChange]:
    """Every single limit that suffices when it moves alone, with the least move."""
    candidates = offer.screened.candidates
    instance, factors = candidates.setting.instance, candidates.factors
    seen_fields = set()
    for name, (section, field) in (*_DEPLOYMENT_FIELDS.items(), *_FLEET_FIELDS.items()):
        now = _current(instance, section, field)
        if (
            now is None
            or (section, field) in seen_fields
            or time.perf_counter() > deadline
            or (stop is not None and stop())
        ):
            continue
        seen_fields.add((section, field))
        found = _least_move(instance, factors, section, field, now, options, stop, deadline)
        if found is not None:
            yield _change(name, f"{section}.{field}", now, found)
    yield from _supply_changes(instance, factors, options, stop, deadline)


def _change(name: str, path: str, now: float, found: _Try) -> SingleChange:
    rule = limit(name)
    unit = "fraction" if path.endswith("fraction") else rule.unit
    verb = "raise" if found.value > now else "lower"
    return SingleChange(
        field=path,
        limit=name,
        unit=unit,
        now=now,
        needed=found.value,
        usd_per_hour=found.usd_per_hour,
        summary=f"{verb} {path} {now:,.6g} -> {found.value:,.6g} {unit}",
    )


def _current(instance: Instance, section: str, field: str) -> float | None:
    if field == "accuracy_floor_fraction":
        return None if instance.targets.accuracy_floor_score is not None else instance.targets.accuracy_floor()
    value = getattr(getattr(instance, section), field)
    return None if value is None else float(value)


def with_value(instance: Instance, section: str, field: str, value: float) -> Instance:
    """The instance with one field changed."""
    part = getattr(instance, section)
    whole = field in ("racks", "max_accelerator_types")
    update: dict[str, object] = {field: round(value) if whole else value}
    return instance.model_copy(update={section: part.model_copy(update=update)})


def _solved(instance: Instance, factors: Factors, options: Options, stop: Stop | None, deadline: float) -> float | None:
    """USD/hour of the cheapest plan of a changed instance, or None."""
    left = deadline - time.perf_counter()
    if left <= 0.0:
        return None
    from optimizer.catalog import load_catalog

    setting = build_setting(instance, load_catalog())
    model = served_model(instance, setting.catalog)
    offer = make_offer(screen(build_candidates(setting, model, scheme_options(setting, model), factors)))
    limited = replace(options, time_limit_s=left)
    found = answer(offer, limited, Without(), stop, break_ties=False)
    return found.outcome.objective if found.fleet is not None else None


def _least_move(
    instance: Instance,
    factors: Factors,
    section: str,
    field: str,
    now: float,
    options: Options,
    stop: Stop | None,
    deadline: float,
) -> _Try | None:
    """The least move of one field that makes the instance solvable, by bisection between now and no limit at all.

    A looser limit never makes a plan impossible, so feasibility is monotone in each of these fields and bisection is
    exact to its resolution (0.1 % of the value; whole numbers exactly).
    """
    whole = field in ("racks", "max_accelerator_types")
    loosest = _loosest(field, now)

    def attempt(value: float) -> float | None:
        return _solved(with_value(instance, section, field, value), factors, options, stop, deadline)

    cost = attempt(loosest)
    if cost is None:
        return None
    good, bad, best = loosest, now, _Try(cost, loosest)
    for _ in range(_BISECTIONS):
        if whole and abs(good - bad) <= 1.0:
            break
        if not whole and abs(good - bad) <= _RELATIVE_STEP * max(abs(good), 1e-12) * (
            0.01 if field.endswith("fraction") else 1.0
        ):
            break
        middle = _between(bad, good, whole)
        cost = attempt(middle)
        if cost is None:
            bad = middle
        else:
            good, best = middle, _Try(cost, middle)
    return best


def _loosest(field: str, now: float) -> float:
    if field in ("vram_fraction", "nvlink_fraction"):
        return 1.0
    if field == "accuracy_floor_fraction":
        return 0.01
    return max(now, 1.0) * 1e4


def _between(bad: float, good: float, whole: bool) -> float:
    """Middle of the interval; geometric where it spans more than a factor of two, so that few steps reach any size."""
    if whole:
        return float(math.floor((bad + good) / 2.0))
    if bad > 0.0 and good / bad > 2.0:
        return math.sqrt(bad * good)
    return (bad + good) / 2.0


def _supply_changes(
    instance: Instance, factors: Factors, options: Options, stop: Stop | None, deadline: float
) -> Iterator[SingleChange]:
    """More of one accelerator."""
    for key, now in sorted(instance.choices.supply.items()):

        def attempt(count: int, key: str = key) -> float | None:
            supply = {**instance.choices.supply, key: count}
            changed = instance.model_copy(update={"choices": instance.choices.model_copy(update={"supply": supply})})
            return _solved(changed, factors, options, stop, deadline)

        good, bad = 1_000_000, now
        cost = attempt(good)
        if cost is None:
            continue
        best = _Try(cost, float(good))
        while good - bad > 1:
            middle = round(math.sqrt(bad * good)) if bad > 0 and good / bad > 4 else (bad + good) // 2
            cost = attempt(middle)
            if cost is None:
                bad = middle
            else:
                good, best = middle, _Try(cost, float(middle))
        yield _change("supply", f"choices.supply.{key}", float(now), best)
