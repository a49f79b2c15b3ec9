"""One line of the bill over the years: what is paid when, and what is left at the end of the horizon.

A line's factors say what time made of its price (docs/method.md section 8); here the even yearly cost is taken apart
again into the payments that it stands for.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from optimizer.plan import BillLine, Plan

#: Lives and moments closer than this to a whole are that whole.
WHOLE: Final = 1e-6
#: A life beyond this is paid once and lasts.
_FOREVER_YEARS: Final = 1e3
_SERVERS: Final = frozenset({"servers", "spares"})


@dataclass(frozen=True, slots=True)
class Payment:
    """Cash (USD) in a year, year 0 being the start, and what it is worth at the start."""

    year: int
    usd: float
    worth_usd: float


def present_value_of_one(rate: float, years: float) -> float:
    """Present value of 1 USD a year for ``years``, ``1 / CRF``: ``(1 - (1 + r)^-n) / r``, ``n`` at rate 0."""
    return years if rate == 0.0 else -math.expm1(-years * math.log1p(rate)) / rate


def life_years(line: BillLine, rate: float) -> float:
    """Life that the line's annuity stands for: the ``n`` whose CRF is its annuity, yearly cost over capital."""
    plain = not {"tax_and_residual", "replacement"} & set(line.factors)
    share = line.usd_per_year / line.capital_usd if plain else line.factors["annuity"]
    if share <= rate:
        return math.inf
    years = 1.0 / share if rate == 0.0 else -math.log1p(-rate / share) / math.log1p(rate)
    nearest = round(years)
    return float(nearest) if nearest and abs(years - nearest) < WHOLE else years


def purchases(life: float, horizon: float) -> tuple[float, ...]:
    """Moments, in years from the start, at which an asset is bought so that one stands until the horizon ends."""
    if life > _FOREVER_YEARS:
        return (0.0,)
    return tuple(number * life for number in range(max(1, math.ceil(horizon / life - WHOLE))))


def spans(horizon: float) -> Iterator[tuple[int, float, float]]:
    """(year, its start, its end) of every year of the horizon; the last may be a part."""
    for year in range(1, math.ceil(horizon - WHOLE) + 1):
        yield year, year - 1.0, min(float(year), horizon)


def running_payments(plan: Plan, line: BillLine) -> Iterator[Payment]:
    """What is paid every year: the first year's sum, and what it rises to."""
    economics = plan.instance.economics
    rate, levelised = economics.discount_rate, line.factors.get("levelised")
    rises = {
        "energy": economics.energy_escalation_fraction,
        "staff": economics.staff.escalation_fraction,
        "space": economics.hall.colocation_escalation_fraction,
    }
    rise = rises.get(line.component, 0.0) if levelised is not None else 0.0
    first = line.usd_per_year / (levelised or 1.0)
    for year, start, end in spans(economics.horizon_years):
        usd = first * (1.0 + rise) ** (year - 1)
        worth = present_value_of_one(rate, end) - present_value_of_one(rate, start)
        yield Payment(year, usd * (end - start), usd * worth)


def capital_payments(plan: Plan, line: BillLine) -> Iterator[Payment]:
    """What is bought, again after each life; write-offs against tax and what a sale brings are negative."""
    economics = plan.instance.economics
    rate, horizon = economics.discount_rate, economics.horizon_years
    life, tax = life_years(line, rate), _tax(plan, line)
    for moment, usd in _bought(plan, line):
        yield Payment(math.ceil(moment - WHOLE), usd, usd * (1.0 + rate) ** -moment)
        if tax:
            for year, start, end in spans(horizon):
                since, until = max(start, moment), min(end, moment + life)
                if until > since:
                    worth = present_value_of_one(rate, until) - present_value_of_one(rate, since)
                    yield Payment(year, -tax * usd / life * (until - since), -tax * usd / life * worth)
        sold = moment + life
        if sold <= horizon + WHOLE:
            back = -_residual(plan, line) * (1.0 - tax) * usd
            yield Payment(math.ceil(sold - WHOLE), back, back * (1.0 + rate) ** -sold)


def value_left_usd(plan: Plan, line: BillLine) -> float:
    """Worth, when the horizon ends, of what outlives it: annuities, write-offs and the sale that are still to come."""
    economics = plan.instance.economics
    rate, life, tax = economics.discount_rate, life_years(line, economics.discount_rate), _tax(plan, line)
    *_, (moment, usd) = _bought(plan, line)
    years = moment + life - economics.horizon_years
    if math.isinf(years):
        return line.capital_usd
    if years <= WHOLE:
        return 0.0
    replaced = line.factors.get("replacement", 1.0)
    annuity = line.usd_per_year / replaced * usd / line.capital_usd
    yearly = annuity + tax * usd / life
    sale = _residual(plan, line) * (1.0 - tax) * usd * (1.0 + rate) ** -years
    left: float = yearly * present_value_of_one(rate, years) + sale
    return left


def _bought(plan: Plan, line: BillLine) -> Iterator[tuple[float, float]]:
    """(moment, price) of every purchase within the horizon."""
    economics = plan.instance.economics
    change = economics.server_price_change_fraction if "replacement" in line.factors else 0.0
    for moment in purchases(life_years(line, economics.discount_rate), economics.horizon_years):
        yield moment, line.capital_usd * (1.0 + change) ** moment


def _tax(plan: Plan, line: BillLine) -> float:
    return plan.instance.economics.tax_fraction if "tax_and_residual" in line.factors else 0.0


def _residual(plan: Plan, line: BillLine) -> float:
    known = "tax_and_residual" in line.factors and line.component in _SERVERS
    return plan.instance.economics.server_residual_fraction if known else 0.0
