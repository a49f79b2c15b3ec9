"""Tipping points: those of solving every value, for prices, limits, demand and other fields."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from optimizer.commands.app import app
from optimizer.errors import UsageProblems
from optimizer.instance.field_paths import FieldPath, find_field, known_fields, with_values
from optimizer.instance.model import Instance
from optimizer.instance.positions import Path as Steps
from optimizer.next_best import Things
from optimizer.studies.best import best_plan
from optimizer.studies.cases import choice, choice_words
from optimizer.studies.current_values import current_value
from optimizer.studies.tipping import Tipping, tipping_points
from tests.oracle.random_instances import draw
from tests.studies.small import prices, small

SAME = 3e-6
CELLS = 8


def moved_field(instance: Instance, random: Random) -> FieldPath | None:
    """A field of the instance that a planner would move, or None where the draw finds none."""
    kinds: tuple[Callable[[Steps], bool], ...] = (
        lambda steps: steps[-1] in ("server_usd", "on_demand_usd_per_hour", "reserved_1yr_usd_per_hour"),
        lambda steps: steps[-1] == "electricity_usd_per_kwh" and instance.site.tariff is None,
        lambda steps: steps[-2:-1] == ("demand",) and steps[-1] != "think_time_s",
        lambda steps: steps[0] == "targets" and steps[-1] in ("tpot_ms", "ttft_ms", "weights_gib_per_accelerator"),
        lambda steps: steps[0] == "site" and steps[-1] in ("power_kw", "rack_kw"),
        lambda steps: steps[-1] in ("output_tokens", "input_tokens", "budget_capex_usd", "horizon_years"),
    )
    wanted = random.choice(kinds)
    used = set(instance.choices.accelerators or ())
    found = [
        field
        for field in known_fields(instance)
        if wanted(field.steps)
        and field.is_number
        and current_value(instance, field)
        and (field.steps[:2] != ("economics", "prices") or field.steps[2] in used)
    ]
    return random.choice(found) if found else None


def allows(instance: Instance, things: Things) -> Instance:
    """The instance with nothing to choose from but what a choice uses."""
    names = {kind: tuple(sorted(name for one, name in things if one == kind)) for kind, _ in things}
    schemes = [name.split("+") for name in names["schemes"]]
    update = {
        "accelerators": names["accelerators"],
        "sourcing": names["sourcing"],
        "schemes": tuple(dict.fromkeys(one[0] for one in schemes)),
        "kv_schemes": tuple(dict.fromkeys(one[1] for one in schemes)),
        "recovery_steps": tuple(dict.fromkeys(one[2] for one in schemes)),
    }
    if "cooling" in names:
        update["cooling"] = names["cooling"]
    return instance.model_copy(update={"choices": instance.choices.model_copy(update=update)})


def differences(seed: int) -> list[str] | None:
    """Values at which the study says otherwise than a solve; None where the seed has nothing to move."""
    random = Random(seed)
    instance = draw(seed).instance
    field = moved_field(instance, random)
    if field is None:
        return None
    now = float(current_value(instance, field))
    low, high = now * random.uniform(0.4, 0.9), now * random.uniform(1.1, 2.5)
    if field.is_whole:
        low, high = max(1, round(low)), round(high) + 2
    found = tipping_points(instance, f"{field.name}={low!r}:{high!r}", resolution=(high - low) / CELLS)
    lines = []
    points = [found.low + (found.high - found.low) * place / found.cells for place in range(found.cells + 1)]
    for point in points:
        value = round(point) if field.is_whole else point
        there = with_values(instance, {field: value})
        plan = best_plan(there)
        said = [one.choice for one in found.stretches if one.first - 1e-9 <= point <= one.last + 1e-9]
        if not said:
            flip = [one for one in found.flips if one.low < point < one.high]
            lines += [] if flip and field.is_whole else [f"seed {seed}, {field.name} = {point}: no stretch"]
        elif said != [choice_words(choice(plan))]:
            lines += _unless_a_tie(seed, there, found, said[0], point)
    return lines


def _unless_a_tie(seed: int, there: Instance, found: Tipping, said: str, point: float) -> list[str]:
    """Two choices may cost the same: then either is right."""
    plan = best_plan(there)
    for stretch in found.stretches:
        if stretch.choice != said or plan is None:
            continue
        for end in (stretch.first, stretch.last):
            field = find_field(there, found.field)
            other = best_plan(with_values(there, {field: round(end) if field.is_whole else end}))
            if other is None or choice_words(choice(other)) != said:
                continue
            things = choice(other)
            assert things is not None
            restricted = best_plan(allows(there, things))
            if restricted is not None and restricted.bill.usd_per_year <= plan.bill.usd_per_year * (1.0 + SAME):
                return []
    best = choice_words(choice(plan))
    return [f"seed {seed}, {found.field} = {point}: said {said}, best is {best}"]


@pytest.mark.parametrize("seed", [1, 3])
def test_every_flip_is_found(seed: int) -> None:
    assert not differences(seed)


@pytest.mark.slow
def test_every_flip_is_found_on_fifty_random_cases() -> None:
    cases: list[list[str]] = []
    seed = 0
    while len(cases) < 50:
        found = differences(seed)
        seed += 1
        if found is not None:
            cases.append(found)
    assert [line for lines in cases for line in lines] == []


def test_the_flip_of_a_price_is_where_costs_meet() -> None:
    """The rented fleet is the best up to the flip and beaten above it: its cost is a line through 0."""
    found = tipping_points(small(), "economics.prices.h100-80gb-sxm.on_demand_usd_per_hour=0.5:6")
    rent = best_plan(small(("on_demand",)))
    assert rent is not None
    (flip,) = found.flips

    def least_usd_per_year(usd_per_hour: float) -> float:
        plan = best_plan(small(economics=prices(usd_per_hour=usd_per_hour)))
        assert plan is not None
        return plan.bill.usd_per_year

    assert least_usd_per_year(flip.low) == pytest.approx(rent.bill.usd_per_year * flip.low / 3.0, rel=2e-6)
    assert least_usd_per_year(flip.high) < rent.bill.usd_per_year * flip.high / 3.0 * (1.0 - 2e-6)
    assert flip.high - flip.low == pytest.approx(5.5 / 1024)
    assert found.solved < 20
    assert "on demand" in flip.before
    assert "bought" in flip.after
    assert flip.message.startswith(
        "the choice flips when economics.prices.h100-80gb-sxm.on_demand_usd_per_hour rises above"
    )


def test_what_does_not_fit_is_a_stretch() -> None:
    found = tipping_points(small(), "targets.tpot_ms=0.1:60", resolution=4.0)
    assert found.stretches[0].choice == "nothing fits"
    assert found.stretches[0].first_usd_per_year is None


def test_whole_numbers() -> None:
    plan = best_plan(small(("buy",)))
    assert plan is not None
    need = sum(one.racks for one in plan.servers)
    found = tipping_points(small(("buy",)), f"site.racks=0:{need + 5}")
    (flip,) = found.flips
    assert (flip.low, flip.high) == (need - 1, need)


def test_stopped_keeps_what_is_known() -> None:
    calls = iter([False] * 3 + [True] * 100)
    found = tipping_points(small(), "targets.tpot_ms=5:60", stop=lambda: next(calls))
    assert not found.is_complete
    assert found.solved == 3


@pytest.mark.parametrize(
    ("vary", "resolution"),
    [
        ("targets.tpot_ms=60:10", None),
        ("targets.tpot=10:60", None),
        ("choices.schemes=a:b", None),
        ("targets.tpot_ms=10:60", 1e-9),
        ("targets.tpot_ms=10:60", 1e9),
        ("targets.tpot_ms=-10:60", None),
    ],
)
def test_bad_ranges(vary: str, resolution: float | None) -> None:
    with pytest.raises(UsageProblems):
        tipping_points(small(), vary, resolution=resolution)


def test_verb(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text(small().model_dump_json(by_alias=True, exclude_unset=True), encoding="utf-8")
    asked = ["tipping", str(path), "--vary", "economics.prices.h100-80gb-sxm.server_usd=-50%..200%"]
    shown = CliRunner().invoke(app, [*asked, "-o", str(tmp_path / "t.svg")])
    assert shown.exit_code == 0, shown.stderr
    assert "the choice flips when" in shown.stdout
    assert "AAAB" in shown.stdout
    assert max(len(line) for line in shown.stdout.splitlines()) <= 80
    drawing = ET.fromstring((tmp_path / "t.svg").read_text(encoding="utf-8"))
    assert drawing.attrib["id"] == "optimize-tipping"
    held = json.loads(CliRunner().invoke(app, [*asked, "--json", "-q"]).stdout)
    assert len(held["flips"]) == 1
    assert CliRunner().invoke(app, ["tipping", str(path), "--vary", "targets.tpot=1:2"]).exit_code == 2
