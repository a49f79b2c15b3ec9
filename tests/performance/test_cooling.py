"""PUE of spelled-out options at spelled-out sites (2-degree bins of typical years)."""

import numpy as np
import pytest

from optimizer.performance.cooling import (
    CoolingPhysics,
    HeatPath,
    annual_pue,
    design_pue,
    free_cooling_fraction,
    pue_at,
)

CRAC = CoolingPhysics(0.075, HeatPath(0.12, 0.04, None, None, 3.4, 35.0, 0.08))
ECONOMIZER = CoolingPhysics(0.045, HeatPath(0.045, 0.01, 18.0, 24.0, 4.2, 24.0, 0.1))
DYNAMIC = CoolingPhysics(0.04, HeatPath(0.025, 0.01, 20.0, 26.0, 5.0, 24.0, 0.12))
RESIDUAL = HeatPath(0.06, 0.035, 12.0, 20.0, 4.3, 35.0, 0.1)
DIRECT_TO_CHIP = CoolingPhysics(0.045, HeatPath(0.02, 0.02, 28.0, 38.0, 6.5, 35.0, 0.12), 0.8, RESIDUAL)

#: Bin middle (deg C), hours of the dry bulb, hours of the wet bulb.
DUBLIN = (
    (-5, 1, 33), (-3, 15, 134), (-1, 117, 193), (1, 312, 506), (3, 558, 861), (5, 900, 1287), (7, 1240, 1475),
    (9, 1307, 1326), (11, 1253, 1196), (13, 1063, 948), (15, 1058, 633), (17, 566, 153), (19, 265, 15), (21, 85, 0),
    (23, 19, 0), (25, 1, 0),
)  # fmt: skip
SINGAPORE = (
    (21, 0, 15.8), (23, 110.1, 1484.4), (25, 2157.8, 6467.1), (27, 3655, 792.7), (29, 2303.5, 0), (31, 485.1, 0),
    (33, 48.1, 0), (35, 0.4, 0),
)  # fmt: skip


@pytest.mark.parametrize(
    ("physics", "driver", "site", "published"),
    [
        (CRAC, 1, DUBLIN, 1.4345),
        (CRAC, 1, SINGAPORE, 1.5024),
        (ECONOMIZER, 2, DUBLIN, 1.1000),
        (ECONOMIZER, 2, SINGAPORE, 1.3503),
        (DYNAMIC, 2, DUBLIN, 1.0750),
        (DYNAMIC, 2, SINGAPORE, 1.2466),
        (DIRECT_TO_CHIP, 1, DUBLIN, 1.1005),
        (DIRECT_TO_CHIP, 1, SINGAPORE, 1.1417),
    ],
)
def test_annual_mean(
    physics: CoolingPhysics, driver: int, site: tuple[tuple[float, float, float], ...], published: float
) -> None:
    bins = np.array(site)
    assert annual_pue(physics, bins[:, 0], bins[:, driver]) == pytest.approx(published, abs=0.006)


def test_one_hour_by_hand() -> None:
    # No free cooling: 1 + 0.075 + 0.16 + 1.075 / (3.4 - 0.08 (20 - 35)).
    assert pue_at(CRAC, 20.0) == pytest.approx(1.235 + 1.075 / 4.6)
    # The coefficient of performance is bounded: 8 in deep cold, 2.5 in great heat.
    assert pue_at(CRAC, -60.0) == pytest.approx(1.235 + 1.075 / 8.0)
    assert pue_at(CRAC, 60.0) == pytest.approx(1.235 + 1.075 / 2.5)
    assert pue_at(ECONOMIZER, 18.0) == pytest.approx(1.1)
    assert pue_at(ECONOMIZER, 22.0) == pytest.approx(1.1 + (2 / 3) * 1.045 / 4.4)


def test_free_share() -> None:
    assert free_cooling_fraction(ECONOMIZER.main, [10.0, 18.0, 21.0, 24.0, 40.0]) == pytest.approx([1, 1, 0.5, 0, 0])
    assert free_cooling_fraction(CRAC.main, -30.0) == 0.0


def test_liquid_leaves_its_rest_on_air() -> None:
    all_liquid = CoolingPhysics(0.045, DIRECT_TO_CHIP.main)
    all_air = CoolingPhysics(0.045, RESIDUAL)
    mixed = 0.8 * pue_at(all_liquid, 25.0) + 0.2 * pue_at(all_air, 25.0)
    assert pue_at(DIRECT_TO_CHIP, 25.0) == pytest.approx(mixed)


def test_design_hour_is_the_hottest_that_occurs() -> None:
    bins = np.array(SINGAPORE)
    assert design_pue(ECONOMIZER, bins[:, 0], bins[:, 2]) == pytest.approx(float(pue_at(ECONOMIZER, 27.0)))
    assert design_pue(CRAC, bins[:, 0], bins[:, 1]) == pytest.approx(float(pue_at(CRAC, 35.0)))
    assert design_pue(CRAC, bins[:, 0], bins[:, 1]) >= annual_pue(CRAC, bins[:, 0], bins[:, 1])


def test_hotter_is_never_better() -> None:
    grid = np.linspace(-40, 60, 401)
    for physics in (CRAC, ECONOMIZER, DYNAMIC, DIRECT_TO_CHIP):
        assert np.all(np.diff(pue_at(physics, grid)) >= -1e-12)
