"""Accelerators, prices, fabrics, models, number formats, cooling and places, with where each figure comes from.

    catalog = load_catalog()
    row = catalog.accelerators[catalog.resolve_accelerator("H100 SXM")]

Tables are read from packaged CSV files when first asked; rows are validated one at a time. Every row states its
source, date, trust (measured, vendor, fitted, assumed, user) and confidence. The names below are loaded when first
asked: a misspelt name in an instance is reported without loading pydantic.
"""

from typing import TYPE_CHECKING, Any

from optimizer.catalog.names import UnknownName

if TYPE_CHECKING:
    from optimizer.catalog.catalog import Catalog, OfferKey, load_catalog

__all__ = ["Catalog", "OfferKey", "UnknownName", "load_catalog"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from optimizer.catalog import catalog

        return getattr(catalog, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
