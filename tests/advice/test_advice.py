"""Advice, followed, gives a plan of the price that is said; no smaller change of the same field does."""

import json
from functools import cache
from random import Random
from typing import Any

import pytest

from optimizer.advice.advise import Advice, advise
from optimizer.advice.attempt import Search
from optimizer.advice.clash import together
from optimizer.advice.fields import Changes, changed, movable, widenable
from optimizer.explain import diagnose
from optimizer.instance.model import Instance
from optimizer.limits import LIMITS
from optimizer.solver import Options
from optimizer.studies.best import best_plan
from tests.advice.draws import draw
from tests.core.hand import catalog
from tests.core.real import offer, small

#: Price and value agree to what the solver is asked for; a value is the least to a thousandth, fractions to 1e-5.
_PRICE, _LESS, _LESS_FRACTION = 3e-6, 2.5e-3, 5e-5
EXACT = Options(gap=1e-6, time_limit_s=600.0)


def advice(given: Instance, *, widen: bool = True) -> Advice:
    """What is advised."""
    found = advise(Search(offer(given), EXACT, None, float("inf")), widen=widen)
    assert found.is_complete
    return found


def usd_per_hour(given: Instance, changes: Changes) -> float | None:
    """Price of the changed instance, read again and solved from its beginning; None: nothing fits."""
    plan = best_plan(changed(given, changes))
    return None if plan is None else plan.bill.usd_per_hour


def tighter(field: str, unit: str, now: float, needed: float) -> float | None:
    """A value a little tighter than what is needed; None where there is none between."""
    if unit in ("racks", "accelerators", "types", "servers", "requests", "U"):
        step = 1.0
    else:
        step = _LESS_FRACTION if unit in ("fraction", "probability") else _LESS * abs(needed)
    less = needed - step if needed > now else needed + step
    return less if min(now, needed) < less < max(now, needed) else None


def faults(given: Instance, found: Advice, random: Random) -> list[str]:
    """What is wrong with the advice for an instance."""
    wrong = []
    if not (found.changes or found.widenings or found.combined):
        wrong.append("no advice")
    for one in found.changes:
        price = usd_per_hour(given, {one.field: one.needed})
        if price is None or one.usd_per_hour is None or abs(price / one.usd_per_hour - 1.0) > _PRICE:
            wrong.append(f"{one.summary}: {price} for {one.usd_per_hour}")
        less = tighter(one.field, one.unit, one.now, one.needed)
        if less is not None:
            between = one.now + random.random() * (less - one.now) if random.random() < 0.4 else less
            whole = one.unit in ("racks", "accelerators", "types", "servers", "requests", "U")
            wrong += [
                f"{one.summary}: {value} suffices"
                for value in {less, float(round(between)) if whole else between}
                if value != one.now and usd_per_hour(given, {one.field: value}) is not None
            ]
    for wider in found.widenings:
        price = usd_per_hour(given, widened(given, wider.field, wider.added))
        if price is None or abs(price / wider.usd_per_hour - 1.0) > _PRICE:
            wrong.append(f"{wider.summary}: {price} for {wider.usd_per_hour}")
    for several in found.combined:
        changes: Changes = {}
        for move in several.moves:
            changes |= widened(given, move.field, move.added) if move.needed is None else {move.field: move.needed}
        price = usd_per_hour(given, changes)
        if price is None or abs(price / several.usd_per_hour - 1.0) > _PRICE:
            wrong.append(f"{several.summary}: {price} for {several.usd_per_hour}")
        for move in several.moves:
            rest = {path: value for path, value in changes.items() if path != move.field}
            if usd_per_hour(given, rest) is not None:
                wrong.append(f"{several.summary}: {move.field} is not needed")
            if move.now is not None and move.needed is not None:
                less = tighter(move.field, move.unit, move.now, move.needed)
                if less is not None and usd_per_hour(given, {**rest, move.field: less}) is not None:
                    wrong.append(f"{several.summary}: {less} of {move.field} suffices")
    return wrong


def widened(given: Instance, field: str, added: tuple[str, ...]) -> Changes:
    """The change that adds members to a list of choices."""
    (choice,) = (one for one in widenable(given, catalog()) if one.path == field)
    members = [one for one in choice.widest if one in choice.now or str(one) in added]
    return {field: tuple(members)}


def clash_faults(given: Instance, found: Advice) -> list[str]:
    """Whether the clash is one, and a smallest one."""
    parts = {one.path: one for one in movable(given)}
    mine = [parts[one.field] for one in found.clash if one.field in parts]
    others = together([one for one in parts.values() if one not in mine])
    if len(mine) != len(found.clash):
        return []  # choices are part of it
    wrong = [] if usd_per_hour(given, others) is None else ["the clash alone is none"]
    wrong += [
        f"the clash does not need {one.path}"
        for one in mine
        if usd_per_hour(given, {**others, **together([one])}) is None
    ]
    return wrong


def _check(seeds: range, *, widen: bool) -> None:
    told = []
    for seed in seeds:
        given = draw(seed)
        found = advice(given, widen=widen)
        wrong = faults(given, found, Random(seed))
        if seed % 4 == 0:
            wrong += clash_faults(given, found)
        told += [f"seed {seed}: {line}" for line in wrong]
    assert not told, "\n".join(told)


def test_advice_followed_solves_and_no_smaller_change_does() -> None:
    _check(range(4), widen=False)


@pytest.mark.slow
def test_advice_of_two_hundred_instances() -> None:
    _check(range(4, 204), widen=False)


@pytest.mark.slow
def test_advice_with_wider_choices() -> None:
    _check(range(300, 308), widen=True)


@cache
def powerless() -> tuple[Instance, Advice]:
    """An instance with a cap of power that is too low, and the whole advice."""
    given = small(
        site={"power_kw": 2.0}, choices={"sourcing": ["buy"], "accelerators": ["l40s"], "cooling": ["dynamic"]}
    )
    return given, advice(given)


@pytest.mark.parametrize("attempts", [0, 3, 12, 30])
def test_a_search_cut_short_says_so_and_tells_what_it_knows(attempts: int) -> None:
    given, full = powerless()
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > attempts

    found = advise(Search(offer(given), EXACT, stop, float("inf")))
    assert not found.is_complete
    assert found.changes == full.changes[: len(found.changes)]
    assert found.widenings == full.widenings[: len(found.widenings)]
    assert found.clash in ((), full.clash)
    diagnosis = diagnose(offer(given), EXACT, None, 0.0)
    assert not diagnosis.is_complete
    assert any("time came before" in text for text in diagnosis.messages)


def test_narrow_options_are_told_from_limits_that_clash() -> None:
    narrow = small(choices={"schemes": ["w4a16-int4"]}, targets={"accuracy_floor_fraction": 1.0})
    found = advice(narrow)
    assert found.cause == "choices"
    assert [one.field for one in found.widenings] == ["choices.schemes"]
    clashing = advice(small(targets={"tpot_ms": 0.001}))
    assert clashing.cause == "limits"
    assert not clashing.widenings
    nothing = advice(small(workload={"request": {"input_tokens": 900_000, "output_tokens": 100}}))
    assert nothing.cause == "nothing_helps"
    assert (nothing.clash, nothing.changes, nothing.combined) == ((), (), ())


def test_two_classes_have_targets_and_demand_of_their_own() -> None:
    content: dict[str, Any] = json.loads(small().model_dump_json(by_alias=True, exclude_unset=True))
    request = {"input_tokens": 500, "output_tokens": 100}
    content["workload"] = {
        "model": content["workload"]["model"],
        "classes": [
            {"name": "chat", "request": request, "demand": {"requests_per_s": 20}, "targets": {"tpot_ms": 0.5}},
            {"name": "batch", "request": request, "demand": {"requests_per_s": 20}},
        ],
    }
    given = Instance.model_validate_json(json.dumps(content))
    found = advice(given, widen=False)
    assert [one.field for one in found.changes] == ["workload.classes[0].targets.tpot_ms"]
    assert [one.field for one in found.clash] == ["workload.classes[0].targets.tpot_ms"]
    assert faults(given, found, Random(0)) == []


def test_every_limit_that_an_instance_sets_can_be_moved() -> None:
    """A new limit needs a row in ``optimizer.advice.fields``, or nobody is told to move it."""
    given = small(
        targets={
            "tpot_ms": 50,
            "ttft_ms": 500,
            "latency_ms": 5000,
            "vram_gib_per_accelerator": 70,
            "weights_gib_per_accelerator": 60,
            "nvlink_gb_s": 100,
            "nvlink_fraction": 0.9,
            "confidence": 0.8,
            "accuracy_confidence": 0.8,
            "spare_servers": 1,
            "accuracy_floor_fraction": 0.95,
        },
        site={"power_kw": 100, "racks": 3, "rack_kw": 20, "carbon_tonnes_per_year": 100, "water_m3_per_year": 100},
        economics={"budget_capex_usd": 1e6, "budget_usd_per_year": 1e6},
        choices={
            "supply": {"l40s": 8},
            "max_accelerator_types": 1,
            "serving_roles": ["unified", "disaggregated"],
        },
    )
    found = movable(given)
    serving = {row.name for row in LIMITS if _is_set(given, row.field) and not row.name.startswith("training")}
    assert {one.limit for one in found if one.limit} == serving
    for one in found:
        assert changed(given, {one.path: one.loosest}) != given


def _is_set(given: Instance, path: str) -> bool:
    """Whether the instance has a value at a path."""
    value: Any = given
    for step in path.split("."):
        value = getattr(value, step, None)
    return value not in (None, {}, ())
