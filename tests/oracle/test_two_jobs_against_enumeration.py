"""Two jobs on one fleet agree with an enumeration in plain Python of every pair of ways and of starts."""

import math
import random
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from optimizer.catalog import load_catalog
from optimizer.instance.model import Instance
from optimizer.solver import Options
from optimizer.training import narrowing
from optimizer.training.answer import answer, best_plan, search
from optimizer.verify import verify
from tests.oracle.random_training import draw_training, instance_of
from tests.oracle.training import Way, bought, crf, sites_of, ways

PERIOD_DAYS = 10.0
#: Pairs of ways with their starts that are enumerated; larger instances are passed over.
MOST_PAIRS = 150_000


def two_jobs(seed: int) -> dict[str, Any]:
    """One job of a random instance, and a second one of another size and window, on one site, without discounts."""
    value, rng = draw_training(seed), random.Random(f"two jobs {seed}")
    workload = value["workload"]
    deadline = value["targets"].pop("deadline_days", 90.0) + rng.choice((20.0, 40.0))
    for name in ("sites", "wan_links"):
        value.pop(name, None)
    if "site" not in value:
        value["site"] = {"climate": "us_va_ashburn", "power_kw": rng.choice((150, 400, 1500))}
    for name in ("network_discounts", "server_discounts", "cooling_prices", "prices", "budget_usd"):
        value["economics"].pop(name, None)
    tokens = workload.pop("tokens")
    workload["calendar_period_days"] = PERIOD_DAYS
    workload["jobs"] = [
        {"name": "first", "tokens": tokens * rng.uniform(0.3, 1.0), "deadline_days": deadline},
        {
            "name": "second",
            "tokens": tokens * rng.uniform(0.3, 1.0),
            "earliest_start_day": rng.choice((0.0, 5.0, 25.0)),
            "deadline_days": deadline + rng.choice((0.0, 15.0)),
        },
    ]
    if rng.random() < 0.3:
        workload["jobs"][1]["delay_usd_per_day"] = rng.choice((1e3, 1e5))
    if rng.random() < 0.3:
        value["economics"]["budget_usd"] = rng.choice((1e6, 1e7, 1e8))
    return value


def starts(way: Way, job: Any) -> Iterator[tuple[int, int]]:
    """(first period, periods) of a way on the calendar."""
    held = math.ceil(way.days / PERIOD_DAYS - 1e-9)
    first = math.ceil(job.earliest_start_day / PERIOD_DAYS - 1e-9)
    while first * PERIOD_DAYS + way.days <= job.deadline_days + 1e-9:
        yield first, held
        first += 1


#: Site or "rented", accelerator, cooling or term, hall.
Pool = tuple[str, str, str, str]


def peaks(runs: list[tuple[Way, int, int]]) -> dict[Pool, int]:
    """Most servers of each pool that are held at once."""
    found: dict[Pool, int] = {}
    for period in {first for _, first, _ in runs}:
        now: dict[Pool, int] = {}
        for way, first, held in runs:
            if first <= period < first + held:
                for pool, servers in way.held:
                    now[pool] = now.get(pool, 0) + servers
        for pool, servers in now.items():
            found[pool] = max(found.get(pool, 0), servers)
    return found


class Fleets:
    """What fleets cost and need, each pool and size once; servers are given with their spares."""

    def __init__(self, instance: Instance) -> None:
        none = {"spare_fraction": 0.0, "spare_servers": 0, "availability_fraction": None}
        bare = instance.targets.model_copy(update=none)
        self._instance = instance.model_copy(update={"targets": bare})
        self._known: dict[Any, dict[str, Any]] = {}

    def of(self, pool: Pool, servers: int) -> dict[str, Any]:
        site, accelerator, cooling, hall = pool
        key = (pool, servers)
        if key not in self._known:
            row = load_catalog().accelerators[accelerator]
            part = None
            if site in sites_of(self._instance):
                halls = bought(self._instance, site, row, cooling, servers, 1.0)
                part = next((one for one in halls if one["hall"] == hall), None)
            self._known[key] = part or {"yearly": 0.0, "capital": 0.0, "kw": 0.0, "racks": 0}
        return self._known[key]


def cheapest_pair(instance: Instance) -> tuple[float | None, bool]:
    """(least cost of both jobs or None, whether everything was tried)."""
    jobs = instance.workload.all_jobs()  # type: ignore[union-attr]
    found = [[(way, *when) for way in ways(instance, job) for when in starts(way, job)] for job in jobs]
    if len(found[0]) * len(found[1]) > MOST_PAIRS:
        return None, False
    economics, fleets, best = instance.economics, Fleets(instance), math.inf
    share = crf(economics.discount_rate, economics.horizon_years)
    alone = {}
    for job, several in zip(jobs, found, strict=True):
        for way, first, held in several:
            usd = way.usd + (first * PERIOD_DAYS - job.earliest_start_day) * (job.delay_usd_per_day or 0.0)
            if economics.charge == "horizon":
                usd -= sum(fleets.of(pool, count)["yearly"] for pool, count in way.held) / share
            alone[id(way), first, held, job.name] = usd
    for pair in product(*found):
        usd = sum(alone[id(way), first, held, job.name] for job, (way, first, held) in zip(jobs, pair, strict=True))
        if usd >= best:
            continue
        fleet = peaks(list(pair))
        parts = {pool: fleets.of(pool, count) for pool, count in fleet.items()}
        if economics.charge == "horizon":
            usd += sum(part["yearly"] for part in parts.values()) / share
        if usd < best and _kept(instance, usd, fleet, parts):
            best = usd
    return (None if math.isinf(best) else best), True


def _kept(instance: Instance, usd: float, fleet: dict[Any, int], parts: dict[Any, dict[str, Any]]) -> bool:
    economics = instance.economics
    if usd > (economics.budget_usd or math.inf):
        return False
    if len({(site, hall) for site, _, _, hall in fleet if hall}) > len({site for site, _, _, hall in fleet if hall}):
        return False
    if sum(part["capital"] for part in parts.values()) > (economics.budget_capex_usd or math.inf):
        return False
    for name, site in sites_of(instance).items():
        here = [part for (place, _, _, _), part in parts.items() if place == name]
        if sum(part["kw"] for part in here) > (site.power_kw or math.inf):
            return False
        if sum(part["racks"] for part in here) > (math.inf if site.racks is None else site.racks):
            return False
    held: Counter[str] = Counter()
    for (_, accelerator, _, _), count in fleet.items():
        held[accelerator] += count * load_catalog().accelerators[accelerator].accelerators_per_server
    return all(held[name] <= most for name, most in instance.choices.supply.items())


def difference(seed: int, seen: Counter[str]) -> str | None:
    """What the program says otherwise than the enumeration, in one line; None where they agree."""
    instance = instance_of(two_jobs(seed))
    expected, is_complete = cheapest_pair(instance)
    if not is_complete:
        seen["too many"] += 1
        return None
    plan = best_plan(instance, Options())
    if plan is None or expected is None:
        seen["infeasible"] += 1
        return None if plan is None and expected is None else f"seed {seed}: enumeration {expected}, program {plan}"
    assert plan.training is not None
    seen[plan.training.charge] += 1
    seen["rented"] += any(group.sourcing != "buy" for group in plan.servers)
    first, second = plan.training.jobs
    seen["together"] += first.start_day < second.end_day and second.start_day < first.end_day
    seen["one after another"] += first.start_day >= second.end_day or second.start_day >= first.end_day
    findings = verify(plan)
    if findings:
        return f"seed {seed}: {findings[0]}"
    if abs(plan.training.usd - expected) > 2e-6 * expected:
        return f"seed {seed}: enumeration {expected!r}, program {plan.training.usd!r}"
    return None


def _check(seeds: range) -> Counter[str]:
    seen: Counter[str] = Counter()
    lines = [line for seed in seeds if (line := difference(seed, seen)) is not None]
    assert not lines, "\n".join(lines)
    return seen


def test_two_jobs_agree_with_every_pair_of_runs() -> None:
    assert _check(range(6))["infeasible"] < 6


@pytest.mark.slow
def test_one_hundred_random_pairs_of_jobs_agree_with_the_enumeration() -> None:
    seen = _check(range(6, 106))
    print(f"\n100 random pairs of jobs: {dict(seen)}")  # noqa: T201 - the proof's other half
    assert min(seen[name] for name in ("infeasible", "job", "horizon", "rented", "together", "one after another")) >= 3


def test_runs_that_are_left_out_lose_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every program narrowed the answers stay; with too few runs kept the bound still lies below them."""
    instances = [instance_of(two_jobs(seed)) for seed in range(24)]
    plans = [best_plan(instance, Options()) for instance in instances]
    assert sum(plan is not None for plan in plans) >= 5
    monkeypatch.setattr(narrowing, "_FEW", 1)
    for instance, plan in zip(instances, plans, strict=True):
        again = best_plan(instance, Options())
        assert (plan is None) == (again is None)
        if plan is not None and again is not None:
            assert again.bill.usd_per_year == pytest.approx(plan.bill.usd_per_year, rel=2e-6)
            assert again.outcome.holds == "proven"
    monkeypatch.setattr(narrowing, "_MOST", 4)
    monkeypatch.setattr(narrowing, "_CHOICES", 2)
    monkeypatch.setattr(narrowing, "_OF_POOLS", 0)
    bounded = 0
    for instance, plan in zip(instances, plans, strict=True):
        if plan is None:
            continue
        less = answer(search(instance).program(), Options())
        assert less.outcome.bound <= plan.outcome.objective_usd_per_hour * (1.0 + 1e-9)
        if less.runs is not None:
            assert less.outcome.objective >= plan.outcome.objective_usd_per_hour * (1.0 - 1e-6)
        bounded += less.outcome.bound < plan.outcome.objective_usd_per_hour * (1.0 - 1e-6)
    assert bounded


def test_another_accelerator_to_choose_from_costs_no_more() -> None:
    """Two jobs on a bought fleet: what suits both is not what is best for either alone."""
    value: dict[str, Any] = {
        "name": "two types",
        "workload": {
            "kind": "training",
            "model": "Llama-3.1-70B",
            "tokens": 6e12,
            "jobs": [
                {"name": "large", "deadline_days": 60},
                {"name": "small", "parameters_b": 8, "tokens": 15e12, "earliest_start_day": 20, "deadline_days": 100},
            ],
        },
        "choices": {"sourcing": ["buy"], "cooling": ["rdhx_passive"]},
        "economics": {"charge": "horizon"},
    }  # fmt: skip
    usd = []
    for types in (["b200-180gb-sxm"], ["b200-180gb-sxm", "h100-80gb-sxm"]):
        value["choices"]["accelerators"] = types
        plan = best_plan(instance_of(value), Options())
        assert plan is not None
        usd.append(plan.bill.usd_over_horizon)
    assert usd[1] <= usd[0] * (1.0 + 1e-6)
