"""Reads a proposal for training from its text: a valid shape, or every fault of the file with its place."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from optimizer.errors import InputError
from optimizer.instance.checking import Checker, Found
from optimizer.instance.known import named_row
from optimizer.instance.positions import Path as Place
from optimizer.instance.reading import Source, placed
from optimizer.instance.training import TrainingWorkload
from optimizer.proposals.training_shape import (
    TRAINING_HEAD_KEYS,
    ProposedJob,
    ProposedPart,
    TrainingProposal,
    training_schema,
)

if TYPE_CHECKING:
    from optimizer.instance.model import Instance

#: Names that a job or a part takes from the catalogue: key -> table.
_NAMED: Final = {"accelerator": "accelerators", "cooling": "cooling"}


def training_proposal(source: Source, instance: "Instance") -> TrainingProposal:
    """The proposal that a file holds. Raises InputError with every problem."""
    value: dict[str, Any] = source.scanned.value
    form = "TrainingProposal" if "jobs" in value else "FlatTrainingProposal"
    checker = Checker(training_schema())
    found = list(checker.check(value, form, ("proposal",)))
    jobs: dict[Place, Any] = {(): value}
    if form == "TrainingProposal":
        listed = value["jobs"]
        jobs = {("jobs", index): one for index, one in enumerate(listed if isinstance(listed, list) else ())}
    for place, job in jobs.items():
        if isinstance(job, Mapping):
            found += _of_job(job, place, checker, instance)
    if not found:
        found += _of_jobs({place: one for place, one in jobs.items() if isinstance(one, Mapping)}, instance)
    if found:
        raise InputError(tuple(placed(source, found)))
    if form == "FlatTrainingProposal":
        head = {key: value[key] for key in TRAINING_HEAD_KEYS if key in value}
        value = {**head, "jobs": [{key: inner for key, inner in value.items() if key not in head}]}
    proposal = TrainingProposal.model_validate_json(json.dumps(value))
    return proposal.model_copy(update={"jobs": tuple(_resolved(one, instance) for one in proposal.jobs)})


def _own_ids(instance: "Instance", table: str) -> tuple[str, ...]:
    return tuple(row.id for row in getattr(instance.own_rows(), table, ()))


def _of_job(job: Mapping[str, Any], place: Place, checker: Checker, instance: "Instance") -> Iterator[Found]:
    """Faults between the keys of a job, and names that nobody knows."""
    parts = job.get("parts") if isinstance(job.get("parts"), list) else []
    for where, one in [(place, job), *(((*place, "parts", i), part) for i, part in enumerate(parts or []))]:
        if isinstance(one, Mapping):
            yield from _names(one, where, checker, instance)

    def sound(*keys: str) -> bool:
        return all(checker.is_sound((*place, key)) for key in keys)

    counted = [key for key in ("count", "servers", "parts") if job.get(key)]
    if len(counted) != 1 and sound("count", "servers", "parts"):
        at = (*place, counted[1]) if counted else place
        allowed = "must be one of the three: count, servers, or parts by site"
        yield Found("E-PROPOSAL-500", at, " and ".join(counted) or "none of them", allowed)
    if not sound("sourcing", "cooling", "spare_servers", "site", "parts"):
        return
    rented = job.get("sourcing", "buy") != "buy"
    if job.get("sourcing") == "spot":
        allowed = "must be buy, on_demand or reserved: a run on spot servers is not priced"
        yield Found("E-PROPOSAL-502", (*place, "sourcing"), '"spot"', allowed)
    elif rented:
        for key in ("cooling", "spare_servers", "site", "parts"):
            if job.get(key):
                yield Found(
                    "E-PROPOSAL-502", (*place, key), "a value", f"must be left out: {key} is for bought servers"
                )
    elif job.get("parts"):
        for key in ("cooling", "spare_servers", "site"):
            if job.get(key) is not None:
                yield Found("E-PROPOSAL-502", (*place, key), "a value", f"must be left out: each part says its {key}")


def _names(one: Mapping[str, Any], place: Place, checker: Checker, instance: "Instance") -> Iterator[Found]:
    for key, table in _NAMED.items():
        name, where = one.get(key), (*place, key)
        if isinstance(name, str) and checker.is_sound(where):
            fault = named_row(table, name, _own_ids(instance, table), where, "E-PROPOSAL-007")[1]
            if fault is not None:
                yield fault
    known = [site.name for site in instance.sites]
    site = one.get("site")
    if isinstance(site, str) and checker.is_sound((*place, "site")) and site not in known:
        allowed = f"must be one of {', '.join(known)}" if known else "must be left out: the instance has one site"
        yield Found("E-PROPOSAL-505", (*place, "site"), f'"{site}"', allowed)


def _of_jobs(jobs: Mapping[Place, Mapping[str, Any]], instance: "Instance") -> Iterator[Found]:
    """Each job of the instance has one entry, at sites of which each is named once."""
    assert isinstance(instance.workload, TrainingWorkload)
    names = [one.name for one in instance.workload.all_jobs()]
    seen: dict[str, Place] = {}
    for place, job in jobs.items():
        written = job.get("job")
        name = names[0] if written is None and len(names) == 1 else written
        if name not in names or name in seen:
            found = "no job" if name is None else f'"{name}"' + (" a second time" if name in seen else "")
            yield Found("E-PROPOSAL-505", (*place, "job"), found, f"must be one of {', '.join(names)}, each once")
            continue
        seen[name] = place
        sites = [part["site"] for part in job.get("parts", ())]
        for index, site in enumerate(sites):
            if site in sites[:index]:
                where = (*place, "parts", index, "site")
                yield Found("E-PROPOSAL-505", where, f'"{site}" a second time', "must be named once in a job")
        if len(sites) == 1:
            where = (*place, "parts")
            yield Found("E-PROPOSAL-502", where, "one part", "must be two or more: write servers and site instead")
        bought = job.get("sourcing", "buy") == "buy"
        if bought and not sites and job.get("site") is None and len(instance.sites) > 1:
            known = ", ".join(one.name for one in instance.sites)
            yield Found("E-PROPOSAL-505", place, "no site", f"must name site, or parts of {known}")
    missing = [name for name in names if name not in seen]
    if missing and len(jobs) < len(names):
        yield Found("E-PROPOSAL-505", (), f"no entry for {', '.join(missing)}", "must say what each job runs on")


def _resolved(job: ProposedJob, instance: "Instance") -> ProposedJob:
    """The job with its names as the catalogue spells them."""

    def named(one: ProposedJob | ProposedPart, key: str) -> Any:
        name = getattr(one, key)
        return name if name is None else named_row(_NAMED[key], name, _own_ids(instance, _NAMED[key]), (key,), "")[0]

    parts = tuple(part.model_copy(update={"cooling": named(part, "cooling")}) for part in job.parts)
    return job.model_copy(
        update={"accelerator": named(job, "accelerator"), "cooling": named(job, "cooling"), "parts": parts}
    )
