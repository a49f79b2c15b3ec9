"""Names in an instance that the catalogue must know: accelerators, models, schemes, cooling, places."""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final

from optimizer.instance.checking import Found
from optimizer.instance.positions import Path
from optimizer.instance.problems import field_name, nearest, section, shown

if TYPE_CHECKING:
    from optimizer.instance.model import Instance, OwnRows

_DATA: Final = FilePath(__file__).parent.parent / "catalog" / "data"

#: Word for a table, and the verb that lists it.
_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "accelerators": ("accelerator", "optimize catalog accelerators"),
    "models": ("model", "optimize catalog models"),
    "schemes": ("quantization scheme", "optimize catalog schemes"),
    "kv_schemes": ("KV scheme", "optimize catalog schemes"),
    "cooling": ("cooling option", "optimize catalog cooling"),
    "climates": ("climate", ""),
    "electricity": ("electricity region", ""),
}

#: Where an instance names rows: path, and the table. A list or an object stands for each of its values or keys.
_NAMED: Final[tuple[tuple[Path, str], ...]] = (
    (("workload", "model"), "models"),
    (("choices", "accelerators"), "accelerators"),
    (("choices", "supply"), "accelerators"),
    (("choices", "schemes"), "schemes"),
    (("choices", "kv_schemes"), "kv_schemes"),
    (("choices", "cooling"), "cooling"),
    (("site", "climate"), "climates"),
    (("site", "electricity_region"), "electricity"),
    (("economics", "prices"), "accelerators"),
    (("economics", "cooling_prices"), "cooling"),
)


def model_path(model: str, folder: FilePath) -> FilePath | None:
    """File that a model's text points at, or None where the text is a catalogue name or a Hugging Face id."""
    if model.endswith(".json"):
        return folder / model
    if model.startswith((".", "/", "~")):
        path = FilePath(model)
        # A tilde before a user who is not known here stays what it is: a folder of that name, which is missing.
        with suppress(RuntimeError):
            path = path.expanduser()
        return folder / path / "config.json"
    return None


def unknown_names(
    value: Mapping[str, Any], rows: Mapping[str, Any], is_sound: Callable[[Path], bool]
) -> Iterator[Found]:
    """Names that neither the catalogue nor the planner's own rows know, and names given twice in two spellings.

    Args:
        value: The instance as written.
        rows: The planner's own rows as written.
        is_sound: Whether nothing at or below a path was found faulty before.
    """
    own = {table: _own_ids(rows.get(table)) for table in ("accelerators", "cooling")}
    for path, table in (*_NAMED, *_named_in_lists(value)):
        names = _at(value, path)
        if table == "models" and not isinstance(names, str):
            continue  # written inline
        seen: dict[str, Path] = {}
        for where, name in _names(names, path):
            at_key = isinstance(names, Mapping)
            if not isinstance(name, str) or not (is_sound(where) or at_key):
                continue
            if table == "models" and model_path(name, FilePath()) is not None:
                continue
            row_id, near = _resolved(table, name, own.get(table, frozenset()))
            if row_id is None:
                yield _unknown(table, name, near, where, at_key=at_key)
            elif row_id in seen:
                code = f"E-{section(where)}-008"
                found = f"{shown(name)}, the same as {field_name(seen[row_id])}"
                yield Found(code, where, found, "must be named once", at_key=at_key)
            else:
                seen[row_id] = where
    yield from _unknown_in_inventory(value.get("inventory"), own, is_sound)
    yield from _unknown_offers(value.get("choices"), rows, own["accelerators"], is_sound)
    yield from _unknown_in_rows(value.get("catalog"), own["accelerators"], is_sound)


def _unknown_in_inventory(
    rows: Any, own: Mapping[str, frozenset[str]], is_sound: Callable[[Path], bool]
) -> Iterator[Found]:
    """Owned servers whose accelerator or cooling no row knows."""
    for index, row in enumerate(rows if isinstance(rows, list) else ()):
        for key, table in (("accelerator", "accelerators"), ("cooling", "cooling")):
            where: Path = ("inventory", index, key)
            name = row.get(key) if isinstance(row, Mapping) else None
            if isinstance(name, str) and is_sound(where):
                row_id, near = _resolved(table, name, own[table])
                if row_id is None:
                    yield _unknown(table, name, near, where, at_key=False)


def _unknown_offers(
    choices: Any, rows: Mapping[str, Any], own: frozenset[str], is_sound: Callable[[Path], bool]
) -> Iterator[Found]:
    """Providers, regions, and accelerators of a provider, that no offer has."""
    if not isinstance(choices, Mapping):
        return
    written = rows.get("rental_offers")
    offers = [one for one in (written if isinstance(written, list) else ()) if isinstance(one, Mapping)]
    for key, column in (("providers", "provider"), ("regions", "region"), ("provider_supply", "provider")):
        names = choices.get(key)
        known = {str(one.get(column, "")) for one in offers} if names else set()
        folded_known = {name.casefold() for name in known}
        for where, name in _names(names, ("choices", key)):
            at_key = isinstance(names, Mapping)
            if not isinstance(name, str) or not (is_sound(where) or at_key):
                continue
            packaged = _packaged_offers(column)
            if name.casefold() not in folded_known and name.casefold() not in {one.casefold() for one in packaged}:
                near = nearest(name, (*sorted(packaged), *sorted(known)))
                fix = f"Did you mean {near}?" if near else ""
                allowed = f"must be a {column} of a rental offer"
                yield Found("E-CHOICES-007", where, shown(name), allowed, fix, at_key)
    supply = choices.get("provider_supply")
    for provider, counts in supply.items() if isinstance(supply, Mapping) else ():
        for where, name in _names(counts, ("choices", "provider_supply", provider)):
            if isinstance(counts, Mapping):
                row_id, near = _resolved("accelerators", name, own)
                if row_id is None:
                    yield _unknown("accelerators", name, near, where, at_key=True)


@cache
def _packaged_offers(column: str) -> frozenset[str]:
    """Every value of a column of the packaged offers."""
    return frozenset(row[column] for row in _records("rental_offers"))


def _unknown_in_rows(rows: Any, own: frozenset[str], is_sound: Callable[[Path], bool]) -> Iterator[Found]:
    """Prices in the instance's own rows that speak of no accelerator. (A separate file is seen to by its reader.)"""
    if not isinstance(rows, Mapping):
        return
    for path, name in row_accelerators(rows):
        where: Path = ("catalog", *path)
        if isinstance(name, str) and is_sound(where):
            row_id, near = _resolved("accelerators", name, own)
            if row_id is None:
                yield _unknown("accelerators", name, near, where, at_key=False)


def unknown_in_file(rows: Mapping[str, Any], is_sound: Callable[[Path], bool]) -> Iterator[Found]:
    """Prices in a file of own rows that speak of no accelerator."""
    own = _own_ids(rows.get("accelerators"))
    for where, name in row_accelerators(rows):
        if isinstance(name, str) and is_sound(where):
            row_id, near = _resolved("accelerators", name, own)
            if row_id is None:
                yield _unknown("accelerators", name, near, where, at_key=False, code="E-CATALOG-007")


def row_accelerators(rows: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """Accelerators that the price rows name, with their paths."""
    for table in ("purchase_prices", "rental_offers"):
        written = rows.get(table)
        for index, row in enumerate(written if isinstance(written, list) else ()):
            if isinstance(row, Mapping):
                yield (table, index, "accelerator"), row.get("accelerator")


def kind_at(path: Path) -> str:
    """What a key of the object at a path names: ``an accelerator``."""
    word = _KINDS[dict(_NAMED)[path]][0]
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def _unknown(table: str, name: str, near: str, where: Path, *, at_key: bool, code: str = "") -> Found:
    word, verb = _KINDS[table]
    fix = near or (f"`{verb}` lists them" if verb else "")
    allowed = f"must be {'an' if word[0] in 'aeiou' else 'a'} {word} of the catalogue"
    return Found(code or f"E-{section(where)}-007", where, shown(name), allowed, fix, at_key)


def named_row(table: str, name: str, own: Iterable[str], where: Path, code: str) -> tuple[str | None, Found | None]:
    """Id of a catalogue table that a name means, or the fault of naming none; ``own`` are ids of the planner's rows."""
    row_id, near = _resolved(table, name, frozenset(own))
    return row_id, None if row_id is not None else _unknown(table, name, near, where, at_key=False, code=code)


def _resolved(table: str, name: str, own: frozenset[str]) -> tuple[str | None, str]:
    """Id that a name means, or None and a word on the nearest ones."""
    packaged = _packaged(table)
    if name in own or name in packaged:
        return name, ""
    from optimizer.catalog.names import UnknownName, resolve

    word, _ = _KINDS[table]
    try:
        return resolve(name, (*packaged, *sorted(own)), _aliases(word), word), ""
    except UnknownName as error:
        near = nearest(name, (*packaged, *own))
        return (
            None,
            f"Did you mean {near}?" if near else f"Nearest: {', '.join(error.nearest)}" if error.nearest else "",
        )


def row_ids(path: Path, value: Mapping[str, Any]) -> tuple[str, ...]:
    """Catalogue ids that may be keys of the object at a path, the planner's own rows among them."""
    table = dict(_NAMED).get(path)
    rows = value.get("catalog")
    own = _own_ids(rows.get(table)) if table is not None and isinstance(rows, Mapping) else frozenset()
    return () if table is None else tuple(dict.fromkeys((*_packaged(table), *sorted(own))))


def row_id(path: Path, name: str, written: Mapping[str, Any], value: Mapping[str, Any]) -> tuple[str, str]:
    """The key that a name means in the object at a path: the one that is written there, or the catalogue's id.

    Gives ("", a word on the nearest ones) for a name that the catalogue does not know.
    """
    table = dict(_NAMED).get(path)
    if name in written or table is None:
        return name, ""
    rows = value.get("catalog")
    own = _own_ids(rows.get(table)) if isinstance(rows, Mapping) else frozenset()
    found, near = _resolved(table, name, own)
    for key in written:
        if found is not None and _resolved(table, key, own)[0] == found:
            return str(key), ""
    verb = _KINDS[table][1]
    return (found, "") if found is not None else ("", near or (f"`{verb}` lists them" if verb else ""))


@cache
def _packaged(table: str) -> tuple[str, ...]:
    """Ids of a packaged table, read without building a row."""
    return tuple(row["id"] for row in _records(table))


@cache
def _aliases(word: str) -> Mapping[str, str]:
    from optimizer.catalog.names import folded

    return {folded(row["alias"]): row["id"] for row in _records("aliases") if row["kind"] == word}


def _records(table: str) -> Iterator[dict[str, str]]:
    with (_DATA / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _own_ids(rows: Any) -> frozenset[str]:
    if not isinstance(rows, list):
        return frozenset()
    return frozenset(str(row["id"]) for row in rows if isinstance(row, Mapping) and "id" in row)


def _named_in_lists(value: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """As ``_NAMED``, inside the sites and the jobs of this instance."""
    for list_path, keys in (
        (("sites",), (("climate", "climates"), ("electricity_region", "electricity"))),
        (("workload", "jobs"), (("model", "models"),)),
    ):
        written = _at(value, list_path)
        for index in range(len(written) if isinstance(written, list) else 0):
            yield from (((*list_path, index, key), table) for key, table in keys)


def _at(value: Any, path: Path) -> Any:
    for step in path:
        if isinstance(step, int) and isinstance(value, list) and step < len(value):
            value = value[step]
            continue
        if not isinstance(value, Mapping):
            return None
        value = value.get(str(step))
    return value


def _names(names: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(names, Mapping):
        yield from (((*path, key), key) for key in names)
    elif isinstance(names, list):
        yield from (((*path, index), name) for index, name in enumerate(names))
    elif names is not None:
        yield path, names


def no_electricity_price(instance: "Instance") -> Iterator[Found]:
    """Whether the region of the site has no known price of electricity and the planner states none."""
    site = instance.site
    if site.electricity_usd_per_kwh is not None or site.tariff is not None:
        return
    from optimizer.catalog import load_catalog

    catalog = load_catalog()
    region = site.electricity_region or catalog.climates[site.climate].electricity_region
    if catalog.electricity[region].price_usd_per_kwh is None:
        fix = "Add site.electricity_usd_per_kwh or site.tariff"
        found = f"{region}, of which none is known"
        yield Found("E-SITE-104", ("site", "electricity_region"), found, "must have a price", fix)


def none_priced(instance: "Instance", rows: "OwnRows") -> Iterator[Found]:
    """Whether not one of the accelerators that were asked for can be had in a way that was asked for."""
    wanted = instance.choices.accelerators
    if wanted is None or instance.inventory:
        return
    from optimizer.catalog import load_catalog

    catalog = load_catalog().with_rows(
        accelerators=rows.accelerators, purchase_prices=rows.purchase_prices, rental_offers=rows.rental_offers
    )

    def meant(name: str) -> str:
        return name if name in catalog.accelerators else catalog.resolve_accelerator(name)

    terms = {(key[0], key[2]) for key in catalog.cheapest_offers(instance.economics.price_classes)}
    own = {meant(name): prices for name, prices in instance.economics.prices.items()}
    for name in wanted:
        row_id = meant(name)
        prices = own.get(row_id)
        for way in instance.choices.sourcing:
            if way == "buy":
                stated = prices is not None and prices.server_usd is not None
                packaged = row_id in catalog.purchase_prices or row_id in catalog.card_prices
            else:
                stated = prices is not None and getattr(prices, f"{way}_usd_per_hour") is not None
                fallback = getattr(instance.economics.rent_fallbacks, f"{way}_fraction", None)
                packaged = (row_id, way) in terms or (fallback is not None and (row_id, "on_demand") in terms)
            if stated or packaged:
                return
    ways = ", ".join(instance.choices.sourcing)
    found = f"{', '.join(wanted[:5])}, of which none has a price for {ways}"
    fix = "Add economics.prices, or another way to choices.sourcing"
    yield Found("E-CHOICES-020", ("choices", "accelerators"), found, "must have a price", fix)


def owned_faults(instance: "Instance", rows: "OwnRows") -> Iterator[Found]:
    """Owned servers that cannot stand as they are said to, or whose upkeep or successors have no price."""
    if not instance.inventory:
        return
    from optimizer.catalog import load_catalog

    catalog = load_catalog().with_rows(
        accelerators=rows.accelerators, purchase_prices=rows.purchase_prices, cooling=rows.cooling
    )
    for index, one in enumerate(instance.inventory):
        row = catalog.accelerators[catalog.resolve_accelerator(one.accelerator)]
        option = catalog.cooling[catalog.resolve("cooling", one.cooling)]
        if row.liquid_cooling == "required" and option.medium == "air":
            allowed = f"must be a liquid option: {row.id} is built for liquid alone"
            yield Found("E-INVENTORY-201", ("inventory", index, "cooling"), shown(one.cooling), allowed)
        own = instance.economics.prices.get(row.id)
        if (own is not None and own.server_usd is not None) or row.id in catalog.purchase_prices:
            continue
        horizon = instance.economics.horizon_years
        path: Path = ("inventory", index)
        if one.upkeep_usd_per_server_year is None:
            found = f"{row.id}, of which no price of a new server is known, without its upkeep"
            yield Found("E-INVENTORY-202", path, found, "must come with upkeep_usd_per_server_year")
        if one.remaining_life_years < horizon:
            found = f"{one.remaining_life_years:g} years of a horizon of {horizon:g}, and no price of a new {row.id}"
            allowed = f"must come with economics.prices.{row.id}.server_usd, which replaces them"
            yield Found("E-INVENTORY-202", (*path, "remaining_life_years"), found, allowed)
