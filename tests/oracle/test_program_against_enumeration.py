"""The program agrees with an enumeration in plain Python on random small instances.

Features are counted over the instances of a run and printed by ``pytest -s``; the long run asserts that each is there
at least 50 times in 500.
"""

import pytest

from optimizer.answer import answer as solved_program
from optimizer.answer import plan_of
from optimizer.api import resolved, solve
from optimizer.candidates import build_candidates
from optimizer.catalog import load_catalog
from optimizer.instance.model import Instance
from optimizer.models import served_model
from optimizer.offer import Without, make_offer
from optimizer.performance.factors import factors_with
from optimizer.plan import Plan
from optimizer.schemes import scheme_options
from optimizer.screen import screen
from optimizer.setting import build_setting
from optimizer.solver import Options, Reason
from optimizer.verify import verify
from tests.oracle.enumerate import Answer, Choice, TooLarge, answer, without_any
from tests.oracle.random_instances import Drawn, counts, draw

ALWAYS = range(80)
SLOW = range(80, 500)
#: The runner-up of every so many instances is checked too: it takes a search for each thing the plan uses.
RUNNER_UP_EACH = 4
#: A next best plan that takes more steps to find is not checked: without its best type a fleet may grow large.
RUNNER_UP_STEPS = 30_000
TOLERANCE = 2e-6
LEAST_OF_EACH = 50
#: What only the cheapest plan shows is rarer than what an instance asks for.
LEAST_OF = {
    "power cap chosen": 20,
    "discount reached": 30,
    "mix chosen": 40,
    "owned chosen": 30,
    "paid by level chosen": 30,
}


def cheapest(instance: Instance) -> Plan | None:
    """What ``solve`` answers, verified, without what it tells beside: runners-up, ways out of having no plan."""
    instance = resolved(instance, None)
    setting = build_setting(instance, load_catalog())
    model = served_model(instance, setting.catalog)
    factors = factors_with(instance.workload.calibration_document())
    offer = make_offer(screen(build_candidates(setting, model, scheme_options(setting, model), factors)))
    given = instance.solver
    options = Options(gap=given.gap, time_limit_s=given.time_limit_s, threads=given.threads, seed=given.seed)
    found = solved_program(offer, options, Without(), None)
    if found.fleet is None:
        assert found.outcome.reason is Reason.INFEASIBLE
        return None
    plan = plan_of(offer, found, options)
    assert not verify(plan)
    return plan


def difference(one: Drawn) -> str | None:
    """What the program says otherwise than the enumeration, in one line; None where they agree."""
    has_runner_up = one.expected is not None and one.seed % RUNNER_UP_EACH == 0
    plan = solve(one.instance).plan if has_runner_up else cheapest(one.instance)
    if one.expected is None or plan is None:
        if (one.expected is None) == (plan is None):
            return None
        return f"seed {one.seed}: enumeration {_usd(one.expected)}, program {plan and plan.bill.usd_per_year}"
    expected = one.expected.usd_per_year
    if abs(plan.bill.usd_per_year - expected) > TOLERANCE * expected:
        return f"seed {one.seed}: enumeration {expected:.4f}, program {plan.bill.usd_per_year:.4f} USD/year"
    if has_runner_up:
        return _runner_up_difference(one, plan)
    return None


def _runner_up_difference(one: Drawn, plan: Plan) -> str | None:
    """Cost of the cheapest plan that does without one thing the plan uses."""
    used = Choice(
        tuple(sorted({group.accelerator for group in plan.servers})),
        tuple(sorted({f"{run.scheme}+{run.kv_scheme}+{run.recovery}" for run in plan.deployments})),
        tuple(sorted({group.cooling for group in plan.servers if group.cooling is not None})),
        tuple(sorted({group.sourcing for group in plan.servers})),
    )
    found = [runner.usd_per_hour for runner in plan.runners_up if runner.usd_per_hour is not None]
    try:
        expected = without_any(one.listing, used, RUNNER_UP_STEPS)
    except TooLarge:
        return None
    if expected is None or not found:
        if expected is None and not found:
            return None
        return f"seed {one.seed}: next best of the enumeration {_usd(expected)}, of the program {found}"
    least = min(found) * 8766.0
    if abs(least - expected.usd_per_year) > TOLERANCE * expected.usd_per_year:
        return f"seed {one.seed}: next best {expected.usd_per_year:.4f} by enumeration, {least:.4f} by the program"
    return None


def _usd(found: Answer | None) -> float | None:
    return None if found is None else found.usd_per_year


def _check(seeds: range) -> list[Drawn]:
    several = [draw(seed) for seed in seeds]
    lines = [line for one in several if (line := difference(one)) is not None]
    print(f"\n{len(several)} random instances:", counts(several))  # noqa: T201 - the counts are the proof's other half
    assert not lines, "\n".join(lines)
    return several


def test_program_agrees_on_random_instances() -> None:
    _check(ALWAYS)


@pytest.mark.slow
def test_program_agrees_on_every_random_instance() -> None:
    several = _check(SLOW) + [draw(seed) for seed in ALWAYS]
    rare = {name: count for name, count in counts(several).items() if count < LEAST_OF.get(name, LEAST_OF_EACH)}
    assert not rare, f"features too rare in {len(several)} instances: {rare}"


def test_a_pool_that_nothing_runs_on_is_no_answer() -> None:
    """The enumeration itself: without deployments there is no plan, whatever may be bought."""
    one = next(candidate for seed in ALWAYS if (candidate := draw(seed)).expected is not None)
    assert answer(one.listing.filtered(lambda _: False, lambda _: True)) is None
