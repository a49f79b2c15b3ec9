"""When one plan has cost less in all than another: payments month by month, replacements in full."""

import math

from optimizer.instance.economics import Economics
from optimizer.plan import Plan
from optimizer.units import MONTHS_PER_YEAR


def break_even_month(buy: Plan, rent: Plan, rate: float = 0.0, *, is_paid: bool = False) -> int | None:
    """First month by whose end buying has cost at most what renting has, purchases and replacements in full.

    ``is_paid``: what the second plan takes at the start is paid already.
    """
    economics = buy.instance.economics
    months = math.floor(economics.horizon_years * MONTHS_PER_YEAR + 1e-9)
    owned, rented = 0.0, 0.0
    for month in range(months + 1):
        worth = (1.0 + rate) ** (-month / MONTHS_PER_YEAR)
        owned += worth * _paid(buy, economics, month)
        if month or not is_paid:
            rented += worth * _paid(rent, economics, month)
        if month and owned <= rented:
            return month
    return None


def _paid(plan: Plan, economics: Economics, month: int) -> float:
    """What is paid at the end of a month: capital at the start and when a life has ended, running cost every month."""
    lives = {"network": economics.network_life_years, "cooling": economics.cooling_life_years}
    usd = 0.0
    for line in plan.bill.lines:
        if line.capital_usd == 0.0:
            usd += line.usd_per_year / MONTHS_PER_YEAR if month else 0.0
            continue
        life = math.inf if line.component == "recovery" else lives.get(line.component, economics.server_life_years)
        if month == 0 or _ends(life, month, economics.horizon_years):
            usd += line.capital_usd
    return usd


def _ends(life: float, month: int, horizon: float) -> bool:
    """Whether a life ends in this month and before the horizon does."""
    number = math.floor(month / MONTHS_PER_YEAR / life + 1e-9)
    at = number * life * MONTHS_PER_YEAR
    return number >= 1 and month - 1 < at - 1e-6 <= month and number * life < horizon - 1e-6
