"""What vLLM logged at start on H100: memory left to the cache, and what took the rest, in GiB.

Source: github.com/llm-d-incubation/llm-d-planner, pull 205 and docs/empirical-vllm-memory-results.md (2026-04).
The driver left 79.18 or 79.19 of the card's 79.65 GiB.
"""

from dataclasses import dataclass

#: Vision tower and projector of Mistral-Small-3.1 and 3.2: parameters beside the text model.
MISTRAL_TOWER = 0.439e9


@dataclass(frozen=True, slots=True)
class Row:
    """One start. ``quant`` is bf16, fp32, fp8 or mxfp4 (experts); ``vision`` parameters stand beside the text."""

    model: str
    quant: str
    tensor: int
    pipeline: int
    version: str
    driver_gib: float
    util: float
    weights_gib: float
    activation_gib: float
    non_torch_gib: float
    vision: float = 0.0

    @property
    def pool_gib(self) -> float:
        """What the log leaves to the cache; negative where the start was refused."""
        taken = self.weights_gib + self.activation_gib + self.non_torch_gib
        return self.util * self.driver_gib - taken


ROWS = (
    Row("gpt-oss-120b", "mxfp4", 1, 1, "before 0.17", 79.18, 0.95, 64.38, 7.38, 0.13),
    Row("Llama-3.3-70B", "fp8", 2, 1, "before 0.17", 79.18, 0.90, 33.88, 4.84, 0.55),
    Row("Llama-3.3-70B", "fp8", 1, 1, "before 0.17", 79.18, 0.90, 67.72, 4.84, 0.13),
    Row("Qwen3-32B", "bf16", 2, 1, "before 0.17", 79.18, 0.90, 30.59, 5.64, 0.54),
    Row("Mistral-Small-24B", "bf16", 1, 1, "0.11.0", 79.18, 0.95, 44.76, 2.12, 0.14, MISTRAL_TOWER),
    Row("Llama-3.1-8B", "fp32", 1, 1, "0.19.0", 79.19, 0.95, 29.98, 2.21, 0.25),
    Row("Qwen2.5-7B", "bf16", 1, 1, "0.19.0", 79.19, 0.95, 14.25, 2.21, 0.24),
    Row("Qwen3-14B", "bf16", 1, 1, "0.15.0", 79.19, 0.95, 27.52, 5.64, 0.13),
    Row("Qwen3-14B", "bf16", 1, 1, "0.17.0", 79.19, 0.95, 27.52, 2.23, 0.13),
    Row("Qwen3-14B", "bf16", 1, 1, "0.18.0", 79.19, 0.95, 27.52, 2.23, 0.25),
    Row("Llama-3.1-8B", "bf16", 2, 1, "0.19.0", 79.19, 0.95, 7.51, 1.89, 2.07),
    Row("Llama-3.1-8B", "bf16", 4, 1, "0.19.0", 79.19, 0.95, 3.77, 1.89, 2.13),
    Row("Qwen2.5-7B", "bf16", 2, 1, "0.19.0", 79.19, 0.95, 7.12, 2.21, 2.06),
    Row("Qwen2.5-7B", "bf16", 4, 1, "0.19.0", 79.19, 0.95, 3.55, 2.21, 2.13),
    Row("Llama-3.1-8B", "bf16", 1, 2, "0.19.0", 79.19, 0.95, 7.51, 1.10, 0.07),
    Row("Llama-3.1-8B", "bf16", 1, 4, "0.19.0", 79.19, 0.95, 4.26, 1.05, 0.07),
)
