"""Server power against wall measurements and the law's own form."""

from typing import Any

import numpy as np
import pytest

from optimizer.performance import power
from optimizer.performance.factors import GENERATIONS, load_factors

FACTORS = load_factors()
BLACKWELL, HOPPER = GENERATIONS.index("blackwell"), GENERATIONS.index("hopper")


def b200(**more: Any) -> power.ServerPower:
    given: dict[str, Any] = {"accelerators": 8, "tdp_w": 1000, "maximum_kw": 14.3, "idle_kw": 3.09, **more}
    return power.server_power(BLACKWELL, FACTORS, **given)


def test_measured_servers() -> None:
    # 8 x B200 on Llama-2-70B: 10.5 kW at the wall from 3.09 idle.
    assert power.busy_power_kw(b200(), 1.0) == pytest.approx(10.5, rel=0.03)
    # 8 x H100 at 40 % load: 2.45 + 5.6 x (0.71 - 0.14) x 1.1 = 5.96 kW.
    h100 = power.server_power(HOPPER, FACTORS, accelerators=8, tdp_w=700, maximum_kw=10.2, idle_kw=2.45)
    assert power.busy_power_kw(h100, 0.4) == pytest.approx(5.96, rel=0.02)


def test_by_hand() -> None:
    server = power.ServerPower(8, 500.0, 2.0, 9.0, 0.5, 0.9, 1.0, 0.1, 0.2)
    assert power.busy_power_kw(server, 0.5) == pytest.approx(2.0 + 4.0 * (0.7 - 0.1) * 1.2)
    assert power.average_power_kw(server, 0.25, 0.5) == pytest.approx(2.0 + 0.25 * 4.0 * 0.6 * 1.2)
    assert power.idle_power_kw(server) == 2.0
    assert power.peak_power_kw(server) == 9.0


def test_never_above_the_rated_maximum() -> None:
    small = b200(maximum_kw=6.0)
    assert power.busy_power_kw(small, 1.0) == 6.0


def test_rises_with_load_and_columns_broadcast() -> None:
    loads = np.linspace(0.0, 1.0, 11)
    drawn = power.busy_power_kw(b200(), loads)
    assert np.all(np.diff(drawn) >= 0)
    assert power.busy_power_kw(b200(), 2.0) == drawn[-1]
    columns = power.server_power(
        np.array([HOPPER, BLACKWELL]), FACTORS, accelerators=8, tdp_w=np.array([700.0, 1000.0])
    )
    assert power.busy_power_kw(columns, 1.0).shape == (2,)
    # Without a rating: TDP times the usual factor, idle a share of it.
    assert columns.maximum_kw == pytest.approx(np.array([5.6, 8.0]) * 1.8)
    assert columns.idle_kw == pytest.approx(np.array([5.6 * 0.24, 8.0 * 0.21]) * 1.8)


def test_prompts_draw_more_than_decoding() -> None:
    assert power.decode_fraction_of_tdp(8, FACTORS) == pytest.approx(0.64)
    assert power.decode_fraction_of_tdp(256, FACTORS) == pytest.approx(0.82)
    assert 0.64 < power.decode_fraction_of_tdp(45, FACTORS) < 0.82
    decode, mixed, prefill = (power.saturated_power_kw(b200(), 64, share, FACTORS) for share in (0.0, 0.4, 1.0))
    assert decode < mixed < prefill
    assert prefill == pytest.approx(3.09 + 8 * (0.97 - 0.14) * 1.1)
