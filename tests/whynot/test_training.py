"""Why not this run: equal to enumeration with the restriction, which limit fails, what would have to change."""

import copy
import random
from typing import Any

import pytest

from optimizer.api import why_not
from optimizer.errors import InputError, UsageProblems
from optimizer.instance.model import Instance
from optimizer.report.whynot import render
from optimizer.solver import Options
from optimizer.studies.best import best_plan as best_of_study
from optimizer.training.answer import best_plan
from optimizer.training.diagnose import moves
from optimizer.whynot.training_asked import read_asked_run
from tests.oracle.random_training import draw_training, instance_of
from tests.oracle.training import cheapest
from tests.training.small import one_job, read, two_jobs, two_sites


def _asked(seed: int) -> tuple[Instance, str, dict[str, Any]]:
    """(instance, a choice to ask about, the instance's values with its lists cut down to it by hand)."""
    rng = random.Random(seed)
    value = draw_training(seed)
    less = copy.deepcopy(value)
    workload, choices = less["workload"], less["choices"]
    keys = ["accelerator", "cooling", "sourcing", "precision", "tp", "count", *(["site"] if "sites" in value else [])]
    parts = []
    for key in rng.sample(keys, rng.choice((1, 1, 2))):
        if key == "accelerator":
            one = rng.choice(choices["accelerators"])
            choices["accelerators"] = [one]
            choices["supply"] = {k: v for k, v in choices.get("supply", {}).items() if k == one}
        elif key in ("cooling", "sourcing"):
            one = rng.choice(choices[key])
            choices[key] = [one]
        elif key == "precision":
            one = rng.choice(("bf16", "fp8"))
            workload["precisions"] = [one]
        elif key == "tp":
            one = rng.choice(workload["layouts"]["tensor_parallel"])
            workload["layouts"]["tensor_parallel"] = [one]
        elif key == "count":
            one = rng.choice(workload["accelerator_counts"])
            workload["accelerator_counts"] = [one]
        else:
            sites = less.pop("sites")
            less.pop("wan_links")
            site = rng.choice(sites)
            one = site.pop("name")
            less["site"] = site
            choices["sourcing"] = [way for way in choices["sourcing"] if way == "buy"] or ["buy"]
        parts.append(f"{key}={one}")
    if "site" in less and any(part.startswith("site=") for part in parts) and "sourcing" in "".join(parts):
        # A site and a way of renting cannot both be had: asked about alone.
        parts = [part for part in parts if part.startswith("site=")]
        return instance_of(value), parts[0], {**less, "choices": {**choices, "sourcing": ["buy"]}}
    return instance_of(value), ",".join(parts), less


def _enumerated(less: dict[str, Any]) -> float | None:
    """Least cost, or None: nothing keeps the limits, or what remains has no price at all."""
    try:
        instance = instance_of(less)
    except InputError as error:
        if {one.code for one in error.problems} == {"E-CHOICES-020"}:
            return None
        raise
    return cheapest(instance)


def _check(seeds: range) -> tuple[int, int]:
    told, priced, broken = [], 0, 0
    for seed in seeds:
        instance, asked, less = _asked(seed)
        found, expected = why_not(instance, asked), _enumerated(less)
        usd = None if found.plan is None or found.plan.training is None else found.plan.training.usd
        priced, broken = priced + (usd is not None), broken + (usd is None)
        if (usd is None) != (expected is None):
            told.append(f"seed {seed} {asked}: {found.summary}, enumeration {expected}")
        elif usd is not None and expected is not None and abs(usd - expected) > 1e-9 * expected:
            told.append(f"seed {seed} {asked}: {usd}, enumeration {expected}")
        elif usd is None and found.verdict not in ("breaks_limits", "cannot_be_had"):
            told.append(f"seed {seed} {asked}: {found.verdict}")
    assert not told, "\n".join(told)
    return priced, broken


def test_a_forced_choice_costs_what_enumeration_says() -> None:
    priced, broken = _check(range(8))
    assert priced >= 1
    assert broken >= 1


@pytest.mark.slow
def test_eighty_forced_choices_cost_what_enumeration_says() -> None:
    priced, broken = _check(range(8, 88))
    assert min(priced, broken) >= 15


def test_the_distance_is_that_of_two_solves() -> None:
    instance = read(one_job())
    found = why_not(instance, "cooling=d2c_1p,count=64")
    best = best_plan(instance, Options())
    forced = best_plan(read_asked_run("cooling=d2c_1p,count=64", instance).forced(instance), Options())
    assert best is not None
    assert best.training is not None
    assert forced is not None
    assert forced.training is not None
    assert found.distance is not None
    assert found.distance.extra_usd == pytest.approx(forced.training.usd - best.training.usd)
    assert found.verdict in ("costs_more", "costs_the_same", "is_the_plan")
    text = render(found)
    assert max(map(len, text.splitlines())) <= 80
    assert "per year" not in text


def test_the_plans_own_choices_are_the_plan() -> None:
    instance = read(one_job())
    best = best_plan(instance, Options())
    assert best is not None
    found = why_not(instance, f"cooling={best.servers[0].cooling},accelerator={best.servers[0].accelerator}")
    assert found.verdict == "is_the_plan"


def test_a_broken_limit_is_named_with_the_best_that_is_reached() -> None:
    instance = read(one_job(targets__deadline_days=20, workload__accelerator_counts=[64, 128]))
    found = why_not(instance, "count=64")
    assert found.verdict == "breaks_limits"
    (row,) = (one for one in found.nearest_values if one.limit == "deadline_days")
    loose = best_of_study(read(one_job(targets__deadline_days=1000, workload__accelerator_counts=[64])))
    assert loose is not None
    assert loose.training is not None
    # Whatever else it breaks: a layout that lacks memory may be sooner than the soonest that fits.
    assert 20 < row.reached <= loose.training.days * (1.0 + 1e-12)
    assert row.needed == pytest.approx(20)
    # What is advised works for the choice that is asked about, at the cost that is told.
    forced = read_asked_run("count=64", instance).forced(instance)
    assert found.changes
    for change in found.changes:
        (move,) = (one for one in moves(forced) if one.path == change.field)
        plan = best_plan(move.moved(change.needed), Options())
        assert plan is not None
        assert plan.bill.usd_per_hour == pytest.approx(change.usd_per_hour, rel=1e-9)
    text = render(found)
    assert "deadline_days" in text
    assert "per hour" not in text


def test_what_cannot_be_had_and_what_is_left_out() -> None:
    assert why_not(read(one_job()), "precision=fp4").verdict == "cannot_be_had"
    assert why_not(read(one_job()), "accelerator=gb200-nvl72,cooling=rdhx_passive").verdict == "cannot_be_had"
    found = why_not(read(one_job()), "accelerator=h200-141gb-sxm,precision=fp8")
    assert {(one.field, one.value) for one in found.outside} == {
        ("choices.accelerators", "h200-141gb-sxm"),
        ("workload.precisions", "fp8"),
    }


def test_sites_and_several_jobs() -> None:
    alone = why_not(read(two_sites()), "site=east")
    assert alone.verdict == "breaks_limits"
    assert "power_kw" in alone.summary
    both = why_not(read(two_sites()), "site=east|west")
    assert both.verdict == "is_the_plan"
    assert why_not(read(two_jobs()), "cooling=d2c_1p").plan is not None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("h100", "E-WHYNOT-510"),
        ("scheme=w16a16", "E-WHYNOT-511"),
        ("accelerator=h1000", "E-WHYNOT-512"),
        ("site=moon", "E-WHYNOT-512"),
        ("precision=fp5", "E-WHYNOT-512"),
        ("tp=none", "E-WHYNOT-513"),
        ("count=64|128", "E-WHYNOT-513"),
    ],
)
def test_what_is_no_choice_is_refused_in_words(text: str, code: str) -> None:
    with pytest.raises(UsageProblems, match=code):
        why_not(read(one_job()), text)
