"""The stages before the program, kept between cases: what a field does not touch is not built again.

Candidates are predicted once for all cases that differ in limits, prices or demand; a screening once for all that
share the limits of a deployment; costs once for all that share prices.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from optimizer.candidates import Candidates, build_candidates
from optimizer.catalog import load_catalog
from optimizer.costs import recovery as recovery_costs
from optimizer.costs import setting_terms
from optimizer.costs.term import Term
from optimizer.instance.model import Instance
from optimizer.models import ServedModel, served_model
from optimizer.offer import Offer, make_offer
from optimizer.performance.factors import factors_with
from optimizer.schemes import SchemeOption, scheme_options
from optimizer.screen import class_demand, screen
from optimizer.setting import Setting, build_setting

T = TypeVar("T")

#: Stages kept of each sort: enough for the fields that move slowest, little memory.
_KEPT: Final = 4
#: Settings kept: a grid of prices comes back for every value of the other fields (about 0.2 MB each).
_KEPT_SETTINGS: Final = 256


@dataclass(frozen=True, slots=True)
class StageKeys:
    """Which cases share a stage: equal keys, equal stage. ``screen`` and ``price`` hold within one ``base``."""

    base: Hashable
    screen: Hashable
    price: Hashable


class _Recent:
    """The last few results by key."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._held: OrderedDict[Hashable, Any] = OrderedDict()
        self._kept = kept

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of a key, made when it is not held."""
        if key not in self._held:
            self._held[key] = make()
            while len(self._held) > self._kept:
                self._held.popitem(last=False)
        self._held.move_to_end(key)
        found: T = self._held[key]
        return found


@dataclass(frozen=True, slots=True)
class _Prices:
    """What prices alone decide: the setting, with the limits of whatever case came first, schemes, cost terms."""

    setting: Setting
    schemes: tuple[SchemeOption, ...]
    terms: tuple[Term, ...]


class Stages:
    """Offers of cases, each built from the latest stage that it shares with an earlier case."""

    def __init__(self) -> None:
        self._candidates, self._screened, self._priced = _Recent(), _Recent(), _Recent()
        self._prices = _Recent(_KEPT_SETTINGS)

    def offer(self, instance: Instance, keys: StageKeys) -> Offer:
        """The offer of an instance; cases of equal keys differ in limits of the fleet and demand only."""
        priced = self._priced.get((keys.base, keys.screen, keys.price), lambda: self._priced_offer(instance, keys))
        return with_instance(priced, instance)

    def _priced_offer(self, instance: Instance, keys: StageKeys) -> Offer:
        first = self._screened.get((keys.base, keys.screen), lambda: self._screened_offer(instance, keys))
        if first[1] == keys.price:
            return first[0]
        repriced = _repriced(first[0], self._prices_of(instance, keys, first[0].screened.candidates.model))
        return make_offer(screen(_built(instance))) if repriced is None else repriced

    def _screened_offer(self, instance: Instance, keys: StageKeys) -> tuple[Offer, Hashable]:
        candidates, price = self._candidates.get(keys.base, lambda: (_built(instance), keys.price))
        if price != keys.price:
            moved = _repriced_candidates(candidates, self._prices_of(instance, keys, candidates.model))
            candidates = _built(instance) if moved is None else moved
        return make_offer(screen(_candidates_with(candidates, instance))), keys.price

    def _prices_of(self, instance: Instance, keys: StageKeys, model: ServedModel) -> _Prices:
        """Prices do not hang on limits of a deployment or of the fleet, so they are kept whatever these are."""

        def made() -> _Prices:
            setting = build_setting(instance, load_catalog())
            return _Prices(setting, scheme_options(setting, model), tuple(setting_terms(setting)))

        return self._prices.get((keys.base, keys.price), made)


def _built(instance: Instance) -> Candidates:
    setting = build_setting(instance, load_catalog())
    model = served_model(instance, setting.catalog)
    schemes = scheme_options(setting, model)
    return build_candidates(setting, model, schemes, factors_with(instance.workload.calibration_document()))


def with_instance(offer: Offer, instance: Instance) -> Offer:
    """The same offer for an instance that differs in limits of the fleet and in demand only."""
    candidates = _candidates_with(offer.screened.candidates, instance)
    return replace(offer, screened=replace(offer.screened, candidates=candidates), demand=class_demand(candidates))


def _candidates_with(candidates: Candidates, instance: Instance) -> Candidates:
    setting = replace(candidates.setting, instance=instance, classes=instance.workload.all_classes())
    return replace(candidates, setting=setting)


def _repriced_candidates(candidates: Candidates, prices: _Prices) -> Candidates | None:
    """The same candidates under other prices; None where prices change what is offered at all."""
    setting = prices.setting
    if not _same_but_prices(candidates.setting, setting, candidates.schemes, prices.schemes):
        return None
    types = {one.id: one for one in setting.server_types}
    return replace(
        candidates,
        setting=setting,
        schemes=prices.schemes,
        server_types=tuple(types[one.id] for one in candidates.server_types),
    )


def _repriced(offer: Offer, prices: _Prices) -> Offer | None:
    """The same offer under other prices; None where prices change what is offered at all."""
    candidates = _repriced_candidates(offer.screened.candidates, prices)
    if candidates is None:
        return None
    used = sorted({int(index) for index in candidates.scheme_index[offer.screened.rows[offer.kept]]})
    prepared = recovery_costs.terms(prices.setting, [candidates.schemes[index] for index in used])
    return replace(offer, screened=replace(offer.screened, candidates=candidates), terms=(*prices.terms, *prepared))


def _same_but_prices(
    before: Setting, after: Setting, schemes: tuple[SchemeOption, ...], others: tuple[SchemeOption, ...]
) -> bool:
    """Whether two settings have the same server types, pools and schemes, whatever they cost."""
    return (
        [one.id for one in before.server_types] == [one.id for one in after.server_types]
        and [one.id for one in before.pools] == [one.id for one in after.pools]
        and [(one.id, one.accuracy) for one in schemes] == [(one.id, one.accuracy) for one in others]
        and before.levels == after.levels
    )
