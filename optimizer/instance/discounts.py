"""Quantity discounts on what is bought by the accelerator or by the kilowatt: network equipment, cooling plant."""

from typing import Literal

from optimizer.instance.fields import REQUIRED, Frozen, field

#: How the steps of a discount are read.
DiscountKind = Literal["all_units", "incremental"]


class NetworkDiscount(Frozen):
    """A step of a quantity discount on the cluster network (switches, cables, optics, adapters)."""

    from_accelerators: int = field(
        REQUIRED,
        "The discount holds from this many accelerators of one link speed on.",
        unit="accelerators",
        ge=2,
        le=10**9,
    )
    discount_fraction: float = field(REQUIRED, "Taken off the undiscounted price.", unit="fraction", ge=0, lt=1)


class PlantDiscount(Frozen):
    """A step of a quantity discount on a cooling plant's price per kW."""

    from_kw: float = field(
        REQUIRED, "The discount holds from a plant of this size on.", unit="kW of heat", gt=0, le=1e9
    )
    discount_fraction: float = field(REQUIRED, "Taken off the undiscounted price.", unit="fraction", ge=0, lt=1)
