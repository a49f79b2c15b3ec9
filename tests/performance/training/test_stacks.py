"""What names of stacks tell."""

import math

import pytest

from optimizer.performance.training.stacks import stack_traits


@pytest.mark.parametrize(
    ("name", "family", "line", "year"),
    [
        ("Megatron-LM 2021", "early", "Megatron-LM", 2021.3),
        ("Megatron-DeepSpeed 2022 (JZ, 4xOPA per node)", "early", "DeepSpeed", 2022.3),
        ("MT-NLG", "early", "DeepSpeed", 2021.8),
        ("NeMo 25.04", "megatron", "NeMo", 2025 + 4 / 12),
        ("Megatron-Bridge 26.02.01", "megatron", "Megatron-Bridge", 2026 + 2 / 12),
        ("NeMo AutoModel (PyTorch FSDP2)", "eager", "NeMo AutoModel", 2026.2),
        ("MLPerf v5.0", "megatron", "MLPerf", 2025.4),
        ("LLM Foundry (FSDP)", "eager", "LLM Foundry", 2023.7),
        ("MaxText 24.11 (FSDP)", "xla", "JAX", 2024 + 11 / 12),
        ("Megatron-Core 0.8", "megatron", "Megatron-Core", 2024.6),
        ("NeMo 2023", "megatron", "NeMo", 2023.5),
    ],
)
def test_names(name: str, family: str, line: str, year: float) -> None:
    found = stack_traits(name, "ampere")
    assert (found.family, found.line) == (family, line)
    assert found.year == pytest.approx(year)


def test_unknown_names_get_the_usual_traits() -> None:
    found = stack_traits("our own trainer")
    assert (found.family, found.line, found.early_flash, found.tuned) == ("megatron", "", False, False)
    assert math.isnan(found.year)


def test_early_software_never_ran_on_later_accelerators() -> None:
    assert stack_traits("Megatron-LM", "ampere").family == "early"
    assert stack_traits("Megatron-LM", "hopper").family == "megatron"
