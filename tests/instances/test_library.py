"""Every shipped instance reads, solves, verifies and gives the answer that is kept beside it."""

import json
from typing import Any

import pytest

from optimizer import api
from optimizer.advice.fields import changed, widenable
from optimizer.catalog import load_catalog
from optimizer.instance.model import Instance
from optimizer.studies.best import best_plan
from optimizer.verify import verify
from tests.instances import library, readme
from tests.instances.library import FOLDER, expected, names, path_of

#: A search that takes long enough to be left out of a quick run.
SLOW = frozenset({"dense-600b-open-median", "chat-70b"})
#: Instances that nothing fits, on purpose.
INFEASIBLE = frozenset({"infeasible", "dense-600b-4bit-recovery", "train-8192-h100-bf16"})
#: Quick ones, solved twice.
TWICE = ("small-8b", "dense-600b-a100", "dense-600b-12gib")


def _each(chosen: tuple[str, ...]) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in chosen]


def _raw(name: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(path_of(name).read_text(encoding="utf-8"))
    return result


def _solve(value: dict[str, Any]) -> api.Solved:
    return api.solve(Instance.model_validate_json(json.dumps(value)), instance_path=FOLDER / "changed.json")


@pytest.mark.parametrize("name", names())
def test_reads_without_a_problem_and_tells_a_story(name: str) -> None:
    instance = api.load(path_of(name))
    assert len(instance.story) > 40
    assert len(instance.story) < 900


@pytest.mark.parametrize("name", _each(names()))
def test_gives_the_expected_answer(name: str, update_goldens: bool) -> None:
    solved = library.solved(name)
    assert (solved.plan is None) == (name in INFEASIBLE)
    if solved.plan is not None:
        assert verify(solved.plan) == ()
    if update_goldens:
        library.keep(name)
    assert list(library.differences(expected(name), library.record(solved))) == []


def test_proposals_give_the_expected_evaluations(update_goldens: bool) -> None:
    if update_goldens:
        library.keep_evaluations()
    assert {path.stem for path in (FOLDER / "proposals").glob("*.json")} == set(library.PROPOSALS)
    assert list(library.differences(library.expected_evaluations(), library.evaluations())) == []


def test_nothing_else_is_kept() -> None:
    assert {path.stem for path in library.EXPECTED.glob("*.json")} == set(names())


def test_readme_is_up_to_date_and_tells_every_instance(update_goldens: bool) -> None:
    if update_goldens:
        readme.write()
    text = readme.README.read_text(encoding="utf-8")
    assert readme.refreshed(text) == text, "run python -m tests.instances.refresh"
    assert readme.told() == set(names())


@pytest.mark.parametrize("name", TWICE)
def test_plan_bytes_are_the_same_twice(name: str) -> None:
    again = api.solve(api.load(path_of(name)), instance_path=path_of(name))
    first = library.solved(name)
    assert first.plan is not None
    assert again.plan is not None
    assert again.plan.model_dump_json() == first.plan.model_dump_json()


# Changes of a run are tested in tests/training.
@pytest.mark.parametrize("name", _each(tuple(sorted(name for name in INFEASIBLE if not readme.is_training(name)))))
def test_each_change_that_the_diagnosis_names_suffices(name: str) -> None:
    diagnosis = library.solved(name).diagnosis
    assert diagnosis is not None
    assert diagnosis.changes
    assert diagnosis.is_complete
    given = api.resolved(api.load(path_of(name)), path_of(name))
    for change in diagnosis.changes:
        plan = best_plan(changed(given, {change.field: change.needed}))
        assert plan is not None
        assert plan.bill.usd_per_hour == pytest.approx(change.usd_per_hour, rel=1e-5)
    for wider in diagnosis.widenings:
        (choice,) = (one for one in widenable(given, load_catalog()) if one.path == wider.field)
        members = tuple(one for one in choice.widest if one in choice.now or str(one) in wider.added)
        plan = best_plan(changed(given, {wider.field: members}))
        assert plan is not None
        assert plan.bill.usd_per_hour == pytest.approx(wider.usd_per_hour, rel=1e-5)


def test_what_the_stories_of_training_imply() -> None:
    """8,192 H100 in 55 days: not in 16 bits, in FP8; 63 million USD within a tenth; both conventions of one run."""
    refused = library.solved("train-8192-h100-bf16").diagnosis
    assert refused is not None
    assert any(one.added == ("fp8",) for one in refused.widenings)
    assert any("552 TFLOP/s" in text and "56% of the 16-bit peak" in text for text in refused.messages)
    eight, dollars = (library.solved(name).plan for name in ("train-8192-h100-fp8", "train-63-million"))
    assert eight is not None
    assert eight.training is not None
    assert eight.training.jobs[0].precision == "fp8"
    assert dollars is not None
    assert dollars.training is not None
    assert dollars.training.usd == pytest.approx(63e6, rel=0.1)
    one, other = (library.solved(f"train-llama-2-70b-{name}").plan for name in ("6nd", "8nd"))
    assert one is not None
    assert other is not None
    assert one.bill.usd_per_year == pytest.approx(other.bill.usd_per_year, rel=1e-3)


def test_more_sites_cost_more_for_the_same_run() -> None:
    names_of = ("train-100k-one-site", "train-100k-two-sites", "train-100k-three-sites")
    plans = [library.solved(name).plan for name in names_of]
    days = [plan.training.days for plan in plans if plan is not None and plan.training is not None]
    usd = [plan.training.usd for plan in plans if plan is not None and plan.training is not None]
    assert len(days) == 3
    assert days == sorted(days)
    assert usd == sorted(usd)


def test_a_mix_is_cheaper_than_any_single_type() -> None:
    plan = library.solved("mixed-fleet").plan
    assert plan is not None
    assert len({group.accelerator for group in plan.servers}) > 1
    value = _raw("mixed-fleet")
    value["choices"]["max_accelerator_types"] = 1
    single = _solve(value).plan
    assert single is not None
    assert single.bill.usd_per_hour > plan.bill.usd_per_hour * 1.001
    assert len({group.accelerator for group in single.servers}) == 1


def test_a_discount_is_reached() -> None:
    plan = library.solved("volume-discounts").plan
    assert plan is not None
    value = _raw("volume-discounts")
    for prices in value["economics"]["prices"].values():
        prices.pop("discounts", None)
        prices.pop("discount_kind", None)
    undiscounted = _solve(value).plan
    assert undiscounted is not None
    assert plan.bill.usd_per_hour < undiscounted.bill.usd_per_hour


def test_the_smallest_useful_instance_is_about_ten_lines() -> None:
    assert len(path_of("small-8b").read_text(encoding="utf-8").splitlines()) <= 12


def test_cooling_variants_differ_in_their_cooling_alone() -> None:
    rest = []
    for name in ("dense-600b-air", "dense-600b-dynamic", "dense-600b-liquid"):
        value = _raw(name)
        del value["name"], value["story"], value["choices"]["cooling"]
        rest.append(value)
    assert rest[0] == rest[1] == rest[2]


@pytest.mark.parametrize("name", ["documents-two-roles", "texts-two-roles"])
def test_two_roles_change_the_decision_for_long_prompts_only(name: str) -> None:
    """Held against the same instance with one pool: cheaper with units for documents, the same plan for long texts."""
    raw = _raw(name)
    both = library.solved(name).plan
    raw["choices"]["serving_roles"] = ["unified"]
    one_pool = _solve(raw).plan
    assert both is not None
    assert one_pool is not None
    if name == "texts-two-roles":
        assert all(one.prefill is None for one in both.deployments)
        assert both.bill.usd_per_hour == pytest.approx(one_pool.bill.usd_per_hour, rel=1e-9)
    else:
        assert any(one.prefill is not None for one in both.deployments)
        assert both.bill.usd_per_hour < 0.8 * one_pool.bill.usd_per_hour
