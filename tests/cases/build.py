"""Deployments of the catalogue's models and accelerators, in few words."""

from functools import cache
from typing import Any

from optimizer.catalog import Catalog, load_catalog
from optimizer.models import architecture_from_catalog
from optimizer.performance.architecture import Architecture
from optimizer.performance.deployments import Deployments, Traffic
from optimizer.performance.engine_memory import engine_memory
from optimizer.performance.factors import GENERATIONS, Factors, load_factors
from optimizer.performance.memory import MemoryReport, memory_report

GIB = 2.0**30


@cache
def catalog() -> Catalog:
    return load_catalog()


@cache
def factors() -> Factors:
    return load_factors()


@cache
def model(name: str) -> Architecture:
    """A model of the catalogue by any of its names."""
    return architecture_from_catalog(catalog().models[catalog().resolve_model(name)])


def on(accelerator: str, **columns: Any) -> Deployments:
    """Deployments on an accelerator of the catalogue; degrees and bytes as given, 16 bits by default."""
    row = catalog().accelerators[accelerator]
    given: dict[str, Any] = {
        "generation_index": GENERATIONS.index(row.generation),
        "precision_index": 0,
        "memory_gib": row.memory_gib,
        "memory_bandwidth_gb_s": row.memory_bandwidth_gb_s,
        "compute_tflops": row.fp16_tflops,
        "fp16_tflops": row.fp16_tflops,
        "scale_up_gb_s": row.scale_up_gb_s or 0.0,
        "scale_up_pair_gb_s": row.scale_up_pair_gb_s or row.scale_up_gb_s or 0.0,
        "scale_up_domain": row.scale_up_domain,
        "scale_out_gb_s": row.scale_out_gb_s,
        "pcie_gb_s": row.pcie_gb_s,
        "tdp_w": row.tdp_w,
        "accelerators_per_host": row.accelerators_per_host,
        "tensor_parallel": 1,
    }
    return Deployments.of(**{**given, **columns})


def report(
    name: str | Architecture,
    accelerator: str = "h100-80gb-sxm",
    *,
    context: float = 8192,
    engine: str = "vllm",
    version: str = "0.19.0",
    util: float | None = 0.95,
    extra_gib: float = 0.0,
    **columns: Any,
) -> MemoryReport:
    """Memory of one deployment whose longest request is ``context`` tokens."""
    architecture = model(name) if isinstance(name, str) else name
    return memory_report(
        architecture,
        on(accelerator, **columns),
        Traffic(context - 1, 1),
        factors(),
        usable_memory_fraction=util,
        engine=engine_memory(engine, version),
        extra_weights_gib=extra_gib,
    )
