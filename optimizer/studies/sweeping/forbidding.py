"""Which limits leave nothing: a set of instance fields of which none can be left out."""

from dataclasses import replace
from typing import Final

import numpy as np

from optimizer.answer import answer
from optimizer.instance.model import Instance
from optimizer.limits import LIMITS, limit
from optimizer.offer import Offer, Without, program_data
from optimizer.screen import Screened
from optimizer.solver import Options, Reason
from optimizer.studies.sweeping.stages import with_instance

#: A cap that decides which pools exist at all: it cannot be dropped from a program.
_OF_POOLS: Final = frozenset({"rack_kw"})


def forbidding_fields(offer: Offer, options: Options) -> tuple[str, ...]:
    """Instance fields whose limits together forbid every plan of an infeasible case.

    Where some class has no candidate: limits of one deployment that leave none, without those that could be dropped.
    Else caps of the fleet, found by dropping one after the other and asking whether anything fits (a deletion filter);
    what is left cannot be spared. ``choices`` when no limit is to blame: nothing can be had, or no layout starts.
    """
    data = program_data(offer, reduce=False)
    if data is None:
        return _of_candidates(offer.screened)
    return _of_fleet(offer, options) or ("choices",)


def _of_candidates(screened: Screened) -> tuple[str, ...]:
    """Limits of one deployment that together leave a class without a candidate."""
    candidates = screened.candidates
    for index in range(len(candidates.setting.classes)):
        mine = candidates.class_index == index
        if np.any(screened.concurrency[mine] > 0):
            continue
        if not mine.any():
            return ("choices",)
        kept = {name: passes[mine] for name, passes in screened.passes.items()}
        names = [name for name, passes in kept.items() if not passes.all()]
        for name in list(names):
            rest = [other for other in names if other != name]
            if not np.any(np.logical_and.reduce([kept[other] for other in rest])) if rest else False:
                names = rest
        return tuple(dict.fromkeys(limit(name).field for name in names)) or ("choices",)
    return ("choices",)


def _of_fleet(offer: Offer, options: Options) -> tuple[str, ...]:
    """Caps of the fleet of which none can be spared for nothing to fit."""
    instance = offer.setting.instance
    every = [
        one.field for one in LIMITS if one.scope == "fleet" and one.direction == "<=" and one.name not in _OF_POOLS
    ]
    caps = [field for field in dict.fromkeys(every) if _value(instance, field) not in (None, {}, ())]
    left = list(caps)
    for cap in caps:
        rest = [one for one in left if one != cap]
        if not _fits(with_instance(offer, _without(instance, [one for one in caps if one not in rest])), options):
            left = rest
    return tuple(left)


def _value(instance: Instance, field: str) -> object:
    section, _, key = field.partition(".")
    return getattr(getattr(instance, section, None), key, None)


def _without(instance: Instance, fields: list[str]) -> Instance:
    for field in fields:
        section, _, key = field.partition(".")
        part = getattr(instance, section)
        empty: object = {} if isinstance(getattr(part, key), dict) else None
        instance = instance.model_copy(update={section: part.model_copy(update={key: empty})})
    return instance


def _fits(offer: Offer, options: Options) -> bool:
    """Whether anything fits; True where the time did not suffice to say, so that no cap is spared without proof."""
    found = answer(offer, replace(options, gap=0.5), Without(), break_ties=False)
    return found.outcome.reason is not Reason.INFEASIBLE
