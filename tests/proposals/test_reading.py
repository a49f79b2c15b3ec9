"""Proposals as files: both forms, plans in their place, every fault at once."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from optimizer.api import solve
from optimizer.errors import InputError
from optimizer.plan import Plan
from optimizer.proposals.kinds import schema
from optimizer.proposals.reading import read_proposal, read_proposal_text
from optimizer.proposals.shape import Proposal
from optimizer.proposals.training_shape import TrainingProposal
from tests.core.real import small
from tests.instances.library import FOLDER
from tests.training import small as runs

GROUP: dict[str, Any] = {"accelerator": "h100-80gb-sxm", "servers": 2, "tensor_parallel": 2}


def read(value: Any) -> Proposal:
    """The proposal that a value says."""
    found = read_proposal_text(json.dumps(value, indent=1), "p.json", small())
    assert isinstance(found, Proposal)
    return found


def codes(value: Any) -> list[str]:
    """Codes of the faults of a value."""
    with pytest.raises(InputError) as caught:
        read(value)
    assert all(one.line > 0 for one in caught.value.problems)
    return [one.code for one in caught.value.problems]


def test_flat_and_listed_forms_say_the_same() -> None:
    flat = read({"name": "today", "is_owned": True, **GROUP})
    listed = read({"name": "today", "is_owned": True, "groups": [GROUP]})
    assert flat == listed
    assert flat.is_owned
    assert flat.groups[0].scheme == "w16a16"


def test_names_are_spelt_as_the_catalogue_does() -> None:
    assert read({**GROUP, "accelerator": "H100 80GB SXM"}).groups[0].accelerator == "h100-80gb-sxm"


def test_every_fault_at_once_with_its_place() -> None:
    value = {
        "accelerator": "h100",
        "count": 16,
        "servers": 2,
        "tensor_paralel": 2,
        "scheme": "w8a8-fp9",
        "cooling": 3,
        "sourcing": "lease",
        "replicas": 0,
    }
    found = codes(value)
    assert {"E-PROPOSAL-001", "E-PROPOSAL-002", "E-PROPOSAL-003", "E-PROPOSAL-005", "E-PROPOSAL-007"} <= set(found)
    assert "E-PROPOSAL-500" in found


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"servers": None}, "E-PROPOSAL-500"),
        ({"spare_servers": 2}, "E-PROPOSAL-502"),
        ({"sourcing": "on_demand", "cooling": "dynamic"}, "E-PROPOSAL-502"),
        ({"sourcing": "on_demand", "spare_servers": 1}, "E-PROPOSAL-502"),
    ],
)
def test_keys_that_contradict_each_other(change: dict[str, Any], code: str) -> None:
    value = {key: inner for key, inner in {**GROUP, **change}.items() if inner is not None}
    assert codes(value) == [code]
    assert codes({"groups": [GROUP, value]}) == [code]


def test_no_group_and_no_list() -> None:
    assert codes({"groups": []}) == ["E-PROPOSAL-006"]
    assert codes({"groups": {}}) == ["E-PROPOSAL-002"]
    assert codes({"name": "x"})[:1] == ["E-PROPOSAL-004"]


def test_a_plan_is_read_as_one() -> None:
    plan = solve(small()).plan
    assert plan is not None
    again = read_proposal_text(plan.model_dump_json(by_alias=True), "plan.json", small())
    assert isinstance(again, Plan)
    assert again == plan
    broken = {**json.loads(plan.model_dump_json(by_alias=True)), "servers": "none"}
    with pytest.raises(InputError, match="E-PROPOSAL-507"):
        read_proposal_text(json.dumps(broken), "plan.json", small())


def test_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="E-FILE-001"):
        read_proposal(tmp_path / "none.json", small())


@pytest.mark.parametrize("path", sorted((FOLDER / "proposals").glob("a100*.json")), ids=lambda path: path.stem)
def test_shipped_proposals_obey_the_schema(path: Path) -> None:
    value = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.validate(value, schema())
    trains = "claimed_days" in value
    found = read_proposal(path, runs.read(runs.one_job()) if trains else small())
    assert isinstance(found, TrainingProposal if trains else Proposal)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**value, "tensor_paralel": 2}, schema())
