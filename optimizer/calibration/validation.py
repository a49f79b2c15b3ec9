"""Predictions beside measurements: the verb ``validate`` as a function."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimizer.calibration.inference import with_drafts
from optimizer.calibration.points import Point, deployments_of, read_points, read_table, traffic_of, work_of_points
from optimizer.calibration.tables import is_collection, online_row
from optimizer.catalog import Catalog, load_catalog
from optimizer.models import architecture_from_catalog
from optimizer.performance.bands import Bands, load_bands
from optimizer.performance.engine_memory import engine_memory
from optimizer.performance.factors import Factors, FloatArray, load_factors
from optimizer.performance.memory import engine_of, sequence_slots
from optimizer.performance.prepare import times_of
from optimizer.performance.serving import prepare, step_times
from optimizer.performance.work import Work

#: Columns that are added, in their order.
ADDED: Final = (
    "predicted_ttft_ms",
    "predicted_tpot_ms",
    "predicted_output_tokens_per_s",
    "tpot_low_ms",
    "tpot_high_ms",
    "ttft_low_ms",
    "ttft_high_ms",
    "status",
    "reason",
)
LOW, HIGH = 0.1, 0.9
#: What is told of a row that gets more requests than it can serve; it is predicted all the same.
OVERRUN: Final = "more requests arrive than it serves: TTFT grows with the length of the run and is left out"
#: Requests that an offline run keeps in flight where only memory limits it.
_MOST_IN_FLIGHT = 4096.0


@dataclass(frozen=True, slots=True, eq=False)
class Validation:
    """Rows with predictions added, and errors of what was measured."""

    columns: list[str]
    rows: list[dict[str, str]]
    points: list[Point]
    tpot_ms: FloatArray
    ttft_ms: FloatArray
    output_tokens_per_s: FloatArray
    measured_output_tokens_per_s: FloatArray
    ok: np.ndarray[Any, np.dtype[np.bool_]]

    def error_table(self) -> list[dict[str, Any]]:
        """Median and mean absolute error by accelerator, model and engine, and over all; fractions."""
        table = [self._errors("all", "all", np.ones(len(self.points), dtype=np.bool_))]
        for kind in ("accelerator", "model", "engine"):
            values = np.array([getattr(point, kind) for point in self.points])
            table += [self._errors(kind, str(value), values == value) for value in sorted(set(values))]
        return table

    def _errors(self, kind: str, value: str, rows: np.ndarray[Any, np.dtype[np.bool_]]) -> dict[str, Any]:
        entry: dict[str, Any] = {"kind": kind, "value": value, "rows": int(rows.sum()), "ok": int(self.ok[rows].sum())}
        measured = {
            "tpot": (self.tpot_ms, np.array([point.tpot_ms for point in self.points])),
            "ttft": (self.ttft_ms, np.array([point.ttft_ms for point in self.points])),
            "output_tokens_per_s": (self.output_tokens_per_s, self.measured_output_tokens_per_s),
        }
        for name, (predicted, seen) in measured.items():
            error = np.abs(predicted / seen - 1.0)[rows & self.ok]
            error = error[np.isfinite(error)]
            entry[f"{name}_points"] = int(error.size)
            entry[f"{name}_median_error"] = float(np.median(error)) if error.size else None
            entry[f"{name}_mean_error"] = float(np.mean(error)) if error.size else None
        return entry


@dataclass(frozen=True, slots=True, eq=False)
class Flight:
    """Rows of a table that can be predicted (``able``), with their work and the requests that run at once.

    ``arriving`` is requests/s of rows whose load is a rate, 0 of others; ``overrun`` rows get more than they can serve.
    """

    columns: list[str]
    rows: list[dict[str, str]]
    points: list[Point]
    reasons: list[str]
    able: list[int]
    work: Work
    running: FloatArray
    waves: FloatArray
    replicas: FloatArray
    measured_rate: FloatArray
    arriving: FloatArray
    overrun: NDArray[np.bool_]

    def times(self, factors: Factors) -> tuple[FloatArray, FloatArray]:
        """TPOT and TTFT in ms of the able rows; of more requests than run, the others wait for whole requests."""
        times = times_of(self.work, factors)
        seen, _ = step_times(times.columns, times.scalars, self.running)
        return seen["tpot_ms"], seen["ttft_ms"] + self.waves * seen["latency_ms"]

    def rate(self, factors: Factors) -> FloatArray:
        """Output tokens/s of the whole deployment, able rows."""
        return self.rate_of(*self.times(factors))

    def rate_of(self, tpot_ms: FloatArray, ttft_ms: FloatArray) -> FloatArray:
        """Output tokens/s from times: requests in flight x O / (TTFT + (O - 1) TPOT)."""
        output = np.array([self.points[row].nominal_output for row in self.able])
        flight = self.replicas * self.running * (1.0 + self.waves)
        rate = flight * output / (ttft_ms + (output - 1.0) * tpot_ms) * 1e3
        # What arrives is served where the deployment is not overrun.
        served: FloatArray = np.where((self.arriving > 0.0) & ~self.overrun, self.arriving * output, rate)
        return served


def flight_of(text: str, catalog: Catalog, factors: Factors) -> Flight:
    """Read a measurement table and find what runs at once in each row."""
    columns, rows = read_table(text)
    plain = [online_row(row) for row in rows] if is_collection(columns) else rows
    points = with_drafts(read_points(plain, catalog), catalog)
    reasons = [_reason(point, row) for point, row in zip(points, plain, strict=True)]
    able = [index for index, reason in enumerate(reasons) if not reason]
    if not able:
        raise ValueError(f"no row can be predicted: {reasons[0] if reasons else 'the table is empty'}")
    chosen = [points[index] for index in able]
    replicas = np.array([float(plain[index].get("replicas") or 1.0) for index in able])
    asked = np.array([_load(points[index], plain[index]) for index in able])
    finite = np.isfinite(asked)
    capacity = _capacities(chosen, asked / replicas, catalog, factors)
    load = np.where(finite, asked / replicas, _MOST_IN_FLIGHT)
    # What does not fit by our account ran all the same: it is told, and predicted at the load that was asked.
    room = np.where(capacity < 1.0, np.inf, capacity * np.array([_admitted(point) for point in chosen]))
    running = np.maximum(np.minimum(load, np.where(finite, room, capacity)), 1.0)
    # Packaged tables say what ran at once, so that constants fitted to them do not hang on the memory model.
    told = np.array([float(plain[index].get("running") or np.nan) for index in able])
    running = np.where(np.isfinite(told), told, running)
    for index, held in zip(able, capacity, strict=True):
        if held < 1.0:
            reasons[index] = "the weights and one request do not fit the usable memory"
    measured = np.array([point.output_tokens_per_s for point in chosen])
    waves = np.where(finite, np.maximum(load / running, 1.0), 1.0) - 1.0
    work = work_of_points(chosen, catalog)
    arriving = np.array([_rate(plain[index]) for index in able])
    overrun = np.zeros(arriving.size, dtype=np.bool_)
    if arriving.any():
        solved, full = _in_flight(work, factors, running, arriving / replicas)
        running = np.where(arriving > 0.0, solved, running)
        overrun = full & (arriving > 0.0)
    return Flight(columns, rows, points, reasons, able, work, running, waves, replicas, measured, arriving, overrun)


def validate(
    text: str, *, catalog: Catalog | None = None, factors: Factors | None = None, bands: Bands | None = None
) -> Validation:
    """Predict every row of a measurement table (CSV text) and compare with what was measured.

    Requests beyond what the cache or the engine's slots hold wait until others end; that is part of their TTFT.
    ValueError where not one row can be predicted.
    """
    catalog, factors, bands = catalog or load_catalog(), factors or load_factors(), bands or load_bands()
    flight = flight_of(text, catalog, factors)
    n = len(flight.points)
    tpot, ttft, rate = np.full(n, np.nan), np.full(n, np.nan), np.full(n, np.nan)
    tpot[flight.able], ttft[flight.able] = flight.times(factors)
    rate[flight.able] = flight.rate_of(tpot[flight.able], ttft[flight.able])
    reasons = list(flight.reasons)
    for index in np.array(flight.able)[flight.overrun].tolist():
        # The queue grows as long as requests come, so TTFT depends on the length of the run, which no row states.
        ttft[index] = np.nan
        reasons[index] = OVERRUN
    status = [
        "ok" if reason in ("", OVERRUN) else "does_not_fit" if "fit" in reason else "unsupported" for reason in reasons
    ]
    measured = np.array([point.output_tokens_per_s for point in flight.points])
    added = _added(flight.points, catalog, bands, tpot, ttft, rate, status, reasons)
    whole = [{**row, **more} for row, more in zip(flight.rows, added, strict=True)]
    ok = np.array([one == "ok" for one in status], dtype=np.bool_)
    return Validation([*flight.columns, *ADDED], whole, flight.points, tpot, ttft, rate, measured, ok)


def _admitted(point: Point) -> float:
    """Requests that run for one that is held to its full length.

    vLLM and SGLang take cache pages as a request grows, so in the mean half of its output; TensorRT-LLM reserves all.
    """
    if point.engine == "trtllm":
        return 1.0
    return (point.input_tokens + point.output_tokens) / (point.input_tokens + point.output_tokens / 2.0)


def _load(point: Point, row: Mapping[str, str]) -> float:
    """Requests in flight that are asked for; infinite where memory decides."""
    return point.concurrency if row.get("concurrency", "").strip() else np.inf


def _rate(row: Mapping[str, str]) -> float:
    """Requests/s that arrive, 0 where that is not what the load is."""
    cell = row.get("request_rate_per_s", "").strip()
    arrives = row.get("load_kind", "") == "rate" and not row.get("concurrency", "").strip()
    try:
        rate = float(cell) if cell and arrives else 0.0
    except ValueError:
        return 0.0
    return rate if math.isfinite(rate) and rate > 0.0 else 0.0


def _in_flight(
    work: Work, factors: Factors, most: FloatArray, rates: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """(requests in flight at the given rates, whether a deployment is overrun), by Little's law.

    c = rate x latency(c): the least c whose throughput c / latency(c) reaches the rate. Where not even ``most`` does,
    that many run and the others queue for as long as requests keep coming.
    """
    times = times_of(work, factors)

    def carries(load: FloatArray) -> NDArray[np.bool_]:
        seen, _ = step_times(times.columns, times.scalars, load)
        return np.asarray(load * 1e3 / seen["latency_ms"] >= rates)

    low, high = np.zeros(rates.size), most.copy()
    overrun = ~carries(high)
    for _ in range(50):
        middle = (low + high) / 2.0
        enough = carries(np.maximum(middle, 1e-3))
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.maximum(np.where(overrun, most, high), 1.0), overrun


def _reason(point: Point, row: Mapping[str, str]) -> str:
    """Why a row cannot be predicted; empty where it can."""
    if point.problem:
        return point.problem
    if not row.get("input_tokens", "").strip() or not row.get("output_tokens", "").strip():
        return "input and output length must be stated"
    if row.get("load_kind", "") == "rate" and not row.get("concurrency", "").strip() and not _rate(row):
        return "neither the requests in flight nor their rate is stated"
    return ""


def _capacities(points: list[Point], loads: FloatArray, catalog: Catalog, factors: Factors) -> FloatArray:
    """Requests that each deployment holds at once, 0 where not one fits.

    ``loads`` are requests in flight that were asked of each replica, infinite where the engine decides.
    Where not one fits at the engine's default memory fraction, whoever ran it raised the fraction: the largest
    that users run decides.
    """
    known: dict[tuple[object, ...], float] = {}
    found = []
    for point, load in zip(points, loads.tolist(), strict=True):
        layout = (point.accelerator, point.group, point.nominal_output, point.pipeline_parallel, point.expert_parallel)
        key: tuple[object, ...] = (*point.campaign, *layout, point.weights, point.cache, load)
        if key not in known:
            architecture = architecture_from_catalog(catalog.models[point.model])
            deployment = deployments_of(point, catalog)
            traffic = traffic_of(point)
            # Whoever asked for more in flight than the engine's default slots gave it as many.
            each = math.ceil(load / point.attention_data_parallel) if math.isfinite(load) else 0
            if each > sequence_slots(deployment, engine_of(traffic))[0] / point.attention_data_parallel:
                traffic = replace(traffic, sequence_slots=float(each))
            setting = architecture, deployment, traffic, factors
            held = float(prepare(*setting).columns.largest_concurrency[0])
            if held < 1.0:
                raised = engine_memory(point.engine, point.version).largest_memory_fraction
                held = float(prepare(*setting, usable_memory_fraction=raised).columns.largest_concurrency[0])
            known[key] = held
        found.append(known[key])
    return np.array(found)


def _added(
    points: list[Point],
    catalog: Catalog,
    bands: Bands,
    tpot: FloatArray,
    ttft: FloatArray,
    rate: FloatArray,
    status: list[str],
    reasons: list[str],
) -> list[dict[str, str]]:
    added = []
    for index, point in enumerate(points):
        row = dict.fromkeys(ADDED, "")
        row["status"], row["reason"] = status[index], reasons[index]
        if np.isfinite(tpot[index]):
            generation = deployments_of(point, catalog).generation_index
            evidence = bands.evidence_of(point.model, generation)
            row["predicted_tpot_ms"] = f"{tpot[index]:.4f}"
            if np.isfinite(ttft[index]):
                row["predicted_ttft_ms"] = f"{ttft[index]:.4f}"
            row["predicted_output_tokens_per_s"] = f"{rate[index]:.4f}"
            for metric, value in (("tpot", tpot[index]), ("ttft", ttft[index])):
                for name, level in (("low", LOW), ("high", HIGH)):
                    if not np.isfinite(value):
                        continue
                    factor = bands.multiplier(f"{metric}_ms", point.engine, evidence, level)[0]
                    row[f"{metric}_{name}_ms"] = f"{value * factor:.4f}"
        added.append(row)
    return added
