"""``optimize explain``: what an error code means, why nothing fits an instance, or why not this choice."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from optimizer.commands import answering, files, progress, talk
from optimizer.commands.interrupt import interruptible
from optimizer.commands.numbers import FiniteRange

if TYPE_CHECKING:
    from optimizer.instance.model import Instance


@click.command()
@click.argument("what", metavar="CODE|INSTANCE")
@click.option(
    "--not",
    "asked",
    metavar="CHOICE|FILE",
    help="Why the plan does not make a choice (accelerator=h100-80gb-sxm,scheme=w8a8-fp8), or is not a proposal.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON in place of the screen.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.option(
    "--time-limit", "time_limit_s", type=FiniteRange(0, min_open=True), metavar="S", help="Stop after S seconds."
)
def explain(what: str, asked: str | None, as_json: bool, quiet: bool, time_limit_s: float | None) -> int:
    """Explain an error code (E-TARGETS-003), why no cluster fits INSTANCE, or why its plan does not make a choice.

    \b
    CHOICE is KEY=VALUE, several with commas, several values with |. Keys:
    accelerator, server_type, scheme, kv_scheme, recovery, cooling, sourcing,
    tensor_parallel (tp), pipeline_parallel (pp), expert_parallel (ep),
    attention_data_parallel (dp), count (accelerators), servers.
    Of runs of training: accelerator, precision, cooling, sourcing, site, method,
    tp, pp, cp, ep, virtual_stages, micro_batch, recompute, zero_stage, count.
    The whole fleet keeps to it. FILE is a proposal or a written plan.
    """
    if re.fullmatch(r"(?i)E-[A-Z]+-[0-9]+", what) and not Path(what).exists():
        if asked is not None:
            raise click.UsageError("--not goes with an instance")
        return _code(what.upper())
    from optimizer.commands.solve import read

    path = Path(what)
    instance = read(path)
    if asked is not None:
        return _why_not(instance, path, asked, as_json=as_json, quiet=quiet, time_limit_s=time_limit_s)
    with interruptible("what was found is told") as stop:
        solved = answering.solve(instance, path, time_limit_s=time_limit_s, stop=stop, quiet=quiet)
    if solved.diagnosis is None:
        talk.data(f"{path}: a cluster meets every limit. `optimize {path}` shows the cheapest.")
        return 0
    talk.data(files.as_json(solved.diagnosis) if as_json else answering.screen(solved))
    return 0


def _why_not(
    instance: "Instance", path: Path, asked: str, *, as_json: bool, quiet: bool, time_limit_s: float | None
) -> int:
    """Say why the plan does not make a choice, or is not a proposal."""
    with (
        answering.missing_libraries_told(),
        interruptible("the answer may be unknown") as asked_to_stop,
        progress.shown("searches", quiet=quiet) as tell,
    ):
        stop = progress.watched(asked_to_stop, tell)
        from optimizer import api

        if "=" not in asked or Path(asked).is_file():
            from optimizer.proposals.reading import read_proposal
            from optimizer.report.evaluation import render as render_evaluation

            resolved = api.resolved(instance, path)
            given = read_proposal(Path(asked), resolved)
            held = api.evaluate(resolved, given, file=asked, time_limit_s=time_limit_s, stop=stop)
            text = files.as_json(held) if as_json else render_evaluation(held, talk.width())
        else:
            from optimizer.report.whynot import render

            found = api.why_not(instance, asked, instance_path=path, time_limit_s=time_limit_s, stop=stop)
            text = files.as_json(found) if as_json else render(found, talk.width())
    talk.data(text)
    return 0


def _code(name: str) -> int:
    from optimizer.errors import CODES
    from optimizer.instance.problems import nearest

    code = CODES.get(name)
    if code is None:
        near = nearest(name, CODES)
        hint = f" Did you mean {near}?" if near else ""
        raise click.UsageError(f"there is no code {name}.{hint}")
    talk.data(f"{code.code}\n\n  {code.meaning}\n  {code.remedy}")
    return 0
