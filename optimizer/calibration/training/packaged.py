"""The packaged training calibration: its rows, the fit that made it, what it was checked on.

    python -m optimizer.calibration.training.packaged [TABLE]

fits the packaged rows (with TABLE, first packages those of a table of steps) and writes
``performance/data/training_calibration.json``, ``performance/data/training_bands.json`` and
``calibration/data/training_held_out.csv``.
"""

import csv
import hashlib
import io
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from optimizer.calibration.points import read_table
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
from optimizer.performance.training.constants import (
    LEVELS,
    NAMES,
    TrainingCalibration,
    TrainingFactors,
)

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
#: Digits of a packaged constant, and decimals of an effect.
DIGITS: Final = 4
DECIMALS: Final = 4
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


def rounded(calibration: TrainingCalibration) -> TrainingCalibration:
    """To the digits that are packaged: what is checked is what is shipped."""
    values = {name: float(f"{getattr(calibration.factors, name):.{DIGITS}g}") for name in NAMES}
    effects = {
        level: MappingProxyType({key: round(value, DECIMALS) for key, value in sorted(found.items())})
        for level, found in calibration.effects.items()
    }
    return TrainingCalibration(TrainingFactors(**values), MappingProxyType(effects), calibration.unknown_stack)


def calibration_document(calibration: TrainingCalibration, *, source: str, as_of: str, rows: str) -> dict[str, Any]:
    """A calibration as it is written; its hash covers constants, effects and rows."""
    factors = {name: getattr(calibration.factors, name) for name in NAMES}
    effects = {level: dict(sorted(calibration.effects[level].items())) for level in LEVELS}
    body = json.dumps([factors, effects, dict(calibration.unknown_stack)], sort_keys=True)
    return {
        "version": 1,
        "kind": "training",
        "source": source,
        "as_of": as_of,
        "rows_sha256": hashlib.sha256(rows.encode()).hexdigest(),
        "sha256": hashlib.sha256((body + rows).encode()).hexdigest(),
        "unknown_stack": dict(calibration.unknown_stack),
        "factors": factors,
        "effects": effects,
    }


def package_rows(text: str) -> str:
    """A table of steps cut to the columns that are kept; FLOP conventions by their code."""
    _, rows = read_table(text)
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        writer.writerow({**row, "flops_convention": convention_of(row.get("flops_convention", ""))})
    return out.getvalue()


def held_text(data: StepData, predictions: dict[str, Any]) -> str:
    """A row for each measured step: measured, and predicted in the sample and by every way of leaving out."""
    lines = ["row_id,stack,kind,step_s," + ",".join(predictions)]
    for index, row in enumerate(data.rows):
        values = ",".join(f"{np.exp(found[index]):.5g}" for found in predictions.values())
        name = f'"{row.stack}"' if "," in row.stack else row.stack
        lines.append(f"{row.id},{name},{row.kind},{row.step_s:.5g},{values}")
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
    _write(data_dir / "training_held_out.csv", held_text(data, predictions))


if __name__ == "__main__":
    main(sys.argv[1:])
