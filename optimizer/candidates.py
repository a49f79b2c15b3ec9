"""Candidates: every deployment that the instance allows, as columns, one row each.

A row is a request class, a server type, a layout and a scheme. Rows are predicted at any concurrency in one numpy call.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from optimizer.candidate_columns import block_width, deployment_columns, supported
from optimizer.instance.workload import RequestClass
from optimizer.models import ServedModel
from optimizer.performance.confidence import at_confidence
from optimizer.performance.deployments import Deployments, Traffic
from optimizer.performance.factors import Factors
from optimizer.performance.joined import AnyPrepared, Joined, Single
from optimizer.performance.layouts import RULES, check_layouts
from optimizer.performance.roles import UnitPrepared, prepare_prompts, prepare_units
from optimizer.performance.serving import Prepared, ServingPrediction, prepare
from optimizer.power_states import LARGE_DENSE_PARAMETERS, UNCAPPED, speed_of
from optimizer.role_units import Block, Units, units_of
from optimizer.schemes import SchemeOption
from optimizer.setting import ServerType, Setting

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
AnyArray = TypeVar("AnyArray", IntArray, FloatArray)

#: Name of an engine in an instance -> name in the performance model.
ENGINE_NAMES = {"generic": "generic", "vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "trtllm"}
WIDE_REPLICA = "a replica spans rented servers"
SPLIT_GROUP = "a tensor-parallel group does not fit one server"


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Startable deployments as columns of one length, with their predictions prepared.

    ``server_type_index`` and ``scheme_index`` point into the tuples beside them. ``servers_per_replica`` is what one
    replica blocks of a server, or several whole ones. A row may be a unit of two roles: then the degrees are those of
    its ``decode_replicas``, ``prefill_degrees`` (tensor, pipeline, expert, attention-data) those of its
    ``prefill_replicas``, and width and servers those of the whole unit; other rows have 1 and 0 replicas there. Rows of
    a class begin at ``starts``, its ``units`` after its replicas. ``not_startable`` counts refused layouts by reason.
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
    prefill_degrees: IntArray
    prefill_replicas: IntArray
    decode_replicas: IntArray
    prepared: tuple[AnyPrepared, ...]
    units: tuple[UnitPrepared | None, ...]
    starts: IntArray
    not_startable: dict[str, int]

    @property
    def size(self) -> int:
        """Rows."""
        return int(self.class_index.size)

    def unit(self, row: int) -> UnitPrepared | None:
        """The unit of a row, as the only row; None where a replica does both phases."""
        if not self.prefill_replicas[row]:
            return None
        index = int(self.class_index[row])
        units, last = self.units[index], self.starts[index + 1] if index + 1 < self.starts.size else self.size
        assert units is not None
        return units.take(np.array([units.size - (int(last) - row)], dtype=np.int64))

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
    setting: Setting,
    model: ServedModel,
    schemes: tuple[SchemeOption, ...],
    factors: Factors,
    most_units: int | None = None,
) -> Candidates:
    """Every (class, server type, layout, scheme) that an engine can start.

    Raises
    ------
    TooManyUnits: a class has more than ``most_units`` units of prefill and decode replicas.
    """
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

    def gather(part: int) -> IntArray:
        columns = [block[2].columns[part] for block in blocks]
        return np.concatenate(columns) if columns else np.empty(0, dtype=np.int64)

    type_column = np.repeat(np.array([block[0] for block in blocks], dtype=np.int64), sizes)
    scheme_column = np.repeat(np.array([block[1] for block in blocks], dtype=np.int64), sizes)
    tp, pp, ep, dp = (gather(part) for part in range(4))
    columns = None
    if per_class:
        speeds = [speed_of(setting.catalog, one, is_large_dense=is_large_dense(model)) for one in used]
        columns = deployment_columns(used, speeds, schemes, model, type_column, scheme_column, (tp, pp, ep, dp))
    spans = np.concatenate([block[2].servers_per_replica for block in blocks]) if blocks else np.empty(0)
    widths = tp * pp * dp
    predicted = [_predicted(setting, model, columns, factors, one) for one in setting.classes] if columns else []
    offered: list[_Offered] = []
    if columns is not None and "disaggregated" in setting.instance.choices.serving_roles:
        ends = np.cumsum(sizes)
        spots = [
            Block(end - size, size, used[block[0]].accelerators, _may_span(setting, used[block[0]]))
            for end, size, block in zip(ends.tolist(), sizes, blocks, strict=True)
        ]
        offered = [
            _units(setting, model, columns, factors, one, seen, spots, widths, spans, most_units)
            for one, seen in zip(setting.classes, predicted, strict=True)
        ]
    # No measured point stands behind speeds under a power cap.
    capped = np.array([one.power_cap_fraction < UNCAPPED for one in used], dtype=np.bool_)
    both = "unified" in setting.instance.choices.serving_roles
    prepared: list[AnyPrepared] = []
    for index, seen in enumerate(predicted):
        assert columns is not None
        parts = [_confident(setting, model, columns.generation_index, seen, capped[type_column])] if both else []
        if offered:
            generation = columns.generation_index[offered[index].units.decode]
            parts.append(_confident(setting, model, generation, offered[index].prepared))
        prepared.append(parts[0] if len(parts) == 1 else Joined.of(*parts))

    def gathered(column: AnyArray, of_units: Callable[[Units], AnyArray]) -> AnyArray:
        """A column over all classes: of each class's replicas that do both phases, then of its units."""
        parts = []
        for index in range(len(setting.classes)):
            parts += [column] if both else []
            parts += [of_units(offered[index].units)] if offered else []
        return np.concatenate(parts) if parts else column

    def by_row(column: IntArray) -> IntArray:
        return gathered(column, lambda units: column[units.decode])

    alone = per_class if both else 0
    counts = [alone + one.units.size for one in offered] or [alone] * len(setting.classes)
    degrees = np.stack((tp, pp, ep, dp), axis=1)
    none = np.zeros(per_class, dtype=np.int64)
    return Candidates(
        setting=setting,
        model=model,
        factors=factors,
        server_types=used,
        schemes=schemes,
        class_index=np.repeat(np.arange(len(counts), dtype=np.int64), counts),
        server_type_index=by_row(type_column),
        scheme_index=by_row(scheme_column),
        tensor_parallel=by_row(tp),
        pipeline_parallel=by_row(pp),
        expert_parallel=by_row(ep),
        attention_data_parallel=by_row(dp),
        width=gathered(widths, lambda units: units.width),
        servers_per_replica=gathered(spans, lambda units: units.servers),
        prefill_degrees=gathered(np.zeros_like(degrees), lambda units: degrees[units.prefill]),
        prefill_replicas=gathered(none, lambda units: units.prefill_replicas),
        decode_replicas=gathered(none + 1, lambda units: units.decode_replicas),
        prepared=tuple(prepared),
        units=tuple(one.prepared for one in offered) if offered else (None,) * len(setting.classes),
        starts=np.concatenate(([0], np.cumsum(counts)[:-1])).astype(np.int64),
        not_startable=refused,
    )


def is_large_dense(model: ServedModel) -> bool:
    """Whether the power constants of large dense models hold."""
    return model.is_dense and model.active_parameters >= LARGE_DENSE_PARAMETERS


@dataclass(frozen=True, slots=True, eq=False)
class _Offered:
    """Units of one class."""

    units: Units
    prepared: UnitPrepared


def _traffic(setting: Setting, one: RequestClass) -> Traffic:
    instance = setting.instance
    return Traffic(
        input_tokens=float(one.request.input_tokens),
        output_tokens=float(one.request.output_tokens),
        max_context_tokens=float(instance.workload.longest_context_tokens()),
        prefix_hit_fraction=one.request.prefix_hit_fraction,
        engine=ENGINE_NAMES[instance.workload.engine],
        sequence_slots=float(instance.choices.sequence_slots or 0),
    )


def _predicted(
    setting: Setting, model: ServedModel, columns: Deployments, factors: Factors, one: RequestClass
) -> Prepared:
    """Replicas that do both phases."""
    usable = setting.instance.targets.vram_fraction
    return prepare(model.architecture, columns, _traffic(setting, one), factors, usable_memory_fraction=usable)


def _units(
    setting: Setting,
    model: ServedModel,
    columns: Deployments,
    factors: Factors,
    one: RequestClass,
    plain: Prepared,
    groups: list[Block],
    width: IntArray,
    servers: FloatArray,
    most: int | None,
) -> _Offered:
    """Units of prefill and decode replicas of one class."""
    traffic, targets = _traffic(setting, one), setting.instance.targets
    prompts = prepare_prompts(model.architecture, columns, traffic, factors, targets.vram_fraction)
    units = units_of(groups, setting.instance.choices.unit_replicas, width, servers, plain, prompts, most)
    prepared = prepare_units(
        model.architecture,
        columns,
        traffic,
        factors,
        plain=plain,
        prompts=prompts,
        prefill_rows=units.prefill,
        decode_rows=units.decode,
        prefill_replicas=units.prefill_replicas,
        decode_replicas=units.decode_replicas,
        utilization=targets.peak_utilization_fraction,
    )
    return _Offered(units, prepared)


def _confident(
    setting: Setting,
    model: ServedModel,
    generation_index: IntArray,
    plain: Prepared | UnitPrepared,
    unmeasured: NDArray[np.bool_] | None = None,
) -> Single:
    """The same at the confidence that the planner asks for."""
    instance = setting.instance
    return at_confidence(
        plain,
        model=model.catalog_id,
        engine=ENGINE_NAMES[instance.workload.engine],
        generation_index=generation_index,
        confidence=instance.targets.confidence,
        unmeasured=unmeasured,
    )


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
    """Replicas may span servers of the hall: the plan buys the network between them, or it stands there."""
    return any(pool.in_hall for pool in setting.pools if pool.server_type is server_type)


def _sorted(values: tuple[int, ...]) -> IntArray:
    return np.array(sorted(set(values)), dtype=np.int64)
