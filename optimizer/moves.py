"""The least move of each single limit that makes an instance solvable, each verified and priced by solving.

A cap of the fleet (power, racks, money, supply, types) is moved to the least use of it that any plan needs: the
program with that use as its objective and without the cap. A limit of one deployment is moved to the first value at
which every class has a candidate, and further, by bisection, where the caps of the fleet ask for more. A looser limit
never makes a plan impossible, so both are exact to their resolution.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from optimizer.answer import Stop, answer
from optimizer.candidates import Candidates, build_candidates
from optimizer.catalog import load_catalog
from optimizer.costs.environment import water_m3_per_kwh
from optimizer.instance.model import Instance
from optimizer.limits import limit
from optimizer.models import served_model
from optimizer.offer import Offer, Without, make_offer, program_data
from optimizer.performance.factors import Factors
from optimizer.plan import SingleChange
from optimizer.program import build_program
from optimizer.program_data import ProgramData
from optimizer.schemes import scheme_options
from optimizer.screen import Screened, screen
from optimizer.setting import build_setting
from optimizer.solver import Compiled, Options, Reason

#: Limits of one deployment, with the instance field that sets each.
DEPLOYMENT_FIELDS = {
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
#: Limits whose least sufficient value shows in what candidates reach with one request in flight.
_REACHED = {
    "vram_gib_per_accelerator": "vram_gib",
    "weights_gib_per_accelerator": "weights_gib",
    "tpot_ms": "tpot_ms",
    "ttft_ms": "ttft_ms",
    "latency_ms": "latency_ms",
    "nvlink_cap_gb_s": "nvlink_gb_s",
}
#: Bisection ends at this share of the value; values are said with so many digits, rounded to the looser side.
_RESOLUTION, _DIGITS = 1e-3, 5
_STEPS = 24


@dataclass(frozen=True, slots=True)
class Search:
    """What every attempt needs."""

    offer: Offer
    factors: Factors
    options: Options
    stop: Stop | None
    deadline: float

    @property
    def instance(self) -> Instance:
        """The instance that has no plan."""
        return self.offer.screened.candidates.setting.instance

    def over(self) -> bool:
        """Whether time is up or the search was asked to stop."""
        return time.perf_counter() > self.deadline or (self.stop is not None and self.stop())

    def limited(self, gap: float | None = None) -> Options:
        """Options within the time that is left."""
        left = max(1e-3, self.deadline - time.perf_counter())
        return replace(self.options, time_limit_s=left, gap=self.options.gap if gap is None else gap)


def single_changes(offer: Offer, options: Options, stop: Stop | None, deadline: float) -> Iterator[SingleChange]:
    """Every single limit that suffices alone, by the least it must move, with the cost of the plan it opens."""
    search = Search(offer, offer.screened.candidates.factors, options, stop, deadline)
    for name, (section, field) in DEPLOYMENT_FIELDS.items():
        now = current(search.instance, section, field)
        if now is not None and not search.over():
            yield from _described(
                search, name, section, field, now, _least_deployment_move(search, name, section, field, now)
            )
    for name, section, field, key, usage in _caps(search.instance):
        if not search.over():
            now = _cap_now(search.instance, section, field, key)
            path = field if key is None else f"{field}.{key}"
            needed = _least_use(search, section, field, key, usage)
            yield from _described(search, name, section, path, now, needed)
    yield from _rack_change(search)


def _described(
    search: Search, name: str, section: str, field: str, now: float, needed: float | None
) -> Iterator[SingleChange]:
    if needed is None or needed == now:
        return
    usd = _cost(search, with_value(search.instance, section, field, needed))
    if usd is None:
        return
    rule = limit(name)
    unit = "fraction" if field.endswith("fraction") else rule.unit
    verb = "raise" if needed > now else "lower"
    path = f"{section}.{field}"
    yield SingleChange(
        field=path,
        limit=name,
        unit=unit,
        now=now,
        needed=needed,
        usd_per_hour=usd,
        summary=f"{verb} {path} {now:,.6g} -> {needed:,.6g} {unit}",
    )


def current(instance: Instance, section: str, field: str) -> float | None:
    """Value of a field that limits something, or None where nothing is limited by it."""
    if field == "accuracy_floor_fraction":
        return None if instance.targets.accuracy_floor_score is not None else instance.targets.accuracy_floor()
    value = getattr(getattr(instance, section), field)
    return None if value is None else float(value)


def with_value(instance: Instance, section: str, field: str, value: float | None) -> Instance:
    """The instance with one limit moved; None takes the limit away. ``supply.ID`` names one accelerator's supply."""
    part = getattr(instance, section)
    name, _, key = field.partition(".")
    if key:
        supply = {one: count for one, count in part.supply.items() if one != key}
        if value is not None:
            supply[key] = round(value)
        return instance.model_copy(update={section: part.model_copy(update={"supply": supply})})
    whole = name in ("racks", "max_accelerator_types") and value is not None
    return instance.model_copy(update={section: part.model_copy(update={name: round(value or 0) if whole else value})})


def _offered(search: Search, instance: Instance) -> Offer:
    """Candidates of a changed instance, screened; predictions are made again only where the change touches them."""
    candidates = search.offer.screened.candidates
    before = candidates.setting.instance
    same = (
        before.targets.vram_fraction == instance.targets.vram_fraction
        and before.targets.accuracy_floor() == instance.targets.accuracy_floor()
        and before.site.rack_kw == instance.site.rack_kw
    )
    if same:
        moved: Candidates = replace(candidates, setting=replace(candidates.setting, instance=instance))
    else:
        setting = build_setting(instance, load_catalog())
        model = served_model(instance, setting.catalog)
        moved = build_candidates(setting, model, scheme_options(setting, model), search.factors)
    return make_offer(screen(moved))


def _cost(search: Search, instance: Instance) -> float | None:
    """USD/hour of the cheapest plan of a changed instance, or None where it has none."""
    found = answer(_offered(search, instance), search.limited(), Without(), search.stop, break_ties=False)
    return found.outcome.objective if found.fleet is not None else None


def _solvable(search: Search, instance: Instance) -> bool:
    """Whether a changed instance has any plan: a simple one at hand, or the first that the solver meets."""
    offer = _offered(search, instance)
    data = program_data(offer)
    if data is None:
        return False
    if data.start is not None:
        return True
    return answer(offer, search.limited(gap=0.5), Without(), search.stop, break_ties=False).fleet is not None


def _looser(value: float, name: str) -> float:
    """The value with few digits, rounded to the side where it still suffices."""
    if value == 0.0 or not math.isfinite(value):
        return value
    scale = 10.0 ** (_DIGITS - 1 - math.floor(math.log10(abs(value))))
    up = limit(name).direction == "<="
    return (math.ceil(value * scale - 1e-9) if up else math.floor(value * scale + 1e-9)) / scale


def _least_deployment_move(search: Search, name: str, section: str, field: str, now: float) -> float | None:
    """Least value of a deployment limit that suffices."""
    if not _solvable(search, with_value(search.instance, section, field, loosest(field, now))):
        return None
    first = _first_value(search.offer.screened, name, now)
    if first is not None:
        first = _looser(first, name)
        if _solvable(search, with_value(search.instance, section, field, first)):
            return first
    good, bad = loosest(field, now), now if first is None else first
    for _ in range(_STEPS):
        resolution = _RESOLUTION * (0.01 if field.endswith("fraction") else 1.0)
        if abs(good - bad) <= resolution * abs(good) or search.over():
            break
        middle = math.sqrt(bad * good) if bad > 0.0 and good / bad > 2.0 else (bad + good) / 2.0
        if _solvable(search, with_value(search.instance, section, field, middle)):
            good = middle
        else:
            bad = middle
    rounded = _looser(good, name)
    return min(rounded, loosest(field, now)) if limit(name).direction == "<=" else max(rounded, 0.0)


def _first_value(screened: Screened, name: str, now: float) -> float | None:
    """Value at which every class has its first candidate, from what candidates reach with one request in flight."""
    if name not in _REACHED and name != "accuracy":
        return None
    others = np.logical_and.reduce([kept for one, kept in screened.passes.items() if one != name])
    reached = screened.alone.accuracy if name == "accuracy" else getattr(screened.alone, _REACHED[name])
    values = []
    for index in range(len(screened.candidates.setting.classes)):
        mine = others & (screened.candidates.class_index == index) & np.isfinite(reached)
        if not mine.any():
            return None
        values.append(float(np.max(reached[mine]) if name == "accuracy" else np.min(reached[mine])))
    return min([now, *values]) if name == "accuracy" else max([now, *values])


def loosest(field: str, now: float) -> float:
    """A value of a field that limits nothing."""
    if field in ("vram_fraction", "nvlink_fraction"):
        return 1.0
    if field == "accuracy_floor_fraction":
        return 0.01
    return max(now, 1.0) * 1e4


Usage = Callable[[Any, ProgramData], Any]


def _caps(instance: Instance) -> Iterator[tuple[str, str, str, str | None, Usage]]:
    """Caps that are set: limit, section, field, key, and what a plan uses of it as an expression of the program."""
    site, economics, choices = instance.site, instance.economics, instance.choices
    if site.power_kw is not None:
        yield "power_kw", "site", "power_kw", None, _power
    for name in ("carbon_tonnes_per_year", "water_m3_per_year"):
        if getattr(site, name) is not None:
            yield name, "site", name, None, partial(_environment, name=name)
    if site.racks is not None:
        yield "racks", "site", "racks", None, _racks
    if economics.budget_capex_usd is not None:
        yield "budget_capex_usd", "economics", "budget_capex_usd", None, _capital
    if economics.budget_usd_per_year is not None:
        yield "budget_usd_per_year", "economics", "budget_usd_per_year", None, _yearly
    for key in sorted(choices.supply):
        yield "supply", "choices", "supply", key, partial(_accelerators, key=key)
    if choices.max_accelerator_types is not None:
        yield "accelerator_types", "choices", "max_accelerator_types", None, _types


def _power(model: Any, data: ProgramData) -> Any:
    return sum(data.pools[q].server_kw * data.pools[q].pue_design * model.Servers[q] for q in data.bought)


def _environment(model: Any, data: ProgramData, name: str) -> Any:
    per_pool: dict[str, Callable[[str], float]] = {
        "carbon_tonnes_per_year": lambda q: data.carbon_t_per_kwh(data.pools[q]),
        "water_m3_per_year": lambda q: water_m3_per_kwh(data.pools[q]),
    }
    return sum(per_pool[name](q) * data.it_kwh(model, q) for q in data.bought if per_pool[name](q))


def _racks(model: Any, data: ProgramData) -> Any:
    return sum(model.Racks[q] if q in model.Racks else model.Servers[q] for q in data.bought)


def _capital(model: Any, data: ProgramData) -> Any:
    return sum(usd * data.quantity(model, key) for key, usd in data.capital_by_quantity.items())


def _yearly(model: Any, data: ProgramData) -> Any:
    return sum(usd * data.quantity(model, key) for key, usd in data.yearly_by_quantity.items())


def _accelerators(model: Any, data: ProgramData, key: str) -> Any:
    return sum(data.pools[q].server_type.accelerators * model.Servers[q] for q in data.accelerator_pools.get(key, ()))


def _types(model: Any, data: ProgramData) -> Any:
    del data
    return sum(model.TypeUsed[a] for a in model.TypeUsed)


def _cap_now(instance: Instance, section: str, field: str, key: str | None) -> float:
    value = getattr(getattr(instance, section), field)
    return float(value[key] if key is not None else value)


def _least_use(search: Search, section: str, field: str, key: str | None, usage: Usage) -> float | None:
    """Least use of a cap that any plan needs when the cap itself is gone; None where no plan exists even then."""
    path = field if key is None else f"{field}.{key}"
    free = with_value(search.instance, section, path, None)
    if field == "max_accelerator_types":
        # The types must stay counted to be minimised, so the cap goes to as many as there are.
        free = with_value(search.instance, section, path, float(len(search.offer.screened.candidates.server_types)))
    data = program_data(_offered(search, free), reduce=False)
    if data is None:
        return None
    model = build_program(data)
    compiled = Compiled(model)
    expression = usage(model, data)
    if isinstance(expression, int):
        return None
    costs = compiled.cost_vector(expression)
    scale = float(np.max(np.abs(costs))) if costs.size else 0.0
    if scale == 0.0:
        return None
    compiled.set_objective(costs / scale)
    outcome = compiled.solve(search.limited(), search.stop)
    if outcome.values is None or outcome.reason is not Reason.OPTIMAL:
        return None
    needed = float(costs @ compiled.rounded(outcome.values))
    whole = field in ("racks", "supply", "max_accelerator_types")
    return float(round(needed)) if whole else _looser(needed * (1.0 + 1e-9), _limit_of(field))


def _limit_of(field: str) -> str:
    # Each of these caps has the name of its field.
    return limit(field).name


def _rack_change(search: Search) -> Iterator[SingleChange]:
    """Racks that may draw more: the limit decides which cooling options exist for which server at all."""
    now = search.instance.site.rack_kw
    if now is None or search.over():
        return
    if not _solvable(search, with_value(search.instance, "site", "rack_kw", None)):
        return
    # A further server fits a rack at whole multiples of what servers draw: only these values change anything.
    free = build_setting(with_value(search.instance, "site", "rack_kw", None), load_catalog())
    steps = sorted(
        {
            _looser(pool.server_kw * count, "rack_kw")
            for pool in free.pools
            if pool.is_bought
            for count in range(1, pool.per_rack + 1)
            if pool.server_kw * count > now
        }
    )
    low, high = 0, len(steps) - 1
    while low < high:
        middle = (low + high) // 2
        if _solvable(search, with_value(search.instance, "site", "rack_kw", steps[middle])):
            high = middle
        else:
            low = middle + 1
    if steps:
        yield from _described(search, "rack_kw", "site", "rack_kw", now, steps[low])
