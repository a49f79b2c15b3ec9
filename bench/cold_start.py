"""Cold `optimize` on an instance against the bare import of what it stands on, in turn, in one run.

    python bench/cold_start.py [INSTANCE] [--rounds 7]

Prints wall and processor seconds (minimum and median), the ratio of the pairs, and peak memory. The baseline is
`import pyomo.environ, highspy, pydantic, click, numpy` in the same interpreter. Our modules are compiled first, as
`pip install` does and as the second run of a checkout finds them; libraries are compiled in both cases.
"""

import argparse
import compileall
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BARE = "import pyomo.environ, highspy, pydantic, click, numpy"


def run(command: list[str]) -> tuple[float, float, float]:
    """(wall seconds, processor seconds, peak MiB so far of any child) of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 4):
        sys.exit(done.stderr.decode())
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, after.ru_maxrss / 1024


def main() -> None:
    """Measure in turn and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("instance", nargs="?", default="instances/dense-600b-open.json")
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    root = Path(__file__).resolve().parent.parent
    for package in ("optimizer", "constraints"):
        compileall.compile_dir(root / package, quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        target = str(Path(folder) / "answer.json")
        ours = [sys.executable, str(root / "cli.py"), asked.instance, "-o", target, "--force"]
        bare = [sys.executable, "-c", BARE]
        help_ = [sys.executable, str(root / "cli.py"), "--help"]
        for command in (ours, bare, help_):
            run(command)
        rows = [(run(bare), run(ours), run(help_)) for _ in range(asked.rounds)]
    for index, name in enumerate(("bare import", "optimize", "--help")):
        walls, cpus = [row[index][0] for row in rows], [row[index][1] for row in rows]
        print(
            f"{name:12} wall min {min(walls):.3f} median {statistics.median(walls):.3f} s   "
            f"processor min {min(cpus):.3f} median {statistics.median(cpus):.3f} s"
        )
    for index, what in ((0, "wall"), (1, "processor")):
        ratios = [row[1][index] / row[0][index] for row in rows]
        print(f"ratio of {what:9} optimize / bare import: min {min(ratios):.2f} median {statistics.median(ratios):.2f}")
    print(f"peak memory of any of them {max(row[1][2] for row in rows):.0f} MiB   processors {os.cpu_count()}")


if __name__ == "__main__":
    main()
