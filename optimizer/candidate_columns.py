"""What a scheme is on an accelerator, and rows of candidates as columns of the performance model."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from optimizer.catalog.rows import Accelerator, Compute
from optimizer.models import ServedModel
from optimizer.performance.deployments import Deployments
from optimizer.performance.factors import GENERATIONS, PRECISIONS
from optimizer.performance.power_cap import CappedSpeed
from optimizer.schemes import SchemeOption
from optimizer.setting import ServerType

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


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


def deployment_columns(
    types: tuple[ServerType, ...],
    speeds: Sequence[CappedSpeed],
    schemes: tuple[SchemeOption, ...],
    model: ServedModel,
    type_column: IntArray,
    scheme_column: IntArray,
    degrees: tuple[IntArray, IntArray, IntArray, IntArray],
) -> Deployments:
    """The performance model's columns: attributes of each type and scheme, spread over the rows.

    ``speeds`` are those of the types' accelerators under their power cap.
    """
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
            tflops[i, j] = (row.matrix_tflops(compute) or row.fp16_tflops) * speeds[i].arithmetic
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
        memory_bandwidth_gb_s=spread(
            [row.memory_bandwidth_gb_s * speed.memory for row, speed in zip(rows, speeds, strict=True)]
        ),
        compute_tflops=tflops[type_column, scheme_column],
        fp16_tflops=spread([row.fp16_tflops * speed.arithmetic for row, speed in zip(rows, speeds, strict=True)]),
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
