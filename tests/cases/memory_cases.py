"""Published memory and cache cases: what was asked, the right value, and the product call that answers it.

Values, tolerances and sources are those of public reports; the inputs of each call are the case's own.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optimizer.performance.architecture import Architecture, kv_elements_per_token_full, parameter_counts
from optimizer.performance.deployments import Traffic
from optimizer.performance.engine_memory import engine_memory
from optimizer.performance.memory import adapters_gib, cache_blocks, cache_tokens, checkpoint_gib, memory_report
from optimizer.performance.sharding import shard_cache, stage_layers
from tests.cases.build import GIB, catalog, factors, model, on, report
from tests.performance.builders import dense


@dataclass(frozen=True, slots=True)
class Case:
    """A case id, its right value with unit and tolerance, where it was reported, and the call."""

    id: str
    value: float
    unit: str
    tolerance_percent: float
    source: str
    call: Callable[[], float]


#: 64 KV heads: no grouped queries.
QWEN_15_72B = dense(80, 8192, 64, 64, 24576, 152064, qkv_bias=True)
#: The 27B hybrid of Qwen3.5 and 3.6 has one shape.
HYBRID_27B = "Qwen3.5-27B"
#: Vision towers that the text shapes of the catalogue leave out: parameters.
QWEN_VL_TOWER = 0.70e9
FP8: dict[str, Any] = {"weight_bytes": 1.0}
MXFP4: dict[str, Any] = {"weight_bytes": 4.25 / 8, "attention_weight_bytes": 2.0}
#: int4 in groups of 32 with a 16-bit scale each, attention in 16 bits.
INT4_32: dict[str, Any] = {"weight_bytes": 4.5 / 8, "attention_weight_bytes": 2.0}
#: int4 in groups of 128.
INT4_128: dict[str, Any] = {"weight_bytes": 4.16 / 8}
FP8_KV: dict[str, Any] = {**FP8, "kv_bytes": 2.0}


def _weights(name: str | Architecture, accelerator: str = "h100-80gb-sxm", **columns: Any) -> float:
    return float(report(name, accelerator, **columns).items.weights_gib[0])


def _pool(name: str, accelerator: str = "h100-80gb-sxm", **given: Any) -> float:
    return float(report(name, accelerator, **given).items.pool_gib[0])


def _tokens_of(
    pool_gib: float, name: str | Architecture, version: str = "0.19.0", context: float = 8192, **columns: Any
) -> float:
    """Tokens that a pool of known size holds."""
    items = report(name, context=context, version=version, **columns).items
    return float(cache_tokens(items, pool_gib, context)[0])


def _smallest_width(
    name: str, accelerator: str, degrees: tuple[tuple[int, int], ...], context: float, **columns: Any
) -> float:
    """Accelerators of the first layout (TP, PP), by width, that starts with the longest request."""
    # The recipe schedules 256 sequences; the default of 1,024 would take 1.6 GiB more of activations.
    engine = replace(engine_memory("vllm", "0.19"), sampled_sequences=(256, 256))
    for tensor, pipeline in sorted(degrees, key=lambda pair: pair[0] * pair[1]):
        degrees_of: dict[str, Any] = {"tensor_parallel": tensor, "pipeline_parallel": pipeline}
        traffic = Traffic(context - 1, 1)
        found = memory_report(
            model(name),
            on(accelerator, **degrees_of, **columns),
            traffic,
            factors(),
            usable_memory_fraction=0.95,
            engine=engine,
        )
        if found.starts[0]:
            return float(tensor * pipeline)
    return float("inf")


def _used_by_four_cards() -> float:
    """Four cards, layers split among them, 4.85 bits a weight, 8-bit keys with scales and 16-bit values, in GB."""
    columns: dict[str, Any] = {
        "pipeline_parallel": 4,
        "weight_bytes": 4.85 / 8,
        "kv_bytes": (1.0625 + 2.0) / 2,
        "memory_gib": 22.0,
    }
    items = report("Gemma-3-27B", "l4", context=85000, engine="generic", version="", util=1.0, **columns).items
    weights = checkpoint_gib(model("Gemma-3-27B"), weight_bytes=4.85 / 8)
    rest = items.fixed_gib[0] - items.weights_gib[0] + items.sequence_gib[0]
    return float(weights + 4 * rest) * GIB / 1e9


def _planner_nodes() -> float:
    """Nodes of two cards for the smallest group that starts at the engine's own default."""
    for tensor in (1, 2, 4):
        found = report("gpt-oss-120b", "a100-80gb-sxm", util=None, version="0.21", tensor_parallel=tensor, **MXFP4)
        if found.starts[0]:
            return float(np.ceil(tensor / 2))
    return float("inf")


def _usable(accelerator: str, count: int, util: float | None, version: str) -> float:
    return float(report("Llama-3.1-8B", accelerator, util=util, version=version).usable_gib[0]) * count


CASES: tuple[Case, ...] = (
    Case(
        "MEM-02",
        2.07,
        "GiB",
        10,
        "github.com/llm-d-incubation/llm-d-planner/pull/205",
        lambda: float(
            sum(
                getattr(report("Llama-3.1-8B", tensor_parallel=2).items, part)[0]
                for part in ("communication_gib", "runtime_gib")
            )
        ),
    ),
    Case(
        "MEM-03",
        4.229,
        "GiB",
        1,
        "github.com/llm-d-incubation/llm-d-planner/pull/205",
        lambda: _weights("Llama-3.1-8B", pipeline_parallel=4),
    ),
    Case(
        "MEM-08",
        33.833,
        "GiB",
        0.5,
        "github.com/llm-d-incubation/llm-d-planner docs",
        lambda: _weights("Llama-3.3-70B", tensor_parallel=2, **FP8),
    ),
    Case(
        "MEM-12",
        13.47,
        "GiB",
        2,
        "github.com/llm-d-incubation/llm-d-planner docs",
        lambda: _weights("gpt-oss-20b", **MXFP4),
    ),
    Case(
        "MEM-15",
        78.12,
        "GiB",
        1,
        "github.com/InternLM/lmdeploy/issues/2960",
        lambda: checkpoint_gib(model("DeepSeek-V3"), weight_bytes=1.0) / 8,
    ),
    Case(
        "MEM-16",
        83.88,
        "GB",
        2,
        "github.com/InternLM/lmdeploy/issues/2960",
        lambda: _weights("DeepSeek-V3", "h20-96gb-sxm", tensor_parallel=8, **FP8) * GIB / 1e9,
    ),
    Case(
        "MEM-18",
        626.7,
        "GiB",
        5,
        "github.com/inference-sim/inference-sim/issues/624",
        lambda: checkpoint_gib(model("DeepSeek-V3"), weight_bytes=1.0),
    ),
    Case(
        "MEM-19",
        128.07,
        "GiB",
        1,
        "github.com/MoonshotAI/Kimi-K2/issues/76",
        lambda: float(
            checkpoint_gib(model("Kimi-K2"), weight_bytes=1.0) / 8
            + report("Kimi-K2", "h200-141gb-sxm", context=131072, tensor_parallel=8, **FP8).items.sequence_gib[0]
        ),
    ),
    Case(
        "MEM-20",
        16,
        "GPUs",
        0,
        "github.com/vllm-project/recipes/pull/62",
        lambda: _smallest_width("Kimi-K2", "h800-80gb-sxm", ((8, 1), (16, 1), (32, 1)), 131072, **FP8_KV),
    ),
    Case(
        "MEM-21",
        629.4,
        "GB",
        5,
        "github.com/anthony-chaudhary/fak/issues/188",
        lambda: _usable("h100-80gb-sxm", 8, None, "0.21") * GIB / 1e9,
    ),
    Case(
        "MEM-22",
        81521,
        "tokens",
        1,
        "github.com/vllm-project/vllm/issues/13061",
        lambda: _tokens_of(7.464, "Qwen2.5-14B", tensor_parallel=2),
    ),
    Case(
        "MEM-23",
        12.12,
        "GiB",
        1,
        "github.com/vllm-project/vllm/issues/823",
        lambda: _weights("Llama-2-13B", "a100-40gb-sxm", tensor_parallel=2),
    ),
    Case(
        "MEM-24",
        34.18,
        "GiB",
        2,
        "github.com/vllm-project/vllm/issues/16570",
        lambda: float(
            report(
                "Qwen2.5-72B", "a100-40gb-sxm", tensor_parallel=4, extra_gib=QWEN_VL_TOWER * 2 / 4 / GIB
            ).items.weights_gib[0]
        ),
    ),
    Case(
        "MEM-25",
        -1.05,
        "GiB",
        15,
        "github.com/vllm-project/vllm/issues/13882",
        lambda: _pool("Qwen2.5-7B", "l4", version="0.7", util=0.7, memory_gib=8.0, **INT4_128),
    ),
    Case(
        "MEM-27",
        56.5,
        "GiB",
        2,
        "github.com/vllm-project/vllm/issues/12895",
        lambda: _weights("DeepSeek-R1", "a100-80gb-sxm", tensor_parallel=8, pipeline_parallel=3),
    ),
    Case(
        "MEM-28",
        12,
        "layers",
        0,
        "github.com/sgl-project/sglang/issues/9798",
        lambda: float(max(stage_layers(model("Qwen3-235B-A22B").layers, 8))),
    ),
    Case(
        "MEM-29",
        107.8,
        "B parameters",
        1.5,
        "github.com/inference-sim/inference-sim/issues/877",
        lambda: parameter_counts(model("Llama-4-Scout")).total / 1e9,
    ),
    Case(
        "MEM-30",
        5.64,
        "GiB",
        10,
        "github.com/llm-d-incubation/llm-d-planner/pull/205",
        lambda: float(report("Qwen3-14B", version="0.16.0").items.activation_gib[0]),
    ),
    Case(
        "MEM-31",
        2.68,
        "GiB",
        15,
        "github.com/llm-d-incubation/llm-d-planner/pull/205",
        lambda: float(report("Qwen3-30B-A3B").items.activation_gib[0]),
    ),
    Case(
        "MEM-32",
        3.08,
        "GiB",
        10,
        "github.com/llm-d-incubation/llm-d-planner/pull/205",
        lambda: _pool("Qwen2.5-72B", tensor_parallel=2),
    ),
    Case("MEM-33", 1, "nodes", 0, "github.com/kaito-project/kaito/pull/2302", _planner_nodes),
    Case(
        "MEM-39",
        46068,
        "MiB",
        0.1,
        "github.com/modal-labs/modal-client/pull/2797",
        lambda: catalog().accelerators["l40s"].memory_gib * 1024,
    ),
    Case("MEM-42", 32, "GB", 25, "github.com/gpustack/gpustack/issues/2101", _used_by_four_cards),
    Case(
        "MEM-45",
        4.7,
        "GiB",
        1,
        "github.com/huggingface/text-generation-inference/issues/2744",
        lambda: float(report("Llama-3.1-70B", "a100-80gb-sxm", context=30816, tensor_parallel=2).items.sequence_gib[0]),
    ),
    Case(
        "MEM-46",
        328.3,
        "GiB",
        1,
        "github.com/triton-inference-server/fastertransformer_backend/issues/76",
        lambda: checkpoint_gib(model("BLOOM-176B")),
    ),
    Case(
        "MEM-47",
        128,
        "elements",
        0,
        "github.com/NVIDIA/Model-Optimizer/issues/2482",
        lambda: float(model("Mistral-Small-24B").head_dim),
    ),
    Case(
        "MEM-51",
        90.25,
        "GiB",
        2,
        "github.com/ls1intum/edutelligence/issues/570",
        lambda: float(report("Llama-3.1-8B", "h100-nvl-94gb", util=0.95, memory_gib=95.0).usable_gib[0]),
    ),
    Case(
        "MEM-52",
        -1,
        "sign",
        0,
        "github.com/llm-d-incubation/llm-d-planner",
        lambda: float(np.sign(_pool("Llama-3.1-405B"))),
    ),
    Case(
        "MEM-54",
        43.3,
        "GiB",
        2,
        "github.com/vllm-project/recipes/pull/394",
        lambda: checkpoint_gib(model("GLM-5"), weight_bytes=1.0) / 16,
    ),
    Case(
        "MEM-55",
        34.6,
        "GiB",
        6,
        "github.com/vllm-project/recipes/pull/395",
        lambda: _weights("Kimi-K2.5", tensor_parallel=8, pipeline_parallel=2, **INT4_32),
    ),
    Case(
        "MEM-56",
        60.77,
        "GiB",
        0.5,
        "fitmygpu.com/models/gpt-oss-120b",
        lambda: checkpoint_gib(model("gpt-oss-120b"), weight_bytes=4.25 / 8, attention_bytes=2.0),
    ),
    Case(
        "KV-01",
        475976,
        "tokens",
        0.5,
        "github.com/llm-d-incubation/llm-d-planner/pull/205",
        lambda: float(report("Llama-3.1-8B").kv_tokens[0]),
    ),
    Case(
        "KV-02",
        952032,
        "tokens",
        0.5,
        "github.com/llm-d-incubation/llm-d-planner/pull/205",
        lambda: float(report("Llama-3.1-8B", kv_bytes=1.0).kv_tokens[0]),
    ),
    Case(
        "KV-03",
        1095950,
        "tokens",
        0.5,
        "github.com/llm-d-incubation/llm-d-planner/pull/205",
        lambda: float(report("Qwen2.5-7B").kv_tokens[0]),
    ),
    Case(
        "KV-04",
        184812,
        "tokens",
        0.5,
        "github.com/llm-d-incubation/llm-d-planner docs",
        lambda: _tokens_of(28.20, "Mistral-Small-24B", "0.11.0", 16000),
    ),
    Case(
        "KV-07",
        205742,
        "tokens",
        0.5,
        "github.com/vllm-project/recipes/pull/12",
        lambda: _tokens_of(
            48.66, "Qwen3-Coder-480B-A35B", context=262144, attention_data_parallel=8, expert_parallel=8, **FP8_KV
        ),
    ),
    Case(
        "KV-09",
        2368,
        "tokens",
        1,
        "github.com/vllm-project/vllm/pull/4650",
        lambda: _tokens_of(1.355, "DeepSeek-V2", "0.5", tensor_parallel=8),
    ),
    Case(
        "KV-10",
        627272,
        "tokens",
        0.5,
        "github.com/redhat-performance/configiq/issues/112",
        lambda: _tokens_of(64.68, "Gemma-4-31B", context=262144),
    ),
    Case(
        "KV-12",
        78352,
        "tokens",
        0.5,
        "github.com/alvarobartt/hf-mem/issues/60",
        lambda: _tokens_of(5.38, "gpt-oss-120b", "0.10.1", **MXFP4),
    ),
    Case(
        "KV-19",
        4.0,
        "MiB",
        1,
        "github.com/jundot/omlx/issues/2725",
        lambda: kv_elements_per_token_full(model(HYBRID_27B)) * 2 * 64 / 2**20,
    ),
    Case(
        "KV-23",
        4465,
        "tokens",
        0.5,
        "github.com/QwenLM/Qwen3/issues/16",
        lambda: _tokens_of(5.45, QWEN_15_72B, tensor_parallel=2),
    ),
    Case(
        "KV-25",
        73728,
        "blocks",
        0,
        "github.com/inference-sim/inference-sim/pull/474",
        lambda: float(
            cache_blocks(shard_cache(model("Llama-3.1-8B"), on("h100-80gb-sxm", tensor_parallel=2)), 72.0, 16)[0]
        ),
    ),
    Case(
        "INP-15",
        8.39,
        "GB",
        1,
        "github.com/vllm-project/vllm/issues/14450",
        lambda: adapters_gib(model("Llama-3.1-70B"), slots=32, rank=64, modules=("q", "v")) * GIB / 1e9,
    ),
    Case(
        "INP-16",
        32,
        "GPUs",
        0,
        "github.com/ai-dynamo/aiconfigurator/issues/127",
        lambda: _smallest_width("DeepSeek-V3", "l40s", ((8, 1), (16, 1), (8, 2), (8, 4)), 131072, **FP8),
    ),
)

#: Cases of the same kinds that no product call can answer, and why.
EXEMPT: dict[str, str] = {
    "MEM-17": "a share of the card read from nvidia-smi of an engine that fills it; the case solves it back",
    "MEM-26": "bytes a token were read back from the log; the catalogue marks this compressed cache approximate",
    "MEM-34": "the shape of the model is not given and not in the catalogue; the answer is a count of cards",
    "MEM-35": "another tool's fitted rule of overhead against weights; rests on no model's shape",
    "MEM-43": "a pruned variant whose shape is not given; the value is the size of its file",
    "KV-06": "the engine's blocks times its block size; pool and card are not given",
    "KV-16": "an unnamed hybrid with pages of 3,584 tokens; the value divides two figures of the log",
    "KV-17": "the shape is not given",
    "KV-21": "614 blocks follow from a pool that is not given; that 1,024 sequences do not fit is tested",
    "KV-22": "the shape is not given; the share is solved back",
    "KV-27": "no model: one engine's uneven split of 48 layers, ours is even",
    "KV-28": "no model: two figures of the report divided",
}
