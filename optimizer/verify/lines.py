"""A line of the bill as the checker would write it, and what time makes of a price (docs/method.md section 8)."""

import math
from dataclasses import dataclass

from optimizer.verify.facts import Quote


@dataclass(frozen=True, slots=True)
class Line:
    """A line as the checker would write it. ``subject`` is a word that the plan's item must contain.

    ``price.sources`` hold what the plan may name as source, date and trust; an empty source leaves the text free.
    ``price_code`` is the code of a wrong price: another one where the price depends on the size that is reached.
    ``pool`` is set where the line is about one pool of a server type.
    """

    component: str
    subject: str
    quantity: float
    unit: str
    price: Quote
    factors: tuple[float, ...]
    is_capital: bool = False
    price_code: str = "V-PRICE"
    pool: str = ""

    @property
    def usd_per_year(self) -> float:
        """Quantity x price x factors."""
        return self.quantity * self.price.usd * math.prod(self.factors)

    @property
    def capital_usd(self) -> float:
        """Paid at the start."""
        return self.quantity * self.price.usd if self.is_capital else 0.0


def recovery_factor(rate: float, years: float) -> float:
    """Yearly payment for one dollar of capital over its life."""
    return 1.0 / years if rate == 0.0 else rate / (1.0 - (1.0 + rate) ** -years)


def escalated(rate: float, years: float, rise: float) -> tuple[float, ...]:
    """Factor of a yearly payment that rises from the second year on; none where it does not.

    The even payment of the same present value: each year's payment at what it has risen to by then.
    """
    if rise == 0.0:
        return ()
    until, worth, paid = 0.0, 0.0, 1.0
    total = 0.0
    while until < years - 1e-9:
        until = min(until + 1.0, years)
        so_far = 1.0 / recovery_factor(rate, until)
        total += paid * (so_far - worth)
        worth, paid = so_far, paid * (1.0 + rise)
    return (total / worth,)
