"""Prices of servers that a plan buys or rents, each with its range and the instance that has another one."""

from collections.abc import Callable, Iterator
from typing import Any

from optimizer.catalog.rows import RentalOffer
from optimizer.instance.model import Instance
from optimizer.plan import BillLine, Plan, ServerGroup
from optimizer.studies.movers import Mover, Neighbour, ends_of, lines_of, row_of, with_prices


def servers(instance: Instance, plan: Plan) -> Iterator[Mover]:
    """Price of a server of each type bought, before quantity discounts."""
    for group in {one.accelerator: one for one in plan.servers if one.sourcing == "buy"}.values():
        key = group.accelerator
        own = instance.economics.prices.get(key)
        row = row_of(plan, "purchase_prices", key)
        line = next(lines_of(plan, "servers", group.server_type), None) or next(
            lines_of(plan, "spares", group.server_type), None
        )
        level = instance.economics.price_level
        if own is not None and own.server_usd is not None:
            now, ends = own.server_usd, ends_of(own.server_usd, {}, "{}_usd", level)
        elif row:
            now = float(row[f"{level}_usd"]) * group.accelerators_per_server / float(row["accelerators"])
            ends = ends_of(now, row, "{}_usd", level)
        else:
            continue

        def at(value: float, key: str = key) -> Neighbour:
            return with_prices(instance, key, server_usd=value), None

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


def rents(instance: Instance, plan: Plan) -> Iterator[Mover]:
    """Price of renting each type for each term: what the market asks for that size, not one provider."""
    for group in plan.servers:
        line = next(lines_of(plan, "rent", group.pool), None) if group.sourcing != "buy" else None
        if line is None:
            continue
        name = f"rent of {group.server_type}, {group.sourcing.replace('_', ' ')}"
        low, high, basis = ends_of(line.unit_price_usd, {}, "{}", "typical")
        own = instance.economics.prices.get(group.accelerator)
        field = f"{group.sourcing}_usd_per_hour"
        if own is not None and getattr(own, field) is not None:

            def own_price(value: float, key: str = group.accelerator, field: str = field) -> Neighbour:
                return with_prices(instance, key, **{field: value}), None

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
