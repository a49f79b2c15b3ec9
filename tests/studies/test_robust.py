"""Choices under uncertainty: equal to listing every choice, exact risk measures, draws with the asked marginals."""

import json
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner

from optimizer.api import solve
from optimizer.commands.app import app
from optimizer.errors import InputError, StoppedWithoutPlan
from optimizer.instance.model import Instance
from optimizer.instance.uncertainty import UncertainField, Uncertainty
from optimizer.solver import Options
from optimizer.studies.best import offer_of
from optimizer.studies.robust.breaks import broken_limits
from optimizer.studies.robust.distributions import draw, quantile
from optimizer.studies.robust.reduction import chosen, distances
from optimizer.studies.robust.results import Robust
from optimizer.studies.robust.scenarios import reduced_data, shared_data
from optimizer.studies.robust.study import robust
from optimizer.studies.robust.two_stage import Aim, Now, Recourse, TwoStageProgram, recourse, weighted_shortfall
from tests.oracle.enumerate import TooLarge
from tests.oracle.two_stage import Beforehand, Table, table
from tests.studies.small import small
from tests.studies.uncertain import drawn

AIMS: tuple[Aim, ...] = ("expected", "shortfall", "regret")
TOLERANCE = 3e-6
MOST_CHOICES = 4000
FIELDS = [
    {
        "field": "workload.demand.requests_per_s",
        "distribution": "lognormal",
        "median": 960,
        "log_standard_deviation": 0.3,
    },
    {
        "field": "economics.prices.h100-80gb-sxm.server_usd",
        "distribution": "triangular",
        "low": 0.8,
        "mode": 1.0,
        "high": 1.5,
        "is_multiple": True,
    },
    {"field": "site.electricity_usd_per_kwh", "distribution": "uniform", "low": 0.05, "high": 0.2},
]


def now_from(found: Table, key: Beforehand) -> Now:
    counts, schemes = key
    pools = zip(found.pools, counts, strict=True)
    return Now(tuple(sorted((q, n) for q, n in pools if n)), tuple(sorted(schemes)))


def differences(seed: int, *, by_the_hour: bool = False) -> list[str] | None:
    """What the program says otherwise than the list of all choices; None where there are too many to list."""
    instances = drawn(seed, by_the_hour=by_the_hour)
    if instances is None:
        return None
    try:
        listed = table(instances[1], MOST_CHOICES)
    except TooLarge:
        return None
    best = listed.best()
    if any(one is None for one in best):
        return []
    least = [one for one in best if one is not None]
    offers = [offer_of(one) for one in instances[1]]
    datas = shared_data(offers)
    lines = []
    preparation = {
        key[1]: usd for data in datas for key, usd in data.yearly_by_quantity.items() if key[0] == "SchemePrepared"
    }
    options = Options(gap=1e-7)
    for key, row in list(listed.costs.items())[:: max(1, len(listed.costs) // 6)]:
        for s, cost in enumerate(row):
            answer = recourse(offers[s], datas[s], now_from(listed, key), options, preparation)
            found = answer.usd_per_year if isinstance(answer, Recourse) else None
            if (found is None) != (cost is None) or (found and cost and abs(found / cost - 1.0) > TOLERANCE):
                lines.append(f"seed {seed}, scenario {s}, {key}: listed {cost}, program {found}")
    shares = [0.4, 0.3, 0.2, 0.1]
    level = (0.0, 0.5, 0.75)[seed % 3]
    program = TwoStageProgram(reduced_data(datas), shares, least, level)
    served = listed.served()
    wanted: dict[Aim, list[float]] = {
        "expected": [sum(p * cost for p, cost in zip(shares, row, strict=True)) for row in served.values()],
        "shortfall": [weighted_shortfall(row, shares, level) for row in served.values()],
        "regret": [max(cost - own for cost, own in zip(row, least, strict=True)) for row in served.values()],
    }
    for aim in AIMS:
        outcome, best_answer = program.solve(aim, options)
        if not served or best_answer is None:
            if bool(served) != (best_answer is not None):
                lines.append(f"seed {seed}, {aim}: {len(served)} choices listed, program ends {outcome.reason}")
            continue
        if abs(best_answer.usd_per_year - min(wanted[aim])) > TOLERANCE * max(least):
            lines.append(f"seed {seed}, {aim}: listed {min(wanted[aim])}, program {best_answer.usd_per_year}")
    return lines


@pytest.mark.parametrize("seed", [4, 11, 37])
def test_the_program_finds_the_best_of_all_choices(seed: int) -> None:
    assert differences(seed) == []


@pytest.mark.parametrize("seed", [4, 11])
def test_the_program_finds_the_best_of_all_choices_under_a_load_of_several_levels(seed: int) -> None:
    assert differences(seed, by_the_hour=True) == []


@pytest.mark.slow
def test_the_program_finds_the_best_of_all_choices_under_loads_of_several_levels() -> None:
    found = [differences(seed, by_the_hour=True) for seed in range(25)]
    assert [line for lines in found if lines for line in lines] == []
    assert sum(one is not None for one in found) >= 16


@pytest.mark.slow
def test_the_program_finds_the_best_of_all_choices_everywhere() -> None:
    found = [differences(seed) for seed in range(40)]
    assert [line for lines in found if lines for line in lines] == []
    assert sum(one is not None for one in found) >= 24


def test_shortfall_by_hand() -> None:
    assert weighted_shortfall([1.0, 2.0, 3.0, 4.0], [0.25] * 4, 0.5) == pytest.approx(3.5)
    assert weighted_shortfall([1.0, 2.0, 3.0, 4.0], [0.25] * 4, 0.0) == pytest.approx(2.5)
    assert weighted_shortfall([1.0, 10.0], [0.9, 0.1], 0.8) == pytest.approx(5.5)


LAWS: list[dict[str, Any]] = [
    {"distribution": "uniform", "low": 2.0, "high": 4.0},
    {"distribution": "triangular", "low": 0.0, "mode": 1.0, "high": 4.0},
    {"distribution": "normal", "mean": 5.0, "standard_deviation": 2.0},
    {"distribution": "normal", "mean": 5.0, "standard_deviation": 2.0, "low": 4.0, "high": 7.0},
    {"distribution": "lognormal", "median": 3.0, "log_standard_deviation": 0.5},
    {"distribution": "lognormal", "median": 3.0, "log_standard_deviation": 0.5, "low": 0.0, "high": 4.0},
    {"distribution": "discrete", "values": [1.0, 5.0, 7.0], "probabilities": [0.2, 0.5, 0.3]},
]


def _mean(law: dict[str, Any]) -> float:
    """Mean of a law by its textbook formula, or by integrating its density."""
    kind = law["distribution"]
    if kind == "uniform":
        return float(law["low"] + law["high"]) / 2.0
    if kind == "triangular":
        return float(law["low"] + law["mode"] + law["high"]) / 3.0
    if kind == "discrete":
        return float(np.dot(law["probabilities"], law["values"]))
    low = law.get("low", -40.0 if kind == "normal" else 0.0)
    x = np.linspace(max(low, 1e-9) if kind == "lognormal" else low, law.get("high", 60.0), 400_001)
    if kind == "normal":
        density = np.exp(-(((x - law["mean"]) / law["standard_deviation"]) ** 2) / 2.0)
    else:
        density = np.exp(-((np.log(x / law["median"]) / law["log_standard_deviation"]) ** 2) / 2.0) / x
    return float((x * density).sum() / density.sum())


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law["distribution"])
def test_a_draw_has_its_law(law: dict[str, Any]) -> None:
    field = UncertainField.model_validate_json(json.dumps({"field": "a", **law}))
    values = draw(Uncertainty(fields=(field,)), 2000, 3)[:, 0]
    assert values.mean() == pytest.approx(_mean(law), rel=2e-3)
    edges = [quantile(field, share / 10) for share in range(1, 10)]
    if law["distribution"] != "discrete":
        # A Latin hypercube puts exactly a tenth of the scenarios into each tenth of the law.
        assert np.histogram(values, [-np.inf, *edges, np.inf])[0].tolist() == [200] * 10
    assert values.min() >= law.get("low", -np.inf)
    assert values.max() <= law.get("high", np.inf)


def test_ranks_correlate_as_asked_and_marginals_stay() -> None:
    fields = [{"field": name, "distribution": "uniform", "low": 0.0, "high": 1.0} for name in "abc"]
    plain = Uncertainty.model_validate_json(json.dumps({"fields": fields}))
    asked = [
        {"first": "a", "second": "b", "rank_correlation": 0.7},
        {"first": "b", "second": "c", "rank_correlation": -0.5},
    ]
    tied = Uncertainty.model_validate_json(json.dumps({"fields": fields, "correlations": asked}))
    values = draw(tied, 400, 1)
    ranks = np.argsort(np.argsort(values, axis=0), axis=0)
    found = np.asarray(np.corrcoef(ranks, rowvar=False))
    assert found[0, 1] == pytest.approx(0.7, abs=0.03)
    assert found[1, 2] == pytest.approx(-0.5, abs=0.03)
    assert found[0, 2] == pytest.approx(0.0, abs=0.06)
    apart = np.asarray(np.corrcoef(draw(plain, 400, 1), rowvar=False))
    assert abs(apart - np.eye(3)).max() < 0.05
    for column in range(3):
        assert np.floor(np.sort(values[:, column]) * 400).tolist() == list(range(400))


def test_draws_repeat_by_seed() -> None:
    law = Uncertainty(fields=(UncertainField(field="a", distribution="uniform", low=0.0, high=1.0),))
    assert draw(law, 20, 5).tolist() == draw(law, 20, 5).tolist()
    assert draw(law, 20, 5).tolist() != draw(law, 20, 6).tolist()


def test_reduction_keeps_the_mass_and_the_middle() -> None:
    values = np.array([[0.0], [0.1], [0.2], [10.0]])
    kept, shares = chosen(values, 2)
    assert kept == (1, 3)
    assert shares == (0.75, 0.25)
    assert chosen(values, 4) == ((0, 1, 2, 3), (0.25,) * 4)
    assert chosen(values, 2, (0,))[0][0] == 0
    assert distances(values)[0, 3] == pytest.approx(10.0 / values.std())


def uncertain(**changes: Any) -> Instance:
    return small(uncertainty={"fields": FIELDS, "scenarios": 12, **changes})


@pytest.fixture(scope="module")
def found() -> Robust:
    result = robust(uncertain(), in_program=4)
    assert result is not None
    return result


def test_each_choice_is_best_by_its_own_measure() -> None:
    result = robust(uncertain(scenarios=8), in_program=8)
    assert result is not None
    assert result.in_program == 8
    plans = {one.name: one for one in result.plans}
    measures = {
        "least expected cost": "expected_usd_per_year",
        "least shortfall": "shortfall_usd_per_year",
        "least regret": "largest_regret_usd_per_year",
    }
    for name, measure in measures.items():
        value = getattr(plans[name], measure)
        assert all(value <= getattr(one, measure) * (1.0 + 2e-4) for one in result.plans if not one.failing)
    for proof in result.proofs:
        assert proof.bound_usd_per_year <= proof.usd_per_year * (1.0 + 2e-6)
        assert proof.gap_fraction <= 1e-4


def test_regret_is_least_over_all_scenarios(found: Robust) -> None:
    """Scenarios are added until no other one is regretted more than those in the program."""
    regret = next(one for one in found.plans if one.name == "least regret")
    proof = next(one for one in found.proofs if one.aim == "regret")
    assert found.in_program < 12
    assert regret.largest_regret_usd_per_year is not None
    assert regret.largest_regret_usd_per_year == pytest.approx(
        proof.usd_per_year, abs=2e-4 * max(found.best_usd_per_year)
    )


def test_no_choice_beats_the_scenario_s_own_plan(found: Robust) -> None:
    for one in found.plans:
        for cost, best in zip(one.usd_per_year, found.best_usd_per_year, strict=True):
            assert cost is None or cost >= best * (1.0 - 2e-6)


def test_the_nominal_plan_breaks_what_it_breaks(found: Robust) -> None:
    """Only more demand than its servers carry can break a limit here, and that is plain arithmetic."""
    plan = solve(small()).plan
    assert plan is not None
    carried = sum(one.replicas * one.prediction.requests_per_s for one in plan.deployments)
    over = sum(1 for row in found.values if row[0] > carried)
    assert 0 < over < len(found.values)
    assert found.breaks == {"throughput_requests_per_s": over}
    assert found.broken_fraction == pytest.approx(over / len(found.values))


def test_broken_limits_of_other_kinds() -> None:
    plan = solve(small(("buy",))).plan
    assert plan is not None
    assert broken_limits(plan, small(("buy",))) == frozenset()
    assert broken_limits(plan, small(("buy",), targets={"tpot_ms": 1.0})) == {"tpot_ms"}
    tight = {"power_kw": 0.5 * plan.power_kw, "racks": 0}
    assert broken_limits(plan, small(("buy",), site=tight)) == {"power_kw", "racks"}
    poor = {"budget_capex_usd": 0.9 * plan.bill.capital_usd, "budget_usd_per_year": 0.9 * plan.bill.usd_per_year}
    assert broken_limits(plan, small(("buy",), economics=poor)) == {"budget_capex_usd", "budget_usd_per_year"}
    rich = {"budget_usd_per_year": 1.001 * plan.bill.usd_per_year}
    assert broken_limits(plan, small(("buy",), economics=rich)) == frozenset()


def test_scenarios_that_no_plan_serves_are_counted() -> None:
    law = {"distribution": "discrete", "values": [0.01, 60], "probabilities": [0.25, 0.75]}
    fields = [{"field": "targets.tpot_ms", **law}]
    result = robust(small(uncertainty={"fields": fields, "scenarios": 8}), in_program=2)
    assert result is not None
    assert (result.scenarios, result.unmet) == (8, 2)
    assert len(result.best_usd_per_year) == 6


def test_a_choice_that_fails_is_told() -> None:
    """Owned servers for today's demand cannot carry more when nothing can be rented."""
    result = robust(small(("buy",), uncertainty={"fields": FIELDS[:1], "scenarios": 10}), in_program=3)
    assert result is not None
    nominal, *others = result.plans
    assert nominal.failing > 0
    assert nominal.largest_regret_usd_per_year is None
    assert all(one.failing == 0 for one in others)


def test_bad_fields_are_told_together() -> None:
    fields = [
        {"field": "targets.tpott_ms", "distribution": "uniform", "low": 1, "high": 2},
        {"field": "choices.schemes", "distribution": "uniform", "low": 1, "high": 2},
        {"field": "site.power_kw", "distribution": "uniform", "low": 0.9, "high": 1.1, "is_multiple": True},
    ]
    with pytest.raises(InputError) as error:
        robust(small(uncertainty={"fields": fields}))
    assert [one.field for one in error.value.problems] == ["uncertainty.fields[0].field", "uncertainty.fields[1].field"]
    with pytest.raises(InputError, match="which is absent"):
        robust(small(uncertainty={"fields": fields[2:]}))
    with pytest.raises(InputError, match="E-UNCERTAINTY-408"):
        robust(small())


def test_a_drawn_value_that_is_no_input_is_told() -> None:
    fields = [
        {"field": "site.electricity_usd_per_kwh", "distribution": "normal", "mean": 0.1, "standard_deviation": 0.2}
    ]
    with pytest.raises(InputError) as error:
        robust(small(uncertainty={"fields": fields}))
    assert [one.code for one in error.value.problems] == ["E-UNCERTAINTY-407"]
    assert "in scenario" in str(error.value)


def test_stopped() -> None:
    with pytest.raises(StoppedWithoutPlan):
        robust(uncertain(), stop=lambda: True)
    calls = 0

    def after_the_nominal_plan() -> bool:
        nonlocal calls
        calls += 1
        return calls > 60

    result = robust(uncertain(scenarios=4), stop=after_the_nominal_plan)
    assert result is not None
    assert result.is_complete == (calls <= 60)


class TestVerb:
    """``optimize robust``."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "small.json"
        path.write_text(uncertain(scenarios=6).model_dump_json(by_alias=True, exclude_unset=True), encoding="utf-8")
        return path

    def test_screen_and_files(self, path: Path) -> None:
        shown = CliRunner().invoke(app, ["robust", str(path), "--in-program", "3", "-o", str(path.with_name("r.svg"))])
        assert shown.exit_code == 0, shown.stderr
        for words in ("least regret", "least shortfall", "breaks a limit in", "electricity_usd_per_kwh"):
            assert words in shown.stdout
        assert max(len(line) for line in shown.stdout.splitlines()) <= 80
        drawing = ET.fromstring(path.with_name("r.svg").read_text(encoding="utf-8"))
        assert "least regret" in [one.text for one in drawing.iter("{http://www.w3.org/2000/svg}text")]
        asked = ["robust", str(path), "--in-program", "2", "--scenarios", "3", "--json", "-q"]
        held, again = (CliRunner().invoke(app, asked) for _ in range(2))
        assert held.stdout == again.stdout
        content = json.loads(held.stdout)
        assert content["study"] == "robust"
        assert len(content["plans"]) == 4
        assert all(math.isfinite(one["expected_usd_per_year"]) for one in content["plans"])

    def test_nothing_uncertain(self, tmp_path: Path) -> None:
        path = tmp_path / "plain.json"
        path.write_text(small().model_dump_json(by_alias=True, exclude_unset=True), encoding="utf-8")
        assert CliRunner().invoke(app, ["robust", str(path)]).exit_code == 3
