"""Warm `api.solve` of the founding instance here against another commit's checkout, in turn, in one run.

    git worktree add --detach ../baseline 8b77710
    python bench/founding_solve.py --baseline ../baseline [INSTANCE] [--rounds 7]

Each checkout solves its own copy of INSTANCE in a process of its own that stays warm; rounds alternate between the two.
Prints processor seconds (minimum and median) and the ratio of the pairs. The recorded baseline is commit 8b77710,
before costs of the whole site, sourcing by load level and ranked plans; the bar is a median ratio of 2 at most.
"""

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

BASELINE = "8b77710"
BAR = 2.0
#: Solves once to be warm, then once for each line read, answering with the processor seconds it took.
CHILD = """
import sys, time
from pathlib import Path
from optimizer import api
path = Path(sys.argv[1])
instance = api.load(path)
api.solve(instance, instance_path=path)
print("warm", flush=True)
for _ in sys.stdin:
    began = time.process_time()
    api.solve(instance, instance_path=path)
    print(time.process_time() - began, flush=True)
"""


class Warm:
    """A process that has solved the instance of a checkout once."""

    def __init__(self, checkout: Path, instance: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", CHILD, instance],
            cwd=checkout,
            env={"PYTHONPATH": str(checkout), "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit("the checkout does not solve the instance")
        return line

    def seconds(self) -> float:
        """Processor seconds of one more solve."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._answer())

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def commit(checkout: Path) -> str:
    """Short name of the commit that is checked out."""
    found = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    )
    return found.stdout.strip()


def main() -> None:
    """Measure in turn and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("instance", nargs="?", default="instances/dense-600b-open.json")
    parser.add_argument("--baseline", type=Path, required=True, help=f"checkout of the baseline, {BASELINE}")
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    checkouts = (asked.baseline.resolve(), Path(__file__).resolve().parent.parent)
    runs = [Warm(checkout, asked.instance) for checkout in checkouts]
    rows = [tuple(run.seconds() for run in runs) for _ in range(asked.rounds)]
    for run in runs:
        run.close()
    for index, checkout in enumerate(checkouts):
        cpus = [row[index] for row in rows]
        name = f"{'baseline' if index == 0 else 'here'} {commit(checkout)}"
        print(f"{name:18} processor min {min(cpus):.3f} median {statistics.median(cpus):.3f} s")
    ratios = [here / before for before, here in rows]
    median = statistics.median(ratios)
    verdict = "met" if median <= BAR else "missed"
    print(f"ratio here / baseline: min {min(ratios):.2f} median {median:.2f}; bar {BAR:.0f} {verdict}")


if __name__ == "__main__":
    main()
