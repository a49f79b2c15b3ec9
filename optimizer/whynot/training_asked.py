"""What is asked about of runs: ``accelerator=h100-80gb-sxm,precision=fp8`` as an instance that may do no other."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, get_args

from optimizer.catalog import Catalog
from optimizer.errors import Problem, UsageProblems
from optimizer.instance.choices import Sourcing
from optimizer.instance.known import named_row
from optimizer.instance.model import Instance
from optimizer.instance.problems import nearest
from optimizer.instance.training import Method, Precision, Recompute, TrainingWorkload

#: Keys that name rows of the catalogue: key -> (table, field of choices).
_ROWS: Final = {"accelerator": ("accelerators", "accelerators"), "cooling": ("cooling", "cooling")}
#: Keys with a closed list of words.
_WORDS: Final[dict[str, tuple[str, ...]]] = {
    "sourcing": tuple(one for one in get_args(Sourcing) if one != "spot"),
    "precision": get_args(Precision),
    "method": get_args(Method),
    "recompute": get_args(Recompute),
}
#: Keys that take a degree -> field of ``workload.layouts``.
_DEGREES: Final = {
    "tensor_parallel": "tensor_parallel",
    "pipeline_parallel": "pipeline_parallel",
    "virtual_stages": "virtual_stages",
    "context_parallel": "context_parallel",
    "expert_parallel": "expert_parallel",
    "micro_batch": "micro_batch",
    "zero_stage": "zero_stages",
}
#: Short names that people use.
_SHORT: Final = {
    "tp": "tensor_parallel",
    "pp": "pipeline_parallel",
    "cp": "context_parallel",
    "ep": "expert_parallel",
    "zero": "zero_stage",
    "format": "precision",
    "accelerators": "count",
}
KEYS: Final = (*_ROWS, *_WORDS, *_DEGREES, "site", "count")
_MOST: Final = 10**7


@dataclass(frozen=True, slots=True)
class AskedRun:
    """A choice that is asked about: values by key. ``count`` is accelerators in service of each job."""

    text: str
    values: dict[str, tuple[Any, ...]]

    def forced(self, instance: Instance) -> Instance:
        """The instance that may choose nothing else."""
        workload, values = instance.workload, self.values
        assert isinstance(workload, TrainingWorkload)
        choices = {field: values[key] for key, (_, field) in _ROWS.items() if key in values}
        if "sourcing" in values:
            choices["sourcing"] = values["sourcing"]
        own: dict[str, Any] = {}
        of_jobs: dict[str, Any] = {}
        if "precision" in values:
            own["precisions"] = of_jobs["precisions"] = values["precision"]
        if "count" in values:
            own["accelerator_counts"] = of_jobs["accelerator_counts"] = values["count"]
        if "method" in values:
            own["multi_site"] = workload.multi_site.model_copy(update={"methods": values["method"]})
        layouts = {field: values[key] for key, field in _DEGREES.items() if key in values}
        if "recompute" in values:
            layouts["recompute"] = values["recompute"]
        own["layouts"] = workload.layouts.model_copy(update=layouts)
        own["jobs"] = tuple(one.model_copy(update=of_jobs) for one in workload.jobs)
        update: dict[str, Any] = {"workload": workload.model_copy(update=own)}
        if "site" in values:
            # What is rented stands at no site.
            choices.setdefault("sourcing", ("buy",))
            update["sites"] = tuple(one for one in instance.sites if one.name in values["site"])
            update["wan_links"] = tuple(one for one in instance.wan_links if set(one.between) <= set(values["site"]))
        update["choices"] = instance.choices.model_copy(update=choices)
        return instance.model_copy(update=update)

    def left_out(self, instance: Instance, catalog: Catalog) -> Iterator[tuple[str, str]]:
        """(field, value) of what is asked about and the instance's own choices do not hold."""
        workload, choices = instance.workload, instance.choices
        assert isinstance(workload, TrainingWorkload)
        if choices.accelerators is None:
            accelerators = {key for key, row in catalog.accelerators.items() if row.availability == "current"}
        else:
            accelerators = {catalog.resolve_accelerator(one) for one in choices.accelerators}
        cooling = {key for key, row in catalog.cooling.items() if row.offered_by_default}
        formats = {name for one in workload.all_jobs() for name in one.precisions or ()}
        counts = {count for one in workload.all_jobs() for count in one.accelerator_counts or ()}
        held: dict[str, tuple[str, set[Any] | None]] = {
            "accelerator": ("choices.accelerators", accelerators),
            "cooling": ("choices.cooling", cooling if choices.cooling is None else set(choices.cooling)),
            "sourcing": ("choices.sourcing", set(choices.sourcing)),
            "precision": ("workload.precisions", formats),
            "method": ("workload.multi_site.methods", set(workload.multi_site.methods)),
            "count": ("workload.accelerator_counts", counts or None),
            "recompute": ("workload.layouts.recompute", set(workload.layouts.recompute)),
        }
        for key, field in _DEGREES.items():
            own = getattr(workload.layouts, field)
            held[key] = (f"workload.layouts.{field}", None if own is None else set(own))
        for key, values in self.values.items():
            field, allowed = held.get(key, ("", None))
            yield from ((field, str(one)) for one in values if allowed is not None and one not in allowed)


def read_asked_run(text: str, instance: Instance) -> AskedRun:
    """Read what is asked about: ``KEY=VALUE``, several with commas, several values of one key with ``|``.

    Raises
    ------
    UsageProblems: a key, a name or a number is none; carries every problem.
    """
    problems: list[Problem] = []
    found: dict[str, tuple[Any, ...]] = {}

    def fault(code: str, key: str, written: str, allowed: str, fix: str = "") -> None:
        problems.append(Problem(code, "--not", field=key, found=written, allowed=allowed, fix=fix))

    for part in text.split(","):
        key, equals, value = (one.strip() for one in part.partition("="))
        key = _SHORT.get(key, key)
        values = list(dict.fromkeys(one.strip() for one in value.split("|") if one.strip()))
        if not equals or not values:
            fault("E-WHYNOT-510", "", f'"{part.strip()}"', "must be KEY=VALUE, as in accelerator=h100-80gb-sxm")
        elif key not in KEYS:
            near = nearest(key, (*KEYS, *_SHORT))
            fix = f"Did you mean {near}?" if near else f"Keys: {', '.join(KEYS)}"
            fault("E-WHYNOT-511", "", f'"{key}"', "must be a key of a choice of a run", fix)
        elif key in _ROWS:
            table = _ROWS[key][0]
            own = tuple(row.id for row in getattr(instance.own_rows(), table, ()))
            rows = [named_row(table, one, own, (), "E-WHYNOT-512") for one in values]
            for _, wrong in rows:
                if wrong is not None:
                    fault(wrong.code, key, wrong.found, wrong.allowed, wrong.fix)
            found[key] = tuple(row for row, _ in rows if row is not None)
        elif key in _WORDS or key == "site":
            words = _WORDS.get(key) or tuple(one.name for one in instance.sites)
            for one in values:
                if one not in words:
                    near = nearest(one, words)
                    allowed = f"must be one of {', '.join(words)}" if words else "must be left out: there is one site"
                    fault("E-WHYNOT-512", key, f'"{one}"', allowed, f"Did you mean {near}?" if near else "")
            found[key] = tuple(values)
        else:
            least = 0 if key == "zero_stage" else 1
            numbers = tuple(int(one) for one in values if one.isdigit() and least <= int(one) <= _MOST)
            if len(numbers) != len(values) or (key == "count" and len(numbers) > 1):
                fault("E-WHYNOT-513", key, f'"{value}"', f"must be a whole number >= {least}")
            found[key] = numbers
    if problems:
        raise UsageProblems(tuple(problems))
    return AskedRun(text, found)
