"""Do choices made by prediction hold when measured? Prints the table of the packaged held-out predictions.

    python bench/decisions.py [--refit]

``--refit`` holds every group out again instead of reading the packaged predictions (a minute or two).
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

from optimizer.calibration.crossvalidation import Held, hold_out
from optimizer.calibration.decisions import decide, decision_groups
from optimizer.calibration.fit import Data
from optimizer.calibration.held_out import keys_of, packaged_held
from optimizer.calibration.packaged import packaged_data, prior_factors
from optimizer.calibration.parameters import serving_parameters
from optimizer.catalog import load_catalog
from optimizer.performance.bands import EVIDENCE, load_bands
from optimizer.performance.factors import FloatArray, load_factors


def multipliers(data: Data, metric: str, level: float) -> FloatArray:
    """The band's multiplier of each point at a level."""
    bands = load_bands()
    code = EVIDENCE.index("configuration")
    return np.array([float(bands.multiplier(metric, point.engine, code, level)) for point in data.points])


def main() -> None:
    """Print the table."""
    data = packaged_data(load_catalog())
    held: Held
    if "--refit" in sys.argv:
        keys = keys_of(data, "group")
        held = hold_out(data, prior_factors(), serving_parameters(), keys, 10, start=load_factors())
    else:
        held = packaged_held(data)["group"]
    print(f"{len(decision_groups(data))} groups; targets TPOT 10-50 ms x TTFT 500, 2000 ms")
    print(f"{'confidence':>10}{'cases':>8}{'picks':>8}{'valid':>9}{'lost':>8}{'no pick':>9}")
    for level in (0.5, 0.7, 0.8, 0.9, 0.95):
        times = [1.0, 1.0] if level == 0.5 else [multipliers(data, name, level) for name in ("tpot_ms", "ttft_ms")]
        d = decide(data, held, *times)
        print(f"{level:>10}{d.cases:>8}{d.picks:>8}{d.valid:>9.1%}{d.lost:>8.1%}{d.without_pick:>9.1%}")


if __name__ == "__main__":
    main()
