"""Spares for a target of availability: the step function against exact fractions, and the program against a loop."""

import json
import math
from typing import Any

import pytest

from optimizer.api import solve
from optimizer.instance.model import Instance
from optimizer.instance.targets import Targets
from optimizer.spares import available_probability, available_spares, down_fraction, spare_steps, spares_needed
from optimizer.verify import verify
from optimizer.verify.spares import enough_up, needed_spares
from tests.core.hand import bought, data_of, instance, offered, price, server_type
from tests.core.hand import solve as solve_program
from tests.oracle import tiers
from tests.verify.plans import BOUGHT, document, read


def targets(availability: float | None = 0.999, failures: float = 0.3, days: float = 10.0, **more: Any) -> Targets:
    return Targets(
        availability_fraction=availability,
        failures_per_accelerator_year=failures,
        repair_days=days,
        spare_fraction=0.0,
        **more,
    )


@pytest.mark.parametrize("availability", [0.5, 0.9, 0.999, 0.9999999])
@pytest.mark.parametrize(("failures", "days"), [(0.0, 7.0), (0.04, 7.0), (0.3, 30.0)])
@pytest.mark.parametrize("count", [1, 2, 5, 8, 9])
def test_least_spares_are_those_of_exact_fractions(
    availability: float, failures: float, days: float, count: int
) -> None:
    asked = targets(availability, failures, days)
    expected = tiers.available_spares(asked, 8, count)
    assert spares_needed(asked, 8, count) == expected
    assert needed_spares(asked, 8, count) == expected


def test_one_server_by_hand() -> None:
    """Up 99 % of the time: one spare makes 1 - 0.01^2 of it, and 0.99 itself needs none."""
    down = 0.01
    asked = targets(0.99, failures=365.25 / 7.0 * down / (1.0 - down), days=7.0)
    assert down_fraction(asked, 1) == pytest.approx(down)
    assert available_probability(1, 1, down) == pytest.approx(1.0 - down**2)
    assert enough_up(1, 1, 1.0 - down) == pytest.approx(1.0 - down**2)
    assert [available_spares(1, down, share) for share in (0.98, 0.9998, 0.99995)] == [0, 1, 2]


def test_spares_rise_with_the_count_and_large_counts_are_numbers() -> None:
    asked = targets(0.9999, 0.04, 7.0)
    found = [spares_needed(asked, 8, count) for count in range(400)]
    assert found == sorted(found)
    down = down_fraction(asked, 8)
    # (1 - u)^20000 is no number; the normal law gives about the mean and 3.7 of its spread.
    many = available_spares(200_000, down, 0.9999)
    assert many == pytest.approx(200_000 * down + 3.72 * math.sqrt(200_000 * down), rel=0.02)


@pytest.mark.parametrize("most", [0, 1, 2, 5, 40, 133])
@pytest.mark.parametrize("failures", [0.04, 1.0, 9.0])
def test_steps_are_the_counts_that_spares_keep(most: int, failures: float) -> None:
    asked = targets(failures=failures)
    steps = spare_steps(asked, 8, most)
    for count in range(most + 1):
        needed = spares_needed(asked, 8, count)
        if count + needed <= most:
            assert min(k for k, end in enumerate(steps) if count <= end) == needed
    assert all(end + k <= most for k, end in enumerate(steps))
    assert spare_steps(targets(None), 8, most) == ()


@pytest.mark.parametrize("needed", range(1, 13))
def test_program_against_a_loop(needed: int) -> None:
    """The count in service is what the demand asks for, and the spares are the least for it, in either pool."""
    asked = {"availability_fraction": 0.99, "failures_per_accelerator_year": 0.5, "repair_days": 20.0}
    given = instance(targets=asked)
    of = server_type()
    pools = [bought("air", of), bought("other", of)]
    terms = [price(("Servers", "air"), 1.0), price(("Servers", "other"), 1.5)]
    data = data_of(given, pools, [offered("d", of)], terms, demand=(float(needed),))
    found = solve_program(data)
    assert found is not None
    exact = Targets(**asked, spare_fraction=0.0)  # type: ignore[arg-type]
    assert found.usd_per_hour == pytest.approx(needed + tiers.available_spares(exact, 8, needed))


def test_a_plan_has_the_spares_and_one_fewer_is_refused() -> None:
    given = json.loads(json.dumps(BOUGHT))
    given["targets"] |= {"availability_fraction": 0.9999, "failures_per_accelerator_year": 0.5, "spare_fraction": 0.0}
    plan = solve(Instance.model_validate_json(json.dumps(given))).plan
    assert plan is not None
    assert not verify(plan)
    (group,) = plan.servers
    assert group.spare == tiers.available_spares(plan.instance.targets, 8, group.in_service)
    assert group.spare > math.ceil(0.05 * group.in_service)
    raw = document(plan)
    raw["servers"][0]["spare"] -= 1
    raw["servers"][0]["servers"] -= 1
    assert "V-SPARE" in {one.code for one in verify(read(raw))}
