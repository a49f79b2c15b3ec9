"""What training needs to know of an accelerator."""

from dataclasses import dataclass
from typing import Final

#: Number formats of matrix multiplications in training; columns ``precision_index`` point into this.
PRECISIONS: Final = ("bf16", "fp8", "fp4")
#: Other names of the same formats: recipes of FP8 differ in scaling (current, delayed, blocks), fp16 runs as bf16.
_NAMES: Final = {
    "fp16": "bf16",
    "bf16": "bf16",
    "fp8": "fp8",
    "fp8-cs": "fp8",
    "fp8-ds": "fp8",
    "fp8-mx": "fp8",
    "mxfp8": "fp8",
    "fp8-sc": "fp8",
    "fp8/bf16": "fp8",
    "bf16/int8": "fp8",
    "fp4": "fp4",
    "nvfp4": "fp4",
    "mxfp4": "fp4",
}


def precision_of(name: str) -> str:
    """The format of a precision's name, one of ``PRECISIONS``. ValueError where it is not known."""
    try:
        return _NAMES[name.strip().lower()]
    except KeyError:
        raise ValueError(f"unknown training precision {name!r}; one of {', '.join(sorted(_NAMES))}") from None


@dataclass(frozen=True, slots=True)
class TrainingAccelerator:
    """One accelerator; rates dense, per accelerator, links one way. 0 means that it has none.

    ``scale_up_domain`` accelerators are joined by ``scale_up_gb_s``; beyond them ``scale_out_gb_s`` carries.
    ``tdp_w`` 0: not known, no correction of clocks.
    """

    id: str
    generation: str
    memory_gib: float
    memory_bandwidth_gb_s: float
    fp16_tflops: float
    fp8_tflops: float
    fp4_tflops: float
    scale_up_gb_s: float
    scale_up_domain: int
    scale_out_gb_s: float
    pcie_gb_s: float = 64.0
    tdp_w: float = 0.0

    def peak_tflops(self, precision: str) -> float:
        """Dense peak in a format, 0 where the hardware has none."""
        return {"bf16": self.fp16_tflops, "fp8": self.fp8_tflops, "fp4": self.fp4_tflops}[precision_of(precision)]
