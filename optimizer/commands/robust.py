"""``optimize robust``: what to choose before it is known how uncertain fields turn out."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from optimizer.commands import answering, outputs, progress, talk
from optimizer.commands.interrupt import interruptible
from optimizer.commands.numbers import FiniteRange

if TYPE_CHECKING:
    from optimizer.studies.robust.results import Fared, Robust

_STRIP = 46


@click.command()
@click.argument("instance", type=click.Path(path_type=Path))
@click.option("--scenarios", type=click.IntRange(2, 10_000), metavar="N", help="Scenarios to draw.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), metavar="N", help="Seed of the draw.")
@click.option(
    "--risk-level",
    type=FiniteRange(0, 1, max_open=True),
    metavar="FRACTION",
    help="The shortfall is the mean cost of the dearest 1 - FRACTION of the scenarios.",
)
@click.option(
    "--in-program",
    type=click.IntRange(1, 10_000),
    default=10,
    show_default=True,
    metavar="N",
    help="Scenarios that stand for all in the program.",
)
@click.option(
    "--gap", type=FiniteRange(0, 0.5), default=1e-4, show_default=True, metavar="FRACTION", help="Gap of the program."
)
@click.option(
    "--time-limit",
    "time_limit_s",
    type=FiniteRange(0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="S",
    help="End each solve of the program after S seconds; the gap left is told.",
)
@click.option("-o", "--output", metavar="FILE", help=outputs.OUTPUT_HELP)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def robust(
    instance: Path,
    scenarios: int | None,
    seed: int | None,
    risk_level: float | None,
    in_program: int,
    gap: float,
    time_limit_s: float,
    output: str | None,
    as_json: bool,
    quiet: bool,
    force: bool,
) -> int:
    """Draw scenarios of INSTANCE's uncertain fields and choose what to buy before it is known which one comes.

    Shows how often the best plan for today's values breaks each limit, and the choices of least expected cost, least
    expected shortfall (CVaR) and least largest regret, each found by a program over scenarios and held against all of
    them. Servers on demand, layouts and rates are chosen when the scenario is known.
    """
    from optimizer.commands.solve import read

    wanted = read(instance)
    writers: outputs.Writers = {".json": _json, ".csv": _csv, ".svg": _svg}
    outputs.check(output, writers, "robust", force=force)
    with (
        answering.missing_libraries_told(),
        interruptible("what was held against the scenarios is shown") as stop,
        progress.shown("steps", quiet=quiet) as tell,
    ):
        from optimizer.studies.robust.study import robust as study

        found = study(
            wanted,
            instance,
            scenarios=scenarios,
            seed=seed,
            risk_level=risk_level,
            in_program=in_program,
            gap=gap,
            time_limit_s=time_limit_s,
            tell=tell,
            stop=stop,
        )
    if found is None:
        talk.say(f"nothing fits {instance}; `optimize explain {instance}` says why")
        return 4
    outputs.give(found, output, writers, lambda one: _screen(one, talk.width()), as_json=as_json, quiet=quiet)
    return 0 if found.is_complete else 5


def _json(found: "Robust") -> str:
    return outputs.as_json("robust", asdict(found))


def _csv(found: "Robust") -> str:
    """One row a scenario: its values, what its own best plan costs, what each choice costs."""
    header = ["scenario", *(one.field for one in found.fields), "best_usd_per_year"]
    header += [f"{one.name} usd_per_year" for one in found.plans]
    rows: list[list[Any]] = [
        [number, *values, found.best_usd_per_year[number], *(one.usd_per_year[number] for one in found.plans)]
        for number, values in enumerate(found.values)
    ]
    return outputs.as_csv("robust", header, rows)


def _svg(found: "Robust") -> str:
    from optimizer.report.charts.spread import spread_svg

    return spread_svg(found)


def _screen(found: "Robust", width: int) -> str:
    from optimizer.report.charts.spread import spread_strips
    from optimizer.report.words import counted, percent, significant, usd, wrapped

    kept = found.scenarios - found.unmet
    lines = [
        found.name,
        *wrapped("Drawn", [counted(found.scenarios, "scenario"), f"seed {found.seed}"], width),
    ]
    for field in found.fields:
        span = f"{significant(field.low)} .. {significant(field.median)} .. {significant(field.high)} {field.unit}"
        now = "" if field.now is None else f", now {significant(field.now)}"
        lines += wrapped("", [f"{field.field}: {span.strip()} ({field.distribution}{now})"], width)
    if found.unmet:
        lines += wrapped("Unmet", [f"{counted(found.unmet, 'scenario')} that no plan serves; left out below"], width)
    lines += wrapped("Nominal", [found.nominal_summary, f"{usd(found.nominal_usd_per_year)} per year"], width)
    broken = [f"{name} in {percent(count / kept)}" for name, count in found.breaks.items()]
    told = [f"as it stands it breaks a limit in {percent(found.broken_fraction)} of the scenarios", *broken]
    lines += wrapped("", told if found.breaks else ["as it stands it keeps every limit in every scenario"], width)
    lines += ["", f"  {'USD per year':<22}{'expected':>11}{'shortfall':>11}{'max regret':>12}{'fails in':>10}"]
    for one in found.plans:
        lines.append(
            f"  {one.name:<22}{_money(one.expected_usd_per_year):>11}{_money(one.shortfall_usd_per_year):>11}"
            f"{_money(one.largest_regret_usd_per_year):>12}{_fails(one, kept):>10}"
        )
        lines += wrapped("", [one.summary], width, 6)
    lines += ["", *spread_strips(found, min(_STRIP, width - 26))]
    told = [
        f"shortfall: mean of the dearest {percent(1.0 - found.risk_level)} of the scenarios",
        "regret: cost above that of the scenario's own best plan",
        "servers on demand, layouts and rates are chosen when the scenario is known",
        *found.messages,
    ]
    if not found.is_complete:
        told.insert(0, "stopped before every choice was known")
    return "\n".join([*lines, "", *wrapped("", told, width, 2)])


def _money(value: float | None) -> str:
    from optimizer.report.words import usd

    return "-" if value is None else usd(value)


def _fails(one: "Fared", scenarios: int) -> str:
    from optimizer.report.words import percent

    return "none" if not one.failing else percent(one.failing / scenarios)
