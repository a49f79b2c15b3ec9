"""``optimize calibrate``: constants from a user's own points."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from optimizer.commands import files, talk
from optimizer.commands.measurements import bad, is_training, percent, read_text

if TYPE_CHECKING:
    from optimizer.calibration.calibrate import Calibration

_NAMES = {"tpot_ms": "TPOT", "ttft_ms": "TTFT", "output_tokens_per_s": "tokens/s"}


@click.command()
@click.argument("measurements", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The calibration to write.")
@click.option(
    "--kind",
    type=click.Choice(["serving", "training"]),
    help="What was measured; told by the columns where it is not given.",
)
@click.option("--json", "as_json", is_flag=True, help="Print errors before and after as JSON.")
def calibrate(measurements: Path, output: Path | None, kind: str | None, as_json: bool) -> int:
    """Fit the constants that the CSV table MEASUREMENTS can identify; keep the packaged ones else.

    Prints errors on these points before and after, the latter on configurations that the fit had not seen.
    """
    from optimizer.calibration.calibrate import calibrate as run

    text = read_text(measurements)
    if is_training(text, kind):
        return _training(text, measurements, output, as_json)
    try:
        found = run(text, name=measurements.name)
    except (KeyError, ValueError) as error:
        raise bad(measurements, str(error), "must hold measured serving points") from None
    _write(found.document, output)
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


def _write(document: dict[str, Any], output: Path | None) -> None:
    if output is not None:
        text = json.dumps(document, indent=1) + "\n"
        if str(output) == "-":
            talk.data(text.rstrip("\n"))
        else:
            files.write(output, text)
            talk.say(f"written     {output}")


def _training(text: str, measurements: Path, output: Path | None, as_json: bool) -> int:
    from optimizer.calibration.training.calibrate import calibrate_training

    try:
        found = calibrate_training(text, name=measurements.name)
    except (KeyError, ValueError) as error:
        raise bad(measurements, str(error), "must hold measured training steps") from None
    _write(found.document, output)
    if str(output) == "-":
        return 0
    if as_json:
        report = {
            "points": found.points,
            "left_out": found.left_out,
            "cross_validated": found.cross_validated,
            "before": {"step_s": asdict(found.before)},
            "after": {"step_s": asdict(found.after)},
        }
        talk.data(json.dumps(report, indent=1))
        return 0
    how = "on rows that were left out" if found.cross_validated else "in the sample: one row only"
    talk.data(
        f"{found.points} training steps used, {found.left_out} left out; after: {how}\n"
        f"Absolute error of the step, % (median / mean)\n"
        f"  before   {percent(found.before.median)} / {percent(found.before.mean)}\n"
        f"  after    {percent(found.after.median)} / {percent(found.after.mean)}"
    )
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
