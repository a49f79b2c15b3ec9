"""docs/training.md, made from the packaged calibration and its held-out predictions."""

import csv
import textwrap
from collections.abc import Callable
from importlib import resources

import numpy as np

from optimizer.calibration.training.runs import BANDS, in_band, left_out, read_runs
from optimizer.catalog import load_catalog
from optimizer.performance.training.bands import EVIDENCE, KINDS, load_bands
from optimizer.performance.training.constants import LEVELS, NAMES, load_calibration, resource
from tests.calibration.training.errors import COLUMNS, Row, errors, every, held_out, is_dense, is_fit, is_moe

_HEAD = """# Training: step time, memory, whole runs

Generated from the packaged rows; `pytest tests/docs --update` writes it again. The model stands in
`optimizer/performance/training`, its fit in `optimizer/calibration/training`. `optimize validate --kind training
steps.csv -o out.csv` predicts a table of steps, `optimize calibrate steps.csv -o own.json` fits the planner's own.

## The step

Layers L of hidden width h, a attention heads, vocabulary V, s tokens a sequence, B sequences a step, b a micro-batch;
tensor parallel t, pipeline p with v virtual stages, data d, context c, expert e; m = B/(d b) micro-batches, n = b s/c
tokens of one. On every accelerator, forward and backward, in s a layer and micro-batch:

| part | formula |
| --- | --- |
| matrix products | 6 n W/t [1/(F share) + k (1/n + 1/h + t/2 (1/mlp width + 1/attention width))/H] |
| routed experts | the same with n/t tokens, active weights, n/t e k/E tokens an expert; root of both terms' squares |
| attention | 6 n heads (key + value width) s/2 /(t F16 share) (1 + s0/s); not fused: all pairs, scores written |
| elementwise kernels | passes x 2 n h/H (/t with sequence parallelism); conversions; scans; all FP32 gradients |
| tensor parallelism | exposed share x 4 (t-1)/t 2 n h/link (6 with full recomputation) |
| context parallelism | exposed share x 3 (c-1)/c b s 2 key-value width/t /link |
| expert parallelism | exposed share x 4 n/t h 2 [k inside the scale-up domain, distinct groups outside]/link; below |
| fixed loss, host | an overhead a layer; never less than the host needs to launch (sixth-power mean of both) |

W: weights of a layer; F, F16: peaks of the format and of 16 bit, scaled by board power over peak; H: memory rate.
Interleaved stages overlap the experts' traffic across domains, so that less of it shows. Attention was not fused
before 2023, and in NVIDIA's line until mid 2025 not on Blackwell where values are narrower than queries (latent
attention). Full recomputation multiplies the forward work by 4/3, one of every second product by 7/6. A stage is
ceil(L/pv) v layers, the last one with the head unless it has layers to spare. A step is

    m x slowest stage + (p - 1)/v x mean stage + data-parallel traffic that shows + optimizer's update + a loss,

times stragglers (a loss a factor e of accelerators) and the loss of a generation's first software. Gradients (4 B a
parameter) hide behind the last backward pass, gathered weights (2 B) behind the first forward one, and with
interleaved stages behind (v - 1)/v of p micro-batches; hidden traffic costs a share all the same. FSDP moves 8 B a
parameter and micro-batch (once a step with a pipeline) and joins the pipeline's time as a fourth-power mean. Sources:
Narayanan et al. 2021 (bubble, FLOP), Korthikanti et al. 2022 (traffic, memory), Rajbhandari et al. 2020 (ZeRO), the
FlashAttention papers (shares of attention).

On top stand *effects*: logarithms that measured stacks, lines of software, models, configurations (a model on an
accelerator in a format) and runs (a configuration under a stack) deviate by, drawn towards 0. What nobody measured has
none; a stack of no known line gets the mean loss of such lines. The effect of a run is what one measured step teaches
about the other sizes of the same run; without it the miss of one stack would be told to all others that run the model.

## FLOP conventions

`6nd`, `8nd`: per active parameter, without and with recomputation. `full`: 6 x what is multiplied (head included) +
attention over all pairs. `causal`: half of the pairs. `hardware_full`: `full` with the layers' forward pass again. A
table's column `predicted_tflops_per_gpu` is in the row's own convention; plans use `causal`.

## Memory

States by ZeRO stage (B a parameter: weights, gradients, optimizer): `adam_bf16_gradients` 2 + 2 + 12, `adam` 2 + 4 +
12, `adam_two_gradients` 2 + 6 + 12, `adam_bf16_moments` 2 + 4 + 8, `adam_8bit` 2 + 2 + 6, `adafactor` 2 + 2 + 4.1,
`muon` 2 + 4 + 8 (`adam_8bit` also: 16-bit moments with remainders for masters). Activations after Korthikanti et al.,
times 1 + (p - 1)/(p v) when interleaved; logits 6 B an element, 12 where the loss is not one kernel (2021-22,
torchtitan); 10 % for the allocator; 3 GiB fixed. The eight published activation totals of that paper are met within 0.1
%, and all 18 published peaks (BigScience, torchtitan) within 25 %. `StepPrediction.fits` compares this sum with the
accelerator. With a recomputation, a ZeRO stage and an optimizer's state that an instance may choose, it accepts every
published layout; with what tables state of these it does not, for runs stand at the edge of memory with means that
tables do not tell. So `validate` says `does_not_fit` only where nothing can make a layout fit (`can_run`): 8-bit
moments, weights in the products' format, everything recomputed or sent to the host. Every published layout passes.

## What tables do not state

A row needs `gpu` and a model (shape, known name, or `params_b`). Else: `gpus` 256; `seq_len` 4096; `global_batch` 16
a GPU; `micro_batch` 4 without a pipeline and 1 with one; `vpp` chunks of two layers (1 in other software than
NVIDIA's); `zero` 1; `recompute` none; `ep` of fully sharded experts the largest that divides; no layout at all: the
fastest that fits. Each assumption stands in `reason`.

"""


def _percent(values: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> str:
    return f"{100 * values.mean():.1f} / {100 * np.median(values):.1f}" if values.size else "-"


def _of(column: str, value: str, kind: str) -> Callable[[Row], bool]:
    return lambda row: row[column] == value and row["kind"] == kind


def _errors() -> list[str]:
    lines = [
        "## How far steps are off",
        "",
        f"Absolute error of the step in per cent, mean / median, of {len(held_out())} published steps.",
        f"{sum(map(is_fit, held_out()))} of them are tuned dense layouts, as a planner's recipe would be.",
        "",
        "| left out | tuned dense | dense | mixtures | all |",
        "| --- | --- | --- | --- | --- |",
    ]
    columns = {**COLUMNS, "one stack, one other row of it known": "one_row_error"}
    for name, column in columns.items():
        cells = " | ".join(_percent(errors(column, chosen)) for chosen in (is_fit, is_dense, is_moe, every))
        lines.append(f"| {name} | {cells} |")
    lines += ["", "By stack, left out as a whole:", "", "| stack | kind | rows | left out | one row known |"]
    lines.append("| --- | --- | --- | --- | --- |")
    groups = sorted({(row["stack"], row["kind"]) for row in held_out()})
    for stack, kind in groups:
        chosen = [row for row in held_out() if (row["stack"], row["kind"]) == (stack, kind)]
        blind = errors("without_stack_s", _of("stack", stack, kind))
        known = errors("one_row_error", _of("stack", stack, kind))
        lines.append(f"| {stack} | {kind} | {len(chosen)} | {_percent(blind)} | {_percent(known)} |")
    lines += [
        "",
        "By accelerator, in the sample and with the stack left out:",
        "",
        "| accelerator | kind | rows | in sample | left out |",
    ]
    lines.append("| --- | --- | --- | --- | --- |")
    for accelerator, kind in sorted({(row["accelerator"], row["kind"]) for row in held_out()}):
        seen = errors("in_sample_s", _of("accelerator", accelerator, kind))
        blind = errors("without_stack_s", _of("accelerator", accelerator, kind))
        lines.append(f"| {accelerator} | {kind} | {seen.size} | {_percent(seen)} | {_percent(blind)} |")
    return lines


def _bands() -> list[str]:
    bands = load_bands()
    lines = [
        "",
        "## Bands",
        "",
        "Quantiles of measured over predicted, by what stands behind a prediction: steps of this stack, of this",
        "accelerator and format, or neither. Layouts whose predictions differ by less than the band are ties.",
        "",
        "| kind | evidence | 10 % | 50 % | 90 % |",
        "| --- | --- | --- | --- | --- |",
    ]
    for kind in KINDS:
        for evidence in EVIDENCE:
            cells = " | ".join(f"{bands.multiplier(kind, evidence, level):.2f}" for level in (0.1, 0.5, 0.9))
            lines.append(f"| {kind} | {evidence} | {cells} |")
    return lines


def _constants() -> list[str]:
    table, factors = resource("training_factors.json")["factors"], load_calibration().factors
    effects = load_calibration().effects
    counts = ", ".join(f"{len(effects[level])} of a {level}" for level in LEVELS)
    lines = [
        "",
        "## Constants",
        "",
        "Before: from the source named in `training_factors.json`, with the spread by which it may move (standard",
        "deviation of its logarithm). Fitted: `python -m optimizer.calibration.training.packaged`. Effects beside:",
        f"{counts}.",
        "",
        "| constant | unit | before | spread | fitted | meaning |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name in NAMES:
        row = table[name]
        fitted = getattr(factors, name)
        lines.append(
            f"| {name} | {row['unit']} | {row['value']:g} | {row['width']:g} | {fitted:.3g} | {row['meaning']} |"
        )
    return lines


def _runs() -> list[str]:
    runs = read_runs(load_catalog(), load_calibration())
    miss = np.log([run.measured_days for run in runs]) - left_out(runs)
    off = np.abs(np.expm1(-miss))
    blind = np.abs(np.expm1(left_out(runs, blind=True) - np.log([run.measured_days for run in runs])))
    reported = np.array([run.group == "reported" for run in runs])
    table = resource("training_production.json")
    edges = {
        name: "-".join(f"{np.exp(np.interp(level, table['levels'], values)):.2f}" for level in (0.1, 0.9))
        for name, values in table["log_error"].items()
    }
    inside = {name: f"{sum(found)} of {len(found)}" for name, found in in_band(runs, BANDS).items()}
    text = (
        "Days = steps x step x production factor / goodput. goodput = 1 - w/D - (u + D/2)/M: w seconds that a "
        "checkpoint blocks, D between checkpoints (best sqrt(2 w M)), u to detect and restart, M hours between an "
        "accelerator's failures / accelerators. With r fault-tolerant replicas a failure stops one of r for u, no work "
        "lost. "
        "Without enough spare nodes the job waits for repair. The production factor is what published runs took over "
        "that; where a run published the utilisation of its own steps, that stands for the layout (group `reported`). "
        f"Left out one at a time, days of {len(runs)} runs are off by {100 * np.median(off):.0f} % in the median "
        f"({100 * np.median(off[reported]):.0f} % with a reported utilisation, {100 * np.median(off[~reported]):.0f} % "
        f"without; {100 * np.median(blind):.0f} % if none had reported it). The 80 % band is {edges['dense']} of the "
        f"prediction for dense models, {edges['moe']} for mixtures, {edges['reported']} with a reported utilisation. "
        "Where factors and band are both made without the run that is asked for, it holds "
        f"{inside['dense']} dense runs, {inside['moe']} mixtures and {inside['reported']} with a reported utilisation: "
        "ranks are taken as for one more run than there is, and the few mixtures have Student's t. "
        "Factors by generation and kind are against the fastest layout over all runs, those with a "
        "reported utilisation too."
    )
    lines = ["", "## Whole runs", "", *textwrap.wrap(text, 120), ""]
    lines += ["| like | production factor |", "| --- | --- |"]
    lines += [f"| {name} | {np.exp(value):.2f} |" for name, value in table["log_factor"].items()]
    lines += ["", "| run | accelerators | days | predicted |", "| --- | --- | --- | --- |"]
    for run, error in zip(runs, miss, strict=True):
        predicted = run.measured_days / np.exp(error)
        lines.append(f"| {run.model} | {run.accelerators} | {run.measured_days:.1f} | {predicted:.1f} |")
    return lines


def _sources() -> list[str]:
    path = resources.files("optimizer.calibration").joinpath("data/training_steps.csv")
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    addresses = sorted({row["source_url"] for row in rows})
    counted = [f"- {one} ({sum(row['source_url'] == one for row in rows)})" for one in addresses]
    return ["", "## Sources of the steps", "", *counted]


def page() -> str:
    """The whole page."""
    lines = [*_errors(), *_bands(), *_runs(), *_constants(), *_sources()]
    return _HEAD + "\n".join(lines) + "\n"
