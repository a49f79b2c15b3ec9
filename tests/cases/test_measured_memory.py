"""The cache pool of logged starts from the configuration alone, each row with constants that never saw it.

The logit's and the sampler's bytes, shapes and engine defaults are facts of the engines' code. What is left to
fit are six small numbers in GiB; here each is refitted as a mean over the rows that remain, and where a row was
the only one of its kind, its neighbours' value stands in.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from optimizer.performance.deployments import Deployments, Traffic
from optimizer.performance.engine_memory import EngineMemory, engine_memory
from optimizer.performance.memory import MemoryItems, Stage, activation_gib, memory_items
from tests.cases.build import GIB, factors, model, on
from tests.cases.measured_memory import ROWS, Row

WEIGHT_BYTES = {"bf16": 2.0, "fp32": 4.0, "fp8": 1.0, "mxfp4": 4.25 / 8}
TRAFFIC = Traffic(8000, 192, engine="vllm")


def deployed(row: Row) -> Deployments:
    width = 4.0 if row.quant == "fp32" else 2.0
    weights = WEIGHT_BYTES[row.quant]
    return on(
        "h100-80gb-sxm",
        tensor_parallel=row.tensor,
        pipeline_parallel=row.pipeline,
        weight_bytes=weights,
        attention_weight_bytes=width if row.quant == "mxfp4" else weights,
        wide_bytes=width,
        kv_bytes=width,
    )


def stage_of(row: Row) -> Stage:
    # A log of several stages is the first one's, which does not sample.
    return "first" if row.pipeline > 1 else "last"


def is_recent(row: Row) -> bool:
    return engine_memory("vllm", row.version).communication_gib > 1.0


def predicted(row: Row, engine: EngineMemory) -> MemoryItems:
    vision = row.vision * 2 / GIB
    return memory_items(
        model(row.model), deployed(row), TRAFFIC, factors(),
        usable_memory_fraction=row.util, engine=engine, extra_weights_gib=vision, stage=stage_of(row),
    )  # fmt: skip


def mean(values: Iterable[float], otherwise: float) -> float:
    found = list(values)
    return float(np.mean(found)) if found else otherwise


def fitted(row: Row, rows: tuple[Row, ...]) -> EngineMemory:
    """The family of a row with its constants from other rows only."""
    own = engine_memory("vllm", row.version)
    recent = is_recent(row)
    alike = [other for other in rows if is_recent(other) == recent]

    def residual(other: Row) -> float:
        bare = replace(engine_memory("vllm", other.version), sampler_base_gib=0.0, forward_base_gib=0.0)
        return other.activation_gib - float(
            activation_gib(model(other.model), deployed(other), bare, stage=stage_of(other))[0]
        )

    staged = [other for other in rows if other.pipeline > 1]
    sampled = [other for other in rows if other.pipeline == 1 and not other.vision]
    old = own.sampler_base_gib < 0.1
    base = mean(
        (residual(one) for one in sampled if (engine_memory("vllm", one.version).sampler_base_gib < 0.1) == old), 0.0
    )
    runtime = mean(
        (one.non_torch_gib for one in rows
         if one.tensor == one.pipeline == 1 and engine_memory("vllm", one.version).runtime_gib == own.runtime_gib), 0.2,
    )  # fmt: skip
    wide = {one.tensor: one.non_torch_gib - runtime for one in alike if one.tensor > 1}
    nearest = min(wide, key=lambda tensor: abs(tensor - row.tensor), default=0)
    return replace(
        own,
        sampler_base_gib=max(base, 0.0),
        forward_base_gib=max(mean(map(residual, staged), 0.0), 0.0),
        runtime_gib=runtime,
        runtime_pipeline_gib=mean((one.non_torch_gib for one in staged), runtime),
        communication_gib=max(wide[nearest] if wide else 0.0, 0.0),
        communication_gib_per_rank=0.0,
    )


def allowed(row: Row) -> float:
    return max(0.03 * abs(row.pool_gib), 1.0)


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row.model}-{row.quant}-tp{row.tensor}-pp{row.pipeline}-{row.version}"
)
def test_pool_of_a_row_that_the_constants_never_saw(row: Row) -> None:
    rest = tuple(other for other in ROWS if other is not row)
    error = float(predicted(row, fitted(row, rest)).pool_gib[0]) - row.pool_gib
    assert abs(error) <= allowed(row)
    # What is reached is far inside the bar.
    assert abs(error) <= 0.35


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row.model}-{row.quant}-tp{row.tensor}-pp{row.pipeline}-{row.version}"
)
def test_items_of_a_row_with_the_packaged_constants(row: Row) -> None:
    items = predicted(row, engine_memory("vllm", row.version))
    assert items.weights_gib[0] == pytest.approx(row.weights_gib, rel=0.01)
    assert items.activation_gib[0] == pytest.approx(row.activation_gib, abs=0.2)
    assert items.communication_gib[0] + items.runtime_gib[0] == pytest.approx(row.non_torch_gib, abs=0.03)
    assert items.pool_gib[0] == pytest.approx(row.pool_gib, abs=0.25)


def test_the_stage_that_samples_binds() -> None:
    row = next(row for row in ROWS if row.pipeline == 2)
    last, first = (
        memory_items(model(row.model), deployed(row), TRAFFIC, factors(), usable_memory_fraction=0.95, stage=stage)
        for stage in ("last", "first")
    )
    assert last.activation_gib[0] > first.activation_gib[0] + 0.5
    assert last.pool_gib[0] < first.pool_gib[0]
