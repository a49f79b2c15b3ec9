"""What ``--vary PATH=SPEC`` means: values, changes of the value in force, lists; every fault told at once."""

from pathlib import Path
from typing import Any

import pytest

from optimizer.catalog import load_catalog
from optimizer.errors import CODES, UsageProblems
from optimizer.instance.field_paths import document_of, from_document
from optimizer.instance.model import Instance
from optimizer.studies.ranges import case_count, case_points, read_axes, read_axis
from tests.studies.small import small


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("targets.tpot_ms=100:300:5", [100, 150, 200, 250, 300]),
        ("targets.tpot_ms=100..300:5", [100, 150, 200, 250, 300]),
        ("targets.tpot_ms=0.1:0.7:7", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]),
        ("targets.tpot_ms=300:100:3", [300, 200, 100]),
        ("targets.tpot_ms=10:1000:3:log", [10, 100, 1000]),
        ("targets.tpot_ms=1e2", [100]),
        ("targets.tpot_ms=-50%..50%:3", [30, 60, 90]),
        ("targets.tpot_ms=-50%..+50%:3", [30, 60, 90]),
        ("targets.tpot_ms=x0.5..x2:4", [30, 60, 90, 120]),
        ("targets.tpot_ms=x0.5,60,+10%,0%", [30, 60, 66]),
        ("targets.tpot_ms=null,10", [None, 10]),
        ("targets.tpot_ms=[10, null]", [10, None]),
        ("targets.spare_servers=0:3:7", [0, 1, 2, 3]),
        ("economics.prices.h100-80gb-sxm.server_usd=-10%..10%:3", [225_000, 250_000, 275_000]),
        ("choices.cooling=rdhx_passive,d2c_1p+dynamic", [["rdhx_passive"], ["d2c_1p", "dynamic"]]),
        ("choices.tensor_parallel=1,1+2", [[1], [1, 2]]),
        ("choices.tensor_parallel=[[1],[1,2]]", [[1], [1, 2]]),
        ("workload.engine=vllm,sglang", ["vllm", "sglang"]),
        ("site.climate=us_va_ashburn", ["us_va_ashburn"]),
    ],
)
def test_spec_lists_these_values(text: str, points: list[Any]) -> None:
    axis = read_axis(small(), text)
    assert list(axis.points) == points
    assert [row[0] for row in axis.values] == points


def test_a_change_of_what_is_absent_is_one_of_the_catalogue() -> None:
    instance, catalog = small(economics={"prices": {}}), load_catalog()
    price = catalog.purchase_prices["h100-80gb-sxm"]
    (low,), (high,) = read_axis(instance, "economics.prices.h100-80gb-sxm.server_usd=x1,x2").values
    assert low == price.typical_usd * 8 / price.accelerators
    assert high == 2 * low
    region = catalog.climates["us_va_ashburn"].electricity_region
    asked = read_axis(instance, "site.electricity_usd_per_kwh=x1")
    assert asked.values == ((catalog.electricity[region].price_usd_per_kwh,),)
    assert read_axis(instance, "targets.accuracy_floor_fraction=x1").values == ((0.99,),)
    assert read_axis(instance, "workload.max_context_tokens=x2").values == ((1200,),)


def test_a_list_of_figures_is_scaled_as_a_whole() -> None:
    instance = small(workload={"load": {"hourly_fractions": [0.25] * 23 + [0.5]}})
    axis = read_axis(instance, "workload.load.hourly_fractions=x2")
    assert axis.values == (([0.5] * 23 + [1.0],),)


def test_a_star_moves_every_price_of_the_search_together() -> None:
    instance = small(choices={"accelerators": ["h100-80gb-sxm", "a100-80gb-sxm"]})
    axis = read_axis(instance, "economics.prices.*.server_usd=x1,x1.5")
    assert [field.steps[2] for field in axis.fields] == ["a100-80gb-sxm", "h100-80gb-sxm"]
    assert axis.points == ("x1", "x1.5")
    assert axis.values[0][1] == 250_000
    assert axis.values[1] == tuple(1.5 * usd for usd in axis.values[0])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("targets.tpot_ms", "E-SWEEP-301"),
        ("targets.tpot_ms=", "E-SWEEP-301"),
        ("targets.tpot=1", "E-SWEEP-302"),
        ("workload.*.*=1", "E-SWEEP-302"),
        ("targets.tpot_ms=10..20", "E-SWEEP-303"),
        ("targets.tpot_ms=10..x2:5", "E-SWEEP-303"),
        ("targets.tpot_ms=10:20:1", "E-SWEEP-303"),
        ("targets.tpot_ms=10:20:100001", "E-SWEEP-303"),
        ("targets.tpot_ms=0:20:3:log", "E-SWEEP-303"),
        ("targets.tpot_ms=10,,20", "E-SWEEP-303"),
        ("targets.tpot_ms=abc", "E-SWEEP-303"),
        ("targets.tpot_ms=nan", "E-SWEEP-303"),
        ("targets.tpot_ms=1e999", "E-SWEEP-303"),
        ("targets.tpot_ms=[1", "E-SWEEP-303"),
        ("targets.vram_fraction=90%", "E-SWEEP-303"),
        ("site.power_kw=x0.5..x2:3", "E-SWEEP-304"),
        ("targets.tpot_ms=-5", "E-TARGETS-003"),
        ("targets.vram_fraction=1.5", "E-TARGETS-003"),
        ("choices.cooling=rdhx", "E-CHOICES-007"),
        ("choices.sourcing=rent", "E-CHOICES-005"),
        ("workload.engine=vlm", "E-WORKLOAD-005"),
        ("workload.model=[3]", "E-WORKLOAD-002"),
        ("workload.request=[3]", "E-SWEEP-302"),
        ("workload.request.output_tokens=null", "E-WORKLOAD-004"),
        ("targets.spare_servers=1.5", "E-SWEEP-303"),
        ("targets.spare_servers=[1, 2.5]", "E-SWEEP-303"),
        ("choices.tensor_parallel=1,1.5+2", "E-SWEEP-303"),
        ("choices.tensor_parallel=" + "[" * 5_000, "E-SWEEP-303"),
    ],
)
def test_a_bad_spec_is_told(text: str, code: str) -> None:
    with pytest.raises(UsageProblems) as told:
        read_axis(small(), text)
    assert [one.code for one in told.value.problems] == [code]
    assert told.value.exit_code == 2


def test_every_bad_spec_is_told_at_once() -> None:
    asked = ["targets.tpot=1", "targets.tpot_ms=0,-1", "site.rack_kw=abc", "targets.tpot_ms=5"]
    with pytest.raises(UsageProblems) as told:
        read_axes(small(), asked)
    assert [one.code for one in told.value.problems] == [
        "E-SWEEP-302",
        "E-TARGETS-003",
        "E-TARGETS-003",
        "E-SWEEP-303",
        "E-SWEEP-307",
    ]


def test_cases_are_every_combination_the_last_field_moving_fastest() -> None:
    axes = read_axes(small(), ["targets.tpot_ms=10,20", "site.power_kw=1:3:3"])
    assert case_count(axes) == 6
    assert [case_points(axes, number) for number in range(6)] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_linked_fields_move_together() -> None:
    axes = read_axes(small(), ["targets.tpot_ms=10,20,30", "site.power_kw=1:3:3"], linked=True)
    assert case_count(axes, linked=True) == 3
    assert case_points(axes, 1, linked=True) == (1, 1)
    with pytest.raises(UsageProblems, match="E-SWEEP-305"):
        read_axes(small(), ["targets.tpot_ms=10,20,30", "site.power_kw=1:3:2"], linked=True)


def test_linked_fields_go_on_step_by_step_where_whole_numbers_repeat() -> None:
    axes = read_axes(small(), ["targets.spare_servers=0:2:5", "targets.tpot_ms=20:60:5"], linked=True)
    assert [list(axis.points) for axis in axes] == [[0, 0, 1, 2, 2], [20, 30, 40, 50, 60]]


def test_every_code_of_a_sweep_occurs_here() -> None:
    folder = Path(__file__).parent
    here = [Path(__file__), folder / "test_sweep.py", folder.parent / "commands" / "test_sweep_verb.py"]
    text = "".join(path.read_text(encoding="utf-8") for path in here)
    assert [code for code in CODES if code.startswith("E-SWEEP-3") and code not in text] == []


def test_more_cases_than_anyone_reads_are_refused() -> None:
    axes = read_axes(small(), ["targets.tpot_ms=1:2:2000", "site.power_kw=1:2:2000"])
    with pytest.raises(UsageProblems, match="E-SWEEP-306"):
        case_count(axes)


def two_classes() -> Instance:
    """Two classes of one request, the second with a target of its own."""
    request = {"input_tokens": 500, "output_tokens": 100}
    document = document_of(small())
    document["workload"] = {
        "model": "llama-3.1-8b",
        "classes": [
            {"name": "chat", "request": request, "demand": {"requests_per_s": 100.0}},
            {"name": "batch", "request": request, "demand": {"requests_per_s": 60.0}, "targets": {"ttft_ms": 3000}},
        ],
    }
    return from_document(document, told_as="two classes")


@pytest.mark.parametrize("star", [".*", "[*]"])
def test_a_star_stands_for_every_entry_of_a_list(star: str) -> None:
    axis = read_axis(two_classes(), f"workload.classes{star}.demand.requests_per_s=x0.5,x1")
    assert [field.steps[2] for field in axis.fields] == [0, 1]
    assert axis.values == ((50, 30), (100, 60))
    assert axis.points == ("x0.5", "x1")
    own = read_axis(two_classes(), f"workload.classes{star}.targets.ttft_ms=4000,5000")
    assert [field.steps[2] for field in own.fields] == [1]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("workload.classes.*.targets.latency_ms=5", "must have a value for some entry of workload.classes"),
        ("targets.*=5", "must stand for entries of a list or rows of the catalogue, as in economics.prices.*"),
        ("workload.clases.*.demand.requests_per_s=5", "Did you mean workload.classes?"),
        ("economics.prices.*.server_us=5", "server_usd"),
    ],
)
def test_a_star_that_stands_for_nothing_is_told(text: str, told: str) -> None:
    with pytest.raises(UsageProblems) as refused:
        read_axis(two_classes(), text)
    (problem,) = refused.value.problems
    assert problem.code == "E-SWEEP-302"
    assert told in str(problem)


def test_a_star_over_a_list_that_is_not_written_is_told_with_the_field_beside_it() -> None:
    with pytest.raises(UsageProblems) as refused:
        read_axis(small(), "workload.classes.*.demand.requests_per_s=x1")
    assert "Did you mean workload.demand.requests_per_s?" in str(refused.value.problems[0])
