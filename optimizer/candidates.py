"""Candidates: every deployment that the instance allows, as columns, one row each.

A row is a request class, a server type, a layout and a scheme. Rows are predicted at any concurrency in one numpy call.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optimizer.catalog.rows import Accelerator, Compute
from optimizer.models import ServedModel
from optimizer.performance.confidence import AnyPrepared, at_confidence
from optimizer.performance.deployments import Deployments, Traffic
from optimizer.performance.factors import GENERATIONS, PRECISIONS, Factors
from optimizer.performance.layouts import RULES, check_layouts
from optimizer.performance.serving import ServingPrediction, prepare
from optimizer.schemes import SchemeOption
from optimizer.setting import ServerType, Setting

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

#: Name of an engine in an instance -> name in the performance model.
ENGINE_NAMES = {"generic": "generic", "vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "trtllm"}
WIDE_REPLICA = "a replica spans rented servers"
SPLIT_GROUP = "a tensor-parallel group does not fit one server"


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Startable deployments as columns of one length, with their predictions prepared.

    ``server_type_index`` and ``scheme_index`` point into the tuples beside them. ``slots`` is the replicas that fit
    one server (0 for wider ones), ``servers_per_replica`` what one replica blocks. ``not_startable`` counts refused
    layouts by reason.
    """

    setting: Setting
    model: ServedModel
    factors: Factors
    server_types: tuple[ServerType, ...]
    schemes: tuple[SchemeOption, ...]
    class_index: IntArray
    server_type_index: IntArray
    scheme_index: IntArray
    tensor_parallel: IntArray
    pipeline_parallel: IntArray
    expert_parallel: IntArray
    attention_data_parallel: IntArray
    width: IntArray
    servers_per_replica: FloatArray
    prepared: tuple[AnyPrepared, ...]
    starts: IntArray
    not_startable: dict[str, int]

    @property
    def size(self) -> int:
        """Rows."""
        return int(self.class_index.size)

    def at(self, rows: IntArray, concurrency: IntArray) -> ServingPrediction:
        """Predict the given rows, each at its concurrency. Rows must be sorted by class (they are, in order)."""
        if len(self.prepared) == 1:
            return self.prepared[0].take(rows).at(concurrency)
        from dataclasses import fields

        parts = []
        for index, prepared in enumerate(self.prepared):
            here = self.class_index[rows] == index
            if here.any():
                parts.append((here, prepared.take(rows[here] - self.starts[index]).at(concurrency[here])))
        columns = {}
        for one in fields(ServingPrediction):
            column = np.empty(rows.size)
            for here, part in parts:
                column[here] = getattr(part, one.name)
            columns[one.name] = column
        return ServingPrediction(**columns)


@dataclass(frozen=True, slots=True, eq=False)
class _Layouts:
    """Startable layouts of one server type and quantization block width."""

    columns: tuple[IntArray, IntArray, IntArray, IntArray]
    width: IntArray
    servers_per_replica: FloatArray


def build_candidates(
    setting: Setting, model: ServedModel, schemes: tuple[SchemeOption, ...], factors: Factors
) -> Candidates:
    """Every (class, server type, layout, scheme) that an engine can start."""
    startable: dict[tuple[int, ...], tuple[_Layouts, dict[str, int]]] = {}
    used = tuple(one for one in setting.server_types if any(pool.server_type is one for pool in setting.pools))
    refused: dict[str, int] = {}
    blocks = []
    for type_index, server_type in enumerate(used):
        row, size = server_type.accelerator, server_type.accelerators
        span = int(_may_span(setting, server_type))
        shape = (size, min(row.scale_up_domain, size), min(row.accelerators_per_host, size), span)
        counted: set[int] = set()
        for scheme_index, option in enumerate(schemes):
            if not supported(server_type.accelerator, option):
                continue
            width = block_width(model, option)
            # Servers of one size and reach start the same layouts.
            if (*shape, width) not in startable:
                startable[*shape, width] = _startable(setting, model, shape, width)
            layouts, reasons = startable[*shape, width]
            if width not in counted:
                counted.add(width)
                for reason, count in reasons.items():
                    refused[reason] = refused.get(reason, 0) + count
            if layouts.width.size:
                blocks.append((type_index, scheme_index, layouts))
    sizes = [block[2].width.size for block in blocks]
    per_class = int(sum(sizes))
    classes = len(setting.classes)

    def gather(part: int) -> IntArray:
        columns = [block[2].columns[part] for block in blocks]
        return np.concatenate(columns) if columns else np.empty(0, dtype=np.int64)

    type_column = np.repeat(np.array([block[0] for block in blocks], dtype=np.int64), sizes)
    scheme_column = np.repeat(np.array([block[1] for block in blocks], dtype=np.int64), sizes)
    tp, pp, ep, dp = (gather(part) for part in range(4))
    columns = _deployments(used, schemes, model, type_column, scheme_column, (tp, pp, ep, dp)) if per_class else None
    prepared = []
    usable = setting.instance.targets.vram_fraction
    for one in setting.classes:
        if columns is None:
            break
        traffic = Traffic(
            input_tokens=float(one.request.input_tokens),
            output_tokens=float(one.request.output_tokens),
            max_context_tokens=float(setting.instance.workload.longest_context_tokens()),
            prefix_hit_fraction=one.request.prefix_hit_fraction,
            engine=ENGINE_NAMES[setting.instance.workload.engine],
            sequence_slots=float(setting.instance.choices.sequence_slots or 0),
        )
        plain = prepare(model.architecture, columns, traffic, factors, usable_memory_fraction=usable)
        prepared.append(
            at_confidence(
                plain,
                model=model.catalog_id,
                engine=traffic.engine,
                generation_index=columns.generation_index,
                confidence=setting.instance.targets.confidence,
            )
        )

    def tiled(column: IntArray) -> IntArray:
        return np.tile(column, classes)

    spans = np.concatenate([block[2].servers_per_replica for block in blocks]) if blocks else np.empty(0)
    return Candidates(
        setting=setting,
        model=model,
        factors=factors,
        server_types=used,
        schemes=schemes,
        class_index=np.repeat(np.arange(classes, dtype=np.int64), per_class),
        server_type_index=tiled(type_column),
        scheme_index=tiled(scheme_column),
        tensor_parallel=tiled(tp),
        pipeline_parallel=tiled(pp),
        expert_parallel=tiled(ep),
        attention_data_parallel=tiled(dp),
        width=tiled(tp * pp * dp),
        servers_per_replica=np.tile(spans, classes),
        prepared=tuple(prepared),
        starts=np.arange(classes, dtype=np.int64) * per_class,
        not_startable=refused,
    )


def supported(accelerator: Accelerator, option: SchemeOption) -> bool:
    """Whether the accelerator's generation runs the scheme, natively or by storing weights in it."""
    generation = accelerator.generation
    if option.scheme.support(generation) == "none" or option.kv_scheme.support(generation) == "none":
        return False
    return accelerator.matrix_tflops(compute_precision(accelerator, option)) is not None


def compute_precision(accelerator: Accelerator, option: SchemeOption) -> Compute:
    """Format the matrix units multiply in: 16 bits where the scheme only stores weights."""
    return option.scheme.compute if option.scheme.support(accelerator.generation) == "native" else "fp16"


def block_width(model: ServedModel, option: SchemeOption) -> int:
    """Elements that a shard must be a multiple of."""
    native = model.native_block_width if option.scheme.id == model.native_scheme else 1
    return max(native, option.scheme.block_width)


def _startable(
    setting: Setting, model: ServedModel, shape: tuple[int, int, int, int], block: int
) -> tuple[_Layouts, dict[str, int]]:
    """Layouts that start on servers of ``shape``, and refusals by reason.

    ``shape``: accelerators, scale-up domain, host size, whether replicas may span servers.
    """
    choices = setting.instance.choices
    size, domain, host, may_span = shape
    refused: dict[str, int] = {}
    architecture = model.architecture
    tensor, pipeline = _sorted(choices.tensor_parallel), _sorted(choices.pipeline_parallel)
    data = (
        _sorted(choices.attention_data_parallel) if architecture.experts or architecture.kv_lora_rank else np.array([1])
    )
    grid = np.meshgrid(tensor, pipeline, data, indexing="ij")
    tp, pp, dp = (axis.ravel() for axis in grid)
    group = tp * dp
    if not architecture.moe_layers:
        ep = np.ones_like(tp)
    elif choices.expert_parallel is None:
        # One expert group over the whole stage, or none.
        tp, pp, dp, group = (np.concatenate([column, column[group > 1]]) for column in (tp, pp, dp, group))
        ep = np.ones_like(tp)
        ep[grid[0].size :] = group[grid[0].size :]
    else:
        degrees = _sorted(choices.expert_parallel)
        ep = np.tile(degrees, tp.size)
        tp, pp, dp, group = (np.repeat(column, degrees.size) for column in (tp, pp, dp, group))
    mask = check_layouts(
        architecture,
        tensor_parallel=tp,
        pipeline_parallel=pp,
        expert_parallel=ep,
        attention_data_parallel=dp,
        scale_up_domain=domain,
        accelerators_per_host=host,
        quantization_block=block,
        context_tokens=setting.instance.workload.longest_context_tokens(),
    )
    for rule in RULES:
        count = int(np.count_nonzero(mask & rule.bit))
        if count:
            refused[rule.sentence] = refused.get(rule.sentence, 0) + count
    width = tp * pp * dp
    groups_per_server = size // group
    fits = width <= size
    spans = np.where(fits, 1, -(-pp // np.maximum(groups_per_server, 1)))
    # Rented instances that are less than a whole server share no fast network: replicas stay inside one.
    split = groups_per_server == 0
    wide = ~fits & (not may_span)
    for reason, test in ((SPLIT_GROUP, split & (mask == 0)), (WIDE_REPLICA, wide & ~split & (mask == 0))):
        count = int(np.count_nonzero(test))
        if count:
            refused[reason] = refused.get(reason, 0) + count
    good = (mask == 0) & ~split & ~wide
    slots = np.maximum(size // np.maximum(width, 1), 1)
    per_replica = np.where(fits, 1.0 / slots, spans.astype(np.float64))
    return _Layouts((tp[good], pp[good], ep[good], dp[good]), width[good], per_replica[good]), refused


def _may_span(setting: Setting, server_type: ServerType) -> bool:
    """Replicas may span servers that are bought, because the plan buys the network between them."""
    return any(pool.is_bought for pool in setting.pools if pool.server_type is server_type)


def _sorted(values: tuple[int, ...]) -> IntArray:
    return np.array(sorted(set(values)), dtype=np.int64)


def _deployments(
    types: tuple[ServerType, ...],
    schemes: tuple[SchemeOption, ...],
    model: ServedModel,
    type_column: IntArray,
    scheme_column: IntArray,
    degrees: tuple[IntArray, IntArray, IntArray, IntArray],
) -> Deployments:
    """The performance model's columns: attributes of each type and scheme, spread over the rows."""
    rows = [one.accelerator for one in types]

    def spread(values: list[float]) -> FloatArray:
        return np.array(values, dtype=np.float64)[type_column]

    # What a scheme is on a type: small tables, looked up by both columns.
    shape = (len(types), len(schemes))
    precision, tflops = np.zeros(shape, dtype=np.int64), np.zeros(shape)
    for i, row in enumerate(rows):
        for j, option in enumerate(schemes):
            compute = compute_precision(row, option)
            if compute in PRECISIONS:
                precision[i, j] = PRECISIONS.index(compute)
            tflops[i, j] = row.matrix_tflops(compute) or row.fp16_tflops
    weight_bytes = np.array([option.scheme.bytes_per_weight for option in schemes])
    attention_bytes = np.array(
        [
            2.0
            if model.native_experts_only and option.scheme.id == model.native_scheme
            else option.scheme.bytes_per_weight
            for option in schemes
        ]
    )
    kv_bytes = np.array([option.kv_scheme.bytes_per_element for option in schemes])
    tp, pp, ep, dp = degrees
    return Deployments.of(
        generation_index=np.array([GENERATIONS.index(row.generation) for row in rows], dtype=np.int64)[type_column],
        precision_index=precision[type_column, scheme_column],
        memory_gib=spread([row.memory_gib for row in rows]),
        memory_bandwidth_gb_s=spread([row.memory_bandwidth_gb_s for row in rows]),
        compute_tflops=tflops[type_column, scheme_column],
        fp16_tflops=spread([row.fp16_tflops for row in rows]),
        scale_up_gb_s=spread([row.scale_up_gb_s or 0.0 for row in rows]),
        scale_up_pair_gb_s=spread([row.scale_up_pair_gb_s or row.scale_up_gb_s or 0.0 for row in rows]),
        scale_up_domain=spread(
            [float(min(row.scale_up_domain, one.accelerators)) for row, one in zip(rows, types, strict=True)]
        ),
        scale_out_gb_s=spread([row.scale_out_gb_s for row in rows]),
        pcie_gb_s=spread([row.pcie_gb_s for row in rows]),
        tdp_w=spread([row.tdp_w for row in rows]),
        accelerators_per_host=spread(
            [float(min(row.accelerators_per_host, one.accelerators)) for row, one in zip(rows, types, strict=True)]
        ),
        tensor_parallel=tp,
        pipeline_parallel=pp,
        expert_parallel=ep,
        attention_data_parallel=dp,
        weight_bytes=weight_bytes[scheme_column],
        attention_weight_bytes=attention_bytes[scheme_column],
        kv_bytes=kv_bytes[scheme_column],
    )
