"""Other solvers, reading the program from the file that ``--export`` writes."""

import re
import subprocess
from pathlib import Path

import cbcbox
import pyscipopt

#: Seconds after which another solver is stopped; the tests then fail rather than hang.
STOP_S = 240


class Stopped(Exception):  # noqa: N818 - it reports how a run ended
    """Another solver did not prove an optimum in its time."""


def cbc_objective(path: Path) -> float | None:
    """Least objective by CBC; None where it finds the program infeasible."""
    solution = path.with_suffix(".cbc.txt")
    options = ("-ratioGap", "1e-9", "-allowableGap", "1e-10", "-integerTolerance", "1e-8", "-sec", str(STOP_S))
    subprocess.run(
        [cbcbox.cbc_bin_path(), str(path), *options, "-solve", "-solution", str(solution)],
        check=True,
        capture_output=True,
        timeout=2 * STOP_S,
    )
    with solution.open(encoding="utf-8") as file:
        status = file.readline()
    if "nfeasible" in status:
        return None
    found = re.search(r"^Optimal.*objective value\s+(\S+)", status)
    if found is None:
        raise Stopped(status.strip())
    return float(found.group(1))


def scip_objective(path: Path) -> float | None:
    """Least objective by SCIP; None where it finds the program infeasible."""
    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem(str(path))
    model.setParam("limits/gap", 0.0)
    model.setParam("limits/time", STOP_S)
    model.setParam("numerics/feastol", 1e-9)
    model.optimize()
    status = model.getStatus()
    if status == "infeasible":
        return None
    if status != "optimal":
        raise Stopped(status)
    return float(model.getObjVal())
