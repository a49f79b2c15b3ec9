"""Why not: costs agree with an enumeration of the choice, broken limits with what the choice can reach."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from optimizer.api import solve, why_not
from optimizer.commands.app import app
from optimizer.errors import UsageProblems
from optimizer.report.whynot import render
from optimizer.studies.best import best_plan
from optimizer.verify import verify
from optimizer.whynot.result import WhyNot
from tests.core.real import small
from tests.oracle.enumerate import TooLarge, answer
from tests.oracle.listing import Listing, Pool
from tests.oracle.random_instances import Drawn, draw
from tests.studies.small import small as hourly_small

TOLERANCE = 3e-6
STEPS = 20_000


def only(listing: Listing, kind: str, name: str) -> Listing:
    """The listing with one accelerator, cooling option, way of sourcing or scheme alone."""

    def pool_stays(pool: Pool) -> bool:
        things = {
            "accelerator": pool.server_type.accelerator.id,
            # Rented servers are cooled elsewhere.
            "cooling": name if pool.cooling is None else pool.cooling.id,
            "sourcing": pool.sourcing,
        }
        return things.get(kind, name) == name

    return listing.filtered(pool_stays, lambda column: kind != "scheme" or column.scheme.split("+")[0] == name)


def choices_of(one: Drawn) -> list[tuple[str, str]]:
    """Every single choice that the instance's own lists hold."""
    choices = one.instance.choices
    return [
        *(("accelerator", name) for name in choices.accelerators or ()),
        *(("scheme", name) for name in choices.schemes or ()),
        *(("cooling", name) for name in choices.cooling or ()),
        *(("sourcing", name) for name in choices.sourcing),
    ]


def differences(one: Drawn) -> list[str]:
    """Where an answer is not what the enumeration of the choice says."""
    wrong = []
    for kind, name in choices_of(one):
        try:
            expected = answer(only(one.listing, kind, name), STEPS)
        except TooLarge:
            continue
        found = why_not(one.instance, f"{kind}={name}")
        told = None if found.plan is None else found.plan.bill.usd_per_year
        where = f"seed {one.seed} {kind}={name}"
        if (told is None) != (expected is None):
            wrong.append(f"{where}: {told} but {expected and expected.usd_per_year} by enumeration ({found.verdict})")
        elif told is not None and expected is not None:
            if abs(told - expected.usd_per_year) > TOLERANCE * expected.usd_per_year:
                wrong.append(f"{where}: {told} but {expected.usd_per_year} by enumeration")
            if found.outside or found.verdict == "costs_less":
                wrong.append(f"{where}: {found.verdict}, {found.outside}")
        elif found.verdict not in ("breaks_limits", "cannot_be_had"):
            wrong.append(f"{where}: {found.verdict}")
    return wrong


def test_costs_are_those_of_the_enumeration() -> None:
    wrong = [line for seed in (2, 5) for line in differences(draw(seed))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_costs_are_those_of_the_enumeration_on_many_instances() -> None:
    seeds = [seed for seed in range(10, 30) if draw(seed).expected is not None]
    wrong = [line for seed in seeds for line in differences(draw(seed))]
    assert not wrong, "\n".join(wrong)


def asked(text: str, **sections: Any) -> WhyNot:
    """The answer for the small instance."""
    found = why_not(small(**sections), text)
    assert all(len(line) <= 80 for line in render(found).splitlines())
    return found


def test_what_the_plan_does_is_told() -> None:
    plan = solve(small()).plan
    assert plan is not None
    found = asked(f"accelerator={plan.servers[0].accelerator},sourcing={plan.servers[0].sourcing}")
    assert found.verdict == "is_the_plan"
    assert found.plan is not None
    assert verify(found.plan) == ()


def test_a_broken_limit_has_the_nearest_value_that_any_candidate_reaches() -> None:
    found = asked("accelerator=l40s", targets={"tpot_ms": 6.0})
    assert found.verdict == "breaks_limits"
    row = next(one for one in found.nearest_values if one.limit == "tpot_ms")
    assert row.kills == row.candidates
    assert row.reached > row.needed == 6.0
    loose = {"targets": {"tpot_ms": row.reached * 1.001}}
    tight = {"targets": {"tpot_ms": row.reached * 0.999}}
    assert asked("accelerator=l40s", **loose).plan is not None
    assert asked("accelerator=l40s", **tight).plan is None
    (change,) = (one for one in found.changes if one.field == "targets.tpot_ms")
    assert change.needed == pytest.approx(row.reached, rel=1e-3)


def test_a_fleet_that_does_not_fit_has_a_clash_and_changes() -> None:
    found = asked("accelerator=l40s,sourcing=buy", site={"power_kw": 3.0})
    assert found.verdict == "breaks_limits"
    assert not found.nearest_values
    assert "site.power_kw" in {one.field for one in found.clash}
    assert "site.power_kw" in {one.field for one in found.changes}


def test_outside_the_choices_is_named_and_priced() -> None:
    found = asked("accelerator=l4", choices={"accelerators": ["h100-80gb-sxm"]})
    assert [(one.field, one.value) for one in found.outside] == [("choices.accelerators", "l4")]
    alone = best_plan(small(choices={"accelerators": ["l4"]}))
    assert alone is not None
    assert found.plan is not None
    assert found.plan.bill.usd_per_year == pytest.approx(alone.bill.usd_per_year, rel=1e-6)


def test_what_cannot_be_had_says_why() -> None:
    assert "layouts" in asked("tp=7").summary
    assert asked("server_type=l40s x3").verdict == "cannot_be_had"
    assert asked("accelerator=l40s,scheme=w4a4-nvfp4").verdict == "cannot_be_had"
    assert asked("accelerator=l40s,sourcing=buy,cooling=d2c_1p").verdict == "cannot_be_had"


@pytest.mark.parametrize("count", [8, 16, 64])
def test_a_count_is_kept_and_more_costs_more(count: int) -> None:
    found = asked(f"accelerator=h100-80gb-sxm,sourcing=buy,count={count}")
    free = asked("accelerator=h100-80gb-sxm,sourcing=buy")
    assert free.plan is not None
    if count < free.plan.accelerators:
        assert found.verdict == "breaks_limits"
        assert f"at least {free.plan.accelerators}" in found.summary
        return
    assert found.plan is not None
    assert found.plan.accelerators == count
    assert found.plan.bill.usd_per_year >= free.plan.bill.usd_per_year * (1.0 - TOLERANCE)
    again = asked(f"accelerator=h100-80gb-sxm,sourcing=buy,servers={count // 8}").plan
    assert again is not None
    assert again.bill.usd_per_year == pytest.approx(found.plan.bill.usd_per_year, rel=TOLERANCE)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("accelerator", ["E-WHYNOT-510"]),
        ("colling=d2c_1p", ["E-WHYNOT-511"]),
        ("accelerator=h1000,scheme=w8a8-fp9", ["E-WHYNOT-512", "E-WHYNOT-512"]),
        ("sourcing=lease", ["E-WHYNOT-512"]),
        ("tp=two,count=0", ["E-WHYNOT-513", "E-WHYNOT-513"]),
        ("count=8|16", ["E-WHYNOT-513"]),
    ],
)
def test_every_fault_of_a_question_at_once(text: str, codes: list[str]) -> None:
    with pytest.raises(UsageProblems) as caught:
        asked(text)
    assert [one.code for one in caught.value.problems] == codes
    assert caught.value.exit_code == 2


def test_command(tmp_path: Path) -> None:
    path = tmp_path / "my.json"
    path.write_text(small().model_dump_json(by_alias=True, exclude_unset=True), encoding="utf-8")

    def run(*arguments: Any) -> Any:
        return CliRunner().invoke(app, [str(one) for one in arguments])

    result = run("explain", path, "--not", "accelerator=h100-80gb-sxm|l40s,tp=1", "--json")
    assert result.exit_code == 0
    jsonschema.validate(json.loads(result.stdout), json.loads(run("schema", "whynot").stdout))
    assert "Answer" in run("explain", path, "--not", "cooling=dynamic").stdout
    assert run("explain", path, "--not", "colling=dynamic").exit_code == 2
    assert run("explain", "E-TARGETS-003", "--not", "cooling=dynamic").exit_code == 2
    proposal = tmp_path / "p.json"
    proposal.write_text('{"accelerator": "h100-80gb-sxm", "servers": 1}', encoding="utf-8")
    assert (
        "keeps" in run("explain", path, "--not", proposal).stdout
        or "breaks" in run("explain", path, "--not", proposal).stdout
    )
    assert run("explain", path, "--not", tmp_path / "none.json").exit_code == 3


def test_servers_paid_by_the_hour_are_not_had_beyond_what_an_hour_uses() -> None:
    given = hourly_small(("on_demand",))
    load = given.workload.load.model_copy(update={"mean_fraction": None, "hourly_fractions": (0.5,) * 12 + (1.0,) * 12})
    given = given.model_copy(update={"workload": given.workload.model_copy(update={"load": load})})
    plan = solve(given).plan
    assert plan is not None
    found = why_not(given, f"sourcing=on_demand,count={plan.accelerators}")
    assert found.plan is not None
    assert found.plan.accelerators == plan.accelerators
    more = why_not(given, f"sourcing=on_demand,count={plan.accelerators + 8}")
    assert more.plan is None
    assert more.verdict == "breaks_limits"
    assert "paid by the hour" in more.reasons[0]
