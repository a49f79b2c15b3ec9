"""What leaving out dominated candidates is worth: 10,000 random candidates, solved with and without.

    python bench/domination.py [--candidates 10000] [--seed 0]

Random rows with the attributes that the program sees; one class. Prints how many are left, and the time in which HiGHS
covers a demand at least cost with all of them and with those that are left: the same cost, sooner.
"""

import argparse
import time

import highspy
import numpy as np
import numpy.typing as npt

from optimizer.screen import not_dominated


def covered(cost: npt.NDArray[np.float64], capacity: npt.NDArray[np.float64], demand: float) -> tuple[float, float]:
    """Least cost of whole replicas that serve the demand, and the seconds that it took."""
    n = cost.size
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = n, 1
    model.col_cost_, model.col_lower_, model.col_upper_ = cost, np.zeros(n), np.full(n, 1e4)
    model.row_lower_, model.row_upper_ = np.array([demand]), np.array([highspy.kHighsInf])
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_, model.a_matrix_.index_ = np.array([0, n]), np.arange(n)
    model.a_matrix_.value_ = capacity
    model.integrality_ = [highspy.HighsVarType.kInteger] * n
    highs = highspy.Highs()
    highs.silent()
    highs.setOptionValue("mip_rel_gap", 1e-6)
    highs.setOptionValue("threads", 1)
    highs.passModel(model)
    began = time.perf_counter()
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(f"HiGHS ended with {highs.getModelStatus()}")
    return highs.getObjectiveValue(), time.perf_counter() - began


def main() -> None:
    """Print counts and seconds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    random = np.random.default_rng(asked.seed)
    n = asked.candidates
    group = random.integers(0, 60, n)
    width = 2 ** random.integers(0, 4, n)
    servers = width / 8.0
    capacity = width * random.lognormal(0.0, 0.4, n)
    energy = random.lognormal(0.0, 0.2, n)
    began = time.perf_counter()
    kept = not_dominated(group, width, servers, capacity, energy)
    seconds = time.perf_counter() - began
    left = int(kept.sum())
    print(f"{n:,} random candidates in 60 groups -> {left:,} left in {seconds:.3f} s ({n / left:.0f} times fewer)")
    # A server of a group has one price; energy comes on top.
    cost = servers * random.lognormal(1.0, 0.5, 60)[group] + 0.05 * energy
    demand = 137.31 * float(capacity.max())
    with_all, slow = covered(cost, capacity, demand)
    with_left, fast = covered(cost[kept], capacity[kept], demand)
    print(f"HiGHS on all {slow:.3f} s, on those left {fast:.3f} s: ratio {slow / fast:.1f}")
    print(f"cost {with_all:.6f} and {with_left:.6f}, relative difference {abs(with_all / with_left - 1.0):.1e}")


if __name__ == "__main__":
    main()
