"""VRAM: everything on one accelerator, against its share of memory, the planner's cap, and the cap on weights alone."""

import pytest

from constraints import vram
from tests.constraints.border import bounds, check_border, kept, seen


@pytest.mark.parametrize(
    ("limit", "value"),
    [("vram_gib", 70.0), ("vram_gib_per_accelerator", 70.0), ("weights_gib_per_accelerator", 40.0)],
)
def test_border(limit: str, value: float) -> None:
    check_border(vram, limit, limit, value)


def test_cap_on_weights_does_not_look_at_the_rest() -> None:
    given = bounds(weights_gib_per_accelerator=39.0)
    assert kept(vram, given, seen(weights_gib=38.0, vram_gib=79.0))["weights_gib_per_accelerator"]
    assert not kept(vram, given, seen(weights_gib=39.5, vram_gib=40.0))["weights_gib_per_accelerator"]
