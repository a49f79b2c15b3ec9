"""The limits, one module a family, in the order in which they are checked and added."""

from types import ModuleType
from typing import Final

from constraints import (
    accuracy,
    budget,
    cooling,
    environment,
    latency,
    nvlink,
    power,
    site,
    space,
    spare,
    supply,
    throughput,
    training,
    transfer,
    vram,
)

#: Name of the distribution that owns this package: its name is generic, another one could replace it unnoticed.
OWNER: Final = "gpu-cluster-optimizer"

FAMILIES: Final[tuple[ModuleType, ...]] = (
    vram,
    latency,
    accuracy,
    nvlink,
    transfer,
    throughput,
    spare,
    cooling,
    space,
    site,
    power,
    environment,
    supply,
    budget,
)

#: Families of plans for training; power, space, supply and capital are rows over fleets there too.
TRAINING_FAMILIES: Final[tuple[ModuleType, ...]] = (training,)

__all__ = ["FAMILIES", "OWNER", "TRAINING_FAMILIES"]
