"""Money over time: annuities, present worth, internal rate, payback, residual value, replacement, free cash flow.

Pure functions of figures; no instance and no catalogue counts here. A cash flow is a sequence of yearly sums (USD), the
first at the start (year 0), each further one at the end of its year. Rates are fractions a year, money is nominal.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from optimizer.units import MONTHS_PER_YEAR

#: Interval in which an internal rate is looked for, and the width at which the search ends.
_RATE_LOW, _RATE_HIGH, _RATE_WIDTH = -0.99, 10.0, 1e-12

#: Lives and horizons closer to a whole number than this are that number.
_WHOLE: Final = 1e-6

#: Fall of the price of a used accelerator, per year: the only series found (H100 SXM, one vendor, 2026) is close to
#: ``exp(-0.43 t)``. Low confidence: the safe default of a plan is no residual value at all.
RESIDUAL_DECAY_PER_YEAR: Final = 0.43


def capital_recovery_factor(rate: float, years: float) -> float:
    """Yearly payment per unit of capital: ``r / (1 - (1 + r)^-n)``, ``1/n`` at rate 0.

    Source: standard annuity, as in the practitioners' cost models (docs/method.md section 8).
    """
    if rate == 0.0:
        return 1.0 / years
    return rate / -math.expm1(-years * math.log1p(rate))


def discount_factor(rate: float, years: float) -> float:
    """Worth today of one unit paid after ``years``: ``(1 + r)^-n``."""
    return math.exp(-years * math.log1p(rate))


def annuity_factor(rate: float, years: float, residual_fraction: float = 0.0) -> float:
    """Yearly payment per unit of capital whose share ``R`` is left at the end: ``(1 - R (1 + r)^-n) CRF(r, n)``.

    Source: standard annuity less the present worth of the resale; with ``R = 0`` the capital recovery factor.
    """
    return (1.0 - residual_fraction * discount_factor(rate, years)) * capital_recovery_factor(rate, years)


def annuity_usd(capital_usd: float, rate: float, years: float, residual_fraction: float = 0.0) -> float:
    """Yearly cost of capital over its life: ``A = (K - R K (1 + r)^-n) CRF(r, n)``."""
    return capital_usd * annuity_factor(rate, years, residual_fraction)


def monthly_payment_usd(capital_usd: float, annual_rate: float, months: float) -> float:
    """Payment at each month's end of a loan: ``K (r/12) / (1 - (1 + r/12)^-m)``, the annuity with months as periods.

    Source: J. Hamilton, "Overall data center costs" (2010).
    """
    return capital_usd * capital_recovery_factor(annual_rate / MONTHS_PER_YEAR, months)


def straight_line_usd(capital_usd: float, rate: float, years: float, residual_fraction: float = 0.0) -> float:
    """Accounting view: write-off in equal parts and interest on the mean balance: ``K (1-R)/n + r K (1+R)/2``.

    A few percent off the annuity; for comparison with books kept that way.
    """
    return capital_usd * ((1.0 - residual_fraction) / years + rate * (1.0 + residual_fraction) / 2.0)


def present_worth_factor(years: int, growth: float, rate: float, *, grows_in_first_year: bool = True) -> float:
    """Present worth of a yearly cost of 1 that grows: ``y (1 - y^n) / (1 - y)`` with ``y = (1 + g) / (1 + r)``.

    Two conventions are about. With ``grows_in_first_year`` the first payment is already ``1 + g``
    (NREL REopt: ``sum ((1+g)/(1+r))^t``); without, it is 1 and growth starts in year 2: the same over ``1 + g``.
    """
    ratio = (1.0 + growth) / (1.0 + rate)
    # Summed, not in closed form: that loses its digits where growth is close to the rate.
    total = math.fsum(ratio**year for year in range(1, years + 1))
    return total if grows_in_first_year else total / (1.0 + growth)


def levelising_factor(rate: float, years: float, growth: float) -> float:
    """Even yearly cost of equal present value over the first year's, for a cost that grows by ``growth`` a year.

    ``sum (1+g)^(t-1) w_t / sum w_t`` with ``w_t`` the present worth of 1 paid in year t; the last year may be a part.
    Growth starts in year 2: the first year is paid at today's price.
    """
    whole = math.ceil(years - _RATE_WIDTH)
    ends = [1.0 / capital_recovery_factor(rate, min(float(year), years)) for year in range(1, whole + 1)]
    worth = [end - start for start, end in zip([0.0, *ends], ends, strict=False)]
    return math.fsum((1.0 + growth) ** year * one for year, one in enumerate(worth)) / ends[-1]


def generation_factor(rate: float, years: float, life_years: float, change: float) -> float:
    """Even yearly cost over that of the first purchase, where each later one within the horizon is dearer or cheaper.

    Purchase k, after k lives, costs ``(1 + change)^(k n)`` of the first and is paid as an annuity over its own life.
    """
    ends = [min((number + 1) * life_years, years) for number in range(math.ceil(years / life_years - _WHOLE))]
    worth = [1.0 / capital_recovery_factor(rate, end) for end in ends]
    spans = [end - start for start, end in zip([0.0, *worth], worth, strict=False)]
    paid = ((1.0 + change) ** (number * life_years) * span for number, span in enumerate(spans))
    return math.fsum(paid) / worth[-1]


def life_of_annuity(factor: float, rate: float) -> float:
    """Years whose capital recovery factor this is; a whole number of years comes out whole."""
    years = 1.0 / factor if rate == 0.0 else -math.log1p(-rate / factor) / math.log1p(rate)
    whole = float(round(years))
    return whole if whole and abs(years - whole) < _WHOLE else years


def growing(first_usd: float, growth: float, years: int, *, grows_in_first_year: bool = False) -> tuple[float, ...]:
    """Yearly sums from year 1 on: ``first (1 + g)^(t - 1)``, or ``first (1 + g)^t`` where year 1 has grown already."""
    offset = 1 if grows_in_first_year else 0
    return tuple(first_usd * (1.0 + growth) ** (year + offset) for year in range(years))


def present_value(cash_flow: Iterable[float], rate: float) -> float:
    """Worth today of a cash flow: ``sum CF_t (1 + r)^-t`` with t from 0. Of revenue less cost: net present value."""
    return math.fsum(usd * discount_factor(rate, year) for year, usd in enumerate(cash_flow))


def internal_rate_of_return(cash_flow: Sequence[float]) -> float | None:
    """Rate at which the present value is 0, by bisection; None where it has no root between -99 % and 1000 % a year.

    Of a flow that changes sign several times one root is found, the others are not.
    """
    return _root(lambda rate: present_value(cash_flow, rate), _RATE_LOW, _RATE_HIGH)


def payback_year(cash_flow: Iterable[float]) -> int | None:
    """First year after the start at whose end the undiscounted sum of the flow is above 0; None if it never is."""
    total = 0.0
    for year, usd in enumerate(cash_flow):
        total += usd
        if year >= 1 and total > 0.0:
            return year
    return None


def residual_fraction(years: float, decay_per_year: float = RESIDUAL_DECAY_PER_YEAR) -> float:
    """Share of its price that an accelerator fetches after ``years``: ``exp(-decay t)``."""
    return math.exp(-decay_per_year * years)


def later_price_fraction(years: float, gain_oom_per_year: float = 0.14) -> float:
    """Price of the same work bought ``years`` later, over today's: ``10^(-gain t)``.

    Source: Epoch AI, price-performance of machine-learning accelerators, 0.14 orders of magnitude a year (38 %).
    """
    return math.pow(10.0, -gain_oom_per_year * years)


def purchase_years(horizon_years: int, life_years: int, first_year: int = 0) -> tuple[int, ...]:
    """Years in which an asset is bought so that one is in service all through the horizon."""
    return tuple(range(first_year, horizon_years + first_year, life_years))


def life_cycle_cost_usd(
    capital_usd: float,
    rate: float,
    horizon_years: int,
    life_years: int,
    *,
    price_growth: float = 0.0,
    residual: Callable[[float], float] | None = None,
) -> float:
    """Present cost of owning an asset over a horizon: purchase, replacements, less what the last one still fetches.

    ``K sum (1+p)^t (1+r)^-t - salvage (1+r)^-h`` over the years of purchase (NREL REopt form). ``price_growth`` is the
    change of the purchase price a year; ``residual`` maps an age in years to a share of the price paid. Without one
    nothing is fetched, which is the safe case.
    """
    bought = purchase_years(horizon_years, life_years)
    cost = math.fsum(capital_usd * ((1.0 + price_growth) / (1.0 + rate)) ** year for year in bought)
    if residual is None:
        return cost
    last = bought[-1]
    salvage = capital_usd * (1.0 + price_growth) ** last * residual(float(horizon_years - last))
    return cost - salvage * discount_factor(rate, horizon_years)


@dataclass(frozen=True, slots=True)
class Asset:
    """What is paid in one year and written off in equal parts.

    ``in_service_year`` is the first year of use; ``life_years`` None is never written off against tax.
    """

    usd: float
    paid_year: int
    in_service_year: int
    life_years: int | None

    def written_off_usd(self, year: int) -> float:
        """Straight-line write-off of a year."""
        if self.life_years is None or not 0 <= year - self.in_service_year < self.life_years:
            return 0.0
        return self.usd / self.life_years

    def book_usd(self, year: int) -> float:
        """Book value when a year begins: the price less the years written off; 0 before use and after its life."""
        if self.life_years is None or not 0 <= year - self.in_service_year < self.life_years:
            return 0.0
        return self.usd * (1.0 - (year - self.in_service_year) / self.life_years)


def free_cash_flow(
    assets: Sequence[Asset], revenue_usd: Sequence[float], running_usd: Sequence[float], tax_rate: float = 0.0
) -> tuple[float, ...]:
    """Cash flow by year from year 0: ``EBITDA - tax - capital`` with ``tax = max(0, rate (EBITDA - write-off))``.

    ``revenue_usd`` and ``running_usd`` are those of years 1 on. A loss is not carried forward. Source: the 15-year
    discounted cash flow of M. Lokshin (2026), Appendix D; with no revenue and no tax it is the cost of a plan by year.
    """
    flow = []
    for year, (revenue, running) in enumerate(zip((0.0, *revenue_usd), (0.0, *running_usd), strict=True)):
        earned = revenue - running
        tax = max(0.0, tax_rate * (earned - math.fsum(one.written_off_usd(year) for one in assets)))
        paid = math.fsum(one.usd for one in assets if one.paid_year == year)
        flow.append(earned - tax - paid)
    return tuple(flow)


def _root(function: Callable[[float], float], low: float, high: float) -> float | None:
    """Zero of a function by bisection; None where both ends have one sign."""
    at_low, at_high = function(low), function(high)
    if math.copysign(1.0, at_low) == math.copysign(1.0, at_high):
        return None
    while high - low > _RATE_WIDTH:
        middle = (low + high) / 2.0
        if math.copysign(1.0, function(middle)) == math.copysign(1.0, at_low):
            low = middle
        else:
            high = middle
    return (low + high) / 2.0
