"""``optimize validate``: predictions beside measurements."""

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from optimizer.commands import files, talk
from optimizer.commands.measurements import (
    bad,
    factors_of,
    is_training,
    percent,
    read_text,
    training_calibration_of,
)

if TYPE_CHECKING:
    from optimizer.calibration.training.validation import TrainingValidation
    from optimizer.calibration.validation import Validation


@click.command()
@click.argument("measurements", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the rows with predictions here; - prints.")
@click.option("--calibration", type=click.Path(path_type=Path), help="A file of optimize calibrate.")
@click.option(
    "--kind",
    type=click.Choice(["serving", "training"]),
    help="What was measured; told by the columns where it is not given.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the errors as JSON.")
def validate(measurements: Path, output: Path | None, calibration: Path | None, kind: str | None, as_json: bool) -> int:
    """Predict every row of the CSV table MEASUREMENTS; print errors by accelerator, model and engine.

    The rows are written with predicted times, tokens/s, their 10 % and 90 % quantiles, status and reason.

    \b
    Columns: id accelerator model precision engine engine_version
    input_tokens output_tokens concurrency tensor_parallel
    attention_data_parallel expert_parallel measured_ttft_ms measured_tpot_ms
    Optional: pipeline_parallel weight_bits activation_bits kv_bits
    prefix_hit_fraction speculative_acceptance (draft tokens a step) load_kind
    (closed, static, offline, rate) measured_output_tokens_per_s measured_on
    Tables with the columns gpu, isl, osl, load ... are read as they are.
    \b
    Training steps (--kind training): row_id stack model params_b
    active_params_b layers hidden heads kv_heads ffn ffn_mats vocab seq_len
    global_batch micro_batch gpu gpus tp pp vpp dp cp ep zero recompute
    seq_parallel precision flops_convention; measured: step_s or
    tokens_s_per_gpu or tflops_per_gpu. What is missing is assumed and told.
    """
    from optimizer.calibration.validation import validate as run

    text = read_text(measurements)
    if is_training(text, kind):
        return _training(text, measurements, output, calibration, as_json)
    factors = factors_of(calibration)
    try:
        found = run(text, factors=factors)
    except (KeyError, ValueError) as error:
        raise bad(measurements, str(error), "must hold measured serving points") from None
    if _written(found, output):
        return 0
    errors = found.error_table()
    talk.data(json.dumps(errors, indent=1) if as_json else _screen(errors))
    return 0


def _training(text: str, measurements: Path, output: Path | None, calibration: Path | None, as_json: bool) -> int:
    from optimizer.calibration.training.validation import validate_training

    try:
        found = validate_training(text, calibration=training_calibration_of(calibration))
    except (KeyError, ValueError) as error:
        raise bad(measurements, str(error), "must hold training steps") from None
    if _written(found, output):
        return 0
    errors = found.error_table()
    talk.data(json.dumps(errors, indent=1) if as_json else _training_screen(errors))
    return 0


def _written(found: "Validation | TrainingValidation", output: Path | None) -> bool:
    """Write the rows where asked; whether they went to stdout, which then holds nothing else."""
    if output is None:
        return False
    rows = _table(found)
    if str(output) == "-":
        talk.data(rows)
        return True
    files.write(output, rows)
    talk.say(f"written     {output}")
    return False


def _table(found: "Validation | TrainingValidation") -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(found.columns)), lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(found.rows)
    return text.getvalue()


def _screen(errors: list[dict[str, object]]) -> str:
    lines = [
        "Absolute error, % (median / mean)",
        f"{'':<30}{'ok / rows':>12}  {'TPOT':>12}  {'TTFT':>12}  {'tokens/s':>12}",
    ]
    kind = ""
    for entry in errors:
        if entry["kind"] != kind and entry["kind"] != "all":
            lines.append(f"by {entry['kind']}")
        kind = str(entry["kind"])
        pairs = "".join(f"  {_pair(entry, name):>12}" for name in ("tpot", "ttft", "output_tokens_per_s"))
        share = f"{entry['ok']} / {entry['rows']}"
        lines.append(f"  {str(entry['value'])[:27]:<28}{share:>12}{pairs}")
    return "\n".join(lines)


def _training_screen(errors: list[dict[str, object]]) -> str:
    lines = [
        "Absolute error of the step, %",
        f"{'':<32}{'ok / rows':>11}{'measured':>10}{'mean':>7}{'median':>8}{'worst':>8}",
    ]
    kind = ""
    for entry in errors:
        if entry["kind"] != kind and entry["kind"] not in ("all", "kind"):
            lines.append(f"by {entry['kind']}")
        kind = str(entry["kind"])
        share = f"{entry['ok']} / {entry['rows']}"
        figures = [entry[f"step_{name}_error"] for name in ("mean", "median", "worst")]
        mean, median, worst = (percent(one if isinstance(one, float) else None) for one in figures)
        name = str(entry["value"])[:29]
        lines.append(f"  {name:<30}{share:>11}{entry['measured']!s:>10}{mean:>7}{median:>8}{worst:>8}")
    return "\n".join(lines)


def _pair(entry: dict[str, object], name: str) -> str:
    median, mean = entry[f"{name}_median_error"], entry[f"{name}_mean_error"]
    known = isinstance(median, float) and isinstance(mean, float)
    return f"{percent(median)} / {percent(mean)}" if known else "-"  # type: ignore[arg-type]
