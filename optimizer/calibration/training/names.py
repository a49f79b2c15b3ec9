"""What a table of training steps means by a model or an accelerator."""

import csv
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final

from optimizer.catalog import Catalog, UnknownName
from optimizer.models import architecture_from_catalog
from optimizer.performance.architecture import Architecture
from optimizer.performance.training.hardware import TrainingAccelerator
from optimizer.performance.training.model import TrainingModel

#: Shapes of mixtures that the catalogue of served models lacks. Sources: xai-org/grok-1 (run.py), Qwen/Qwen2-57B-A14B
#: (config.json).
_OTHER_MODELS: Final[Mapping[str, Architecture]] = {
    "grok-1": Architecture(
        layers=64,
        hidden_size=6144,
        attention_heads=48,
        kv_heads=8,
        head_dim=128,
        v_head_dim=128,
        ffn_size=0,
        vocabulary=131072,
        experts=8,
        active_experts=2,
        moe_layers=64,
        moe_ffn_size=32768,
        full_layers=64,
    ),
    "qwen2-57b": Architecture(
        layers=28,
        hidden_size=3584,
        attention_heads=28,
        kv_heads=4,
        head_dim=128,
        v_head_dim=128,
        ffn_size=0,
        vocabulary=151936,
        experts=64,
        active_experts=8,
        shared_ffn_size=20480,
        moe_layers=28,
        moe_ffn_size=2560,
        full_layers=28,
    ),
}
_BRACKETS: Final = re.compile(r"\s*\([^)]*\)")
_PARTS: Final = re.compile(r"[\s_-]+")


def _table(name: str) -> list[dict[str, str]]:
    text = resources.files("optimizer.calibration").joinpath(f"data/{name}").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def _names(kind: str) -> Mapping[str, str]:
    return {_folded(row["alias"]): row["id"] for row in _table("training_names.csv") if row["kind"] == kind}


def _folded(name: str) -> str:
    return _PARTS.sub(" ", name.strip().casefold())


@cache
def _other_accelerators() -> Mapping[str, TrainingAccelerator]:
    found = {}
    for row in _table("training_accelerators.csv"):
        numbers = {name: float(row[name]) for name in _NUMBERS}
        domain = int(numbers.pop("scale_up_domain"))
        found[row["id"]] = TrainingAccelerator(
            id=row["id"], generation=row["generation"], scale_up_domain=domain, **numbers
        )
    return found


_NUMBERS: Final = (
    "memory_gib",
    "memory_bandwidth_gb_s",
    "fp16_tflops",
    "fp8_tflops",
    "fp4_tflops",
    "scale_up_gb_s",
    "scale_up_domain",
    "scale_out_gb_s",
    "pcie_gb_s",
    "tdp_w",
)


def training_accelerator(catalog: Catalog, key: str) -> TrainingAccelerator:
    """A catalogue row as the training model takes it."""
    row = catalog.accelerators[key]
    return TrainingAccelerator(
        id=row.id,
        generation=row.generation,
        memory_gib=row.memory_gib,
        memory_bandwidth_gb_s=row.memory_bandwidth_gb_s,
        fp16_tflops=row.fp16_tflops,
        fp8_tflops=row.fp8_tflops or 0.0,
        fp4_tflops=row.fp4_tflops or 0.0,
        scale_up_gb_s=row.scale_up_gb_s or 0.0,
        scale_up_domain=row.scale_up_domain,
        scale_out_gb_s=row.scale_out_gb_s,
        pcie_gb_s=row.pcie_gb_s,
        tdp_w=row.tdp_w,
    )


def resolve_accelerator(catalog: Catalog, name: str) -> TrainingAccelerator:
    """The accelerator that a table means. UnknownName where nothing goes by the name."""
    folded = _folded(name)
    for row_id, row in _other_accelerators().items():
        if _folded(row_id) == folded:
            return row
    known = _names("accelerator").get(folded)
    if known is not None and known in _other_accelerators():
        return _other_accelerators()[known]
    return training_accelerator(catalog, known or catalog.resolve_accelerator(name))


def resolve_model(catalog: Catalog, name: str) -> TrainingModel | None:
    """The model of the catalogue, or of the few shapes beside it, that a table means; None where there is none."""
    folded = _folded(_BRACKETS.sub("", name))
    for start, shape in _OTHER_MODELS.items():
        if folded.startswith(_folded(start)):
            return TrainingModel.from_architecture(shape, start)
    key = _names("model").get(folded)
    if key is None:
        try:
            key = catalog.resolve_model(_BRACKETS.sub("", name))
        except UnknownName:
            return None
    return TrainingModel.from_architecture(architecture_from_catalog(catalog.models[key]), key)
