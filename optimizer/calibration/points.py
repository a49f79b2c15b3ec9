"""Measured serving points: read from a table, named in the catalogue's words, turned into work.

A table's cells are what a benchmark published. What it leaves out is inferred here by rules that hold for whole
campaigns, never row by row: the width of weights from the precision's name and the model's native scope, the
length of requests from the benchmark's sampling, drafts from the campaign (``inference``).
"""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

import numpy as np

from optimizer.catalog import Catalog, UnknownName
from optimizer.models import architecture_from_catalog
from optimizer.performance.architecture import Architecture
from optimizer.performance.deployments import Deployments, Traffic
from optimizer.performance.engine_age import age_years, release_day
from optimizer.performance.factors import ENGINES, GENERATIONS, PRECISIONS, FloatArray
from optimizer.performance.sharding import shard_cache, shard_weights
from optimizer.performance.work import Work, joined, work_of

#: Columns a table must have; the others of ``read_points`` may be missing.
REQUIRED: Final = ("id", "accelerator", "model", "precision", "input_tokens", "output_tokens", "concurrency")
#: Release day of an engine whose version and measuring day are both unknown: the earliest such campaigns.
_UNDATED: Final = date(2025, 10, 15)
#: The public benchmark that draws lengths of 0.8-1.0 of the nominal one sends these pairs.
_SAMPLED_LENGTHS: Final = frozenset({(1024, 1024), (1024, 8192), (8192, 1024)})
_SAMPLED_SHARE: Final = 0.9
#: Bytes a weight by format, with scales of blocks of 16 (NVFP4), 32 (MXFP4) and 128 (int4 groups).
_NVFP4, _MXFP4, _INT4 = 0.5625, 0.53125, 0.53
_ENGINE_NAMES: Final = {"tensorrt-llm": "trtllm", "trt-llm": "trtllm", "": "generic"}


@dataclass(frozen=True, slots=True)
class Point:
    """One measured configuration in the program's terms; NaN where nothing was measured.

    Lengths are the mean ones sent. ``weights`` is bytes a quantized weight, ``attention`` the same in attention.
    ``accepted`` is draft tokens accepted a step. ``problem`` says why a row cannot be predicted, else empty.
    """

    id: str
    accelerator: str
    model: str
    label: str
    precision: str
    engine: str
    version: str
    measured_on: str
    nominal_input: float
    nominal_output: float
    input_tokens: float
    output_tokens: float
    equal_lengths: bool
    concurrency: float
    tensor_parallel: int
    pipeline_parallel: int
    attention_data_parallel: int
    expert_parallel: int
    weights: float
    attention: float
    cache: float
    compute: str
    prefix_hit: float
    accepted: float
    ttft_ms: float
    tpot_ms: float
    output_tokens_per_s: float
    problem: str = ""

    @property
    def accelerators(self) -> int:
        """Accelerators of the deployment."""
        return self.tensor_parallel * self.pipeline_parallel * self.attention_data_parallel

    @property
    def group(self) -> str:
        """The configuration group that cross-validation keeps together."""
        parts = (
            self.label,
            self.accelerator,
            self.precision,
            self.engine,
            self.tensor_parallel,
            self.attention_data_parallel,
            int(self.nominal_input),
        )
        return "|".join(str(part) for part in parts)

    @property
    def campaign(self) -> tuple[str, str, str, str]:
        """The run of a benchmark that a point belongs to: settings that nobody wrote down are its own."""
        return (self.label, self.engine, self.version, self.measured_on)

    @property
    def age_years(self) -> float:
        """Age of the engine: by its version, else by the day of measuring."""
        day = release_day(self.engine, self.version)
        if day is None:
            day = date.fromisoformat(self.measured_on) if self.measured_on else _UNDATED
        return age_years(day)


def read_table(text: str) -> tuple[list[str], list[dict[str, str]]]:
    """Column names and rows of a CSV text."""
    reader = csv.DictReader(io.StringIO(text))
    rows = [{name: value or "" for name, value in row.items() if name} for row in reader]
    return [name for name in reader.fieldnames or () if name], rows


def _number(row: Mapping[str, str], name: str, default: float) -> float:
    cell = row.get(name, "").strip()
    return float(cell) if cell else default


def _formats(
    precision: str, architecture: Architecture, native: str, generation: str
) -> tuple[float, float, float, str]:
    """Bytes a weight, a weight in attention and a cache element, and the format multiplied in.

    Checkpoints in 4 bits of expert models quantize the experts only, dense ones all layers. 4 bits compute in
    16 where the accelerator has no such units. ``unlabelled`` is 16 bits: the time per token at small batches
    is 1.5-1.8 times what 16-bit weights take, three times what 8-bit ones would.
    """
    name = precision.lower().split("/")[0].split(" ")[0]
    four = "blackwell", "cdna4"
    experts_only = architecture.moe_layers > 0
    if name in ("unlabelled", "", "bf16", "fp16"):
        return 2.0, 2.0, 2.0, "fp16"
    if name == "fp8":
        return 1.0, 1.0, 1.0, "fp8" if generation not in ("volta", "ampere") else "fp16"
    if name in ("fp4", "nvfp4", "mxfp4"):
        width = _MXFP4 if name == "mxfp4" or (native.startswith("w4") and "mxfp4" in native) else _NVFP4
        return width, 2.0 if experts_only else width, 1.0, "fp4" if generation in four else "fp16"
    if name.startswith("int4"):
        return _INT4, 2.0 if experts_only else _INT4, 2.0, "fp16"
    if name.startswith("int8"):
        return 1.0, 1.0, 2.0, "int8" if "w8a8" in name else "fp16"
    raise ValueError(f"unknown precision {precision!r}")


def read_points(rows: Iterable[Mapping[str, str]], catalog: Catalog) -> list[Point]:
    """Points of a table's rows; a row that cannot be predicted keeps its place and says why."""
    return [_point(row, catalog) for row in rows]


def _point(row: Mapping[str, str], catalog: Catalog) -> Point:
    engine = row.get("engine", "").strip().lower()
    engine = _ENGINE_NAMES.get(engine, engine)
    problem = ""
    if engine not in ENGINES:
        engine, problem = "generic", ""
    accelerator = model = row.get("model", "")
    try:
        accelerator = catalog.resolve_accelerator(row.get("accelerator", ""))
        model = catalog.resolve_model(row.get("model", ""))
        served = catalog.models[model]
        formats = _formats(
            row.get("precision", ""),
            architecture_from_catalog(served),
            served.native_scheme,
            catalog.accelerators[accelerator].generation,
        )
    except (UnknownName, ValueError) as error:
        problem, formats = str(error), (2.0, 2.0, 2.0, "fp16")
    weights, attention, cache, compute = formats
    nominal = (_number(row, "input_tokens", 1.0), _number(row, "output_tokens", 1.0))
    unlabelled = row.get("precision", "") == "unlabelled"
    sampled = nominal in _SAMPLED_LENGTHS and not unlabelled and row.get("load_kind", "closed") in ("", "closed")
    share = _SAMPLED_SHARE if sampled else 1.0
    if row.get("weight_bits", ""):
        weights = float(row["weight_bits"]) / 8.0
        attention = weights
    if row.get("activation_bits", "") and not problem:
        compute = {16.0: "fp16", 8.0: compute if compute == "int8" else "fp8"}.get(
            float(row["activation_bits"]), compute
        )
    if row.get("kv_bits", ""):
        cache = float(row["kv_bits"]) / 8.0
    tensor = int(_number(row, "tensor_parallel", 1.0))
    ttft, tpot = _number(row, "measured_ttft_ms", np.nan), _number(row, "measured_tpot_ms", np.nan)
    concurrency = max(_number(row, "concurrency", 1.0), 1.0)
    rate = _number(row, "measured_output_tokens_per_s", np.nan)
    if np.isnan(rate) and ttft + tpot > 0:
        rate = concurrency * nominal[1] / (ttft + (nominal[1] - 1.0) * tpot) * 1e3
    return Point(
        id=row.get("id", ""),
        accelerator=accelerator,
        model=model,
        label=row.get("model", ""),
        precision=row.get("precision", ""),
        engine=engine,
        version=row.get("engine_version", ""),
        measured_on=row.get("measured_on", ""),
        nominal_input=nominal[0],
        nominal_output=nominal[1],
        input_tokens=max(nominal[0] * share, 1.0),
        output_tokens=max(nominal[1] * share, 1.0),
        equal_lengths=not sampled,
        concurrency=concurrency,
        tensor_parallel=tensor,
        pipeline_parallel=int(_number(row, "pipeline_parallel", 1.0)),
        attention_data_parallel=int(_number(row, "attention_data_parallel", 1.0)),
        expert_parallel=int(_number(row, "expert_parallel", 1.0)),
        weights=weights,
        attention=attention,
        cache=cache,
        compute=compute,
        prefix_hit=_number(row, "prefix_hit_fraction", 0.0),
        accepted=_number(row, "speculative_acceptance", np.nan),
        ttft_ms=ttft,
        tpot_ms=tpot,
        output_tokens_per_s=rate,
        problem=problem,
    )


def deployments_of(point: Point, catalog: Catalog) -> Deployments:
    """The point's deployment, one row."""
    card = catalog.accelerators[point.accelerator]
    peaks = {"fp16": card.fp16_tflops, "fp8": card.fp8_tflops, "int8": card.int8_tops, "fp4": card.fp4_tflops}
    return Deployments.of(
        generation_index=GENERATIONS.index(card.generation),
        precision_index=PRECISIONS.index(point.compute),
        memory_gib=card.memory_gib,
        memory_bandwidth_gb_s=card.memory_bandwidth_gb_s,
        compute_tflops=peaks[point.compute] or card.fp16_tflops,
        fp16_tflops=card.fp16_tflops,
        scale_up_gb_s=card.scale_up_gb_s or 0.0,
        scale_up_pair_gb_s=card.scale_up_pair_gb_s or 0.0,
        scale_up_domain=card.scale_up_domain,
        scale_out_gb_s=card.scale_out_gb_s,
        pcie_gb_s=card.pcie_gb_s,
        tdp_w=card.tdp_w,
        accelerators_per_host=card.accelerators_per_host,
        tensor_parallel=point.tensor_parallel,
        pipeline_parallel=point.pipeline_parallel,
        expert_parallel=point.expert_parallel,
        attention_data_parallel=point.attention_data_parallel,
        weight_bytes=point.weights,
        attention_weight_bytes=point.attention,
        kv_bytes=point.cache,
    )


def traffic_of(point: Point) -> Traffic:
    """The point's traffic."""
    accepted = 0.0 if np.isnan(point.accepted) else point.accepted
    return Traffic(
        input_tokens=point.input_tokens,
        output_tokens=point.output_tokens,
        prefix_hit_fraction=point.prefix_hit,
        speculative_accepted_tokens=accepted,
        engine=point.engine,
        engine_version=point.version,
        equal_lengths=point.equal_lengths,
    )


def work_of_points(points: list[Point], catalog: Catalog) -> Work:
    """Work of all points as columns, ages by version or day."""
    parts: list[tuple[Work, int]] = []
    architectures: dict[str, Architecture] = {}
    known: dict[Point, Work] = {}
    for point in points:
        # Points that differ in load and outcome alone share their work.
        key = replace(point, id="", concurrency=1.0, ttft_ms=0.0, tpot_ms=0.0, output_tokens_per_s=0.0)
        key = replace(key, accepted=0.0) if np.isnan(key.accepted) else key
        if key not in known:
            if point.model not in architectures:
                architectures[point.model] = architecture_from_catalog(catalog.models[point.model])
            architecture, deployments = architectures[point.model], deployments_of(point, catalog)
            shards, cache = shard_weights(architecture, deployments), shard_cache(architecture, deployments)
            work = work_of(architecture, deployments, traffic_of(point), shards, cache)
            known[key] = replace(work, age_years=point.age_years)
        parts.append((known[key], 1))
    return joined(parts)


def measured(points: list[Point]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Measured TPOT and TTFT in ms and output tokens/s; NaN where not measured."""
    columns = [(p.tpot_ms, p.ttft_ms, p.output_tokens_per_s) for p in points]
    values = np.array(columns, dtype=np.float64).reshape(-1, 3)
    return values[:, 0], values[:, 1], values[:, 2]
