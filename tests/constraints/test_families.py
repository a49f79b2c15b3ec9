"""Families and the rows of ``optimizer.limits`` match one to one; nothing of ours is imported but those."""

import ast
import inspect
from collections import Counter
from types import ModuleType
from typing import Annotated, get_args, get_origin

import pytest

import constraints
from optimizer.instance.model import Instance
from optimizer.limits import LIMITS, limit
from tests.constraints.border import bounds, seen
from tests.golden.rows import family_name

EVERY = (*constraints.FAMILIES, *constraints.TRAINING_FAMILIES)


def test_every_limit_has_one_family_and_every_family_its_limits() -> None:
    owned = Counter(name for family in EVERY for name in family.LIMITS)
    assert owned == Counter(row.name for row in LIMITS)
    for family in EVERY:
        assert {row.name for row in LIMITS if row.family == family_name(family)} == set(family.LIMITS)


@pytest.mark.parametrize("family", constraints.FAMILIES, ids=family_name)
def test_family_evaluates_each_deployment_limit_it_owns(family: ModuleType) -> None:
    of_deployments = {name for name in family.LIMITS if limit(name).scope == "deployment"}
    assert hasattr(family, "admits") == bool(of_deployments)
    if of_deployments:
        assert set(family.admits(seen(), bounds())) == of_deployments
    if set(family.LIMITS) - of_deployments:
        assert hasattr(family, "add")


@pytest.mark.parametrize("family", EVERY, ids=family_name)
def test_docstring_says_what_holds_when_it_binds_and_every_public_name_is_known(family: ModuleType) -> None:
    doc = inspect.getdoc(family) or ""
    first = doc.splitlines()[0]
    title = first.split(":")[0].lower()
    assert first.endswith(".")
    assert title.removesuffix("s") == family_name(family)
    assert "inds" in doc, "says when it binds"
    public = {name for name, value in vars(family).items() if not name.startswith("_") and name not in _IMPORTED}
    assert public <= {"LIMITS", "admits", "add"}


_IMPORTED = {"TYPE_CHECKING", "Any", "Final"}


@pytest.mark.parametrize("family", EVERY, ids=family_name)
def test_family_imports_nothing_of_ours_at_run_time_and_does_no_input_or_output(family: ModuleType) -> None:
    tree = ast.parse(inspect.getsource(family))
    checking = [node for node in tree.body if isinstance(node, ast.If)]
    hidden = {id(node) for block in checking for node in ast.walk(block)}
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.ImportFrom):
            assert node.module in ("typing", "pyomo.core", "optimizer.limits")
        assert not isinstance(node, ast.Import)
        assert not (isinstance(node, ast.Name) and node.id in ("open", "print"))


def test_every_limit_is_set_by_a_field_of_the_instance() -> None:
    for row in LIMITS:
        section, _, name = row.field.partition(".")
        part = Instance.model_fields[section].annotation
        assert part is not None
        if not name:
            continue  # a list of the top level
        # A workload is of one of several kinds.
        kinds = [get_args(one)[0] if get_origin(one) is Annotated else one for one in get_args(part)] or [part]
        assert any(name in kind.model_fields for kind in kinds), row.field


def test_limit_by_name() -> None:
    assert limit("tpot_ms").family == "latency"
    with pytest.raises(KeyError):
        limit("tpot")
