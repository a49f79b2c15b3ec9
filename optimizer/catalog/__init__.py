"""Accelerators, prices, fabrics, models, number formats, cooling and places, with where each figure comes from.

    catalog = load_catalog()
    row = catalog.accelerators[catalog.resolve_accelerator("H100 SXM")]

Tables are read from packaged CSV files when first asked; rows are validated one at a time. Every row states its
source, date, trust (measured, vendor, fitted, assumed, user) and confidence.
"""

from optimizer.catalog.catalog import Catalog, OfferKey, load_catalog
from optimizer.catalog.names import UnknownName

__all__ = ["Catalog", "OfferKey", "UnknownName", "load_catalog"]
