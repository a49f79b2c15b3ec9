"""Which assumption moves the answer most: each price of the plan is moved through its range and solved again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from optimizer.catalog import Catalog, load_catalog
from optimizer.catalog.rows import RentalOffer
from optimizer.instance.economics import AcceleratorPrices, CoolingPrices
from optimizer.instance.model import Instance
from optimizer.plan import BillLine, Plan, ServerGroup
from optimizer.studies.best import best_plan, prepared, summary

#: How far a price is moved where the catalogue states no range.
SPREAD: Final = 0.25

#: What the GPU-hours of a recovery step are in proportion to.
_GPU_HOURS: Final = (
    "calibration_gpu_hours_per_billion",
    "calibration_moe_gpu_hours_per_billion",
    "verification_gpu_hours_per_billion",
    "verification_conservative_gpu_hours_per_billion",
    "flop_per_parameter_token",
)

Basis = Literal["catalogue range", "+-25 %"]
#: A neighbour of the instance, and the catalogue it stands on (None: the packaged one).
Neighbour = tuple[Instance, Catalog | None]


@dataclass(frozen=True, slots=True, eq=False)
class Mover:
    """A figure of the plan that can be moved: its range, and the instance with another value in its place."""

    name: str
    field: str
    unit: str
    now: float
    low: float
    high: float
    basis: Basis
    trust: str
    as_of: str
    at: Callable[[float], Neighbour]


@dataclass(frozen=True, slots=True)
class End:
    """The best plan at one end of a range; no cost where nothing fits."""

    value: float
    usd_per_year: float | None
    change_usd_per_year: float | None
    summary: str
    is_same_choice: bool


@dataclass(frozen=True, slots=True)
class Assumption:
    """A figure, its range, and what the best plan costs at both ends."""

    name: str
    field: str
    unit: str
    now: float
    basis: Basis
    trust: str
    as_of: str
    low: End
    high: End

    @property
    def change_usd_per_year(self) -> float:
        """The larger of both changes of the total."""
        return max(abs(one.change_usd_per_year or 0.0) for one in (self.low, self.high))

    @property
    def is_decisive(self) -> bool:
        """Whether another choice is best at one end."""
        return not (self.low.is_same_choice and self.high.is_same_choice)


@dataclass(frozen=True, slots=True)
class Leading:
    """The plan's cost and the assumptions that move it, the strongest first."""

    name: str
    usd_per_year: float
    summary: str
    assumptions: tuple[Assumption, ...]
    moved: int


def leading_assumptions(
    instance: Instance,
    count: int = 5,
    instance_path: Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> Leading | None:
    """The ``count`` figures whose range moves the total most, each from solving again at both ends.

    None where nothing fits the instance. ``progress`` is told the name of each figure before it is moved.
    """
    instance = prepared(instance, instance_path)
    plan = best_plan(instance)
    if plan is None:
        return None
    found = []
    moved = movers(instance, plan)
    for mover in moved:
        if progress is not None:
            progress(mover.name)
        low, high = (_end(mover, value, plan) for value in (mover.low, mover.high))
        found.append(
            Assumption(mover.name, mover.field, mover.unit, mover.now, mover.basis, mover.trust, mover.as_of, low, high)
        )
    found.sort(key=lambda one: (-one.change_usd_per_year, one.name))
    return Leading(plan.name, plan.bill.usd_per_year, summary(plan), tuple(found[:count]), len(moved))


def _end(mover: Mover, value: float, plan: Plan) -> End:
    if value == mover.now:
        return End(value, plan.bill.usd_per_year, 0.0, summary(plan), True)
    there = best_plan(*mover.at(value))
    if there is None:
        return End(value, None, None, "nothing fits", False)
    cost = there.bill.usd_per_year
    # Layouts of equal cost come and go; what is bought, rented and prepared is the choice.
    return End(value, cost, cost - plan.bill.usd_per_year, summary(there), summary(there) == summary(plan))


def movers(instance: Instance, plan: Plan) -> tuple[Mover, ...]:
    """Every price that the plan pays, and the maintenance shares, by name."""
    found = [*_servers(instance, plan), *_rents(instance, plan), *_cooling(instance, plan)]
    found += [*_network(instance, plan), *_recovery(instance, plan), *_site(instance, plan), *_shares(instance, plan)]
    return tuple(one for one in found if one.now > 0.0)


def _row(plan: Plan, table: str, key: str) -> dict[str, Any]:
    return next((one.row for one in plan.catalog_rows if one.table == table and one.id == key), {})


def _ends(now: float, row: dict[str, Any], form: str, base: str) -> tuple[float, float, Basis]:
    """Low and high of a row in proportion to the figure used, or the spread where the row states none."""
    figures = [row.get(form.format(name)) for name in ("low", base, "high")]
    if any(figure is None for figure in figures) or not figures[1]:
        return now * (1.0 - SPREAD), now * (1.0 + SPREAD), "+-25 %"
    low, middle, high = (float(figure) for figure in figures if figure is not None)
    return now * low / middle, now * high / middle, "catalogue range"


def _economics(instance: Instance, **changes: object) -> Instance:
    return instance.model_copy(update={"economics": instance.economics.model_copy(update=changes)})


def _prices(instance: Instance, accelerator: str, **changes: float) -> Instance:
    """The instance with a price of its own for an accelerator; discounts and other prices stay."""
    prices = dict(instance.economics.prices)
    prices[accelerator] = prices.get(accelerator, AcceleratorPrices()).model_copy(update=changes)
    return _economics(instance, prices=prices)


def _lines(plan: Plan, component: str, item: str) -> Iterator[BillLine]:
    return (one for one in plan.bill.lines if one.component == component and one.item.startswith(item))


def _servers(instance: Instance, plan: Plan) -> Iterator[Mover]:
    """Price of a server of each type bought, before quantity discounts."""
    for group in {one.accelerator: one for one in plan.servers if one.sourcing == "buy"}.values():
        key = group.accelerator
        own = instance.economics.prices.get(key)
        row = _row(plan, "purchase_prices", key)
        line = next(_lines(plan, "servers", group.server_type), None) or next(
            _lines(plan, "spares", group.server_type), None
        )
        level = instance.economics.price_level
        if own is not None and own.server_usd is not None:
            now, ends = own.server_usd, _ends(own.server_usd, {}, "{}_usd", level)
        elif row:
            now = float(row[f"{level}_usd"]) * group.accelerators_per_server / float(row["accelerators"])
            ends = _ends(now, row, "{}_usd", level)
        else:
            continue

        def at(value: float, key: str = key) -> Neighbour:
            return _prices(instance, key, server_usd=value), None

        yield Mover(
            f"price of a server of {group.server_type}",
            f"economics.prices.{key}.server_usd",
            "USD/server",
            now,
            *ends,
            line.trust if line else "assumed",
            line.as_of if line else "",
            at,
        )


def _rents(instance: Instance, plan: Plan) -> Iterator[Mover]:
    """Price of renting each type for each term: what the market asks for that size, not one provider."""
    for group in plan.servers:
        line = next(_lines(plan, "rent", group.pool), None) if group.sourcing != "buy" else None
        if line is None:
            continue
        name = f"rent of {group.server_type}, {group.sourcing.replace('_', ' ')}"
        low, high, basis = _ends(line.unit_price_usd, {}, "{}", "typical")
        own = instance.economics.prices.get(group.accelerator)
        field = f"{group.sourcing}_usd_per_hour"
        if own is not None and getattr(own, field) is not None:

            def own_price(value: float, key: str = group.accelerator, field: str = field) -> Neighbour:
                return _prices(instance, key, **{field: value}), None

            at: Callable[[float], Neighbour] = own_price
            path = f"economics.prices.{group.accelerator}.{field}"
        else:
            offer = _billed_offer(plan, group, line)
            if offer is None:
                continue

            def own_offer(value: float, offer: dict[str, Any] = offer, term: str = group.sourcing) -> Neighbour:
                return _with_offer(instance, offer, term, value), None

            at, path = own_offer, f"catalog.rental_offers.{offer['id']}"
        yield Mover(
            name, path, "USD/accelerator-hour", line.unit_price_usd, low, high, basis, line.trust, line.as_of, at
        )


def _billed_offer(plan: Plan, group: ServerGroup, line: BillLine) -> dict[str, Any] | None:
    """The offer whose price the line states."""
    price = f"{group.sourcing}_usd_per_accelerator_hour"
    for one in plan.catalog_rows:
        row = one.row
        if (
            one.table == "rental_offers"
            and row["accelerator"] == group.accelerator
            and row.get(price) == line.unit_price_usd
            and line.source == f"{row['provider']} {row['instance']}: {row['source']}"
        ):
            return dict(row)
    return None


def _with_offer(instance: Instance, offer: dict[str, Any], term: str, usd: float) -> Instance:
    """The instance with one offer of its own for a size and term: own offers come before those of the catalogue."""
    own = RentalOffer.model_validate(
        {
            "id": f"moved/{offer['id']}",
            "provider": "moved",
            "accelerator": offer["accelerator"],
            "accelerators": offer["accelerators"],
            "price_class": offer["price_class"],
            f"{term}_usd_per_accelerator_hour": usd,
        }
    )
    # An own offer for the same size and term would be cheaper or dearer than the moved one and hide it.
    price = f"{term}_usd_per_accelerator_hour"
    rows = instance.own_rows()
    kept = []
    for row in rows.rental_offers:
        if (row.accelerator, row.accelerators) == (own.accelerator, own.accelerators) and getattr(row, price):
            terms = [name for name in type(row).model_fields if name.endswith("_usd_per_accelerator_hour")]
            if not any(getattr(row, name) for name in terms if name != price):
                continue
            row = row.model_copy(update={price: None})
        kept.append(row)
    catalog = rows.model_copy(update={"rental_offers": (*kept, own)})
    return instance.model_copy(update={"catalog": catalog})


def _cooling(instance: Instance, plan: Plan) -> Iterator[Mover]:
    """Capital of each cooling plant, fixed and marginal part together."""
    for plant in plan.plants:
        key = plant.option
        row = _row(plan, "cooling", key)
        own = instance.economics.cooling_prices.get(key, CoolingPrices())
        fixed = row.get("capex_fixed_usd", 0.0) if own.fixed_usd is None else own.fixed_usd
        per_kw = own.marginal_usd_per_kw
        marginal = row.get("capex_marginal_usd_per_kw", 0.0) if per_kw is None else per_kw
        line = next(_lines(plan, "cooling", key), None)
        if line is None:
            continue
        capital = fixed + marginal * plant.heat_kw
        is_own = own.fixed_usd is not None or own.marginal_usd_per_kw is not None
        ends = _ends(capital, {} if is_own else row, "capex_{}_usd_per_kw", "typical")

        def at(
            value: float,
            key: str = key,
            own: CoolingPrices = own,
            parts: tuple[float, float, float] = (fixed, marginal, capital),
        ) -> Neighbour:
            share = value / parts[2]
            moved = own.model_copy(update={"fixed_usd": parts[0] * share, "marginal_usd_per_kw": parts[1] * share})
            prices = {**instance.economics.cooling_prices, key: moved}
            return _economics(instance, cooling_prices=prices), None

        yield Mover(
            f"capital of the {key} plant",
            f"economics.cooling_prices.{key}",
            "USD",
            capital,
            *ends,
            line.trust,
            line.as_of,
            at,
        )


def _network(instance: Instance, plan: Plan) -> Iterator[Mover]:
    """Price of each fabric per accelerator: a row of the catalogue, which an instance cannot state itself."""
    level = instance.economics.price_level
    packaged = load_catalog()
    for tier in plan.network:
        if tier.fabric not in packaged.fabrics:
            continue
        fabric = packaged.fabrics[tier.fabric]
        row = fabric.model_dump()
        now = float(row[f"{level}_usd_per_accelerator"])

        def at(value: float, fabric: Any = fabric) -> Neighbour:
            names = [f"{name}_usd_per_accelerator" for name in ("low", "typical", "high")]
            moved = fabric.model_copy(update=dict.fromkeys(names, value))
            return instance, packaged.with_rows(fabrics=[moved])

        yield Mover(
            f"network, {fabric.name or fabric.id}",
            f"fabrics.{fabric.id}",
            "USD/accelerator",
            now,
            *_ends(now, row, "{}_usd_per_accelerator", level),
            fabric.trust,
            fabric.as_of,
            at,
        )


def _recovery(instance: Instance, plan: Plan) -> Iterator[Mover]:
    """Preparation of quantized weights: the published GPU-hours, which an instance cannot state itself."""
    lines = [line for line in plan.bill.lines if line.component == "recovery"]
    now = sum(line.capital_usd for line in lines)
    if now == 0.0:
        return
    packaged = load_catalog()

    def at(value: float) -> Neighbour:
        share = value / now
        moved = [
            step.model_copy(update={name: getattr(step, name) * share for name in _GPU_HOURS})
            for step in packaged.recovery_steps.values()
        ]
        return instance, packaged.with_rows(recovery_steps=moved)

    low, high, basis = _ends(now, {}, "{}", "typical")
    name = "preparation of quantized weights"
    yield Mover(name, "recovery_steps", "USD", now, low, high, basis, lines[0].trust, lines[0].as_of, at)


def _site(instance: Instance, plan: Plan) -> Iterator[Mover]:
    """Electricity, colocation, racks, and the premium of servers built for liquid."""
    energy = next(_lines(plan, "energy", ""), None)
    if energy is not None:

        def electricity(value: float) -> Neighbour:
            site = instance.site.model_copy(update={"electricity_usd_per_kwh": value})
            return instance.model_copy(update={"site": site}), None

        now = energy.unit_price_usd
        yield Mover(
            "electricity",
            "site.electricity_usd_per_kwh",
            "USD/kWh",
            now,
            *_ends(now, {}, "{}", "typical"),
            energy.trust,
            energy.as_of,
            electricity,
        )
    facility = (
        ("colocation rent", "colocation_usd_per_kw_month", "USD/kW-month", "colo_wholesale_1mw_plus", "colocation"),
        ("rack hardware", "rack_usd", "USD/rack", "rack_hardware", "racks"),
    )
    for name, field, unit, figure, item in facility:
        line = next(_lines(plan, "space", item), None)
        own = getattr(instance.economics, field)
        row = _row(plan, "facility", figure)
        if line is not None and (own is not None or row):
            yield _field(instance, name, field, unit, float(row["typical"]) if own is None else own, line, row, own)
    premium = next((one for one in plan.bill.lines if one.item.endswith("built for liquid")), None)
    if premium is not None:
        now = instance.economics.liquid_ready_usd_per_kw
        name = "premium of servers for liquid"
        yield _field(instance, name, "liquid_ready_usd_per_kw", "USD/kW", now, premium, {}, now)


def _shares(instance: Instance, plan: Plan) -> Iterator[Mover]:
    """Maintenance per year as a share of price."""
    line = next(_lines(plan, "maintenance", ""), None)
    if line is not None:
        for name, field in (
            ("maintenance of servers", "server_maintenance_fraction"),
            ("maintenance of the network", "network_maintenance_fraction"),
        ):
            now = getattr(instance.economics, field)
            yield _field(instance, name, field, "1/year", now, line, {}, now)


def _field(
    instance: Instance,
    name: str,
    field: str,
    unit: str,
    now: float,
    line: BillLine,
    row: dict[str, Any],
    own: float | None,
) -> Mover:
    """A field of ``economics``; its range is the row's unless the planner states the figure."""

    def at(value: float) -> Neighbour:
        return _economics(instance, **{field: value}), None

    ends = _ends(now, row if own is None else {}, "{}", "typical")
    return Mover(name, f"economics.{field}", unit, now, *ends, line.trust, line.as_of, at)
