"""How many distinct candidates are evaluated per second on one core, on an instance.

    python bench/candidates_per_second.py [INSTANCE] [--repeats 5]

A candidate is (class, server type, layout, scheme, concurrency); every attribute that a limit looks at is computed
for each: memory, TTFT, TPOT, throughput, link traffic. The baseline of the ratio is the same evaluation one row at a
time.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from optimizer import api
from optimizer.candidates import build_candidates
from optimizer.catalog import load_catalog
from optimizer.models import served_model
from optimizer.performance.factors import load_factors
from optimizer.schemes import scheme_options
from optimizer.screen import accuracy_column, bounds_of, keeps, seen_of
from optimizer.setting import build_setting


def main() -> None:
    """Print counts, rates and the ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("instance", nargs="?", default="instances/dense-600b-open.json")
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    instance = api.resolved(api.load(asked.instance), Path(asked.instance))
    setting = build_setting(instance, load_catalog())
    model = served_model(instance, setting.catalog)
    candidates = build_candidates(setting, model, scheme_options(setting, model), load_factors())
    levels = np.unique(np.round(np.geomspace(1, instance.choices.max_concurrency, 160)).astype(np.int64))
    rows = np.repeat(np.arange(candidates.size), levels.size)
    concurrency = np.tile(levels, candidates.size)
    bounds, accuracy = bounds_of(candidates), accuracy_column(candidates)

    def evaluate(chosen: np.ndarray, load: np.ndarray) -> int:
        seen = seen_of(candidates.at(chosen, load), accuracy[chosen])
        kept = np.logical_and.reduce(list(keeps(seen, bounds.take(chosen)).values()))
        return int(np.count_nonzero(kept))

    blocks = [slice(start, start + 8192) for start in range(0, rows.size, 8192)]
    best = np.inf
    for _ in range(asked.repeats):
        began = time.process_time()
        admissible = sum(evaluate(rows[block], concurrency[block]) for block in blocks)
        best = min(best, time.process_time() - began)
    rate = rows.size / best
    sample = np.linspace(0, rows.size - 1, 300).astype(np.int64)
    began = time.process_time()
    for row in sample:
        evaluate(rows[row : row + 1], concurrency[row : row + 1])
    single = sample.size / (time.process_time() - began)
    print(f"instance            {asked.instance}")
    print(f"deployments         {candidates.size:,}   concurrencies {levels.size:,}")
    print(f"distinct candidates {rows.size:,}   of which {admissible:,} keep every deployment limit")
    print(f"vectorised          {rate:,.0f} candidates/s (best of {asked.repeats}, processor seconds, one core)")
    print(f"one row at a time   {single:,.0f} candidates/s")
    print(f"ratio               {rate / single:,.0f}")


if __name__ == "__main__":
    main()
