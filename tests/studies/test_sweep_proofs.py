"""Long proofs of sweeps: random instances, a cluster whose worker is killed."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from optimizer.api import load
from optimizer.instance.field_paths import document_of, find_field, from_document, known_fields
from optimizer.studies.current_values import current_value
from optimizer.studies.sweep import sweep
from optimizer.studies.sweeping.kinds import Kind, kind_of
from tests.oracle.random_instances import draw
from tests.studies.small import small
from tests.studies.test_sweep import BUY, DEMAND, same_answers, two_types

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("seed", range(40, 52))
def test_no_reused_answer_is_wrong_on_random_instances(seed: int) -> None:
    """Discounts, tariffs, caps, several classes: whatever the generator of the enumeration's tests draws."""
    instance = draw(seed).instance
    demand = [field.name for field in known_fields(instance) if kind_of(field)[0] is Kind.DEMAND]
    demand = [name for name in demand if current_value(instance, find_field(instance, name)) is not None]
    key = sorted(instance.choices.accelerators or instance.economics.prices)[0]
    prices = [f"economics.prices.{key}.server_usd", "economics.discount_rate"]
    for vary, linked in (
        ([f"{name}=x0.7..x1.3:9" for name in demand], True),
        ([f"{demand[0]}=x0.5..x1:5"], False),
        ([f"{prices[seed % 2]}=x0.5..x1.5:7"], False),
        (["site.power_kw=null,1000,300,100,50,25,10"], False),
    ):
        found = sweep(instance, vary, linked=linked)
        same_answers(found, sweep(instance, vary, linked=linked, reuse=False))


def test_no_reused_answer_is_wrong_near_caps_that_only_mixed_fleets_keep() -> None:
    """The founding model where bought servers no longer fit the power and some are rented: many near-equal plans."""
    asked = load(ROOT / "instances" / "dense-600b-open.json")
    found = sweep(asked, ["site.power_kw=430:470:17"])
    same_answers(found, sweep(asked, ["site.power_kw=430:470:17"], reuse=False))
    assert found.solved < found.count
    assert sum(" + " in row.winner for row in found.rows) >= 10


@pytest.mark.parametrize("seed", range(2))
def test_no_reused_answer_is_wrong(seed: int) -> None:
    """Fleets of several types under caps that bind, at values that nobody chose."""
    import random

    pick = random.Random(seed)
    instance = two_types(
        choices={
            "sourcing": pick.choice([["buy"], ["buy", "on_demand", "reserved_3yr"]]),
            "schemes": ["w16a16", "w8a8-fp8"],
        },
        workload={"load": {"mean_fraction": pick.choice([0.4, 0.7, 1.0])}},
        targets={"spare_fraction": pick.choice([0.0, 0.05]), "tpot_ms": pick.choice([30, 60])},
    )
    low = pick.uniform(50, 300)
    for vary in (
        [f"{DEMAND}={low}:{low * pick.uniform(1.2, 3)}:24"],
        [f"site.power_kw={pick.uniform(2, 8)}:{pick.uniform(20, 60)}:16"],
        [f"{BUY}=x{pick.uniform(0.2, 0.6)}..x{pick.uniform(1.5, 3)}:16"],
        [f"targets.tpot_ms={pick.uniform(8, 20)}:80:10"],
        ["site.electricity_usd_per_kwh=0:1:5", f"{DEMAND}={low}:{low * 1.1}:6"],
        [
            f"{BUY}=x{pick.uniform(0.2, 0.6)}..x{pick.uniform(1.5, 3)}:6",
            f"site.electricity_usd_per_kwh=0:{pick.uniform(0.1, 1)}:4",
            "economics.discount_rate=0.02,0.1",
        ],
    ):
        same_answers(sweep(instance, vary), sweep(instance, vary, reuse=False))


def test_two_classes_whose_demand_moves_together() -> None:
    request = {"input_tokens": 500, "output_tokens": 100}
    document = document_of(two_types())
    document["workload"] = {
        "model": "llama-3.1-8b",
        "classes": [
            {"name": "chat", "request": request, "demand": {"requests_per_s": 100}, "targets": {"tpot_ms": 30}},
            {"name": "batch", "request": {**request, "output_tokens": 400}, "demand": {"requests_per_s": 40}},
        ],
        "load": {"mean_fraction": 0.5},
    }
    instance = from_document(document, told_as="two classes")
    vary = [f"workload.classes.{name}.demand.requests_per_s=x0.8..x1.2:15" for name in ("chat", "batch")]
    found = sweep(instance, vary, linked=True)
    same_answers(found, sweep(instance, vary, linked=True, reuse=False))
    assert found.solved < found.count
    all_at_once = sweep(instance, ["workload.classes.*.demand.requests_per_s=x0.8..x1.2:15"])
    assert [replace(row, values=()) for row in all_at_once.rows] == [replace(row, values=()) for row in found.rows]
    alone = sweep(instance, vary[:1])
    same_answers(alone, sweep(instance, vary[:1], reuse=False))


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers, each a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started: list[subprocess.Popen[bytes]] = []

    def start(*args: str) -> subprocess.Popen[bytes]:
        log = (folder / f"{len(started)}.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli." + args[0], *args[1:]],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        log.close()
        started.append(process)
        return process

    try:
        start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        address = ""
        for _ in range(300):
            found = re.search(r"tcp://127\.0\.0\.1:\d+", (folder / "0.log").read_text(errors="replace"))
            if found:
                address = found[0]
                break
            time.sleep(0.1)
        for _ in range(2):
            start("dask_worker", address, "--nworkers", "1", "--nthreads", "1", "--no-nanny", "--no-dashboard")
        yield address, started[1:]
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_a_cluster_loses_nothing_when_a_worker_is_killed(tmp_path: Path) -> None:
    vary = ["targets.tpot_ms=40:60:8", f"{BUY}=x0.5..x2:5", f"{DEMAND}=900,950"]
    here = sweep(small(), vary)
    with cluster(tmp_path) as (address, workers):
        done: list[int] = []

        def tell(standing: object) -> None:
            done.append(1)
            if len(done) == 2:
                workers[0].kill()

        there = sweep(small(), vary, scheduler=address, progress=tell)
        assert workers[0].wait() != 0
    assert len(done) > 4
    assert there.rows == here.rows
