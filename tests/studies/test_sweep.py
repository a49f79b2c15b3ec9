"""A sweep's answers are those of solving every case: whatever is reused, whoever does it, however often it stops."""

from pathlib import Path
from typing import Any

import pytest

from optimizer.errors import UsageProblems
from optimizer.instance.model import Instance
from optimizer.studies.standing import Standing
from optimizer.studies.sweep import Sweep, sweep
from tests.studies.small import prices, small

DEMAND = "workload.demand.requests_per_s"
BUY = "economics.prices.h100-80gb-sxm.server_usd"


def two_types(**sections: Any) -> Instance:
    """H100 and L40S, bought or rented, several layouts: fleets are mixed under tight caps."""
    choices = {"accelerators": ["h100-80gb-sxm", "l40s"], "tensor_parallel": [1, 2]}
    return small(choices={**choices, **sections.pop("choices", {})}, **sections)


def same_answers(reused: Sweep, solved: Sweep) -> None:
    """Same choice, and the same cost within the ties' window, case by case."""
    assert len(reused.rows) == len(solved.rows) == reused.count
    assert {row.proof for row in solved.rows} == {"solved"}
    for one, other in zip(reused.rows, solved.rows, strict=True):
        assert (one.case, one.values, one.status, one.winner) == (other.case, other.values, other.status, other.winner)
        assert one.forbidden_by == other.forbidden_by
        if one.usd_per_year is not None:
            assert one.usd_per_year == pytest.approx(other.usd_per_year, rel=2e-6)
            assert one.accelerators == other.accelerators
            assert one.capital_usd == pytest.approx(other.capital_usd)
            assert one.power_kw == pytest.approx(other.power_kw)


CASES = [
    (small(), [f"{DEMAND}=850:1050:13"]),
    (small(("buy",), workload={"load": {"mean_fraction": 1.0}}), [f"{DEMAND}=850:1050:13"]),
    (two_types(), [f"{DEMAND}=100:120:11"]),
    (two_types(choices={"sourcing": ["buy"]}), ["site.power_kw=5:60:11"]),
    (small(), [f"{BUY}=100000:500000:13"]),
    (two_types(), ["economics.horizon_years=5:5.4:8"]),
    (small(), ["targets.tpot_ms=null,200,100,50,40,30,20,10,5"]),
    (small(("buy",)), ["economics.budget_capex_usd=null,5e6,4e6,3e6,2e6,1e6,5e5"]),
    (two_types(), ["targets.tpot_ms=20,60", f"{BUY}=x0.5..x2:9"]),
    (two_types(), [f"{BUY}=x2,x0.3,null,x1", "site.electricity_usd_per_kwh=0.05:0.5:3"]),
]


@pytest.mark.parametrize(("instance", "vary"), CASES, ids=[" ".join(vary) for _, vary in CASES])
def test_what_is_reused_is_what_solving_gives(instance: Instance, vary: list[str]) -> None:
    reused = sweep(instance, vary)
    same_answers(reused, sweep(instance, vary, reuse=False))
    assert reused.solved < reused.count or "tpot" in vary[0]


@pytest.mark.parametrize("others", [[], ["h100-80gb-sxm"]])
def test_a_price_that_brings_servers_to_market_is_no_mere_price(others: list[str]) -> None:
    """The A800 has no price of its own in the catalogue: without one it is not offered."""
    instance = small(choices={"accelerators": ["a800-80gb-sxm", *others]})
    vary = ["economics.prices.a800-80gb-sxm.server_usd=null,10000,250000,400000"]
    reused = sweep(instance, vary)
    same_answers(reused, sweep(instance, vary, reuse=False))
    assert len({row.winner for row in reused.rows}) > 1


def test_most_cases_of_a_demand_sweep_are_proven_from_others() -> None:
    found = sweep(small(), [f"{DEMAND}=900:1000:200"])
    assert found.solved <= 10


def test_a_grid_of_prices_is_proven_from_its_corners() -> None:
    """One plan throughout: four solves do for every price between, whatever is on the other axes."""
    vary = [f"{BUY}=x0.9..x1.1:9", "targets.tpot_ms=40,60", "site.electricity_usd_per_kwh=0.08:0.1:7"]
    found = sweep(small(("buy",)), vary)
    assert found.count == 126
    assert found.solved == 2 * 4
    assert {row.status for row in found.rows} == {"optimal"}


def test_linked_fields_move_together() -> None:
    vary = [f"{BUY}=x0.5,x1,x2", "economics.prices.h100-80gb-sxm.on_demand_usd_per_hour=2,3,4"]
    found = sweep(small(), vary, linked=True)
    assert [row.values for row in found.rows] == [(125_000, 2), (250_000, 3), (500_000, 4)]
    same_answers(found, sweep(small(), vary, linked=True, reuse=False))


def test_cases_that_nothing_fits_name_what_forbids_them() -> None:
    found = sweep(small(("buy",)), ["site.power_kw=1,2,1000", "targets.tpot_ms=0.1,60"])
    told = {row.values: (row.status, row.forbidden_by) for row in found.rows}
    assert told[1000, 60] == ("optimal", ())
    assert told[1, 60] == told[2, 60] == ("infeasible", ("site.power_kw",))
    assert told[1000, 0.1] == ("infeasible", ("targets.tpot_ms",))


def test_a_sweep_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    vary = ["targets.tpot_ms=40,60", "targets.spare_servers=0,1", f"{DEMAND}=900,1000"]
    whole = sweep(small(), vary)
    journal = tmp_path / "a.csv.part"
    seen: list[Standing] = []
    part = sweep(small(), vary, journal=journal, progress=seen.append, stop=lambda: len(seen) >= 2)
    assert 0 < len(part.rows) < whole.count
    with journal.open("a", encoding="utf-8") as file:
        file.write('{"piece": 4, "rows": [{"case"')  # a crash in the middle of a line
    again: list[Standing] = []
    assert sweep(small(), vary, journal=journal, progress=again.append).rows == whole.rows
    assert again[0].done == len(part.rows)
    assert [one.done for one in again] == sorted(one.done for one in again)
    assert again[-1].done == again[-1].total == whole.count
    with pytest.raises(UsageProblems, match="E-SWEEP-309"):
        sweep(small(), [f"{DEMAND}=900,950"], journal=journal)
    assert len(sweep(small(), [f"{DEMAND}=900,950"], journal=journal, force=True).rows) == 2


def test_combinations_that_no_instance_may_have_are_told_before_anything_is_solved() -> None:
    instance = small(targets={"ttft_ms": 100})
    with pytest.raises(UsageProblems, match="E-TARGETS-023"):
        sweep(instance, ["targets.latency_ms=50,5000", "targets.ttft_ms=10,100"])


def test_an_unknown_scheduler_is_told() -> None:
    with pytest.raises(UsageProblems, match="E-SWEEP-308"):
        sweep(small(), [f"{DEMAND}=900,950"], scheduler="nonsense://nowhere")


def test_prices_under_a_budget_are_solved_one_by_one() -> None:
    instance = small(("buy",), economics={**prices(), "budget_capex_usd": 3e6})
    vary = [f"{BUY}=200000:300000:5"]
    found = sweep(instance, vary)
    assert found.solved == found.count
    same_answers(found, sweep(instance, vary, reuse=False))


@pytest.mark.slow
def test_rows_are_the_same_for_any_number_of_workers() -> None:
    vary = ["targets.tpot_ms=40:60:3", f"{BUY}=x0.5..x2:5", f"{DEMAND}=900,950"]
    one = sweep(small(), vary)
    assert one.count == 30
    for jobs in (2, 3):
        assert sweep(small(), vary, jobs=jobs).rows == one.rows
