"""Columns of deployments and the request class."""

import numpy as np
import pytest

from optimizer.performance.deployments import Traffic
from tests.performance.builders import H100, deploy


def test_scalars_broadcast_to_columns() -> None:
    d = deploy(H100, tensor_parallel=[1, 2, 4], pipeline_parallel=2)
    assert d.size == 3
    assert np.array_equal(d.width, [2, 4, 8])
    assert np.array_equal(d.attention_weight_bytes, d.weight_bytes)
    assert d.take(np.array([2])).tensor_parallel[0] == 4


def test_codes_are_checked() -> None:
    with pytest.raises(ValueError, match="generation_index"):
        deploy({**H100, "generation_index": 99})
    with pytest.raises(ValueError, match="precision_index"):
        deploy({**H100, "precision_index": -1})


def test_traffic_is_checked() -> None:
    for wrong in (
        {"engine": "tgi"},
        {"input_tokens": 0.0},
        {"prefix_hit_fraction": 1.5},
        {"speculative_accepted_tokens": -1.0},
    ):
        with pytest.raises(ValueError, match=r"must|unknown"):
            Traffic(**{"input_tokens": 10.0, "output_tokens": 10.0, **wrong})  # type: ignore[arg-type]


def test_longest_is_never_below_the_mean() -> None:
    assert Traffic(100, 50).longest_tokens == 150
    assert Traffic(100, 50, max_context_tokens=1000).longest_tokens == 1000
    assert Traffic(100, 50, max_context_tokens=10).longest_tokens == 150
