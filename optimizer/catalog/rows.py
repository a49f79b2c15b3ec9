"""Every row class of the catalogue; an instance describes a planner's own rows with the same classes."""

from optimizer.catalog.architectures import ModelArchitecture
from optimizer.catalog.base import Confidence, Generation, Row, Trust, as_of_end
from optimizer.catalog.hardware import (
    TERMS,
    Accelerator,
    Compute,
    Fabric,
    PriceClass,
    PurchasePrice,
    RentalOffer,
    Technology,
    Term,
)
from optimizer.catalog.place import (
    BuildCost,
    Climate,
    CoolingOption,
    ElectricityRegion,
    FacilityFigure,
    ServerPowerCurve,
)
from optimizer.catalog.precision import (
    MODELS_FOR_QUANTILES,
    KvScheme,
    QuantizationScheme,
    Recovery,
    RecoveryKind,
    RecoveryStep,
    Support,
)

__all__ = [
    "MODELS_FOR_QUANTILES",
    "TERMS",
    "Accelerator",
    "BuildCost",
    "Climate",
    "Compute",
    "Confidence",
    "CoolingOption",
    "ElectricityRegion",
    "Fabric",
    "FacilityFigure",
    "Generation",
    "KvScheme",
    "ModelArchitecture",
    "PriceClass",
    "PurchasePrice",
    "QuantizationScheme",
    "Recovery",
    "RecoveryKind",
    "RecoveryStep",
    "RentalOffer",
    "Row",
    "ServerPowerCurve",
    "Support",
    "Technology",
    "Term",
    "Trust",
    "as_of_end",
]
