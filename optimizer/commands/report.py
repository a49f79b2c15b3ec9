"""``optimize report``: the bill of materials and the bill by year of a plan."""

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import click

from optimizer.commands import files, talk

if TYPE_CHECKING:
    from optimizer.plan import Plan

_SUFFIXES = (".csv", ".json")
#: Old prices named one by one.
_NAMED = 3


@click.command()
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write FILE.csv or FILE.json.")
@click.option(
    "--table",
    type=click.Choice(["bom", "bill"]),
    help="Bill of materials or bill by year; absent: bill where FILE's name holds that word.",
)
@click.option("--today", type=click.DateTime(["%Y-%m-%d"]), metavar="DATE", help="Date that ages of prices count from.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def report(plan: Path, output: Path | None, table: str | None, today: dt.datetime | None, force: bool) -> int:
    """Show what PLAN orders, rents and pays each year; write it as a table with -o bom.csv, bom.json or bill.csv."""
    from optimizer.commands.money import money_of
    from optimizer.report import bom, cash_flow

    if output is not None and output.suffix.lower() not in _SUFFIXES:
        raise click.BadParameter("the file must end in .csv or .json", param_hint="-o")
    found = read_plan(plan)
    if output is None:
        shown = []
        if table != "bill":
            money = money_of(found.instance)
            shown.append(bom.bom_text(bom.materials(found), talk.width(), money.times, money.words))
        if table != "bom":
            shown.append(cash_flow.bill_text(found))
        talk.data(f"{found.name}\n\n" + "\n".join(shown))
    else:
        as_json = output.suffix.lower() == ".json"
        if (table or ("bill" if "bill" in output.stem.lower() else "bom")) == "bill":
            text = cash_flow.bill_json(found) if as_json else cash_flow.bill_csv(found)
        else:
            made = bom.materials(found)
            text = bom.bom_json(made) if as_json else bom.bom_csv(made)
        if not force and output.exists() and not _is_table(output, text):
            raise click.UsageError(f"{output} is there and is no such table; pass --force to overwrite it")
        files.write(output, text)
        talk.say(f"written     {output}")
    _warn_of_age(found, dt.datetime.now(tz=dt.UTC).date() if today is None else today.date())
    return 0


def read_plan(path: Path) -> "Plan":
    """Read a plan.

    Raises:
        InputError: there is no such file, or it is no plan.
    """
    from pydantic import ValidationError

    from optimizer.errors import InputError, Problem
    from optimizer.instance.reading import read_json_text
    from optimizer.plan import Plan

    text = read_json_text(path, str(path))
    try:
        return Plan.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(one) for one in first["loc"])
        problem = Problem(
            "E-FILE-007",
            str(path),
            field=place,
            found=f"no plan ({first['msg']})",
            allowed="must be a plan that `optimize` wrote",
            fix="Solve the instance: its plan is written beside it",
        )
        raise InputError((problem,)) from None


def _is_table(path: Path, text: str) -> bool:
    """Whether a file begins as the table does: an earlier one may be written over."""
    try:
        with path.open(encoding="utf-8") as file:
            return file.readline() == text.splitlines(keepends=True)[0]
    except (OSError, ValueError):
        return False


def _warn_of_age(plan: "Plan", today: dt.date) -> None:
    from optimizer.report.words import percent
    from optimizer.studies.price_age import OLD_DAYS, old_prices

    old = old_prices(plan, today)
    if not old:
        return
    share = sum(one.share_fraction for one in old)
    talk.say(f"warning     prices older than {OLD_DAYS} days carry {percent(share)} of the cost; ask for new ones:")
    for one in old[:_NAMED]:
        talk.say(f"            {one.item}: {one.as_of or 'no date'}, {one.days} days, {percent(one.share_fraction)}")
    if len(old) > _NAMED:
        talk.say(f"            and {len(old) - _NAMED} more")
