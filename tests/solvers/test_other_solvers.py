"""A second solver reaches the same cost from the exported program, on shipped and on random instances."""

from pathlib import Path

import pytest

from optimizer.answer import answer
from optimizer.api import load, resolved, solve
from optimizer.candidates import build_candidates
from optimizer.catalog import load_catalog
from optimizer.instance.model import Instance
from optimizer.models import served_model
from optimizer.offer import Without, make_offer
from optimizer.performance.factors import load_factors
from optimizer.schemes import scheme_options
from optimizer.screen import screen
from optimizer.setting import build_setting
from optimizer.solver import Options, Reason, export
from tests.oracle.random_instances import draw
from tests.solvers.others import cbc_objective, scip_objective

INSTANCES = sorted(
    path for path in (Path(__file__).parents[2] / "instances").glob("*.json") if not path.name.endswith(".plan.json")
)
#: Hundreds of thousands of coefficients: half a minute.
LARGE = {"dense-600b-open-median"}
TOLERANCE = 1e-6
RANDOM = range(2000, 2020)


def least_usd_per_hour(instance: Instance, exported: Path, *, dominate: bool) -> float | None:
    """What our solver says the program costs, before ties are broken; None: infeasible. The program is exported.

    The same steps as ``optimizer.api.solve`` without runners-up and diagnosis, which are programs of their own.
    """
    setting = build_setting(instance, load_catalog())
    model = served_model(instance, setting.catalog)
    screened = screen(build_candidates(setting, model, scheme_options(setting, model), load_factors()))
    found = answer(make_offer(screened, dominate=dominate), Options(), Without(), None)
    if found.model is not None:
        export(found.model, exported)
    if found.fleet is None:
        assert found.outcome.reason is Reason.INFEASIBLE
        return None
    assert found.outcome.reason is Reason.OPTIMAL
    return found.outcome.objective


def assert_same(ours: float | None, other: float | None) -> None:
    """Both infeasible, or the same cost."""
    if ours is None or other is None:
        assert ours is None
        assert other is None
    else:
        assert ours == pytest.approx(other, rel=TOLERANCE)


def assert_training_agrees(instance: Instance, exported: Path) -> None:
    """The plan's cost is what CBC says of the exported program; a refused run has none that CBC can solve."""
    plan = solve(instance, export=exported).plan
    if not exported.exists():
        assert plan is None, "a plan without a program"
        return
    other = cbc_objective(exported)
    assert_same(None if plan is None else plan.outcome.objective_usd_per_hour, other)


def test_there_are_shipped_instances() -> None:
    assert INSTANCES


@pytest.mark.parametrize(
    "path",
    [pytest.param(one, marks=pytest.mark.slow if one.stem in LARGE else (), id=one.stem) for one in INSTANCES],
)
def test_cbc_agrees_on_every_shipped_instance(path: Path, tmp_path: Path) -> None:
    exported = tmp_path / "program.mps"
    instance = resolved(load(path), path)
    if instance.workload.kind == "training":
        assert_training_agrees(instance, exported)
        return
    ours = least_usd_per_hour(instance, exported, dominate=True)
    if not exported.exists():
        assert ours is None, "a plan without a program"
        return
    assert_same(ours, cbc_objective(exported))


@pytest.mark.parametrize("seed", RANDOM)
def test_other_solvers_agree_on_random_instances(seed: int, tmp_path: Path) -> None:
    """CBC and SCIP by turns, on the whole program: nothing that is dominated is left out before."""
    exported = tmp_path / ("program.lp" if seed % 4 < 2 else "program.mps")
    ours = least_usd_per_hour(draw(seed).instance, exported, dominate=False)
    if not exported.exists():
        assert ours is None, "a plan without a program"
        return
    assert_same(ours, cbc_objective(exported) if seed % 2 else scip_objective(exported))


def test_the_api_exports_the_program_it_solves(tmp_path: Path) -> None:
    exported = tmp_path / "program.mps"
    instance = next(one.instance for seed in RANDOM if (one := draw(seed)).expected is not None)
    plan = solve(instance, export=exported).plan
    assert plan is not None
    # Ties within 1e-6 are broken by size, after the solver is within its gap of 1e-6.
    assert plan.bill.usd_per_hour == pytest.approx(cbc_objective(exported), rel=2e-6)
