"""How many training layouts are evaluated per second on one core: step, parts, memory, traffic, bands of each.

    python bench/layouts_per_second.py [--rows 200000] [--repeats 5]

The layouts are those of Llama 3.1 405B on 16,384 H100, repeated to the asked number. The baseline of the ratio is the
same evaluation one row at a time.
"""

import argparse
import time

import numpy as np

from optimizer.calibration.training.names import resolve_model, training_accelerator
from optimizer.catalog import load_catalog
from optimizer.performance.training import Layouts, StepPrediction, enumerate_layouts, predict_step


def main() -> None:
    """Print the count, both rates and their ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    catalog = load_catalog()
    accelerator, model = training_accelerator(catalog, "h100-80gb-sxm"), resolve_model(catalog, "Llama 3.1 405B")
    assert model is not None
    distinct = enumerate_layouts(model, 16384, sequence_length=8192, sequences=2048)
    assert distinct is not None
    rows = distinct.take(np.resize(np.arange(distinct.size), asked.rows))

    def evaluate(layouts: Layouts) -> StepPrediction:
        assert model is not None
        return predict_step(model, layouts, accelerator, sequence_length=8192, global_batch_tokens=2048 * 8192)

    def seconds(layouts: Layouts) -> float:
        began = time.process_time()
        evaluate(layouts)
        return time.process_time() - began

    evaluate(rows.take(slice(0, 10)))
    whole = min(seconds(rows) for _ in range(asked.repeats))
    single = min(seconds(rows.take(np.array([index]))) for index in range(50))
    print(f"layouts          {rows.size} ({distinct.size} distinct)")
    print(f"layouts/s        {rows.size / whole:.3g}")
    print(f"one at a time    {1 / single:.3g}")
    print(f"ratio            {rows.size / whole * single:.3g}")


if __name__ == "__main__":
    main()
