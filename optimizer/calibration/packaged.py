"""The packaged calibration: its points, the fit that made it, and its hash.

    python -m optimizer.calibration.packaged [TABLE [COLLECTION]]

fits the packaged points (with TABLE, first packages those of a measurement table, and of a throughput
collection) and writes
``performance/data/calibration.json``, ``performance/data/bands.json`` and ``calibration/data/held_out.csv``.
"""

import hashlib
import json
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np

from optimizer.calibration.fit import Data, fit
from optimizer.calibration.held_out import bands_document, held_text, hold_out_all
from optimizer.calibration.inference import drafts_of, infer_drafts, with_drafts
from optimizer.calibration.parameters import (
    GENERIC,
    Parameter,
    serving_parameters,
    value_of,
    with_values,
)
from optimizer.calibration.points import Point, read_points, read_table, work_of_points
from optimizer.calibration.throughput import (
    fit_throughput,
    package_throughput,
    packaged_throughput,
    throughput_parameters,
)
from optimizer.catalog import Catalog, load_catalog
from optimizer.performance.factors import AXES, Factors, factors_from_document, prior_document

#: Columns of a measurement table that the packaged points keep.
COLUMNS: Final = (
    "id",
    "accelerator",
    "model",
    "precision",
    "engine",
    "engine_version",
    "input_tokens",
    "output_tokens",
    "concurrency",
    "tensor_parallel",
    "attention_data_parallel",
    "expert_parallel",
    "measured_ttft_ms",
    "measured_tpot_ms",
    "measured_on",
)
#: Digits of a packaged constant: more would say more than the points know, and less survive other processors.
DIGITS: Final = 3
SOURCE: Final = (
    "calibration on 1,935 public serving points of H100, H200 and B200 (InferenceX benchmark and NVIDIA's own runs, "
    "github.com/ai-dynamo/aiconfigurator, Apache-2.0; figures only) and, for A100, L40S and MI300X, on published "
    "offline throughput (ids and quality in the packaged table), drawn towards the constants of the table"
)
AS_OF: Final = "2026-04"


def packaged_text() -> str:
    """The packaged points as they lie in the file."""
    return resources.files("optimizer.calibration").joinpath("data/points.csv").read_text(encoding="utf-8")


def packaged_points(catalog: Catalog) -> list[Point]:
    """The packaged points, drafts filled in."""
    return with_drafts(read_points(read_table(packaged_text())[1], catalog), catalog)


def packaged_data(catalog: Catalog) -> Data:
    """The packaged points with their work."""
    points = packaged_points(catalog)
    return Data.of(points, work_of_points(points, catalog))


def rounded(value: float) -> float:
    """To the digits of a packaged constant."""
    return float(f"{value:.{DIGITS}g}")


def prior_factors() -> Factors:
    """The constants before any calibration."""
    return factors_from_document(prior_document())


def fit_packaged(data: Data, catalog: Catalog) -> Factors:
    """The fit that makes the packaged calibration, rounded as it is packaged.

    First the online points, then, all else held, the older generations on published throughput.
    """
    online = _rounded(fit(data, prior_factors(), serving_parameters()), prior_factors(), serving_parameters())
    return _rounded(fit_throughput(packaged_throughput(), catalog, online), online, throughput_parameters())


def _rounded(fitted: Factors, prior: Factors, parameters: tuple[Parameter, ...]) -> Factors:
    values = np.array([rounded(value_of(fitted, parameter)) for parameter in parameters])
    return with_values(prior, parameters, values)


def packaged_parameters() -> tuple[Parameter, ...]:
    """Every constant of the packaged calibration."""
    return serving_parameters() + throughput_parameters()


def calibration_document(factors: Factors, parameters: Sequence[Parameter], points: str) -> dict[str, Any]:
    """Fitted constants by factor, key and provenance; its hash covers constants and points."""
    values: dict[str, Any] = {}
    for parameter in parameters:
        held = values
        axes = AXES.get(parameter.factor, ())
        keys = [parameter.factor, *(axis[at] for axis, at in zip(axes, parameter.index, strict=True))]
        for key in keys[:-1]:
            held = held.setdefault(key, {})
        held[keys[-1]] = rounded(value_of(factors, parameter))
    for name, value in values.items():
        if isinstance(value, dict) and AXES.get(name, ((),))[0][:1] == (GENERIC,):
            value[GENERIC] = rounded(float(getattr(factors, name)[0]))
    body = json.dumps(values, sort_keys=True)
    return {
        "version": 1,
        "source": SOURCE,
        "as_of": AS_OF,
        "points_sha256": hashlib.sha256(points.encode()).hexdigest(),
        "sha256": hashlib.sha256((body + points).encode()).hexdigest(),
        "factors": values,
    }


def package_points(text: str) -> str:
    """A measurement table cut to the columns that the packaged points keep."""
    _, rows = read_table(text)
    lines = [",".join(COLUMNS)]
    lines += [",".join(row.get(name, "") for name in COLUMNS) for row in rows]
    return "\n".join(lines) + "\n"


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def main(arguments: Sequence[str]) -> None:
    """Package points and their calibration."""
    here, catalog = Path(__file__).parent, load_catalog()
    data_dir, performance = here / "data", here.parent / "performance" / "data"
    if arguments:
        _write(data_dir / "points.csv", package_points(Path(arguments[0]).read_text(encoding="utf-8")))
        if len(arguments) > 1:
            collection = Path(arguments[1]).read_text(encoding="utf-8")
            _write(data_dir / "throughput.csv", package_throughput(collection, catalog, prior_factors()))
        points = read_points(read_table(packaged_text())[1], catalog)
        evidence = infer_drafts(points, catalog, prior_factors(), serving_parameters())
        lines = ["engine,engine_version,measured_on,error_without,error_with"]
        inferred = sorted(drafts_of(evidence))
        lines += [",".join((*name, f"{evidence[name][0]:.2f}", f"{evidence[name][1]:.2f}")) for name in inferred]
        _write(data_dir / "drafts.csv", "\n".join(lines) + "\n")
    data = packaged_data(catalog)
    factors = fit_packaged(data, catalog)
    document = calibration_document(factors, packaged_parameters(), packaged_text() + packaged_throughput())
    _write(performance / "calibration.json", json.dumps(document, indent=1) + "\n")
    held = hold_out_all(data, prior_factors(), serving_parameters(), factors)
    _write(data_dir / "held_out.csv", held_text(data, held))
    _write(performance / "bands.json", json.dumps(bands_document(data, held), indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
