"""Why nothing fits: which limits kill which candidates, what is nearest, and the advice of ``optimizer.advice``."""

from collections.abc import Callable
from typing import Literal

import numpy as np

from optimizer.advice.advise import Advice, advise
from optimizer.advice.attempt import Search
from optimizer.answer import Stop
from optimizer.candidates import FloatArray
from optimizer.diagnosis import Diagnosis, LimitKills, NearestCandidate
from optimizer.limits import limit
from optimizer.offer import Offer
from optimizer.screen import Screened
from optimizer.solver import Options, solver_name
from optimizer.sources import defaulted, provenance, search_count


def diagnose(
    offer: Offer,
    options: Options,
    stop: Stop | None,
    deadline: float,
    tell: Callable[[int, str], None] = lambda _count, _words: None,
) -> Diagnosis:
    """Why no plan exists, and what to change. ``tell`` hears of each attempt."""
    screened = offer.screened
    instance = screened.candidates.setting.instance
    stage: Literal["no_candidate", "fleet"] = "fleet" if _every_class_has_one(offer) else "no_candidate"
    kills, alone = screened.killed_by_limit(), screened.killed_alone()
    advice = advise(Search(offer, options, stop, deadline, tell))
    told = [*_causes(screened), *_words(advice)]
    return Diagnosis(
        name=instance.name,
        stage=stage,
        search=search_count(screened, int(offer.kept.size)),
        kills=tuple(
            LimitKills(limit=name, field=limit(name).field, kills=count, alone=alone.get(name, 0))
            for name, count in sorted(kills.items(), key=lambda item: (-item[1], item[0]))
        ),
        nearest=nearest_candidate(screened) if stage == "no_candidate" else None,
        cause=advice.cause,
        clash=advice.clash,
        changes=advice.changes,
        widenings=advice.widenings,
        combined=advice.combined,
        is_complete=advice.is_complete,
        messages=tuple(told),
        defaults=defaulted(instance),
        instance=instance,
        provenance=provenance(instance, options, solver_name()),
    )


def _causes(screened: Screened) -> list[str]:
    """What stood in the way before any limit was looked at: servers that cannot be had or cooled, layouts."""
    setting, reasons = screened.candidates.setting, screened.candidates.not_startable
    told = [f"{one.server_type} is not offered with {one.cooling}: {one.reason}" for one in setting.refusals]
    if not setting.pools:
        told.insert(
            0, "no server can be had: none has a price in the allowed ways, or none fits a rack as it may be cooled"
        )
    elif not screened.candidates.size:
        often = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
        why = "; ".join(f"{reason} ({count:,} layouts)" for reason, count in often[:3])
        told.insert(0, f"no layout of the allowed degrees starts on any allowed accelerator: {why}")
    return told


def _words(advice: Advice) -> list[str]:
    """What the advice comes to, in words."""
    if not advice.is_complete:
        return ["time came before every change was tried: there may be others, and smaller ones"]
    if advice.cause == "choices":
        narrow = "the options searched are too narrow: with more of the catalogue a plan meets every limit as it is"
        return [narrow] if advice.changes else [narrow, "no single limit suffices: several must move together"]
    if advice.cause == "nothing_helps":
        return ["no change of limits or choices that was tried gives a plan"]
    told = []
    if not advice.changes:
        told.append("no single limit suffices: several must move together")
    if advice.cause == "limits":
        told.append("more options of the catalogue would not help: the limits clash whatever is chosen")
    return told


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
            "kv_link_gb_s": (seen.kv_link_gb_s, bounds.kv_link_fraction * seen.kv_link_limit_gb_s),
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
        "kv_link_gb_s": bounds.kv_link_fraction * seen.kv_link_limit_gb_s,
    }.get(name)
    bound = getattr(bounds, name) if needed is None else needed
    at = float(np.broadcast_to(bound, values.shape)[row])
    return f"{values[row]:.4g} {rule.unit}, {rule.direction} {at:.4g} needed"
