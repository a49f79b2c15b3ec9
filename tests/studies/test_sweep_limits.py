"""No reused answer breaks a limit of the fleet: every row of ``optimizer.limits`` is checked or keeps from reuse."""

from dataclasses import replace
from typing import Any

import pytest

from optimizer import limits
from optimizer.instance.field_paths import document_of, from_document
from optimizer.instance.model import Instance
from optimizer.offer import make_offer
from optimizer.screen import screen
from optimizer.solver import Options
from optimizer.studies.sweep import sweep
from optimizer.studies.sweeping import fleet_limits
from optimizer.studies.sweeping.fleet_limits import CHECKS, Standing, within_limits
from optimizer.studies.sweeping.solving import Counts, Solution, at_case, solve_case, usd_per_year
from optimizer.studies.sweeping.stages import _built
from tests.studies.small import small
from tests.studies.test_sweep import DEMAND, same_answers

FLEET = [row.name for row in limits.LIMITS if row.scope == "fleet"]


def capped(**sections: Any) -> Instance:
    """One bought type; the sections are added to its document."""
    document = document_of(small(("buy",)))
    for name, section in sections.items():
        document[name] = {**document.get(name, {}), **section} if isinstance(section, dict) else section
    return from_document(document, told_as="capped")


def solved(instance: Instance) -> tuple[Solution, Counts]:
    """The instance's solution and the fleet that is taken."""
    solution = solve_case(make_offer(screen(_built(instance))), Options())
    assert solution.counts is not None
    return solution, solution.counts


def keeps(solution: Solution, counts: Counts, instance: Instance) -> bool:
    """Whether the fleet is found to keep the limits of another instance."""
    data = at_case(solution, counts, make_offer(screen(_built(instance))))
    return within_limits(data, counts, usd_per_year(data, counts))


def test_every_limit_of_the_fleet_is_checked_or_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    solution, counts = solved(capped())
    assert keeps(solution, counts, capped())
    for name in FLEET:
        with monkeypatch.context() as patched:
            patched.setattr(fleet_limits, "CHECKS", {key: check for key, check in CHECKS.items() if key != name})
            assert not keeps(solution, counts, capped()), name
    new = replace(limits.limit("racks"), name="a_limit_of_tomorrow")
    monkeypatch.setattr(fleet_limits, "LIMITS", (*limits.LIMITS, new))
    assert not keeps(solution, counts, capped())
    assert set(CHECKS) <= set(FLEET)


def reached(name: str) -> float:
    """What the fleet without caps takes of what a cap limits."""
    solution, counts = solved(capped())
    assert solution.data is not None
    one = Standing(at_case(solution, counts, solution.offer), counts, 0.0)
    site = one.data.setting.instance.site
    if name == "floor_m2":
        return one.racks * site.rack_floor_m2
    # A cap that nothing reaches shows what 1 kWh takes.
    loose = make_offer(screen(_built(capped(site={name: 1e9}))))
    data = at_case(solution, counts, loose)
    ((_, _, per_kwh),) = data.environment_caps
    return sum(
        per_kwh[q] * (data.idle_kw[q] * 8766.0 * count + one.quantities["BusyKwh", q]) for q, count in one.hall.items()
    )


NEWER = ("floor_m2", "carbon_tonnes_per_year", "water_m3_per_year")


@pytest.mark.parametrize("name", NEWER)
def test_a_sweep_under_a_newer_cap_is_solving_each(name: str) -> None:
    # Water is only taken where pads or towers are wet.
    cap = reached(name) if name != "water_m3_per_year" or reached(name) else 1.0
    instance = capped(site={name: cap * 1.0001})
    vary = [f"{DEMAND}=900,940,960,965,1100"]
    same_answers(sweep(instance, vary), sweep(instance, vary, reuse=False))
    vary = [f"site.{name}=null,{cap * 1.1},{cap * 1.0001},{cap * 0.9}"]
    same_answers(sweep(capped(), vary), sweep(capped(), vary, reuse=False))


def test_a_fleet_over_a_newer_cap_is_not_taken_over() -> None:
    solution, counts = solved(capped())
    for name in ("floor_m2", "carbon_tonnes_per_year"):
        most = reached(name)
        assert keeps(solution, counts, capped(site={name: most * 1.001})), name
        assert not keeps(solution, counts, capped(site={name: most * 0.999})), name


def test_a_sweep_under_owned_provided_and_few_types_is_solving_each() -> None:
    document = document_of(small(("buy", "on_demand"), choices={"accelerators": ["h100-80gb-sxm", "l40s"]}))
    document["choices"] |= {"max_accelerator_types": 1, "provider_supply": {"Crusoe": {"l40s": 1}}}
    document["inventory"] = [
        {"accelerator": "h100-80gb-sxm", "servers": 1, "cooling": "air_containment_econ", "remaining_life_years": 2.5}
    ]
    instance = from_document(document, told_as="owned and provided")
    for vary in (f"{DEMAND}=100,105,900,960", "choices.max_accelerator_types=null,2,1"):
        same_answers(sweep(instance, [vary]), sweep(instance, [vary], reuse=False))
