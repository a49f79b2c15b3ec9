"""Constants of older generations, from published throughput where no latency under load was measured.

Everything but the generation's own efficiencies and the PCIe link is held at the online calibration; a run that
queues all requests has as many in flight as the cache holds.
"""

import csv
import io
from importlib import resources
from typing import Any, Final

import numpy as np

from optimizer.calibration.fit import minimise
from optimizer.calibration.parameters import Parameter
from optimizer.calibration.points import read_table
from optimizer.calibration.validation import Flight, flight_of
from optimizer.catalog import Catalog
from optimizer.performance.factors import GENERATIONS, PRECISIONS, WEIGHT_WIDTHS, Factors, FloatArray

#: Columns of a throughput collection that the packaged points keep.
COLUMNS: Final = (
    "id",
    "gpu",
    "gpus",
    "model",
    "precision",
    "engine",
    "version",
    "tp",
    "pp",
    "ep",
    "dp",
    "isl",
    "osl",
    "load_kind",
    "load",
    "output_tok_s",
    "kind",
    "as_of",
    "quality",
    "running",
)
#: Generations that such points cover.
THIN_GENERATIONS: Final = ("ampere", "ada", "cdna3")
_GPUS: Final = frozenset({"A100-SXM-80GB", "A100-SXM-40GB", "A100-PCIe-80GB", "L40S", "MI300X"})
_QUALITIES: Final = frozenset({"A", "B"})


def package_throughput(text: str, catalog: Catalog, factors: Factors) -> str:
    """Offline rows of good quality of a throughput collection, cut to the columns that are kept.

    ``running`` is added: the requests that ran at once by the memory model of the day.
    """
    _, rows = read_table(text)
    rows = [row for row in rows if row["quality"] in _QUALITIES and row["gpu"] in _GPUS and row["output_tok_s"]]
    rows = [{**row, "running": ""} for row in rows if row["kind"].startswith("offline")]
    flight = flight_of(_table(rows), catalog, factors)
    for index, running in zip(flight.able, flight.running, strict=True):
        rows[index]["running"] = f"{running:g}"
    return _table(rows)


def _table(rows: list[dict[str, str]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def packaged_throughput() -> str:
    """The packaged throughput points as they lie in the file."""
    return resources.files("optimizer.calibration").joinpath("data/throughput.csv").read_text(encoding="utf-8")


def throughput_parameters() -> tuple[Parameter, ...]:
    """Efficiencies of the older generations, and the PCIe link."""
    found = [Parameter("pcie_link_fraction", (), "logit", 0.5)]
    for generation in THIN_GENERATIONS:
        g = GENERATIONS.index(generation)
        found += [Parameter("bandwidth_efficiency", (g, w), "logit", 0.4) for w in range(len(WEIGHT_WIDTHS))]
        formats = [PRECISIONS.index(name) for name in ("fp16", "fp8", "int8")]
        found += [Parameter("flop_efficiency", (g, p), "logit", 0.4) for p in formats]
        found += [
            Parameter(name, (g,), "logit", 0.4) for name in ("kv_bandwidth_efficiency", "attention_flop_efficiency")
        ]
    return tuple(found)


def usable(flight: Flight) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Rows that a fit may use: predicted, measured, and of an engine that is modelled."""
    modelled = np.array([flight.points[row].engine != "generic" for row in flight.able])
    rate = flight.measured_rate
    return modelled & np.isfinite(rate) & (rate > 0)


def fit_throughput(text: str, catalog: Catalog, factors: Factors, *, only: FloatArray | None = None) -> Factors:
    """Factors with the older generations' constants fitted to throughput rows (CSV text); ``only`` masks rows."""
    flight = flight_of(text, catalog, factors)
    rows = usable(flight)
    if only is not None:
        rows &= only[flight.able].astype(np.bool_)

    def residuals(tried: Factors) -> FloatArray:
        found: FloatArray = np.log(flight.rate(tried) / flight.measured_rate)[rows]
        return found

    return minimise(residuals, factors, throughput_parameters())
