"""Rental offers as choices: every provider, region, size and term that may be rented, with its price."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from optimizer.catalog import Catalog
from optimizer.catalog.rows import Accelerator, RentalOffer, Term
from optimizer.instance.model import Instance
from optimizer.pool import RENTAL_TERMS, Pool, Price, ServerType, Sourcing

#: A stated rent below this share of the cheapest packaged offer is told (see ``doubtful_prices``).
_PLACEHOLDER = 0.2


@dataclass(frozen=True, slots=True)
class Offered:
    """A size and term that one provider offers in one region; both empty where the planner states the price."""

    accelerators: int
    term: Sourcing
    provider: str
    region: str
    price: Price


def rental_offers(instance: Instance, catalog: Catalog) -> dict[str, tuple[Offered, ...]]:
    """Offers that may be used, by accelerator, by size, term and price.

    The cheapest of a provider in a region stands for its size and term. A price that the planner states for a term
    takes the place of every offer of that accelerator and term, in every size that is offered. Where the planner has
    own rows for a size and term, only those compete. A term without a price is made from the price on demand where
    ``economics.rent_fallbacks`` says how, else it is not offered.
    """
    offers = list(_allowed(instance, catalog))
    own = {
        (offer.accelerator, offer.accelerators, term)
        for offer in offers
        for term in RENTAL_TERMS
        if offer.trust == "user" and _price(instance, offer, term) is not None
    }
    term: Sourcing
    best: dict[tuple[str, int, Sourcing, str, str], tuple[float, str, Price]] = {}
    sizes: dict[str, set[int]] = {}
    for offer in offers:
        row = catalog.accelerators.get(offer.accelerator)
        for size in () if row is None else _rented_units(row, offer.accelerators):
            sizes.setdefault(offer.accelerator, set()).add(size)
            for term in RENTAL_TERMS:
                price = _price(instance, offer, term)
                hidden = offer.trust != "user" and (offer.accelerator, offer.accelerators, term) in own
                if price is None or hidden:
                    continue
                key = (offer.accelerator, size, term, offer.provider, offer.region)
                rank = (price.usd, offer.id, price)
                if key not in best or rank[:2] < best[key][:2]:
                    best[key] = rank
    found: dict[str, list[Offered]] = {}
    for (accelerator, size, term, provider, region), (_, _, price) in best.items():
        found.setdefault(accelerator, []).append(Offered(size, term, provider, region, price))
    for accelerator, stated in instance.economics.prices.items():
        for term in RENTAL_TERMS:
            usd = getattr(stated, f"{term}_usd_per_hour")
            if usd is None:
                continue
            row = catalog.accelerators[accelerator]
            kept = [one for one in found.get(accelerator, ()) if one.term != term]
            price = Price(usd, "stated by the user", "", "user")
            kept += [
                Offered(size, term, "", "", price)
                for size in {row.accelerators_per_server, *sizes.get(accelerator, ())}
            ]
            found[accelerator] = kept
    order: dict[Sourcing, int] = {term: number for number, term in enumerate(RENTAL_TERMS)}
    return {
        accelerator: tuple(
            sorted(several, key=lambda o: (o.accelerators, order[o.term], o.price.usd, o.provider, o.region))
        )
        for accelerator, several in found.items()
    }


def doubtful_prices(instance: Instance, catalog: Catalog) -> tuple[str, ...]:
    """What does not look like a price in rents that the planner states: placeholders, terms in the wrong order.

    A rent below a fifth of the cheapest packaged offer of that accelerator and term, history included, is told: the
    cheapest packaged offer of an accelerator is itself at least a fifth of their median (a third, but for two). So is a
    commitment or spot price above the same statement's price on demand. A rent of 0 means sunk and is not told.
    """
    stated: list[tuple[str, str, dict[Term, float | None]]] = [
        (f"economics.prices.{key}", key, {term: getattr(one, f"{term}_usd_per_hour") for term in RENTAL_TERMS})
        for key, one in instance.economics.prices.items()
    ]
    stated += [
        (f"{row.provider} {row.instance}".strip(), row.accelerator, _prices(row))
        for row in catalog.rental_offers.values()
        if row.trust == "user"
    ]
    lowest: dict[tuple[str, Term], float] = {}
    for row in catalog.rental_offers.values() if stated else ():
        for term, usd in _prices(row).items():
            if usd is not None and row.trust != "user":
                lowest[row.accelerator, term] = min(usd, lowest.get((row.accelerator, term), usd))
    told = []
    for where, key, prices in stated:
        on_demand = prices["on_demand"]
        for term in RENTAL_TERMS:
            usd = prices[term]
            if not usd:
                continue
            name = term.replace("_", " ")
            cheapest = lowest.get((key, term))
            if cheapest is not None and usd < _PLACEHOLDER * cheapest:
                told.append(
                    f"{where}: {usd:g} USD per hour {name} is {cheapest / usd:.3g} times below the cheapest "
                    "packaged offer: a placeholder, or a price of another unit?"
                )
            if on_demand and usd > on_demand:
                told.append(f"{where}: {usd:g} USD per hour {name} is above {on_demand:g} on demand: terms mixed up?")
    return tuple(told)


def _prices(row: RentalOffer) -> dict[Term, float | None]:
    """Prices of an offer by term."""
    return {term: row.price_usd_per_accelerator_hour(term) for term in RENTAL_TERMS}


def provider_limits(instance: Instance, catalog: Catalog) -> dict[tuple[str, str], int]:
    """Most accelerators that a provider rents out, by provider (case folded) and accelerator id."""
    return {
        (provider.casefold(), catalog.resolve_accelerator(name)): most
        for provider, counts in instance.choices.provider_supply.items()
        for name, most in counts.items()
    }


def _allowed(instance: Instance, catalog: Catalog) -> Iterator[RentalOffer]:
    """Offers of the allowed classes, providers and regions that can be booked."""
    choices, classes = instance.choices, instance.economics.price_classes
    providers = None if choices.providers is None else {one.casefold() for one in choices.providers}
    regions = None if choices.regions is None else {one.casefold() for one in choices.regions}
    for offer in catalog.rental_offers.values():
        if (
            offer.is_bookable
            and offer.price_class in classes
            and (providers is None or offer.provider.casefold() in providers)
            and (regions is None or offer.region.casefold() in regions)
        ):
            yield offer


def _price(instance: Instance, offer: RentalOffer, term: Sourcing) -> Price | None:
    """Price of a term: the offer's own, or the stated share of its price on demand."""
    name = f"{offer.provider} {offer.instance}: {offer.source}"
    usd: float | None = getattr(offer, f"{term}_usd_per_accelerator_hour")
    if usd is not None:
        return Price(float(usd), name, offer.as_of, offer.trust)
    share: float | None = getattr(instance.economics.rent_fallbacks, f"{term}_fraction", None)
    base = offer.on_demand_usd_per_accelerator_hour
    if share is None or base is None:
        return None
    return Price(share * float(base), f"{share:g} of the price on demand, {name}", offer.as_of, "assumed")


def _rented_units(row: Accelerator, count: int) -> tuple[int, ...]:
    """Accelerators of the server types that a rented instance of ``count`` belongs to.

    A tray of a rack-scale system is a type of its own, for replicas that stay within it; replicas may span the trays of
    a rack as well, so trays are rented by the rack, too.
    """
    if row.accelerators_per_server > row.accelerators_per_host and count == row.accelerators_per_host:
        return row.accelerators_per_server, count
    return (count,) if count <= row.accelerators_per_server else ()


def rented_pools(
    instance: Instance,
    server_type: ServerType,
    offers: tuple[Offered, ...],
    limits: Mapping[tuple[str, str], int],
) -> Iterator[Pool]:
    """Pools of a server type that may be rented, the cheapest of each term first.

    Of a term only the offers up to the first whose provider has no limit of supply are choices: nothing else tells a
    dearer one from it (docs/method.md section 2).
    """
    choices = instance.choices
    done: set[Sourcing] = set()
    for offer in offers:
        if offer.accelerators != server_type.accelerators or offer.term not in choices.sourcing or offer.term in done:
            continue
        availability = choices.spot_availability_fraction if offer.term == "spot" else 1.0
        if availability is None:
            continue
        if (offer.provider.casefold(), server_type.accelerator.id) not in limits:
            done.add(offer.term)
        place = "/".join(part for part in (offer.term, offer.provider, offer.region) if part)
        yield Pool(
            id=f"{server_type.id}/{place}",
            server_type=server_type,
            sourcing=offer.term,
            cooling=None,
            per_rack=0,
            fan_factor=1.0,
            network_kw=0.0,
            server_kw=0.0,
            pue_mean=1.0,
            pue_design=1.0,
            provider=offer.provider,
            region=offer.region,
            rent=offer.price,
            availability=availability,
        )
