"""Days that the README of the instances tells by hand are those that the program gives today."""

import json
import re
from typing import Any

import pytest

from optimizer.solver import Options
from optimizer.training.answer import best_plan
from tests.instances.library import expected, path_of
from tests.instances.readme import README
from tests.training.small import read

#: Words with the days, the instance, and what is read otherwise in it.
_USUAL: dict[str, Any] = {"reliability": {}}
_MIXTURE: dict[str, Any] = {"parameters_b": 1800, "active_parameters_b": 280}
TOLD: list[tuple[str, str, dict[str, Any]]] = [
    (
        r"dense model of the active size the run is predicted to take about (\d+) days",
        "train-25000-a100",
        {"parameters_b": 280, "active_parameters_b": None},
    ),
    (r"at the loss of a usual one it takes (\d+) days", "train-8192-h100-bf16", _USUAL),
    (r"a usual one takes (\d+) days, and the mixture", "train-8192-h100-fp8", _USUAL),
    (r'"active_parameters_b": 280`\) about (\d+)\.', "train-8192-h100-fp8", {**_USUAL, **_MIXTURE}),
]


@pytest.mark.parametrize(("words", "name", "change"), TOLD)
def test_days_in_words_are_those_of_today(words: str, name: str, change: dict[str, Any]) -> None:
    (told,) = re.findall(words, README.read_text(encoding="utf-8"))
    value: dict[str, Any] = json.loads(path_of(name).read_text(encoding="utf-8"))
    workload = {**value["workload"], **change}
    value["workload"] = {key: inner for key, inner in workload.items() if inner is not None}
    value["targets"]["deadline_days"] = 400
    plan = best_plan(read(value), Options())
    assert plan is not None
    assert plan.training is not None
    assert round(plan.training.days) == int(told)


def test_the_published_run_is_as_far_off_as_is_told() -> None:
    (told,) = re.findall(r"The prediction is (\d+) % above", README.read_text(encoding="utf-8"))
    # 1,720,320 A100-hours on 2,000 are 35.8 days.
    days = expected("train-llama-2-70b-6nd")["training"]["days"]
    assert round(100.0 * (days / (1_720_320 / 2000 / 24.0) - 1.0)) == int(told)
