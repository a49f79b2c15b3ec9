"""One term of the objective, which is one line of the bill.

A component of cost is a list of terms; the program sums ``usd_per_year x quantity`` over all of them, and the bill
evaluates the same terms at the plan's rounded quantities. So objective and bill cannot drift apart.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from optimizer.catalog.rows import Trust
from optimizer.costs.finance import capital_recovery_factor as capital_recovery_factor

#: Key of a quantity of the program: its family, then its index, e.g. ``("PlantKw", "dynamic")``.
QuantityKey = tuple[str, ...]
#: What a price is multiplied with, by name.
Factors = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Term:
    """``quantity x unit_price_usd x factors`` = USD per year.

    Attributes
    ----------
    component: name of the cost component.
    item: what it is, for the bill.
    quantity: key of the program's quantity that it is multiplied with.
    unit: unit of the quantity.
    unit_price_usd: price of one unit, before factors.
    factors: what the price is multiplied with, by name (annuity, hours, PUE ...).
    capital_usd: paid at the start for one unit; 0 for running cost.
    source, as_of, trust: where the price comes from.
    usd_per_year: yearly cost of one unit of the quantity.
    """

    component: str
    item: str
    quantity: QuantityKey
    unit: str
    unit_price_usd: float
    factors: Factors
    capital_usd: float
    source: str
    as_of: str
    trust: Trust

    usd_per_year: float = field(init=False)

    def __post_init__(self) -> None:
        yearly = self.unit_price_usd * math.prod(value for _, value in self.factors)
        object.__setattr__(self, "usd_per_year", yearly)


def capital(
    component: str,
    item: str,
    quantity: QuantityKey,
    unit: str,
    usd: float,
    annuity: tuple[str, float],
    provenance: tuple[str, str, Trust],
) -> Term:
    """A term for what is bought once and paid as an annuity."""
    return Term(component, item, quantity, unit, usd, (annuity,), usd, *provenance)


def total_usd_per_year(terms: Sequence[Term], quantities: dict[QuantityKey, float]) -> float:
    """Sum of the terms at the given quantities."""
    return sum(term.usd_per_year * quantities.get(term.quantity, 0.0) for term in terms)
