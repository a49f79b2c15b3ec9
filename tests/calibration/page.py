"""docs/validation.md and its plots, made from the packaged points and their held-out predictions."""

import textwrap
from collections.abc import Callable, Mapping

import numpy as np

from optimizer.calibration.crossvalidation import METRICS, Held, errors_of, seen_by
from optimizer.calibration.decisions import decide, decision_groups
from optimizer.calibration.fit import Data
from optimizer.calibration.held_out import packaged_held
from optimizer.calibration.inference import packaged_drafts
from optimizer.calibration.packaged import packaged_data, packaged_parameters
from optimizer.calibration.parameters import MEASURED_ENGINES, serving_parameters
from optimizer.calibration.points import Point
from optimizer.calibration.throughput import packaged_throughput
from optimizer.calibration.validation import flight_of
from optimizer.catalog import load_catalog
from optimizer.performance.bands import load_bands
from optimizer.performance.factors import AXES, ENGINES, load_factors

_HEAD = """# Validation: how far predictions are off

Generated from the packaged points; `pytest tests/docs --update` writes it again. Every figure is the absolute relative
error in per cent, median / mean. TPOT is the time per output token after the first, TTFT the time to the first,
tokens/s
the output rate of the whole deployment, concurrency x O / (TTFT + (O - 1) TPOT) on both sides.

The points: 1,935 public measurements on H100, H200, B200 and GB200 (InferenceX benchmark and NVIDIA's own runs, as
collected by aiconfigurator, Apache-2.0), 2025-07 to 2026-04. They scatter themselves: across versions of one engine the
same configuration differs by 12 % in the median and 64 % at the 90th percentile.

How points were held out:

- *in sample*: by the packaged constants, fitted to all points.
- *group*: ten folds of configuration groups (model, accelerator, precision, engine, tensor and attention-data parallel,
  input length); all constants refitted in each fold.
- *model*: each architecture left out in turn. DeepSeek-V3 and R1 are one.
- *accelerator*: each accelerator left out in turn.

"""

_MODEL = """
## What is fitted

A step of an engine is the sum of reading and multiplying dense weights (joined as the root of squares), the same for
the experts that its tokens touch, attention over every sequence's cache, all-reduces or expert exchange, and the time
between kernels; other requests' prompts are worked on in the same steps. A first token takes its own prompt (at least
the time in which the host launches its kernels), half a step, the prompts that came with it, and a part of all
others' prompts: those of the first wave of a run.

{shared} constants belong to accelerators, formats and kernels, {engine} to each engine: overhead a step, a layer, an
expert layer, a sequence and a request, rates of expert, attention, all-reduce and prompt kernels against the common
ones, launch time of prompts, queue, and growth of overheads with the age of the release. None belongs to a model.
What paid on points that the fit had not seen, in falling order: overheads of expert layers in proportion to the
experts of a token, with further kernels for latent attention, block scales and weight-only formats; launch-bound
prompts; the age of the release; moving tokens to their experts as memory traffic; a part of the queue that does not
grow with the load where requests are equally long. What did not: a queue by mean-value analysis, an overhead of the
generation, imbalance of experts as a free constant.

"""

_BANDS = """## Bands and confidence

The bands of plans, `estimate` and `validate` are quantiles of log(measured / predicted) of held-out points, by engine
and by what stands behind a prediction: points of the same model and generation (held out by group), of other
models only
(by model), of other generations only (by accelerator), or nothing of that generation at all (1.5 times the last). They
are model error, not percentiles over requests. Half-width of the 80 % band, in per cent:

"""

_DECISIONS = """
`targets.confidence` multiplies predicted times with the band's quantile. What that does to decisions: in
{groups} groups
that differ in deployment and load alone, the point with most predicted tokens/s per accelerator within a target
(TPOT 10,
15, 20, 30, 50 ms x TTFT 500, 2,000 ms) is picked; *valid*: it meets the target when measured; *lost*: tokens/s
below the
best measured point that does; *no pick*: nothing was predicted to meet a target that something meets.

| confidence | cases | valid | lost | no pick |
| --- | --- | --- | --- | --- |
"""

_OLDER = """
## Older generations: offline throughput

Published throughput of A100, L40S and MI300X, rows of quality A (audited, vendor) and B (independent),
2023-2025, engines
of their day; all requests queued at once or one static batch. Efficiencies of these generations are fitted to the rows
with a modelled engine, everything else comes from the online points. Median error of output tokens/s, in sample:

| accelerator | rows | vLLM, SGLang, TensorRT-LLM | all engines |
| --- | --- | --- | --- |
"""

_TAIL = """
## What was inferred

- *Unlabelled precision* is 16 bits: time per token at small batches is 1.5-1.8 times the 16-bit weight stream,
  three times
  the 8-bit one.
- *Lengths*: the public benchmark draws 0.8-1.0 of the nominal length; its pairs of lengths count 0.9 of it. Runs with
  fixed lengths keep requests in step, so two prompts more wait together.
- *Multi-token prediction*: DeepSeek on TensorRT-LLM ran with it in {drafts} campaigns (engine, version, day).
  Without it
  the median point of each of them is off by 30-40 %, with it by less than 10 %; in all other campaigns it is
  the other way.
- *Cache*: 8 bits where weights are 8 or 4 bits, else 16.

## What is not covered

- V100, Gaudi 3, MI355X: no point that counts; constants are assumed or carried over, bands are wide.
- A100, L40S, MI300X: no latency under load, only throughput of engines of 2023-2025.
- B300, GB300, GB200: as Blackwell; two GB200 points.
- Grouped expert products have a rate by the width of their weights. That of 16 bits rests on 35 online points of one
  model of narrow experts; wide 16-bit experts on A100, which the fit of shared constants never saw, are predicted
  within 7 % by it (median of the ratio under TensorRT-LLM 0.93). Dense 70B models over PCIe stay 10-50 % too fast.
- MI300X with the vLLM of 2024 (0.6, static batches, quality C, not in the table above): predicted two to five times
  too fast. The same card and month give three times as much in audited runs with tuned products, so it is software:
  no constant of the card or of the engine's age can tell them apart.
- Cards known for validation alone (`availability: past`): A800, H20-141GB, RTX A6000, RTX 6000 Ada, RTX 3090, 4090 and
  5090, V100S and Gaudi 2 take the constants of their generation (Gaudi 2 those of Gaudi 3). Gaudi 2, 235 static
  batches that no constant was fitted to: 8 % median. MI250 has no generation here and stays unknown.
- A load given as a request rate is predicted at the number in flight that the rate keeps there (Little's law); where
  more arrives than is served, TTFT grows with the run and is left out.
- Requests beyond an engine's sequence slots: 26 points waited seconds for a slot whose number nobody wrote
  down. TTFT there
  is off by any factor.
- Two pools (prefill and decode apart), prefix-cache hits and speculation outside DeepSeek rest on the same
  physics without
  a point of their own.
- Percentiles over requests: points are means or medians as published.
"""


def _cell(data: Data, held: Held, metric: str, rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> str:
    errors = errors_of(data, held, metric, rows)
    return f"{100 * errors.median:.1f} / {100 * errors.mean:.1f}"


def _tables(data: Data, held: Mapping[str, Held]) -> str:
    parts = ["## Over all points\n", "| held out | TPOT | TTFT | tokens/s |", "| --- | --- | --- | --- |"]
    every = np.ones(len(data.points), dtype=np.bool_)
    for way, values in held.items():
        parts.append(f"| {way} | " + " | ".join(_cell(data, values, metric, every) for metric in METRICS) + " |")
    kinds: dict[str, Callable[[Point], str]] = {
        "accelerator": lambda point: point.accelerator,
        "model": lambda point: point.model,
        "engine": lambda point: point.engine,
        "precision": lambda point: point.precision,
    }
    for kind, key in kinds.items():
        names = np.array([key(point) for point in data.points])
        parts += [
            "",
            f"## By {kind}\n",
            "| | points | held out | TPOT | TTFT | tokens/s |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for name in sorted(set(names)):
            rows = names == name
            for place, (way, values) in enumerate(held.items()):
                head = f"| {name} | {rows.sum()} " if place == 0 else "| | "
                cells = " | ".join(_cell(data, values, metric, rows) for metric in METRICS)
                parts.append(f"{head}| {way} | {cells} |")
    return "\n".join(parts) + "\n"


def _bands() -> str:
    bands = load_bands()
    lines = ["| engine | behind it | TPOT | TTFT | tokens/s |", "| --- | --- | --- | --- | --- |"]
    for engine in ("vllm", "sglang", "trtllm", "generic"):
        for code, evidence in enumerate(("configuration", "model", "accelerator", "none")):
            widths = []
            for metric in METRICS:
                low, high = (float(bands.multiplier(metric, engine, code, level)) for level in (0.1, 0.9))
                widths.append(f"{100 * (np.sqrt(high / low) - 1):.0f}")
            lines.append(f"| {engine} | {evidence} | " + " | ".join(widths) + " |")
    return "\n".join(lines) + "\n"


def _decisions(data: Data, held: Held) -> str:
    bands, text = load_bands(), _DECISIONS.format(groups=len(decision_groups(data)))
    for level in (0.5, 0.8, 0.9):
        tpot, ttft = (
            np.array([float(bands.multiplier(metric, p.engine, 0, level)) for p in data.points]) if level > 0.5 else 1.0
            for metric in METRICS[:2]
        )
        d = decide(data, held, tpot, ttft)
        text += (
            f"| {level} | {d.cases} | {100 * d.valid:.1f} % | {100 * d.lost:.1f} % | {100 * d.without_pick:.1f} % |\n"
        )
    return text


def _older() -> str:
    flight = flight_of(packaged_throughput(), load_catalog(), load_factors())
    error = np.abs(flight.rate(load_factors()) / flight.measured_rate - 1.0)
    cards = np.array([flight.points[row].accelerator for row in flight.able])
    modelled = np.array([flight.points[row].engine != "generic" for row in flight.able])
    text = _OLDER
    for card in sorted(set(cards)):
        rows = cards == card
        own = f"{100 * np.median(error[rows & modelled]):.1f}"
        text += f"| {card} | {rows.sum()} | {own} | {100 * np.median(error[rows]):.1f} |\n"
    return text


_COLOURS = {"vllm": "#1f77b4", "sglang": "#d9822b", "trtllm": "#2e8b57"}
_SIDE, _EDGE = 420, 46


def scatter(data: Data, held: Held, metric: str) -> str:
    """Measured against predicted, both logarithmic, one dot a point, as SVG."""
    seen, predicted = np.log10(getattr(data, metric)), np.log10(getattr(held, metric))
    low, high = np.floor(min(seen.min(), predicted.min())), np.ceil(np.quantile(seen, 0.995))
    span = _SIDE - 2 * _EDGE

    def place(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.asarray(np.clip((values - low) / (high - low), 0.0, 1.0) * span + _EDGE, dtype=np.float64)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_SIDE}" height="{_SIDE}" font-size="11">',
        f'<rect width="{_SIDE}" height="{_SIDE}" fill="white"/>',
        f'<path d="M{_EDGE} {_SIDE - _EDGE}L{_SIDE - _EDGE} {_EDGE}" stroke="#888"/>',
        f'<rect x="{_EDGE}" y="{_EDGE}" width="{span}" height="{span}" fill="none" stroke="#444"/>',
        f'<text x="{_SIDE / 2}" y="{_SIDE - 10}" text-anchor="middle">measured {metric}</text>',
        f'<text x="14" y="{_SIDE / 2}" transform="rotate(-90 14 {_SIDE / 2})">predicted, held out</text>',
    ]
    for power in range(int(low), int(high) + 1):
        at = float(place(np.array([float(power)]))[0])
        lines.append(f'<text x="{at:.0f}" y="{_SIDE - _EDGE + 14}" text-anchor="middle">{10.0**power:g}</text>')
        lines.append(f'<text x="{_EDGE - 4}" y="{_SIDE - at + 4:.0f}" text-anchor="end">{10.0**power:g}</text>')
    for number, (engine, colour) in enumerate(_COLOURS.items()):
        lines.append(f'<text x="{_EDGE + 8}" y="{_EDGE + 16 + 14 * number}" fill="{colour}">{engine}</text>')
        rows = np.array([point.engine == engine for point in data.points])
        dots = "".join(
            f"M{x:.0f} {_SIDE - y:.0f}h0" for x, y in zip(place(seen[rows]), place(predicted[rows]), strict=True)
        )
        lines.append(
            f'<path d="{dots}" stroke="{colour}" stroke-width="3" stroke-linecap="round" stroke-opacity="0.4"/>'
        )
    return "\n".join([*lines, "</svg>"]) + "\n"


def _wrapped(text: str) -> str:
    """Paragraphs and list items filled to 120 columns; tables, headings and pictures as they are."""
    lines: list[str] = []
    for line in text.split("\n"):
        plain = line and line[0] not in "|#!"
        goes_on = plain and lines and lines[-1] and lines[-1][0] not in "|#!" and not line.startswith("- ")
        if goes_on:
            lines[-1] += " " + line.strip()
        else:
            lines.append(line)
    filled = [
        textwrap.fill(line, 120, subsequent_indent="  " if line.startswith("- ") else "", break_on_hyphens=False)
        if line and line[0] not in "|#!"
        else line
        for line in lines
    ]
    return "\n".join(filled)


def pages() -> dict[str, str]:
    """The page and its plots by name."""
    data = packaged_data(load_catalog())
    unseen = packaged_held(data)
    held = {"in sample": seen_by(data, load_factors()), **unseen}
    plots = {f"validation-{metric}.svg": scatter(data, unseen["group"], metric) for metric in METRICS}
    text = _HEAD + _tables(data, held)
    text += "\n## Measured and predicted, held out by group\n\n"
    text += "\n".join(f"![{name}]({name})" for name in plots) + "\n\n"
    own = len([p for p in serving_parameters() if AXES.get(p.factor, ((),))[0] == ENGINES]) // len(MEASURED_ENGINES)
    shared = len(packaged_parameters()) - own * len(MEASURED_ENGINES)
    text += _MODEL.format(shared=shared, engine=own) + _BANDS + _bands() + _decisions(data, unseen["group"]) + _older()
    text += _TAIL.format(drafts=len(packaged_drafts()))
    return {"validation.md": _wrapped(text), **plots}
