"""Insurance: a share of the mean book value of servers and network, and of the price of hall and cooling."""

from collections.abc import Callable, Iterator

from optimizer.catalog.rows import Trust
from optimizer.costs import cooling, network, servers, space
from optimizer.costs.figures import insured_fraction, mean_book_fraction
from optimizer.costs.term import Term
from optimizer.setting import Setting

COMPONENT = "insurance"


def terms(setting: Setting) -> list[Term]:
    """A share of everything bought that can burn; racks are part of the hall's equipment and small."""
    share = insured_fraction(setting)
    return [] if share.usd == 0.0 else list(_terms(setting, share.usd, share.trust == "user"))


def _terms(setting: Setting, share: float, stated: bool) -> Iterator[Term]:
    economics = setting.instance.economics
    bought: tuple[tuple[Callable[[Setting], list[Term]], float], ...] = (
        (servers.terms, mean_book_fraction(economics.server_life_years)),
        (network.terms, mean_book_fraction(economics.network_life_years)),
        (cooling.terms, 1.0),
        (space.terms, 1.0),
    )
    for terms_of, book in bought:
        for one in terms_of(setting):
            if one.capital_usd == 0.0 or (one.component == "space" and one.quantity[0] == "Racks"):
                continue
            factors = (("insurance_fraction", share), *((("mean_book_value", book),) if book != 1.0 else ()))
            trust: Trust = one.trust if stated else "assumed"
            yield Term(
                COMPONENT, one.item, one.quantity, one.unit, one.capital_usd, factors, 0.0, one.source, one.as_of, trust
            )
