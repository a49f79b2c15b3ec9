"""The catalogue: packaged tables, loaded when asked, with a planner's own rows laid over them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Final, TypeVar

from optimizer.catalog.names import UnknownName, folded, resolve
from optimizer.catalog.rows import (
    TERMS,
    Accelerator,
    BuildCost,
    Climate,
    CoolingOption,
    ElectricityRegion,
    Fabric,
    FacilityFigure,
    KvScheme,
    ModelArchitecture,
    PriceClass,
    PurchasePrice,
    QuantizationScheme,
    RecoveryStep,
    RentalOffer,
    Row,
    ServerPowerCurve,
    Technology,
    Term,
)
from optimizer.catalog.tables import Table, grouped, keyed, read

R = TypeVar("R", bound=Row)

#: (accelerator, accelerators in the instance, term of commitment)
OfferKey = tuple[str, int, Term]

#: Two link speeds within this share are one family.
_SPEED_TOLERANCE: Final = 0.02


@dataclass(frozen=True, eq=False)
class Catalog:
    """Every table of the catalogue, each a mapping from id to row that loads when first asked.

    ``purchase_prices`` holds the complete server (or rack) of an accelerator, ``card_prices`` the bare card or module.
    """

    accelerators: Table[Accelerator]
    purchase_prices: Table[PurchasePrice]
    card_prices: Table[PurchasePrice]
    rental_offers: Table[RentalOffer]
    fabrics: Table[Fabric]
    models: Table[ModelArchitecture]
    schemes: Table[QuantizationScheme]
    kv_schemes: Table[KvScheme]
    recovery_steps: Table[RecoveryStep]
    cooling: Table[CoolingOption]
    climates: Table[Climate]
    electricity: Table[ElectricityRegion]
    facility: Table[FacilityFigure]
    build_costs: Table[BuildCost]
    power_curves: Table[ServerPowerCurve]

    def resolve_accelerator(self, name: str) -> str:
        """Id of the accelerator that ``name`` means, in any case or by an alias; UnknownName otherwise."""
        return resolve(name, self.accelerators, _aliases("accelerator"), "accelerator")

    def resolve_model(self, name: str) -> str:
        """Id of the model that ``name`` means: catalogue name, Hugging Face id or alias; UnknownName otherwise."""
        return resolve(name, self.models, _aliases("model"), "model")

    def resolve(self, table: str, name: str) -> str:
        """Id that ``name`` means in any table by its attribute name (``schemes``, ``cooling``, ``climates`` ...)."""
        if table == "accelerators":
            return self.resolve_accelerator(name)
        if table == "models":
            return self.resolve_model(name)
        rows: Table[Any] = getattr(self, table)
        return resolve(name, rows, {}, _SINGULAR.get(table, table))

    def with_rows(
        self,
        *,
        accelerators: Iterable[Accelerator] = (),
        purchase_prices: Iterable[PurchasePrice] = (),
        rental_offers: Iterable[RentalOffer] = (),
        fabrics: Iterable[Fabric] = (),
        models: Iterable[ModelArchitecture] = (),
        schemes: Iterable[QuantizationScheme] = (),
        kv_schemes: Iterable[KvScheme] = (),
        recovery_steps: Iterable[RecoveryStep] = (),
        cooling: Iterable[CoolingOption] = (),
        climates: Iterable[Climate] = (),
        electricity: Iterable[ElectricityRegion] = (),
        facility: Iterable[FacilityFigure] = (),
        build_costs: Iterable[BuildCost] = (),
        power_curves: Iterable[ServerPowerCurve] = (),
    ) -> "Catalog":
        """A catalogue where the given rows replace those of the same id, or extend the table.

        Purchase prices are keyed by accelerator: a server or rack row replaces the server price, a card row the card's.
        """
        prices = tuple(purchase_prices)
        return replace(
            self,
            accelerators=self.accelerators.with_own({row.id: row for row in accelerators}),
            purchase_prices=self.purchase_prices.with_own({r.accelerator: r for r in prices if r.unit != "card"}),
            card_prices=self.card_prices.with_own({r.accelerator: r for r in prices if r.unit == "card"}),
            rental_offers=self.rental_offers.with_own({row.id: row for row in rental_offers}),
            fabrics=self.fabrics.with_own({row.id: row for row in fabrics}),
            models=self.models.with_own({row.id: row for row in models}),
            schemes=self.schemes.with_own({row.id: row for row in schemes}),
            kv_schemes=self.kv_schemes.with_own({row.id: row for row in kv_schemes}),
            recovery_steps=self.recovery_steps.with_own({row.id: row for row in recovery_steps}),
            cooling=self.cooling.with_own({row.id: row for row in cooling}),
            climates=self.climates.with_own({row.id: row for row in climates}),
            electricity=self.electricity.with_own({row.id: row for row in electricity}),
            facility=self.facility.with_own({row.id: row for row in facility}),
            build_costs=self.build_costs.with_own({row.id: row for row in build_costs}),
            power_curves=self.power_curves.with_own({row.id: row for row in power_curves}),
        )

    def cheapest_offers(self, price_classes: Iterable[PriceClass] = ("list",)) -> dict[OfferKey, RentalOffer]:
        """Cheapest bookable offer of each accelerator, instance size and term, in order of the key.

        Averages over listings, discounted or outdated figures (``is_bookable`` false) never win, except where
        ``history`` is asked for. Where the planner states own offers for a key, only those compete.
        """
        classes = frozenset(price_classes)
        best: dict[OfferKey, tuple[bool, float, str]] = {}
        for offer in self.rental_offers.values():
            if offer.price_class not in classes or not (offer.is_bookable or offer.price_class == "history"):
                continue
            for term in TERMS:
                price = offer.price_usd_per_accelerator_hour(term)
                if price is None:
                    continue
                key = (offer.accelerator, offer.accelerators, term)
                rank = (offer.trust != "user", price, offer.id)
                if key not in best or rank < best[key]:
                    best[key] = rank
        return {key: self.rental_offers[best[key][2]] for key in sorted(best)}

    def fabric_for(self, scale_out_gb_s: float, technology: Technology | None = None) -> tuple[Fabric, ...]:
        """Fabrics for a link of ``scale_out_gb_s`` (GB/s, one way) by rising tiers.

        The first whose ``max_accelerators`` holds the cluster is the one to build. InfiniBand is preferred where
        ``technology`` is None, as the dearer and better documented. The family is the slowest that carries the link;
        above the fastest family price and power grow with the speed (assumed).
        """
        families: dict[tuple[Technology, float], list[Fabric]] = {}
        for row in self.fabrics.values():
            families.setdefault((row.technology, row.scale_out_gb_s), []).append(row)
        if technology is not None:
            families = {key: rows for key, rows in families.items() if key[0] == technology}
        if not families:
            raise UnknownName(str(technology), (), "fabric technology")
        wide = [speed for _, speed in families if speed >= scale_out_gb_s * (1.0 - _SPEED_TOLERANCE)]
        speed = min(wide) if wide else max(speed for _, speed in families)
        rows = families.get(("infiniband", speed)) or families["ethernet", speed]
        if not wide:
            rows = [_scaled(row, scale_out_gb_s / speed) for row in rows]
        return tuple(sorted(rows, key=lambda row: row.tiers))

    def block_width(self, model: str, scheme: str) -> int:
        """Elements that a shard of a matrix must be a multiple of, for ``model`` in ``scheme``."""
        architecture = self.models[model]
        native = architecture.native_block_width if architecture.native_scheme == scheme else 1
        return max(native, self.schemes[scheme].block_width)


#: Word for messages, by table.
_SINGULAR: Final = {
    "schemes": "quantization scheme",
    "kv_schemes": "KV scheme",
    "cooling": "cooling option",
    "climates": "climate",
    "electricity": "electricity region",
    "facility": "facility figure",
    "build_costs": "building cost",
    "fabrics": "fabric",
    "rental_offers": "rental offer",
    "purchase_prices": "purchase price",
    "power_curves": "power curve",
    "recovery_steps": "recovery step",
}


@cache
def load_catalog() -> Catalog:
    """The packaged catalogue. Cheap: no file is read before a table is asked."""
    return Catalog(
        accelerators=Table(Accelerator, partial(keyed, "accelerators.csv")),
        purchase_prices=Table(PurchasePrice, partial(_prices, cards=False)),
        card_prices=Table(PurchasePrice, partial(_prices, cards=True)),
        rental_offers=Table(RentalOffer, partial(keyed, "rental_offers.csv")),
        fabrics=Table(Fabric, partial(keyed, "fabrics.csv")),
        models=Table(ModelArchitecture, partial(keyed, "models.csv")),
        schemes=Table(QuantizationScheme, partial(_with_recoveries, "schemes.csv")),
        kv_schemes=Table(KvScheme, partial(_with_recoveries, "kv_schemes.csv")),
        recovery_steps=Table(RecoveryStep, partial(keyed, "recovery_steps.csv")),
        cooling=Table(CoolingOption, partial(keyed, "cooling.csv")),
        climates=Table(Climate, _climates),
        electricity=Table(ElectricityRegion, partial(keyed, "electricity.csv")),
        facility=Table(FacilityFigure, partial(keyed, "facility.csv")),
        build_costs=Table(BuildCost, partial(keyed, "build_costs.csv")),
        power_curves=Table(ServerPowerCurve, partial(keyed, "power_curves.csv")),
    )


@cache
def _aliases(kind: str) -> Mapping[str, str]:
    return {folded(row["alias"]): row["id"] for row in read("aliases.csv") if row["kind"] == kind}


@cache
def _prices(*, cards: bool) -> Mapping[str, Mapping[str, Any]]:
    return {row["accelerator"]: row for row in read("purchase_prices.csv") if (row["unit"] == "card") is cards}


@cache
def _with_recoveries(name: str) -> Mapping[str, Mapping[str, Any]]:
    recoveries = grouped(read("recoveries.csv"), "scheme")
    return {row["id"]: {**row, "recoveries": tuple(recoveries.get(row["id"], ()))} for row in read(name)}


@cache
def _climates() -> Mapping[str, Mapping[str, Any]]:
    return _Sites({row["id"]: row for row in read("climates.csv")})


class _Sites(dict[str, Mapping[str, Any]]):
    """Climate records whose bins are joined when a site is asked: most plans stand in one place."""

    def __getitem__(self, site: str) -> Mapping[str, Any]:
        record = dict(super().__getitem__(site))
        for name in ("dry_bulb_month_c", "wet_bulb_month_c"):
            record[name] = tuple(record[name].split())
        bins = _bins()[site]
        for name in ("bin_mid_c", "dry_bulb_hours", "wet_bulb_hours"):
            record[name] = tuple(row[name] for row in bins)
        record["coincident_wet_bulb_c"] = tuple(row.get("coincident_wet_bulb_c") for row in bins)
        return record


@cache
def _bins() -> Mapping[str, list[dict[str, str]]]:
    return grouped(read("climate_bins.csv"), "climate")


def _scaled(row: Fabric, ratio: float) -> Fabric:
    """A faster fabric than any that is priced: price and power in proportion to the speed."""
    return row.model_copy(
        update={
            "id": f"{row.id}-x{ratio:.3g}",
            "scale_out_gb_s": row.scale_out_gb_s * ratio,
            "low_usd_per_accelerator": row.low_usd_per_accelerator * ratio,
            "typical_usd_per_accelerator": row.typical_usd_per_accelerator * ratio,
            "high_usd_per_accelerator": row.high_usd_per_accelerator * ratio,
            "power_w_per_accelerator": row.power_w_per_accelerator * ratio,
            "source": f"scaled by speed from {row.id}: {row.source}",
            "trust": "assumed",
            "confidence": "low",
        }
    )
