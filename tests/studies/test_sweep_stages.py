"""What a field is listed as is what it does: stages that are kept are those that would be built anew."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from optimizer.instance.field_paths import document_of, find_field, from_document, replaced
from optimizer.instance.model import Instance
from optimizer.offer import program_data
from optimizer.program import build_program
from optimizer.solver import Compiled
from optimizer.studies.current_values import current_value
from optimizer.studies.ranges import read_axes
from optimizer.studies.sweeping.kinds import LISTED, Kind, kind_of
from optimizer.studies.sweeping.layout import pieces, sorts_of, stage_keys
from optimizer.studies.sweeping.stages import Stages, _built
from tests.studies.small import small


def rich(**demand: Any) -> Instance:
    """Two classes, two accelerators, every cap stated."""
    request = {"input_tokens": 500, "output_tokens": 100}
    classes = [
        {"name": name, "request": request, "demand": demand or {"requests_per_s": 100.0}, "targets": {"tpot_ms": 80}}
        for name in ("chat", "batch")
    ]
    instance = small(choices={"accelerators": ["h100-80gb-sxm", "l40s"], "supply": {"h100-80gb-sxm": 800}})
    document = document_of(instance)
    document["workload"] = {"model": "llama-3.1-8b", "classes": classes}
    document["site"] = {"power_kw": 5000, "racks": 500}
    document["targets"].update(ttft_ms=5000, latency_ms=60000, nvlink_gb_s=400, vram_gib_per_accelerator=79)
    document["targets"]["weights_gib_per_accelerator"] = 60
    return from_document(document, told_as="rich")


def path_of(pattern: tuple[Any, ...]) -> str:
    """A field of the rich instance for a listed pattern."""
    stars = {
        "prices": "h100-80gb-sxm",
        "supply": "h100-80gb-sxm",
        "cooling_prices": "air_containment_econ",
        "classes": 0,
    }
    steps = [stars[pattern[at - 1]] if step == "*" else step for at, step in enumerate(pattern)]
    return ".".join(str(step) for step in steps).replace(".0.", "[0].")


@pytest.mark.parametrize("pattern", LISTED, ids=lambda pattern: ".".join(map(str, pattern)))
def test_a_kept_stage_is_what_would_be_built_anew(pattern: tuple[Any, ...]) -> None:
    unit = {"output_tokens_per_s": 5000.0, "requests_per_s": 50.0, "concurrent_users": 200.0}
    unit_name = str(pattern[-1])
    if pattern[:2] == ("workload", "demand"):
        instance = small()
        document = document_of(instance)
        document["workload"]["demand"] = {unit_name: unit[unit_name]}
        instance = from_document(document, told_as="one class")
    else:
        instance = rich(**({unit_name: unit[unit_name]} if unit_name in unit else {}))
    field = find_field(instance, path_of(pattern))
    assert kind_of(field)[0] is not Kind.OTHER
    now = current_value(instance, field)
    unset = 1000.0 if kind_of(field)[0] is Kind.PRICE else 2e7  # a cap that nothing reaches
    now = unset if now is None else now
    moved = max(1, round(now * 0.9)) if field.is_whole else now * 0.9 if now else 0.1
    other = from_document(replaced(document_of(instance), field.steps, moved), told_as="moved")
    axes = read_axes(instance, [f"{field.name}={now},{moved}"])
    sorts, stages = sorts_of(instance, axes), Stages()
    stages.offer(instance, stage_keys(sorts, (0,)))
    kept = stages.offer(other, stage_keys(sorts, (1,)))
    from optimizer.offer import make_offer
    from optimizer.screen import screen

    fresh = make_offer(screen(_built(other)))
    assert kept.terms == fresh.terms
    assert kept.demand == fresh.demand
    assert kept.setting.instance == other
    assert kept.setting.pools == fresh.setting.pools
    for name in ("requests_per_s", "demand_weight", "busy_air_kw", "kept"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(fresh, name))
    np.testing.assert_array_equal(kept.screened.concurrency, fresh.screened.concurrency)
    one, another = program_data(kept), program_data(fresh)
    assert (one is None) == (another is None)
    if one is not None and another is not None:
        assert (one.pairs, one.capacity, one.demand, one.terms) == (
            another.pairs,
            another.capacity,
            another.demand,
            another.terms,
        )


#: Rows in which the demand may stand: made a column, or weakest at the highest demand (``sweeping.interval``).
KNOWN = {"Demand", "Serve", "Scheme_Routed", "Plant_Routed", "Site_Routed", "Whole_Servers"}


@pytest.mark.parametrize("site", [{}, {"carbon_tonnes_per_year": 1e6, "water_m3_per_year": 1e6, "power_kw": 1e5}])
def test_only_these_rows_know_the_demand(site: dict[str, float]) -> None:
    instance = rich()
    document = document_of(instance)
    document["site"] = site
    document["economics"]["budget_usd_per_year"] = 1e9
    offer = Stages().offer(from_document(document, told_as="capped"), stage_keys((), ()))
    high = program_data(offer, reduce=False)
    assert high is not None
    low = replace(high, demand=tuple(0.8 * one for one in high.demand))
    models = [build_program(one) for one in (low, high)]
    low_rows, high_rows = (rows_of(model) for model in models)
    assert low_rows.keys() == high_rows.keys()
    moved = {name.partition("[")[0] for name, row in high_rows.items() if low_rows[name] != row}
    assert moved
    assert moved <= KNOWN
    costs = [Compiled(model).cost_vector(model.TotalCost.expr) for model in models]
    np.testing.assert_array_equal(costs[0], costs[1])
    for name, (row, _, upper) in high_rows.items():
        if name.partition("[")[0] in KNOWN - {"Demand", "Serve"}:
            # Weaker at the higher demand: coefficients that count against an upper bound do not grow.
            before, _, bound = low_rows[name]
            assert bound == upper
            assert all(value <= before[column] + 1e-12 * abs(before[column]) for column, value in row.items())


def rows_of(model: Any) -> dict[str, tuple[dict[str, float], float | None, float | None]]:
    """Coefficients and bounds of every row, by name."""
    from pyomo.core import Constraint
    from pyomo.repn import generate_standard_repn

    result = {}
    for row in model.component_data_objects(Constraint, active=True):
        repn = generate_standard_repn(row.body)
        body = {var.name: value for var, value in zip(repn.linear_vars, repn.linear_coefs, strict=True)}
        low, high = (None if bound is None else float(bound) - repn.constant for bound in (row.lb, row.ub))
        result[row.name] = (body, low, high)
    return result


def test_every_case_is_in_one_piece_whatever_is_varied() -> None:
    instance = rich()
    asked = [
        ["targets.tpot_ms=20:40:3", "economics.horizon_years=1:5:5", "site.power_kw=100:200:7"],
        ["workload.engine=vllm,sglang", "choices.cooling=dynamic,rdhx_passive"],
        ["site.power_kw=100:200:600"],
        [
            "economics.horizon_years=1:5:40",
            "targets.tpot_ms=20:40:3",
            "site.electricity_usd_per_kwh=0.3,0.1,0.2",
            "economics.discount_rate=0:0.1:30",
        ],
    ]
    for texts in asked:
        axes = read_axes(instance, texts)
        cut = pieces(instance, axes)
        cases = sorted(case for piece in cut for case in piece.cases)
        assert cases == list(range(len(cases)))
        assert len(cases) == np.prod([len(axis) for axis in axes])


def test_prices_are_kept_for_every_limit_of_a_deployment() -> None:
    """The second screen's offers take the prices that were built for the first."""
    from optimizer.offer import make_offer
    from optimizer.screen import screen

    instance = rich()
    axes = read_axes(instance, ["targets.tpot_ms=40,60", "site.electricity_usd_per_kwh=0.1,0.3,0.2"])
    sorts, stages = sorts_of(instance, axes), Stages()
    for points in product(range(2), range(3)):
        document = document_of(instance)
        for axis, point in zip(axes, points, strict=True):
            document = axis.applied(document, point)
        moved = from_document(document, told_as="moved")
        kept, fresh = stages.offer(moved, stage_keys(sorts, points)), make_offer(screen(_built(moved)))
        assert kept.terms == fresh.terms
        assert kept.setting.pools == fresh.setting.pools
        assert kept.setting.instance == moved
        np.testing.assert_array_equal(kept.screened.concurrency, fresh.screened.concurrency)


def test_grids_of_prices_are_cut_to_pieces_that_end() -> None:
    axes = read_axes(rich(), ["economics.horizon_years=1:5:40", "economics.discount_rate=0:0.1:300"])
    cut = pieces(rich(), axes)
    assert {piece.shape for piece in cut} == {(1, 256), (1, 44)}
    axes = read_axes(
        rich(), ["economics.horizon_years=1:5:40", "targets.tpot_ms=30,40", "economics.discount_rate=0:0.1:50"]
    )
    assert [piece.shape for piece in pieces(rich(), axes)] == [(5, 50)] * 16


def test_solving_each_is_shared_out_in_short_pieces() -> None:
    """Sixty cases of one field would be one piece, and a second process of no use, where none needs another."""
    for texts in (["workload.classes.chat.demand.requests_per_s=50:100:60"], ["economics.horizon_years=1:5:60"]):
        axes = read_axes(rich(), texts)
        for linked in (False, True):
            assert len(pieces(rich(), axes, linked=linked)) == 1
            cut = pieces(rich(), axes, linked=linked, reuse=False)
            assert [case for piece in cut for case in piece.cases] == list(range(60))
            assert max(len(piece.cases) for piece in cut) == 4


def test_short_chains_are_cut_so_that_two_processes_share_them() -> None:
    asked = {"site.power_kw=100:200": (1, 2, 8, 8), "workload.classes.chat.demand.requests_per_s=50:100": (1, 2, 4, 4)}
    for text, counts in asked.items():
        for cases, count in zip((60, 64, 256, 1000), counts, strict=True):
            cut = pieces(rich(), read_axes(rich(), [f"{text}:{cases}"]))
            lengths = [len(piece.cases) for piece in cut]
            assert (len(lengths), sum(lengths)) == (count, cases)
            assert max(lengths) - min(lengths) < count


def test_chains_that_are_many_are_not_cut_further() -> None:
    axes = read_axes(rich(), ["site.power_kw=100:200:100", "site.racks=100,200,300,400,500,600,700,800,900"])
    assert [len(piece.cases) for piece in pieces(rich(), axes)] == [100] * 9


def test_limits_go_from_loose_to_tight_and_no_limit_first() -> None:
    axes = read_axes(small(), ["site.power_kw=100,null,300"])
    (piece,) = pieces(small(), axes)
    assert (piece.kind, piece.cases) == (Kind.LIMIT, (1, 2, 0))
