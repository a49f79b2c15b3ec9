"""Fleet equivalents: how many accelerators of one type do the work of a fleet of others, in each meaning of "work".

"600,000 H100-equivalents" has no single meaning, so each has its own row with its source and its band:

bf16-peak          dense 16-bit matrix rate of the catalogue
fp8-peak           dense FP8 matrix rate; an accelerator without FP8 counts with its 16-bit rate
measured-training  tokens/s per accelerator of the same model in the same release of the same software, as published;
                   in 16 bits on both sides, and in FP8 where the accelerator has it
measured-serving   output tokens/s per accelerator of the calibrated serving model, on a stated model and load
memory-bandwidth   bandwidth of the device memory: the bound of decoding at small batches
"""

import csv
import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from optimizer.catalog import Catalog, load_catalog
from optimizer.catalog.rows import Accelerator

__all__ = ["MEANINGS", "Equivalent", "Ratio", "equivalents"]

MEANINGS: Final = ("bf16-peak", "fp8-peak", "measured-training", "measured-serving", "memory-bandwidth")

_PAIRS: Final = Path(__file__).parent / "data" / "training_pairs.csv"
#: The two settings of a measured ratio: like for like, and what each would really run in.
_VARIANTS: Final = (("16 bits on both sides", ("bf16",)), ("FP8 where it can", ("bf16", "fp8")))

_PUBLISHED: Final = "published step times, matched by software and model"

#: Reference of ``measured-serving``: a dense model of 70 billion parameters on eight accelerators, 64 requests in
#: flight of 1,024 tokens in and 256 out, a chat load of the packaged serving points.
SERVED_MODEL: Final = "Llama-3.1-70B"
_WIDTH, _IN_FLIGHT, _INPUT, _OUTPUT = 8, 64, 1024, 256


@dataclass(frozen=True, slots=True)
class Ratio:
    """One accelerator of a type in units of another: value and band; None where nothing was measured or predicted.

    ``low`` and ``high``: 10 % and 90 % of the matched published rows (training), the 80 % band of the prediction
    (serving), or the value itself (peaks, which are exact by definition). ``basis`` says what stands behind it.
    """

    accelerator: str
    count: float
    value: float | None
    low: float | None
    high: float | None
    basis: str


@dataclass(frozen=True, slots=True)
class Equivalent:
    """A fleet in units of ``to`` in one meaning; None where a ratio is missing."""

    meaning: str
    variant: str
    to: str
    ratios: tuple[Ratio, ...]
    equivalents: float | None
    low: float | None
    high: float | None
    source: str

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def equivalents(
    fleet: Mapping[str, float], to: str, by: Iterable[str] = MEANINGS, catalog: Catalog | None = None
) -> tuple[Equivalent, ...]:
    """The fleet (accelerator -> count) in units of ``to``, a row a meaning and variant.

    Names are catalogue ids or aliases. Raises optimizer.catalog.names.UnknownName, or ValueError for a meaning that
    is not in ``MEANINGS``.
    """
    catalog = catalog or load_catalog()
    unit = catalog.accelerators[catalog.resolve_accelerator(to)]
    rows = [(catalog.accelerators[catalog.resolve_accelerator(name)], count) for name, count in fleet.items()]
    found: list[Equivalent] = []
    for meaning in by:
        if meaning not in MEANINGS:
            raise ValueError(f"{meaning}: must be one of {', '.join(MEANINGS)}")
        if meaning == "measured-training":
            for variant, formats in _VARIANTS:
                ratios = [_trained(row, count, unit, formats) for row, count in rows]
                found.append(
                    _sum(meaning, variant, unit, ratios, "published step times, matched by software and model")
                )
        elif meaning == "measured-serving":
            for variant, formats in _VARIANTS:
                ratios = [_served(row, count, unit, formats, catalog) for row, count in rows]
                load = f"{SERVED_MODEL}, TP {_WIDTH}, {_IN_FLIGHT} requests in flight"
                lengths = f"{_INPUT:,} tokens in, {_OUTPUT} out"
                found.append(_sum(meaning, variant, unit, ratios, f"calibrated serving model: {load}, {lengths}"))
        else:
            variant, ratios = _catalogue(meaning, rows, unit)
            found.append(_sum(meaning, variant, unit, ratios, "catalogue"))
    return tuple(found)


def _sum(meaning: str, variant: str, unit: Accelerator, ratios: list[Ratio], source: str) -> Equivalent:
    """Sum over the fleet; bands add at their ends, as errors of one method go the same way."""

    def total(name: str) -> float | None:
        values = [getattr(one, name) for one in ratios]
        if any(value is None for value in values):
            return None
        return math.fsum(one.count * value for one, value in zip(ratios, values, strict=True))

    return Equivalent(meaning, variant, unit.id, tuple(ratios), total("value"), total("low"), total("high"), source)


def _catalogue(meaning: str, rows: list[tuple[Accelerator, float]], unit: Accelerator) -> tuple[str, list[Ratio]]:
    def figure(row: Accelerator) -> float:
        if meaning == "memory-bandwidth":
            return row.memory_bandwidth_gb_s
        return row.fp8_tflops or row.fp16_tflops if meaning == "fp8-peak" else row.fp16_tflops

    word, variant = ("GB/s", "") if meaning == "memory-bandwidth" else ("TFLOP/s dense", "")
    if meaning == "fp8-peak":
        without = sorted({row.id for row in (*(one for one, _ in rows), unit) if row.fp8_tflops is None})
        variant = f"{', '.join(without)} in 16 bits: no FP8" if without else ""
    ratios = []
    for row, count in rows:
        value = figure(row) / figure(unit)
        basis = f"{figure(row):,.0f} against {figure(unit):,.0f} {word}; {row.source}"
        ratios.append(Ratio(row.id, count, value, value, value, basis))
    return variant, ratios


@cache
def _measured() -> dict[tuple[str, str, str], dict[tuple[str, str], float]]:
    """(software, model, sequence) -> (accelerator, format) -> tokens/s per accelerator."""
    groups: dict[tuple[str, str, str], dict[tuple[str, str], float]] = {}
    with _PAIRS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            key = (row["stack"], row["model"], row["sequence_tokens"])
            speed = float(row["tokens_per_s_per_accelerator"])
            groups.setdefault(key, {})[row["accelerator"], row["precision"]] = speed
    return groups


Node = tuple[str, str]


def _direct(one: Node, other: Node) -> list[tuple[float, str]]:
    """(ratio, software) of each model that one release ran on both (accelerator, format)s."""
    return [
        (speeds[one] / speeds[other], stack)
        for (stack, _, _), speeds in _measured().items()
        if one in speeds and other in speeds
    ]


def _trained(row: Accelerator, count: float, unit: Accelerator, formats: tuple[str, ...]) -> Ratio:
    """Median and 10 % to 90 % of the matched rows, direct or by way of one (accelerator, format) between.

    Of several ways the one with most rows on its thinner link is taken; of a way with two links every product of
    their ratios counts as a row, so the band of a chain is wide.
    """
    one, other = _node(row, formats), _node(unit, formats)
    if one == other:
        return Ratio(row.id, count, 1.0, 1.0, 1.0, "itself")
    ways: list[tuple[int, list[float], str]] = []
    direct = _direct(one, other)
    if direct:
        words = f"{len(direct)} matched models and lengths of {_releases(direct)}"
        ways.append((len(direct), [value for value, _ in direct], words))
    nodes = {node for speeds in _measured().values() for node in speeds}
    for middle in sorted(nodes - {one, other}):
        first, second = _direct(one, middle), _direct(middle, other)
        if first and second:
            words = f"by way of {' '.join(middle)}: {len(first)} rows of {_releases(first)}, {len(second)} of "
            products = [a * b for a, _ in first for b, _ in second]
            ways.append((min(len(first), len(second)), products, words + _releases(second)))
    if not ways:
        return Ratio(row.id, count, None, None, None, "no software was published on both in this format")
    _, values, words = max(ways, key=lambda way: way[0])
    values.sort()
    words = f"{' '.join(one)} over {' '.join(other)}: {words}"
    return Ratio(row.id, count, statistics.median(values), _quantile(values, 0.1), _quantile(values, 0.9), words)


def _node(row: Accelerator, formats: tuple[str, ...]) -> Node:
    return row.id, "fp8" if "fp8" in formats and row.fp8_tflops is not None else "bf16"


def _releases(rows: list[tuple[float, str]]) -> str:
    """The software behind some rows, without its releases."""
    return ", ".join(sorted({stack.split(" 2")[0] for _, stack in rows}))


def _quantile(rising: list[float], share: float) -> float:
    place = share * (len(rising) - 1)
    low = math.floor(place)
    high = min(low + 1, len(rising) - 1)
    return rising[low] + (rising[high] - rising[low]) * (place - low)


def _served(row: Accelerator, count: float, unit: Accelerator, formats: tuple[str, ...], catalog: Catalog) -> Ratio:
    from optimizer.calibration.estimate import Estimate, estimate

    def best(one: Accelerator) -> Estimate | None:
        usable = formats if one.fp8_tflops is not None else formats[:1]
        tries = [
            estimate(
                model=SERVED_MODEL,
                accelerator=one.id,
                precision=form,
                concurrency=_IN_FLIGHT,
                input_tokens=_INPUT,
                output_tokens=_OUTPUT,
                tensor_parallel=_WIDTH,
                catalog=catalog,
            )
            for form in usable
        ]
        started = [found for found in tries if found.starts]
        return max(started, key=lambda found: found.values["output_tokens_per_s"], default=None)

    mine, other = best(row), best(unit)
    if row.id == unit.id:
        return Ratio(row.id, count, 1.0, 1.0, 1.0, "itself")
    if mine is None or other is None:
        lacking = row.id if mine is None else unit.id
        return Ratio(
            row.id, count, None, None, None, f"{SERVED_MODEL} does not start on eight {lacking} in this format"
        )
    name = "output_tokens_per_s"
    value = mine.values[name] / other.values[name]

    def spread(end: int) -> float:
        # Errors of two predictions, taken as independent: half-widths add in quadrature on a log scale.
        a, b = (math.log(one.bands[name][place] / one.values[name]) for one, place in ((mine, end), (other, 1 - end)))
        return math.copysign(math.hypot(a, b), -1.0 if end == 0 else 1.0)

    words = f"evidence: {row.id} {mine.evidence}, {unit.id} {other.evidence}"
    return Ratio(row.id, count, value, value * math.exp(spread(0)), value * math.exp(spread(1)), words)
