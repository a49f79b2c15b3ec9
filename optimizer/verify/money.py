"""Hold the plan's bill against the checker's own lines, and its totals against their parts."""

import math
from collections import defaultdict

from optimizer.catalog.base import as_of_end
from optimizer.plan import BillLine, Plan
from optimizer.units import HOURS_PER_YEAR, TOKENS_PER_MILLION
from optimizer.verify.bill import Line, recovery_factor
from optimizer.verify.facts import Facts
from optimizer.verify.finding import CENT, EXACT_RELATIVE, SOLVED_RELATIVE, Ledger, close

#: Share of a cent by which sums of many lines may differ.
_SUM_RELATIVE = 1e-12


def check_lines(ledger: Ledger, plan: Plan, own: list[Line]) -> None:
    """Every line of the plan is a line of the checker, and the other way round."""
    free: defaultdict[str, list[Line]] = defaultdict(list)
    for one in own:
        free[one.component].append(one)
    pairs = _paired(plan, free)
    for place, line in enumerate(plan.bill.lines):
        path = f"bill.lines[{place}]"
        mine = pairs.get(place)
        if mine is None:
            ledger.add(
                "V-SUM", path, f"{line.component}: {line.item}", "no such line", "the checker bills nothing like it"
            )
            continue
        _check_line(ledger, path, line, mine)
    for name, rest in free.items():
        for one in rest:
            shown = f"{one.usd_per_year!r} USD/year for {one.subject}"
            code = "V-SCHEME" if name == "recovery" else "V-SUM"
            ledger.add(code, f"bill.{name}", "nothing", shown, "a line is missing from the bill")


def _paired(plan: Plan, free: defaultdict[str, list[Line]]) -> dict[int, Line]:
    """Each line of the plan with the checker's line that agrees with it in most; best agreement first."""
    scored = sorted(
        (
            (-_likeness(line, mine), place, number)
            for place, line in enumerate(plan.bill.lines)
            for number, mine in enumerate(free[line.component])
        ),
    )
    pairs: dict[int, Line] = {}
    taken: set[tuple[str, int]] = set()
    for _, place, number in scored:
        component = plan.bill.lines[place].component
        if place not in pairs and (component, number) not in taken:
            pairs[place] = free[component][number]
            taken.add((component, number))
    for component, lines in free.items():
        free[component] = [mine for number, mine in enumerate(lines) if (component, number) not in taken]
    return pairs


def _likeness(line: BillLine, mine: Line) -> int:
    agreements = (
        mine.subject in line.item,
        line.unit == mine.unit,
        close(line.quantity, mine.quantity),
        close(line.unit_price_usd, mine.price.usd),
        close(line.usd_per_year, mine.usd_per_year),
        close(line.capital_usd, mine.capital_usd),
        close(math.prod(line.factors.values()), math.prod(mine.factors)),
    )
    return sum(agreements)


def _check_line(ledger: Ledger, path: str, line: BillLine, mine: Line) -> None:
    named = mine.subject in line.item
    ledger.check(named, "V-SUM", f"{path}.item", line.item, mine.subject, "the line names another thing")
    ledger.same("V-UNIT", f"{path}.unit", line.unit, mine.unit, "unit of the quantity")
    ledger.number("V-COUNT", f"{path}.quantity", line.quantity, mine.quantity, "quantity of this line")
    ledger.number(mine.price_code, f"{path}.unit_price_usd", line.unit_price_usd, mine.price.usd, "price of one unit")
    given, wanted = sorted(line.factors.values()), sorted(mine.factors)
    agree = len(given) == len(wanted) and all(close(a, b) for a, b in zip(given, wanted, strict=True))
    ledger.check(agree, "V-SUM", f"{path}.factors", given, wanted, "what the price is multiplied with")
    product = line.quantity * line.unit_price_usd * math.prod(line.factors.values())
    ledger.number("V-SUM", f"{path}.usd_per_year", line.usd_per_year, product, "quantity x unit price x factors")
    ledger.number("V-SUM", f"{path}.usd_per_year", line.usd_per_year, mine.usd_per_year, "yearly cost of this line")
    ledger.number("V-SUM", f"{path}.capital_usd", line.capital_usd, mine.capital_usd, "paid at the start for this line")
    allowed = any(
        line.trust == trust and (not source or (source in line.source and line.as_of == as_of))
        for source, as_of, trust in mine.price.sources
    )
    shown = " | ".join(f"{source}, {as_of}, {trust}" for source, as_of, trust in sorted(mine.price.sources))
    found = f"{line.source}, {line.as_of}, {line.trust}"
    ledger.check(allowed, "V-SOURCE", f"{path}.source", found, shown, "where the price comes from")


def check_units(ledger: Ledger, plan: Plan, tokens_per_year: float, busy_hours: float) -> None:
    """Cost by month, accelerator-hour and token; plans of earlier versions state none."""
    bill = plan.bill
    if bill.usd_per_month is None:
        return
    year = bill.usd_per_year
    ledger.number("V-SUM", "bill.usd_per_month", bill.usd_per_month, year / 12.0, "a twelfth of the year")
    installed = sum(one.servers * one.accelerators_per_server for one in plan.servers) * HOURS_PER_YEAR
    quantities = (
        ("usd_per_million_total_tokens", tokens_per_year / TOKENS_PER_MILLION),
        ("usd_per_accelerator_hour_installed", installed),
        ("usd_per_accelerator_hour_used", busy_hours),
    )
    for name, quantity in quantities:
        stated: float | None = getattr(bill, name)
        mine = year / quantity if quantity else None
        why = "yearly cost over what is had for it"
        if stated is None or mine is None:
            ledger.check(stated is mine, "V-SUM", f"bill.{name}", stated, mine, why)
        else:
            ledger.number("V-SUM", f"bill.{name}", stated, mine, why, SOLVED_RELATIVE)


def check_totals(ledger: Ledger, facts: Facts, plan: Plan, own: list[Line], tokens_per_year: float) -> None:
    """Components, totals and what is made of them."""
    bill, economics = plan.bill, facts.instance.economics
    total = math.fsum(line.usd_per_year for line in own)
    components: defaultdict[str, float] = defaultdict(float)
    for line in bill.lines:
        components[line.component] += line.usd_per_year
    stated = {key: value for key, value in bill.usd_per_year_by_component.items() if value != 0 or key in components}
    ledger.numbers("V-SUM", "bill.usd_per_year_by_component", stated, dict(components), "sum of the component's lines")
    cents = abs(bill.usd_per_year - total) <= max(CENT, _SUM_RELATIVE * total)
    ledger.check(cents, "V-SUM", "bill.usd_per_year", bill.usd_per_year, total, "the checker's own total, to the cent")
    parts = math.fsum(bill.usd_per_year_by_component.values())
    ledger.number("V-SUM", "bill.usd_per_year", bill.usd_per_year, parts, "sum of the components")
    hourly = bill.usd_per_year / HOURS_PER_YEAR
    ledger.number("V-SUM", "bill.usd_per_hour", bill.usd_per_hour, hourly, "yearly cost over 8766 hours")
    over = bill.usd_per_year / recovery_factor(economics.discount_rate, economics.horizon_years)
    ledger.number("V-SUM", "bill.usd_over_horizon", bill.usd_over_horizon, over, "present value over the horizon")
    per_million = bill.usd_per_year / (tokens_per_year / TOKENS_PER_MILLION) if tokens_per_year else 0.0
    path = "bill.usd_per_million_output_tokens"
    ledger.number(
        "V-SUM", path, bill.usd_per_million_output_tokens, per_million, "over the tokens served", SOLVED_RELATIVE
    )
    capital = math.fsum(line.capital_usd for line in own)
    ledger.number("V-SUM", "bill.capital_usd", bill.capital_usd, capital, "sum of what is paid at the start")
    assumed = math.fsum(line.usd_per_year for line in bill.lines if line.trust == "assumed")
    share = assumed / bill.usd_per_year if bill.usd_per_year else 0.0
    path = "bill.assumed_fraction"
    ledger.number("V-SUM", path, bill.assumed_fraction, share, "share of cost on assumed figures", EXACT_RELATIVE)
    dated = [(end, line.as_of) for line in bill.lines if (end := as_of_end(line.as_of)) is not None]
    oldest = min(dated)[1] if dated else ""
    same = as_of_end(bill.oldest_price) == as_of_end(oldest)
    ledger.check(same, "V-SOURCE", "bill.oldest_price", bill.oldest_price, oldest, "oldest date among the prices")
