"""The bill of a plan: the cost terms at the plan's quantities, with spares split off the servers."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence

from optimizer.catalog.rows import as_of_end
from optimizer.costs.term import QuantityKey, Term
from optimizer.plan import BillLine

SERVERS, SPARES = "servers", "spares"


def bill_lines(
    terms: Sequence[Term], quantities: Mapping[QuantityKey, float], spare_share: Mapping[str, float]
) -> tuple[BillLine, ...]:
    """Lines with a quantity, in the order of the terms.

    ``spare_share`` maps a server type, and a pool, to the share of its servers that are spares: that share of a
    server price is the component ``spares``, at the same unit price, so at the average price paid.
    """
    lines = []
    for term in terms:
        quantity = quantities.get(term.quantity, 0.0)
        if quantity == 0.0 or term.usd_per_year == 0.0:
            continue
        share = spare_share.get(term.quantity[1], 0.0) if term.component == SERVERS else 0.0
        if share < 1.0:
            lines.append(_line(term, term.component, quantity * (1.0 - share)))
        if share > 0.0:
            lines.append(_line(term, SPARES, quantity * share))
    return tuple(lines)


def _line(term: Term, component: str, quantity: float) -> BillLine:
    return BillLine(
        component=component,
        item=term.item,
        quantity=quantity,
        unit=term.unit,
        unit_price_usd=term.unit_price_usd,
        factors=dict(term.factors),
        usd_per_year=quantity * term.usd_per_year,
        capital_usd=quantity * term.capital_usd,
        source=term.source,
        as_of=term.as_of,
        trust=term.trust,
    )


def by_component(lines: Iterable[BillLine], components: Sequence[str]) -> dict[str, float]:
    """USD per year of each component that has a line, in the order of ``components``."""
    totals = dict.fromkeys(components, 0.0)
    for line in lines:
        totals[line.component] += line.usd_per_year
    return {name: usd for name, usd in totals.items() if usd != 0.0}


def assumed_fraction(lines: Iterable[BillLine]) -> float:
    """Share of yearly cost on lines whose price is assumed."""
    lines = tuple(lines)
    total = sum(line.usd_per_year for line in lines)
    assumed = sum(line.usd_per_year for line in lines if line.trust == "assumed")
    return assumed / total if total else 0.0


def oldest_price(lines: Iterable[BillLine]) -> str:
    """Oldest date among the lines, as it is written there; a coarse date counts as the end of its period."""
    dated = [(as_of_end(line.as_of), line.as_of) for line in lines if line.as_of]
    known = [(day, text) for day, text in dated if day is not None]
    return min(known, default=(dt.date.max, ""))[1]
