"""What is known of a training stack from its name: its family, its age, its attention kernels.

A stack is software with the way it is run, as tables name it ("NeMo 25.04", "LLM Foundry (FSDP)"). A name that is
not known gets the traits of the most common family and the mean of all stacks.
"""

import re
from dataclasses import dataclass
from typing import Final

#: Families with overheads of their own. ``early``: Megatron-LM and DeepSpeed of 2021-22, attention not fused, nothing
#: overlapped; ``megatron``: the NVIDIA line since 2023, and what is not known; ``eager``: PyTorch FSDP; ``xla``: JAX.
FAMILIES: Final = ("early", "megatron", "eager", "xla")
#: Parts of names that tell the family; the first that is found counts.
_FAMILY_WORDS: Final = (
    ("deepspeed", "early"),
    ("mt-nlg", "early"),
    ("bigscience", "early"),
    ("megatron-lm", "early"),
    ("foundry", "eager"),
    ("torchtitan", "eager"),
    ("automodel", "eager"),
    ("fsdp2", "eager"),
    ("maxtext", "xla"),
    ("paxml", "xla"),
    ("-pax", "xla"),
)
#: Parts of names that stand for one line of software: releases of a line resemble each other.
_LINES: Final = (
    ("deepspeed", "DeepSpeed"),
    ("mt-nlg", "DeepSpeed"),
    ("bigscience", "DeepSpeed"),
    ("megatron-bridge", "Megatron-Bridge"),
    ("automodel", "NeMo AutoModel"),
    ("nemo", "NeMo"),
    ("mlperf", "MLPerf"),
    ("megatron-lm", "Megatron-LM"),
    ("megatron-core", "Megatron-Core"),
    ("foundry", "LLM Foundry"),
    ("torchtitan", "torchtitan"),
    ("maxtext", "JAX"),
    ("paxml", "JAX"),
    ("megascale", "MegaScale"),
)
#: Year of stacks whose name has no release number: of the paper, round or table.
_YEARS: Final = (
    ("jan-2021", 2021.05),
    ("2021", 2021.3),
    ("2022", 2022.3),
    ("mlperf v3.1", 2023.8),
    ("mlperf v4.0", 2024.4),
    ("mlperf v4.1", 2024.8),
    ("mlperf v5.0", 2025.4),
    ("mlperf v5.1", 2025.8),
    ("core 0.8", 2024.6),
    ("foundry", 2023.7),
    ("megascale", 2023.7),
    ("torchtitan", 2024.95),
    ("automodel", 2026.2),
    ("maxtext", 2025.6),
    ("hai-llm", 2024.9),
    ("llama 3", 2024.3),
    ("nemotron-4", 2024.3),
    ("mt-nlg", 2021.8),
)
#: NVIDIA's line, and the year until which it had no fused kernels on Blackwell for values narrower than queries: the
#: recipes of DeepSeek-V3 on GB200 in NeMo of mid 2025 compute the scores again (recompute_modules core_attn), which
#: fused kernels never keep; those on H100 and those of Megatron-Bridge do not.
_NVIDIA: Final = ("NeMo", "Megatron-LM", "Megatron-Core", "Megatron-Bridge")
_FUSED_NARROW_YEAR: Final = 2025.6
_RELEASE: Final = re.compile(r"(?<![\d.])(2\d)\.(\d\d)")
_PLAIN_YEAR: Final = re.compile(r"\b(20[12]\d)\b")


@dataclass(frozen=True, slots=True)
class StackTraits:
    """``line`` is empty where the name tells none; ``year`` is NaN where it is not known.

    ``early_flash`` says that attention runs in the first flash kernels (Triton), ``tuned`` that the whole step is
    one captured graph, as in benchmark submissions.
    """

    name: str
    family: str
    line: str
    year: float
    early_flash: bool
    tuned: bool

    @property
    def fused_loss(self) -> bool:
        """The loss is one kernel over the logits: all software but that of 2021-22 and plain PyTorch (torchtitan)."""
        return self.family != "early" and self.line != "torchtitan"


def stack_traits(name: str, generation: str = "") -> StackTraits:
    """Traits of a stack's name; ``early`` software never ran on accelerators after ampere."""
    low = name.lower()
    family = next((found for word, found in _FAMILY_WORDS if word in low), "megatron")
    if family == "early" and generation not in ("", "volta", "ampere"):
        family = "megatron"
    line = next((found for word, found in _LINES if word in low), "")
    release = _RELEASE.search(low) if "mlperf" not in low and "core 0" not in low else None
    year = float("nan")
    if release is not None:
        year = 2000.0 + int(release[1]) + int(release[2]) / 12.0
    else:
        plain = _PLAIN_YEAR.search(low)
        year = next((found for word, found in _YEARS if word in low), float(plain[1]) + 0.5 if plain else year)
    return StackTraits(name.strip(), family, line, year, "foundry" in low, "mlperf" in low)


def unfuses_narrow_values(traits: StackTraits) -> bool:
    """Whether attention whose values are narrower than its queries writes its scores on Blackwell in this software."""
    return traits.line in _NVIDIA and traits.year < _FUSED_NARROW_YEAR
