"""Sizes and FLOP of training models."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.performance.training import CONVENTIONS, TrainingModel, flop_per_token
from tests.performance.training.cases import GPT_175B, LLAMA_405B, gpt


def test_known_sizes() -> None:
    assert LLAMA_405B.parameters == pytest.approx(405.9e9, rel=0.001)
    assert GPT_175B.parameters == pytest.approx(175.2e9, rel=0.001)


@settings(max_examples=50, deadline=None)
@given(st.floats(3e9, 2e12), st.floats(0.02, 1.0))
def test_a_model_of_a_size_has_about_that_size(parameters: float, share: float) -> None:
    share = max(share, 2e9 / parameters)
    found = TrainingModel.from_parameters(parameters, share * parameters)
    assert found.parameters == pytest.approx(parameters, rel=0.25)
    assert found.active_parameters == pytest.approx(share * parameters, rel=0.25)


def test_active_parameters_beyond_all_are_refused() -> None:
    with pytest.raises(ValueError):
        TrainingModel.from_parameters(1e9, 2e9)


@pytest.mark.parametrize(("layers", "hidden", "heads"), [(24, 2304, 24), (96, 12288, 96), (128, 25600, 160)])
def test_narayanans_formula(layers: int, hidden: int, heads: int) -> None:
    """Equations of Narayanan et al. 2021: 72 and 96 B L s h^2 (1 + s/6h + V/12hL), V/16hL with recomputation."""
    s, v, model = 2048, 51200, gpt(layers, hidden, heads)
    body = layers * hidden * hidden
    plain = 72 * body * (1 + s / (6 * hidden) + v / (12 * hidden * layers))
    again = 96 * body * (1 + s / (6 * hidden) + v / (16 * hidden * layers))
    # Norms are counted here and not there: below a thousandth.
    assert flop_per_token(model, s, "full") == pytest.approx(plain, rel=1e-3)
    assert flop_per_token(model, s, "hardware_full") == pytest.approx(again, rel=1e-3)


def test_conventions_are_ordered() -> None:
    causal, full, hardware = (flop_per_token(LLAMA_405B, 8192, name) for name in ("causal", "full", "hardware_full"))
    assert causal < full < hardware
    assert flop_per_token(LLAMA_405B, 8192, "8nd") == pytest.approx(flop_per_token(LLAMA_405B, 8192, "6nd") * 4 / 3)
    with pytest.raises(ValueError):
        flop_per_token(LLAMA_405B, 8192, "9nd")
    assert len(CONVENTIONS) == 5


def test_windows_see_less() -> None:
    plain = TrainingModel.from_shape(layers=8, hidden_size=1024, attention_heads=8, ffn_size=4096, vocabulary=1000)
    assert flop_per_token(plain, 4096, "causal") - flop_per_token(plain, 2048, "causal") == pytest.approx(
        6 * plain.score_width * 1024
    )
