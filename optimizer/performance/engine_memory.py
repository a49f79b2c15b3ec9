"""What each engine, and each family of its versions, takes of an accelerator beside weights and cache.

Engines differ in what their memory fraction bounds, in the sampler's working memory, in buffers of collectives
and in which layers may forget; the same engine changed by 3.4 GiB between two versions. Each family stands in
``data/memory.json`` with the source of every constant.
"""

import json
import re
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import resources
from typing import Any, Final, Literal

import numpy as np

from optimizer.performance.factors import ENGINES, GENERATIONS, FactorSource, FloatArray

#: Cards from this size on get the larger defaults of the engines, A100 (ampere) excepted.
LARGE_CARD_GIB: Final = 70.0

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EngineMemory:
    """Memory constants of one engine from ``from_version`` on; meaning and source of each stand in the table.

    Pairs are for large cards and for others. ``budget`` says what the memory fraction bounds: ``total`` all
    but late graphs, ``static`` weights and cache, ``free`` the cache, of what everything else leaves.
    """

    engine: str
    from_version: str
    budget: Literal["total", "static", "free"]
    memory_fraction: float
    largest_memory_fraction: float
    sampler_bytes_per_entry: float
    sampled_sequences: tuple[float, float]
    sequence_slots: tuple[float, float]
    batched_tokens: tuple[float, float]
    sampler_base_gib: float
    forward_base_gib: float
    expert_workspace: float
    runtime_gib: float
    runtime_pipeline_gib: float
    communication_gib: float
    communication_gib_per_rank: float
    graph_gib: float
    graphs_inside: float
    page_tokens: float
    window_cache: float
    latent_cache: float
    expert_tile: float

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise ValueError(f"unknown engine {self.engine!r}; one of {', '.join(ENGINES)}")
        for field in fields(self)[3:]:
            values = np.atleast_1d(np.asarray(getattr(self, field.name), dtype=np.float64))
            if not np.all(np.isfinite(values)) or np.any(values < 0):
                raise ValueError(f"{field.name} must be finite and at least 0, found {values.tolist()}")
        if not 0 < self.largest_memory_fraction <= 1 or self.memory_fraction > 1:
            raise ValueError("memory fractions must lie in (0, 1]")


def parse_version(text: str) -> Version:
    """``"0.19.0rc1"`` to ``(0, 19, 0)``; ``"before 0.17"`` to a version just below; () where no number stands."""
    match = re.search(r"\d+(?:\.\d+)*", text)
    if match is None:
        return ()
    numbers = tuple(int(part) for part in match.group().split("."))
    if "before" in text.lower() or "<" in text:
        *head, last = numbers
        # One patch level below: the family that ends there.
        return (*head, last - 1, 999) if last > 0 else (*head, 0)
    return numbers


def memory_document() -> dict[str, Any]:
    """The packaged table as it lies in the file."""
    text = resources.files("optimizer.performance").joinpath("data/memory.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


@cache
def engine_families() -> tuple[EngineMemory, ...]:
    """Every packaged family, by engine and from the oldest version to the newest."""
    families = []
    for row in memory_document()["families"]:
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in row.items()
        }
        families.append(EngineMemory(**values))
    return tuple(families)


@cache
def engine_memory(engine: str = "generic", version: str = "") -> EngineMemory:
    """The family of an engine's version; the newest where no version is given or it says no number.

    A version newer than the data gets the newest family. ValueError for an unknown engine.
    """
    families = [family for family in engine_families() if family.engine == engine]
    if not families:
        raise ValueError(f"unknown engine {engine!r}; one of {', '.join(ENGINES)}")
    asked = parse_version(version)
    if not asked:
        return families[-1]
    known = [family for family in families if parse_version(family.from_version) <= asked]
    return known[-1] if known else families[0]


@cache
def with_slots(family: EngineMemory, slots: float) -> EngineMemory:
    """The family with its sequence slots set to a number on every card; 0 leaves the engine's default.

    An engine that sizes its sampler for all of its slots (vLLM) sizes it for the given ones.
    """
    if slots <= 0.0:
        return family
    samples_all = family.sampled_sequences == family.sequence_slots
    sampled = (slots, slots) if samples_all else family.sampled_sequences
    return replace(family, sequence_slots=(slots, slots), sampled_sequences=sampled)


def is_newer_than_data(engine: str, version: str) -> bool:
    """Whether a version came after those whose memory was looked at: its constants may have changed."""
    until = parse_version(memory_document()["known_until"].get(engine, ""))
    return bool(until) and parse_version(version)[: len(until)] > until


def memory_sources() -> tuple[FactorSource, ...]:
    """Unit, meaning, source, date and trust of every memory constant, in the order of the table."""
    return tuple(
        FactorSource(name, row["unit"], row["meaning"], row["source"], row["as_of"], row["trust"])
        for name, row in memory_document()["constants"].items()
    )


@cache
def driver_shares() -> FloatArray:
    """Share of the card's memory that the driver leaves, by generation in the order of ``GENERATIONS``."""
    shares = memory_document()["driver_share"]
    return np.array([shares.get(name, shares["default"]) for name in GENERATIONS], dtype=np.float64)
