"""The least change of one field that suffices, other changes given.

A looser limit never makes a plan impossible, so the least change is found by halving the way to a value at which the
field limits nothing, to a thousandth of it; whole numbers exactly. Two shortcuts save solves: the least use of a cap is
the optimum of a program with that use as its objective, and the first value of a deployment's limit at which every
class has a candidate shows in what candidates reach with one request in flight.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from optimizer.advice.attempt import OutOfTime, Search
from optimizer.advice.fields import Changes, Movable, changed
from optimizer.catalog import load_catalog
from optimizer.costs.environment import water_m3_per_kwh
from optimizer.limits import limit
from optimizer.offer import program_data
from optimizer.program import build_program
from optimizer.program_data import ProgramData
from optimizer.screen import Screened
from optimizer.setting import build_setting
from optimizer.solver import Compiled, Reason

#: Halving ends at this share of the value; values are said with so many digits, rounded to the looser side.
RESOLUTION, _DIGITS = 1e-3, 5
#: Fractions and probabilities are found to a hundred-thousandth.
_FRACTION_RESOLUTION = 1e-5
_STEPS = 60
#: Limits whose least sufficient value shows in what candidates reach with one request in flight.
_REACHED = {
    "vram_gib_per_accelerator": "vram_gib",
    "weights_gib_per_accelerator": "weights_gib",
    "tpot_ms": "tpot_ms",
    "ttft_ms": "ttft_ms",
    "latency_ms": "latency_ms",
    "nvlink_cap_gb_s": "nvlink_gb_s",
    "accuracy": "accuracy",
}
Usage = Callable[[Any, ProgramData], Any]


def least_change(search: Search, field: Movable, given: Changes) -> float | None:
    """Least value of a field that suffices beside the changes ``given``; None where none does.

    Raises
    ------
    OutOfTime: not decided in time.
    """
    if not search.solvable({**given, field.path: field.loosest}):
        return None

    def suffices(value: float) -> bool:
        return search.solvable({**given, field.path: value})

    if field.is_whole:
        return _least_whole(field, suffices, _shortcut(search, field, given))
    if field.path == "site.rack_kw":
        return _least_step(search, field, given, suffices)
    bad = field.now
    for guess in _guesses(search, field, given):
        near = looser(guess, field)
        if not _between(near, bad, field.loosest):
            continue
        if suffices(near):
            tighter = near - _step(near, field) if field.is_up else near + _step(near, field)
            if not _between(tighter, bad, near) or not suffices(tighter):
                return near
            return _halved(field, suffices, bad, tighter)
        bad = near
    return _halved(field, suffices, bad, field.loosest)


def _between(value: float, bad: float, good: float) -> bool:
    return min(bad, good) < value < max(bad, good)


def _step(value: float, field: Movable) -> float:
    """Change that counts as none."""
    if field.unit in ("fraction", "probability"):
        return _FRACTION_RESOLUTION
    return RESOLUTION * abs(value)


def _halved(field: Movable, suffices: Callable[[float], bool], bad: float, good: float) -> float:
    """The good end of an interval that is halved until it counts as a point."""
    # Where the loosest value alone suffices, one attempt says so.
    if good == field.loosest and not suffices(good - _step(good, field) if field.is_up else good + _step(good, field)):
        return good
    for _ in range(_STEPS):
        if abs(good - bad) <= _step(good, field):
            break
        if min(bad, good) > 0.0 and max(bad, good) / min(bad, good) > 2.0:
            middle = math.sqrt(bad * good)
        else:
            middle = (bad + good) / 2.0
        if suffices(middle):
            good = middle
        else:
            bad = middle
    rounded = looser(good, field)
    low, high = min(field.now, field.loosest), max(field.now, field.loosest)
    return min(max(rounded, low), high)


def _least_whole(field: Movable, suffices: Callable[[float], bool], guess: float | None) -> float:
    """Least whole change; ``guess`` is tried with its tighter neighbour first."""
    one = 1.0 if field.is_up else -1.0
    bad, good = field.now, field.loosest
    if guess is not None and _between(guess, bad, good):
        if suffices(guess):
            good = guess
            if good - one == bad or not suffices(good - one):
                return good
            good -= one
        else:
            bad = guess
    # Double the way first: what is needed is near as a rule, and the loosest value far.
    width = one
    while abs(good - bad) > abs(width):
        if suffices(bad + width):
            good = bad + width
            break
        bad += width
        width *= 2.0
    while abs(good - bad) > 1.0:
        middle = bad + one * max(1.0, float(abs(good - bad) // 2))
        if suffices(middle):
            good = middle
        else:
            bad = middle
    return good


def _least_step(search: Search, field: Movable, given: Changes, suffices: Callable[[float], bool]) -> float:
    """Least power of a rack: a further server fits at whole multiples of what servers draw, so only these count."""
    free = build_setting(changed(search.instance, {**given, field.path: field.loosest}), load_catalog())
    steps = sorted(
        {
            looser(pool.server_kw * count, field)
            for pool in free.pools
            if pool.is_bought
            for count in range(1, pool.per_rack + 1)
            if pool.server_kw * count > field.now
        }
    )
    low, high = 0, len(steps)
    while low < high:
        middle = (low + high) // 2
        if suffices(steps[middle]):
            high = middle
        else:
            low = middle + 1
    return steps[low] if low < len(steps) else field.loosest


def looser(value: float, field: Movable) -> float:
    """The value with few digits, rounded to the side where it still suffices."""
    if value == 0.0 or not math.isfinite(value):
        return value
    scale = 10.0 ** (_DIGITS - 1 - math.floor(math.log10(abs(value))))
    return (math.ceil(value * scale - 1e-9) if field.is_up else math.floor(value * scale + 1e-9)) / scale


def _guesses(search: Search, field: Movable, given: Changes) -> list[float]:
    """Values near which the least change may lie, tighter ones first."""
    found = []
    if field.limit in _REACHED and field.path.startswith("targets."):
        first = _first_value(search.offered({**given, field.path: field.loosest}).screened, field)
        if first is not None:
            found.append(first)
    use = _shortcut(search, field, given)
    if use is not None:
        found.append(use * (1.0 + 1e-7))
    return sorted(found, reverse=not field.is_up)


def _first_value(screened: Screened, field: Movable) -> float | None:
    """Value at which every class has its first candidate: with one request in flight, other limits as they are.

    ``screened`` is that at the loosest value, where the field itself keeps nothing out.
    """
    name = field.limit
    kept = [kept for one, kept in screened.passes.items() if one != name]
    if not kept:
        return None
    others = np.logical_and.reduce(kept)
    reached = getattr(screened.alone, _REACHED[name])
    values = []
    for index in range(len(screened.candidates.setting.classes)):
        mine = others & (screened.candidates.class_index == index) & np.isfinite(reached)
        if not mine.any():
            return None
        values.append(float(np.max(reached[mine]) if name == "accuracy" else np.min(reached[mine])))
    if name != "accuracy":
        return max(values)
    baseline = screened.candidates.setting.instance.targets.accuracy_baseline_score
    # A score is rounded down: the last bits of a division must not lie above what is reached.
    return min(values) if field.unit == "fraction" else min(values) * (baseline or 0.0) * (1.0 - 1e-12)


def _shortcut(search: Search, field: Movable, given: Changes) -> float | None:
    """Least use of a cap that any plan needs when the cap itself is gone; None where there is no such program."""
    usage = _usage(field)
    if usage is None:
        return None
    data = program_data(search.offered({**given, field.path: field.loosest}), reduce=False)
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
        if outcome.reason in (Reason.TIME_LIMIT, Reason.INTERRUPT):
            raise OutOfTime
        return None
    needed = float(costs @ compiled.rounded(outcome.values))
    return float(round(needed)) if field.is_whole else needed


def _usage(field: Movable) -> Usage | None:
    """What a plan uses of a cap, as an expression of the program."""
    if field.path.startswith("choices.supply."):
        key = field.path.removeprefix("choices.supply.")
        return lambda model, data: sum(
            data.pools[q].server_type.accelerators * model.Servers[q] for q in data.accelerator_pools.get(key, ())
        )
    usages: dict[str, Usage] = {
        "site.power_kw": _power,
        "site.racks": _racks,
        "site.floor_m2": _floor,
        "site.carbon_tonnes_per_year": partial(
            _environment, per_kwh=lambda data, q: data.carbon_t_per_kwh(data.pools[q])
        ),
        "site.water_m3_per_year": partial(_environment, per_kwh=lambda data, q: water_m3_per_kwh(data.pools[q])),
        "economics.budget_capex_usd": _capital,
        "economics.budget_usd_per_year": _yearly,
        "choices.max_accelerator_types": _types,
    }
    return usages.get(field.path)


def _power(model: Any, data: ProgramData) -> Any:
    return sum(data.pools[q].server_kw * data.pools[q].pue_design * model.Servers[q] for q in data.hall)


def _racks(model: Any, data: ProgramData) -> Any:
    return sum(model.Racks[q] if q in model.Racks else model.Servers[q] for q in data.hall)


def _floor(model: Any, data: ProgramData) -> Any:
    racks = _racks(model, data)
    return 0 if isinstance(racks, int) else data.setting.instance.site.rack_floor_m2 * racks


def _environment(model: Any, data: ProgramData, per_kwh: Callable[[ProgramData, str], float]) -> Any:
    return sum(per_kwh(data, q) * data.it_kwh(model, q) for q in data.hall if per_kwh(data, q))


def _capital(model: Any, data: ProgramData) -> Any:
    return sum(usd * data.quantity(model, key) for key, usd in data.capital_by_quantity.items())


def _yearly(model: Any, data: ProgramData) -> Any:
    return sum(usd * data.quantity(model, key) for key, usd in data.yearly_by_quantity.items())


def _types(model: Any, data: ProgramData) -> Any:
    del data
    return sum(model.TypeUsed[a] for a in model.TypeUsed)


def label_of(field: Movable) -> str:
    """Unit as it is told: that of the field, or of its limit."""
    return field.unit or (limit(field.limit).unit if field.limit else "")
