"""A sweep over an instance that trains: days against dollars."""

from optimizer.studies.sweep import sweep
from tests.training.small import one_job, read


def test_a_tighter_deadline_costs_no_less_until_nothing_fits() -> None:
    found = sweep(read(one_job()), ["targets.deadline_days=5,20,40,60"]).rows
    assert {row.status for row in found} <= {"infeasible", "optimal"}
    costs = [row.usd_per_year for row in found if row.usd_per_year is not None]
    assert len(costs) >= 2
    assert costs == sorted(costs, reverse=True)
