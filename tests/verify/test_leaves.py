"""No number of a plan can be changed unnoticed: each leaf, by one percent or by one, is refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from optimizer.verify import verify
from tests.verify.plans import INSTANCES, Path, changed, document, numbers, plan_of, read, words

#: What the checker cannot know: how much was searched (it never searches).
FREE = ("search",)
#: What may be asked for on the command line and changes no plan.
ASKED = (("provenance", "options", "threads"), ("provenance", "options", "seed"))
SECTIONS = (
    "outcome",
    "deployments",
    "servers",
    "packing",
    "plants",
    "network",
    "levels",
    "accelerators",
    "power_kw",
    "energy_kwh_per_year",
    "plant_load_fractions",
    "posts",
    "carbon_tonnes_per_year",
    "water_m3_per_year",
    "bill",
    "headroom",
    "runners_up",
    "instance",
    "catalog_rows",
    "provenance",
    "format_version",
)
#: Sections of many numbers of one kind, of which every so many-th is tried.
STRIDE = {"instance": 5, "catalog_rows": 40}


#: Sentences and labels for readers: nothing is computed from them.
PROSE = frozenset({"summary", "without", "messages", "defaults", "item", "where", "tool", "solver", "reason", "holds"})


def other(value: float) -> float:
    """Another number: a whole one by one, a real one by one percent, by a hundredth where it is 0 but for rounding."""
    if isinstance(value, int):
        return value + 1
    return value * 1.01 if abs(value) > 1e-12 else 0.01


def refused(raw: dict[str, Any], path: Path, value: float) -> bool:
    """Whether the changed plan cannot be read, or is refused."""
    try:
        plan = read(changed(raw, path, other(value)))
    except ValidationError:
        return True
    return bool(verify(plan))


def test_sections_cover_the_plan() -> None:
    numbered = {str(path[0]) for name in INSTANCES for path, _ in numbers(document(plan_of(name)))}
    assert numbered <= {*SECTIONS, *FREE}


@pytest.mark.slow
@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("name", sorted(INSTANCES))
def test_every_number_counts(name: str, section: str) -> None:
    raw = document(plan_of(name))
    mine = [(path, value) for path, value in numbers(raw) if path[0] == section and path not in ASKED]
    tried = mine[:: STRIDE.get(section, 1)]
    passed = [".".join(str(key) for key in path) for path, value in tried if not refused(raw, path, value)]
    assert passed == []


def _says_why_assumed(raw: dict[str, Any], path: Path) -> bool:
    """Whether the text explains a price that stands in no row of the catalogue: preparing a scheme, cold plates."""
    if path[:2] != ("bill", "lines") or path[-1] not in ("source", "as_of"):
        return False
    line = raw["bill"]["lines"][path[2]]
    return line["component"] == "recovery" or "built for liquid" in line["item"]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(INSTANCES))
def test_every_name_counts_and_none_brings_the_checker_down(name: str) -> None:
    raw = document(plan_of(name))
    passed = []
    for path, _ in words(raw):
        try:
            plan = read(changed(raw, path, "something-else"))
        except ValidationError:
            continue
        prose = not PROSE.isdisjoint(path) or path[0] == "search" or _says_why_assumed(raw, path)
        if not verify(plan) and not prose:
            passed.append(".".join(str(key) for key in path))
    assert passed == []


@pytest.mark.parametrize("value", [0, -1, 10**9])
def test_absurd_counts_are_refused_without_a_traceback(value: int) -> None:
    raw = document(plan_of("classes"))
    for section in ("deployments", "servers", "packing", "network"):
        for path, number in numbers(raw[section]):
            if isinstance(number, int):
                assert verify(read(changed(raw, (section, *path), value))), (section, path)
