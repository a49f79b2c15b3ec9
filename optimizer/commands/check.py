"""``optimize check``: what an instance says, what would be searched, what was left to defaults."""

import json
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from optimizer.commands import talk
from optimizer.commands.solve import read

if TYPE_CHECKING:
    from optimizer.instance.defaults import DefaultUsed
    from optimizer.instance.model import Instance


@click.command()
@click.argument("instance", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(instance: Path, as_json: bool) -> int:
    """Read INSTANCE; say what would be searched and what was defaulted. Nothing is solved."""
    from optimizer.instance.defaults import defaults_used

    sound = read(instance)
    searched = _searched(sound)
    defaults = defaults_used(sound)
    if as_json:
        found = {
            "name": sound.name,
            "searched": {name: list(values) for name, values in searched.items()},
            "defaults": [one._asdict() for one in defaults],
        }
        talk.data(json.dumps(found, indent=1, ensure_ascii=False))
        return 0
    talk.data(_screen(instance, sound, searched, defaults, talk.width()))
    return 0


def _searched(instance: "Instance") -> Mapping[str, tuple[str, ...]]:
    """Options of each choice, with what an absent list stands for."""
    from optimizer.catalog import load_catalog

    choices, rows, catalog = instance.choices, instance.own_rows(), load_catalog()
    own = {row.id for row in rows.accelerators}
    current = [row.id for row in catalog.accelerators.values() if row.availability == "current" and row.id not in own]
    current += [row.id for row in rows.accelerators if row.availability == "current"]
    offered = [row.id for row in catalog.cooling.values() if row.offered_by_default]
    offered += [row.id for row in rows.cooling if row.offered_by_default and row.id not in catalog.cooling]
    if instance.workload.kind == "training":
        return _searched_for_training(instance, tuple(current), tuple(offered))
    degrees = {
        "tensor parallel": choices.tensor_parallel,
        "pipeline parallel": choices.pipeline_parallel,
        "expert parallel": choices.expert_parallel or ("1", "whole stage"),
        "attention data parallel": choices.attention_data_parallel,
    }
    return {
        "accelerators": choices.accelerators or tuple(current),
        **{name: tuple(map(str, values)) for name, values in degrees.items()},
        "schemes": choices.schemes or tuple(catalog.schemes),
        "KV schemes": choices.kv_schemes,
        "recovery steps": choices.recovery_steps,
        "cooling": choices.cooling or tuple(offered),
        "sourcing": choices.sourcing,
    }


def _searched_for_training(
    instance: "Instance", current: tuple[str, ...], offered: tuple[str, ...]
) -> Mapping[str, tuple[str, ...]]:
    """The same for a workload that trains."""
    from optimizer.instance.training import TrainingWorkload

    workload, choices = instance.workload, instance.choices
    assert isinstance(workload, TrainingWorkload)
    layouts, counts = workload.layouts, workload.accelerator_counts
    degrees = ("tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel", "micro_batch")
    stated = {name: getattr(layouts, name) for name in degrees}
    return {
        "jobs": tuple(one.name for one in workload.all_jobs()),
        "accelerators": choices.accelerators or current,
        "counts": tuple(map(str, counts)) if counts else ("what the deadline needs, and more",),
        "formats": workload.precisions,
        **{
            name.replace("_", " "): tuple(map(str, values)) if values else ("usual",) for name, values in stated.items()
        },
        "recomputation": layouts.recompute,
        "sites": tuple(one.name for one in instance.sites) or ("site",),
        "cooling": choices.cooling or offered,
        "sourcing": choices.sourcing,
    }


def _screen(
    path: Path,
    instance: "Instance",
    searched: Mapping[str, tuple[str, ...]],
    defaults: Iterable["DefaultUsed"],
    width: int,
) -> str:
    lines = [f"{path} · sound · {instance.name}", "", "  Searched"]
    for name, values in searched.items():
        lines += _wrapped(f"    {name:<24}", ", ".join(values), width)
    listed = list(defaults)
    lines += ["", f"  Defaulted ({len(listed)})"]
    for one in listed:
        value = f"{one.value} {one.unit}".strip()
        lines += _wrapped(f"    {one.field}", "", width)
        lines += _wrapped("        ", f"{value}  ({one.source})", width)
    return "\n".join(line.rstrip() for line in lines)


def _wrapped(head: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    ) or [head]
