"""Latency: time per token, to the first token, to the last."""

import numpy as np
import pytest

from constraints import latency
from tests.constraints.border import bounds, check_border, kept, seen


@pytest.mark.parametrize(("limit", "value"), [("tpot_ms", 20.0), ("ttft_ms", 500.0), ("latency_ms", 3000.0)])
def test_border(limit: str, value: float) -> None:
    check_border(latency, limit, limit, value)


def test_what_is_not_asked_for_is_not_limited() -> None:
    slow = seen(tpot_ms=1e12, ttft_ms=1e12, latency_ms=1e15)
    assert all(kept(latency, bounds(tpot_ms=np.inf, ttft_ms=np.inf, latency_ms=np.inf), slow).values())
