"""What time and tax make of a price: factors of terms, so that every yearly cost is an even one over the horizon.

    running    first year x F(g) x (1 - t)
    capital    K CRF(r, n) x (1 - t a(n)/n - R (1 - t) (1 + r)^-n) x G(p)

``F`` levelises a rise of g a year, ``t`` is the tax, ``a(n) = 1 / CRF(r, n)`` the present worth of a straight-line
write-off of 1 a year, ``R`` the share of the price that is left at the end of a life, ``G`` levelises that servers
bought again within the horizon cost ``(1 + p)`` a year more (1 where none are).
"""

from dataclasses import replace

from optimizer.costs.finance import (
    discount_factor,
    generation_factor,
    levelising_factor,
    life_of_annuity,
)
from optimizer.costs.term import Factors, Term
from optimizer.instance.economics import Economics

#: Component whose assets are sold at the end of their life, and bought again at a price of its own.
_SERVERS = "servers"


def running(economics: Economics, growth: float) -> Factors:
    """Factors of a cost that is paid every year and rises by ``growth`` a year from the second year on."""
    if growth == 0.0:
        return ()
    return (("levelised", levelising_factor(economics.discount_rate, economics.horizon_years, growth)),)


def timed(term: Term, economics: Economics) -> Term:
    """The term with what tax, a residual value and a change of replacement prices make of it."""
    extra = _of_capital(term, economics) if term.capital_usd > 0.0 else _of_running(economics)
    return replace(term, factors=(*term.factors, *extra)) if extra else term


def _of_running(economics: Economics) -> Factors:
    return (("after_tax", 1.0 - economics.tax_fraction),) if economics.tax_fraction else ()


def _of_capital(term: Term, economics: Economics) -> Factors:
    rate, tax = economics.discount_rate, economics.tax_fraction
    servers = term.component == _SERVERS
    residual = economics.server_residual_fraction if servers else 0.0
    annuity = dict(term.factors)["annuity"]
    life = life_of_annuity(annuity, rate)
    factors: Factors = ()
    if tax or residual:
        kept = 1.0 - tax / (annuity * life) - residual * (1.0 - tax) * discount_factor(rate, life)
        factors = (("tax_and_residual", kept),)
    change = economics.server_price_change_fraction if servers else 0.0
    if change and life < economics.horizon_years:
        factors += (("replacement", generation_factor(rate, economics.horizon_years, life, change)),)
    return factors
