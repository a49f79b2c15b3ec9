"""How fast sweeps are: against rebuilding and solving each case, on one and two processes, and for the founding story.

    python bench/sweep.py [--sample N | --every-case] [--cases N]

Processor seconds of all processes, and wall seconds. The baseline is one process that builds and solves every case from
its instance (``studies.best.best_plan``, verified as sweeps are) with the same options; with ``--sample`` every n-th
case, scaled up to all.
"""

import argparse
import json
import multiprocessing
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from optimizer.api import load
from optimizer.instance.field_paths import from_document
from optimizer.studies.best import best_plan
from optimizer.studies.ranges import case_points
from optimizer.studies.sweep import Asked, Sweep, asked, sweep

FOLDER = Path(__file__).parent.parent / "instances"
OPEN, A100 = FOLDER / "dense-600b-open.json", FOLDER / "dense-600b-a100.json"

DEMAND = "workload.demand.output_tokens_per_s=18000:22000:{}"
POWER = "site.power_kw=420:900:{}"

#: A thousand cases each, of the kinds that planners ask for.
FOUNDING = (
    (
        OPEN,
        [
            "targets.tpot_ms=130:200:8",
            "economics.prices.gaudi3.server_usd=-30%..30%:25",
            "site.electricity_usd_per_kwh=x0.5..x2:5",
        ],
    ),
    (OPEN, ["workload.demand.output_tokens_per_s=15000:25000:1000"]),
    (
        A100,
        [
            "economics.prices.a100-80gb-sxm.server_usd=-30%..30%:40",
            "targets.tpot_ms=140:200:5",
            "site.power_kw=null,4000,3000,2000,1500",
        ],
    ),
)


def spent() -> float:
    """Processor seconds of this process and of children that have ended."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


def timed(work: Callable[[], Sweep]) -> tuple[Sweep, float, float]:
    """(result, processor seconds, wall seconds)."""
    cpu, wall = spent(), time.perf_counter()
    result = work()
    return result, spent() - cpu, time.perf_counter() - wall


def rebuilt(what: Asked, every: int) -> tuple[float, int]:
    """(processor seconds, cases) of building and solving every n-th case by itself."""
    document = json.loads(what.job.instance_json)
    began, done = spent(), 0
    for number in range(0, what.count, every):
        moved = document
        for axis, point in zip(what.job.axes, case_points(what.job.axes, number), strict=True):
            moved = axis.applied(moved, point)
        best_plan(from_document(moved, told_as="case"))
        done += 1
    return spent() - began, done


def against_rebuilding(path: Path, vary: str, cases: int, sample: int) -> None:
    """A sweep with reuse, in one process, against the baseline."""
    what = asked(load(path), [vary.format(cases)])
    found, cpu, wall = timed(lambda: sweep(what))
    every = max(1, cases // sample)
    seconds, done = rebuilt(what, every)
    baseline = seconds * cases / done
    print(
        f"{path.stem}, {vary.format(cases)}: {found.solved} of {cases} solved\n"
        f"  sweep {cpu:.1f} processor s ({wall:.1f} s wall); rebuilt {baseline:.1f} processor s"
        f" ({done} cases took {seconds:.1f}); {baseline / cpu:.1f} times faster",
        flush=True,
    )


def two_processes(cases: int) -> None:
    """Reuse switched off: one process against two."""
    what = asked(load(OPEN), [DEMAND.format(cases)], reuse=False)
    _, one_cpu, one = timed(lambda: sweep(what))
    load_average = os.getloadavg()[0]
    with busiest() as most:
        _, two_cpu, two = timed(lambda: sweep(what, jobs=2))
    print(
        f"without reuse, {cases} cases: one process {one:.1f} s ({one_cpu:.1f} processor s), two {two:.1f} s"
        f" ({two_cpu:.1f} processor s): {one / two:.2f} times; load average {load_average:.1f}\n"
        f"  the busiest process used {max(most.values()):.1f} processor s: {one_cpu / max(most.values()):.2f} times"
        " on two processors that nobody else uses",
        flush=True,
    )


@contextmanager
def busiest() -> Iterator[dict[int, float]]:
    """Processor seconds by child process, as last seen, and of this process under number 0 (Linux only)."""
    seen: dict[int, float] = {0: 0.0}
    ended = threading.Event()
    began = time.process_time()

    def look() -> None:
        tick = os.sysconf("SC_CLK_TCK")
        while not ended.wait(0.1):
            for child in multiprocessing.active_children():
                try:
                    fields = Path(f"/proc/{child.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
                except OSError:
                    continue
                seen[int(child.pid or 0)] = (int(fields[11]) + int(fields[12])) / tick
            seen[0] = time.process_time() - began

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()


def founding() -> None:
    """A thousand cases of the founding instance on two processes."""
    for path, vary in FOUNDING:
        what = asked(load(path), vary)
        load_average = os.getloadavg()[0]
        with busiest() as most:
            found, cpu, wall = timed(lambda what=what: sweep(what, jobs=2))
        print(
            f"{path.stem}, {' x '.join(vary)}: {what.count} cases, {found.solved} solved:"
            f" {wall:.1f} s wall, {cpu:.1f} processor s on two processes, the busiest {max(most.values()):.1f};"
            f" load average {load_average:.1f}",
            flush=True,
        )


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--sample", type=int, default=100)
    parser.add_argument("--every-case", action="store_true")
    parser.add_argument("--only", choices=["demand", "power", "a100", "processes", "founding"])
    given = parser.parse_args()
    sample = given.cases if given.every_case else given.sample
    if given.only in (None, "demand"):
        against_rebuilding(OPEN, DEMAND, given.cases, sample)
    if given.only in (None, "a100"):
        against_rebuilding(A100, DEMAND, given.cases, sample)
    if given.only in (None, "power"):
        against_rebuilding(OPEN, POWER, given.cases, sample)
    if given.only in (None, "processes"):
        two_processes(60)
    if given.only in (None, "founding"):
        founding()


if __name__ == "__main__":
    main()
