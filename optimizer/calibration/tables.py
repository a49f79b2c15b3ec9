"""Measurement tables as people have them: the online table's columns, or those of throughput collections."""

import re
from collections.abc import Mapping
from typing import Final

#: Columns of throughput collections and what they are called in the online table.
_OTHER_NAMES: Final = {
    "gpu": "accelerator",
    "version": "engine_version",
    "tp": "tensor_parallel",
    "pp": "pipeline_parallel",
    "ep": "expert_parallel",
    "dp": "attention_data_parallel",
    "isl": "input_tokens",
    "osl": "output_tokens",
    "output_tok_s": "measured_output_tokens_per_s",
    "ttft_ms": "measured_ttft_ms",
    "tpot_ms": "measured_tpot_ms",
}
#: Beginnings and parts of engine names in the wild.
_ENGINES: Final = (("vllm", "vllm"), ("sglang", "sglang"), ("tensorrt", "trtllm"), ("trt", "trtllm"))


#: Names that collections shorten, and what they add to them.
_MODELS: Final = {"Mistral-7B": "Mistral-7B-v0.1"}
_SUFFIXES: Final = re.compile(r"(-Instruct)?-(quantized\.w\d+a\d+|FP8|GPTQ)$")


def is_collection(columns: list[str]) -> bool:
    """Whether a table has the columns of a throughput collection."""
    return "gpu" in columns and "accelerator" not in columns


def engine_of(name: str) -> str:
    """The engine that a name means; ``generic`` for one that is not modelled."""
    lowered = name.strip().lower()
    for part, engine in _ENGINES:
        if part in lowered:
            return engine
    return "generic"


def _whole(text: str) -> str:
    return text if text.replace(".", "", 1).isdigit() else ""


def online_row(row: Mapping[str, str]) -> dict[str, str]:
    """A row of a collection in the online table's columns.

    Everything queued at once is ``offline`` without a concurrency: as many run as the cache holds. A batch is the
    concurrency of a ``static`` run, of which each attention-data-parallel copy (``dp``) has its part. A request
    rate stays one (``request_rate_per_s``), without a concurrency. Copies of a model that share nothing are several
    replicas, not attention-data parallelism: what one of them gives is multiplied by ``replicas``.
    """
    new = {name: value for name, value in row.items() if name not in _OTHER_NAMES}
    new.update({_OTHER_NAMES[name]: value for name, value in row.items() if name in _OTHER_NAMES})
    kind, load, load_kind = row.get("kind", ""), _whole(row.get("load", "")), row.get("load_kind", "")
    new["concurrency"] = load if load_kind.startswith(("batch", "concurrency")) else ""
    if kind.startswith("offline_static"):
        new["load_kind"] = "static"
    elif kind.startswith("offline"):
        new["load_kind"] = "offline"
    else:
        new["load_kind"] = "closed" if new["concurrency"] else "rate"
        new["request_rate_per_s"] = load if load_kind == "rate" else ""
    width = 1.0
    for name in ("tensor_parallel", "pipeline_parallel"):
        new[name] = _whole(new.get(name, "")) or "1"
        width *= float(new[name])
    gpus = float(_whole(row.get("gpus", "")) or width)
    if not row.get("tp", "").strip():
        new["tensor_parallel"], width = str(int(gpus)), gpus
    new["attention_data_parallel"] = "1"
    new["expert_parallel"] = _whole(new.get("expert_parallel", "")) or "1"
    new["replicas"] = str(int(max(gpus // width, 1)))
    model = _SUFFIXES.sub("", row.get("model", ""))
    new["model"] = _MODELS.get(model, model)
    new["engine"] = engine_of(row.get("engine", ""))
    if row.get("as_of"):
        new["measured_on"] = _day(row["as_of"])
    new["precision"], new["kv_bits"] = _precision(row.get("precision", ""))
    return new


def _day(as_of: str) -> str:
    """A month or year as the first day that it may mean."""
    parts = as_of.strip().split("-")
    if not parts[0].isdigit():
        return ""
    return "-".join([parts[0], *(parts[1:] or ["01"]), "01"][:3]) if len(parts) < 3 else as_of.strip()


def _precision(text: str) -> tuple[str, str]:
    """``"int8-w8a8/int8"`` to the weights' precision and the bits of the cache, empty where not stated."""
    weights, _, cache = text.lower().partition("/")
    weights = weights.strip().removeprefix("gptq-").removeprefix("awq-")
    bits = {"fp16": "16", "bf16": "16", "fp8": "8", "int8": "8", "int4": "4"}
    return weights, bits.get(cache.strip().split(" ")[0], "")
