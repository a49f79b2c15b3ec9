"""The bill of materials: what is to be ordered, what is to be rented, what running it costs, what stands already.

Every line of the plan's bill stands in exactly one row, so capital and yearly cost are the plan's to the cent. Server
prices are split between the pools of a type at the average price paid.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, get_args

from optimizer.plan import BillLine, Plan, ServerGroup
from optimizer.report.csv_tables import as_csv, to_cents
from optimizer.report.words import TERMS, counted, rented_from, significant, usd, wrapped

Kind = Literal["order", "later", "rent", "run", "keep"]

#: No table of the catalogue states how long delivery takes.
LEAD_TIME: Final = "unknown"
_PREMIUM: Final = ("built for liquid", "converted to liquid")
_COLOCATION, _RACK = "colo_wholesale_1mw_plus", "rack_hardware"
_MONTHS: Final = 12.0

HEADER: Final = (
    "kind",
    "group",
    "item",
    "pool",
    "quantity",
    "unit",
    "unit_price_usd",
    "price_unit",
    "unit_price_low_usd",
    "unit_price_high_usd",
    "capital_usd",
    "usd_per_year",
    "source",
    "as_of",
    "trust",
    "lead_time",
)


@dataclass(frozen=True, slots=True)
class Item:
    """A row: what it is, how much of it, at what price.

    Attributes
    ----------
    kind: ``order`` (bought once), ``later`` (ordered when owned servers end, nothing at the start), ``rent`` (paid by
        the hour or month), ``run`` (energy, maintenance), ``keep`` (owned: stands already and costs nothing more).
    group: servers, spares, racks, network, cooling, recovery; rented servers, colocation; energy, maintenance; owned
        servers.
    unit_price_low_usd, unit_price_high_usd: range of the catalogue row behind the price; None where it gives none.
    capital_usd: paid at the start. usd_per_year: its share of the yearly cost, capital as an annuity.
    """

    kind: Kind
    group: str
    item: str
    pool: str
    quantity: float
    unit: str
    unit_price_usd: float
    price_unit: str
    unit_price_low_usd: float | None
    unit_price_high_usd: float | None
    capital_usd: float
    usd_per_year: float
    source: str
    as_of: str
    trust: str
    lead_time: str = LEAD_TIME


@dataclass(frozen=True, slots=True)
class Materials:
    """The rows and their totals."""

    name: str
    items: tuple[Item, ...]

    @property
    def capital_usd(self) -> float:
        """Paid at the start; the plan's capital."""
        return math.fsum(one.capital_usd for one in self.items)

    @property
    def usd_per_year(self) -> float:
        """Yearly cost, capital as an annuity; the plan's yearly cost."""
        return math.fsum(one.usd_per_year for one in self.items)

    def yearly_usd(self, kind: Kind) -> float:
        """Share of the yearly cost of one kind."""
        return math.fsum(one.usd_per_year for one in self.items if one.kind == kind)


def materials(plan: Plan) -> Materials:
    """The bill of materials of a plan."""
    bought = [group for group in plan.servers if group.sourcing == "buy"]
    types = {group.server_type for group in bought}
    items: list[Item] = []
    done: set[tuple[str, str]] = set()
    for line in plan.bill.lines:
        server_type = _type_of(line, types)
        if server_type is None:
            items.append(_item(plan, line))
            continue
        if (line.component, server_type) in done:
            continue
        done.add((line.component, server_type))
        lines = [
            one for one in plan.bill.lines if one.component == line.component and _type_of(one, types) == server_type
        ]
        items += _servers(plan, lines, [group for group in bought if group.server_type == server_type])
    items += [_kept(group) for group in plan.servers if group.sourcing == "owned"]
    order = {kind: place for place, kind in enumerate(get_args(Kind))}
    return Materials(plan.name, tuple(sorted(items, key=lambda one: order[one.kind])))


def _type_of(line: BillLine, types: Iterable[str]) -> str | None:
    """Server type whose price the line states; None for other lines, and for the premium of liquid servers."""
    if line.component not in ("servers", "spares") or line.item.endswith(_PREMIUM):
        return None
    return next((one for one in types if line.item == one or line.item.startswith((f"{one},", f"{one}:"))), None)


def _servers(plan: Plan, lines: list[BillLine], groups: list[ServerGroup]) -> list[Item]:
    """A row for each pool, at the average of what the servers of the type cost."""
    component = lines[0].component
    counts = {one.pool: one.spare if component == "spares" else one.in_service for one in groups}
    total = sum(counts.values())
    if total == 0:
        return [_item(plan, one) for one in lines]
    capital = math.fsum(one.capital_usd for one in lines)
    yearly = math.fsum(one.usd_per_year for one in lines)
    price = capital / total
    low, high = _range(_server_row(plan, groups[0].accelerator), plan.instance.economics.price_level, price, "{}_usd")
    return [
        Item(
            kind="order",
            group=component,
            item=_ordered(group),
            pool=group.pool,
            quantity=float(counts[group.pool]),
            unit="servers",
            unit_price_usd=price,
            price_unit="USD/server",
            unit_price_low_usd=low,
            unit_price_high_usd=high,
            capital_usd=capital * counts[group.pool] / total,
            usd_per_year=yearly * counts[group.pool] / total,
            source=lines[0].source,
            as_of=lines[0].as_of,
            trust=lines[0].trust,
        )
        for group in groups
        if counts[group.pool]
    ]


def _ordered(group: ServerGroup) -> str:
    """What an order says of a server: a power cap is a setting of it, no other product."""
    cap = group.power_cap_fraction
    name = f"{group.accelerator} x{group.accelerators_per_server}, {group.cooling} cooling"
    return name if cap == 1.0 else f"{name}, accelerators set to {cap:.4g} of their power"


def _kept(group: ServerGroup) -> Item:
    """Owned servers that the plan uses: their capital is spent, what they cost to run stands in rows of its own."""
    item = _ordered(group)
    return Item(
        kind="keep",
        group="owned servers",
        item=item,
        pool=group.pool,
        quantity=float(group.servers),
        unit="servers",
        unit_price_usd=0.0,
        price_unit="USD/server",
        unit_price_low_usd=None,
        unit_price_high_usd=None,
        capital_usd=0.0,
        usd_per_year=0.0,
        source="inventory of the instance",
        as_of="",
        trust="user",
    )


def _item(plan: Plan, line: BillLine) -> Item:
    """The row of a line that is no server price."""
    kind = _kind(line)
    quantity, unit, price, price_unit = line.quantity, line.unit, line.unit_price_usd, f"USD/{_one(line.unit)}"
    group, item = _group(line, kind), line.item
    # Of pools whose names begin alike (regions us and us-east) the longest is meant.
    pool = max((one.pool for one in plan.servers if one.pool in line.item), key=len, default="")
    if line.component == "rent":
        price_unit = "USD/accelerator-hour"
        rented = next((one for one in plan.servers if one.pool == line.item), None)
        if rented is not None:
            source = rented_from(rented.provider, rented.region)
            parts = (rented.server_type, TERMS[rented.sourcing], source, _by_level(rented))
            item = ", ".join(part for part in parts if part)
    elif line.component == "energy" and price and "months" not in line.factors:
        # At the meter: servers or kWh of requests times their factors, power, hours and PUE; a levelised price in them.
        price *= line.factors.get("levelised", 1.0) * line.factors.get("after_tax", 1.0)
        quantity, unit, price_unit = line.usd_per_year / price, "kWh/year", "USD/kWh"
    elif kind not in ("order", "later") and quantity:
        # A quantity of a year (kWh/year) has a price of its own; what stands all year a price per year.
        yearly = line.unit.endswith("/year")
        price_unit = f"USD/{line.unit.removesuffix('/year')}" if yearly else f"{price_unit}-year"
        price = line.usd_per_year / quantity
    low, high = _line_range(plan, line, kind, price)
    return Item(
        kind,
        group,
        item,
        pool,
        quantity,
        unit,
        price,
        price_unit,
        low,
        high,
        line.capital_usd,
        line.usd_per_year,
        line.source,
        line.as_of,
        line.trust,
    )


def _by_level(group: ServerGroup) -> str:
    """How many servers are to be had at once, where they are paid by the hours that use them; else empty."""
    if not group.servers_by_level:
        return ""
    least = min(group.servers_by_level)
    return counted(group.servers, "server") if least == group.servers else f"{least:,} to {group.servers:,} servers"


def _kind(line: BillLine) -> Kind:
    if "annuity_later" in line.factors:
        return "later"
    if line.capital_usd > 0.0 or "annuity" in line.factors:
        return "order"
    rented = line.component == "rent" or (line.component == "space" and not line.item.startswith("hall"))
    return "rent" if rented else "run"


def _group(line: BillLine, kind: Kind) -> str:
    if line.component == "space":
        if line.item.startswith("hall"):
            return "hall"
        return "racks" if kind == "order" and line.unit == "racks" else "colocation"
    if line.component == "cooling" and kind == "run":
        return "maintenance"
    return "rented servers" if line.component == "rent" else line.component


def _one(unit: str) -> str:
    """One of a unit: servers -> server."""
    return unit.removesuffix("s") if unit in ("servers", "racks", "accelerators", "posts") else unit


def _rows(plan: Plan, table: str) -> dict[str, Mapping[str, Any]]:
    return {one.id: one.row for one in plan.catalog_rows if one.table == table}


def _server_row(plan: Plan, accelerator: str) -> Mapping[str, Any] | None:
    """Purchase price of the catalogue, or of the planner's own row; None where a price without a range overrides it."""
    own = plan.instance.economics.prices.get(accelerator)
    if own is not None and own.server_usd is not None:
        return None
    return _rows(plan, "purchase_prices").get(accelerator)


def _range(row: Mapping[str, Any] | None, level: str, price: float, field: str) -> tuple[float | None, float | None]:
    """The row's low and high, in the proportion in which ``price`` stands to the figure of the row it was made from."""
    if row is None:
        return None, None
    base, low, high = (row.get(field.format(name)) for name in (level, "low", "high"))
    if not base or low is None or high is None:
        return None, None
    return price * float(low) / float(base), price * float(high) / float(base)


def _line_range(plan: Plan, line: BillLine, kind: Kind, price: float) -> tuple[float | None, float | None]:
    """Range of a price, where the catalogue row behind it states one."""
    economics = plan.instance.economics
    if line.component == "network" and kind == "order":
        row = next((one for one in _rows(plan, "fabrics").values() if line.item in (one.get("name"), one["id"])), None)
        return _range(row, economics.price_level, price, "{}_usd_per_accelerator")
    if line.component == "cooling" and kind == "order":
        option = next((one for one in _rows(plan, "cooling") if line.item.startswith(f"{one} ")), "")
        if option in economics.cooling_prices:
            return None, None
        return _range(_rows(plan, "cooling").get(option), "typical", price, "capex_{}_usd_per_kw")
    if line.component == "space" and line.unit == "racks" and economics.rack_usd is None:
        return _range(_rows(plan, "facility").get(_RACK), "typical", price, "{}")
    row = _rows(plan, "facility").get(_COLOCATION)
    if line.component == "space" and kind == "rent" and economics.colocation_usd_per_kw_month is None and row:
        # The rent without the plant it contains: the range moves the rent, not the plant.
        low, typical, high = (float(row[name]) for name in ("low", "typical", "high"))
        each = _MONTHS * line.factors.get("levelised", 1.0) * line.factors.get("after_tax", 1.0)
        return max(0.0, price + each * (low - typical)), max(0.0, price + each * (high - typical))
    return None, None


def bom_csv(found: Materials) -> str:
    """The rows as CSV, and a last row of kind ``total``; money columns sum to the total to the cent."""
    capital = to_cents([one.capital_usd for one in found.items])
    yearly = to_cents([one.usd_per_year for one in found.items])
    rows: list[list[object]] = []
    for one, paid, cost in zip(found.items, capital, yearly, strict=True):
        rows.append([getattr(one, name) for name in HEADER])
        rows[-1][HEADER.index("capital_usd")], rows[-1][HEADER.index("usd_per_year")] = paid, cost
    total: list[object] = [None] * len(HEADER)
    total[0], total[2] = "total", found.name
    total[HEADER.index("capital_usd")] = sum(capital)
    total[HEADER.index("usd_per_year")] = sum(yearly)
    return as_csv(HEADER, [*rows, total])


def bom_json(found: Materials) -> str:
    """The rows and totals as JSON, in full precision."""
    content = {
        "name": found.name,
        "items": [asdict(one) for one in found.items],
        "capital_usd": found.capital_usd,
        "usd_per_year": found.usd_per_year,
        "later_usd_per_year": found.yearly_usd("later"),
        "rent_usd_per_year": found.yearly_usd("rent"),
        "running_usd_per_year": found.yearly_usd("run"),
    }
    return f"{json.dumps(content, indent=1, ensure_ascii=False)}\n"


_HEADS: Final = {"order": "To order", "later": "To order later", "rent": "To rent", "run": "To run", "keep": "To keep"}


def bom_text(found: Materials, width: int = 80, times: float = 1.0, words: str = "per year") -> str:
    """The rows for people: what, how much, at what price, what trust.

    Runs of training are paid once: ``times`` makes what they cost of the annuities of their bill, ``words`` says so.
    """
    lines = []
    column = "a year" if words == "per year" else words
    for kind, head in _HEADS.items():
        chosen = [one for one in found.items if one.kind == kind]
        if not chosen:
            continue
        lines.append(f"  {head:<{width - 42}}{'price':>14}{'total' if kind == 'order' else column:>14}  trust")
        for one in chosen:
            amount = one.capital_usd if kind == "order" else one.usd_per_year * times
            # What runs use in all stands in the place of what they use a year of the annuity.
            used = one.quantity * times if one.unit.endswith("/year") else one.quantity
            unit = one.unit.removesuffix("/year") if times != 1.0 else one.unit
            lines.append(f"    {one.item}"[:width])
            count = (
                counted(round(one.quantity), _one(one.unit))
                if one.unit in ("servers", "racks", "accelerators")
                else f"{significant(used)} {unit}"
            )
            lines.append(
                f"      {one.group}: {count}"[: width - 41].ljust(width - 40)
                + f"{usd(one.unit_price_usd):>14}{usd(amount):>14}  {one.trust}"
            )
    parts = [
        f"{usd(found.capital_usd)} at start",
        f"{usd(found.usd_per_year * times)} {words}: {usd(found.yearly_usd('order') * times)} "
        + ("annuity" if words == "per year" else "of what is bought"),
        *(
            [f"{usd(found.yearly_usd('later') * times)} later orders"]
            if any(one.kind == "later" for one in found.items)
            else []
        ),
        f"{usd(found.yearly_usd('rent') * times)} rent",
        f"{usd(found.yearly_usd('run') * times)} running",
    ]
    return "\n".join([*lines, *wrapped("Total", parts, width)]) + "\n"
