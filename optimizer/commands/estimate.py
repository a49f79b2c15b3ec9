"""``optimize estimate``: one deployment under one load."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from optimizer.commands import talk
from optimizer.commands.measurements import bad, factors_of
from optimizer.commands.numbers import FiniteRange

if TYPE_CHECKING:
    from optimizer.calibration.estimate import Estimate

_BAR = 36
_BEHIND = {
    "configuration": "points of this model on this generation of accelerators",
    "model": "points of other models on this generation of accelerators",
    "accelerator": "online points of other generations, and offline throughput of this one",
    "none": "points of other generations only: the band is wide",
}


@click.command()
@click.option("--model", required=True, help="Catalogue name or Hugging Face id.")
@click.option("--accelerator", required=True, help="Catalogue id or alias.")
@click.option("--precision", default="bf16", show_default=True, help="bf16, fp8, fp4, int8, int4.")
@click.option("--concurrency", type=FiniteRange(min=1, max=1e6), default=1, show_default=True)
@click.option("--input-tokens", type=FiniteRange(min=1, max=1e8), default=1024, show_default=True)
@click.option("--output-tokens", type=FiniteRange(min=1, max=1e8), default=1024, show_default=True)
@click.option("--tensor-parallel", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--pipeline-parallel", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--expert-parallel", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--attention-data-parallel", type=click.IntRange(min=1), default=1, show_default=True)
@click.option(
    "--engine", type=click.Choice(["generic", "vllm", "sglang", "trtllm"]), default="generic", show_default=True
)
@click.option("--engine-version", default="", help="Such as 0.19.0; the newest known by default.")
@click.option("--kv-bits", type=click.Choice(["16", "8", "4"]), help="Bits of the KV cache.")
@click.option("--prefix-hit-fraction", type=FiniteRange(0, 1), default=0.0, help="Input found in the prefix cache.")
@click.option(
    "--speculative-acceptance", type=FiniteRange(min=0, max=64), default=0.0, help="Draft tokens accepted a step."
)
@click.option(
    "--sequence-slots",
    type=click.IntRange(min=0, max=65_536),
    default=0,
    help="Sequences the engine is told to schedule at once (max_num_seqs); its default otherwise.",
)
@click.option("--calibration", type=click.Path(path_type=Path), help="A file of optimize calibrate.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def estimate(calibration: Path | None, as_json: bool, kv_bits: str | None, **chosen: object) -> int:
    """Predict memory, TTFT, TPOT, tokens/s, power and link traffic of one deployment, with their bands."""
    from optimizer.calibration.estimate import estimate as run

    try:
        found = run(
            kv_bits=None if kv_bits is None else float(kv_bits),
            factors=factors_of(calibration),
            **chosen,  # type: ignore[arg-type]  # click has checked them
        )
    except ValueError as error:
        raise bad("the command line", str(error), "must be known") from None
    talk.data(json.dumps(found.document(), indent=1) if as_json else _screen(found))
    return 0


def _screen(found: "Estimate") -> str:
    lines = ["Starts      yes" if found.starts else "Starts      NO"]
    lines += [f"            {problem}" for problem in found.problems]
    for label, metric, unit in (
        ("TTFT", "ttft_ms", "ms"),
        ("TPOT", "tpot_ms", "ms"),
        ("Tokens", "output_tokens_per_s", "output tokens/s"),
    ):
        low, high = found.bands[metric]
        lines.append(f"{label:<12}{_short(found.values[metric]):>7} {unit}, band {_short(low)} to {_short(high)}")
    lines.append(f"Power       {found.power_kw:>7.2g} kW of {found.accelerators} accelerators with their host, busy")
    lines.append(f"Link        {found.nvlink_gb_s:>7.3g} GB/s one way, of {found.nvlink_limit_gb_s:.3g}")
    lines.append(f"Behind it   {_BEHIND[found.evidence]}")
    lines.append("            bands: 10 % to 90 % quantile of model error, not of requests")
    lines += ["", f"Memory per accelerator, GiB (of {found.accelerator_memory_gib:.1f})"]
    lines += _bars(found.memory_gib, found.memory_total_gib)
    lines.append(f"  {'total':<15}{found.memory_total_gib:>8.2f}")
    lines.append(f"  fits at once: {found.largest_concurrency:,} requests, {found.kv_tokens:,} tokens of cache")
    lines += ["", "Time per token, ms"]
    lines += _bars(found.step_ms, found.values["tpot_ms"])
    return "\n".join(lines)


def _bars(parts: dict[str, float], whole: float) -> list[str]:
    lines = []
    for name, value in parts.items():
        share = value / whole if whole > 0 else 0.0
        lines.append(f"  {name:<15}{value:>8.2f} {share:>5.0%}  {'#' * round(_BAR * share)}".rstrip())
    return lines


def _short(value: float) -> str:
    """Two or three digits: no more than a band allows."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
