"""``optimize doctor``: versions, solvers, and whether the installation works."""

import platform
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import click

from optimizer import __version__
from optimizer.commands import talk
from optimizer.errors import SolverError

_LIBRARIES: Final = ("click", "highspy", "numpy", "pydantic", "pyomo", "rich")
#: Solvers that are used beside HiGHS, to compare: distribution and name.
_OTHER_SOLVERS: Final = (("cbcbox", "CBC"), ("pyscipopt", "SCIP"))


def versions() -> Iterator[tuple[str, str]]:
    """Name and version of everything that an answer may depend on; nothing is imported for it."""
    yield "optimize", __version__
    yield "python", f"{platform.python_version()} {platform.python_implementation()}"
    yield "system", platform.platform()
    for name in _LIBRARIES:
        yield name, _version(name) or "missing"


@click.command()
def doctor() -> int:
    """Show versions and solvers, and test the installation."""
    for name, found in versions():
        talk.data(f"{name:<10} {found}")
    for distribution, solver in _OTHER_SOLVERS:
        talk.data(f"{solver:<10} {_version(distribution) or 'not installed (only comparisons need it)'}")
    talk.data("")
    failed = False
    for label, test in _TESTS:
        reason = _run(test)
        failed = failed or bool(reason)
        talk.data(f"{label:<42} {'FAILED: ' + reason if reason else 'ok'}")
    return SolverError.exit_code if failed else 0


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def _run(test: Callable[[], None]) -> str:
    try:
        test()
    except Exception as error:  # noqa: BLE001 - a doctor reports whatever it meets
        return f"{type(error).__name__}: {error}"
    return ""


def _solver_proves() -> None:
    """HiGHS must find and prove 3 x 2 >= 5 at least cost: x = 3."""
    highspy: Any = import_module("highspy")

    solver = highspy.Highs()
    solver.silent()
    x = solver.addIntegral(lb=0, ub=10, obj=1)
    solver.addConstr(2 * x >= 5)
    solver.run()
    status = solver.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal or round(solver.getSolution().col_value[0]) != 3:
        raise SolverError(f"HiGHS answered {status} to a program whose answer is 3")


def _catalog_loads() -> None:
    from optimizer.catalog import load_catalog

    catalog = load_catalog()
    tables = (catalog.accelerators, catalog.models, catalog.schemes, catalog.cooling, catalog.rental_offers)
    if not all(len(table) for table in tables):
        raise LookupError("a table of the catalogue is empty")


def _schema_fits() -> None:
    from optimizer.instance import schema

    if schema.committed() != schema.generated():
        raise ValueError("the schema in the package is not that of its shapes")


def _constraints_are_ours() -> None:
    """Another distribution on PyPI installs a package of this name; the last one installed wins in silence."""
    import constraints

    if getattr(constraints, "OWNER", "") != "gpu-cluster-optimizer":
        raise ImportError("another distribution has replaced `constraints`: install into a clean environment (pipx)")


_TESTS: Final = (
    ("the solver proves a small program", _solver_proves),
    ("the catalogue loads", _catalog_loads),
    ("the schema is that of the shapes", _schema_fits),
    ("the package `constraints` is ours", _constraints_are_ours),
)
