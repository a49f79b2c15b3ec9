"""Reads a proposal, or a plan that the program wrote: a valid shape, or every fault of the file with its place."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from optimizer.errors import InputError, Problem
from optimizer.instance.checking import Checker, Found
from optimizer.instance.known import named_row
from optimizer.instance.positions import Path as Place
from optimizer.instance.reading import json_object, placed, read_json_text
from optimizer.proposals.shape import HEAD_KEYS, Group, Proposal, schema

if TYPE_CHECKING:
    from optimizer.instance.model import Instance
    from optimizer.plan import Plan
    from optimizer.proposals.training_shape import TrainingProposal

#: Names that a group takes from the catalogue: key -> table.
_NAMED: Final = {
    "accelerator": "accelerators",
    "scheme": "schemes",
    "kv_scheme": "kv_schemes",
    "cooling": "cooling",
}


def read_proposal(path: Path, instance: "Instance") -> "Proposal | TrainingProposal | Plan":
    """Read a proposal for an instance, or a plan. Which form it has follows from the instance's kind of work.

    Raises
    ------
    InputError: the file is bad or missing; carries every problem.
    """
    return read_proposal_text(read_json_text(path, str(path)), str(path), instance)


def read_proposal_text(text: str, file_name: str, instance: "Instance") -> "Proposal | TrainingProposal | Plan":
    """Read a proposal or a plan from its text; ``file_name`` is its name in messages."""
    source = json_object(text, file_name)
    value: dict[str, Any] = source.scanned.value
    if "provenance" in value and "bill" in value:
        return _of_kind(_plan(text, file_name), file_name, instance)
    if instance.workload.kind == "training":
        from optimizer.proposals.training_reading import training_proposal

        return training_proposal(source, instance)
    form = "Proposal" if "groups" in value else "FlatProposal"
    checker = Checker(schema())
    found = list(checker.check(value, form, ("proposal",)))
    groups: dict[Place, Any] = {(): value}
    if form == "Proposal":
        listed = value["groups"]
        groups = {("groups", index): one for index, one in enumerate(listed if isinstance(listed, list) else ())}
    for place, group in groups.items():
        if isinstance(group, Mapping):
            found += _of_group(group, place, checker, instance)
    if found:
        raise InputError(tuple(placed(source, found)))
    if form == "FlatProposal":
        head = {key: value[key] for key in HEAD_KEYS if key in value}
        value = {**head, "groups": [{key: inner for key, inner in value.items() if key not in head}]}
    proposal = Proposal.model_validate_json(json.dumps(value))
    own = instance.own_rows()
    return proposal.model_copy(update={"groups": tuple(_resolved(one, own) for one in proposal.groups)})


def _of_group(group: Mapping[str, Any], place: Place, checker: Checker, instance: "Instance") -> Iterator[Found]:
    """Faults between the keys of a group, and names that nobody knows."""
    own = instance.own_rows()
    for key, table in _NAMED.items():
        name, where = group.get(key), (*place, key)
        if isinstance(name, str) and checker.is_sound(where):
            fault = named_row(table, name, _own_ids(own, table), where, "E-PROPOSAL-007")[1]
            if fault is not None:
                yield fault

    def sound(*keys: str) -> bool:
        return all(checker.is_sound((*place, key)) for key in keys)

    counted = [key for key in ("count", "servers") if group.get(key) is not None]
    if len(counted) != 1 and sound("count", "servers"):
        at = (*place, counted[1]) if counted else place
        yield Found(
            "E-PROPOSAL-500", at, " and ".join(counted) or "neither count nor servers", "must be one of the two"
        )
    if not sound("count", "servers", "spare_servers", "sourcing", "cooling"):
        return
    if group.get("sourcing", "buy") != "buy":
        for key, sentence in (
            ("cooling", "is the owner's for rented servers"),
            ("spare_servers", "are for bought servers"),
        ):
            if group.get(key):
                yield Found("E-PROPOSAL-502", (*place, key), f"{group[key]}", f"must be left out: {key} {sentence}")
    elif group.get("spare_servers") and group.get("servers") and group["spare_servers"] >= group["servers"]:
        allowed = f"must be < {group['servers']:,} servers"
        yield Found("E-PROPOSAL-502", (*place, "spare_servers"), f"{group['spare_servers']:,}", allowed)


def _own_ids(own: Any, table: str) -> tuple[str, ...]:
    return tuple(row.id for row in getattr(own, table, ()))


def _resolved(group: Group, own: Any) -> Group:
    """The group with its names as the catalogue spells them."""
    update = {}
    for key, table in _NAMED.items():
        name = getattr(group, key)
        if name is not None:
            update[key] = named_row(table, name, _own_ids(own, table), (key,), "E-PROPOSAL-007")[0]
    return group.model_copy(update=update)


def _of_kind(plan: "Plan", file_name: str, instance: "Instance") -> "Plan":
    """The plan, where it does the same kind of work as the instance."""
    wanted, found = instance.workload.kind, plan.instance.workload.kind
    if wanted != found:
        allowed = f"must be a plan for {wanted}, as the instance is"
        problem = Problem("E-PROPOSAL-400", file_name, found=f"a plan for {found}", allowed=allowed)
        raise InputError((problem,))
    return plan


def _plan(text: str, file_name: str) -> "Plan":
    from pydantic import ValidationError

    from optimizer.plan import Plan

    try:
        return Plan.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(one) for one in first["loc"])
        problem = Problem(
            "E-PROPOSAL-507",
            file_name,
            field=place,
            found=f"no plan ({first['msg']})",
            allowed="must be a written plan",
        )
        raise InputError((problem,)) from None
