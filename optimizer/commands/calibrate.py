"""``optimize calibrate``: constants from a user's own points."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from optimizer.commands import files, talk
from optimizer.commands.measurements import bad, percent, read_text

if TYPE_CHECKING:
    from optimizer.calibration.calibrate import Calibration

_NAMES = {"tpot_ms": "TPOT", "ttft_ms": "TTFT", "output_tokens_per_s": "tokens/s"}


@click.command()
@click.argument("measurements", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The calibration to write.")
@click.option("--json", "as_json", is_flag=True, help="Print errors before and after as JSON.")
def calibrate(measurements: Path, output: Path | None, as_json: bool) -> int:
    """Fit the constants that the CSV table MEASUREMENTS can identify; keep the packaged ones else.

    Prints errors on these points before and after, the latter on configurations that the fit had not seen.
    """
    from optimizer.calibration.calibrate import calibrate as run

    text = read_text(measurements)
    try:
        found = run(text, name=measurements.name)
    except (KeyError, ValueError) as error:
        raise bad(measurements, str(error), "must hold measured serving points") from None
    if output is not None:
        files.write(output, json.dumps(found.document, indent=1) + "\n")
        talk.say(f"written     {output}")
    if as_json:
        report = {
            "points": found.points,
            "left_out": found.left_out,
            "cross_validated": found.cross_validated,
            "before": {name: asdict(errors) for name, errors in found.before.items()},
            "after": {name: asdict(errors) for name, errors in found.after.items()},
        }
        talk.data(json.dumps(report, indent=1))
    else:
        talk.data(_screen(found))
    return 0


def _screen(found: "Calibration") -> str:
    how = "on held-out configurations" if found.cross_validated else "in the sample: one configuration only"
    lines = [
        f"{found.points} points used, {found.left_out} left out; after: {how}",
        f"Absolute error, % (median / mean){'before':>14}{'after':>14}",
    ]
    for metric, before in found.before.items():
        after = found.after[metric]
        pairs = (f"{percent(one.median)} / {percent(one.mean)}" for one in (before, after))
        lines.append(f"  {_NAMES[metric]:<31}" + "".join(f"{pair:>14}" for pair in pairs))
    return "\n".join(lines)
