"""The packaged training calibration: its rows, the fit that made it, what it was checked on.

    python -m optimizer.calibration.training.packaged [TABLE]

fits the packaged rows (with TABLE, first packages those of a table of steps) and writes
``performance/data/training_calibration.json``, ``performance/data/training_bands.json`` and
``calibration/data/training_held_out.csv``.
"""

import csv
import io
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from optimizer.calibration.points import read_table
from optimizer.calibration.training.calibrate import one_row_errors
from optimizer.calibration.training.document import calibration_document, rounded
from optimizer.calibration.training.fit import StepData, fit, packaged_prior, step_data
from optimizer.calibration.training.held_out import (
    bands_document,
    groups_of,
    hold_out,
    log_step_of,
    unknown_stack_loss,
)
from optimizer.calibration.training.rows import TrainingRow, convention_of, read_row
from optimizer.catalog import Catalog, load_catalog
from optimizer.performance.factors import FloatArray

#: Columns of a table of steps that the packaged rows keep: figures and names, no words of the source.
COLUMNS: Final = (
    "row_id",
    "source_url",
    "split",
    "stack",
    "model",
    "params_b",
    "active_params_b",
    "layers",
    "hidden",
    "heads",
    "kv_heads",
    "ffn",
    "ffn_mats",
    "vocab",
    "seq_len",
    "global_batch",
    "micro_batch",
    "gpu",
    "gpus",
    "tp",
    "pp",
    "vpp",
    "dp",
    "cp",
    "ep",
    "zero",
    "recompute",
    "seq_parallel",
    "precision",
    "step_s",
    "tokens_s_per_gpu",
    "tflops_per_gpu",
    "flops_convention",
)
SOURCE: Final = (
    "calibration on published training steps (papers, NVIDIA recipes and Megatron-Bridge tables, MLPerf logs, LLM "
    "Foundry, torchtitan, MaxText; addresses in the packaged table, figures only), drawn towards the constants of "
    "the table"
)
AS_OF: Final = "2026-11"
#: Evidence of a prediction -> what is left out to measure its error.
LEFT_OUT: Final = {"stack": "stack_and_model", "accelerator": "stack", "none": "generation"}


def packaged_text() -> str:
    """The packaged rows as they lie in the file."""
    return resources.files("optimizer.calibration").joinpath("data/training_steps.csv").read_text(encoding="utf-8")


def packaged_rows(catalog: Catalog) -> list[TrainingRow]:
    """The packaged rows."""
    return [read_row(row, catalog, index) for index, row in enumerate(read_table(packaged_text())[1])]


def packaged_data(catalog: Catalog) -> StepData:
    """The packaged rows whose step was measured and whose layout is known, with their work."""
    return step_data(packaged_rows(catalog))


def package_rows(text: str) -> str:
    """A table of steps cut to the columns that are kept; FLOP conventions by their code."""
    _, rows = read_table(text)
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        writer.writerow({**row, "flops_convention": convention_of(row.get("flops_convention", ""))})
    return out.getvalue()


def held_text(data: StepData, predictions: Mapping[str, FloatArray], one_row: FloatArray) -> str:
    """A row for each measured step: measured, and predicted in the sample and by every way of leaving out.

    ``one_row`` is the mean absolute error when one other row of the stack is known.
    """
    lines = ["row_id,split,accelerator,stack,kind,step_s," + ",".join(predictions) + ",one_row_error"]
    split = {row["row_id"]: row["split"] for row in read_table(packaged_text())[1]}
    for index, row in enumerate(data.rows):
        values = ",".join(f"{np.exp(found[index]):.5g}" for found in predictions.values())
        name = f'"{row.stack}"' if "," in row.stack else row.stack
        error = f"{one_row[index]:.4g}" if np.isfinite(one_row[index]) else ""
        accelerator = row.accelerator.id if row.accelerator is not None else ""
        lines.append(f"{row.id},{split[row.id]},{accelerator},{name},{row.kind},{row.step_s:.5g},{values},{error}")
    return "\n".join(lines) + "\n"


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def main(arguments: Sequence[str]) -> None:
    """Package rows and their calibration."""
    here, catalog = Path(__file__).parent, load_catalog()
    data_dir, performance = here.parent / "data", here.parent.parent / "performance" / "data"
    if arguments:
        _write(data_dir / "training_steps.csv", package_rows(Path(arguments[0]).read_text(encoding="utf-8")))
    data, prior = packaged_data(catalog), packaged_prior()
    whole = fit(data, prior)
    by_line = hold_out(data, prior, whole, groups_of(data.rows, "line"))
    found = rounded(replace(whole, unknown_stack=MappingProxyType(unknown_stack_loss(data, by_line))))
    document = calibration_document(found, source=SOURCE, as_of=AS_OF, rows=packaged_text())
    _write(performance / "training_calibration.json", json.dumps(document, indent=1) + "\n")
    held = {name: hold_out(data, prior, whole, groups_of(data.rows, by)) for name, by in LEFT_OUT.items()}
    bands = bands_document(data, held, SOURCE, AS_OF)
    _write(performance / "training_bands.json", json.dumps(bands, indent=1) + "\n")
    predictions = {"in_sample_s": log_step_of(data, found)}
    predictions |= {f"without_{LEFT_OUT[name]}_s": values for name, values in held.items()}
    predictions["without_line_s"] = by_line
    known = one_row_errors(data, prior, found)
    _write(data_dir / "training_held_out.csv", held_text(data, predictions, known))


if __name__ == "__main__":
    main(sys.argv[1:])
