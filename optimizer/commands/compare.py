"""``optimize compare``: answers beside each other; buying against renting first."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from optimizer.commands import answering, talk

if TYPE_CHECKING:
    from optimizer.studies.buy_or_rent import BuyOrRent


@click.command()
@click.argument("instance", type=click.Path(path_type=Path))
@click.option("--sourcing", is_flag=True, help="The best plan all bought, all rented, all on demand; break-even.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare(instance: Path, sourcing: bool, as_json: bool) -> int:
    """Compare ways to serve INSTANCE: with --sourcing, buying against renting and where one overtakes the other."""
    if not sourcing:
        raise click.UsageError("say what to compare: --sourcing")
    from optimizer.commands.solve import read
    from optimizer.studies.buy_or_rent import buy_or_rent

    wanted = read(instance)
    with answering.missing_libraries_told():
        found = buy_or_rent(wanted, instance)
    talk.data(json.dumps(found.as_json(), indent=1, ensure_ascii=False) if as_json else _screen(found, talk.width()))
    return 0 if found.optimum.plan is not None else 4


def _screen(found: "BuyOrRent", width: int) -> str:
    from optimizer.report.words import percent, signed_percent, usd, wrapped

    best = None if found.optimum.plan is None else found.optimum.plan.bill.usd_per_year
    lines = [found.name, "", f"  {'':<16}{'per year':>12}{'':>10}{'at start':>12}{'over horizon':>14}"]
    for way in (found.optimum, found.buy, found.rent, found.on_demand):
        outside = "" if way.is_allowed else " (outside the instance's choices)"
        if way.plan is None:
            lines.append(f"  {way.name:<16}nothing fits{outside}")
            continue
        bill = way.plan.bill
        extra = signed_percent(bill.usd_per_year / best - 1.0) if best and way is not found.optimum else ""
        extra = "the same" if extra and way.plan is found.optimum.plan else extra
        lines.append(
            f"  {way.name:<16}{usd(bill.usd_per_year):>12}{extra:>10}{usd(bill.capital_usd):>12}"
            f"{usd(bill.usd_over_horizon):>14}"
        )
        proven = "" if way.plan.outcome.holds == "proven" else " (not proven to be the cheapest)"
        lines += wrapped("", [str(way.row()["summary"]) + outside + proven], width, 6)
    lines.append("")
    if found.buy.plan is None or found.rent.plan is None:
        missing = "bought" if found.buy.plan is None else "rented"
        return "\n".join([*lines, *wrapped("Even", [f"nothing {missing} fits, so there is no break-even"], width)])
    if found.buy.plan.training is not None:
        # A run has no load profile, and its servers no years in which they would pay back.
        return "\n".join(lines[:-1])
    if found.on_demand.plan is not None:
        rule = (
            "renting by the hour is cheaper even at every hour of the year"
            if found.utilization is None
            else f"buying is cheaper from {percent(found.utilization)} of the hours on; renting by the hour below"
        )
        lines += wrapped("Use", [rule, f"the load's mean is {percent(found.load)} of its peak"], width)
    if found.month is None:
        lines += wrapped("Time", ["buying does not pay back within the horizon"], width)
    else:
        later = f"month {found.month_discounted}" if found.month_discounted else "never within the horizon"
        lines += wrapped(
            "Time", [f"buying has cost less than renting by month {found.month}", f"discounted: {later}"], width
        )
    return "\n".join(lines)
