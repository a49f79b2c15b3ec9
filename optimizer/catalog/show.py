"""The catalogue as plain tables: what ``optimize catalog accelerators|models|schemes|cooling|prices`` shows.

Headings carry the units; every line ends with source, date, trust and confidence. Nothing is printed here.
"""

from collections.abc import Iterable
from typing import Final, Literal, get_args

from optimizer.catalog.catalog import Catalog
from optimizer.catalog.names import UnknownName, folded, nearest
from optimizer.catalog.rows import TERMS, Generation, QuantizationScheme, Row

Kind = Literal["accelerators", "models", "schemes", "cooling", "prices"]
Cell = str | int | float | None
Columns = tuple[str, ...]
Rows = tuple[tuple[Cell, ...], ...]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

#: Heading and attribute of each column.
_ACCELERATORS: Final = (
    ("accelerator", "id"),
    ("name", "name"),
    ("generation", "generation"),
    ("memory (GiB)", "memory_gib"),
    ("memory bandwidth (GB/s)", "memory_bandwidth_gb_s"),
    ("FP16 (TFLOP/s)", "fp16_tflops"),
    ("FP8 (TFLOP/s)", "fp8_tflops"),
    ("INT8 (TOP/s)", "int8_tops"),
    ("FP4 (TFLOP/s)", "fp4_tflops"),
    ("scale-up one way (GB/s)", "scale_up_gb_s"),
    ("scale-up domain (accelerators)", "scale_up_domain"),
    ("scale-out one way (GB/s)", "scale_out_gb_s"),
    ("board power (W)", "tdp_w"),
    ("accelerators per server", "accelerators_per_server"),
    ("server power (kW)", "server_power_kw"),
    ("server power basis", "server_power_basis"),
    ("server height (U)", "server_rack_units"),
    ("released (year)", "release_year"),
    ("availability", "availability"),
    ("liquid cooling", "liquid_cooling"),
)
_MODELS: Final = (
    ("model", "id"),
    ("family", "family"),
    ("attention", "attention"),
    ("parameters", "total_parameters_published"),
    ("active parameters", "active_parameters_published"),
    ("layers", "layers"),
    ("hidden (elements)", "hidden"),
    ("heads", "heads"),
    ("KV heads", "kv_heads"),
    ("experts", "experts"),
    ("context (tokens)", "max_context_tokens"),
    ("native scheme", "native_scheme"),
)
_COOLING: Final = (
    ("cooling", "id"),
    ("name", "name"),
    ("medium", "medium"),
    ("practical rack (kW)", "rack_kw_practical"),
    ("largest rack (kW)", "rack_kw_upper"),
    ("cooling PUE (1)", "ppue_typical"),
    ("heat to liquid (fraction)", "liquid_capture_typical_fraction"),
    ("server fan power saved (fraction)", "server_fan_saved_typical_fraction"),
    ("capital, fixed (USD)", "capex_fixed_usd"),
    ("capital, per kW (USD/kW)", "capex_marginal_usd_per_kw"),
    ("upkeep (fraction/year)", "maintenance_typical_fraction"),
    ("water (L/kWh)", "water_typical_l_per_kwh"),
)
_PROVENANCE: Final = (("source", "source"), ("date", "as_of"), ("trust", "trust"), ("confidence", "confidence"))
_PROVENANCE_HEADINGS: Final = tuple(heading for heading, _ in _PROVENANCE)


def table(catalog: Catalog, kind: str) -> tuple[Columns, Rows]:
    """Headings and lines of one kind of table.

    Args:
        catalog: Packaged rows, with the planner's own laid over them.
        kind: One of KINDS.

    Raises:
        UnknownName: there is no such table.
    """
    if kind == "accelerators":
        return _by_attribute(catalog.accelerators.values(), _ACCELERATORS)
    if kind == "models":
        return _by_attribute(catalog.models.values(), _MODELS)
    if kind == "cooling":
        return _by_attribute(catalog.cooling.values(), _COOLING)
    if kind == "schemes":
        return _schemes(catalog)
    if kind == "prices":
        return _price_lines(catalog)
    raise UnknownName(kind, nearest(kind, {folded(known): known for known in KINDS}), "table")


def _by_attribute(rows: Iterable[Row], columns: tuple[tuple[str, str], ...]) -> tuple[Columns, Rows]:
    every = (*columns, *_PROVENANCE)
    lines = tuple(tuple(getattr(row, attribute) for _, attribute in every) for row in rows)
    return tuple(heading for heading, _ in every), lines


def _provenance(row: Row) -> tuple[Cell, ...]:
    return (row.source, row.as_of, row.trust, row.confidence)


def _schemes(catalog: Catalog) -> tuple[Columns, Rows]:
    columns = (
        "scheme",
        "weights (bits)",
        "weights with scales (bits)",
        "activations (bits)",
        "matrix units",
        "computes on",
        "stores weights on",
        "preparation",
        "mean loss (fraction)",
        "models",
        "suites at 98.7 % (fraction)",
        *_PROVENANCE_HEADINGS,
    )
    lines: list[tuple[Cell, ...]] = []
    for scheme in catalog.schemes.values():
        shape: tuple[Cell, ...] = (
            scheme.id,
            scheme.weight_bits,
            scheme.weight_bits_effective,
            scheme.activation_bits,
            scheme.compute,
            _generations(scheme, "native"),
            _generations(scheme, "weight_only"),
        )
        if not scheme.recoveries:
            lines.append((*shape, None, None, None, None, *_provenance(scheme)))
        lines.extend(
            (
                *shape,
                accuracy.recovery,
                accuracy.mean_loss_fraction,
                accuracy.models,
                accuracy.share_meeting_987_fraction,
                *_provenance(accuracy),
            )
            for accuracy in scheme.recoveries
        )
    return columns, tuple(lines)


def _generations(scheme: QuantizationScheme, support: str) -> str:
    return " ".join(name for name in get_args(Generation) if scheme.support(name) == support)


def _price_lines(catalog: Catalog) -> tuple[Columns, Rows]:
    columns = (
        "accelerator",
        "how",
        "what",
        "accelerators",
        "low (USD)",
        "typical (USD)",
        "high (USD)",
        "price per accelerator (USD, or USD/h rented)",
        *_PROVENANCE_HEADINGS,
    )
    lines: list[tuple[Cell, ...]] = [
        (
            price.accelerator,
            "buy",
            price.unit,
            price.accelerators,
            price.low_usd,
            price.typical_usd,
            price.high_usd,
            price.typical_usd_per_accelerator,
            *_provenance(price),
        )
        for price in catalog.purchase_prices.values()
    ]
    offers = catalog.cheapest_offers(("list", "marketplace_or_community"))
    for (accelerator, accelerators, term), offer in sorted(
        offers.items(), key=lambda item: (item[0][0], item[0][1], TERMS.index(item[0][2]))
    ):
        price = offer.price_usd_per_accelerator_hour(term)
        what = f"{offer.provider} {offer.instance}".strip()
        lines.append((accelerator, f"rent {term}", what, accelerators, None, None, None, price, *_provenance(offer)))
    return columns, tuple(lines)
