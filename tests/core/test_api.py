"""The way of the data once: exit codes, stops, exports, model paths."""

import json
from pathlib import Path
from typing import Any

import highspy
import pytest

from optimizer.api import load, resolved, solve
from optimizer.errors import InputError, SolverError, StoppedWithoutPlan
from optimizer.instance.workload import HuggingFaceConfig
from tests.core.real import small

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_attention_heads": 32,
    "num_hidden_layers": 16,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}


def test_a_proven_plan() -> None:
    found = solve(small())
    assert found.exit_code == 0
    assert found.plan is not None
    assert found.diagnosis is None
    assert {"setting", "candidates", "program", "runners_up", "verify"} <= set(found.timing)


def test_an_infeasible_instance() -> None:
    found = solve(small(targets={"tpot_ms": 0.001}))
    assert found.exit_code == 4
    assert found.plan is None
    assert found.diagnosis is not None


def test_a_stop_before_any_plan_says_so_or_keeps_a_plan() -> None:
    try:
        found = solve(small(), stop=lambda: True)
    except StoppedWithoutPlan as error:
        assert "before any plan" in str(error)  # noqa: PT017 - either end is right
    else:
        assert found.exit_code in (0, 5)


def test_an_option_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(SolverError):
        solve(small(), gap=float("nan"))
    with pytest.raises(SolverError):
        solve(small(), seed=-1)


def test_options_of_the_call_go_before_those_of_the_instance() -> None:
    plan = solve(small(solver={"gap": 0.01, "seed": 5}), gap=0.001).plan
    assert plan is not None
    assert plan.outcome.requested_gap == 0.001
    assert plan.provenance.options["seed"] == 5


@pytest.mark.parametrize("ending", ["lp", "mps"])
def test_export_writes_the_program_that_was_solved(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"program.{ending}"
    plan = solve(small(), export=path).plan
    assert plan is not None
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    highs.run()
    assert highs.getInfo().objective_function_value == pytest.approx(plan.bill.usd_per_hour, rel=1e-5)


def test_a_program_without_a_plan_is_exported_too(tmp_path: Path) -> None:
    path = tmp_path / "program.lp"
    given = small(choices={"sourcing": ["buy"]}, site={"power_kw": 1.0})
    assert solve(given, export=path).plan is None
    assert path.exists()


def test_a_model_path_stands_beside_the_instance(tmp_path: Path) -> None:
    (tmp_path / "my-model").mkdir()
    (tmp_path / "my-model" / "config.json").write_text(json.dumps(LLAMA))
    content = small().model_dump(mode="json", by_alias=True, exclude_unset=True)
    content["workload"]["model"] = "my-model/config.json"
    path = tmp_path / "instance.json"
    path.write_text(json.dumps(content))
    given = resolved(load(path), path)
    assert isinstance(given.workload.model, HuggingFaceConfig)
    assert given.workload.model.name == "my-model"
    plan = solve(load(path), instance_path=path).plan
    assert plan is not None
    # What was read travels with the plan: it means the same anywhere.
    assert solve(plan.instance).plan == plan


@pytest.mark.parametrize("text", ["{", '{"model_type": "unheard-of"}', "[]"])
def test_a_model_file_that_says_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    content = small().model_dump(mode="json", by_alias=True, exclude_unset=True)
    content["workload"]["model"] = "./config.json"
    path = tmp_path / "instance.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError):
        solve(load(path), instance_path=path)


def test_cost_is_a_straight_line_in_the_price_of_servers() -> None:
    """Prices of servers twice as high: what is bought costs more, never less; the plan stays verified."""
    key = "h100-80gb-sxm"
    costs = []
    for usd in (200_000, 250_000, 300_000):
        given = small(
            choices={"accelerators": [key], "sourcing": ["buy"]}, economics={"prices": {key: {"server_usd": usd}}}
        )
        plan = solve(given).plan
        assert plan is not None
        costs.append(plan.bill.usd_per_year)
    assert costs == sorted(costs)
    # Servers alone carry the price, so cost is a straight line in it while the fleet is the same.
    assert costs[2] - costs[1] == pytest.approx(costs[1] - costs[0], rel=1e-6)
